"""What the paper proves, each statement on a population whose values are exact.

Some populations are finite: every pair of a forecast and an outcome is a row, weighed by
its probability, and forecasts lie so far apart that a bandwidth of 0.002 keeps them
separate. Estimates are then population values, up to round-off. Others are simulated,
with values derived in a comment or by quadrature.

The pages of docs/propositions tell the same story to readers. The last part runs them
and checks the values they call exact against another derivation.
"""

import runpy
from functools import cache
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit

import calibrant as cal
from calibrant._inputs import divergences as bregman
from calibrant._inputs.divergences import BRIER, LOG, Divergence

pytestmark = pytest.mark.xdist_group("propositions")
BUILT_IN = pytest.mark.parametrize("phi", [BRIER, LOG], ids=lambda phi: phi.name)
FINE = 0.002  # of a bandwidth
MANY = 1e6  # rows that a finite population stands for


def evaluate_exactly(y, probs, mass, **options):
    given = {"probs": probs, "sample_weight": MANY * np.asarray(mass)}
    return cal.evaluate(y, bandwidth=FINE, **given, **options)


def draw_labels(rng, truth):
    """One class per row of probabilities."""
    u = rng.random((len(truth), 1))
    return (u > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)


# -- Lemma: total = sharpness gap + calibration error ------------------------------


def finite_population(rng, k):
    """Twelve inputs in four groups: mass, true class probabilities, group, forecast.

    All inputs of a group get one forecast, near none of the other groups'.
    """
    mass = rng.dirichlet(np.ones(12))
    truth = rng.dirichlet(np.ones(k), 12)
    group = np.arange(12) % 4
    h = np.array([0.55, 0.65, 0.8, 0.9])
    forecast = np.column_stack([h, np.outer(1 - h, rng.dirichlet(np.ones(k - 1)))])
    return mass, truth, group, forecast[group]


def mean_in_groups(values, group, mass):
    """E[values | group], one row per input."""
    one_hot = (group[:, None] == np.unique(group)).astype(float)
    means = (one_hot * mass[:, None]).T @ values / (one_hot.T @ mass)[:, None]
    return one_hot @ means


def gap_and_error(phi, mass, truth, group, forecast):
    """E phi(Z) - E phi(E[Z|X]) and E d(E[Z|X], X), by their definitions."""
    conditional = mean_in_groups(truth, group, mass)
    gap = mass @ (phi.phi(truth) - phi.phi(conditional))
    return gap, mass @ phi.between(conditional, forecast)


@BUILT_IN
@pytest.mark.parametrize("k", [2, 3, 10])
def test_total_is_sharpness_gap_plus_calibration_error(phi, k):
    mass, truth, group, forecast = finite_population(np.random.default_rng(k), k)
    total = mass @ phi.between(truth, forecast)
    assert sum(gap_and_error(phi, mass, truth, group, forecast)) == pytest.approx(total)


@BUILT_IN
def test_calibrant_finds_gap_and_error_of_a_finite_population(phi):
    # With two classes confidence says all, so calibrant's parts are the Lemma's. The
    # two-class Brier sums over both classes, the one of target="positive" does not.
    mass, truth, group, forecast = finite_population(np.random.default_rng(0), 2)
    gap, error = gap_and_error(phi, mass, truth, group, forecast)
    scale = 2 if phi is BRIER else 1
    ev = evaluate_exactly(truth, forecast, mass, target="positive")
    parts = ev.decompositions[phi.name]
    assert scale * parts.sharpness_gap == pytest.approx(gap, abs=1e-9)
    assert scale * parts.calibration == pytest.approx(error, abs=1e-9)


def test_labels_instead_of_their_probabilities_add_their_own_variance_to_the_gap():
    # The paper's Z is the law of Y given X; data hold Y itself. E d(e_Y, g) is larger
    # by E phi(e_Y) - E phi(Z), which no forecast can save; calibration is the same.
    mass, truth, _, forecast = finite_population(np.random.default_rng(1), 3)
    soft = evaluate_exactly(truth, forecast, mass).decomposition
    hard = evaluate_exactly(
        np.tile(np.arange(3), 12),
        np.repeat(forecast, 3, axis=0),
        (mass[:, None] * truth).ravel(),
    ).decomposition
    spread = mass @ (1 - (truth**2).sum(axis=1))
    assert hard.calibration == pytest.approx(soft.calibration, abs=1e-9)
    assert hard.sharpness_gap == pytest.approx(soft.sharpness_gap + spread, abs=1e-9)


# -- trivial predictors are calibrated ---------------------------------------------


def test_constant_predictor_is_calibrated_and_all_its_loss_is_gap():
    # g = pi_Y: Brier 1 - sum pi^2 = 0.62; log sum -pi log pi. Calibration error 0,
    # and d_CAL = (share of class 0 - 0.5)^2 - its variance has mean 0, sd ~ 0.35 / n.
    pi = np.array([0.5, 0.3, 0.2])
    rng = np.random.default_rng(2)
    y = rng.choice(3, 20_000, p=pi)
    ev = cal.evaluate(y, probs=np.tile(pi, (len(y), 1)))
    for name, whole in (("brier", 0.62), ("log", -(pi * np.log(pi)).sum())):
        parts = ev.decompositions[name]
        assert abs(parts.calibration) < 2e-4
        assert parts.sharpness_gap == pytest.approx(whole, abs=0.01)


def rolled(g):
    """A truth that lends 0.3 of every class's probability to the next class."""
    return 0.7 * g + 0.3 * np.roll(g, 1, axis=-1)


ROLLED_ACCURACY = 35 / 72
"""E[0.7 h + 0.3 (1 - h) / 2] with E h = 11/18: h is the largest of three uniform
spacings, and given it the others have mean (1 - h) / 2."""


def replace_by_mean(probs, accuracy):
    """The paper's MRR: the same class, always with the same confidence."""
    k = probs.shape[1]
    replaced = np.full_like(probs, (1 - accuracy) / (k - 1))
    replaced[np.arange(len(probs)), probs.argmax(axis=1)] = accuracy
    return replaced


def test_mean_replacement_is_calibrated_and_as_accurate():
    # With q = accuracy A: Brier = A [(1-q)^2 + 2 r^2] + (1-A) [q^2 + (1-r)^2 + r^2],
    # r = (1-q) / 2, of which nothing is calibration error.
    rng = np.random.default_rng(3)
    g = rng.dirichlet(np.ones(3), 50_000)
    y = draw_labels(rng, rolled(g))
    before = cal.evaluate(y, probs=g)
    after = cal.evaluate(y, probs=replace_by_mean(g, ROLLED_ACCURACY))
    q, r = ROLLED_ACCURACY, (1 - ROLLED_ACCURACY) / 2
    whole = q * ((1 - q) ** 2 + 2 * r**2) + (1 - q) * (q**2 + (1 - r) ** 2 + r**2)

    assert after.metrics["accuracy"] == before.metrics["accuracy"]
    assert before.metrics["accuracy"] == pytest.approx(ROLLED_ACCURACY, abs=0.01)
    assert before.decomposition.calibration > 0.015
    assert abs(after.decomposition.calibration) < 2e-4
    assert after.metrics["ece"] < 0.01
    assert after.decomposition.sharpness_gap == pytest.approx(whole, abs=0.005)
    # As the paper remarks, it no longer tells right from wrong.
    assert after.metrics["auroc"] == 0.5


def test_mean_replacement_changes_the_prediction_of_a_model_worse_than_chance():
    # Right once in ten with four classes: the other classes then get 0.3 each, more
    # than the predicted one, so accuracy is kept only from 1/k on.
    probs = np.tile([0.7, 0.1, 0.1, 0.1], (10, 1))
    y = np.array([0] + 9 * [1])
    replaced = replace_by_mean(probs, 0.1)
    assert cal.accuracy(y, probs=probs) == 0.1
    assert cal.accuracy(y, probs=replaced) == 0.9


# -- Propositions: resolution, and no calibrated predictor is worse than pi_Y ------


@BUILT_IN
@pytest.mark.parametrize("seed", range(5))
def test_calibrated_predictors_get_no_worse_by_knowing_more(phi, seed):
    # Groups of groups: each forecast is the truth's mean over its group, the last one
    # over everything: pi_Y itself.
    mass, truth, group, _ = finite_population(np.random.default_rng(seed), 4)
    losses = []
    for known in (np.arange(12), group, group // 2, np.zeros(12)):
        forecast = mean_in_groups(truth, known, mass)
        losses.append(mass @ phi.between(truth, forecast))
    assert losses[0] == pytest.approx(0)
    assert np.all(np.diff(losses) > 0)


def test_calibrated_simplex_forecast_beats_the_base_rates():
    # g uniform on the simplex and true: Brier 1 - E sum g^2 = 1/2 and entropy
    # 1/2 + 1/3. Base rates of 1/3 have 2/3 and log 3.
    rng = np.random.default_rng(4)
    g = rng.dirichlet(np.ones(3), 50_000)
    y = draw_labels(rng, g)
    ev = cal.evaluate(y, probs=g)
    base = cal.evaluate(y, probs=np.full_like(g, 1 / 3))
    assert ev.metrics["brier"] == pytest.approx(1 / 2, abs=0.006)
    assert ev.metrics["nll"] == pytest.approx(5 / 6, abs=0.012)
    assert base.metrics["brier"] == pytest.approx(2 / 3)
    assert base.metrics["nll"] == pytest.approx(np.log(3))
    assert abs(ev.decomposition.calibration) < 5e-4


def test_uncalibrated_predictor_can_be_worse_than_the_base_rates():
    # Always sure of class 0, which comes true half the time: 1/2 x 2 = 1 > 1/2.
    y = np.array([0, 1])
    sure, base = [[1.0, 0.0]] * 2, [[0.5, 0.5]] * 2
    assert cal.brier(y, probs=sure, target="top-label") == 1
    assert cal.brier(y, probs=base, target="top-label") == 0.5


def test_coarser_forecasts_have_a_larger_gap():
    # p uniform and true, rounded to the middle of one of b bins: still calibrated,
    # with gap E p(1 - p) + (variance in a bin) = 1/6 + 1 / (12 b^2).
    rng = np.random.default_rng(5)
    p = rng.random(50_000)
    y = rng.random(50_000) < p
    gaps = []
    for bins in (1, 2, 4, 50):
        parts = cal.evaluate(y, probs=(np.floor(p * bins) + 0.5) / bins).decomposition
        expected = 1 / 6 + 1 / (12 * bins**2)
        assert abs(parts.calibration) < 3e-4
        assert parts.sharpness_gap == pytest.approx(expected, abs=0.004)
        gaps.append(parts.sharpness_gap)
    assert np.all(np.diff(gaps) < 0)


# -- Proposition: of the L^q errors only L2 belongs to a Bregman divergence --------


@pytest.mark.parametrize("q", [1, 2, 3, 4])
def test_mean_minimises_expected_distance_only_for_squares(q):
    # Every Bregman divergence has E d(X, y) least at y = E X. For X = 1 one time in
    # five, 0.8 y^q + 0.2 (1 - y)^q is least at 1 / (1 + 4^(1 / (q - 1))), and for
    # q = 1 at the median 0.
    found = minimize_scalar(
        lambda y: 0.8 * y**q + 0.2 * (1 - y) ** q,
        bounds=(0, 1),
        options={"xatol": 1e-9},
    )
    least = 0 if q == 1 else 1 / (1 + 4 ** (1 / (q - 1)))
    assert found.x == pytest.approx(least, abs=1e-5)
    assert (abs(found.x - 0.2) < 1e-5) == (q == 2)


@pytest.mark.parametrize("q", [1, 2, 3, 4])
def test_gap_depends_on_the_forecast_itself_unless_q_is_2(q):
    # In the Lemma E d(Z, h) - d(E Z, h) = E phi(Z) - phi(E Z), whatever h is. Here Z
    # is 1 one time in five.
    h = np.array([0.1, 0.4, 0.9])
    gap = 0.8 * h**q + 0.2 * (1 - h) ** q - abs(0.2 - h) ** q
    assert (np.ptp(gap) < 1e-12) == (q == 2)


# -- Proposition: the loss of the confidence problem can vanish --------------------


@pytest.mark.parametrize("k", [10, 100, 1000])
def test_always_wrong_predictor_has_little_loss_in_one_dimension(k):
    # 1/k + e on a wrong class, e = 1/k: (2/k)^2 in one dimension, which is even
    # O(1/k^2). In full (1 - r)^2 + (2/k)^2 + (k - 2) r^2 with r = 1/k - e / (k - 1).
    y = np.arange(k)
    rest = 1 / k - 1 / (k * (k - 1))
    probs = np.full((k, k), rest)
    probs[y, (y + 1) % k] = 2 / k
    ev = cal.evaluate(y, probs=probs)
    pairs = cal.evaluate_pairs(np.zeros(k), probs.max(axis=1))

    assert ev.metrics["accuracy"] == 0
    assert pairs.metrics["brier"] == pytest.approx((2 / k) ** 2)
    full = (1 - rest) ** 2 + (2 / k) ** 2 + (k - 2) * rest**2
    assert ev.metrics["brier"] == pytest.approx(full)
    assert full > 0.9
    # So with log: -log(1 - 2/k), against -log r > log k.
    assert pairs.metrics["nll"] == pytest.approx(-np.log1p(-2 / k))
    assert ev.metrics["nll"] > np.log(k)


# -- Lemma: confidence calibration error <= full calibration error -----------------


def simplex(nodes=40):
    """Gauss-Legendre nodes of the uniform law on three classes, the first one top.

    Given the largest probability h, the second is uniform on what is left to it, an
    interval of length 3h - 1 below 1/2 and 1 - h above; h has 6 times that density.
    Returns forecasts (h, second, 3) and the weights of both. A truth to be averaged
    over them must not care which class is which.
    """
    x, inner = np.polynomial.legendre.leggauss(nodes)
    x, inner = (x + 1) / 2, inner / 2
    h = np.concatenate([1 / 3 + x / 6, 1 / 2 + x / 2])
    step = np.concatenate([inner / 6, inner / 2])
    low, high = np.maximum(0, 1 - 2 * h), np.minimum(h, 1 - h)
    second = low[:, None] + (high - low)[:, None] * x
    first = np.broadcast_to(h[:, None], second.shape)
    forecast = np.stack([first, second, 1 - first - second], axis=-1)
    return forecast, 6 * (high - low) * step, inner


FORECAST, WEIGHT, INNER = simplex()
H = FORECAST[:, 0, 0]


def softened(g):
    return np.sqrt(g) / np.sqrt(g).sum(axis=-1, keepdims=True)


def shared_evenly(g):
    """The top class is over-rated; the others deserve an equal share of that."""
    h = g.max(axis=-1, keepdims=True)
    return g + (h - 1 / 3) * np.where(g == h, -0.4, 0.2)


def shared_in_proportion(g):
    """The top class is over-rated; the odds of the others are right."""
    h = g.max(axis=-1, keepdims=True)
    m = 0.05 + 0.9 * h**2
    return np.where(g == h, m, g * (1 - m) / (1 - h))


TRUTHS = [rolled, softened, shared_evenly, shared_in_proportion]
EVERY_TRUTH = pytest.mark.parametrize("truth", TRUTHS, ids=lambda f: f.__name__)


def given_confidence(values):
    """E[values | h] at the nodes of h."""
    return values @ INNER


def on_simplex(phi, x, y):
    """d(x, y) at every node."""
    return phi.between(x.reshape(-1, 3), y.reshape(-1, 3)).reshape(x.shape[:2])


def full_error(phi, truth):
    """E[d(truth, g) | h]: here the truth depends on g alone."""
    return given_confidence(on_simplex(phi, truth(FORECAST), FORECAST))


def confidence_error(phi, truth):
    """d(m(h), h), m the accuracy of the top class at confidence h."""
    return phi.on_unit(given_confidence(truth(FORECAST)[..., 0]), H)


def test_quadrature_agrees_with_closed_forms():
    # E h = 11/18 and E (3h - 1)^2 = 7/8; E |g - rolled g|^2 = 1/2, so for `rolled` the
    # full error is 0.09/2, and m - h = -0.3 (3h - 1) / 2.
    assert WEIGHT.sum() == pytest.approx(1)
    assert (WEIGHT * H).sum() == pytest.approx(11 / 18)
    assert WEIGHT @ full_error(BRIER, rolled) == pytest.approx(0.09 / 2)
    assert WEIGHT @ confidence_error(BRIER, rolled) == pytest.approx(0.09 / 4 * 7 / 8)


@BUILT_IN
@EVERY_TRUTH
def test_confidence_error_is_at_most_the_full_error_at_every_confidence(phi, truth):
    full, confidence = full_error(phi, truth), confidence_error(phi, truth)
    assert np.all(full >= confidence - 1e-12)
    assert WEIGHT @ confidence > 0.01


@EVERY_TRUTH
def test_tight_brier_error_is_still_at_most_the_full_error(truth):
    full, confidence = full_error(BRIER, truth), confidence_error(BRIER, truth)
    assert np.all(full >= 3 / 2 * confidence - 1e-12)


def test_bounds_are_attained():
    # Brier: the others absorb -(m - h) in equal parts, 1 + 2/4 = k / (k - 1). Log: the
    # odds of the others are right, so nothing is lost by looking at the top class.
    full, confidence = (f(BRIER, shared_evenly) for f in (full_error, confidence_error))
    np.testing.assert_allclose(full, 3 / 2 * confidence, atol=1e-12)
    full, confidence = (
        f(LOG, shared_in_proportion) for f in (full_error, confidence_error)
    )
    np.testing.assert_allclose(full, confidence, atol=1e-12)


@EVERY_TRUTH
def test_calibrant_estimates_the_confidence_error(truth):
    rng = np.random.default_rng(6)
    g = rng.dirichlet(np.ones(3), 100_000)
    ev = cal.evaluate(draw_labels(rng, truth(g)), probs=g, level=0.9999)
    for phi in (BRIER, LOG):
        low, high = ev.decompositions[phi.name].calibration.interval
        assert low < WEIGHT @ confidence_error(phi, truth) < high
        assert high - low < 0.012


def test_tight_counterpart_estimates_the_full_error_where_it_is_attained():
    rng = np.random.default_rng(7)
    g = rng.dirichlet(np.ones(3), 100_000)
    y = draw_labels(rng, shared_evenly(g))
    tight = cal.evaluate(y, probs=g, counterpart="tight").decomposition.calibration
    full = WEIGHT @ full_error(BRIER, shared_evenly)
    assert full == pytest.approx(7 / 300)  # 0.24 E (h - 1/3)^2
    assert tight == pytest.approx(full, rel=0.06)


# -- Proposition: the pointwise sharpness gap is not negative ----------------------


@BUILT_IN
@EVERY_TRUTH
def test_pointwise_gap_is_not_negative(phi, truth):
    # For labels, E[d(e_Y, g) | h] = sum over classes of E[truth d(e_j, g) | h].
    pi = truth(FORECAST)
    ones = [np.broadcast_to(e, FORECAST.shape) for e in np.eye(3)]
    loss = sum(pi[..., j] * on_simplex(phi, e, FORECAST) for j, e in enumerate(ones))
    error = confidence_error(phi, truth)
    assert np.all(given_confidence(loss) - error > 0)
    # With the law of Y for Y, only the error of the other classes remains.
    assert np.all(full_error(phi, truth) - error >= -1e-12)


@BUILT_IN
def test_calibrant_estimates_the_pointwise_gap(phi):
    rng = np.random.default_rng(8)
    g = rng.dirichlet(np.ones(3), 200_000)
    curve = cal.evaluate(rolled(g), probs=g, bandwidth=0.01).curves[phi.name]
    # Away from the ends, and from 1/2, where the gap has a corner.
    p = curve.confidence
    inside = (p > 0.4) & (p < 0.9) & (np.abs(p - 0.5) > 0.03)
    gap = full_error(phi, rolled) - confidence_error(phi, rolled)
    expected = np.interp(p[inside], H, gap)
    found = curve.sharpness_gap[inside]
    assert found.min() > 0
    np.testing.assert_allclose(found, expected, atol=0.006)


# -- Theorem: consistency, and what a fixed bandwidth converges to -----------------


def smoothed_square(sigma):
    """Limit of m: the kernel's mean of p^2 over uniform scores p, at places p."""
    p = (np.arange(2000) + 0.5) / 2000
    K = np.exp(-0.5 * ((p[:, None] - p) / sigma) ** 2)
    return p, K @ p**2 / K.sum(axis=1)


@pytest.mark.parametrize("sigma", [0.2, 0.05])
def test_fixed_bandwidth_converges_to_the_smoothed_curve(sigma):
    # Accuracy p^2 has d_CAL 1/30. With m the smoothed curve, the direct estimate tends
    # to the mean of (m - p)^2, the plug-in to that of m^2 - p^2 - 2p (p^2 - p).
    rng = np.random.default_rng(9)
    scores = rng.random(200_000)
    y = rng.random(200_000) < scores**2
    p, m = smoothed_square(sigma)
    limits = {"direct": (m - p) ** 2, "plugin": m**2 - p**2 - 2 * p * (p**2 - p)}
    for estimator, limit in limits.items():
        given = {"bandwidth": sigma, "estimator": estimator}
        found = cal.calibration_error(y, confidence=scores, **given)
        assert found == pytest.approx(limit.mean(), abs=0.0012)
    # The plug-in, which the Theorem is about, pays more for the same bandwidth.
    bias = {name: abs(limit.mean() - 1 / 30) for name, limit in limits.items()}
    assert bias["plugin"] > 3 * bias["direct"]


# -- divergences of one's own ------------------------------------------------------


@pytest.fixture
def registry(monkeypatch):
    """A registry that forgets what the test registered."""
    monkeypatch.setattr(bregman, "_REGISTERED", dict(bregman._REGISTERED))


def power(alpha, name="power"):
    """Tsallis: sum x^alpha, which is Brier's for alpha = 2."""
    return Divergence(
        name,
        phi=lambda x: (x**alpha).sum(axis=1),
        gradient=lambda x: alpha * x ** (alpha - 1),
        phi_1d=lambda p: p**alpha,
        derivative_1d=lambda p: alpha * p ** (alpha - 1),
    )


def spherical():
    """The norm, whose divergence belongs to the spherical score."""

    def norm(p):
        return np.sqrt(p**2 + (1 - p) ** 2)

    return Divergence(
        "spherical",
        phi=lambda x: np.linalg.norm(x, axis=1),
        gradient=lambda x: x / np.linalg.norm(x, axis=1, keepdims=True),
        phi_1d=norm,
        derivative_1d=lambda p: (2 * p - 1) / norm(p),
    )


@pytest.mark.parametrize("phi", [power(3), spherical()], ids=lambda phi: phi.name)
@pytest.mark.parametrize("bandwidth", ["auto", 0.05])
def test_own_divergence_works_from_end_to_end(phi, bandwidth):
    rng = np.random.default_rng(10)
    g = rng.dirichlet(np.ones(3), 2_000)
    y = draw_labels(rng, rolled(g))
    ev = cal.evaluate(y, probs=g, divergence=phi, bandwidth=bandwidth)
    parts = ev.decomposition
    assert (ev.divergence, parts.divergence) == (phi.name, phi.name)
    assert set(ev.decompositions) == {"brier", "log", phi.name}
    # d(e_y, g) = phi(e_y) - phi(g) - <grad phi(g), e_y - g>, with phi(e_y) = 1.
    towards = np.eye(3)[y] - g
    loss = 1 - phi.phi(g) - (phi.gradient(g) * towards).sum(axis=1)
    assert parts.total == pytest.approx(loss.mean())
    assert parts.total == pytest.approx(parts.calibration + parts.sharpness_gap)
    assert np.isfinite(ev.curve.sharpness_gap).any()


def test_registered_divergence_is_found_by_name(registry):
    phi = cal.register_divergence(power(3, "third power"))
    y, p = [1, 0, 1, 1], [0.9, 0.6, 0.7, 0.8]
    named, given = (
        cal.evaluate_pairs(y, p, divergence=d, bandwidth=0.1).decomposition
        for d in ("third power", phi)
    )
    assert named == given


def test_own_divergence_has_its_closed_form():
    # Always 0.8, right 6 times in 10: 0.6^3 - 0.8^3 - 3 (0.8^2) (0.6 - 0.8) = 0.088.
    given = {"confidence": np.full(10, 0.8), "divergence": power(3)}
    error = cal.calibration_error([1] * 6 + [0] * 4, bandwidth=0.05, **given)
    assert error == pytest.approx(0.088)


@pytest.mark.simulation
def test_own_divergence_adapts_and_covers():
    # Accuracy p^2, uniform scores: E [p^6 - p^3 - 3 p^2 (p^2 - p)] = 3/70.
    rng = np.random.default_rng(11)
    p = rng.random(50_000)
    y = rng.random(50_000) < p**2
    ev = cal.evaluate_pairs(y, p, divergence=power(3), level=0.9999)
    low, high = ev.decomposition.calibration.interval
    assert low < 3 / 70 < high
    assert ev.decomposition.calibration == pytest.approx(3 / 70, rel=0.05)


def test_second_power_is_brier(registry):
    cal.register_divergence(power(2, "second power"))
    rng = np.random.default_rng(12)
    p = rng.random(500)
    y = rng.random(500) < p
    ours = cal.evaluate_pairs(y, p, divergence="second power", bandwidth=0.1)
    brier = ours.decompositions["brier"]
    assert ours.decomposition.total == pytest.approx(brier.total)
    assert ours.decomposition.calibration == pytest.approx(brier.calibration)


def test_concave_function_is_refused():
    with pytest.raises(ValueError, match=r"'bent': phi_1d must be convex"):
        Divergence(
            "bent",
            phi=lambda x: -(x**2).sum(axis=1),
            gradient=lambda x: -2 * x,
            phi_1d=lambda p: -(p**2),
            derivative_1d=lambda p: -2 * p,
        )


def test_function_that_is_concave_in_part_is_refused():
    # x^3 - x^2 bends the other way below 1/3.
    with pytest.raises(ValueError, match="must be convex"):
        Divergence(
            "half bent",
            phi=lambda x: (x**3 - x**2).sum(axis=1),
            gradient=lambda x: 3 * x**2 - 2 * x,
            phi_1d=lambda p: p**2,
            derivative_1d=lambda p: 2 * p,
        )


@pytest.mark.parametrize("part", ["phi", "phi_1d"])
def test_wrong_gradient_is_refused(part):
    wrong = {"phi": 1.0, "phi_1d": 1.0, part: 0.99}
    with pytest.raises(ValueError, match=rf"'careless'.* {part}\b"):
        Divergence(
            "careless",
            phi=lambda x: (x**2).sum(axis=1),
            gradient=lambda x: 2 * wrong["phi"] * x,
            phi_1d=lambda p: p**2,
            derivative_1d=lambda p: 2 * wrong["phi_1d"] * p,
        )


def test_gradient_may_differ_by_a_constant():
    # Differences of probabilities sum to 0, so adding c to every entry adds nothing.
    shifted = Divergence(
        "shifted",
        phi=lambda x: (x**2).sum(axis=1),
        gradient=lambda x: 2 * x + 7,
        phi_1d=lambda p: p**2,
        derivative_1d=lambda p: 2 * p,
    )
    x, y = np.random.default_rng(13).dirichlet(np.ones(4), (2, 50))
    np.testing.assert_allclose(shifted.between(x, y), BRIER.between(x, y), atol=1e-12)


def test_counterpart_that_is_too_large_warns(registry):
    # 3 p^2 exceeds k / (k - 1) p^2 for every k.
    tripled = Divergence(
        "tripled",
        phi=lambda x: (x**2).sum(axis=1),
        gradient=lambda x: 2 * x,
        phi_1d=lambda p: 3 * p**2,
        derivative_1d=lambda p: 6 * p,
    )
    assert not tripled.dominates
    with pytest.warns(UserWarning, match="does not dominate"):
        cal.register_divergence(tripled)


def test_spherical_score_does_not_dominate_its_own_two_class_form(registry):
    # Sure of class 0 where 1 and 2 are equally likely: |x| - <x, y> / |y| = sqrt(1/2)
    # in full, but 1 in one dimension. So the Lemma's condition is needed, and without
    # it the sharpness gap can be negative.
    phi = spherical()
    ev = cal.evaluate(
        np.tile([0.0, 0.5, 0.5], (5, 1)),
        probs=np.tile([1.0, 0.0, 0.0], (5, 1)),
        divergence=phi,
        bandwidth=0.05,
    )
    assert ev.decomposition.total == pytest.approx(0.5**0.5)
    assert ev.decomposition.calibration == pytest.approx(1)
    assert ev.decomposition.sharpness_gap < 0
    with pytest.warns(UserWarning, match="no lower bound"):
        cal.register_divergence(phi)


def test_built_in_divergences_dominate_and_keep_their_names(registry):
    assert BRIER.dominates
    assert LOG.dominates
    with pytest.raises(ValueError, match="'brier' is built in"):
        cal.register_divergence(power(2, "brier"))
    with pytest.raises(ValueError, match="'unheard-of'"):
        cal.evaluate_pairs([1], [0.5], divergence="unheard-of")


def test_own_divergence_of_soft_labels_is_that_between_distributions():
    cube = cal.Divergence(
        "cube",
        phi=lambda x: (x**3).sum(axis=1),
        gradient=lambda x: 3 * x**2,
        phi_1d=lambda p: p**3,
        derivative_1d=lambda p: 3 * p**2,
    )
    y, p = np.array([[0.5, 0.3, 0.2]]), np.array([[0.2, 0.7, 0.1]])
    want = (y**3 - p**3 - 3 * p**2 * (y - p)).sum()
    ev = cal.evaluate(y, probs=p, divergence=cube)
    assert ev.decomposition.total == pytest.approx(want)


# -- the pages of docs/propositions ------------------------------------------------

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "propositions"
PAGES = sorted(path.stem for path in FOLDER.glob("plot_*.py"))
SEEDS = st.integers(0, 2**32 - 1)


@cache
def page(name):
    """Every name that a page defines, and how many figures it drew."""
    plt.switch_backend("agg")
    names = runpy.run_path(str(FOLDER / f"{name}.py"))
    drawn = plt.get_fignums()
    plt.close("all")
    return names | {"figures": len(drawn)}


def test_every_statement_has_its_page():
    assert [name.split("_", 2)[2] for name in PAGES] == [
        "trivial_calibration",
        "decomposition",
        "resolution",
        "lq_errors",
        "always_wrong",
        "confidence_bound",
        "tight_brier",
        "sharpness_gap",
        "consistency",
        "debiased",
    ]


@pytest.mark.parametrize("name", PAGES)
def test_page_finds_what_it_promises(name):
    # Intervals are narrow, or covering the exact value would mean nothing.
    names = page(name)
    assert names["figures"] in (1, 2)
    assert names["numbers"]
    for found, exact in names["numbers"].values():
        low, high = found.interval or (found, found)
        assert low - 1e-9 <= exact <= high + 1e-9
        assert high - low < 0.025


def shrunk(g):
    return 0.8 * g + 0.2 / 3


def label_loss(truth):
    """E[Brier loss of labels | h] at the nodes of h."""
    pi = truth(FORECAST)
    square = (FORECAST**2).sum(axis=-1)
    return given_confidence(1 - 2 * (pi * FORECAST).sum(axis=-1) + square)


def test_page_on_trivial_calibration_agrees_with_quadrature():
    numbers = page("plot_01_trivial_calibration")["numbers"]
    m = given_confidence(shrunk(FORECAST)[..., 0])
    # |m - h| is 0.2 (h - 1/3), which has no corner.
    expected = {
        "accuracy": WEIGHT @ m,
        "ECE": WEIGHT @ abs(m - H),
        "d_CAL": WEIGHT @ (m - H) ** 2,
        "Brier": WEIGHT @ label_loss(shrunk),
    }
    for name, value in expected.items():
        assert numbers[f"{name}, model"][1] == pytest.approx(value)
    replaced = page("plot_01_trivial_calibration")["replaced_brier"]
    assert replaced(5 / 9) == pytest.approx(16 / 27)
    assert numbers["Brier, mean replacement"][1] > numbers["Brier, model"][1] + 0.02


@given(st.floats(1e-6, 1 - 1e-6))
def test_page_on_the_decomposition_adds_up_at_every_forecast(p):
    for loss, gap, error in page("plot_02_decomposition")["parts_at"](p).values():
        assert loss == pytest.approx(gap + error)
        assert min(gap, error) >= 0


@given(SEEDS, st.integers(2, 6), st.sampled_from(["brier", "log"]))
def test_seeing_less_costs_something_in_any_population(seed, k, name):
    names, rng = page("plot_03_resolution"), np.random.default_rng(seed)
    mass, truth = rng.dirichlet(np.ones(9)), rng.dirichlet(np.ones(k), 9)
    fine = rng.integers(5, size=9)
    coarse = rng.integers(3, size=5)[fine]
    losses = [
        names["loss_when_seeing"](group, mass, truth, names["PHI"][name])
        for group in (np.arange(9), fine, coarse, np.zeros(9))
    ]
    assert losses[0] == pytest.approx(0, abs=1e-12)
    assert np.all(np.diff(losses) >= -1e-12)
    # A calibrated forecast is the mean of its group, and its loss the divergence to it.
    phi = {"brier": BRIER, "log": LOG}[name]
    forecast = mean_in_groups(truth, coarse, mass)
    assert losses[2] == pytest.approx(mass @ phi.between(truth, forecast))


def test_page_on_powers_has_one_honest_power():
    names = page("plot_04_lq_errors")
    for q, best in names["best"].items():
        found = names["p"][names["score"](names["p"], q).argmin()]
        assert best == pytest.approx(found, abs=0.002)
        assert (np.ptp(names["gap"][q]) < 1e-12) == (q == 2)


@given(st.integers(3, 2000))
def test_page_on_the_model_that_is_never_right_is_exact(k):
    exact = page("plot_05_always_wrong")["exact"](k)
    g = np.full(k, (1 - 2 / k) / (k - 1))
    g[1] = 2 / k
    assert exact["Brier, full"] == pytest.approx(((np.eye(1, k)[0] - g) ** 2).sum())
    assert exact["log, full"] == pytest.approx(-np.log(g[0]))
    assert exact["Brier, full"] > 0.9
    assert exact["Brier, 1-D"] == pytest.approx(4 / k**2)


def slow_errors(mass, forecast, truth, phi):
    """The three errors of the page on the bound, row by row."""
    full = predicted = confidence = 0.0
    for w, g, pi in zip(mass, forecast, truth, strict=True):
        c, h = g.argmax(), np.array([g.max()])
        same = [i for i, other in enumerate(forecast) if other.max() == g.max()]
        hits = sum(mass[i] * truth[i, forecast[i].argmax()] for i in same)
        m = np.array([hits / sum(mass[i] for i in same)])
        full += w * phi.between(pi[None], g[None])[0]
        predicted += w * phi.on_unit(pi[[c]], h)[0]
        confidence += w * phi.on_unit(m, h)[0]
    return full, predicted, confidence


@BUILT_IN
@given(SEEDS, st.integers(2, 6))
def test_confidence_error_is_at_most_the_full_error_in_any_population(phi, seed, k):
    names = page("plot_06_confidence_bound")
    law = names["random_population"](np.random.default_rng(seed), k)
    errors = names["three_errors"](*law, phi.name)
    assert np.all(np.diff(errors) <= 1e-12)
    assert errors == pytest.approx(slow_errors(*law, phi), abs=1e-12)


@given(SEEDS, st.integers(2, 12), st.floats(0.05, 3))
def test_tight_factor_holds_for_any_two_forecasts(seed, k, spread):
    x, y = np.random.default_rng(seed).dirichlet(np.full(k, spread), 2)
    d = ((x - y) ** 2).sum()
    assert np.all(d >= k / (k - 1) * (x - y) ** 2 - 1e-12)


def test_page_on_the_tight_bound_agrees_with_quadrature():
    exact = page("plot_07_tight_brier")["exact"]
    for name, truth in {"even": shared_evenly, "shrunk": shrunk}.items():
        confidence = WEIGHT @ confidence_error(BRIER, truth)
        assert exact[name]["paper"] == pytest.approx(confidence)
        assert exact[name]["tight"] == pytest.approx(1.5 * confidence)
        assert exact[name]["full"] == pytest.approx(WEIGHT @ full_error(BRIER, truth))


def test_page_on_the_sharpness_gap_agrees_with_quadrature():
    names = page("plot_08_sharpness_gap")
    gap = label_loss(shrunk) - confidence_error(BRIER, shrunk)
    np.testing.assert_allclose(names["exact_gap"](H), gap, atol=1e-12)
    assert names["numbers"]["sharpness gap"][1] == pytest.approx(WEIGHT @ gap)
    # Sure of an impossible class: sqrt(1/2) in full, 1 in one dimension.
    spherical_gap = names["gap_at"](names["spherical"], np.array([1.0]))
    assert spherical_gap == pytest.approx(0.5**0.5 - 1)


def test_page_on_consistency_ends_where_it_says():
    names = page("plot_09_consistency")
    p, m = smoothed_square(0.05)
    assert names["limit"] == pytest.approx(np.mean(m**2 - p**2 - 2 * p * (p**2 - p)))
    fixed, shrinking, default = names["rms"].T
    assert fixed[-1] == pytest.approx(names["exact"] - names["limit"], rel=0.2)
    assert max(shrinking[-1] / shrinking[0], default[-1] / default[0]) < 1 / 3


def test_page_on_debiasing_is_exact_and_shows_both_ways_to_be_wrong():
    names = page("plot_10_debiased")
    x, w = np.polynomial.hermite_e.hermegauss(100)
    z = 5 + 2.5 * x
    over = w @ (expit(z / 2) - expit(z)) ** 2 / w.sum()
    assert names["exact"]["over-confident"] == pytest.approx(over, rel=1e-4)
    assert names["exact"]["calibrated"] == 0
    plug_in, direct, debiased = names["found"]["over-confident"].T
    assert plug_in.min() > over > direct.max()
    assert debiased.min() < over < debiased.max()
    assert names["found"]["calibrated"][:, :2].min() > 0
