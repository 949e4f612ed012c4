"""Results open their own views."""

import pytest
from make import forecasts

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
        assert one._repr_html_() == str(table(one, "html"))


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
    assert repr(ev).startswith("Evaluation('a', 200 rows, pairs, brier ")
    assert str(contrast).startswith(str(several).split("\n", 1)[0])
    assert "Against a:" in str(contrast)
    assert [finding.code for finding in several.audit()]
