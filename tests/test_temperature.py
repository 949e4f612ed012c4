"""Temperature scaling: the optimum, on real files and where there is none."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_softmax, logsumexp, softmax
from strategies import problems

import calibrant as cal
from calibrant.recalibration import (
    EnsembleTemperatureScaling,
    FitWarning,
    TemperatureScaling,
)
from calibrant.recalibration._rows import Rows
from calibrant.recalibration._temperature import (
    LAPSES,
    Bend,
    BrierLoss,
    LogLoss,
    learn_lapse,
    mixture_weights,
    search,
)

PEERS = json.loads((Path(__file__).parent / "peer_temperatures.json").read_text())
PRINTED = {  # file: T*, NLL(T*) as printed with the files
    "imagenet5k_efficientnet_lite0": ("0.820", "0.9929"),
    "cifar10_akamaster_resnet20": ("2.319", "0.2479"),
    "cifar10_akamaster_resnet32": ("2.446", "0.2320"),
    "cifar10_peterson_densenet_bc_100_12": ("1.936", "0.1494"),
    "cifar10_peterson_resnet_basic_110": ("2.568", "0.1930"),
    "cifar10_peterson_resnet_preact_bottleneck_164": ("2.240", "0.1869"),
    "cifar10_peterson_shake_shake_26_2x64d_ssi_cutout16": ("1.777", "0.0898"),
    "cifar10_peterson_wrn_28_10": ("1.382", "0.1418"),
    "cifar10_peterson_wrn_28_10_humantuned_UNDERCONFIDENT": ("0.519", "0.0398"),
    "cifar10_widmann_resnet18": ("1.477", "0.2965"),
    "cifar10_widmann_resnet34": ("1.599", "0.3299"),
    "cifar10_widmann_resnet50": ("1.518", "0.2880"),
    "cifar10_widmann_resnet_orig": ("2.049", "0.3479"),
    "cifar10_widmann_vgg16_bn": ("1.751", "0.2706"),
    "cifar10_widmann_vgg19_bn": ("1.779", "0.2635"),
    "cifar10_netcal_lenet_5": ("1.397", "1.3115"),
    "cifar10_netcal_wideresnet_16_4": ("2.053", "0.2745"),
    "cifar10_verified_vgg16": ("1.686", "0.2006"),
    "cifar10_cleanlab_cv": ("1.466", "0.2196"),
    "cifar100_netcal_densenet_bc_100": ("2.118", "0.8766"),
    "cifar100_netcal_lenet_5": ("1.118", "3.8040"),
    "mnist_cleanlab_cv": ("1.168", "0.0297"),
    "imdb_cleanlab_cv": ("1.718", "0.2625"),
}


def digits(text):
    return pytest.approx(float(text), rel=0, abs=0.501 * 10 ** -len(text.split(".")[1]))


def slope(beta, z, y):
    """Derivative of the mean log loss in beta, by its definition in double precision."""
    return np.mean(
        (softmax(beta * z, axis=1) * z).sum(axis=1) - z[np.arange(len(y)), y]
    )


def best_temperature(z, y):
    z = z - z.max(axis=1, keepdims=True)
    return 1 / brentq(slope, 0.01, 100, args=(z, y), xtol=1e-14, rtol=1e-14)


def nll(z, y):
    return -np.mean(log_softmax(z, axis=1)[np.arange(len(y)), y])


def noisy(n=300, k=4, seed=0, size=6.0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * 2
    return size / 2 * z, (z + rng.gumbel(size=z.shape)).argmax(axis=1)


# -- real files --------------------------------------------------------------------


@pytest.mark.parametrize("name", PRINTED)
def test_real_files(name, data):
    arrays = data(name)
    kind = "logits" if "logits" in arrays else "probs"
    scores, y = arrays[kind], arrays["labels"].astype(int)
    fitted = TemperatureScaling(scores=kind).fit(scores, y)
    assert fitted.converged_
    assert not fitted.at_boundary_
    assert fitted.notes_ == ()
    assert fitted.passes_ <= 6
    exact = scores.astype(float)
    z = exact if kind == "logits" else np.log(exact)
    assert fitted.temperature_ == pytest.approx(best_temperature(z, y), rel=1e-6)
    printed_t, printed_nll = PRINTED[name]
    assert fitted.temperature_ == digits(printed_t)
    got, recalibrated = fitted.recalibrate(scores)
    assert cal.nll(y, **{got: recalibrated}, target="top-label") == digits(printed_nll)
    assert nll(z / fitted.temperature_, y) <= nll(z, y)
    for tool, value in PEERS["files"][name].items():
        assert fitted.temperature_ == pytest.approx(value, rel=1e-6), tool


def test_every_file_with_a_peer_is_tested():
    assert set(PEERS["files"]) == set(PRINTED)


@pytest.mark.parametrize("key", ["llama31_70b_token", "llama31_8b_token"])
def test_language_models(key, data):
    arrays = data("llm_sciq_4class_probs")
    probs, y = arrays[f"{key}_probs"], arrays[f"{key}_labels"].astype(int)
    inside = (probs > 0).all(axis=1)
    fitted = TemperatureScaling(scores="probs").fit(probs[inside], y[inside])
    z = np.log(probs[inside].astype(float))
    assert fitted.temperature_ == pytest.approx(
        best_temperature(z, y[inside]), rel=1e-6
    )
    assert fitted.temperature_ > 1.5  # token confidences are far too sure


@pytest.mark.parametrize("name", ["fivethirtyeight_governors", "fivethirtyeight_games"])
def test_forecasts_of_one_event(name, data):
    arrays = data(name)
    inside = (arrays["prob"] > 0) & (arrays["prob"] < 1)
    p, y = arrays["prob"][inside], arrays["outcome"][inside].astype(int)
    fitted = TemperatureScaling(scores="probs").fit(p, y)
    z = np.log(np.stack([1 - p, p], axis=1))
    assert fitted.temperature_ == pytest.approx(best_temperature(z, y), rel=1e-6)


def test_zeros_at_labels_are_counted_and_mixed_with_the_uniform(data):
    arrays = data("llm_sciq_4class_probs")
    probs = arrays["gpt4o_stated_probs"]
    y = arrays["gpt4o_stated_labels"].astype(int)
    impossible = int((probs[np.arange(len(y)), y] == 0).sum())
    with pytest.warns(FitWarning, match=f"{impossible} examples gave their label"):
        fitted = TemperatureScaling(scores="probs").fit(probs, y)
    assert fitted.impossible_ == impossible == 1
    assert 0 < fitted.temperature_ < np.inf
    e = fitted.lapse_
    assert 0 < e < 0.5
    p = fitted.predict_proba(probs)
    mixed = np.log((1 - e) * probs.astype(float) + e / 4)
    expected = softmax(mixed / fitted.temperature_, axis=1)
    np.testing.assert_allclose(p, expected, atol=1e-6)
    assert cal.nll(y, probs=p) < 0.14


def test_zeros_elsewhere_stay():
    p, y = np.array([[0.7, 0.3, 0.0], [0.2, 0.5, 0.3]] * 50), np.array([0, 1] * 50)
    y[::7] = 1
    fitted = TemperatureScaling(scores="probs").fit(p, y)
    assert fitted.lapse_ == fitted.impossible_ == 0
    np.testing.assert_array_equal(fitted.predict_proba(p) == 0, p == 0)


def near_zero(n, seed, least=1e-9):
    """Calibrated forecasts, but three in ten are sure, and a tenth of these are wrong."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, n)
    y = (rng.uniform(size=n) < p).astype(int)
    sure = rng.uniform(size=n) < 0.3
    claimed = np.where(rng.uniform(size=n) < 0.1, 1 - y, y)
    p[sure] = np.where(claimed[sure] == 1, 1 - least, least)
    return p, y


@pytest.mark.parametrize("least", [1e-15, 1e-9, 1e-6])
@pytest.mark.parametrize("n", [300, 5000])
def test_labels_next_to_impossible_do_not_spoil_the_other_rows(n, least):
    with pytest.warns(FitWarning, match="label next to no probability, so .* is mixed"):
        fitted = TemperatureScaling(scores="probs").fit(*near_zero(n, 0, least))
    new, y = near_zero(5000, 1, least)
    p = np.log(np.stack([1 - new, new], axis=1))
    best = min(nll(p / t, y) for t in np.geomspace(0.5, 50, 60))
    got = cal.nll(y, probs=fitted.predict_proba(new), target="top-label")
    assert got < 0.96 * best
    mixtures = [
        nll(np.log((1 - e) * np.exp(p) + e / 2) / t, y)
        for e in np.geomspace(1e-4, 0.5, 20)
        for t in np.geomspace(0.3, 3, 20)
    ]
    assert got < 1.01 * min(mixtures)


def test_the_lapse_rate_is_the_best_of_its_grid():
    p, y = near_zero(400, 2)
    rows = Rows(np.stack([1 - p, p], axis=1), "probs", y)
    losses = {
        e: min(
            nll(np.log((1 - e) * rows.scores + e / 2) / t, y)
            for t in np.geomspace(0.2, 5, 400)
        )
        for e in LAPSES
    }
    assert learn_lapse(rows) == min(losses, key=losses.get)


# -- the two engines, the passes ------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_loops_are_numpy(dtype, weighted, built):
    z, y = noisy(n=500, k=7)
    z = z.astype(dtype)
    z[3, 2] = -np.inf
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y)) if weighted else None
    rows = Rows(z, "logits", y, weight)
    one, other = LogLoss(rows, "numpy"), LogLoss(rows, "compiled")
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    for beta in (0.01, 0.3, 1.0, 7.0):
        np.testing.assert_allclose(one(beta), other(beta), rtol=tolerance, atol=1e-7)
    assert one.impossible == other.impossible == int(y[3] == 2)


def test_the_loops_see_bad_rows(built):
    z, y = noisy()
    for bad in (np.nan, np.inf):
        z[7, 1] = bad
        with pytest.raises(ValueError, match="row 7"):
            TemperatureScaling(engine="compiled").fit(z, y)


@given(problems(least=2), st.floats(0.05, 5))
def test_value_slope_and_curvature(problem, beta):
    z, y = problem
    loss = LogLoss(Rows(z, "logits", y), "numpy")
    at = loss(beta)
    d = z - z.max(axis=1, keepdims=True)
    assert at.loss == pytest.approx(nll(beta * d, y), rel=1e-9, abs=1e-12)
    assert at.slope == pytest.approx(slope(beta, d, y), rel=1e-9, abs=1e-9)
    p = softmax(beta * d, axis=1)
    variance = (p * d**2).sum(axis=1) - (p * d).sum(axis=1) ** 2
    assert at.curvature == pytest.approx(variance.mean(), rel=1e-6, abs=1e-9)


@given(problems(least=2), st.floats(0.05, 5))
def test_brier_and_its_slope(problem, beta):
    z, y = problem
    loss = BrierLoss(Rows(z, "logits", y))

    def brier(b):
        return np.mean(
            ((softmax(b * z, axis=1) - np.eye(z.shape[1])[y]) ** 2).sum(axis=1)
        )

    value, at = loss(beta)
    assert value == pytest.approx(brier(beta), rel=1e-9, abs=1e-12)
    step = 1e-5 * beta
    numerical = (brier(beta + step) - brier(beta - step)) / (2 * step)
    assert at == pytest.approx(numerical, rel=1e-3, abs=1e-5)


@given(st.floats(-4, 4), st.floats(-4, 4), st.sampled_from([1.0, 1e-3]))
def test_search_finds_the_optimum_from_anywhere(where, start, lie):
    """Also where the curvature is wrong by far, and Newton steps are of no use."""
    best = 10**where

    def loss(beta):
        return Bend(
            beta - best * np.log(beta), 1 - best / beta, lie * best / beta / beta
        )

    found = search(loss, 10**start, 1e-5, 1e5)
    assert found.converged
    assert found.beta == pytest.approx(best, rel=1e-3 if lie != 1 else 5e-7)
    assert found.passes <= (30 if lie == 1 else 60)


def test_search_does_not_go_round_in_circles():
    """A flat curvature throws Newton below the bracket, and the next one above it."""
    z, y = noisy(n=1000, k=1000, size=3.0)
    loss = LogLoss(Rows(z, "logits", y), "numpy")
    assert search(loss, 1.0, 1e-3, 1e3).passes <= 8


# -- the result -------------------------------------------------------------------------


@given(problems(least=2), st.sampled_from(["log", "brier"]))
def test_never_worse_than_no_temperature(problem, divergence):
    z, y = problem
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        fitted = TemperatureScaling(divergence=divergence).fit(z, y)
    score = cal.nll if divergence == "log" else cal.brier
    assert fitted.temperature_ > 0
    after = score(y, logits=z / fitted.temperature_, target="top-label")
    before = score(y, logits=z, target="top-label")
    inside = 0.011 < fitted.temperature_ / max(np.std(z, axis=1).mean(), 1e-9) < 900
    if inside or not fitted.at_boundary_:
        assert after <= before + 1e-9


def test_brier_score_is_the_best_of_a_fine_grid():
    z, y = noisy()
    fitted = TemperatureScaling(divergence="brier").fit(z, y)
    grid = np.geomspace(0.5, 20, 2000)
    values = [cal.brier(y, logits=z / t) for t in grid]
    assert fitted.temperature_ == pytest.approx(grid[np.argmin(values)], rel=3e-3)
    assert cal.brier(y, logits=z / fitted.temperature_) <= min(values) + 1e-12


@pytest.mark.parametrize("factor", [1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_the_unit_of_logits_does_not_matter(factor):
    z, y = noisy()
    one = TemperatureScaling().fit(z, y)
    other = TemperatureScaling().fit(factor * z, y)
    assert other.temperature_ == pytest.approx(factor * one.temperature_, rel=1e-7)
    assert not other.at_boundary_


@pytest.mark.parametrize("divergence", ["log", "brier"])
@pytest.mark.parametrize("n", [5, 300])
def test_separable_data_end_where_one_more_row_is_missed(n, divergence):
    """All are right, and every row once more, with weight 1/n, is the runner-up's."""
    z, _ = noisy(n, size=1.0)
    with pytest.warns(
        FitWarning, match="hardly an example contradicts its largest score"
    ):
        fitted = TemperatureScaling(divergence=divergence).fit(z, z.argmax(axis=1))
    assert fitted.at_boundary_
    d = z - z.max(axis=1, keepdims=True)
    first, second = np.zeros(n), np.sort(d, axis=1)[:, -2]

    def loss(t):
        return np.sum(logsumexp(d / t, axis=1) - first / t) - second.mean() / t

    found = minimize_scalar(loss, bounds=(1e-3, 10), options={"xatol": 1e-10})
    assert fitted.temperature_ == pytest.approx(found.x, rel=1e-5)
    assert fitted.temperature_ < 1


def test_few_rows_that_are_right_do_not_make_sure_scores_surer():
    z, _ = noisy(n=5)
    with pytest.warns(FitWarning, match="hardly an example"):
        fitted = TemperatureScaling().fit(z, z.argmax(axis=1))
    assert fitted.temperature_ == 1
    assert fitted.at_boundary_


@pytest.mark.simulation
def test_five_rows_do_no_harm_to_speak_of():
    """Before there was a limit, the log loss of new rows was 3 on average."""
    rng = np.random.default_rng(0)
    losses = []
    for _ in range(40):
        z = 3 * rng.normal(size=(505, 3))
        y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)
            fitted = TemperatureScaling().fit(z[:5], y[:5])
        losses.append((nll(z[5:] / fitted.temperature_, y[5:]), nll(z[5:], y[5:])))
    fitted, plain = np.array(losses).T
    assert fitted.mean() < plain.mean() + 0.1
    assert fitted.max() < 1.2


@pytest.mark.parametrize("divergence", ["log", "brier"])
def test_worse_than_chance_ends_at_the_greatest_temperature(divergence):
    z, _ = noisy()
    with pytest.warns(FitWarning, match="no better than chance"):
        fitted = TemperatureScaling(divergence=divergence).fit(z, z.argmin(axis=1))
    assert fitted.at_boundary_
    spread = np.sqrt(z.var(axis=1).mean())
    assert fitted.temperature_ == pytest.approx(spread * 1000, rel=1e-9)
    p = fitted.predict_proba(z)
    np.testing.assert_allclose(p, 0.25, atol=0.002)
    np.testing.assert_array_equal(p.argmax(axis=1), z.argmax(axis=1))


@pytest.mark.parametrize("kind", [TemperatureScaling, EnsembleTemperatureScaling])
@pytest.mark.parametrize("scores", ["probs", "logits"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_saved_temperature_next_to_zero_gives_certainties(kind, scores, dtype):
    given = np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]], dtype)
    given = given if scores == "probs" else np.log(given)
    labels = np.resize([1, 0, 1, 0, 2, 0], 40)
    fitted = kind(scores=scores).fit(np.tile(given, (20, 1)), labels)
    fitted.temperature_ = 1e-310
    found = fitted.predict_proba(given)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-6)
    assert found.argmax(axis=1).tolist() == [1, 0]


def test_constant_scores_have_temperature_one():
    with pytest.warns(FitWarning, match="no temperature matters: T = 1"):
        fitted = TemperatureScaling().fit(np.ones((20, 3)), np.arange(20) % 3)
    assert fitted.temperature_ == 1
    np.testing.assert_allclose(fitted.predict_proba(np.ones((1, 3))), 1 / 3)


def test_bounds():
    z, y = noisy()
    free = TemperatureScaling().fit(z, y).temperature_
    assert TemperatureScaling(bounds=(1, 10)).fit(z, y).temperature_ == pytest.approx(
        free
    )
    with pytest.warns(FitWarning, match="T = 2"):
        fitted = TemperatureScaling(bounds=(0.1, 2)).fit(z, y)
    assert fitted.temperature_ == pytest.approx(2)
    assert fitted.at_boundary_


# -- the ensemble -------------------------------------------------------------------------


def test_ensemble_weights_against_a_grid():
    rng = np.random.default_rng(0)
    parts = rng.dirichlet([1, 1, 1], 200)[:, :3] * [1, 0.8, 0.5]
    weight = rng.uniform(0.5, 2, 200)
    found = mixture_weights(parts, weight)
    assert found.sum() == pytest.approx(1)
    best = min(
        (-weight @ np.log(parts @ [a, b, 1 - a - b]), a, b)
        for a in np.linspace(0, 1, 101)
        for b in np.linspace(0, 1 - a, 101)
    )
    assert -weight @ np.log(parts @ found) <= best[0] + 1e-9


def test_ensemble_is_never_worse_than_its_temperature(data):
    arrays = data("cifar10_akamaster_resnet32")
    z, y = arrays["logits"].astype(float), arrays["labels"].astype(int)
    single = TemperatureScaling().fit(z[:2000], y[:2000])
    mixed = EnsembleTemperatureScaling().fit(z[:2000], y[:2000])
    assert mixed.temperature_ == single.temperature_
    before = cal.nll(y[:2000], probs=single.predict_proba(z[:2000]))
    after = cal.nll(y[:2000], probs=mixed.predict_proba(z[:2000]))
    assert after <= before + 1e-12
    np.testing.assert_array_equal(mixed.predict(z), z.argmax(axis=1))


def test_ensemble_insures_against_sure_and_wrong():
    """Most rows are calibrated; a few are sure, of which one in ten is wrong."""
    z = np.array([[2.0, 0.0]] * 880 + [[40.0, 0.0]] * 100)
    y = np.array([0] * 775 + [1] * 105 + [0] * 90 + [1] * 10)
    mixed = EnsembleTemperatureScaling().fit(z, y)
    assert mixed.weights_[2] > 0.01
    before = nll(z / mixed.temperature_, y)
    after = cal.nll(y, probs=mixed.predict_proba(z), target="top-label")
    assert after < before - 0.01
    with pytest.warns(FitWarning, match="next to no probability"):
        single = TemperatureScaling().fit(z, y)  # so does a lapse rate
    p = single.predict_proba(z)
    assert cal.nll(y, probs=p, target="top-label") < before - 0.01


def test_the_ensemble_leaves_no_class_impossible():
    p, y = np.array([[0.7, 0.3, 0.0], [0.2, 0.5, 0.3]] * 50), np.array([0, 1] * 50)
    y[::7] = 1
    mixed = EnsembleTemperatureScaling(scores="probs").fit(p, y)
    assert mixed.weights_[2] >= 0.5 / 101
    assert mixed.weights_.sum() == pytest.approx(1)
    assert (mixed.predict_proba(p) >= 0.5 / 303 - 1e-12).all()


def test_options_given_as_arrays_can_be_shown_and_used():
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(200, 3)), rng.integers(0, 3, 200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, other = (
            TemperatureScaling(bounds=x).fit(z, y)
            for x in ((0.1, 10.0), np.array([0.1, 10.0]))
        )
    assert one.temperature_ == other.temperature_
    assert repr(other).startswith("TemperatureScaling(bounds=array([ 0.1, 10. ])")
    names = TemperatureScaling(classes=np.array(["a", "b", "c"]))
    assert "classes=array(['a', 'b', 'c']" in repr(names)
    assert repr(cal.recalibration.PriorShift(prior=np.array([0.9, 0.1]))).startswith(
        "PriorShift(prior="
    )
    assert repr(TemperatureScaling()) == "TemperatureScaling()"
