"""Results open their own views."""

from dataclasses import replace

import numpy as np
import pytest
from make import balanced, forecasts

import calibrant as cal
from calibrant.report import report
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
