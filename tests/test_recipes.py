"""The recipes for harnesses run as they stand, on stand-ins of the packages they import."""

import asyncio
import inspect
import runpy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import calibrant as cal

RECIPES = Path(__file__).resolve().parent.parent / "docs" / "recipes"


def stand_in(monkeypatch, name, **content):
    module = ModuleType(name)
    module.__dict__.update(content)
    monkeypatch.setitem(sys.modules, name, module)


@pytest.fixture
def hugging_face(monkeypatch):
    class Metric:
        def compute(self, **columns):
            assert set(columns) == set(self._info().features)
            return self._compute(**columns)

    stand_in(monkeypatch, "datasets", Value=str, Features=dict)
    stand_in(monkeypatch, "evaluate", Metric=Metric, MetricInfo=SimpleNamespace)
    return runpy.run_path(str(RECIPES / "evaluate_calibration.py"))["Calibration"]()


def test_the_metric_for_evaluate(hugging_face):
    rng = np.random.default_rng(0)
    truth, said = rng.choice(["a", "b"], 200), rng.choice([0.5, 0.7, 0.9], 200)
    given = {"predictions": ["a"] * 200, "references": truth.tolist()}
    sure = [None if i % 10 == 0 else x for i, x in enumerate(said.tolist())]
    found = hugging_face.compute(**given, confidences=sure)
    kept = np.arange(200) % 10 > 0
    ev = cal.evaluate_pairs((truth == "a")[kept], said[kept])
    assert found["coverage"] == 0.9
    assert found["brier"] == pytest.approx(ev.metrics["brier"])
    assert found["brier"] == pytest.approx(
        found["calibration_error"] + found["sharpness_gap"]
    )


class SampleScore(SimpleNamespace):
    """A score and the id of its sample, as Inspect gives them to metrics."""


def is_of_samples(metric):
    """Whether Inspect gives a metric scores of samples: it asks for them by its types.

    Without, Inspect takes it for an old one, and gives it bare scores.
    """
    (given,) = inspect.signature(metric).parameters.values()
    return given.annotation == list[SampleScore]


def as_number(value):
    """The value of a score as Inspect's `value_to_float` has it; means stay as they are."""
    return {"C": 1.0, "I": 0.0, "N": 0.0}.get(value, value)


@pytest.fixture
def inspect_recipe(monkeypatch):
    def decorated(metrics):
        return lambda make: make

    letters = {"CORRECT": "C", "INCORRECT": "I", "NOANSWER": "N"}
    functions = {"metric": lambda make: make, "scorer": decorated, "accuracy": str}
    functions |= {"value_to_float": lambda: as_number, "SampleScore": SampleScore}
    stand_in(monkeypatch, "inspect_ai")
    stand_in(
        monkeypatch, "inspect_ai.scorer", Score=SimpleNamespace, **letters, **functions
    )
    return runpy.run_path(str(RECIPES / "inspect_calibration.py"))


def scored(recipe, text, target="B"):
    state = SimpleNamespace(output=SimpleNamespace(completion=text))
    score = recipe["stated_confidence"]()
    return asyncio.run(score(state, SimpleNamespace(text=target)))


@pytest.mark.parametrize(
    ("text", "value", "sure"),
    [
        ("ANSWER: B\nCONFIDENCE: 90%", "C", 0.9),
        ("ANSWER: A\nCONFIDENCE: 55", "I", 0.55),
        ("ANSWER: B", "C", None),
        ("I cannot say.", "N", None),
        ("ANSWER: B CONFIDENCE: 900", "C", None),
    ],
)
def test_the_scorer_for_inspect(inspect_recipe, text, value, sure):
    found = scored(inspect_recipe, text)
    assert (found.value, found.metadata["confidence"]) == (value, sure)


def test_the_metrics_for_inspect(inspect_recipe):
    rng = np.random.default_rng(0)
    items, right, said = [], [], []
    for i in range(120):
        sure, correct = rng.choice([60, 80, 90]), rng.random() < 0.7
        text = f"ANSWER: {'B' if correct else 'C'}\nCONFIDENCE: {sure}%"
        score = scored(inspect_recipe, text if i % 12 else "no idea")
        items.append(SampleScore(score=score, sample_id=i))
        if i % 12:
            right.append(correct)
            said.append(sure / 100)
    ev = cal.evaluate_pairs(right, said)
    assert inspect_recipe["brier"]()(items) == pytest.approx(ev.metrics["brier"])
    assert inspect_recipe["coverage"]()(items) == pytest.approx(110 / 120)
    assert inspect_recipe["calibration_error"]()(items) < ev.metrics["brier"]


@pytest.mark.parametrize("name", ["brier", "calibration_error", "coverage"])
def test_metrics_for_inspect_ask_for_scores_of_samples(inspect_recipe, name):
    """They were given bare scores, and the run ended in an error."""
    assert is_of_samples(inspect_recipe[name]())


def test_no_stated_confidence_does_not_end_a_run_of_inspect(inspect_recipe):
    items = [SampleScore(score=scored(inspect_recipe, "no idea"), sample_id=0)]
    assert np.isnan(inspect_recipe["brier"]()(items))
