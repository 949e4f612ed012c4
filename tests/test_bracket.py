"""The bracket of d_CAL: slow twins, bounds that hold, folds, real data and a peer."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import local_platt, pav, unit
from scipy.optimize import minimize
from strategies import pairs

from calibrant._inputs.divergences import BRIER, LOG, find_divergence
from calibrant._rows.columns import Columns
from calibrant._sketch.cells import Cells
from calibrant._verbs.calibration_bracket import (
    METHODS,
    Bracket,
    assign_folds,
    calibration_bracket,
    choose_methods,
    held_out_gains,
)
from calibrant._verbs.evaluate import evaluate, evaluate_pairs

VALUES = np.array([0.1, 0.25, 0.4, 0.5, 0.55, 0.7, 0.8, 0.9, 0.97, 0.99])


def few_values(n, seed, accuracy=lambda h: 0.2 + 0.6 * h):
    """Rows at ten confidences, each in a cell of its own, so that cells are exact."""
    rng = np.random.default_rng(seed)
    h = rng.choice(VALUES, n)
    return h, (rng.random(n) < accuracy(h)).astype(float)


def logit(p):
    return np.log(p) - np.log1p(-p)


# -- slow twins -------------------------------------------------------------------


def slow_platt(h, a):
    """Logistic regression with the prior of local Platt scaling, by an optimiser."""
    z = logit(h)
    t = z - z.mean()

    def loss(d):
        eta = z + d[0] + d[1] * t
        nll = a * np.logaddexp(0, -eta) + (1 - a) * np.logaddexp(0, eta)
        return nll.sum() + (d[0] ** 2 + ((t**2).mean() + 16e-6) * d[1] ** 2) / 32

    d = minimize(loss, np.zeros(2), method="BFGS", options={"gtol": 1e-9}).x
    return lambda p: logit(p) + d[0] + d[1] * (logit(p) - z.mean())


def slow_isotonic(h, a):
    """Pooled accuracy of each value, with half a hit and half a miss in each pool."""
    fit, values = pav(h, a, np.ones(len(h))), np.unique(h)
    level = []
    for value in values:
        pool = np.isclose(fit, fit[h == value][0], rtol=0, atol=1e-12)
        level.append(logit((a[pool].sum() + 0.5) / (pool.sum() + 1)))
    return lambda p: np.interp(logit(p), logit(values), level)


def slow_kernel(h, a):
    """One local fit at each value."""
    values, n = np.unique(h), len(h)
    rank = np.array([(h < x).sum() + 0.5 * (h == x).sum() for x in values]) / n
    of_row = rank[np.searchsorted(values, h)]
    width = 0.5 * n**-0.25
    shift = [
        local_platt(logit(v), r, logit(h), of_row, a, np.ones(n), width)[0]
        for v, r in zip(values, rank, strict=True)
    ]
    return lambda p: logit(p) + np.interp(logit(p), logit(values), shift)


SLOW = {"platt": slow_platt, "isotonic": slow_isotonic, "kernel": slow_kernel}


def slow_gains(h, a, fold, divergence, fit):
    """Row by row: fit without its fold, then the loss saved."""
    gains = np.empty(len(h))
    for f in np.unique(fold):
        here = fold == f
        g = 1 / (1 + np.exp(-fit(h[~here], a[~here])(h[here])))
        before, after = (unit(divergence, a[here], x) for x in (h[here], g))
        gains[here] = before - after
    return gains


@pytest.mark.parametrize("divergence", ["brier", "log"])
@pytest.mark.parametrize("method", list(SLOW))
def test_gains_are_those_of_fits_to_the_other_rows(method, divergence):
    h, a = few_values(200, seed=3)
    fold = assign_folds(200, None, 4, np.random.default_rng(1))
    found = held_out_gains(
        Columns(h, None, a), find_divergence(divergence), fold, folds=4
    )
    slow = slow_gains(h, a, fold, divergence, SLOW[method])
    np.testing.assert_allclose(found.gains[method], slow, atol=2e-6)


@pytest.mark.parametrize("divergence", ["brier", "log"])
def test_methods_are_chosen_among_the_other_folds_only(divergence):
    h, a = few_values(240, seed=5, accuracy=lambda h: h**3)
    fold = assign_folds(240, None, 4, np.random.default_rng(2))
    sums = [Cells({}).update(Columns(h, None, a).take(fold == f)) for f in range(4)]
    chosen = choose_methods(sums, find_divergence(divergence))
    for f in range(4):
        rest = fold != f
        total = {"none": 0.0}
        for name, fit in SLOW.items():
            gains = slow_gains(h[rest], a[rest], fold[rest], divergence, fit)
            total[name] = gains.sum()
        assert chosen[f] == max(total, key=total.get)


# -- closed forms -----------------------------------------------------------------


def test_isotonic_gain_of_one_confidence():
    # Each fold of 4 rows has 2 hits: the other 8 rows give level (4 + .5) / (8 + 1) =
    # 1/2, so the gain is (.8^2 + .2^2) / 2 - 1/4 = 0.09 in every fold.
    fold = np.repeat([0, 1, 2], 4)
    rows = Columns(np.full(12, 0.8), None, np.tile([0.0, 0.0, 1.0, 1.0], 3))
    found = held_out_gains(rows, BRIER, fold, 3)
    assert found.gains["isotonic"].mean() == pytest.approx(0.09, abs=1e-12)


def test_a_contradicted_certainty_has_an_infinite_bound():
    h = np.r_[np.full(60, 1.0), np.full(60, 0.5)]
    a = np.r_[np.zeros(10), np.ones(50), np.tile([0.0, 1.0], 30)]
    found = calibration_bracket(a, confidence=h, divergence="log")
    assert found.lower == found.plugin == found.standard_errors["lower"] == np.inf
    assert calibration_bracket(a, confidence=h).lower < 1 / 36 / 2


def test_levels_of_hits_alone_stay_finite():
    h = np.tile([0.2, 0.9], 50)
    found = calibration_bracket((h > 0.5) * 1.0, confidence=h, divergence="log")
    assert np.isfinite([*found.gains.values()]).all()
    assert found.lower > 0.1


# -- bounds -----------------------------------------------------------------------


@pytest.mark.parametrize("divergence", ["brier", "log"])
def test_truth_lies_between_the_bounds_on_average(divergence):
    # Uniform confidence, accuracy 1/4 + h/2: d_CAL is an integral.
    p = (np.arange(20_000) + 0.5) / 20_000
    truth = unit(divergence, 0.25 + 0.5 * p, p).mean()
    lower, upper = [], []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        h = rng.random(400)
        a = rng.random(400) < 0.25 + 0.5 * h
        found = calibration_bracket(a, confidence=h, divergence=divergence, rng=seed)
        lower.append([found.lower, *found.gains.values()])
        upper.append(found.plugin)
    noise = np.std(upper) / 5
    assert np.all(np.mean(lower, axis=0) < truth + 2 * noise)
    assert np.mean(lower, axis=0)[0] > 0.5 * truth
    assert np.mean(upper) > truth


def test_a_calibrated_model_is_left_alone():
    rng = np.random.default_rng(0)
    h = rng.random(2000)
    found = calibration_bracket(rng.random(2000) < h, confidence=h)
    assert found.chosen == ("none",) * 5
    assert found.lower == found.standard_errors["lower"] == 0
    assert found.plugin > 0


@given(pairs(least=6, most=40), st.sampled_from([BRIER, LOG]))
def test_gains_are_finite_and_the_chosen_ones(rows, divergence):
    h, a, w = rows
    h = np.clip(h, 1e-6, 1 - 1e-6)
    fold = np.arange(len(h)) % 3
    found = held_out_gains(Columns(h, None, a, {}, w), divergence, fold, 3)
    table = {**found.gains, "none": np.zeros(len(h))}
    assert set(table) == set(METHODS)
    for f in range(3):
        here = fold == f
        np.testing.assert_array_equal(found.best[here], table[found.chosen[f]][here])
    assert np.isfinite(np.stack([*table.values()])).all()


# -- folds ------------------------------------------------------------------------


@given(st.integers(3, 60), st.integers(3, 9), st.integers(0, 99))
def test_folds_are_even_and_clusters_whole(units, folds, seed):
    rng = np.random.default_rng(seed)
    if units < folds:
        with pytest.raises(ValueError, match=rf"at most .* rows, {units}; got {folds}"):
            assign_folds(units, None, folds, rng)
        return
    fold = assign_folds(units, None, folds, rng)
    assert np.ptp(np.bincount(fold, minlength=folds)) <= 1
    clusters = np.repeat(np.arange(units), 3)
    fold = assign_folds(3 * units, clusters, folds, rng)
    assert all(len(set(fold[clusters == c])) == 1 for c in range(units))


def test_clusters_widen_standard_errors():
    h, a = few_values(300, seed=8)
    twice = {"confidence": np.repeat(h, 4), "divergence": "brier"}
    plain = calibration_bracket(np.repeat(a, 4), **twice)
    names = [f"patient {i}" for i in np.repeat(np.arange(300), 4)]
    whole = calibration_bracket(np.repeat(a, 4), **twice, cluster=names)
    ratio = whole.standard_errors["platt"] / plain.standard_errors["platt"]
    assert ratio == pytest.approx(2, rel=0.1)


def test_seed_decides_the_folds():
    h, a = few_values(200, seed=1)
    one, same, other = (calibration_bracket(a, confidence=h, rng=r) for r in (0, 0, 1))
    assert one == same
    assert one.gains != other.gains
    assert one.debiased == other.debiased


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folds": 2}, r"folds must be a whole number from 3 on, got 2"),
        ({"folds": 4.5}, r"folds must be a whole number from 3 on, got 4.5"),
        ({"folds": "five"}, r"folds must be a whole number from 3 on, got 'five'"),
        ({"folds": 7}, r"folds must be at most the number of rows, 6; got 7"),
        ({"divergence": "kl"}, r"divergence must be one of 'brier', 'log'.*, got 'kl'"),
        ({"level": 2}, r"level must be between 0 and 1"),
    ],
)
def test_errors_name_the_argument(options, message):
    with pytest.raises(ValueError, match=message):
        calibration_bracket([0, 1] * 3, confidence=[0.5] * 6, **options)


# -- the record -------------------------------------------------------------------


@pytest.mark.parametrize("divergence", ["brier", "log"])
def test_bracket_holds_the_numbers_of_the_evaluation(divergence):
    h, a = few_values(500, seed=2)
    ev = evaluate_pairs(a, h, divergence=divergence)
    found = calibration_bracket(a, confidence=h, divergence=divergence)
    headline = ev.decomposition.calibration
    assert found.debiased == headline
    assert found.debiased.interval == headline.interval
    if divergence == "brier":
        assert found.plugin == pytest.approx(ev.metrics["mcb"], abs=1e-14)
        root = float(ev.metrics["ece_debiased"])
        assert found.second_opinion == pytest.approx(root**2, abs=1e-14)
    else:
        assert found.second_opinion is None


@pytest.mark.parametrize("h0", [0.5, 1.0])
def test_record_survives_json(h0):
    h, a = few_values(100, seed=4)
    h[0], a[0] = h0, 0
    found = calibration_bracket(a, confidence=h, divergence="log")
    again = Bracket.from_json(found.to_json())
    assert again == found
    assert again.lower.interval == found.lower.interval


def test_bracket_prints_its_ends_in_order():
    h, a = few_values(400, seed=6)
    lines = str(calibration_bracket(a, confidence=h)).splitlines()
    assert lines[0] == "d_CAL, brier, pairs, 400 examples"
    names = [re.match(r"  (.*?)  ", line)[1] for line in lines[1:5]]
    assert names == ["lower bound", "debiased", "in-sample", "debiased bins"]


# -- real data --------------------------------------------------------------------

# probmetrics 1.3.0 on hits and [1 - h, h]: calib-err_..._isotonic-mix_cv-5 and _all, Brier
# halved (it sums over two classes). Its folds differ, and its isotonic mixes in a prior.
PEER = {"brier": (0.0086325, 0.0095335), "log": (0.1113878, 0.1157397)}


@pytest.mark.parametrize("divergence", list(PEER))
def test_bounds_agree_with_a_peer_on_real_data(data, divergence):
    file = data("cifar10_akamaster_resnet32")
    found = calibration_bracket(
        file["labels"], logits=file["logits"], divergence=divergence
    )
    held_out, in_sample = PEER[divergence]
    assert found.plugin == pytest.approx(in_sample, rel=2e-4)
    assert found.gains["isotonic"] == pytest.approx(held_out, rel=0.01)
    assert found.lower.interval[0] < found.debiased < found.plugin


def test_bracket_on_real_data_is_narrow_and_ordered(data):
    file = data("cifar10_peterson_wrn_28_10")
    kind = "logits" if "logits" in file else "probs"
    found = calibration_bracket(file["labels"], **{kind: file[kind]})
    assert 0 < found.lower < found.debiased < found.plugin < 2 * found.lower
    ev = evaluate(file["labels"], **{kind: file[kind]}, interval=None)
    assert found.target == ev.target == "top-label"
    assert found.second_opinion == pytest.approx(found.debiased, rel=0.15)


def test_what_is_not_known_is_not_printed():
    rng = np.random.default_rng(0)
    h = rng.random(300)
    found = calibration_bracket((rng.random(300) < h).astype(int), confidence=h)
    assert "debiased bins" in str(found)
    text = str(replace(found, second_opinion=None))
    assert "debiased bins" not in text
    assert len(text.splitlines()) == len(str(found).splitlines()) - 1
