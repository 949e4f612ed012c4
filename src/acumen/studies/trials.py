"""One method of a study: fit it, apply it, evaluate it, and see what it did."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column, Matrix
from acumen.comparison import Effect
from acumen.evaluation import evaluate
from acumen.recalibration import FitWarning, Recalibrator
from acumen.recalibration.estimator import Progress, silent
from acumen.results import Evaluation
from acumen.studies.rows import Sample, StudyRows

FITTING = 0.8
"""Share of a method's work that fitting and applying it is taken to be."""

BLOCK = 1 << 12


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One method, fitted, applied and evaluated."""

    evaluation: Evaluation
    recalibrator: Recalibrator
    predicted: NDArray[np.intp]
    tied: NDArray[np.bool_]
    weight: Column
    fit_seconds: float
    apply_seconds: float

    def effect(self, before: Trial) -> Effect:
        """What it did to another model, the uncalibrated one."""
        now, then = (trial.evaluation.metrics["accuracy"] for trial in (self, before))
        return Effect(
            method=type(self.recalibrator).__name__,
            fit_seconds=self.fit_seconds,
            apply_seconds=self.apply_seconds,
            accuracy_change=float(now) - float(then),
            changed=float(self.weight @ (self.predicted != before.predicted)),
            tied=float(self.weight @ self.tied),
            impossible=self.evaluation.infinite_rows,
            notes=self.recalibrator.notes_,
        )


def attempt(
    name: str,
    recalibrator: Recalibrator,
    rows: StudyRows,
    options: Mapping[str, Any],
    progress: Progress,
) -> Trial:
    """Fit, apply and evaluate one method."""
    begun = time.perf_counter()
    kind, result, fit_seconds = _recalibrate(recalibrator, rows, progress)
    apply_seconds = time.perf_counter() - begun - fit_seconds
    progress(FITTING, "evaluate")
    weight = rows.test.weight
    scores: dict[str, Any] = {kind: result}
    evaluation = evaluate(
        rows.test.y, **scores, sample_weight=weight, name=name, **options
    )
    if len(rows.parts) > 1:  # cross-fitted: the one to keep learns from all rows
        _fit(recalibrator, rows.whole, silent)
    predicted, tied = _predictions(result)
    return Trial(
        evaluation,
        recalibrator,
        predicted,
        tied,
        np.ones(len(result)) if weight is None else np.asarray(weight, np.float64),
        fit_seconds,
        apply_seconds,
    )


def _recalibrate(
    recalibrator: Recalibrator, rows: StudyRows, progress: Progress
) -> tuple[str, Matrix, float]:
    """Recalibrated scores of all test rows, what they are, and the time to fit."""
    fit_seconds = 0.0
    pieces: list[tuple[Any, Matrix]] = []
    for number, (sample, places) in enumerate(rows.parts):

        def report(share: float, what: str, at: int = number) -> None:
            progress(FITTING * (at + share) / len(rows.parts), what)

        begun = time.perf_counter()
        _fit(recalibrator, sample, report)
        fit_seconds += time.perf_counter() - begun
        kind, piece = recalibrator.recalibrate(rows.test.scores[places])
        pieces.append((places, piece))
    if len(pieces) == 1:
        return kind, pieces[0][1], fit_seconds
    whole = np.empty((len(rows.test.y), piece.shape[1]), piece.dtype)
    for places, piece in pieces:
        whole[places] = piece
    return kind, whole, fit_seconds


def _fit(recalibrator: Recalibrator, sample: Sample, progress: Progress) -> None:
    """Fit; what it warns of is kept in its notes, which the study shows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        recalibrator.fit(*sample, progress=progress)


def _predictions(result: Matrix) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The likeliest class of each row, and whether another one is as likely."""
    predicted, tied = np.empty(len(result), np.intp), np.empty(len(result), bool)
    for first in range(0, len(result), BLOCK):
        block = result[first : first + BLOCK]
        part = slice(first, first + len(block))
        predicted[part] = block.argmax(axis=1)
        tied[part] = (block == block.max(axis=1, keepdims=True)).sum(axis=1) > 1
    return predicted, tied
