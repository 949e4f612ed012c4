"""Affine scaling of logits: a weight per class, or per pair of classes, and an intercept."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from math import inf, sqrt
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from calibrant._base.checks import RowError, check_number
from calibrant._base.records import Positive, Range, Share, Whole
from calibrant._inputs.arrays import Column, Matrix, Table
from calibrant.recalibration import _temperature as temperature
from calibrant.recalibration._estimator import (
    Numbers,
    Progress,
    Recalibrator,
    wrong_shape,
)
from calibrant.recalibration._rows import Kind, Rows, softmax

# With x = z / s, s the spread of the scores within rows, the map is
# ``(u I + D) x + b``. Here u = s / T stands for temperature scaling, D and b are what
# departs from it. All are in units of logits, so scores of any size are alike.

DOUBLE = np.dtype(np.float64)

LITTLE_GAIN, SMALL_SLOPE = 1e-12, 1e-6
"""Gain of a step, and slope in any direction, that end the descent."""

REMEMBERED = 8
"""Steps from which L-BFGS learns the curvature; each costs two copies of the weights."""


@dataclass(frozen=True, slots=True)
class Reader:
    """How scores become the log-scores that are mapped.

    `normalised` makes logits log-probabilities. `floor` is the least log-probability:
    whatever is below it, 0 included, counts as that.
    """

    normalised: bool = False
    floor: float = -inf

    def read(self, rows: Rows, part: slice, dtype: np.dtype[Any]) -> Matrix:
        """Log-scores of some rows, all finite, in an array of their own."""
        z = np.array(rows.block(part), dtype=dtype)
        if rows.kind == "probs":
            with np.errstate(divide="ignore"):
                np.log(z, out=z)
            return np.maximum(z, dtype.type(self.floor), out=z)
        if not np.isfinite(z.min()):
            row, column = np.argwhere(np.isneginf(z))[0].tolist()
            rule = "logits must be finite for an affine map:"
            what = f"has -inf for class {column}"
            remedy = "TemperatureScaling keeps masked classes; or drop the class."
            raise RowError(rule, part.start + row, what, remedy=remedy)
        if self.normalised:
            z -= z.max(axis=1, keepdims=True)
            z -= np.log(np.exp(z).sum(axis=1, keepdims=True))
        return z


def least_positive(rows: Rows) -> tuple[float | None, int]:
    """Logarithm of the least positive probability, and how many are exactly 0."""
    least, zeros = [], 0
    if rows.kind == "logits":
        return None, 0
    for part in rows.parts():
        block = rows.block(part)
        there = block > 0
        zeros += there.size - int(there.sum())
        least.append(block.min(where=there, initial=1.0))
    return float(np.log(np.float64(min(least)))), zeros


class Affine(NamedTuple):
    """W and b; W is a vector where each class has a weight for its own score only."""

    weight: Table
    intercept: Column

    def __call__(self, x: Matrix) -> Matrix:
        """Mapped scores, in a new array."""
        weight = self.weight.astype(x.dtype, copy=False)
        mapped = x @ weight.T if weight.ndim == 2 else x * weight
        mapped += self.intercept.astype(x.dtype, copy=False)
        return mapped


class Penalty(NamedTuple):
    """Precisions of normal priors: of D and b around 0, of u around temperature scaling.

    That of u is relative, and holds it where D and b have made the labels certain.
    """

    weight: Table
    intercept: float
    temperature: float = 0.0


class Objective:
    """Mean log loss plus penalty, as a function of one vector: u, D and b in a row.

    `beta` = 1 / T is that of temperature scaling, to which the penalty pulls.
    """

    def __init__(
        self, rows: Rows, reader: Reader, scale: float, beta: float, penalty: Penalty
    ) -> None:
        self.rows, self.reader, self.spread = rows, reader, scale
        self.shape, self.full = penalty.weight.shape, penalty.weight.ndim == 2
        self.start = np.zeros(1 + penalty.weight.size + rows.k)
        self.start[0] = u = beta * scale
        shift, first = np.full(rows.k, penalty.intercept), [penalty.temperature / u**2]
        self.precision = np.concatenate([first, penalty.weight.ravel(), shift])
        self.precision /= rows.total_weight

    def _features(self, part: slice) -> Matrix:
        return self.reader.read(self.rows, part, DOUBLE) / self.spread

    def affine(self, vector: Column) -> Affine:
        """The map of x = z / spread."""
        k = self.rows.k
        u, D, b = vector[0], vector[1:-k].reshape(self.shape), vector[-k:]
        return Affine(D + u * np.eye(k) if self.full else D + u, b)

    def __call__(self, vector: Column) -> tuple[float, Column]:
        """Value and gradient."""
        at = self.affine(vector)
        sums = self.rows.add_up(lambda part: self._block(at, part))
        sums /= self.rows.total_weight
        loss, gradient = float(sums[0]), sums
        slope = sums[1 : -self.rows.k].reshape(self.shape)
        gradient[0] = np.trace(slope) if self.full else slope.sum()  # u moves all of it
        off = vector - self.start
        pull = self.precision * off
        gradient += pull
        return loss + 0.5 * float(pull @ off), gradient

    def _block(self, at: Affine, part: slice) -> Column:
        """Sums over some rows: the loss, and its gradient in W and b."""
        x, y, weight = self._features(part), self.rows.y[part], self.rows.weights(part)
        rows = np.arange(len(x))
        p = at(x)
        p -= p.max(axis=1, keepdims=True)
        own = p[rows, y]
        np.exp(p, out=p)
        total = p.sum(axis=1)
        loss = np.sum(weight * (np.log(total) - own))
        p *= (weight / total)[:, None]
        p[rows, y] -= weight
        slope = p.T @ x if self.full else np.einsum("ij,ij->j", p, x)
        return np.concatenate([[loss], slope.ravel(), p.sum(axis=0)])

    def units(self, vector: Column) -> Column:
        """Lengths by which to measure each variable: one over the root of its curvature."""
        at = self.affine(vector)
        sums = self.rows.add_up(lambda part: self._curvature(at, part))
        sums /= self.rows.total_weight
        sums += self.precision
        k = self.rows.k
        for part in (slice(0, 1), slice(1, -k), slice(-k, None)):
            sums[part] = np.maximum(sums[part], 1e-6 * sums[part].max() + 1e-12)
        return 1 / np.sqrt(sums)

    def _curvature(self, at: Affine, part: slice) -> Column:
        """Sums over some rows: second derivatives in u, in each of W, in each of b."""
        x, weight = self._features(part), self.rows.weights(part)
        p, squares = softmax(at(x)), x * x
        mean = np.vecdot(p, x)
        along = np.sum(weight * (np.vecdot(p, squares) - mean * mean))
        p *= 1 - p
        p *= np.broadcast_to(weight, len(x))[:, None]
        slope = p.T @ squares if self.full else np.einsum("ij,ij->j", p, squares)
        return np.concatenate([[along], slope.ravel(), p.sum(axis=0)])


def spread(rows: Rows, reader: Reader) -> float:
    """Root mean variance of the log-scores within rows."""

    def variance(part: slice) -> float:
        z = reader.read(rows, part, DOUBLE)
        return float(np.sum(rows.weights(part) * z.var(axis=1)))

    return sqrt(rows.add_up(variance) / rows.total_weight)


def descend(
    objective: Objective, most: int, report: Callable[[int], None]
) -> tuple[Column, int, bool]:
    """L-BFGS from temperature scaling, which the end is never worse than.

    Gives where it ended, after how many steps, and whether that is the optimum.
    """
    from scipy.optimize import minimize

    start, steps = objective.start, count(1)
    unit = objective.units(start)

    def scaled(v: Column) -> tuple[float, Column]:
        value, gradient = objective(v * unit)
        return value, gradient * unit

    options = {"maxiter": most, "maxfun": 3 * most + 20, "maxcor": REMEMBERED}
    result = minimize(
        scaled,
        start / unit,
        jac=True,
        method="L-BFGS-B",
        callback=lambda _: report(next(steps)),
        options={**options, "ftol": LITTLE_GAIN, "gtol": SMALL_SLOPE},
    )
    if not result.fun <= objective(start)[0]:
        return start, result.nit, False
    near = bool(np.abs(result.jac).max() <= sqrt(SMALL_SLOPE))
    converged = bool(result.success or (result.status == 2 and near))
    return result.x * unit, result.nit, converged


def one_blas_thread() -> AbstractContextManager[Any]:
    """Keep the threads of the BLAS from getting in the way of ours, if that can be done.

    They wait for each other by spinning: on a busy machine, for most of the time.
    """
    if find_spec("threadpoolctl") is None:  # comes with scikit-learn
        return nullcontext()
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, "blas")


INTERCEPT_SD, TEMPERATURE_SD = 0.2, 0.2
"""Prior standard deviations: of an intercept in units of logits, and of the temperature
relative to that of temperature scaling."""

EDGES = {
    "flat": "all classes of an example have the same score, so it does not matter.",
    "hot": "the labels score no better than chance, so it is the greatest allowed.",
    "cold": "hardly an example contradicts its largest score, so it is the least allowed.",
}


class _AffineScaling(Recalibrator):
    """softmax(W z + b), held near temperature scaling by a penalty.

    Without one, the many parameters fit the noise of the held-out rows.
    """

    learned: ClassVar[Mapping[str, Any]] = {
        "weight_": Numbers,
        "intercept_": Numbers,
        "temperature_": Positive,
        "floor_": Annotated[float, Range(most=0)] | None,
        "lapse_": Share,
        "converged_": bool,
        "n_iter_": Whole,
    }
    lapse_ = 0.0  # of files of 0.1.0, too
    strengths: ClassVar[tuple[str, ...]] = ("diagonal", "intercept")
    normalised: ClassVar[bool] = False

    intercept: float
    max_iter: int
    weight_: Table
    intercept_: Column
    floor_: float | None

    @abstractmethod
    def _precision(self, k: int) -> Table:
        """Prior precision of each departure from temperature scaling."""

    def _check_options(self) -> None:
        super()._check_options()
        self._check_not_negative(*self.strengths)
        check_number(self.max_iter, "max_iter", 1, kind="a whole number")

    def _disagreement(self, k: int) -> str | None:
        shape = self._precision(2).ndim * (k,)
        if self.scores == "logits" and self.floor_ is not None:
            return "has a floor_, which logits have not"
        return wrong_shape("weight_", self.weight_, shape) or wrong_shape(
            "intercept_", self.intercept_, (k,)
        )

    def _reader(self) -> Reader:
        return Reader(self.normalised, -inf if self.floor_ is None else self.floor_)

    def _learn(self, rows: Rows, progress: Progress) -> None:
        objective, most = self._objective(rows), int(self.max_iter)
        with one_blas_thread():
            vector, self.n_iter_, self.converged_ = descend(
                objective, most, lambda step: progress(step / (most + 1), "L-BFGS")
            )
        progress(1.0, "L-BFGS")
        weight, self.intercept_ = objective.affine(vector)
        self.weight_ = weight / objective.spread
        self.temperature_ = float(objective.spread / vector[0])
        if not self.converged_:
            self._note(
                f"no optimum after {self.n_iter_} iterations, only better than "
                "temperature scaling. Raise max_iter, or the penalty."
            )

    def _lifted(self, rows: Rows) -> Rows:
        """The rows with the lapse rate that they need."""
        self.floor_, zeros = least_positive(rows)
        spread(rows, self._reader())  # refuses what has no logarithm
        self.lapse_ = temperature.learn_lapse(rows, floor=True)
        if self.lapse_:
            impossible = temperature.impossible_labels(rows)
            self._note(temperature.lapse_note(impossible, self.lapse_))
        elif zeros and self.floor_ is not None:
            least = f"the least other, {np.exp(self.floor_):.3g}"
            self._note(f"{zeros} probabilities are 0; they count as {least}.")
        if self.lapse_:
            self.floor_ = None
        return temperature.lifted(rows, self.lapse_)

    def _objective(self, rows: Rows) -> Objective:
        rows = self._lifted(rows)
        reader = self._reader()
        scale = spread(rows, reader) or 1.0
        bounds = temperature.LEAST / scale, temperature.MOST / scale
        hot = temperature.minimise(temperature.LogLoss(rows), bounds)
        hot = temperature.within_evidence(rows, hot)
        if hot.edge is not None:
            self._note(f"the temperature is {1 / hot.beta:.6g}: {EDGES[hot.edge]}")
        precisions = self.intercept / INTERCEPT_SD**2, TEMPERATURE_SD**-2
        penalty = Penalty(self._precision(rows.k), *precisions)
        return Objective(rows, reader, scale, hot.beta, penalty)

    def _apply(self, rows: Rows) -> tuple[Kind, Matrix]:
        rows = temperature.lifted(rows, self.lapse_)
        reader, affine = self._reader(), Affine(self.weight_, self.intercept_)

        def work(part: slice, out: Matrix) -> None:
            out[:] = affine(reader.read(rows, part, rows.work_type))

        with one_blas_thread():
            return "logits", rows.filled(work)


@dataclass(eq=False, repr=False)
class VectorScaling(_AffineScaling):
    """A weight and an intercept for each class: softmax(a * z + b).

    Minimises the log loss plus a penalty that pulls a towards one common weight 1/T and
    b towards 0, that is, towards temperature scaling. On the rows of the fit the log
    loss is never worse than with temperature scaling.

    Probabilities are read through their logarithms. A probability of 0, or below the
    least positive one of the fit, counts as that least one. Where labels were impossible,
    or next to it, and that lowers the log loss by 4 %, a lapse rate is mixed in first, as
    in `TemperatureScaling`. Logits must be finite.

    Parameters
    ----------
    scores, classes
        As in `Recalibrator`.
    diagonal, intercept : float
        Strength of the penalty on what a and b depart from temperature scaling by; 0 is
        none. At 1 it is that of a normal prior: for a, with standard deviation 1/sqrt(k)
        in units of logits (that is, for a times the spread of the scores within rows);
        for b, with standard deviation 0.2.
    max_iter : int
        Most iterations of L-BFGS.

    Attributes
    ----------
    weight_, intercept_ : ndarray of shape (k,)
        The weights a and intercepts b.
    temperature_ : float
        The temperature T towards which a is pulled. It is fitted along with a, near
        that of temperature scaling (prior standard deviation: a fifth of it).
    floor_ : float or None
        Logarithm of the least positive probability; None for logits and with a lapse
        rate.
    lapse_ : float
        The lapse rate, nearly always 0. A `FitWarning` tells of any other.
    converged_ : bool
        Whether the optimum was found. A `FitWarning` says if not.
    n_iter_ : int
        Iterations it took.

    References
    ----------
    C. Guo et al., *On calibration of modern neural networks*, ICML 2017; no penalty there.

    Examples
    --------
    >>> from calibrant.recalibration import VectorScaling
    >>> logits = [[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, 2.0]] * 100
    >>> vector = VectorScaling(diagonal=0, intercept=0).fit(logits, [0, 0, 0, 1] * 100)
    >>> vector.predict_proba([[0.0, 2.0]]).round(2).tolist()  # as often as it was so
    [[0.5, 0.5]]
    """

    scores: str = "logits"
    diagonal: float = 1.0
    intercept: float = 1.0
    max_iter: int = 300
    classes: Sequence[Hashable] | None = None

    def _precision(self, k: int) -> Table:
        return np.full(k, self.diagonal * k)


@dataclass(eq=False, repr=False)
class MatrixScaling(_AffineScaling):
    """A weight for each pair of classes, and an intercept for each: softmax(W z + b).

    Minimises the log loss plus a penalty that pulls W towards the identity over T and b
    towards 0, that is, towards temperature scaling. On the rows of the fit the log loss
    is never worse than with temperature scaling. Without a penalty it fits noise: with
    100 classes the log loss of new rows is a multiple of what it was. Scores are read as
    in `VectorScaling`.

    Parameters
    ----------
    scores, classes
        As in `Recalibrator`.
    diagonal, off_diagonal, intercept : float
        Strength of the penalty, as in `VectorScaling`. At 1 the standard deviation of
        the prior of W is 1/sqrt(k) on and 1/k off the diagonal, in units of logits.
    max_iter
        As in `VectorScaling`.

    Attributes
    ----------
    weight_ : ndarray of shape (k, k)
        The weights W; row j makes the new logit of class j.
    intercept_ : ndarray of shape (k,)
        The intercepts b.
    temperature_, floor_, lapse_, converged_, n_iter_
        As in `VectorScaling`, where the source is named, too.

    Examples
    --------
    >>> from calibrant.recalibration import MatrixScaling
    >>> logits = [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]] * 100
    >>> labels = [0, 1, 2, 0, 2, 1] * 50  # the last two are mixed up
    >>> matrix = MatrixScaling().fit(logits, labels)
    >>> matrix.predict_proba(logits[:2]).round(2).tolist()
    [[0.98, 0.01, 0.01], [0.03, 0.5, 0.47]]
    """

    strengths = ("diagonal", "off_diagonal", "intercept")

    scores: str = "logits"
    diagonal: float = 1.0
    off_diagonal: float = 1.0
    intercept: float = 1.0
    max_iter: int = 300
    classes: Sequence[Hashable] | None = None

    def _precision(self, k: int) -> Table:
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
    >>> from calibrant.recalibration import DirichletCalibration
    >>> logits = [[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [0.0, 4.0]] * 100
    >>> dirichlet = DirichletCalibration().fit(logits, [0, 0, 1, 1] * 100)
    >>> dirichlet.predict_proba([[104.0, 100.0]]).round(2).tolist()
    [[0.67, 0.33]]
    """

    normalised = True
