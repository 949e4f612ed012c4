"""Ensemble temperature scaling: a mixture of tempered, plain and uniform probabilities."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column, Matrix
from acumen.recalibration.estimator import Progress, Recalibrator
from acumen.recalibration.rows import Kind, Rows, softmax
from acumen.recalibration.temperature import TemperatureScaling, tempered


class EnsembleTemperatureScaling(Recalibrator):
    """Mix softmax(z / T), softmax(z) and the uniform distribution.

    The temperature is that of `TemperatureScaling`; the three weights then minimise the
    log loss, a convex problem. Every class keeps at least its share of the uniform part,
    so one row that is sure and wrong does less harm. The order of classes is kept, unless
    all the weight is on the uniform part.

    Parameters
    ----------
    scores : {"logits", "probs"}
        What the scores are.
    classes : sequence, optional
        Names of the classes in column order, if labels are neither column numbers nor
        names in sorted order.
    engine : {"auto", "numpy", "numba"}
        ``"auto"`` uses numba for large matrices if it is installed.

    Attributes
    ----------
    temperature_ : float
        The temperature T.
    weights_ : ndarray of shape (3,)
        Weights of the tempered, the plain and the uniform part; they sum to 1.

    References
    ----------
    Zhang, Kailkhura, Han: Mix-n-Match, ICML 2020.

    Examples
    --------
    >>> from acumen.recalibration import EnsembleTemperatureScaling
    >>> logits = [[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [0.0, 4.0]]
    >>> mixed = EnsembleTemperatureScaling().fit(logits, [0, 0, 1, 1])
    >>> mixed.predict_proba([[4.0, 0.0]]).round(4).tolist()
    [[0.75, 0.25]]
    """

    learned: ClassVar[tuple[str, ...]] = ("temperature_", "weights_")

    def __init__(
        self,
        scores: str = "logits",
        classes: Sequence[Hashable] | None = None,
        engine: str = "auto",
    ) -> None:
        self.scores = scores
        self.classes = classes
        self.engine = engine

    def _learn(self, rows: Rows, progress: Progress) -> None:
        single = TemperatureScaling(self.scores, engine=self.engine)
        single.notes_ = ()
        single._check_options()
        single._learn(rows, lambda share, what: progress(share / 2, what))
        self.notes_ = single.notes_
        self.temperature_ = single.temperature_
        given = self._given_to_labels(rows)
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        self.weights_ = mixture_weights(given, weight)
        progress(1.0, "weights of the mixture")

    def _given_to_labels(self, rows: Rows) -> NDArray[np.float64]:
        """What each of the three parts gives to the label of each row, n x 3."""
        given = np.full((len(rows), 3), 1 / rows.k)

        def look_up(part: slice) -> None:
            at, labels = np.arange(part.stop - part.start), rows.y[part]
            for column, temperature in enumerate((self.temperature_, 1.0)):
                given[part, column] = _tempered(rows, part, temperature)[at, labels]

        rows.each(look_up)
        return given

    def _apply(self, rows: Rows) -> tuple[Kind, Matrix]:
        out = np.empty(rows.scores.shape, rows.work_type)
        hot, plain, uniform = self.weights_

        def mix(part: slice) -> None:
            block = hot * _tempered(rows, part, self.temperature_)
            block += plain * _tempered(rows, part, 1.0)
            out[part] = block + uniform / rows.k

        rows.each(mix)
        return "probs", out


def _tempered(rows: Rows, part: slice, temperature: float) -> Matrix:
    block = np.empty((part.stop - part.start, rows.k), rows.work_type)
    tempered(rows, part, temperature, block)
    return softmax(block)


def mixture_weights(given: NDArray[np.float64], weight: Column) -> Column:
    """Weights of the parts of a mixture that make its log loss least.

    Examples
    --------
    >>> mixture_weights(np.array([[0.9, 0.5], [0.9, 0.5]]), np.ones(2)).round(6).tolist()
    [1.0, 0.0]
    """
    from scipy.optimize import minimize

    share = weight / weight.sum()

    def loss(mix: Column) -> tuple[float, Column]:
        total = np.maximum(given @ mix, np.finfo(float).tiny)
        return -float(share @ np.log(total)), -(share / total) @ given

    first = np.zeros(given.shape[1])
    first[0] = 1.0
    found: Any = minimize(
        loss,
        np.full(len(first), 1 / len(first)),
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * len(first),
        constraints={"type": "eq", "fun": lambda m: m.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    mix = np.clip(found.x, 0, 1)
    mix /= mix.sum()
    return mix if loss(mix)[0] <= loss(first)[0] else first
