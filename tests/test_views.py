"""Results open their own views."""

import re
from dataclasses import replace

import numpy as np
import pytest
from make import balanced, forecasts

import calibrant as cal
from calibrant._base.comparison import as_shown
from calibrant._views import words
from calibrant._views.words import good_news
from calibrant.report import report
from calibrant.report._payload import summary
from calibrant.table import table

A, H = forecasts(200, accuracy=lambda p: p)


@pytest.fixture(scope="module")
def results():
    a, b = (cal.evaluate_pairs(A, H, name=name) for name in "ab")
    study = cal.study(A.astype(int), probs=H)
    return a, cal.Comparison((a, b)), cal.compare(a, b), study


def test_tables_are_those_of_the_function(results):
    for one in results:
        for format_ in ("text", "markdown", "csv"):
            assert one.table(format_) == table(one, format_)
        evaluations = getattr(one, "evaluations", one)
        assert str(table(evaluations, "html", intervals=True)) in one._repr_html_()


def test_reports_are_those_of_the_function(results, tmp_path):
    for number, one in enumerate(results):
        path = one.report(tmp_path / f"{number}.html", title="t")
        same = report(one, tmp_path / f"{number}_same.html", title="t")
        assert path.read_bytes() == same.read_bytes()
        with pytest.raises(FileExistsError):
            one.report(path, force=False)


def test_every_result_is_described_model_by_model(results):
    for one in results:
        models = [one] if isinstance(one, cal.Evaluation) else one
        assert one.describe() == "\n\n".join(ev.describe() for ev in models)


def test_results_print_themselves(results):
    ev, several, contrast, study = results
    assert repr(several) == "Comparison('a', 'b')"
    assert repr(contrast) == "Contrast('a', 'b')"
    assert repr(study).startswith("Study('Uncalibrated', ")
    assert repr(ev).startswith("Evaluation('a', 200 examples, pairs, brier ")
    assert str(contrast).startswith(str(several).split("\n", 1)[0])
    assert "Against a:" in str(contrast)
    assert [finding.code for finding in several.audit()]


def test_print_and_report_bring_the_good_news(tmp_path):
    ev, other = (cal.evaluate_pairs(*balanced(300), name=name) for name in "ab")
    several = cal.Comparison((ev, other))
    assert "no evidence of miscalibration" in " ".join(str(ev).split())
    alone = "the interval of d_CAL reaches from 0 to"
    for one, told in ((ev, alone), (several, "a and b.</p>")):
        page = one.report(tmp_path / "page.html", force=True).read_text()
        assert f"<p>No evidence of miscalibration: {told}" in page
    assert "No evidence of miscalibration: a and b." in str(several)


def test_every_model_is_in_one_list_and_each_direction_that_print_tells():
    rng = np.random.default_rng(2)
    h = rng.uniform(0.6, 1, 6000)
    fair = rng.random(6000) < h
    models = [
        cal.evaluate_pairs(fair, h, name="fair"),
        cal.evaluate_pairs(fair, np.clip(h + 0.012, 0, 0.999), name="slight"),
        cal.evaluate_pairs(fair, np.clip(h + 0.06, 0, 1), name="far"),
    ]
    text = " ".join(str(cal.Comparison(models)).split())
    assert "No evidence of miscalibration: fair." in text
    d_cal = models[1].decomposition.calibration.interval
    assert d_cal[0] == 0
    assert "reaches 0, others do not): slight (" in text
    assert "mean confidence less accuracy" in text
    assert "over-confident: mean confidence exceeds" in str(models[1])
    assert "weak evidence of miscalibration" in str(models[1])
    assert "Over-confident on average: slight (" in text
    assert "points) and far (" in text
    assert "far is miscalibrated" in text


def test_a_finding_is_printed_reported_and_written(tmp_path):
    a, h = forecasts(2000)
    ev = cal.evaluate_pairs(a, h, name="sure")
    (found,) = [one for one in ev.audit() if one.code == "miscalibrated"]
    assert f"{found.text} [miscalibrated]" in " ".join(str(ev).split())
    page = ev.report(tmp_path / "page.html").read_text()
    assert found.text in page
    assert "miscalibrated: d_CAL" in page
    assert cal.Evaluation.from_json(ev.to_json()).audit() == ev.audit()


def test_a_trivial_model_is_no_good_news():
    hit, h = balanced(300)
    constant = cal.evaluate_pairs(hit, hit.mean() + 1e-5 * h, name="constant")
    fair = cal.evaluate_pairs(hit, h, name="fair")
    text = str(cal.Comparison((constant, fair)))
    assert "No evidence of miscalibration: fair." in text


def test_a_curve_is_not_called_over_confident_by_chance():
    ev = cal.evaluate_pairs(*balanced(300))
    low, high = ev.metrics["confidence_gap"].interval
    assert low < 0 < high
    assert "-confident" not in ev.describe()
    sure = cal.evaluate_pairs(*forecasts(2000))
    assert "lies below the diagonal (over-confident)" in sure.describe()


def test_print_says_what_weights_and_clusters_leave():
    w = np.where(np.arange(200) < 20, 10.0, 1.0)  # 380^2 / 2180 = 66.2
    ev = cal.evaluate_pairs(A, H, name="a", sample_weight=w)
    said = "200 examples (weights sum to 380, effective n 66)"
    assert str(ev).startswith(f"a: {said}")
    assert str(cal.Comparison((ev,))).startswith(f"1 model, {said}")
    nearly = cal.evaluate_pairs(A, H, name="a", sample_weight=1 + 0.1 * H)
    total = f"{np.sum(1 + 0.1 * H):,.6g}"
    assert str(nearly).startswith(f"a: 200 examples (weights sum to {total})\n")
    together = cal.evaluate_pairs(A, H, name="a", cluster=np.arange(200) // 5)
    assert str(together).startswith("a: 200 examples in 40 clusters\n")


def test_the_sum_of_weights_is_that_of_rows_of_classes_and_of_sketches():
    w, f = np.linspace(0.5, 2, 200), np.arange(200) % 3 + 1
    both = cal.evaluate_pairs(A, H, sample_weight=w, frequency=f)
    assert both.sum_of_weights == pytest.approx(w @ f)
    probs = np.column_stack([1 - H, H / 2, H / 2])
    each = {"probs": probs, "target": "class-wise", "sample_weight": w}
    assert cal.evaluate(A.astype(int), **each).sum_of_weights == pytest.approx(w.sum())
    sketch = cal.Sketch().update_pairs(A, H, sample_weight=w)
    assert cal.evaluate(sketch).sum_of_weights == pytest.approx(w.sum())
    assert cal.evaluate_pairs(A, H, frequency=f).sum_of_weights is None
    huge = cal.evaluate_pairs(A, H, sample_weight=np.where(w > 1, 1e308, 1e307))
    assert huge.sum_of_weights is None  # no number can hold it
    again = cal.Evaluation.from_json(both.to_json())
    assert again.sum_of_weights == both.sum_of_weights


def test_weights_are_told_as_shares_not_as_fractions_of_examples():
    lost = (H > 0.9) & (np.arange(200) % 5 == 0)
    h, a = np.where(lost, 0.0, H), np.where(lost, 1, A)
    w = np.where(np.arange(200) < 20, 10.0, 1.0)
    ev = cal.evaluate_pairs(a, h, name="a", sample_weight=w, divergence="log")
    share = f"{100 * w[lost].sum() / w.sum():.3g} %"
    assert 0 < lost.sum() < 100
    texts = str(ev), ev.describe(), str(cal.Comparison((ev,)))
    for text in (" ".join(one.split()) for one in texts):
        assert f"{share} of " in text
        assert "by weight" in text
        assert f"{ev.infinite_rows:.10g}" not in text
    plain = cal.evaluate_pairs(a, h, name="a")
    assert f"{lost.sum()} of 200 examples: NLL is infinite" in " ".join(
        str(plain).split()
    )


def test_print_names_groups_with_size_and_headline():
    group = np.where(np.arange(200) < 80, "site 10", "site 2")
    ev = cal.evaluate_pairs(A, H, name="a", group=group)
    lines = str(ev).splitlines()
    start = lines.index("2 groups, brier:")
    second, tenth = lines[start + 1 : start + 3]
    assert second.split()[:2] == ["site", "2"]
    assert second.endswith("120 examples")
    assert f"{ev.per_group['site 10'].decomposition.total:.4f} = " in tenth
    assert "group site 2" in ev._repr_html_()
    many = cal.evaluate_pairs(A, H, group=np.arange(200) % 20)
    assert "  and 8 more" in str(many)


def test_few_examples_are_not_called_over_confident_and_calibrated_at_once():
    """Below 50 examples the gap has no interval, but the calibration error has one."""
    rng = np.random.default_rng(0)
    h = rng.uniform(0.5, 1, 30)
    ev = cal.evaluate_pairs(np.arange(30) < 19, h)
    assert ev.metrics["confidence_gap"].interval is None
    assert ev.metrics["confidence_gap"] > 0.1
    assert "no evidence of miscalibration" in str(ev)
    assert "over-confident" not in str(ev).lower()
    assert "Over-confident" not in str(cal.Comparison((ev,)))
    assert "over-confident" in str(cal.evaluate_pairs(np.arange(30) < 2, h))


def test_methods_of_intervals_are_named_in_plain_words():
    text = str(cal.evaluate_pairs(*forecasts(2000)))
    assert "close pairs (brier d_CAL" in text
    assert "simulated noise (ECE" in " ".join(text.split())


def test_print_says_once_how_fine_the_calibration_error_is():
    ev = cal.evaluate_pairs(*forecasts(10_000), name="sure")
    share = f"{100 * ev.decomposition.resolution:.2g} % of the examples"
    said = f"d_CAL resolves ranges of confidence with at least {share}"
    assert 0.001 < ev.decomposition.resolution < 0.1
    for text in (str(ev), str(cal.Comparison((ev,)))):
        assert " ".join(text.split()).count(said) == 1
    fixed = cal.evaluate_pairs(*forecasts(1000), bandwidth=0.1)
    few = cal.evaluate_pairs([1, 0, 1, 1], [0.9, 0.4, 0.8, 0.7])
    several = cal.Comparison((ev, replace(ev, name="other")))
    for other in (fixed, few, several):
        assert "d_CAL resolves" not in str(other)


SUM = re.compile(r"([\d.]+) = (-?[\d.]+)(?: \[[^]]*\])? \+ ([\d.]+)")


@pytest.mark.parametrize("seed", range(8))
def test_printed_equations_add_up_as_printed(seed):
    rng = np.random.default_rng(seed)
    h = rng.random(300)
    ev = cal.evaluate_pairs(rng.random(300) < h**1.3, h)
    sums = SUM.findall(str(ev) + repr(ev))
    assert len(sums) >= 3
    for total, error, gap in sums:
        assert float(total) == pytest.approx(float(error) + float(gap), abs=1e-9)


def test_small_errors_of_rare_events_show_digits_that_count():
    rng = np.random.default_rng(0)
    p = rng.beta(1, 200, 60_000)
    ev = cal.evaluate(rng.random(60_000) < p, probs=np.clip(1.8 * p, 0, 1))
    low, high = ev.decomposition.calibration.interval
    assert 0 < low < high < 5e-4
    (line,) = [x for x in str(ev).splitlines() if x.startswith("  brier  ")]
    error = float(SUM.search(line)[2])
    assert 0 < error == pytest.approx(float(ev.decomposition.calibration), rel=0.1)


def test_counts_of_rows_are_the_same_in_the_head_and_in_a_finding():
    ev = cal.evaluate_pairs(*balanced(92), frequency=np.full(92, 2))
    assert "184 examples" in str(ev).splitlines()[0]
    assert "There are 184 examples:" in str(ev)


def test_a_sweep_prints_in_words():
    from calibrant.plot import BandwidthSweep

    sweep = BandwidthSweep.of(cal.evaluate_pairs(*balanced(92), name="a"), [0.05, 0.1])
    assert str(sweep).startswith("d_CAL (brier) by bandwidth\n\n  gaussian")
    assert repr(sweep).startswith("BandwidthSweep(['a'], ")
    assert "array" not in repr(sweep)


def test_a_divergence_without_a_word_for_its_score_has_a_noun():
    from calibrant._views.words import score_in_words

    assert score_in_words("unheard of") == "unheard of score"
    assert score_in_words("log") == "log loss"


def test_repeated_confidences_are_in_the_key_of_every_figure_that_has_circles():
    h = np.repeat([0.3, 0.5, 0.9], 40)
    ev = cal.evaluate_pairs(np.arange(120) % 2, h)
    for draw in (cal.plot.smooth_reliability, cal.plot.residual):
        (key,) = draw(ev).get_figure().legends
        texts = [text.get_text() for text in key.get_texts()]
        assert "repeated confidence" in texts


def test_names_of_methods_are_whole_where_there_is_room():
    a, b = (
        cal.evaluate_pairs(*balanced(92), name=name)
        for name in ("a", "Histogram binning (top label)")
    )
    first = cal.plot.compare_methods([a, b])[0]
    assert first.get_yticklabels()[1].get_text() == b.name
    first.get_figure().draw_without_rendering()
    assert first.get_yticklabels()[1].get_window_extent().x0 >= 0


@pytest.mark.parametrize("n", [1, 10, 19])
def test_too_few_examples_have_no_direction(n):
    """Fewer than 20 examples have no interval, so nothing is known of a direction."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        p = rng.random(n)
        ev = cal.evaluate((rng.random(n) < p).astype(int), probs=p)
        text = " ".join(str(ev).split())
        assert "forecasts are too" not in text
        assert "too few examples to tell whether the model is calibrated" in text
        assert "too few examples" in " ".join(summary(as_shown(ev)))


def test_a_study_of_few_examples_has_no_direction():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(75, 3))
    y = rng.integers(0, 3, 75)
    found = cal.study(y[:60], y[60:], logits=(z[:60], z[60:]))
    assert "on average" not in str(found)


def test_without_any_interval_no_direction_is_asserted():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = (rng.random(2000) < p**2).astype(int)
    options = {"preset": "paper", "interval": None}
    assert "forecasts are too" not in str(cal.evaluate(y, probs=p, **options))
    assert "forecasts are too high" in str(cal.evaluate(y, probs=p, interval=None))


@pytest.fixture(scope="module")
def impossible():
    """Forecasts that are calibrated, but for one event of probability 0 that happened."""
    rng = np.random.default_rng(0)
    p = np.r_[np.linspace(0.02, 0.98, 300), 0.0]
    y = (rng.random(301) < p).astype(int)
    y[-1] = 1
    return y, p


def test_a_certain_forecast_that_was_wrong_has_one_verdict(impossible):
    y, p = impossible
    both = np.column_stack([1 - p, p])
    for ev in (
        cal.evaluate(y, probs=p),
        cal.evaluate(y, probs=p, divergence="log"),
        cal.evaluate(y, probs=both, target="class-wise"),
        cal.evaluate_pairs(y, p),
    ):
        text, page = str(ev), " ".join(summary(as_shown(ev)))
        for told in (" ".join(text.split()), page):
            assert "0 or 1 was contradicted in 1 of 301 examples" in told
            assert "evidence of miscalibration" not in told
            assert "inf [inf" not in told
        assert not good_news(as_shown(ev))
        (found,) = [one for one in ev.audit() if one.code == "miscalibrated"]
        other = replace(ev, name="other")
        told = " ".join(str(cal.compare(ev, other)).split())
        assert found.text in told
        assert "evidence of miscalibration" not in told
    assert "was contradicted" in str(cal.calibration_test(y, probs=p))


def test_a_wrong_class_of_probability_zero_contradicts_no_confidence(impossible):
    """Top-label: the confidence was 0.6, and said nothing of the class that came true."""
    probs = np.tile([0.6, 0.4, 0.0], (500, 1))
    y = np.r_[np.zeros(300, int), np.ones(199, int), 2]
    assert "was contradicted" not in str(cal.evaluate(y, probs=probs))
    y, p = impossible
    top = cal.evaluate(y, probs=np.column_stack([1 - p, p]), target="top-label")
    assert "a confidence of 0 or 1 was contradicted" in " ".join(str(top).split())


def test_a_curve_lies_above_only_where_most_of_it_does():
    off = np.where(np.arange(100) < 47, 0.02, -0.002)
    assert words._side(off, "", "") == "lies on or above the diagonal"
    assert words._side(-off, "", "") == "lies on or below the diagonal"
    assert words._side(np.abs(off), "", "") == "lies above the diagonal"


def test_the_paper_preset_says_what_is_another_number_and_what_has_no_interval():
    p = np.random.default_rng(0).random(300)
    y = (np.random.default_rng(1).random(300) < p).astype(int)
    paper = cal.evaluate(y, probs=p, preset="paper")
    assert "d_CAL as published has no interval" in " ".join(str(paper).split())
    text = " ".join(table(paper, intervals=True).split())
    assert "as relplot does: another number than without the preset." in text
    assert "As published d_CAL has no interval" in text
    plain = cal.evaluate(y, probs=p)
    for text in (str(plain), table(plain, intervals=True)):
        assert "published" not in text.replace("paper's estimator", "")
        assert "relplot" not in text


def test_no_correct_prediction_is_no_rare_event():
    y = np.zeros(1000, int)
    ev = cal.evaluate(y, probs=np.tile([0.01, 0.99, 0.0], (1000, 1)))
    text = " ".join(str(ev).split())
    assert "rest on few events" not in text
    assert "where it expects 990: check the order of the classes" in text


def sum_that_rounding_breaks():
    """An evaluation whose gap, rounded by itself, would not add up."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        p = rng.random(500)
        ev = cal.evaluate(rng.random(500) < p**2, probs=p, target="positive", name="A")
        total, error, gap = (
            round(100 * float(getattr(ev.decomposition, key)), 2)
            for key in ("total", "calibration", "sharpness_gap")
        )
        parts = [round(100 * float(ev.metrics[x]), 2) for x in ("mcb", "dsc", "unc")]
        whole = round(
            100 * (ev.metrics["mcb"] - ev.metrics["dsc"] + ev.metrics["unc"]), 2
        )
        broken = round(parts[0] - parts[1] + parts[2] - whole, 2)
        if round(error + gap - total, 2) and broken:
            return ev, f"{total - error:.2f}"
    raise AssertionError


def test_the_gap_is_printed_one_way_in_every_view():
    ev, gap = sum_that_rounding_breaks()
    row = ev.table(columns=["brier", "calibration", "sharpness_gap"]).splitlines()[2]
    brier, error, printed = map(float, row.split()[1:])
    assert printed == float(gap)
    assert round(error + printed, 2) == brier
    plain = f"{float(gap) / 100:.4f}"
    assert f"] + {plain}\n" in str(ev)
    assert f"sharpness gap of {plain}." in ev.describe()
    texts = " ".join(x.get_text() for x in ev.plot().texts)
    assert f"gap {gap}" in texts
    assert any(f"sharpness gap {plain}" in text for text in summary(as_shown(ev)))


def test_the_parts_of_a_triptych_add_up_as_printed():
    ev, _ = sum_that_rounding_breaks()
    figure = cal.plot.triptych(ev)[0].figure
    texts = [x.get_text() for box in figure.legends for x in box.get_texts()]
    whole, mcb, dsc, unc = map(float, re.findall(r"\d+\.\d\d(?!\d)", texts[0])[:4])
    assert round(mcb - dsc + unc, 2) == whole


@pytest.mark.parametrize("sign", [1, -1])
def test_a_description_tells_true_quantiles_near_0_and_1(sign):
    """The cells of the histogram are wider than all that lies near its ends."""
    rng = np.random.default_rng(0)
    h = 1 / (1 + np.exp(sign * (7 - 1.5 * rng.normal(size=3000))))
    ev = cal.evaluate_pairs(rng.random(3000) < h, h)
    said = re.search(
        r"at least (\S+), and nine in ten lie between (\S+) and (\S+)\.", ev.describe()
    )
    told = np.array([float(x) for x in said.groups()])
    want = np.quantile(h, [0.5, 0.05, 0.95])
    np.testing.assert_allclose(
        np.minimum(told, 1 - told), np.minimum(want, 1 - want), 0.1
    )
