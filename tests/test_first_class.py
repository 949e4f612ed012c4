"""A metric is one record and a divergence is one object: both are then everywhere."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from make import over_confident

import calibrant as cal
from calibrant._base.measures import MEASURES, Measure
from calibrant._stats.metrics import METRICS, Metric, add_metric
from calibrant.cli import main
from calibrant.report import build
from calibrant.table import table

TWICE = Metric(
    Measure("surprise", "Surprise", line="surprise", phrase="surprise", told=8),
    value=lambda sample: 2 * sample.columns.mean(np.abs(sample.residual)),
    interval=lambda sample, value: ((value - 0.1, value + 0.1), "by hand"),
    influence=lambda sample: 2 * np.abs(sample.residual),
    per_class="mean",
)
SPHERICAL = cal.Divergence(
    "spherical",
    phi=lambda x: np.sqrt((x**2).sum(axis=1)),
    gradient=lambda x: x / np.sqrt((x**2).sum(axis=1, keepdims=True)),
    phi_1d=lambda p: np.sqrt(p**2 + (1 - p) ** 2),
    derivative_1d=lambda p: (2 * p - 1) / np.sqrt(p**2 + (1 - p) ** 2),
    label="Spherical",
    score="spherical score",
)


@pytest.fixture
def surprise():
    add_metric(TWICE)
    yield "surprise"
    del METRICS["surprise"], MEASURES["surprise"]


@pytest.fixture
def models():
    def evaluated(**options):
        y, z = over_confident(600, 4)
        sure = cal.evaluate(y, logits=z, name="sure", **options)
        return sure, cal.evaluate(y, logits=z / 3, name="fair", **options)

    return evaluated


# -- a metric ----------------------------------------------------------------------


def test_a_metric_is_computed_printed_and_kept_in_json(surprise, models):
    sure, _ = models()
    found = sure.metrics[surprise]
    assert found.interval == (found - 0.1, found + 0.1)
    assert "surprise" in str(sure)
    assert cal.Evaluation.from_json(sure.to_json()).metrics[surprise] == found


def test_a_metric_is_a_column_of_tables_and_frames(surprise, models):
    comparison = cal.Comparison(models())
    assert "Surprise" in table(comparison, columns=["brier", surprise])
    assert "Surprise" in table(comparison, columns="all")
    assert list(comparison.frame()[surprise]) == [
        ev.metrics[surprise] for ev in comparison
    ]
    assert comparison.best(surprise).name in ("sure", "fair")


def test_models_are_compared_by_a_metric(surprise, models):
    contrast = cal.compare(*models())
    difference = contrast.differences["fair"][surprise]
    assert difference.method == "paired, first order"
    assert difference.interval[0] < difference < difference.interval[1]
    assert any("surprise" in sentence.lower() for sentence in contrast.sentences)


def test_a_metric_is_there_for_every_class_and_group(surprise):
    y, z = over_confident(600, 4)
    whole = cal.evaluate(y, logits=z, target="class-wise")
    each = [ev.metrics[surprise] for ev in whole.per_class]
    assert whole.metrics[surprise] == pytest.approx(np.mean(each))
    halves = cal.evaluate(y, logits=z, group=np.arange(600) % 2)
    assert surprise in halves.per_group["0"].metrics


def test_a_metric_is_in_the_report(surprise, models):
    page = build(cal.Comparison(models()), title="Two models")
    assert '"surprise"' in page


def test_a_metric_can_gate(surprise, tmp_path):
    y, z = over_confident(600, 4)
    np.savez(tmp_path / "model.npz", logits=z, labels=y)
    given = ["report", str(tmp_path / "model.npz"), "--quiet", "--fail-if"]
    assert CliRunner().invoke(main, [*given, "surprise>0"]).exit_code == 3
    assert CliRunner().invoke(main, [*given, "surprise>2"]).exit_code == 0


# -- a divergence ------------------------------------------------------------------


def test_a_divergence_has_a_decomposition_with_intervals(models):
    sure, _ = models(divergence=SPHERICAL)
    parts = sure.decomposition
    assert parts.divergence == "spherical"
    assert parts.total == pytest.approx(parts.calibration + parts.sharpness_gap)
    for estimate in (parts.total, parts.calibration, parts.sharpness_gap):
        assert estimate.interval is not None
    assert sure.paper.divergence == "spherical"
    assert np.isfinite(sure.curve.sharpness_gap).any()


def test_a_divergence_is_printed_tabulated_and_described(models):
    comparison = cal.Comparison(models(divergence=SPHERICAL))
    assert "spherical" in str(comparison[0])
    assert "spherical" in comparison.table("text").lower()
    assert "spherical" in comparison[0].describe()
    assert json.loads(comparison[0].to_json())["divergence"] == "spherical"


def test_models_are_compared_by_a_divergence(models):
    found = cal.compare(*models(divergence=SPHERICAL)).differences["fair"]
    for key in ("total", "calibration", "sharpness_gap"):
        low, high = found[key].interval
        assert low < found[key] < high


def test_a_divergence_is_in_figures_and_in_the_report(models):
    comparison = cal.Comparison(models(divergence=SPHERICAL))
    (ax, _) = comparison.plot()
    assert "pherical" in " ".join(
        text.get_text() for text in ax.figure.findobj(match=is_text)
    )
    assert "pherical" in build(comparison)


def is_text(artist):
    return hasattr(artist, "get_text")


def test_a_divergence_is_carried_by_sketches_classes_and_groups():
    y, z = over_confident(600, 4)
    whole = cal.evaluate(y, logits=z, divergence=SPHERICAL)
    sketch = cal.Sketch(divergence=SPHERICAL).update(y, logits=z)
    found = cal.evaluate(sketch, divergence=SPHERICAL)
    assert found.decomposition.total == pytest.approx(whole.decomposition.total)
    assert found.decomposition.calibration == pytest.approx(
        whole.decomposition.calibration
    )
    classes = cal.evaluate(y, logits=z, divergence=SPHERICAL, target="class-wise")
    assert classes.per_class[0].decomposition.divergence == "spherical"
    halves = cal.evaluate(y, logits=z, divergence=SPHERICAL, group=np.arange(600) % 2)
    assert halves.per_group["1"].decomposition.divergence == "spherical"


def test_a_divergence_has_second_opinions():
    y, z = over_confident(600, 4)
    parts = cal.corp(y, logits=z, divergence=SPHERICAL)
    assert parts.miscalibration > 0
    split = cal.confidence_split(y, logits=z, divergence=SPHERICAL)
    assert split.divergence == "spherical"
    bracket = cal.calibration_bracket(y, logits=z, divergence=SPHERICAL)
    assert bracket.lower < bracket.plugin
    error = cal.calibration_error(y, logits=z, divergence=SPHERICAL)
    assert error == pytest.approx(
        cal.evaluate(y, logits=z, divergence=SPHERICAL).decomposition.calibration
    )
