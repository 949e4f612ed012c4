"""Intervals of an evaluation: which there are, what they rest on, how often they hold."""

import numpy as np
import pytest
from make import forecasts

import calibrant as cal
from calibrant._inputs.options import Settings

SETTINGS = Settings().checked()


# -- evaluations -------------------------------------------------------------------

CALIBRATED = forecasts(3000, accuracy=lambda p: p)
METHODS = ("Wilson", "normal", "score", "DeLong", "test inversion", "band")
NORM_METRICS = ("ece", "ace", "mce", "ece_mass", "smooth_ece", "ks_error")


def ends(ev):
    return {name: value.interval for name, value in ev.metrics.items()}


def test_every_metric_of_a_real_model_has_an_interval_and_its_method(data):
    arrays = data("cifar10_akamaster_resnet32")
    ev = cal.evaluate(arrays["labels"], logits=arrays["logits"])
    assert {"top_label_ece", "dsc", "auroc"} <= set(ev.metrics)
    for value in ev.metrics.values():
        low, high = value.interval
        assert low <= high
        assert value.method.removeprefix("one-sided ") in METHODS
        assert value.method.startswith("one-sided") == (low == 0)
    # 10,000 rows know these well, and they are far from 0.
    for name in ("ece", "smooth_ece", "ece_mass", "ks_error", "confidence_gap"):
        low, high = ev.metrics[name].interval
        assert low < ev.metrics[name] < high
        assert high - low < 0.25 * ev.metrics[name]


def test_a_calibrated_model_has_intervals_that_hold_zero_and_may_lie_below_the_value():
    ev = cal.evaluate_pairs(*CALIBRATED)
    for name in (*NORM_METRICS, "ece_debiased", "mcb"):
        assert ev.metrics[name].interval[0] == 0
    assert ev.metrics["mcb"].interval[1] < ev.metrics["mcb"]


def test_intervals_are_the_same_every_time_and_leave_global_randomness_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (ends(cal.evaluate_pairs(*CALIBRATED)) for _ in range(2))
    assert first == second
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_another_seed_or_more_resamples_change_little():
    a, p = forecasts(3000)
    plain = cal.evaluate_pairs(a, p)
    seeded = cal.evaluate_pairs(a, p, rng=1)
    many = cal.evaluate_pairs(a, p, resamples=4000, rng=np.random.default_rng(2))
    for name in NORM_METRICS:
        low, high = plain.metrics[name].interval
        for other in (seeded, many):
            found = other.metrics[name].interval
            assert found != plain.metrics[name].interval
            assert found == pytest.approx((low, high), abs=0.2 * (high - low))
    assert plain.settings["rng"] == 0
    assert many.settings["rng"] == "generator"


def test_interval_none_leaves_values_and_closed_forms_that_cost_nothing():
    full, bare = (
        cal.evaluate_pairs(*forecasts(500), interval=x) for x in ("auto", None)
    )
    assert dict(full.metrics) == dict(bare.metrics)
    assert {n for n, v in bare.metrics.items() if v.interval is not None} == {
        "accuracy",
        "nll",
        "brier",
    }


def test_fewer_than_fifty_rows_have_no_resampled_interval():
    ev = cal.evaluate_pairs(*forecasts(49))
    assert ev.metrics["ece"].interval is None


def test_a_row_of_weight_two_is_two_rows():
    a, p = forecasts(400, digits=2)
    weighted = cal.evaluate_pairs(a, p, sample_weight=np.full(400, 2.0))
    doubled = cal.evaluate_pairs(np.tile(a, 2), np.tile(p, 2))
    for name, interval in ends(weighted).items():
        assert interval == pytest.approx(doubled.metrics[name].interval, abs=1e-9)


def test_intervals_narrow_with_the_level():
    a, p = forecasts(2000)
    wide, narrow = (cal.evaluate_pairs(a, p, level=x) for x in (0.95, 0.5))
    for name, (low, high) in ends(narrow).items():
        assert wide.metrics[name].interval[0] <= low <= high
        assert high <= wide.metrics[name].interval[1]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"interval": "bca"}, "interval must be one of"),
        ({"resamples": 50}, "resamples must be a whole number from 100"),
        ({"rng": -1}, "rng must be a whole number from 0 on"),
        ({"rng": "seed"}, "rng must be"),
        ({"cluster": [1, 2]}, "cluster must have one entry per row"),
        ({"cluster": np.zeros(500)}, "cluster has 1 distinct values"),
        ({"cluster": np.full(500, np.nan)}, "row 0 has none"),
        ({"cluster": [None, *"abcdefghijk" * 45, *"abcd"]}, "row 0 has none"),
    ],
)
def test_options_are_checked(option, message):
    with pytest.raises(ValueError, match=message):
        cal.evaluate_pairs(*forecasts(500), **option)


# -- clusters ----------------------------------------------------------------------


def test_copies_of_rows_in_one_cluster_tell_no_more_than_one():
    a, p = forecasts(1500)
    once = cal.evaluate_pairs(a, p)
    copies = np.tile(a, 4), np.tile(p, 4)
    blind = cal.evaluate_pairs(*copies)
    aware = cal.evaluate_pairs(*copies, cluster=np.tile(np.arange(1500), 4))
    names = ("accuracy", "brier", "nll", "ece", "smooth_ece", "ks_error", "auroc")
    for name in (*names, "confidence_gap", "ece_debiased"):
        length, too_short, found = (
            np.ptp(ev.metrics[name].interval) for ev in (once, blind, aware)
        )
        assert too_short < 0.6 * length
        assert found == pytest.approx(length, rel=0.15)
        assert aware.metrics[name].method.endswith(", clusters")
    parts = aware.decomposition
    assert np.ptp(parts.calibration.interval) == pytest.approx(
        np.ptp(once.decomposition.calibration.interval), rel=0.15
    )
    assert np.ptp(parts.total.interval) == pytest.approx(
        np.ptp(once.decomposition.total.interval), rel=0.02
    )


def test_clusters_may_have_any_names():
    a, p = forecasts(600)
    number = np.arange(600) // 3
    found = [
        ends(cal.evaluate_pairs(a, p, cluster=x))
        for x in (number, number.astype(str), number.astype(float), list(number))
    ]
    assert all(other["accuracy"] == found[0]["accuracy"] for other in found)
    assert found[0]["ece"] == pytest.approx(found[2]["ece"])


def test_rows_of_weight_zero_leave_their_cluster():
    a, p = forecasts(600)
    weight = np.where(np.arange(600) < 500, 1.0, 0.0)
    cluster = np.arange(600) // 5
    zero = cal.evaluate_pairs(a, p, sample_weight=weight, cluster=cluster)
    gone = cal.evaluate_pairs(a[:500], p[:500], cluster=cluster[:500])
    for name, interval in ends(zero).items():
        assert interval == pytest.approx(gone.metrics[name].interval)


def test_clusters_of_classes_are_refused():
    y = np.arange(300) % 3
    with pytest.raises(ValueError, match="target='positive'"):
        cal.evaluate(
            y, probs=np.full((300, 3), 1 / 3), target="class-wise", cluster=y * 0
        )


def test_ends_stay_in_order_and_in_range_when_all_are_sure_and_wrong():
    ev = cal.evaluate_pairs(np.zeros(50), np.ones(50))
    low, high = ev.decomposition.sharpness_gap.interval
    assert 0 <= low <= high
    assert ev.metrics["smooth_ece"].interval[1] <= 1


@pytest.mark.simulation
def test_clusters_never_lift_the_lower_end_of_an_error_below_0():
    for seed in range(15):
        rng = np.random.default_rng(seed)
        p = rng.random(600)
        hit = (rng.random(600) < p).astype(float)
        ev = cal.evaluate_pairs(hit, p, cluster=np.arange(600) // 10, resamples=100)
        for parts in ev.decompositions.values():
            if parts.calibration < 0:
                assert parts.calibration.interval[0] == 0
