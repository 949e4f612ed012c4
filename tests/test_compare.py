"""Paired differences: influences against their definition, intervals, sentences."""

from dataclasses import replace

import numpy as np
import pytest
from make import softmax
from rowful import keep, rowful

import calibrant as cal
from calibrant._base.comparison import Comparison
from calibrant._base.measures import MEASURES
from calibrant._base.records import Estimate
from calibrant._inputs.divergences import LOG
from calibrant._inputs.predictions import fingerprint, read_predictions
from calibrant._rows.reduce import reduce_to_columns
from calibrant._stats.close_pairs import brier_error
from calibrant._stats.influence import pair_values
from calibrant._stats.metrics import METRICS
from calibrant._stats.neighbours import cells_of_rows
from calibrant._stats.platt_error import local_error
from calibrant._verbs.compare import (
    SAME,
    Contrast,
    compare,
    holm,
    holm_adjusted,
    independent_difference,
    is_clear,
    p_value,
    paired_differences,
    rows_of,
    told,
)
from calibrant._verbs.study import shared_rows

CIFAR = "cifar10_peterson_"


def problem(n=300, k=4, seed=0, noise=0.4, scale=(1.0, 2.0)):
    """Labels and the logits of two models, the second one noisier."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(n, k))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    return y, scale[0] * z, scale[1] * (z + noise * rng.normal(size=z.shape))


def two(n=300, seed=0, **options):
    y, a, b = problem(n, seed=seed)
    return rowful(y, logits=a, name="A", **options), rowful(
        y, logits=b, name="B", **options
    )


def se(difference, level=0.95):
    low, high = difference.interval
    return (high - low) / (2 * 1.959964)


# -- fingerprints -----------------------------------------------------------------


def test_equal_values_have_equal_fingerprints_whatever_their_type():
    y = [0, 1, 1, 3, 2]
    known = fingerprint(y)
    for kind in (np.int8, np.int64, np.uint16, np.float32, np.float64):
        assert fingerprint(np.array(y, kind)) == known
    assert fingerprint(y, np.ones(5)) == fingerprint(y, [True] * 5) == known
    assert fingerprint([0, 7, 1, 1, 3, 2], [1, 0, 1, 1, 1, 1]) == known
    assert fingerprint([True, False]) == fingerprint([1, 0]) == fingerprint([1, -0.0])


def test_other_rows_have_other_fingerprints():
    known = fingerprint([0, 1, 1])
    soft = np.eye(3)[[0, 1, 1]]
    others = [[1, 0, 1], [0, 1], [0, 1, 2], soft, soft.ravel()]
    prints = [fingerprint(other) for other in others]
    prints.append(fingerprint([0, 1, 1], [1, 1, 2]))
    assert len({known, *prints}) == 7


def test_rows_shared_by_two_sets_are_counted():
    y, z, _ = problem(200)
    assert shared_rows(z[:120], y[:120], z[120:], y[120:]) == 0
    assert shared_rows(z[:120], y[:120], z[100:], y[100:]) == 20
    assert shared_rows(z[:120], y[:120], z[100:], (y[100:] + 1) % 4) == 0
    names = np.array(["a", "b", "c", "d"])[y]
    assert shared_rows(z[:120], names[:120], z[100:], names[100:]) == 20


def test_scores_of_few_values_agree_by_chance_and_prove_nothing():
    rng = np.random.default_rng(0)
    p, y = np.round(rng.random(400), 1), rng.integers(0, 2, 400)
    assert shared_rows(p[:200], y[:200], p[200:], y[200:]) == 0
    assert shared_rows(p[:200], y[:200], p[:200], y[:200]) == 200  # the same file


@pytest.mark.parametrize("digits", [2, 3, 4, 6])
def test_rounded_scores_agree_by_chance_and_copies_more_often(digits):
    rng = np.random.default_rng(digits)
    for _ in range(20):
        p = rng.random(400).round(digits)
        y = (rng.random(400) < p).astype(int)
        assert shared_rows(p[:200], y[:200], p[200:], y[200:]) == 0
        if digits > 2:
            assert shared_rows(p[:200], y[:200], p[100:300], y[100:300]) > 50


def test_a_few_copies_are_found_where_scores_are_not_rounded():
    y, z, _ = problem(200)
    assert shared_rows(z[:100], y[:100], z[97:], y[97:]) == 3
    assert shared_rows(z[:100].round(2), y[:100], z[85:].round(2), y[85:]) == 15


def test_a_difference_of_accuracies_stays_between_its_bounds():
    given = {"a": [0.9, 0.2], "b": [0.4, 0.2]}
    models = [cal.evaluate([1, 0], probs=p, name=name) for name, p in given.items()]
    low, high = cal.compare(*models).differences["b"]["accuracy"].interval
    assert (low, high < 1) == (-1, True)


# -- influences -------------------------------------------------------------------

EXACT = (
    "accuracy",
    "nll",
    "brier",
    "ece",
    "ks_error",
    "ece_mass",
    "top_label_ece",
    "mcb",
)


@pytest.mark.parametrize("key", [*EXACT, "dsc", "confidence_gap"])
def test_the_mean_influence_is_the_measure(key):
    for ev in two():
        values = rows_of(ev).influence(key)
        expected = ev.metrics[key]
        assert ev.columns.mean(values) == pytest.approx(expected, abs=1e-12)


def moved(y, scores, key, row, step, **options):
    """How much a number changes per step if one row counts a little more, times n."""
    values = []
    for sign in (1, -1):
        w = np.ones(len(y))
        w[row] += sign * step
        ev = cal.evaluate(y, logits=scores, sample_weight=w, interval=None, **options)
        values.append(
            float(MEASURES[key].of(ev) if key in MEASURES else ev.metrics[key])
        )
    return (values[0] - values[1]) / (2 * step) * len(y)


@pytest.mark.parametrize(
    ("key", "tolerance"),
    [(key, 1e-6) for key in (*EXACT, "dsc", "auroc", "ace", "total", "confidence_gap")]
    + [("smooth_ece", 0.02)],
)
def test_influence_is_how_much_a_row_moves_the_number(key, tolerance):
    y, _, z = problem(80, seed=3)
    rows = rows_of(rowful(y, logits=z))
    values = rows.influence(key)
    centred = values - values.mean()
    for row in (0, 17, 41, 79):
        found = moved(y, z, key, row, 1e-5)
        assert found == pytest.approx(centred[row], abs=tolerance)


def test_influence_at_a_fixed_bandwidth_is_how_much_a_row_moves_the_number():
    y, _, z = problem(80, seed=4)
    options = {"bandwidth": 0.1}
    values = rows_of(rowful(y, logits=z, **options)).influence("calibration")
    found = [
        moved(y, z, "calibration", row, 1e-5, **options) for row in range(0, 80, 9)
    ]
    np.testing.assert_allclose((values - values.mean())[::9], found, atol=2e-3)


@pytest.mark.parametrize("name", ["brier", "log"])
def test_influence_on_the_calibration_error_scatters_as_its_standard_error(name):
    y, _, z = problem(400)
    rows = rows_of(rowful(y, logits=z, divergence=name))
    values = rows.influence("calibration")
    cells = cells_of_rows(rows.sample.columns)
    expected = brier_error(cells) if name == "brier" else local_error(cells, LOG)
    assert values.std() / 20 == pytest.approx(expected.se, rel=0.1)
    assert values.mean() < expected.value  # what recalibration gains on new rows
    assert np.allclose(
        rows.influence("sharpness_gap"), rows.influence("total") - values
    )


def test_the_tight_counterpart_scales_the_influence():
    y, _, z = problem(200)
    plain, tight = (
        rows_of(rowful(y, logits=z, counterpart=kind)).influence("calibration")
        for kind in ("paper", "tight")
    )
    np.testing.assert_allclose(tight, plain * 4 / 3)


def test_what_has_no_first_order_has_no_interval():
    a, b = two()
    found = paired_differences(rows_of(b), rows_of(a))
    assert METRICS["mce"].influence is None
    assert found["mce"].interval is None
    assert float(found["mce"]) == b.metrics["mce"] - a.metrics["mce"]


# -- intervals --------------------------------------------------------------------


def test_an_interval_of_a_mean_is_the_textbook_one():
    a, b = two()
    d = b.columns.losses["brier"] - a.columns.losses["brier"]
    found = paired_differences(rows_of(b), rows_of(a))["brier"]
    assert float(found) == pytest.approx(d.mean())
    assert se(found) == pytest.approx(d.std() / np.sqrt(len(d)), rel=0.03)
    assert found.method == "paired"


def test_weights_give_the_sandwich_error_of_a_difference():
    y, a, b = problem(600)
    w = np.random.default_rng(5).lognormal(size=600)
    given = {"sample_weight": w}
    a, b = (rowful(y, logits=z, name=n, **given) for z, n in ((a, "A"), (b, "B")))
    d = b.columns.losses["log"] - a.columns.losses["log"]
    mean = (w * d).sum() / w.sum()
    error = np.sqrt((w**2 * (d - mean) ** 2).sum()) / w.sum()
    found = paired_differences(rows_of(b), rows_of(a))["nll"]
    assert float(found) == pytest.approx(mean)
    assert se(found) == pytest.approx(error, rel=0.1)


@pytest.mark.simulation
def test_differences_on_rare_events_are_covered():
    rng = np.random.default_rng(6)
    z = rng.normal(-7, 1.5, 400_000)
    p, q = (1 / (1 + np.exp(-x)) for x in (z, z + 1))
    truth = np.mean((q - p) * (p + q - 2 * p))
    covered = 0
    for _ in range(60):
        some = rng.integers(0, len(p), 300)
        y = (rng.random(300) < p[some]).astype(int)
        one, two = (
            cal.evaluate(y, probs=x[some], name=n, interval=None)
            for x, n in ((p, "A"), (q, "B"))
        )
        low, high = cal.compare(one, two).differences["B"]["brier"].interval
        covered += low <= truth <= high
    assert covered >= 0.9 * 60


def test_accuracy_has_the_adjusted_interval_of_discordant_rows():
    a, b = two()
    gained = int((b.columns.hit > a.columns.hit).sum())
    lost = int((b.columns.hit < a.columns.hit).sum())
    p, q, n = (gained + 1) / 302, (lost + 1) / 302, 302
    half = 1.959964 * np.sqrt((p + q - (p - q) ** 2) / n)
    found = paired_differences(rows_of(b), rows_of(a))["accuracy"]
    assert float(found) == pytest.approx((gained - lost) / 300)
    assert found.interval == pytest.approx((p - q - half, p - q + half), abs=1e-7)


def bootstrapped(y, a, b, metric, count=120):
    rng = np.random.default_rng(1)
    found = []
    for _ in range(count):
        rows = rng.integers(0, len(y), len(y))
        found.append(metric(y[rows], logits=b[rows]) - metric(y[rows], logits=a[rows]))
    return np.std(found)


@pytest.mark.parametrize("key", ["ece", "smooth_ece", "ks_error", "auroc", "ace"])
def test_standard_errors_are_those_of_a_paired_bootstrap(key):
    # Both models err well beyond noise, where the bootstrap of an error is right too.
    y, a, b = problem(800, scale=(2.5, 4.0))
    ours = paired_differences(
        rows_of(rowful(y, logits=b, name="B")), rows_of(rowful(y, logits=a, name="A"))
    )[key]
    wider = 0.5 if key == "ace" else 0.25  # by what noise adds in bins of few rows
    expected = bootstrapped(y, a, b, getattr(cal, key))
    assert se(ours) == pytest.approx(expected, rel=wider)


def test_intervals_of_decompositions_are_as_wide_as_samples_scatter():
    found = []
    for seed in range(80):
        y, *scores = problem(400, seed=seed)
        rows = [reduce_to_columns(read_predictions(y, logits=z)) for z in scores]
        error = np.subtract(*[brier_error(cells_of_rows(x)).value for x in rows])
        loss = np.subtract(*[x.losses["brier"] for x in rows])
        q = np.subtract(*[pair_values(x) for x in rows])
        found.append([error, q.std() / 20, loss.mean() - error, (loss - q).std() / 20])
    d, d_se, gap, gap_se = np.array(found).T
    assert 0.8 < d_se.mean() / d.std() < 1.3
    assert 0.8 < gap_se.mean() / gap.std() < 1.3


@pytest.mark.parametrize("divergence", ["brier", "log"])
def test_frequency_2_is_a_row_twice_and_0_is_no_row(divergence):
    y, a, b = problem(200)
    w = np.random.default_rng(2).integers(0, 3, 200)
    options = {"divergence": divergence}
    weighted = compare(
        rowful(y, logits=a, name="A", frequency=w, **options),
        rowful(y, logits=b, name="B", frequency=w, **options),
    ).differences["B"]
    y, a, b = (np.repeat(x, w, axis=0) for x in (y, a, b))
    repeated = compare(
        rowful(y, logits=a, name="A", **options),
        rowful(y, logits=b, name="B", **options),
    ).differences["B"]
    for key, found in weighted.items():
        assert float(found) == pytest.approx(float(repeated[key]), abs=1e-9), key
        if found.interval is not None:
            assert found.interval == pytest.approx(repeated[key].interval, abs=1e-7), (
                key
            )


def test_the_other_way_round_the_signs_change():
    a, b = two()
    there, back = compare(a, b).differences["B"], compare(b, a).differences["A"]
    for key, found in there.items():
        assert float(found) == pytest.approx(-float(back[key]))
        if found.interval is not None and key != "accuracy":
            low, high = back[key].interval
            assert found.interval == pytest.approx((-high, -low))


def test_more_coverage_is_wider():
    a, b = two()
    wide, narrow = (compare(a, b, level=x).differences["B"]["ece"] for x in (0.99, 0.5))
    assert wide.interval[0] < narrow.interval[0] < narrow.interval[1] < wide.interval[1]


# -- where the first order is wrong -----------------------------------------------------


def tempered(hits, h, temperature=0.7):
    """A model of pairs, and another that is less sure of the same rows."""
    odds = (h / (1 - h)) ** temperature
    return (
        cal.evaluate_pairs(hits, h, name="A"),
        cal.evaluate_pairs(hits, odds / (1 + odds), name="B"),
    )


def test_models_that_tell_the_same_rows_apart_differ_in_d_cal_as_in_loss():
    rng = np.random.default_rng(1)
    h = rng.beta(20, 0.5, 300)
    found = compare(*tempered(rng.random(300) < h, h)).differences["B"]
    low, high = found["total"].interval
    value = float(found["calibration"])
    assert found["calibration"].interval == (min(low, value), max(high, value))
    shuffled = cal.evaluate_pairs(rng.random(300) < h, rng.permutation(h), name="C")
    other = compare(tempered(rng.random(300) < h, h)[0], shuffled).differences["C"]
    assert other["calibration"].interval != other["total"].interval


def test_rows_without_a_surprise_leave_room_for_those_to_come():
    hits, h = np.ones(100, bool), np.linspace(0.97, 0.99, 100)
    found = compare(*tempered(hits, h)).differences["B"]
    low, high = found["nll"].interval
    assert low < 0  # one error in 50 would make A the worse one
    assert high > 0.02


@pytest.mark.parametrize(("errors", "known"), [(2, False), (3, True)])
def test_few_examples_and_hardly_a_surprise_give_a_difference_no_interval(
    errors, known
):
    hits, h = np.arange(99) >= errors, np.linspace(0.97, 0.99, 99)
    found = compare(*tempered(hits, h))
    measures = ("total", "calibration", "brier", "nll")
    assert all(
        (found.differences["B"][m].interval is not None) == known for m in measures
    )
    assert any("no interval is known" in s for s in found.sentences) != known


def test_an_error_that_may_be_0_is_compared_by_the_models_own_intervals():
    rng = np.random.default_rng(2)
    h = rng.uniform(0.3, 0.95, 2000)
    a, b = tempered(rng.random(2000) < h, h, 0.4)
    assert a.metrics["ece"].interval[0] <= 0 < b.metrics["ece"].interval[0]
    apart = independent_difference(b, a, MEASURES["ece"])
    low, high = compare(a, b).differences["B"]["ece"].interval
    assert low <= apart.interval[0]
    assert high == apart.interval[1]


def test_the_noise_of_an_error_that_may_be_0_is_added_not_squared():
    rng = np.random.default_rng(2)
    h = rng.uniform(0.3, 0.95, 2000)
    a, b = tempered(rng.random(2000) < h, h, 0.4)
    x, y = b.metrics["ece"], a.metrics["ece"]
    found = independent_difference(b, a, MEASURES["ece"])
    assert found.interval[1] == pytest.approx(x.interval[1])  # the other may have none
    down = np.hypot(x - x.interval[0], y.interval[1] - y)
    assert found.interval[0] == pytest.approx(float(found) - down)


def test_errors_of_opposite_sign_differ_by_twice_their_noise():
    """One confidence is too high and one too low: what lowers one error raises the other."""
    hits = np.arange(1000) % 100 < 77
    one, two = (
        cal.evaluate_pairs(hits, np.full(1000, h), name=name)
        for name, h in (("a", 0.79), ("b", 0.72))
    )
    found = compare(one, two).differences["b"]["ece"]
    reach = 2 * 1.96 * np.sqrt(0.77 * 0.23 / 1000)
    assert found.interval[0] <= found - 0.95 * reach
    assert found.interval[1] >= found + 0.95 * reach


def test_one_confidence_off_by_more_or_less_is_not_the_same_in_every_row():
    hits = np.arange(50) % 4 > 0
    found = compare(*tempered(hits, np.full(50, 0.8))).differences["B"]["ece"]
    assert found.method != SAME
    assert found.interval[1] - found.interval[0] > 0.1


@pytest.mark.simulation
def test_differences_of_rare_errors_are_covered():
    rng = np.random.default_rng(3)
    held = {"nll": 0, "calibration": 0}
    h = 1 - np.full(100, 0.02) * rng.uniform(0.5, 1.5, 100)
    odds = (h / (1 - h)) ** 0.7
    g = odds / (1 + odds)
    brier = float(np.mean((h - g) ** 2))
    nll = float(np.mean(h * np.log(h / g) + (1 - h) * np.log((1 - h) / (1 - g))))
    for _ in range(100):
        found = compare(*tempered(rng.random(100) < h, h)).differences["B"]
        for key, truth in (("nll", nll), ("calibration", brier)):
            low, high = found[key].interval
            held[key] += low <= truth <= high
    assert min(held.values()) >= 90


# -- compare ----------------------------------------------------------------------


def test_real_networks_compared_in_plain_sentences(data):
    models = {}
    for name in ("wrn_28_10", "resnet_basic_110", "resnet_preact_bottleneck_164"):
        arrays = data(CIFAR + name)
        scores = {k: arrays[k] for k in ("probs", "logits") if k in arrays}
        models[name] = rowful(arrays["labels"], name=name, **scores)
    found = compare(*models.values())
    told = found.sentences
    assert told[0] == (
        "resnet_basic_110's Brier score is 0.0374 higher [0.0306, 0.0442]: "
        "significant on these 10,000 examples."
    )
    assert "14 of 14 differences are significant" in told[-1]
    assert told[-1].endswith("All remain significant after Holm's correction.")
    close = compare(*models.values(), baseline="resnet_basic_110")
    assert (
        "resnet_preact_bottleneck_164's ECE differs by -0.0027 [-0.0073, 0.0019]: not "
        "significant on these 10,000 examples."
    ) in close.sentences
    assert "Against resnet_basic_110:" in str(close)


def test_a_comparison_keeps_what_it_was_made_of():
    a, b = two()
    plain = Comparison((a, b), "tested on 300 rows")
    found = compare(plain)
    assert isinstance(found, Comparison)
    assert found.evaluations == (a, b)
    assert (found.baseline, found.protocol, found.paired) == (
        "A",
        "tested on 300 rows",
        True,
    )
    assert len(told(found.differences["B"])) == 7


def test_a_contrast_survives_json():
    found = compare(*two())
    again = Contrast.from_json(found.to_json())
    assert again.sentences == found.sentences
    for key, value in found.differences["B"].items():
        other = again.differences["B"][key]
        assert (float(value), value.interval, value.method) == (
            float(other),
            other.interval,
            other.method,
        )
    assert again.to_json() == found.to_json()


def test_models_of_other_rows_are_refused_unless_told():
    y, a, b = problem(300)
    one = rowful(y, logits=a, name="A")
    turned = rowful(y[::-1], logits=b[::-1], name="B")
    with pytest.raises(
        ValueError, match=r"'B' and 'A' were .* different rows.*paired=False"
    ):
        compare(one, turned)
    gone = keep(rowful(y, logits=b, name="B"), columns=None)
    with pytest.raises(ValueError, match=r"rows of 'B' are gone.*paired=False"):
        compare(one, gone)
    found = compare(one, gone, paired=False)
    assert found.differences["B"]["brier"].method == "independent rows"
    assert found.sentences[-1].startswith("Examples were not paired")
    assert "300 examples and 300 examples" in found.sentences[0]


def test_independent_intervals_combine_as_squares():
    a, b = two()
    measure = MEASURES["brier"]
    x, y = measure.of(b), measure.of(a)
    found = independent_difference(b, a, measure)
    down = np.hypot(x - x.interval[0], y.interval[1] - y)
    assert found.interval[0] == pytest.approx(float(found) - down)
    paired = paired_differences(rows_of(b), rows_of(a))["brier"]
    assert se(paired) < se(found)


def test_numbers_that_are_equal_are_called_the_same():
    """As many right, but in other examples."""
    hits = [[1, 1, 0, 0] * 50, [0, 0, 1, 1] * 50]
    a, b = (
        cal.evaluate_pairs(hit, [0.6, 0.5, 0.7, 0.4] * 50, name=name)
        for name, hit in zip("ab", hits, strict=True)
    )
    told = " ".join(cal.compare(a, b).sentences)
    assert (
        "Accuracy of b and a is the same; the interval of the difference is [-" in told
    )
    assert "accuracy differs by less than 0.0001" not in told


def test_models_must_be_evaluated_alike():
    y, a, b = problem(300)
    one = rowful(y, logits=a, name="A")
    with pytest.raises(ValueError, match="bins is 10 for 'B' and 15 for 'A'"):
        compare(one, rowful(y, logits=b, name="B", bins=10))
    with pytest.raises(ValueError, match=r"level is 0.5 for 'B' and 0.95 for 'A'"):
        compare(one, rowful(y, logits=b, name="B", level=0.5))
    with pytest.raises(ValueError, match="divergence is 'log'"):
        compare(one, rowful(y, logits=b, name="B", divergence="log"))
    with pytest.raises(ValueError, match="at least two models"):
        compare(one)
    with pytest.raises(ValueError, match="baseline must be one of 'A', 'B'"):
        compare(one, rowful(y, logits=b, name="B"), baseline="C")
    with pytest.raises(ValueError, match="level must be between 0 and 1, got 95"):
        compare(one, rowful(y, logits=b, name="B"), level=95)
    with pytest.raises(ValueError, match=r"has level 0.95, not 0.9\. Evaluate it with"):
        compare(one, rowful(y, logits=b, name="B"), level=0.9, paired=False)


@pytest.mark.parametrize(
    ("divergence", "column", "name"),
    [("rps", "d_TOT (rps)", "ranked probability score"), ("log", "NLL", "NLL")],
)
def test_the_score_that_was_asked_for_is_told_first_and_has_a_column(
    divergence, column, name
):
    y, a, b = problem(2000)
    models = {"A": a, "B": 3 * b}
    found = compare(
        *(rowful(y, logits=z, name=x, divergence=divergence) for x, z in models.items())
    )
    assert found.sentences[0].startswith(f"B's {name} is ")
    (head,) = [x for x in str(found).splitlines() if x.startswith("Model ")]
    assert column in head
    total = found["B"].decomposition.total - found["A"].decomposition.total
    assert f"{total:.4f} higher" in found.sentences[0]
    count = len([x for x in found.sentences if " on these " in x])
    assert f"of {count} differences" in found.sentences[-1]


@pytest.mark.parametrize(
    ("value", "ends", "said"),
    [
        (0.0097, (-8.3e-5, 0.0194), "0.0097 [-0.0001, 0.0194]"),
        (0.0097, (-3e-5, 0.0194), "0.0097 [-3.0e-05, 0.0194]"),  # not 0.0000
        (-7e-5, (-2e-4, 6e-5), "-0.0001 [-0.0002, 0.0001]"),
        (2e-5, (-2e-4, 6e-5), "less than 0.0001 [-0.0002, 0.0001]"),
    ],
)
def test_an_interval_about_0_is_told_in_decimals_that_keep_its_sides(value, ends, said):
    y, a, b = problem(300)
    found = compare(rowful(y, logits=a, name="A"), rowful(y, logits=b, name="B"))
    of_b = {**found.differences["B"], "brier": Estimate(value, ends, "paired")}
    told = replace(found, differences={"B": of_b}).sentences[0]
    assert told == (
        f"B's Brier score differs by {said}: not significant on these 300 examples."
    )


def test_as_many_differences_are_told_as_are_counted():
    """One that rounds to 0 has an interval, and is among those that are tested."""
    y, a, b = problem(300)
    found = compare(rowful(y, logits=a, name="A"), rowful(y, logits=b, name="B"))
    of_b = dict(found.differences["B"])
    of_b["brier"] = Estimate(0.02, (0.01, 0.03), "paired")
    of_b["nll"] = Estimate(0.02, (0.01, 0.03), "paired")
    of_b["calibration"] = Estimate(-2.4e-5, (-0.0021, 0.002), "paired")
    of_b["sharpness_gap"] = Estimate(4e-5, (3e-5, 5e-5), "paired")
    *told, reminder = replace(found, differences={"B": of_b}).sentences
    assert f"of {len(told)} differences are significant" in reminder
    assert told[3] == (
        "B's calibration error d_CAL differs by less than 0.0001 [-0.0021, 0.0020]: not "
        "significant on these 300 examples."
    )
    assert (
        told[4] == "B's sharpness gap differs by less than 0.0001 [3.0e-05, 5.0e-05]."
    )


def test_the_same_predictions_are_called_the_same():
    y, a, _ = problem(300)
    found = compare(rowful(y, logits=a, name="A"), rowful(y, logits=2 * a, name="B"))
    assert found.differences["B"]["accuracy"].method == SAME
    assert "Accuracy of B and A is the same for every example." in found.sentences
    assert not is_clear(found.differences["B"]["accuracy"])


def test_infinite_loss_is_said_and_has_no_interval():
    p = np.full((60, 2), 0.5)
    y = np.arange(60) % 2
    zeros = p.copy()
    zeros[0] = (0.0, 1.0)
    options = {"target": "top-label"}
    found = compare(
        rowful(y, probs=p, name="A", **options),
        rowful(y, probs=zeros, name="B", **options),
    )
    assert "B's NLL is infinite, A's is not." in found.sentences
    assert found.differences["B"]["nll"].interval is None
    back = compare(
        rowful(y, probs=zeros, name="A", **options),
        rowful(y, probs=zeros, name="B", **options),
    )
    assert "NLL of B and A is infinite." in back.sentences
    assert np.isnan(back.differences["B"]["nll"])


def test_pairs_are_compared_on_trust():
    rng = np.random.default_rng(5)
    h = rng.random((2, 500))
    a = rng.random((2, 500)) < h
    one, other = (rowful(a[i], confidence=h[i], name="AB"[i]) for i in (0, 1))
    found = compare(one, other)
    assert "cannot be checked" in found.sentences[-1]
    short = rowful(a[0, :400], confidence=h[0, :400], name="C")
    with pytest.raises(ValueError, match="different rows"):
        compare(one, short)


def test_class_wise_evaluations_differ_in_what_is_known_of_the_model():
    y, a, b = problem(300)
    options = {"target": "class-wise"}
    found = compare(
        rowful(y, logits=a, name="A", **options),
        rowful(y, logits=b, name="B", **options),
    ).differences["B"]
    assert found["brier"].interval is not None
    assert found["ece"].interval is None


# -- many differences -------------------------------------------------------------


def test_holm_is_the_step_down_procedure():
    p = {"a": 0.01, "b": 0.02, "c": 0.03, "d": 0.5}
    assert holm(p, 0.05) == {"a"}  # 0.01 <= 0.05/4, but 0.02 > 0.05/3
    assert holm(p, 0.1) == {"a", "b", "c"}
    assert holm({}, 0.05) == set()
    assert holm_adjusted(p) == {"a": 0.04, "b": 0.06, "c": 0.06, "d": 0.5}


def test_a_p_value_belongs_to_its_interval():
    edge = Estimate(1.0, (0.0, 2.0))
    assert p_value(edge, 0.95) == pytest.approx(0.05)
    assert np.isnan(p_value(Estimate(1.0), 0.95))
    assert p_value(Estimate(0.0, (0.0, 0.0)), 0.95) == 1.0


def test_a_difference_that_four_digits_do_not_show_is_called_small():
    a, b = two()
    tiny = Estimate(5.7e-7, (4e-7, 7e-7))
    seen = Estimate(-0.3, (-0.32, -0.28))
    differences = {"B": {"brier": seen, "nll": seen, "sharpness_gap": tiny}}
    found = Contrast((a, b), baseline="A", differences=differences)
    text = " ".join(found.sentences)
    assert "B's sharpness gap differs by less than 0.0001 [4.0e-07, 7.0e-07]." in text
    assert "2 of 3 differences are significant" in text
    none = Contrast((a, b), baseline="A", differences={"B": {"brier": tiny}})
    assert none.sentences == (
        "B and A differ by less than 0.0001 in every metric compared.",
    )


def test_every_sentence_says_which_model_it_is_about():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    hit = rng.random(200) < p
    near = [np.clip(p + 0.03 * rng.normal(size=200), 0.01, 0.99) for _ in "ABC"]
    models = [
        cal.evaluate(hit, probs=x, name=n) for x, n in zip(near, "ABC", strict=True)
    ]
    told = compare(*models).sentences
    assert len(told) > 8
    assert all("B's" in x or "C's" in x or "of B" in x or "of C" in x for x in told)


def test_the_level_is_that_of_the_evaluations():
    hit, h = [1, 0, 1, 1] * 20, np.tile([0.9, 0.8, 0.9, 0.7], 20)
    a, b = (
        cal.evaluate_pairs(hit, x, name=n, level=0.9)
        for n, x in (("A", h), ("B", h**2))
    )
    assert compare(a, b).level == 0.9
    assert compare(a, b, level=0.99).level == 0.99


@pytest.mark.parametrize("pairs", [False, True])
def test_weights_in_another_unit_are_the_same_weights(pairs):
    rng = np.random.default_rng(0)
    p, w = rng.random(200), rng.gamma(1, 1, 200)
    hit = (rng.random(200) < p).astype(int)

    def model(name, h, weight):
        about = {"name": name, "sample_weight": weight, "interval": None}
        if pairs:
            return cal.evaluate_pairs(hit, h, **about)
        return cal.evaluate(hit, probs=h, **about)

    found = compare(model("A", p, w), model("B", p**2, w / w.sum()))
    assert found.differences["B"]["brier"] > 0
    with pytest.raises(ValueError, match="labels or weights differ"):
        compare(model("A", p, w), model("B", p**2, w * (1 + p)))


def test_printed_sentences_are_wrapped():
    a, b = two()
    found = compare(replace(a, name="a rather long name " * 3), b)
    assert max(map(len, found.sentences)) > 88
    assert max(map(len, str(found).split("Against")[1].splitlines())) <= 88


def test_a_difference_that_may_be_chance_among_many_is_named():
    a, b = two()
    weak = Estimate(0.01, (0.0005, 0.0195))
    strong = Estimate(-0.3, (-0.32, -0.28))
    found = Contrast(
        (a, b),
        baseline="A",
        differences={"B": {"brier": strong, "ece": weak, "nll": strong}},
    )
    note = found.sentences[-1]
    assert note.startswith("3 of 3 differences are significant, each at 95 %")
    one = Contrast((a, b), baseline="A", differences={"B": {"brier": strong}})
    assert len(one.sentences) == 1
    many = {key: Estimate(0.0, (-1.0, 1.0)) for key in ("accuracy", "calibration")}
    found = Contrast(
        (a, b), baseline="A", differences={"B": {"brier": strong, "ece": weak, **many}}
    )
    assert found.sentences[-1].endswith(
        "Not significant after Holm's correction: B's ECE."
    )
    for alone, words in ((weak, "not"), (strong, "still")):
        claims = {"brier": alone, **many}
        found = Contrast((a, b), baseline="A", differences={"B": claims})
        assert found.sentences[-1] == (
            "1 of 3 differences is significant, at 95 %; about 0.2 would be expected by "
            f"chance. It is {words} significant after Holm's correction."
        )
    found = Contrast((a, b), baseline="A", differences={"B": many})
    assert "by chance" not in found.sentences[-1]
    weaker = dict.fromkeys(("brier", "nll", "ece", "calibration"), weak)
    found = Contrast((a, b), baseline="A", differences={"B": weaker})
    assert found.sentences[-1].endswith(
        "None remains significant after Holm's correction."
    )


def test_the_frame_of_differences_agrees_with_intervals_and_sentences():
    a, b = two()
    found = compare(a, b, replace(b, name="C"))
    frame = found.difference_frame()
    columns = {name: np.asarray(frame[name]) for name in frame}
    places = list(zip(columns["model"], columns["metric"], strict=True))
    assert places == [(m, key) for m, x in found.differences.items() for key in x]
    for row, (model_, key) in enumerate(places):
        value = found.differences[model_][key]
        assert columns["difference"][row] == float(value)
        low, high, p = (columns[x][row] for x in ("low", "high", "p_value"))
        if value.interval is None or value.method == SAME:
            assert np.isnan(p)
        else:
            assert (low, high) == value.interval
            assert (p < 0.05) == is_clear(value)
    claims = {x: float(found.differences[x[0]][x[1]]) for x in found._claims()}
    p = dict(zip(places, columns["p_value"], strict=True))
    tested = {x: p[x] for x in claims if not np.isnan(p[x])}
    adjusted = dict(zip(places, columns["p_holm"], strict=True))
    assert {x for x in places if not np.isnan(adjusted[x])} == set(tested)
    assert {x for x in tested if adjusted[x] <= 0.05} == holm(tested, 0.05)


# -- clusters, noise and divergences of one's own -----------------------------------


def repeated(x, times=10):
    return np.repeat(x, times)


def two_forecasts(n=400, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    q = np.clip(p + 0.1 * rng.normal(size=n), 0.01, 0.99)
    return (rng.random(n) < p).astype(int), p, q


def test_rows_that_are_repeated_say_no_more_if_they_are_clusters():
    y, p, q = two_forecasts()
    once = cal.compare(
        cal.evaluate(y, probs=p, name="A"), cal.evaluate(y, probs=q, name="B")
    )
    given = {"cluster": repeated(np.arange(len(y)))}
    a, b = (
        cal.evaluate(repeated(y), probs=repeated(x), name=name, **given)
        for x, name in ((p, "A"), (q, "B"))
    )
    found = cal.compare(a, b).differences["B"]
    for key in ("brier", "nll", "accuracy", "ece"):
        assert found[key].method.endswith("clusters")
        np.testing.assert_allclose(
            found[key].interval, once.differences["B"][key].interval, atol=5e-3
        )


def test_clusters_that_vary_no_more_than_rows_do_not_widen_a_difference(data):
    """Rows whose predictions differ vary, too: that was taken for what clusters do."""
    files = ("wrn_28_10", "resnet_basic_110")
    y, logits = (
        data(CIFAR + files[0])["labels"],
        [data(CIFAR + x)["logits"] for x in files],
    )
    cluster = np.random.default_rng(1).integers(0, 800, len(y))
    models = [
        cal.evaluate(y, logits=z, cluster=cluster, interval=None, name=str(i))
        for i, z in enumerate(logits)
    ]
    found = compare(*models).differences["1"]["brier"]
    loss = [np.square(softmax(z) - np.eye(10)[y]).sum(axis=1) for z in logits]
    change = loss[1] - loss[0]
    sums = np.bincount(cluster, change - change.mean())
    half = 1.96 * np.sqrt(sums @ sums) / len(y)
    assert found == pytest.approx(change.mean(), abs=1e-6)
    assert np.diff(found.interval)[0] / 2 == pytest.approx(half, rel=0.05)


def test_models_of_different_clusters_are_refused():
    y, p, q = two_forecasts()
    a = cal.evaluate(y, probs=p, name="A", cluster=np.arange(len(y)) // 4)
    b = cal.evaluate(y, probs=q, name="B")
    with pytest.raises(ValueError, match="different clusters"):
        cal.compare(a, b)


def test_groups_keep_their_clusters():
    y, p, _ = two_forecasts()
    cluster, group = np.arange(len(y)) // 4, np.arange(len(y)) // 4 % 2
    ev = cal.evaluate(y, probs=p, cluster=cluster, group=group)
    assert {one.metrics["brier"].method for one in ev.per_group.values()} <= {
        "normal, clusters",
        "gamma, clusters",
    }
    with pytest.raises(ValueError, match="group '0' has 5 clusters"):
        cal.evaluate(y, probs=p, cluster=cluster, group=cluster % 20)


@pytest.mark.simulation
def test_noise_of_two_calibrated_models_is_no_difference():
    claimed = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = rng.random(3000)
        y = (rng.random(3000) < p).astype(int)
        coarse = (np.floor(3 * p) + 0.5) / 3
        fine, rough = (
            cal.evaluate(y, probs=x, name=n, resamples=100)
            for x, n in ((p, "fine"), (coarse, "rough"))
        )
        found = cal.compare(fine, rough).differences["rough"]
        claimed += sum(is_clear(found[key]) for key in ("smooth_ece", "ace", "mcb"))
    assert claimed <= 5


def test_a_divergence_that_is_not_registered_can_be_compared():
    y, p, q = two_forecasts()
    log = LOG.phi, LOG.gradient, LOG.phi_1d, LOG.derivative_1d
    own = cal.Divergence("entropy", *log)
    for_each = [
        cal.compare(
            *(
                cal.evaluate(y, probs=x, name=n, divergence=d)
                for x, n in ((p, "A"), (q, "B"))
            )
        ).differences["B"]["total"]
        for d in (own, "log")
    ]
    np.testing.assert_allclose(for_each[0].interval, for_each[1].interval, atol=1e-9)


def test_where_no_difference_survives_holm_it_says_none():
    from calibrant._verbs.compare import _after_holm

    assert _after_holm(list("abcdef"), 6).startswith("None remains significant")
    assert _after_holm(list("abcd"), 6).endswith(": 4 of them.")
    assert _after_holm([], 6).startswith("All remain")


def test_a_notebook_says_what_models_are_compared_with():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = (rng.random(500) < p).astype(int)
    models = [cal.evaluate(y, probs=p**x, name=f"<{x}>") for x in (1, 2, 3)]
    found = cal.compare(*models, baseline="<2>")
    assert "Against <2>:" in str(found)
    assert "Against &lt;2&gt;:" in found._repr_html_()
