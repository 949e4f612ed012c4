"""Calibration and sharpness as a metric of Hugging Face's `evaluate`.

Save this file as ``calibration/calibration.py``, and load the folder::

    metric = evaluate.load("./calibration")
    metric.compute(predictions=answers, references=truth, confidences=stated)
"""

import datasets
import evaluate

import calibrant as cal

DESCRIPTION = """\
How often answers are as correct as their confidence says: the Brier score, and its parts,
calibration error and sharpness gap, with the share of correct answers and the coverage."""


class Calibration(evaluate.Metric):
    """Stated confidences against whether predictions equal references."""

    def _info(self):
        features = {
            "predictions": datasets.Value("string"),
            "references": datasets.Value("string"),
            "confidences": datasets.Value("float64"),
        }
        return evaluate.MetricInfo(
            description=DESCRIPTION,
            citation="",
            inputs_description="confidences: in [0, 1]; None for an abstention",
            features=datasets.Features(features),
        )

    def _compute(self, predictions, references, confidences):
        right = [a == b for a, b in zip(predictions, references, strict=True)]
        ev = cal.evaluate_pairs(right, confidences, drop_missing=True)
        parts = ev.decomposition
        return {
            "brier": float(parts.total),
            "calibration_error": float(parts.calibration),
            "sharpness_gap": float(parts.sharpness_gap),
            "accuracy": float(ev.metrics["accuracy"]),
            "ece": float(ev.metrics["ece"]),
            "coverage": ev.coverage,
        }
