"""Options are written once, checked once, and shown where one looks for them."""

import inspect
import re
from dataclasses import fields

import numpy as np
import pytest
from make import softmax, unrelated

import calibrant as cal
from calibrant._inputs.options import (
    Options,
    Scores,
    Settings,
    takes_options,
    takes_scores,
)
from calibrant._verbs.metric_functions import _metric
from calibrant._verbs.stream import evaluate_batches

Y, Z = unrelated(200, 3)
P = softmax(Z)
FUNCTIONS = (cal.evaluate, cal.evaluate_pairs, evaluate_batches, cal.study)


def test_settings_are_the_options_with_defaults():
    assert {field.name for field in fields(Settings)} == set(Options.__annotations__)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_signatures_show_every_option_with_its_default(function):
    shown = inspect.signature(function).parameters
    assert set(Options.__annotations__) <= set(shown)
    assert "options" not in shown
    for field in fields(Settings):
        assert shown[field.name].default == field.default


def test_the_docstring_of_evaluate_says_what_each_option_is():
    said = inspect.getdoc(cal.evaluate)
    for name in inspect.signature(cal.evaluate).parameters:
        assert f"\n{name} : " in said or f"{name}, " in said or f", {name} : " in said
    assert "**options" not in said


@pytest.mark.parametrize(
    ("function", "given", "says"),
    [
        (
            cal.evaluate,
            {"bin": 3},
            "evaluate has no option 'bin'; did you mean 'bins'?",
        ),
        (cal.evaluate, {"prob": P}, "did you mean 'probs'?"),
        (
            cal.evaluate_pairs,
            {"confidence": P[:, 0], "lvl": 0.9},
            "evaluate_pairs has no",
        ),
        (cal.study, {"probs": P, "kernels": "x"}, "study has no option 'kernels'; did"),
        (
            evaluate_batches,
            {"zzz": 1},
            "evaluate_batches has no option 'zzz'; opti",
        ),
    ],
)
def test_an_option_that_does_not_exist_is_refused(function, given, says):
    with pytest.raises(TypeError) as error:
        function(Y == 0, **given)
    assert says in str(error.value)


def test_a_study_refuses_options_before_it_fits(monkeypatch):
    monkeypatch.setattr("calibrant._verbs.study.read_study_rows", None)
    with pytest.raises(ValueError, match="level must be between"):
        cal.study(Y, probs=P, level=2.0)


def test_evaluate_takes_confidence_as_metrics_do():
    correct, confidence = Y == 0, P[:, 0]
    pairs = cal.evaluate_pairs(correct, confidence, bins=10, group=Y, name="a")
    same = cal.evaluate(correct, confidence=confidence, bins=10, group=Y, name="a")
    assert pairs.target == same.target == "pairs"
    assert pairs.to_json() == same.to_json()
    with pytest.raises(ValueError, match="do not apply to confidence pairs"):
        cal.evaluate(correct, confidence=confidence, target="positive")
    with pytest.raises(ValueError, match="tight"):
        cal.evaluate_pairs(correct, confidence, counterpart="tight")


@pytest.fixture
def no_work(monkeypatch):
    """Rows must not be reduced."""
    monkeypatch.setattr("calibrant._verbs.evaluate.reduce_to_columns", None)
    monkeypatch.setattr("calibrant._verbs.evaluate.evaluate_each_class", None)


NAMES = np.array(["a"] * 200, dtype=object)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"group": Y[:-1]},
            r"group must have one entry per row: \(199,\) for 200 rows",
        ),
        (
            {"group": np.where(Y == 0, np.nan, 1.0)},
            r"group must name a group .* has none",
        ),
        ({"group": np.r_[NAMES[:7], None, NAMES[8:]]}, r"group .* row 7 has none"),
        ({"cluster": Y[:-1]}, "cluster must have one entry per row"),
        ({"cluster": Y}, "cluster has 3 distinct values.* without .* are too short"),
        ({"cluster": np.r_[NAMES[:5], None, NAMES[6:]]}, r"cluster .* row 5 has none"),
        (
            {"cluster": np.arange(200) // 2, "group": np.arange(200) < 8},
            "group 'True' has 4 clusters; fewer than 10.* without .* are too short",
        ),
        (
            {"counterpart": "tight", "target": "class-wise"},
            "counterpart='tight' applies",
        ),
    ],
)
@pytest.mark.usefixtures("no_work")
def test_groups_and_clusters_are_refused_before_any_work(given, says):
    with pytest.raises(ValueError, match=says):
        cal.evaluate(Y, probs=P, **given)


def test_too_many_groups_are_refused():
    with pytest.raises(
        ValueError, match="group has 201 distinct values, more than 200"
    ):
        cal.evaluate_pairs(np.ones(201), np.full(201, 0.5), group=np.arange(201))


def test_a_group_may_be_called_none():
    group = np.array(["None", "nan"] * 100, dtype=object)
    assert [*cal.evaluate(Y, probs=P, group=group).per_group] == ["None", "nan"]


@pytest.mark.parametrize("bins", [0, 2.5, "cube-root", None])
def test_bins_are_refused_before_any_row_is_read(bins):
    with pytest.raises(ValueError, match=r"bins must be a whole number from 1 to"):
        cal.evaluate("no labels", probs="no rows", bins=bins)


@pytest.mark.parametrize("name", ["calibration_error", "mce", "classwise_ece", "corp"])
def test_every_option_of_a_metric_is_on_its_page(name):
    function = getattr(cal, name)
    told = function.__doc__.split("Parameters\n----------\n")[1]
    lines = [line for line in told.splitlines() if line[:1].isalpha()]
    options = set(inspect.signature(function).parameters) - {"reduce"}
    assert options <= set(
        re.findall(r"\w+", " ".join(x.split(" : ")[0] for x in lines))
    )


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: cal.evaluate(Y, probs=P, pos_label=1), "second column, or last of"),
        (lambda: cal.evaluate(Y, probs=P, weights=[1]), "mean 'sample_weight'"),
    ],
)
def test_what_was_perhaps_meant_is_asked(call, said):
    with pytest.raises((TypeError, ValueError), match=said):
        call()


def test_without_docstrings_signatures_still_show_the_options():
    """As under `python -OO`."""

    def scored(y, **given):
        return y

    def optional(y, **options):
        return y

    scored.__doc__ = optional.__doc__ = None
    assert {*Scores.__annotations__} < {
        *inspect.signature(takes_scores(scored)).parameters
    }
    assert {*Options.__annotations__} < {
        *inspect.signature(takes_options(optional)).parameters
    }
    assert scored.__doc__ is optional.__doc__ is None

    def metric(y, **given):
        return 0.25

    found = _metric(metric)
    assert found.__doc__ is None
    assert "probs" in inspect.signature(found).parameters
    assert found([0, 1], [0.2, 0.7]) == 0.25


def test_the_bins_of_uncertainty_calibration_have_no_weights():
    with pytest.raises(
        ValueError, match="compat='uncertainty-calibration' has no weights"
    ):
        cal.classwise_ece(
            Y, probs=P, sample_weight=np.ones(200), compat="uncertainty-calibration"
        )


def test_no_option_is_described_twice():
    described = re.compile(r"^([a-z_]+(?:, [a-z_]+)*)(?: :.*)?$", re.MULTILINE)
    for name in cal.__all__:
        text = inspect.getdoc(getattr(cal, name)) or ""
        options = text.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
        names = [x for line in described.findall(options) for x in line.split(", ")]
        assert len(names) == len(set(names)), name
