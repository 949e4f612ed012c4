"""Temperature scaling: one number for all rows, found by a search that cannot fail."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import inf
from typing import Any, ClassVar

import numpy as np

from acumen.arrays import Matrix, as_number, check_choice
from acumen.compiled.fast import ENGINES
from acumen.recalibration import tempering
from acumen.recalibration.brier_tempering import BrierLoss, minimise_brier
from acumen.recalibration.estimator import Progress, Recalibrator
from acumen.recalibration.rows import Kind, Rows

EDGES = {
    "flat": "all possible classes of a row have the same score, so no temperature matters:",
    "hot": "the labels score no better than chance (or `bounds` are too narrow), so the "
    "loss falls up to the greatest temperature allowed,",
    "cold": "hardly a row contradicts its largest score (or `bounds` are too narrow), so "
    "the loss falls down to the least temperature allowed,",
}


class TemperatureScaling(Recalibrator):
    """Divide all logits by one temperature T: softmax(z / T).

    The order of the classes of a row, and so the accuracy, does not change. T > 1 makes
    an over-confident model less sure. The log loss is convex in 1/T, so the optimum is
    unique and found by Newton steps inside a bracket; it is never worse on the rows of
    the fit than T = 1.

    Probabilities are read through their logarithms. A class of probability 0 keeps it.

    Parameters
    ----------
    scores : {"logits", "probs"}
        What the scores are.
    objective : {"log", "brier"}
        The loss to minimise on the rows of the fit.
    bounds : tuple of float, optional
        Least and greatest temperature. By default s/100 and 1000 s, where s is the
        root mean variance of the logits within rows, so logits of any size will do.
    classes : sequence, optional
        Names of the classes in column order, if labels are neither column numbers nor
        names in sorted order.
    engine : {"auto", "numpy", "numba"}
        ``"auto"`` uses numba for large matrices if it is installed.

    Attributes
    ----------
    temperature_ : float
        The temperature T.
    converged_ : bool
        Whether the optimum was found inside the bounds.
    at_boundary_ : bool
        Whether T is a bound: no row was wrong, the model is worse than chance, or
        `bounds` exclude the optimum. A `FitWarning` says which.
    passes_ : int
        Passes over all rows that it took.
    impossible_ : int
        Rows that gave their label probability 0. Their log loss is infinite at any
        temperature, so they are left out.

    Examples
    --------
    >>> from acumen.recalibration import TemperatureScaling
    >>> logits = [[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [0.0, 4.0]]
    >>> hot = TemperatureScaling().fit(logits, [0, 0, 1, 1])  # 3 of 4 are right
    >>> round(hot.temperature_, 4), hot.predict_proba([[4.0, 0.0]]).round(4).tolist()
    (3.641, [[0.75, 0.25]])

    Like all recalibrators it predicts classes, scores itself, and is saved as JSON:

    >>> hot.predict(logits).tolist(), hot.score(logits, [0, 0, 1, 1])
    ([0, 0, 0, 1], 0.75)
    >>> hot.recalibrate([[4.0, 0.0]])[0], hot.get_params()["objective"]
    ('logits', 'log')
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hot.save(f"{folder}/hot.json")
    ...     again = TemperatureScaling.load(f"{folder}/hot.json")
    >>> again.set_params(engine="numpy").temperature_ == hot.temperature_
    True
    """

    learned: ClassVar[tuple[str, ...]] = (
        "temperature_",
        "converged_",
        "at_boundary_",
        "passes_",
        "impossible_",
    )

    def __init__(
        self,
        scores: str = "logits",
        objective: str = "log",
        bounds: tuple[float, float] | None = None,
        classes: Sequence[Hashable] | None = None,
        engine: str = "auto",
    ) -> None:
        self.scores = scores
        self.objective = objective
        self.bounds = bounds
        self.classes = classes
        self.engine = engine

    def _check_options(self) -> None:
        super()._check_options()
        check_choice(self.objective, "objective", ("log", "brier"))
        check_choice(self.engine, "engine", ENGINES)
        if self.bounds is not None:
            _check_bounds(self.bounds)

    def _learn(self, rows: Rows, progress: Progress) -> None:
        found = self._find(rows)
        progress(1.0, "temperature")
        self.temperature_ = 1 / found.beta
        self.passes_, self.converged_ = found.passes, found.converged
        self.at_boundary_ = found.edge is not None
        if self.impossible_:
            self._note(
                f"{self.impossible_} rows gave their label probability 0. Their log loss "
                "is infinite at any temperature; they were left out."
            )
        if found.edge is not None:
            self._note(f"{EDGES[found.edge]} T = {self.temperature_:.6g}.")

    def _find(self, rows: Rows) -> tempering.Found:
        loss = tempering.LogLoss(rows, self.engine)
        bounds = (
            None if self.bounds is None else (1 / self.bounds[1], 1 / self.bounds[0])
        )
        found = tempering.minimise(loss, bounds)
        self.impossible_ = loss.impossible
        if self.objective == "brier" and found.edge != "flat":
            return minimise_brier(BrierLoss(rows), found)
        return found

    def _apply(self, rows: Rows) -> tuple[Kind, Matrix]:
        out = np.empty(rows.scores.shape, rows.work_type)
        rows.each(lambda part: tempered(rows, part, self.temperature_, out[part]))
        return "logits", out


def tempered(rows: Rows, part: slice, temperature: float, out: Matrix) -> None:
    """Log-scores of some rows, less the largest of their row, over the temperature."""
    block = rows.block(part)
    with np.errstate(divide="ignore", over="ignore"):
        if rows.kind == "probs":
            block = np.log(block)
        np.subtract(block, block.max(axis=1, keepdims=True), out=out)
    out /= out.dtype.type(temperature)


def _check_bounds(bounds: Any) -> None:
    numbers = [as_number(bound) for bound in bounds] if np.iterable(bounds) else []
    if len(numbers) != 2 or not 0 < numbers[0] < numbers[1] < inf:
        raise ValueError(
            "bounds must be the least and the greatest temperature, "
            f"0 < least < greatest; got {bounds!r}."
        )
