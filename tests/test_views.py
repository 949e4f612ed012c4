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
    assert str(ev).startswith("a: 200 examples (effective n 66)")
    assert str(cal.Comparison((ev,))).startswith(
        "1 model, 200 examples (effective n 66)"
    )
    nearly = cal.evaluate_pairs(A, H, name="a", sample_weight=1 + 0.1 * H)
    assert str(nearly).startswith("a: 200 examples\n")
    together = cal.evaluate_pairs(A, H, name="a", cluster=np.arange(200) // 5)
    assert str(together).startswith("a: 200 examples in 40 clusters\n")


def test_print_says_once_how_fine_the_calibration_error_is():
    ev = cal.evaluate_pairs(*forecasts(10_000), name="sure")
    said = f"d_CAL at a resolution of {100 * ev.decomposition.resolution:.2g} % of the"
    assert 0.001 < ev.decomposition.resolution < 0.1
    for text in (str(ev), str(cal.Comparison((ev,)))):
        assert " ".join(text.split()).count(said) == 1
    fixed = cal.evaluate_pairs(*forecasts(1000), bandwidth=0.1)
    few = cal.evaluate_pairs([1, 0, 1, 1], [0.9, 0.4, 0.8, 0.7])
    several = cal.Comparison((ev, replace(ev, name="other")))
    for other in (fixed, few, several):
        assert "resolution" not in str(other)
