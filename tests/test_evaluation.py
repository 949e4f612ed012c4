"""Edges of a whole evaluation: it works, and says what it should."""

import numpy as np
import pytest
from make import unrelated

import calibrant as cal
from calibrant._base.records import as_plain as plain
from calibrant._inputs import divergences as bregman
from calibrant._inputs.divergences import BRIER, LOG
from calibrant._rows.columns import Columns
from calibrant._stats import influence
from calibrant._stats.influence import platt_values
from calibrant._verbs.compare import rows_of

CASES = {
    "one row": ([0], [[0.7, 0.2, 0.1]]),
    "one class seen": ([1] * 5, [[0.2, 0.7, 0.1]] * 5),
    "all certain and right": ([0] * 60, [[1.0, 0.0, 0.0]] * 60),
    "all certain and wrong": ([1] * 60, [[1.0, 0.0, 0.0]] * 60),
    "uniform": (unrelated(200, 3)[0], [[1 / 3] * 3] * 200),
    "two atoms": (
        unrelated(90, 3)[0],
        [[0.9, 0.1, 0.0]] * 45 + [[0.5, 0.5, 0.0]] * 45,
    ),
}


@pytest.mark.parametrize(("y", "p"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("target", ["top-label", "class-wise"])
@pytest.mark.parametrize(
    "options", [{}, {"preset": "paper"}, {"bandwidth": 0.02, "kernel": "epanechnikov"}]
)
def test_edge_cases_evaluate_print_and_round_trip(y, p, target, options):
    ev = cal.evaluate(y, probs=p, target=target, resamples=100, **options)
    assert str(ev)
    text = ev.to_json()
    assert cal.Evaluation.from_json(text).to_json() == text
    assert ev.metrics["brier"] == pytest.approx(cal.brier(y, probs=p))
    assert 0 <= ev.metrics["ece"] <= 1


def test_constant_confidence_errs_by_the_squared_gap_as_published():
    # Always 80 % sure, right 60 % of the time: d_CAL = (0.6 - 0.8)^2 at any bandwidth.
    a = np.r_[np.ones(60), np.zeros(40)]
    for options in (
        {},
        {"kernel": "epanechnikov"},
        {"boundary": "reflect"},
        {"bandwidth": 0.3},
    ):
        ev = cal.evaluate_pairs(a, np.full(100, 0.8), **{"bandwidth": 0.05, **options})
        assert ev.decomposition.calibration == pytest.approx(0.04, abs=1e-12)
    adaptive = cal.evaluate_pairs(a, np.full(100, 0.8)).decomposition.calibration
    assert adaptive.interval[0] < 0.04 < adaptive.interval[1]


def test_the_paper_preset_is_the_paper_estimate():
    y, z = unrelated(300, 5)
    ev = cal.evaluate(y, logits=z, preset="paper")
    assert ev.decomposition.calibration == ev.paper.calibration
    assert ev.decomposition.bandwidth == 0.05
    assert ev.metrics["smooth_ece"] == cal.smooth_ece(y, logits=z, compat="relplot")
    assert ev.metrics["ece"] == cal.ece(y, logits=z, closed="left")


def test_metrics_of_an_evaluation_are_those_of_the_functions():
    y, z = unrelated(500, 4)
    w = np.random.default_rng(1).random(500) + 0.5
    ev = cal.evaluate(y, logits=z, sample_weight=w)
    given = {"logits": z, "sample_weight": w}
    functions = ["accuracy", "nll", "brier", "ece", "ace", "mce", "ks_error", "auroc", "confidence_gap", "top_label_ece", "smooth_ece"]  # fmt: skip
    for name in functions:
        assert ev.metrics[name] == pytest.approx(
            getattr(cal, name)(y, **given), abs=1e-9
        )
    parts = cal.corp(y, **given)
    assert ev.metrics["mcb"] == pytest.approx(parts.miscalibration)
    assert ev.metrics["ece_mass"] == pytest.approx(cal.ece(y, strategy="mass", **given))
    assert ev.metrics["ece_debiased"] == pytest.approx(
        cal.ece(y, bins="cube-root", strategy="mass", norm=2, debias=True, **given)
    )


def test_accuracy_of_the_positive_class_is_that_of_the_decision_at_one_half():
    assert cal.accuracy([1, 0, 0], probs=[0.9, 0.6, 0.1]) == pytest.approx(2 / 3)
    assert cal.accuracy([1, 0, 0], confidence=[0.9, 0.6, 0.1]) == pytest.approx(1 / 3)


def test_divergence_chooses_the_headline():
    y, z = unrelated(200, 3)
    ev = cal.evaluate(y, logits=z, divergence="log")
    assert ev.decomposition.divergence == ev.paper.divergence == "log"
    assert ev.decomposition.total == cal.nll(y, logits=z)
    assert ev.curve is ev.curves["log"]


def test_intervals_follow_the_level():
    y, z = unrelated(400, 3)
    narrow, wide = (cal.evaluate(y, logits=z, level=level) for level in (0.5, 0.99))
    for get in (lambda ev: ev.decomposition.calibration, lambda ev: ev.metrics["accuracy"], lambda ev: ev.metrics["brier"]):  # fmt: skip
        (a, b), (c, d) = get(narrow).interval, get(wide).interval
        assert c <= a <= b <= d
        assert d - c > b - a


def test_class_wise_adds_the_classes_up():
    y, z = unrelated(300, 4)
    ev = cal.evaluate(y, logits=z, target="class-wise")
    for name in ("total", "calibration"):
        added = sum(getattr(one.paper, name) for one in ev.per_class)
        assert getattr(ev.paper, name) == pytest.approx(added)
    added = sum(one.decomposition.calibration for one in ev.per_class)
    assert ev.decomposition.calibration == pytest.approx(
        added, rel=0.05
    )  # of all, not each
    assert [one.name for one in ev.per_class] == ["0", "1", "2", "3"]
    errors = cal.classwise_ece(y, logits=z, reduce="none")
    np.testing.assert_allclose([one.metrics["ece"] for one in ev.per_class], errors)
    assert ev.bins.count.sum() == 300 * 4


def test_settings_are_part_of_the_record():
    ev = cal.evaluate_pairs([1, 0], [0.6, 0.4], bandwidth=0.1, kernel="epanechnikov")
    assert plain(ev.settings)["kernel"] == "epanechnikov"
    assert ev.decomposition.bandwidth == 0.1


def test_a_divergence_may_not_take_a_built_in_name():
    other = cal.Divergence(
        "log",
        phi=lambda x: (x**2).sum(axis=1),
        gradient=lambda x: 2 * x,
        phi_1d=lambda p: p**2,
        derivative_1d=lambda p: 2 * p,
    )
    with pytest.raises(ValueError, match="'log' is built in"):
        cal.evaluate_pairs([1, 0], [0.6, 0.4], divergence=other)


def test_a_divergence_must_be_finite_for_certain_forecasts():
    with pytest.raises(ValueError, match="0 log 0 is 0"):
        cal.Divergence(
            "naive",
            phi=lambda x: (x * np.log(x)).sum(axis=1),
            gradient=lambda x: np.log(x) + 1,
            phi_1d=lambda p: p * np.log(p),
            derivative_1d=lambda p: np.log(p) + 1,
        )


def test_classes_share_rows_so_their_curve_has_no_band():
    y, z = unrelated(300, 3)
    ev = cal.evaluate(y, logits=z, target="class-wise")
    assert np.isnan(ev.curve.low).all()
    assert not np.isnan(ev.per_class[0].curve.low).all()


def test_all_right_is_inside_its_interval():
    accuracy = cal.evaluate_pairs(np.ones(60), np.full(60, 0.9)).metrics["accuracy"]
    assert accuracy.interval[1] == accuracy == 1


def test_weights_as_large_as_populations_are_fine():
    # Two far atoms of a million rows each: kernels underflow between them.
    ev = cal.evaluate_pairs(
        [1, 0, 1, 0], [0.9, 0.9, 0.1, 0.1], frequency=np.array([8, 2, 1, 9]) * 10**5
    )
    low, high = ev.decomposition.calibration.interval
    assert low < 0.01 * 0.5 < high


def test_the_curve_is_infinite_only_near_rows_of_infinite_loss():
    p = [[0.5, 0.5, 0.0]] * 60 + [[0.9, 0.1, 0.0]] * 60
    curve = cal.evaluate([2] + [0] * 119, probs=p).curves["log"]
    assert np.isinf(curve.loss[curve.confidence == 0.5]).all()
    assert np.isfinite(curve.loss[curve.confidence == 0.9]).all()


def test_one_half_predicts_class_0():
    """As `argmax` of (1 - p, p) does, whichever way the same forecast is given."""
    for y in (0, 1):
        assert cal.accuracy([y], probs=[0.5]) == 1 - y
        both = cal.accuracy([y], probs=[[0.5, 0.5]], target="top-label")
        assert cal.accuracy([y], probs=[0.5]) == both
    assert cal.accuracy([1], probs=[np.nextafter(0.5, 1)]) == 1


def test_class_wise_pools_the_pairs_of_all_classes():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet([1, 1, 1], 300), rng.integers(0, 3, 300)
    ev = cal.evaluate(y, probs=p, target="class-wise")
    want = cal.evaluate_pairs(np.eye(3)[y].ravel(), p.ravel())
    for name in ("count", "confidence", "accuracy", "variance"):
        np.testing.assert_allclose(getattr(ev.bins, name), getattr(want.bins, name))
    np.testing.assert_allclose(ev.paper_curve.accuracy, want.paper_curve.accuracy)


def test_class_wise_mce_is_the_largest_of_all_classes():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet([1, 1, 1], 300), rng.integers(0, 3, 300)
    ev = cal.evaluate(y, probs=p, target="class-wise")
    each = cal.classwise_ece(y, probs=p, norm="max", reduce="none")
    assert ev.metrics["mce"] == each.max()


def test_infinite_rows_of_every_target_count_weights():
    for target in ("top-label", "class-wise"):
        given = {"probs": [[0.5, 0.5, 0.0]] * 3, "frequency": [2, 1, 1]}
        assert cal.evaluate([2, 0, 0], target=target, **given).infinite_rows == 2


def test_class_wise_mean_leaves_out_a_class_that_never_occurs():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet([1, 1, 1], 100), rng.integers(0, 2, 100)
    ev = cal.evaluate(y, probs=p, target="class-wise")
    first, second, third = (one.metrics["auroc"] for one in ev.per_class)
    assert np.isnan(third)
    assert ev.metrics["auroc"] == pytest.approx((first + second) / 2)


def test_a_group_is_evaluated_on_its_own_rows():
    rng = np.random.default_rng(0)
    z, group = rng.normal(size=(600, 3)), rng.choice(["a", "b"], 600)
    y, weight = rng.integers(0, 3, 600), rng.integers(0, 3, 600)
    cluster = rng.integers(0, 40, 600)
    options = {"frequency": weight, "cluster": cluster}
    found = cal.evaluate(y, logits=z, group=group, **options).per_group
    for name, of_group in found.items():
        own = group == name
        some = {key: values[own] for key, values in options.items()}
        alone = cal.evaluate(y[own], logits=z[own], **some)
        assert of_group.rows == np.count_nonzero(weight[own])
        assert of_group.metrics == alone.metrics
        for key, estimate in alone.metrics.items():
            assert of_group.metrics[key].interval == estimate.interval


@pytest.mark.parametrize("target", ["top-label", "class-wise"])
def test_weights_of_a_group_are_of_its_own_mean(target):
    rng = np.random.default_rng(1)
    z, group = rng.normal(size=(300, 3)), rng.choice(["a", "b"], 300)
    y, weight = rng.integers(0, 3, 300), rng.lognormal(size=300)
    given = {"target": target, "interval": None}
    ev = cal.evaluate(y, logits=z, sample_weight=weight, group=group, **given)
    for name, found in ev.per_group.items():
        own = group == name
        weights = {"sample_weight": weight[own]}
        alone = cal.evaluate(y[own], logits=z[own], **weights, **given)
        assert found.n == alone.n
        for key, value in alone.metrics.items():
            assert float(found.metrics[key]) == pytest.approx(float(value), abs=1e-12)
        ends = alone.decomposition.calibration.interval
        assert found.decomposition.calibration.interval == pytest.approx(ends, abs=1e-9)


def test_the_headline_of_two_classes_is_that_of_one_twice():
    rng = np.random.default_rng(2)
    p = rng.random(500)
    y = (rng.random(500) < 0.8 * p + 0.1).astype(int)
    both = cal.evaluate(y, probs=p, target="class-wise").decompositions
    one = cal.evaluate(y, probs=p).decompositions
    for name, parts in both.items():
        for term in ("total", "calibration"):
            ends = np.multiply(2, getattr(one[name], term).interval)
            found = getattr(parts, term).interval
            assert found == pytest.approx(ends, rel=0.02, abs=1e-4), (name, term)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("probs", [[0.9, 0.05, 0.05], [0.05, 0.9, 0.05]])
def test_one_row_may_be_almost_all_of_the_weight(probs):
    """The number of effective rows is then 1, or a bit less by round-off."""
    weights = [7.29424969e7, 3.34510879e8, 3.66600490e-10]
    more = {"target": "top-label", "preset": "paper", "group": [1, 0, 1]}
    ev = cal.evaluate([1, 1, 1], probs=[probs] * 3, sample_weight=weights, **more)
    assert ev.rows == 3


def _own(**changes):
    parts = {
        "phi": lambda x: (x**2).sum(axis=1),
        "gradient": lambda x: 2 * x,
        "phi_1d": lambda p: p**2,
        "derivative_1d": lambda p: 2 * p,
    }
    return cal.Divergence("own", **(parts | changes))


def _forgetful():
    """A square less a little more at each call."""
    calls = iter(range(1000))
    return lambda p: p**2 - 0.01 * next(calls)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"phi_1d": lambda p: np.where((p > 0.4) & (p < 0.45), np.inf, p**2)},
            "phi_1d must map each row to one finite number inside the simplex",
        ),
        (
            {"phi_1d": lambda p: -(p**2), "derivative_1d": lambda p: -2 * p},
            r"phi_1d must be convex, but it gives a negative divergence \(-",
        ),
        ({"phi_1d": _forgetful()}, r"d\(p, p\) must be 0, got 0\.01"),
        (
            {"derivative_1d": lambda p: 2 * p + 0.01 * ((p > 0.5) & (p < 0.51))},
            r"derivative given for phi_1d does not match its differences \(\d+ of",
        ),
    ],
)
def test_functions_that_are_no_divergence_are_refused_with_the_reason(changes, said):
    with pytest.raises(ValueError, match=rf"^divergence 'own': (the )?{said}"):
        _own(**changes)


def test_registered_divergences_keep_built_in_names_and_tell_what_they_bound():
    with pytest.raises(ValueError, match="'brier' is built in; choose another name"):
        cal.register_divergence(BRIER)
    tripled = _own(phi_1d=lambda p: 3 * p**2, derivative_1d=lambda p: 6 * p)
    with pytest.warns(UserWarning, match="'own' does not dominate its one-dimensional"):
        cal.register_divergence(tripled)
    assert bregman._REGISTERED.pop("own") is tripled


def test_influences_of_rows_that_count_twice_are_those_of_both():
    rng = np.random.default_rng(0)
    h = rng.random(400)
    hit = (rng.random(400) < h**1.5).astype(float)
    w = np.full(400, 2.0)
    found = platt_values(Columns(h, None, hit, weight=w, squared=w), LOG)
    both = platt_values(Columns(np.repeat(h, 2), None, np.repeat(hit, 2)), LOG)
    assert found == pytest.approx(both[::2], abs=1e-9)
    assert both[1::2] == pytest.approx(both[::2])


def test_all_hits_have_no_influence_on_the_area_under_the_curve():
    for hit, none in ((np.ones(30), True), (np.arange(30) % 2, False)):
        ev = cal.evaluate_pairs(hit, np.linspace(0.1, 0.9, 30))
        found = influence.auroc(rows_of(ev).sample)
        assert (found is None) == none


def test_clusters_that_are_all_right_count_once_each():
    """Rows all alike do not tell how much alike they are."""
    cluster = np.repeat(np.arange(20), 5)
    given = {"confidence": np.linspace(0.5, 0.99, 100)}
    alone = cal.evaluate(np.ones(100), **given).metrics["accuracy"]
    twenty = cal.evaluate(np.ones(100), cluster=cluster, **given).metrics["accuracy"]
    few = cal.evaluate(np.ones(20), confidence=np.full(20, 0.7)).metrics["accuracy"]
    assert twenty == alone == 1
    assert twenty.interval[0] == pytest.approx(few.interval[0], abs=0.02)
    assert twenty.interval[0] < alone.interval[0] - 0.05


@pytest.mark.parametrize("target", ["top-label", "class-wise"])
@pytest.mark.parametrize("kind", ["frequency", "sample_weight"])
def test_a_group_of_counted_or_weighted_rows_has_their_numbers(target, kind):
    y, z = unrelated(200, 3)
    given, group = 1 + np.arange(200) % 4, np.arange(200) // 7 % 2
    given[::9] = 0
    options = {"target": target, "interval": None}
    whole = cal.evaluate(y, logits=z, group=group, **{kind: given}, **options)
    assert len(whole.per_group) == 2
    for name, own in whole.per_group.items():
        some = group == int(name)
        beside = {kind: given[some]}
        alone = cal.evaluate(y[some], logits=z[some], **beside, **options)
        assert own.n == pytest.approx(alone.n)
        assert own.metrics == pytest.approx(alone.metrics)


@pytest.mark.parametrize("target", ["top-label", "class-wise", "positive"])
def test_rows_of_infinite_loss_are_counted_and_their_total_is_infinite(target):
    p = np.array([[1.0, 0.0], [0.0, 1.0], [0.3, 0.7], [0.6, 0.4]] * 5)
    y = np.array([1, 1, 1, 0] + [0, 1, 1, 0] * 4)
    ev = cal.evaluate(y, probs=p, target=target, interval=None)
    assert ev.infinite_rows == 1
    assert ev.decompositions["log"].total == np.inf
    whole = cal.Sketch(target=target).update(y, probs=p)
    assert whole.cells.infinite_weight("log") == 1
    assert cal.evaluate(whole, interval=None).infinite_rows == 1
