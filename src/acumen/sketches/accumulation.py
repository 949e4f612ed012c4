"""What the rows so far add up to, and the evaluation that follows from it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from acumen.analysis import sketch_for
from acumen.arrays import Column
from acumen.assembly import evaluate_columns
from acumen.columns import Columns
from acumen.compiled import fast
from acumen.estimators.bins import width_bins
from acumen.ordered import order
from acumen.predictions import LEAST_MEAN_WEIGHT, MOST_MEAN_WEIGHT, Predictions
from acumen.results import Bins, Estimate, Evaluation
from acumen.scores import all_metrics
from acumen.settings import Settings
from acumen.sketches.gathering import MOST_VALUES, Gathered
from acumen.sums import PART, Sums
from acumen.targets import reduce_to_columns

MOST_CLASS_BINS = 1 << 20
"""Classes times bins up to which the top-label ECE is kept track of."""


class Accumulation:
    """Sums over all rows added: a sketch, rows gathered, residuals within classes.

    Reduced rows wait until there are enough of them to be worth adding.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.gathered = Gathered(settings)
        self._sketch: Sums | None = None
        self._class_residuals: Column | None = None
        self._like: Predictions | None = None
        self._waiting: list[Columns] = []

    def add(self, predictions: Predictions) -> None:
        """Reduce and add rows, of which all may have weight 0."""
        if self._like is None:
            self._start(predictions)
        elif _kind_of(predictions) != _kind_of(self._like):
            raise ValueError(
                "batches must be alike in kind of scores, classes and weights; this "
                "one differs from the first."
            )
        if predictions.weight is not None and not predictions.weight.any():
            return
        self._waiting.append(
            reduce_to_columns(predictions, self.settings.extra, self.settings.engine)
        )
        if sum(map(len, self._waiting)) >= PART:
            self._add_waiting()

    def _start(self, first: Predictions) -> None:
        if self.settings.counterpart == "tight" and first.target != "top-label":
            raise ValueError("counterpart='tight' applies to target='top-label' only.")
        size = first.k * self.gathered.bins
        if first.target == "top-label" and size <= MOST_CLASS_BINS:
            self._class_residuals = np.zeros(size)
        self._like = _without_rows(first)

    def _add_waiting(self) -> None:
        columns, self._waiting = _joined(self._waiting), []
        self.gathered.add(columns)
        self._add_class_residuals(columns)
        if self._sketch is None:
            self._sketch = sketch_for(columns, self.settings)
            return
        # Compiled sums pay once all rows so far would have paid for loading them.
        rows = self._sketch.rows + len(columns)
        compiled = fast.wanted_for_rows(self.settings.engine, rows)
        self._sketch.update(columns, "numba" if compiled else "numpy")

    def _add_class_residuals(self, columns: Columns) -> None:
        if self._class_residuals is None or columns.predicted is None:
            return
        h, sums = columns.confidence, self._class_residuals
        place = columns.predicted.astype(np.intp) * self.gathered.bins
        place += self.gathered.bin_of(h)
        residual = columns.hit - h
        if columns.weight is not None:
            residual *= columns.weight
        sums += np.bincount(place, residual, len(sums))

    def evaluation(self, name: str) -> Evaluation:
        """The record of all rows added."""
        if self._waiting:
            self._add_waiting()
        if self._like is None or self._sketch is None:
            raise ValueError("batches hold no row of positive weight; nothing is left.")
        _check_weight_scale(self._sketch)
        like, columns = self._like, self.gathered.columns()
        target = "pairs" if like.kind == "confidence" else str(like.target)
        found = evaluate_columns(
            columns, self.settings, name, target, like.k, self._sketch
        )
        metrics = self._metrics(columns, self._sketch, target, like.k)
        found = replace(found, metrics=metrics, sketch=self._sketch)
        if self.gathered.exact:
            return found
        return replace(found, distinct=MOST_VALUES + 1, atoms=Bins(*np.empty((6, 0))))

    def _metrics(
        self, columns: Columns, sketch: Sums, target: str, k: int
    ) -> dict[str, Estimate]:
        """All metrics with the intervals that gathered rows can give."""
        settings, ordered = self.settings, order(columns)
        bins = width_bins(ordered, settings.bins, settings.closed)
        rows = columns, sketch, ordered, ordered.without_twins(), bins
        metrics = all_metrics(*rows, settings, target, k)
        if not columns.hard:  # it needs fourth powers of the hits
            metrics["unc"] = Estimate(metrics["unc"])
        if self._class_residuals is not None:
            error = np.abs(self._class_residuals).sum() / sketch.weight
            metrics["top_label_ece"] = Estimate(error)
        return metrics


def _kind_of(predictions: Predictions) -> tuple[Any, ...]:
    weighted = predictions.weight is not None
    return predictions.kind, predictions.scores.shape[1:], predictions.classes, weighted


def _without_rows(predictions: Predictions) -> Predictions:
    """The kind of predictions alone, which keeps no row in memory."""
    scores, labels = predictions.scores[:0].copy(), predictions.labels[:0].copy()
    weight = None if predictions.weight is None else np.empty(0)
    return replace(predictions, scores=scores, labels=labels, weight=weight)


def _check_weight_scale(sketch: Sums) -> None:
    total, rows = sketch.weight, sketch.rows
    if not LEAST_MEAN_WEIGHT <= total / rows <= MOST_MEAN_WEIGHT:
        raise ValueError(
            f"sample_weight counts rows (weight 2 is a row twice), but sums to "
            f"{total:.6g} over {rows} rows. Multiply it by {rows} / its sum."
        )


def _joined(parts: list[Columns]) -> Columns:
    """Columns of the same kind, one after the other."""
    if len(parts) == 1:
        return parts[0]

    def join(columns: list[Any]) -> Any:
        return None if columns[0] is None else np.concatenate(columns)

    return Columns(
        join([part.confidence for part in parts]),
        join([part.exact_log_odds for part in parts]),
        join([part.hit for part in parts]),
        {name: join([p.losses[name] for p in parts]) for name in parts[0].losses},
        join([part.weight for part in parts]),
        join([part.predicted for part in parts]),
    )
