"""Intervals of an evaluation: which there are, what they rest on, how often they hold."""

import itertools

import numpy as np
import pytest
from make import forecasts
from scipy.stats import chi2, t

import calibrant as cal
from calibrant._inputs.arrays import sigmoid
from calibrant._inputs.options import Settings
from calibrant._stats.closed_forms import Surprises, of_share, wilson_of
from calibrant._stats.intervals import of_auroc
from calibrant._verbs.reading import read_sample

SETTINGS = Settings().checked()


# -- evaluations -------------------------------------------------------------------

CALIBRATED = forecasts(3000, accuracy=lambda p: p)
METHODS = ("Wilson", "normal", "gamma", "score", "DeLong", "simulated noise", "band")
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


def test_a_row_of_frequency_two_is_two_rows():
    a, p = forecasts(400, digits=2)
    weighted = cal.evaluate_pairs(a, p, frequency=np.full(400, 2))
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
    for other in found:
        assert other["accuracy"] == pytest.approx(found[0]["accuracy"])
        # Clusters are drawn in the order of their hashes.
        assert other["ece"] == pytest.approx(found[0]["ece"], rel=0.1)


def test_rows_of_weight_zero_leave_their_cluster():
    a, p = forecasts(600)
    weight = np.where(np.arange(600) < 500, 1.0, 0.0)
    cluster = np.arange(600) // 5
    zero = cal.evaluate_pairs(a, p, sample_weight=weight, cluster=cluster)
    gone = cal.evaluate_pairs(a[:500], p[:500], cluster=cluster[:500])
    for name, interval in ends(zero).items():
        assert interval == pytest.approx(gone.metrics[name].interval)


@pytest.mark.parametrize("target", ["top-label", "class-wise"])
def test_clusters_of_one_row_are_no_clusters(target):
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 3, 200), rng.dirichlet(np.ones(3), 200)
    given = {"probs": p, "target": target, "sample_weight": rng.random(200)}
    alone = cal.evaluate(y, cluster=rng.permutation(200), **given)
    assert alone.to_dict() == cal.evaluate(y, **given).to_dict()
    twice = {**given, "sample_weight": None, "frequency": np.full(200, 2)}
    length, plain = (
        np.ptp(cal.evaluate(y, cluster=x, **twice).metrics["brier"].interval)
        for x in (np.arange(200), None)
    )
    assert length == pytest.approx(plain * 2**0.5, rel=0.05)


def test_clusters_widen_the_headline_of_classes():
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(3), 400)
    y = (p.cumsum(axis=1) > rng.random((400, 1))).argmax(axis=1)
    once = cal.evaluate(y, probs=p, target="class-wise")
    copies = {"probs": np.tile(p, (4, 1)), "target": "class-wise"}
    aware = cal.evaluate(np.tile(y, 4), cluster=np.tile(np.arange(400), 4), **copies)
    assert aware.n_clusters == 400
    for name in ("brier", "nll", "accuracy"):
        length, found = (np.ptp(ev.metrics[name].interval) for ev in (once, aware))
        assert found == pytest.approx(length, rel=0.05)
    lengths = [np.ptp(ev.decompositions["log"].total.interval) for ev in (once, aware)]
    assert lengths[1] == pytest.approx(lengths[0], rel=0.05)


def test_a_sketch_with_clusters_and_weights_is_as_sure_as_rows():
    rng = np.random.default_rng(2)
    h = np.repeat(rng.beta(4, 1, 300), 5)
    w, cluster = rng.lognormal(size=1500), np.repeat(np.arange(300), 5)
    a = np.repeat(rng.random(300), 5) * 0.5 + 0.5 * rng.random(1500) < h
    rows = cal.evaluate_pairs(a, h, sample_weight=w, cluster=cluster % 100)
    sketch = cal.Sketch()
    for part in np.array_split(rng.permutation(1500), 3):
        kept = {"sample_weight": w[part], "cluster": cluster[part] % 100}
        sketch.update_pairs(a[part], h[part], **kept)
    found = cal.evaluate(sketch)
    for key, value in rows.metrics.items():
        if key == "ece_debiased":
            continue  # bins of 100 groups: ties of the sketch
        assert float(found.metrics[key]) == pytest.approx(float(value), abs=2e-3), key
        length = np.ptp(value.interval)
        close = pytest.approx(value.interval, abs=0.12 * length + 1e-3)
        assert found.metrics[key].interval == close, key


# -- means, shares and few surprises -----------------------------------------------


def slow_mean(values, weight):
    """Sandwich error of a weighted mean, row by row."""
    mean = sum(w * x for w, x in zip(weight, values, strict=True)) / sum(weight)
    spread = sum(w * w * (x - mean) ** 2 for w, x in zip(weight, values, strict=True))
    return mean, spread**0.5 / sum(weight)


def test_a_weighted_mean_has_the_sandwich_interval_of_student():
    rng = np.random.default_rng(3)
    h, w = rng.uniform(0.3, 0.7, 3000), rng.lognormal(size=3000)
    a = (rng.random(3000) < h).astype(float)
    ev = cal.evaluate_pairs(a, h, sample_weight=w)
    mean, se = slow_mean((a - h) ** 2, w)
    half = t.ppf(0.975, w.sum() ** 2 / (w**2).sum() - 1) * se
    found = ev.metrics["brier"]
    assert float(found) == pytest.approx(mean)
    assert found.interval == pytest.approx((mean - half, mean + half), rel=1e-3)
    _, se = slow_mean(h - a, w)
    ends = ev.metrics["confidence_gap"].interval
    assert np.ptp(ends) == pytest.approx(2 * 1.96 * se, rel=0.02)


def test_few_surprises_have_the_interval_of_fay_and_feuer():
    # Equal costs: the exact interval of a Poisson count, here one in 1000 rows.
    one = Surprises(0.001, 0.001**2, 0.001, 1.0)
    down, up = one.reach(0.95)
    exact = chi2.ppf(0.025, 2) / 2000, chi2.ppf(0.975, 4) / 2000
    assert (0.001 - down, 0.001 + up) == pytest.approx(exact)
    none = Surprises(0.0, 0.0, 0.001, 1.0)
    assert none.reach(0.95) == pytest.approx((0.0, chi2.ppf(0.975, 2) / 2000))
    assert Surprises(0.0, 0.0, 0.001, 0.002).reach(0.95) == (0.0, 0.002)


@pytest.mark.parametrize("misses", [0, 1, 3])
def test_a_loss_without_misses_may_be_larger(misses):
    hit = np.ones(300)
    hit[:misses] = 0
    for key, cost in (("nll", np.log(99)), ("brier", 0.98)):
        low, high = cal.evaluate_pairs(hit, np.full(300, 0.99)).metrics[key].interval
        calm = {"nll": -np.log(0.99), "brier": 1e-4}[key]
        assert 0 <= low <= (calm + misses * cost / 300) * (1 + 1e-12)
        most = chi2.ppf(0.975, 2 * misses + 2) / 600 * cost
        assert high == pytest.approx(calm + most, rel=0.02)


@pytest.mark.parametrize("misses", [1, 3, 12])
def test_copies_in_clusters_are_as_few_surprises_as_the_rows_they_copy(misses):
    hit, h = np.arange(100) >= misses, np.full(100, 0.99)
    six = np.repeat(np.arange(100), 6)
    for key in ("nll", "brier"):
        one = cal.evaluate_pairs(hit, h).metrics[key].interval
        often = cal.evaluate_pairs(hit[six], h[six], cluster=six).metrics[key].interval
        assert often == pytest.approx(one, abs=0.02 * np.ptp(one))


def all_right(clusters=20, size=100):
    """Clusters without an error, whose confidences differ a little."""
    cluster = np.repeat(np.arange(clusters), size)
    return np.ones(len(cluster)), np.linspace(0.9, 0.95, len(cluster)), cluster


def uppers(hit, h, cluster):
    """How bad things may be, as far as rows tell: larger is worse."""
    ev = cal.evaluate_pairs(hit, h, cluster=cluster, resamples=100)
    curve = cal.risk_coverage(hit, confidence=h, cluster=cluster)
    risk = {"confidence": 1 - h, "cluster": cluster}
    benefit = cal.decision_curve(1 - hit, thresholds=[0.05, 0.07, 0.2], **risk)
    found = {key: ev.metrics[key].interval[1] for key in ("brier", "nll", "aurc")}
    found["gap"] = ev.metrics["confidence_gap"].interval[1] + 0.075
    found["risk"] = curve.high[-1]
    return found | dict(zip("abc", benefit.high, strict=True))


def test_clusters_that_are_all_right_count_once_each():
    many, few, alone = (uppers(*all_right(*x)) for x in ((20, 100), (20, 5), (2000, 1)))
    for key, bound in many.items():
        assert bound == pytest.approx(few[key], rel=0.05), key
        assert bound > 0.1, key
        assert bound > alone[key] + 0.06, key


def test_one_error_of_many_rows_does_not_tell_how_much_alike_clusters_are():
    hit, h, cluster = all_right()
    none = uppers(hit, h, cluster)
    hit[777] = 0
    one, alone = uppers(hit, h, cluster), uppers(hit, h, np.arange(len(h)))
    for key, bound in none.items():
        assert alone[key] < one[key] < 1.01 * bound, key
    assert one["gap"] > 0.02
    assert one["risk"] > 0.02


def test_fewer_accepted_examples_without_an_error_are_known_less_well():
    cluster, rng = np.repeat(np.arange(40), 100), np.random.default_rng(0)
    hit = np.where(cluster < 20, 1.0, rng.random(4000) < 0.7)
    h = np.linspace(0.99, 0.6, 4000)
    curve = cal.risk_coverage(hit, confidence=h, cluster=cluster)
    some, half = (curve.accuracy_at(x).interval[0] for x in (0.2, 0.5))
    assert some < half < 0.86


def test_models_that_hardly_disagree_are_not_given_a_whole_cluster_of_difference():
    rng = np.random.default_rng(1)
    p, cluster = rng.beta(2, 3, 300), np.repeat(np.arange(20), 15)
    y = (rng.random(300) < p).astype(int)
    one, other = (cal.evaluate(y, probs=x, cluster=cluster) for x in (p, p**1.1))
    found = cal.decision_curve(one, baseline=other, thresholds=[0.1])
    assert found.high[0] - found.low[0] < 0.1


def test_however_many_copies_a_cluster_has_the_interval_is_the_same():
    rng = np.random.default_rng(4)
    h = rng.beta(0.15, 0.15, 60).clip(0.003, 0.997)
    hit = rng.random(60) < h
    some, many = (np.repeat(np.arange(60), size) for size in (8, 400))
    for key in ("nll", "brier"):
        few, more = (
            cal.evaluate_pairs(hit[x], h[x], cluster=x).metrics[key]
            for x in (some, many)
        )
        assert more.interval == pytest.approx(few.interval, rel=1e-6)
        assert more.method == few.method == "gamma, clusters"


@pytest.mark.simulation
def test_rare_events_are_covered():
    covered = np.zeros(3)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        h = sigmoid(rng.normal(-8, 1.5, 300))
        a = rng.random(300) < h
        ev = cal.evaluate_pairs(a, h, interval=None)
        truth = 0.00505, 0.00107
        for i, (key, value) in enumerate(zip(("nll", "brier"), truth, strict=True)):
            low, high = ev.metrics[key].interval
            covered[i] += low <= value <= high
        low, high = ev.metrics["accuracy"].interval
        covered[2] += low <= 0.00108 <= high
    assert (covered >= 0.92 * 60).all()


def test_shares_end_where_they_can():
    for p, n in ((1.0, 37.0), (0.0, 37.0), (1 / 37, 37.0), (0.5, 1.0)):
        low, high = of_share(p, n, 0.95)
        assert 0 <= low <= p <= high <= 1
    # One in 300: Wilson's lower end, 0.18, is above what is told apart from nothing.
    assert 300 * of_share(1 / 300, 300, 0.95)[0] == pytest.approx(-np.log(0.95))


def test_few_events_of_a_kind_leave_auroc_as_open_as_a_share():
    rng = np.random.default_rng(4)
    h = rng.random(1000)
    a = np.zeros(1000)
    a[np.argsort(h)[-8:-4]] = 1
    found = cal.evaluate_pairs(a, h).metrics["auroc"]
    low, high = wilson_of(float(found), 4, 0.95)
    assert found.interval[0] <= low
    assert high <= found.interval[1]
    assert found.method == "Wilson"


def hospitals(count, seed, n=1500):
    """Risks by a feature, and outcomes that depend on the hospital as well."""
    rng = np.random.default_rng([seed, count])
    cluster, x = rng.integers(0, count, n), rng.normal(-1.5, 1, n)
    y = rng.random(n) < sigmoid(x + rng.normal(0, 0.5, count)[cluster])
    return y, sigmoid(x), cluster


@pytest.mark.parametrize("count", [12, 20, 30])
def test_few_clusters_of_many_events_leave_auroc_and_dsc_known(count):
    y, p, cluster = hospitals(count, 0)
    ev = cal.evaluate(y, probs=p, cluster=cluster, resamples=100)
    found = ev.metrics["auroc"]
    assert found.method == "DeLong, clusters"
    assert np.ptp(found.interval) < 0.12
    assert ev.metrics["dsc"].interval[0] > 0
    assert cal.clinical(ev, resamples=100).c_statistic.interval == found.interval


def test_copies_of_few_events_leave_auroc_as_open_as_a_share():
    y, p, _ = hospitals(12, 1, n=60)
    copies = np.repeat(np.arange(60), 30)
    ev = cal.evaluate(y[copies], probs=p[copies], cluster=copies, resamples=100)
    assert ev.metrics["auroc"].method == "Wilson, clusters"


@pytest.mark.simulation
@pytest.mark.parametrize("count", [12, 20])
def test_auroc_of_few_clusters_is_covered(count):
    held = 0
    for seed in range(150):
        y, p, cluster = hospitals(count, seed)
        sample = read_sample(y, {"probs": p}, cluster, None, 0.95).sample
        (low, high), _ = of_auroc(sample.rows, sample.auroc, 0.95)
        held += low <= 0.736 <= high  # of 2,000,000 rows in 200,000 hospitals
    assert held >= 0.92 * 150


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


# -- classes -------------------------------------------------------------------------


def test_what_is_too_little_in_one_class_adds_up_over_many():
    k, n, rng = 60, 6000, np.random.default_rng(0)
    p = np.maximum(rng.dirichlet(np.full(k, 0.02), n), 1e-12)
    p /= p.sum(axis=1, keepdims=True)
    share = (
        0.75 * p + 0.25 / k
    )  # of a class where its forecast is p, whatever the others
    y = (share.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, k - 1)
    truth = ((share - p) ** 2).sum(axis=1).mean()
    found = cal.evaluate(y, probs=p, target="class-wise", interval=None)
    error = found.decomposition.calibration
    low, high = error.interval
    assert low <= truth <= high
    assert error == pytest.approx(truth, rel=0.1)
    alone = sum(float(ev.decomposition.calibration) for ev in found.per_class)
    assert alone < 0.85 * truth
    sketch = cal.Sketch(target="class-wise").update(y, probs=p)
    ours = cal.evaluate(sketch, interval=None).decomposition.calibration
    assert ours == pytest.approx(error, rel=1e-9)


@pytest.mark.parametrize(
    ("target", "worst"), [("top-label", 2), ("positive", 1), ("pairs", 1)]
)
def test_a_perfect_model_may_err_as_often_as_its_accuracy_says(target, worst):
    """The Brier score of certain predictions is so many times their rate of errors."""
    y = np.random.default_rng(0).integers(0, 4, 1000)
    found = {
        "top-label": lambda: cal.evaluate(y, probs=np.eye(4)[y]),
        "positive": lambda: cal.evaluate(y > 1, probs=(y > 1) * 1.0),
        "pairs": lambda: cal.evaluate_pairs(np.ones(1000, int), np.ones(1000)),
    }[target]()
    most = worst * (1 - found.metrics["accuracy"].interval[0])
    for total in (found.metrics["brier"], found.decompositions["brier"].total):
        assert total.interval == (0, pytest.approx(most, rel=0.1))
    high = found.metrics["confidence_gap"].interval[1]
    assert high == pytest.approx(most / worst, rel=0.1)
    assert found.metrics["nll"] == 0
    assert found.metrics["nll"].interval is None
    text = " ".join(str(found).split())
    assert "every example was certain and correct" in text
    assert "cannot tell one example from another" not in text


def test_one_error_more_never_lowers_the_upper_end_of_certain_predictions():
    y = np.random.default_rng(0).integers(0, 4, 1000)
    tops = []
    for wrong in range(4):
        probs = np.eye(4)[(y + (np.arange(1000) < wrong)) % 4]
        tops.append(cal.evaluate(y, probs=probs).metrics["brier"].interval[1])
    assert tops == sorted(tops)
    assert tops[0] < tops[1]


def test_a_perfect_model_in_clusters_is_as_unsure_as_the_clusters():
    y = np.random.default_rng(0).integers(0, 4, 1000)
    ev = cal.evaluate(y, probs=np.eye(4)[y], cluster=np.arange(1000) // 5)
    most = 2 * (1 - ev.metrics["accuracy"].interval[0])
    assert ev.metrics["brier"].interval[1] == pytest.approx(most, rel=0.1)


def test_what_rises_again_after_a_fall_is_counted_once():
    """Classes that are hardly told apart, and far from as sure as they could be."""

    def draw(n, seed):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=(n, 10))
        p, q = (
            np.exp(t * z) / np.exp(t * z).sum(axis=1, keepdims=True) for t in (0.1, 8)
        )
        return p, q, (q.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, 9)

    p, q, _ = draw(200_000, 1)
    order = np.argsort(p[:, 0]).reshape(500, 400)
    truth = 10 * ((q - p)[order, 0].mean(axis=1) ** 2).mean()
    p, _, y = draw(900, 0)
    error = cal.evaluate(y, probs=p, target="class-wise").decomposition.calibration
    assert error == pytest.approx(truth, rel=0.05)
    assert error.interval[0] < truth < error.interval[1]


def test_what_varies_between_clusters_beside_surprises_is_no_surprise():
    """Forecasts of races differ: some are 0.3 on all days, without an error in them."""
    rng = np.random.default_rng(5)
    race = np.repeat(np.arange(36), 10)
    likely = rng.beta(0.3, 0.3, 36).clip(0.002, 0.998)
    won = (rng.random(36) < likely).astype(int)
    p = np.clip(likely[race] + rng.normal(0, 0.01, 360), 0.001, 0.999)
    ev = cal.evaluate(won[race], probs=p, cluster=race, resamples=100)
    means = np.bincount(race, (p - won[race]) ** 2) / 10
    resampled = means[rng.integers(0, 36, (4000, 36))].mean(axis=1)
    low, high = ev.metrics["brier"].interval
    assert low < np.median(resampled)
    assert np.quantile(resampled, 0.95) < high < 3 * np.quantile(resampled, 0.975)


@pytest.mark.parametrize(
    "risk",
    [
        [0.2, 0.3, 0.4],
        [0.2, 0.3, 0.4, 0.3],
        [0.2, 0.3, 0.4, 0.3, 0.25],
        [0.2, 0.25, 0.3, 0.35, 0.4, 0.3],
        [0.9, 0.8, 0.95, 0.7, 0.85, 0.6],
        [0.25] * 7,
        [0.1, 0.3, 0.5, 0.7, 0.9, 0.2, 0.6],
    ],
)
def test_intervals_of_a_few_rows_hold_by_enumeration(risk):
    assert missed_by_enumeration(risk).max() < 0.05


def test_intervals_of_forecasts_of_one_half_are_the_exception():
    for n in (3, 4, 5, 6):
        *scores, gap = missed_by_enumeration([0.5] * n)
        assert max(scores) == 0
        assert gap <= 0.125


def missed_by_enumeration(risk):
    """How often intervals of Brier score, NLL and observed - expected miss the truth."""
    risk, missed = np.array(risk), np.zeros(3)
    brier = np.mean(risk * (1 - risk))
    entropy = -np.mean(risk * np.log(risk) + (1 - risk) * np.log(1 - risk))
    for outcome in itertools.product([0, 1], repeat=len(risk)):
        hit = np.array(outcome)
        chance = np.prod(np.where(hit == 1, risk, 1 - risk))
        ev = cal.evaluate_pairs(hit, risk, interval=None)
        off = cal.clinical(ev, resamples=100).in_the_large.interval
        ends = ev.metrics["brier"].interval, ev.metrics["nll"].interval, off
        truths = zip(ends, (brier, entropy, 0.0), strict=True)
        missed += [chance * (not low <= truth <= high) for (low, high), truth in truths]
    return missed
