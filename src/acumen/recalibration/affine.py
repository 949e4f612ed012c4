"""Affine scaling of logits: a weight per class, or per pair of classes, and an intercept.

The many parameters are held near temperature scaling by a penalty, without which they
fit the noise of the held-out rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from math import inf
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column, Matrix, as_number
from acumen.recalibration import tempering
from acumen.recalibration.descent import (
    Affine,
    Objective,
    Penalty,
    Reader,
    descend,
    least_positive,
    one_blas_thread,
    spread,
)
from acumen.recalibration.estimator import Progress, Recalibrator
from acumen.recalibration.rows import Kind, Rows

INTERCEPT_SD, TEMPERATURE_SD = 0.2, 0.2
"""Prior standard deviations: of an intercept in units of logits, and of the temperature
relative to that of temperature scaling."""

EDGES = {
    "flat": "all classes of a row have the same score, so it has no say in the result.",
    "hot": "the labels score no better than chance, so it is the greatest allowed.",
    "cold": "hardly a row contradicts its largest score, so it is the least allowed.",
}


class _AffineScaling(Recalibrator):
    """softmax(W z + b), near temperature scaling."""

    learned: ClassVar[tuple[str, ...]] = (
        "weight_",
        "intercept_",
        "temperature_",
        "floor_",
        "converged_",
        "n_iter_",
    )
    strengths: ClassVar[tuple[str, ...]] = ("diagonal", "intercept")
    normalised: ClassVar[bool] = False

    intercept: float
    max_iter: int
    weight_: NDArray[np.float64]
    intercept_: Column
    floor_: float | None

    @abstractmethod
    def _precision(self, k: int) -> NDArray[np.float64]:
        """Prior precision of each departure from temperature scaling."""

    def _check_options(self) -> None:
        super()._check_options()
        for name in self.strengths:
            if not 0 <= as_number(getattr(self, name)) < inf:
                raise ValueError(
                    f"{name} must be a number, 0 (no penalty) or more; "
                    f"got {getattr(self, name)!r}."
                )
        if not (as_number(self.max_iter) >= 1 and self.max_iter == int(self.max_iter)):
            raise ValueError(
                f"max_iter must be a whole number, 1 or more; got {self.max_iter!r}."
            )

    def _reader(self) -> Reader:
        return Reader(self.normalised, -inf if self.floor_ is None else self.floor_)

    def _learn(self, rows: Rows, progress: Progress) -> None:
        self._find_floor(rows)
        objective = self._objective(rows)
        most = int(self.max_iter)
        with one_blas_thread():
            found = descend(
                objective, most, lambda step: progress(step / (most + 1), "L-BFGS")
            )
        progress(1.0, "L-BFGS")
        self.converged_, self.n_iter_ = found.converged, found.steps
        affine = objective.affine(found.vector)
        self.weight_ = affine.weight / objective.spread
        self.intercept_ = affine.intercept
        self.temperature_ = float(objective.spread / found.vector[0])
        if not found.converged:
            self._note(
                f"no optimum after {found.steps} iterations, only better than temperature "
                "scaling. Raise max_iter, or the penalty."
            )

    def _objective(self, rows: Rows) -> Objective:
        reader = self._reader()
        scale = spread(rows, reader) or 1.0
        bounds = tempering.LEAST / scale, tempering.MOST / scale
        hot = tempering.minimise(tempering.LogLoss(rows), bounds)
        if hot.edge is not None:
            self._note(f"the temperature is {1 / hot.beta:.6g}: {EDGES[hot.edge]}")
        precisions = self.intercept / INTERCEPT_SD**2, TEMPERATURE_SD**-2
        penalty = Penalty(self._precision(rows.k), *precisions)
        return Objective(rows, reader, scale, hot.beta, penalty)

    def _find_floor(self, rows: Rows) -> None:
        self.floor_ = None
        if rows.kind == "logits":
            return
        self.floor_, zeros = least_positive(rows)
        if zeros:
            least = f"the least other, {np.exp(self.floor_):.3g}"
            self._note(f"{zeros} probabilities are 0; they count as {least}.")

    def _apply(self, rows: Rows) -> tuple[Kind, Matrix]:
        out = np.empty(rows.scores.shape, rows.work_type)
        reader, affine = self._reader(), Affine(self.weight_, self.intercept_)

        def work(part: slice) -> None:
            out[part] = affine(reader.read(rows, part, rows.work_type))

        with one_blas_thread():
            rows.each(work)
        return "logits", out


class VectorScaling(_AffineScaling):
    """A weight and an intercept for each class: softmax(a * z + b).

    Minimises the log loss plus a penalty that pulls a towards one common weight 1/T and
    b towards 0, that is, towards temperature scaling. On the rows of the fit the log
    loss is never worse than with temperature scaling.

    Probabilities are read through their logarithms. A probability of 0, or below the
    least positive one of the fit, counts as that least one. Logits must be finite.

    Parameters
    ----------
    scores : {"logits", "probs"}
        What the scores are.
    diagonal, intercept : float
        Strength of the penalty on what a and b depart from temperature scaling by; 0 is
        none. At 1 it is that of a normal prior: for a, with standard deviation 1/sqrt(k)
        in units of logits (that is, for a times the spread of the scores within rows);
        for b, with standard deviation 0.2.
    max_iter : int
        Most iterations of L-BFGS.
    classes : sequence, optional
        Names of the classes in column order, if labels are neither column numbers nor
        names in sorted order.

    Attributes
    ----------
    weight_, intercept_ : ndarray of shape (k,)
        The weights a and intercepts b.
    temperature_ : float
        The temperature T towards which a is pulled. It is fitted along with a, near
        that of temperature scaling (prior standard deviation: a fifth of it).
    floor_ : float or None
        Logarithm of the least positive probability; None for logits.
    converged_ : bool
        Whether the optimum was found. A `FitWarning` says if not.
    n_iter_ : int
        Iterations it took.

    References
    ----------
    C. Guo et al., *On calibration of modern neural networks*, ICML 2017; no penalty there.

    Examples
    --------
    >>> from acumen.recalibration import VectorScaling
    >>> logits = [[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, 2.0]] * 100
    >>> vector = VectorScaling(diagonal=0, intercept=0).fit(logits, [0, 0, 0, 1] * 100)
    >>> vector.predict_proba([[0.0, 2.0]]).round(2).tolist()  # as often as it was so
    [[0.5, 0.5]]
    """

    def __init__(
        self,
        scores: str = "logits",
        diagonal: float = 1.0,
        intercept: float = 1.0,
        max_iter: int = 300,
        classes: Sequence[Hashable] | None = None,
    ) -> None:
        self.scores = scores
        self.diagonal = diagonal
        self.intercept = intercept
        self.max_iter = max_iter
        self.classes = classes

    def _precision(self, k: int) -> NDArray[np.float64]:
        return np.full(k, self.diagonal * k)


class MatrixScaling(_AffineScaling):
    """A weight for each pair of classes, and an intercept for each: softmax(W z + b).

    Minimises the log loss plus a penalty that pulls W towards the identity over T and b
    towards 0, that is, towards temperature scaling. On the rows of the fit the log loss
    is never worse than with temperature scaling. Without a penalty it fits noise: with
    100 classes the log loss of new rows is a multiple of what it was.

    Probabilities are read through their logarithms. A probability of 0, or below the
    least positive one of the fit, counts as that least one. Logits must be finite.

    Parameters
    ----------
    scores : {"logits", "probs"}
        What the scores are.
    diagonal, off_diagonal, intercept : float
        Strength of the penalty on what W and b depart from temperature scaling by; 0 is
        none. At 1 it is that of a normal prior: for W, with standard deviation
        1/sqrt(k) on and 1/k off the diagonal, in units of logits (that is, for W times
        the spread of the scores within rows); for b, with standard deviation 0.2.
    max_iter : int
        Most iterations of L-BFGS.
    classes : sequence, optional
        Names of the classes in column order, if labels are neither column numbers nor
        names in sorted order.

    Attributes
    ----------
    weight_ : ndarray of shape (k, k)
        The weights W; row j makes the new logit of class j.
    intercept_ : ndarray of shape (k,)
        The intercepts b.
    temperature_, floor_, converged_, n_iter_
        As in `VectorScaling`, where the source is named, too.

    Examples
    --------
    >>> from acumen.recalibration import MatrixScaling
    >>> logits = [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]] * 100
    >>> labels = [0, 1, 2, 0, 2, 1] * 50  # the last two are mixed up
    >>> matrix = MatrixScaling().fit(logits, labels)
    >>> matrix.predict_proba(logits[:2]).round(2).tolist()
    [[0.98, 0.01, 0.01], [0.03, 0.5, 0.47]]
    """

    strengths: ClassVar[tuple[str, ...]] = ("diagonal", "off_diagonal", "intercept")

    def __init__(
        self,
        scores: str = "logits",
        diagonal: float = 1.0,
        off_diagonal: float = 1.0,
        intercept: float = 1.0,
        max_iter: int = 300,
        classes: Sequence[Hashable] | None = None,
    ) -> None:
        self.scores = scores
        self.diagonal = diagonal
        self.off_diagonal = off_diagonal
        self.intercept = intercept
        self.max_iter = max_iter
        self.classes = classes

    def _precision(self, k: int) -> NDArray[np.float64]:
        precision = np.full((k, k), self.off_diagonal * float(k * k))
        np.fill_diagonal(precision, self.diagonal * k)
        return precision


class DirichletCalibration(MatrixScaling):
    """Matrix scaling of log-probabilities: softmax(W log p + b).

    The same as `MatrixScaling`, but logits are made log-probabilities first, so that
    adding a number to all logits of a row changes nothing. With ``scores="probs"`` the
    two are one. The name is from the densities of p in each class under which this map
    is the exact posterior: Dirichlet's.

    Parameters and attributes are those of `MatrixScaling`.

    References
    ----------
    M. Kull et al., *Beyond temperature scaling*, NeurIPS 2019; there the penalty (ODIR)
    pulls off-diagonal weights and intercepts to 0, and not the diagonal.

    Examples
    --------
    >>> from acumen.recalibration import DirichletCalibration
    >>> logits = [[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [0.0, 4.0]] * 100
    >>> dirichlet = DirichletCalibration().fit(logits, [0, 0, 1, 1] * 100)
    >>> dirichlet.predict_proba([[104.0, 100.0]]).round(2).tolist()
    [[0.67, 0.33]]
    """

    normalised: ClassVar[bool] = True
