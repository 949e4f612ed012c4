"""Offsets, known and unknown priors, and the inverse of a map."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import softmax
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.stats import chi2

from calibrant.recalibration import (
    BetaCalibration,
    FitWarning,
    HistogramBinning,
    Identity,
    IsotonicCalibration,
    OffsetScaling,
    PlattScaling,
    PriorShift,
    TemperatureScaling,
    VennAbers,
)

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.recalibration.FitWarning")


def logit(p):
    return np.log(p) - np.log1p(-p)


def expit(z):
    return 1 / (1 + np.exp(-z))


# -- offset --------------------------------------------------------------------------------


@given(st.integers(0, 10_000), st.floats(0.02, 0.98), st.sampled_from([2, 3, 7]))
def test_the_mean_forecast_becomes_the_rate(seed, share, k):
    rng = np.random.default_rng(seed)
    z = 3 * rng.normal(size=(40, k))
    y = rng.integers(0, k, 40)
    rate = np.full(k, (1 - share) / (k - 1))
    rate[-1] = share
    found = OffsetScaling(rate=rate.tolist()).fit(z, y)
    np.testing.assert_allclose(found.predict_proba(z).mean(axis=0), rate, atol=1e-10)
    same = OffsetScaling(rate=rate.tolist()).fit(z, (y + 1) % k)  # labels have no say
    np.testing.assert_array_equal(same.offset_, found.offset_)


def test_two_classes_by_bisection():
    rng = np.random.default_rng(0)
    z, y = 2 * rng.normal(size=300), rng.integers(0, 2, 300)
    rate = (
        y.sum() + 1.0 * expit(z).mean()
    ) / 301  # one pseudo-row agrees with the scores
    shift = brentq(lambda b: expit(z + b).mean() - rate, -9, 9, xtol=1e-14)
    found = OffsetScaling().fit(z, y)
    assert found.offset_[1] - found.offset_[0] == pytest.approx(shift, abs=1e-9)
    np.testing.assert_allclose(
        found.predict_proba(z)[:, 1], expit(z + shift), atol=1e-9
    )
    by_probs = OffsetScaling(scores="probs").fit(expit(z), y)
    np.testing.assert_allclose(by_probs.offset_, found.offset_, atol=1e-9)


def test_without_smoothing_it_is_maximum_likelihood():
    rng = np.random.default_rng(1)
    z, weight = rng.normal(size=(200, 4)), rng.exponential(size=200)
    y = rng.integers(0, 4, 200)

    def loss(b):
        p = softmax(z + np.append(0, b))
        return -np.average(np.log(p[np.arange(200), y]), weights=weight)

    best = minimize(loss, np.zeros(3), options={"gtol": 1e-9}).x
    found = OffsetScaling(smoothing=0).fit(z, y, weight)
    np.testing.assert_allclose(found.offset_[1:] - found.offset_[0], best, atol=1e-5)


def test_a_rate_that_certain_rows_forbid_is_told():
    p = np.array([0.0] * 8 + [0.5, 0.5])
    with pytest.warns(UserWarning, match="cannot be what it should"):
        found = OffsetScaling(scores="probs", rate=0.5).fit(p, [0] * 9 + [1])
    assert (found.predict_proba(p)[:8, 1] == 0).all()


@pytest.mark.parametrize("k", [3, 250])
def test_many_classes_too(k):
    rng = np.random.default_rng(2)
    z = rng.normal(size=(500, k))
    rate = rng.dirichlet(np.full(k, 2.0))
    found = OffsetScaling(rate=rate).fit(z, rng.integers(0, k, 500))
    mean = found.predict_proba(z).mean(axis=0)
    np.testing.assert_allclose(mean, rate, atol=1e-10 if k == 3 else 1e-6)


# -- label shift -----------------------------------------------------------------------------


def two_normals(n, share, seed):
    """Log-odds that are exact at one half, of rows of which a share is positive."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    return 1.5 * (rng.normal(size=n) + 1.5 * (y - 0.5)), y


def test_a_known_prior_is_bayes_rule():
    z, _ = two_normals(1000, 0.5, 0)
    found = PriorShift(prior=0.1, source=0.5).fit(z, z > 0)
    exact = expit(z + logit(0.1) - logit(0.5))
    np.testing.assert_allclose(found.predict_proba(z)[:, 1], exact, atol=1e-12)


def test_old_frequencies_are_those_of_the_labels():
    z, y = two_normals(1000, 0.3, 1)
    found = PriorShift(prior=0.5).fit(z, y, frequency=np.arange(1000) % 3)
    expected = np.average(y, weights=np.arange(1000) % 3)
    np.testing.assert_allclose(found.source_, [1 - expected, expected])


@pytest.mark.parametrize("share", [0.02, 0.2, 0.7])
def test_em_finds_the_new_prior_without_labels(share):
    z, y = two_normals(40_000, share, 2)
    found = PriorShift(source=0.5).fit(z[:10], y[:10]).adapt(z)
    assert found.prior_[1] == pytest.approx(share, abs=0.012)
    np.testing.assert_allclose(
        found.predict_proba(z)[:, 1].mean(), found.prior_[1], atol=1e-6
    )


def test_em_maximises_the_likelihood():
    rng = np.random.default_rng(3)
    p, weight = rng.dirichlet([0.5, 0.5, 0.5], 400), rng.exponential(size=400)
    source = np.array([0.2, 0.3, 0.5])

    def loss(free):
        prior = softmax(np.append(free, 0)[None])[0]
        return -np.average(np.log(p @ (prior / source)), weights=weight)

    best = minimize(loss, np.zeros(2), options={"gtol": 1e-10}).x
    best = softmax(np.append(best, 0)[None])[0]
    found = PriorShift("probs", source=source.tolist()).fit(p, rng.integers(0, 3, 400))
    np.testing.assert_allclose(found.adapt(p, weight).prior_, best, atol=1e-5)
    assert found.n_iter_ > 1


def test_a_class_without_a_share_is_told():
    z, y = two_normals(2000, 0.5, 5)
    found = PriorShift(source=0.9).fit(z, y)  # the scores are exact at one half
    with pytest.warns(
        FitWarning, match="frequency of 1 of 2 classes is 0, at the bound"
    ):
        found.adapt(z - 3)
    assert found.prior_[1] < 1e-6
    assert "check source=" in found.notes_[-1]
    assert not found.adapt(z + logit(0.9)).notes_


# -- inverse ---------------------------------------------------------------------------------


def test_the_inverse_of_a_logistic_map_is_known():
    z, y = two_normals(2000, 0.3, 4)
    found = PlattScaling().fit(z, y)
    wanted = np.array([0.02, 0.5, 0.9])
    expected = (logit(wanted) - found.intercept_) / found.slope_
    np.testing.assert_allclose(found.inverse(wanted), expected, rtol=1e-9, atol=1e-9)
    assert isinstance(found.inverse(0.02), float)


@pytest.mark.parametrize(
    "make",
    [Identity, TemperatureScaling, OffsetScaling, BetaCalibration, IsotonicCalibration, VennAbers],
)  # fmt: skip
@pytest.mark.parametrize("scores", ["probs", "logits"])
def test_the_inverse_is_the_least_score_that_means_so_much(make, scores):
    z, y = two_normals(500, 0.4, 5)
    given = expit(z) if scores == "probs" else z
    found = make(scores=scores).fit(given, y)
    for wanted in (0.05, 0.3, 0.6):
        at = found.inverse(wanted)
        below = at - 1e-6 if scores == "probs" else at - 1e-5
        assert found.predict_proba([at])[0, 1] >= wanted - 1e-9
        assert (
            found.predict_proba([max(below, 0) if scores == "probs" else below])[0, 1]
            < wanted
        )


def test_no_score_means_so_much():
    found = IsotonicCalibration(scores="probs").fit([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 0])
    assert found.inverse(0.9) == np.inf
    assert found.inverse(0.0) == 0.0


def test_maps_without_an_inverse_are_refused():
    z, y = two_normals(300, 0.5, 6)
    with pytest.raises(ValueError, match="inverse needs a map that does not fall"):
        HistogramBinning(bins=40).fit(z, y).inverse(0.5)
    with pytest.raises(ValueError, match="there are 3 classes"):
        Identity().fit(np.eye(3) * 2, [0, 1, 2]).inverse(0.5)
    with pytest.raises(ValueError, match=r"probability must be in \[0, 1\], got 1.5"):
        Identity().fit(z, y).inverse(1.5)


# -- intervals of frequencies found without labels -----------------------------------------


def fitted(k=2):
    """A shift whose source is uniform, for probabilities as they are."""
    source = np.full(k, 1 / k).tolist()
    return PriorShift(scores="probs", source=source).fit(np.eye(k), np.arange(k))


def mixture(n, shares, rng, distance=1.5):
    """Rows of normal classes on a circle, calibrated where all are as frequent."""
    k = len(shares)
    angle = 2 * np.pi * np.arange(k) / k
    centres = distance * np.column_stack([np.cos(angle), np.sin(angle)])
    x = centres[rng.choice(k, n, p=shares)] + rng.normal(size=(n, 2))
    return softmax(x @ centres.T)


def test_of_two_scores_the_interval_is_that_of_a_binomial():
    counts, level = (70, 30), 0.9
    new = np.repeat([[0.9, 0.1], [0.1, 0.9]], counts, axis=0)
    low, high = fitted().prior_interval(new, level=level)

    def fall(q):  # of the log-likelihood: a share of 0.1 + 0.8 pi has the score 0.9
        best = np.array(counts) / 100
        return 2 * (counts * np.log(best / [1 - q, q])).sum() - chi2.ppf(level, 1)

    ends = brentq(fall, 0.11, 0.3), brentq(fall, 0.3, 0.89)
    expected = (np.array(ends) - 0.1) / 0.8
    np.testing.assert_allclose([low[1], high[1]], expected, atol=1e-9)
    np.testing.assert_allclose(low, 1 - high[::-1], atol=1e-9)


def test_of_several_classes_it_is_nearly_that_of_the_profile_likelihood():
    rng = np.random.default_rng(4)
    p = mixture(1500, [0.5, 0.3, 0.2], rng)
    low, high = fitted(3).prior_interval(p)
    best = np.log(p @ fitted(3).adapt(p).prior_).sum()

    def fall(share):
        def loss(t):
            return -np.log(p @ [(1 - share) * t, (1 - share) * (1 - t), share]).sum()

        found = minimize_scalar(loss, bounds=(0, 1), options={"xatol": 1e-10})
        return 2 * (best + found.fun) - chi2.ppf(0.95, 1)

    centre = float(fitted(3).adapt(p).prior_[2])
    expected = brentq(fall, 0.01, centre), brentq(fall, centre, 0.6)
    width = expected[1] - expected[0]
    np.testing.assert_allclose([low[2], high[2]], expected, atol=0.01 * width)


def test_weights_have_no_unit_and_copies_in_a_cluster_say_nothing_new():
    p = mixture(400, [0.7, 0.3], np.random.default_rng(5))
    plain = fitted().prior_interval(p)
    np.testing.assert_allclose(fitted().prior_interval(p, np.full(400, 3.0)), plain)
    own = np.arange(400)
    np.testing.assert_array_equal(fitted().prior_interval(p, cluster=own), plain)
    copies = fitted().prior_interval(np.repeat(p, 5, axis=0), cluster=np.repeat(own, 5))
    np.testing.assert_allclose(copies, plain, rtol=0.01)  # but for Student's quantile
    width = plain[1] - plain[0]
    heavy = fitted().prior_interval(p, np.where(own < 100, 20.0, 0.5))
    assert (heavy[1] - heavy[0] > 1.5 * width).all()


def test_what_rows_say_nothing_of_can_be_anything():
    rng = np.random.default_rng(6)
    p = mixture(500, [0.6, 0.4], rng)
    twins = np.column_stack([p[:, 0], p[:, 1] / 2, p[:, 1] / 2])  # two like classes
    low, high = fitted(3).prior_interval(twins)
    assert low[1] == pytest.approx(0, abs=1e-6)
    assert high[1] > 0.35
    sure = fitted().prior_interval(np.tile([1.0, 0.0], (50, 1)))
    assert sure[0][1] == pytest.approx(0, abs=1e-9)
    assert sure[1][1] == pytest.approx(1 - np.exp(-chi2.ppf(0.95, 1) / 100), abs=1e-6)


def test_wrong_arguments_of_an_interval():
    p = mixture(50, [0.6, 0.4], np.random.default_rng(7))
    with pytest.raises(ValueError, match="level must be between 0 and 1, got 95"):
        fitted().prior_interval(p, level=95)
    with pytest.raises(ValueError, match="cluster must have one entry per row"):
        fitted().prior_interval(p, cluster=[1, 2])
    with pytest.raises(ValueError, match="cluster has 2 distinct values"):
        fitted().prior_interval(p, cluster=np.arange(50) % 2)
