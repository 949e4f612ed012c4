"""Risk and coverage: closed forms, brute force, weights, clusters, sketches, views."""

from __future__ import annotations

from itertools import permutations
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant._sketch import cells
from calibrant._stats.risk_coverage import Steps, _digamma
from calibrant._verbs.compare import rows_of

AREAS = ("aurc", "excess_aurc", "augrc")


def brute_force(correct, confidence):
    """Mean over all orders of ties of the three areas, as they are defined."""
    right, h = np.asarray(correct, float), np.asarray(confidence, float)
    found = [_of_order(right[list(p)]) for p in _orders(h)]
    best = _of_order(np.sort(right)[::-1])[0]
    aurc, augrc = np.mean(found, axis=0)
    return aurc, aurc - best, augrc


def _orders(h):
    """All orders of falling confidence."""
    return [p for p in permutations(range(len(h))) if (np.diff(h[list(p)]) <= 0).all()]


def _of_order(right):
    n, wrong = len(right), np.cumsum(1 - right)
    risk = wrong / np.arange(1, n + 1)
    area = (np.concatenate([[0], wrong[:-1]]) + wrong).sum() / (2 * n * n)
    return risk.mean(), area


def sample(n=2000, seed=0, power=1.0):
    rng = np.random.default_rng(seed)
    h = rng.beta(5, 1, n)
    return (rng.random(n) < h**power).astype(float), h


@given(
    st.lists(
        st.tuples(st.booleans(), st.sampled_from([0.2, 0.5, 0.9])),
        min_size=1,
        max_size=7,
    )
)
def test_ties_have_the_mean_over_all_their_orders(rows):
    right, h = zip(*rows, strict=True)
    ev = cal.evaluate_pairs(right, h, interval=None)
    found = [float(ev.metrics[key]) for key in AREAS]
    assert found == pytest.approx(brute_force(right, h), abs=1e-12)


def test_mean_replacement_has_an_aurc_equal_to_its_error_rate():
    right, _ = sample(777)
    error_rate = 1 - right.mean()
    found = cal.risk_coverage(right, confidence=np.full(777, right.mean()))
    assert found.aurc == pytest.approx(error_rate, abs=1e-15)
    assert found.augrc == pytest.approx(error_rate / 2, abs=1e-15)
    assert found.risk.tolist() == [pytest.approx(error_rate)]


def test_without_ties_it_is_the_mean_of_running_error_rates():
    right, h = sample()
    wrong = np.cumsum(1 - right[np.argsort(-h)])
    assert cal.aurc(right, confidence=h) == pytest.approx(
        (wrong / np.arange(1, 2001)).mean(), abs=1e-14
    )


def test_a_perfect_order_has_no_excess_and_the_closed_form_of_geifman():
    right = np.repeat([1.0, 0.0], [9000, 1000])
    found = cal.risk_coverage(right, confidence=np.linspace(0.99, 0.01, 10_000))
    assert found.excess == pytest.approx(0, abs=1e-12)
    assert found.aurc == pytest.approx(0.1 + 0.9 * log(0.9), abs=1e-4)


def test_augrc_follows_from_accuracy_and_auroc():
    """The closed form of Traub et al. (2024)."""
    right, h = sample(3000, 3)
    ev = cal.evaluate_pairs(right, np.round(h, 2))
    accuracy, area = right.mean(), float(ev.metrics["auroc"])
    formula = (1 - area) * accuracy * (1 - accuracy) + 0.5 * (1 - accuracy) ** 2
    assert ev.metrics["augrc"] == pytest.approx(formula, abs=1e-14)


def test_frequency_repeats_and_weights_have_no_unit():
    right, h = sample(300, 1)
    h = np.round(h, 2)
    times = np.random.default_rng(2).integers(1, 4, 300)
    one = cal.evaluate_pairs(right, h, frequency=times).metrics
    many = cal.evaluate_pairs(np.repeat(right, times), np.repeat(h, times)).metrics
    w = 0.1 + np.random.default_rng(3).random(300)
    light, heavy = (
        cal.evaluate_pairs(right, h, sample_weight=x).metrics for x in (w, 7 * w)
    )
    for key in AREAS:
        assert one[key] == pytest.approx(many[key], abs=1e-12)
        assert one[key].interval == pytest.approx(many[key].interval, abs=1e-9)
        assert light[key] == pytest.approx(heavy[key], abs=1e-12)
        assert light[key].interval == pytest.approx(heavy[key].interval, abs=1e-12)


def test_a_positive_class_is_selected_by_the_likelier_class():
    rng = np.random.default_rng(4)
    p = rng.random(500)
    y = (rng.random(500) < p).astype(int)
    right, sure = np.where(p >= 0.5, y, 1 - y), np.maximum(p, 1 - p)
    one = cal.evaluate(y, probs=p)
    both = cal.evaluate_pairs(right, sure)
    assert [one.metrics[key] for key in AREAS] == [both.metrics[key] for key in AREAS]
    assert cal.aurc(y, probs=p) == float(both.metrics["aurc"])
    assert cal.aurc(y, probs=np.column_stack([1 - p, p]), target="top-label") == (
        pytest.approx(float(both.metrics["aurc"]), abs=1e-12)
    )


def test_class_wise_it_is_a_number_of_the_model():
    rng = np.random.default_rng(5)
    z = rng.normal(size=(400, 4))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    top, each = (
        cal.evaluate(y, logits=z, target=t) for t in ("top-label", "class-wise")
    )
    for key in AREAS:
        assert each.metrics[key] == top.metrics[key]
        assert each.metrics[key].interval == top.metrics[key].interval


@pytest.mark.parametrize("key", AREAS)
@pytest.mark.parametrize("digits", [1, 6])
def test_influence_is_what_a_row_moves(key, digits):
    """Pseudo-values of the jackknife, ties or none."""
    right, h = sample(200, 6)
    h = np.round(h, digits)
    whole = rows_of(cal.evaluate_pairs(right, h))
    influence, n = whole.influence(key), 200
    value, others = _value(right, h, key), np.arange(n)
    pseudo = [
        n * value - (n - 1) * _value(right[others != i], h[others != i], key)
        for i in others
    ]
    centred = influence - influence.mean(), np.array(pseudo) - np.mean(pseudo)
    assert np.corrcoef(*centred)[0, 1] > 0.9995
    assert np.std(centred[0]) == pytest.approx(np.std(centred[1]), rel=0.02)


def _value(right, h, key):
    _, place = np.unique(-h, return_inverse=True)
    return _steps_of_cells(right, -place).value(key)


@pytest.mark.parametrize("target", ["pairs", "positive"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("order", ["drawn", "errors first", "errors last"])
def test_a_sketch_is_within_its_bounds(monkeypatch, target, weighted, order):
    """Also where all rows are in one cell and the order within is the worst."""
    monkeypatch.setattr(cells, "MOST_VALUES", 0)
    rng = np.random.default_rng(5)
    h = rng.beta(3, 0.5, 3000) if order == "drawn" else 0.9 + 1e-7 * rng.random(3000)
    a = (rng.random(3000) < h**1.3).astype(int)
    if order != "drawn":
        a = ((h > np.median(h)) == (order == "errors last")).astype(int)
    given = {"sample_weight": rng.exponential(1, 3000) ** 2 if weighted else None}
    if target == "pairs":
        sketch = cal.Sketch().update_pairs(a, h, **given)
        want = cal.evaluate_pairs(a, h, interval=None, **given).metrics
    else:
        h = np.where(rng.random(3000) < 0.5, h, 1 - h)
        a = np.where(h < 0.5, 1 - a, a)
        sketch = cal.Sketch().update(a, probs=h, **given)
        want = cal.evaluate(a, probs=h, interval=None, **given).metrics
    found, bounds = cal.evaluate(sketch, interval=None).metrics, sketch.bounds()
    for key in AREAS:
        off = abs(float(found[key]) - float(want[key]))
        assert off <= bounds[key] + 1e-12, key
        if order == "drawn":
            assert bounds[key] < 1e-2  # else it would say nothing
        elif key != "excess_aurc":
            assert off > 0.2 * bounds[key]


def test_a_sketch_is_within_its_stated_bound():
    right, h = sample(20_000, 7)
    sketch = cal.Sketch().update_pairs(right[:9000], h[:9000])
    sketch.update_pairs(right[9000:], h[9000:])
    of_cells = cal.evaluate(sketch).metrics["aurc"]
    exact = cal.evaluate_pairs(right, h).metrics["aurc"]
    cell = np.floor(h * 9600)  # cells are at least as fine
    steps = _steps_of_cells(right, cell)
    bound = float((steps.errors * (1 - steps.rate) * steps.harmonic).sum() / steps.n)
    assert bound < 3e-4
    assert abs(of_cells - exact) <= bound
    assert of_cells.interval == pytest.approx(exact.interval, rel=0.01)
    drawn = cal.risk_coverage(sketch)
    assert drawn.aurc == of_cells
    assert drawn.accuracy_at(0.5) == pytest.approx(
        cal.risk_coverage(right, confidence=h).accuracy_at(0.5), abs=1e-3
    )


def _steps_of_cells(right, cell):
    _, place = np.unique(-cell, return_inverse=True)
    weight = np.bincount(place).astype(float)
    return Steps(weight, np.bincount(place, right))


def test_the_curve_is_what_is_accepted_from_a_threshold_on():
    right, h = sample(500, 8)
    h = np.round(h, 2)
    found = cal.risk_coverage(right, confidence=h)
    for c, r, t in zip(found.coverage, found.risk, found.threshold, strict=True):
        accepted = h >= t
        assert c == pytest.approx(accepted.mean())
        assert r == pytest.approx(1 - right[accepted].mean())


def test_accuracy_at_a_coverage_and_coverage_at_a_risk_are_inverse():
    right, h = sample(5000, 9)
    found = cal.risk_coverage(right, confidence=np.round(h, 2))
    for risk in (0.05, 0.1):
        coverage = found.coverage_at(risk)
        assert 1 - found.accuracy_at(float(coverage)) == pytest.approx(risk, abs=1e-9)
        assert coverage.interval[0] <= coverage <= coverage.interval[1]
    assert found.coverage_at(1.0) == 1.0
    assert found.accuracy_at(1.0) == pytest.approx(right.mean())
    worst = cal.risk_coverage([0, 1, 1], confidence=[0.9, 0.5, 0.4])
    assert worst.coverage_at(0.0) == 0.0


def test_between_ties_the_figure_is_the_expected_risk_and_so_are_its_ends():
    rng = np.random.default_rng(3)
    h = rng.choice([0.5, 0.7, 0.9], 300)
    found = cal.risk_coverage(rng.random(300) < h, confidence=h)
    line = found.plot().get_lines()[0]
    for share in (0.1, 0.5, 0.8):
        drawn = np.interp(share, line.get_xdata(), line.get_ydata())
        assert drawn == pytest.approx(1 - found.accuracy_at(share), abs=1e-9)


def test_many_confidences_are_thinned_and_stay_exact_where_they_are():
    right, h = sample(25_000, 10)
    found = cal.risk_coverage(right, confidence=h)
    assert len(found.coverage) <= 10_000
    accepted = h >= found.threshold[4321]
    assert found.coverage[4321] == pytest.approx(accepted.mean())
    assert found.risk[4321] == pytest.approx(1 - right[accepted].mean())
    assert found.aurc == cal.aurc(right, confidence=h)


def test_clusters_widen_intervals_and_copies_widen_them_as_they_should():
    right, h = sample(1000, 11)
    once = cal.risk_coverage(right, confidence=h)
    copies = {"confidence": np.repeat(h, 4), "cluster": np.repeat(np.arange(1000), 4)}
    four = cal.risk_coverage(np.repeat(right, 4), **copies)
    assert four.aurc == pytest.approx(once.aurc, rel=0.02)
    width = [np.ptp(x.aurc.interval) for x in (once, four)]
    assert width[1] == pytest.approx(width[0], rel=0.03)
    half = [np.ptp(x.accuracy_at(0.5).interval) for x in (once, four)]
    assert half[1] == pytest.approx(half[0], rel=0.15)


def test_paired_differences_are_those_of_the_values_and_sharper_than_apart():
    right, h = sample(3000, 12)
    a = cal.evaluate_pairs(right, h, name="a")
    b = cal.evaluate_pairs(right, h**3, name="b")
    noisy = np.clip(h + np.random.default_rng(0).normal(0, 0.02, 3000), 0, 1)
    c = cal.evaluate_pairs(right, noisy, name="c")
    found = cal.compare(a, b, c).differences
    assert found["b"]["aurc"] == 0  # the same order
    assert found["b"]["aurc"].interval == (0, 0)
    difference = found["c"]["aurc"]
    assert difference == c.metrics["aurc"] - a.metrics["aurc"]
    apart = cal.compare(a, c, paired=False).differences["c"]["aurc"]
    assert np.ptp(difference.interval) < 0.5 * np.ptp(apart.interval)


@pytest.mark.parametrize("right", [np.ones(200), np.zeros(200)])
def test_no_errors_and_nothing_but_errors(right):
    _, h = sample(200, 13)
    found = cal.risk_coverage(right, confidence=h)
    assert found.aurc == pytest.approx(1 - right[0])
    assert found.excess == pytest.approx(0, abs=1e-12)
    low, high = found.aurc.interval
    assert 0 <= low <= found.aurc <= high <= 1
    if right[0]:
        assert 0.005 < high < 0.05


def test_one_row_and_certain_ones():
    assert cal.aurc([0], confidence=[1.0]) == 1.0
    assert cal.aurc([1, 0], confidence=[1.0, 0.0]) == 0.25
    half = np.array([0.5, 1.0], np.float16)
    assert cal.aurc([1, 0], confidence=half) == 0.75


def test_soft_labels_are_shares_of_errors():
    found = cal.risk_coverage([0.5, 1.0], confidence=[0.9, 0.6])
    assert found.risk.tolist() == [0.5, 0.25]


def test_the_record_prints_restores_and_frames():
    right, h = sample(400, 14)
    found = cal.risk_coverage(right, confidence=h, name="mine")
    again = cal.RiskCoverage.from_json(found.to_json())
    assert str(again) == str(found)
    assert "mine: 400 examples" in str(found)
    assert f"AURC        {found.aurc:.4f} [" in str(found)
    assert list(found.frame("pandas")) == [
        "coverage",
        "risk",
        "threshold",
        "low",
        "high",
    ]
    wrong = found.to_dict() | {"risk": [2.0] * len(found.risk)}
    with pytest.raises(ValueError, match=r"risk\[0\] must be"):
        cal.RiskCoverage.from_dict(wrong)


def test_what_cannot_be_used_is_refused():
    ev = cal.Evaluation.from_json(cal.evaluate_pairs(*sample(100)).to_json())
    with pytest.raises(ValueError, match="rows of 'model' are gone"):
        cal.risk_coverage(ev)
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        cal.risk_coverage([1], confidence=[0.5], level=1.0)
    with pytest.raises(ValueError, match="coverage must be"):
        cal.risk_coverage([1], confidence=[0.5]).accuracy_at(1.5)


def test_evaluations_and_rows_give_the_same():
    right, h = sample(300, 15)
    of_rows = cal.risk_coverage(right, confidence=h)
    assert (
        cal.risk_coverage(cal.evaluate_pairs(right, h)).to_dict() == of_rows.to_dict()
    )


# -- other libraries --------------------------------------------------------------------

REAL = ["cifar10_akamaster_resnet32", "cifar100_netcal_lenet_5"]


@pytest.mark.parametrize("name", REAL)
def test_torch_uncertainty_in_its_convention(name, data):
    """Its AURC is the trapezoid over coverages 1/n to 1, over 1 - 1/n; ties as sorted."""
    right, h, found = _real(name, data)
    n, order = len(h), np.argsort(-h, kind="stable")
    risk = np.cumsum(1 - right[order]) / np.arange(1, n + 1)
    theirs = (risk.mean() - (risk[0] + risk[-1]) / (2 * n)) / (1 - 1 / n)
    ours = (found.aurc - (found.risk[0] + found.risk[-1]) / (2 * n)) / (1 - 1 / n)
    assert ours == pytest.approx(theirs, abs=1e-5)
    kept = np.flatnonzero(risk <= 0.05)[-1] + 1  # its CovAt5Risk
    assert found.coverage_at(0.05) == pytest.approx(kept / n, abs=2 / n)


@pytest.mark.parametrize("name", REAL)
def test_the_interval_of_real_rows_is_as_wide_as_that_of_a_bootstrap(name, data):
    right, h, found = _real(name, data)
    rng, draws = np.random.default_rng(0), []
    for _ in range(200):
        some = rng.integers(0, len(h), len(h))
        draws.append(cal.aurc(right[some], confidence=h[some]))
    width = 2 * 1.96 * np.std(draws)
    assert np.ptp(found.aurc.interval) == pytest.approx(width, rel=0.2)


def _real(name, data):
    file = data(name)
    kind = "logits" if "logits" in file else "probs"
    scores, y = file[kind].astype(float), file["labels"]
    found = cal.risk_coverage(y, **{kind: scores}, name=name)
    if kind == "logits":
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        scores /= scores.sum(axis=1, keepdims=True)
    right = (scores.argmax(axis=1) == y).astype(float)
    return right, np.minimum(scores.max(axis=1), 1), found


def test_the_digamma_function_is_that_of_scipy():
    from scipy.special import digamma

    x = np.concatenate([np.linspace(1, 30, 2001), np.geomspace(30, 1e9, 500)])
    assert _digamma(x) == pytest.approx(digamma(x), rel=1e-14, abs=1e-14)
