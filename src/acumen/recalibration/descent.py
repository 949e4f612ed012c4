"""The penalised log loss of softmax(W z + b), and the way down from temperature scaling.

With x = z / s, s the spread of the scores within rows, the map is
``(u I + D) x + b``. Here u = s / T stands for temperature scaling, D and b are what
departs from it. All are in units of logits, so scores of any size are alike.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column, Matrix
from acumen.recalibration.rows import Rows

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
            _refuse_masked(z, part.start)
        if self.normalised:
            z -= z.max(axis=1, keepdims=True)
            z -= np.log(np.exp(z).sum(axis=1, keepdims=True))
        return z


def _refuse_masked(z: Matrix, first: int) -> None:
    row, column = (int(place[0]) for place in np.nonzero(np.isneginf(z)))
    raise ValueError(
        f"logits must be finite for an affine map: row {first + row} has -inf for class "
        f"{column}. TemperatureScaling keeps masked classes; or drop the class."
    )


def least_positive(rows: Rows) -> tuple[float, int]:
    """Logarithm of the least positive probability, and how many are exactly 0."""
    least, zeros = [], 0
    for part in rows.parts():
        block = rows.block(part)
        there = block > 0
        zeros += there.size - int(there.sum())
        least.append(block.min(where=there, initial=1.0))
    return float(np.log(np.float64(min(least)))), zeros


class Affine(NamedTuple):
    """W and b; W is a vector where each class has a weight for its own score only."""

    weight: NDArray[np.float64]
    intercept: Column

    def __call__(self, x: Matrix) -> Matrix:
        """Mapped scores, in a new array."""
        weight = self.weight.astype(x.dtype, copy=False)
        mapped = x @ weight.T if weight.ndim == 2 else x * weight
        mapped += self.intercept.astype(x.dtype, copy=False)
        return mapped


@dataclass(frozen=True, slots=True, eq=False)
class Penalty:
    """Precisions of normal priors: of D and b around 0, of u around temperature scaling.

    That of u is relative, and holds it where D and b have made the labels certain.
    """

    weight: NDArray[np.float64]
    intercept: float
    temperature: float = 0.0

    def vector(self, u: float, k: int) -> Column:
        """The precision of each of u, D and b in a row, where u is around a value."""
        shift = np.full(k, self.intercept)
        return np.concatenate(
            [[self.temperature / u**2], self.weight.ravel(), shift], dtype=np.float64
        )


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
        self.start[0] = beta * scale
        self.precision = penalty.vector(beta * scale, rows.k) / rows.total_weight

    def _features(self, part: slice) -> Matrix:
        x = self.reader.read(self.rows, part, DOUBLE)
        x /= self.spread
        return x

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
        p = at(x)
        p -= p.max(axis=1, keepdims=True)
        np.exp(p, out=p)
        p /= p.sum(axis=1, keepdims=True)
        mean = np.vecdot(p, x)
        squares = x * x
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


class Found(NamedTuple):
    """Where a descent ended, after how many steps, and whether at the optimum."""

    vector: Column
    steps: int
    converged: bool


def descend(objective: Objective, most: int, report: Callable[[int], None]) -> Found:
    """L-BFGS from temperature scaling, which the end is never worse than."""
    from scipy.optimize import minimize

    start = objective.start
    unit = objective.units(start)
    steps = 0

    def scaled(v: Column) -> tuple[float, Column]:
        value, gradient = objective(v * unit)
        gradient *= unit
        return value, gradient

    def after_step(_: Column) -> None:
        nonlocal steps
        steps += 1
        report(steps)

    result = minimize(
        scaled,
        start / unit,
        jac=True,
        method="L-BFGS-B",
        callback=after_step,
        options={
            "maxiter": most,
            "maxfun": 3 * most + 20,
            "maxcor": REMEMBERED,
            "ftol": LITTLE_GAIN,
            "gtol": SMALL_SLOPE,
        },
    )
    near = bool(np.abs(result.jac).max() <= sqrt(SMALL_SLOPE))
    converged = bool(result.success or (result.status == 2 and near))
    if not result.fun <= objective(start)[0]:
        return Found(start, steps, converged=False)
    return Found(result.x * unit, steps, converged)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Keep the threads of the BLAS from getting in the way of ours, if that can be done.

    They wait for each other by spinning: on a busy machine, for most of the time.
    """
    if find_spec("threadpoolctl") is None:  # comes with acumen[fast]
        return nullcontext()
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, "blas")
