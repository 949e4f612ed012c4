"""Shifts of the base rate: one offset per class, learned, given, or found without labels."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from calibrant._base.checks import as_number, check_length, shown
from calibrant._base.records import Range, Shares, Whole, close
from calibrant._inputs.arrays import Column, Index, Matrix, Table, to_numpy
from calibrant._inputs.predictions import check_clusters, hash_names, read_weights
from calibrant.recalibration._estimator import (
    Numbers,
    Progress,
    Recalibrator,
    wrong_shape,
)
from calibrant.recalibration._rows import Kind, Rows, softmax
from calibrant.recalibration._shares import share_intervals, shares_by_em

FARTHEST_OFFSET = 40.0
"""An offset that makes the least odds of a double the largest: more is never learned."""

NEWTON_CLASSES, NEWTON_STEPS = 200, 20
LEAST_SHARE, LEAST_COUNT = 1e-6, 0.01
"""A share that is less, or less than so much of one row, is at the boundary."""

ADAPTED = "adapt"
Rates = float | Sequence[float]


def read_rates(given: Any, name: str, k: int | None = None) -> Column:
    """Shares of k classes that sum to 1; one number is that of the second of two."""
    listed = given.tolist() if isinstance(given, np.ndarray) else given
    several = isinstance(listed, list | tuple)
    rates = np.array([as_number(x) for x in (listed if several else [listed])])
    inside = bool(((rates > 0) & (rates < 1)).all())
    if not several and inside:
        rates = np.array([1 - rates[0], rates[0]])
    if not inside or len(rates) != (k or len(rates)) or not close(rates.sum(), 1):
        what = f"{k} numbers" if k else "one number per class"
        raise ValueError(
            f"{name} must be {what} between 0 and 1 that sum to 1, or one number for the "
            f"positive class of two; got {shown(given)}."
        )
    return rates


def log_scores(rows: Rows, part: slice) -> Matrix:
    """Logits, or logarithms of probabilities, in an array of their own."""
    z = np.array(rows.block(part))
    if rows.kind == "probs":
        with np.errstate(divide="ignore"):
            np.log(z, out=z)
    return z


def shifted(rows: Rows, offset: Column) -> Matrix:
    """Log-scores with one number more for each class; a class that was impossible stays so."""

    def work(part: slice, out: Matrix) -> None:
        out[...] = log_scores(rows, part) + offset.astype(out.dtype)

    return rows.filled(work)


def mean_forecast(rows: Rows, offset: Column) -> tuple[float, Column, Table | None]:
    """Mean log of the sum of e^(z + offset), its gradient and, of few classes, its Hessian.

    The gradient is the mean forecast.
    """
    few = rows.k <= NEWTON_CLASSES

    def work(part: slice) -> Column:
        z = log_scores(rows, part).astype(np.float64) + offset
        weight = np.zeros(len(z)) + rows.weights(part)
        top = z.max(axis=1)
        total = np.log(np.exp(z - top[:, None]).sum(axis=1)) + top
        p = softmax(z)
        square = (weight[:, None] * p).T @ p if few else np.empty(0)
        return np.concatenate([[weight @ total], weight @ p, square.ravel()])

    sums = rows.add_up(work) / rows.total_weight
    mean = sums[1 : 1 + rows.k]
    square = sums[1 + rows.k :].reshape(-1, rows.k)
    return float(sums[0]), mean, np.diag(mean) - square if few else None


def offsets_for(rows: Rows, rates: Column) -> Column:
    """Offsets, of mean 0, after which the mean forecast is as given.

    They minimise a convex function, mean log-sum-exp(z + b) - rates b: the log loss of any
    labels of these rates. L-BFGS comes near, Newton steps end it.
    """
    from scipy.optimize import minimize

    def loss(offset: Column) -> tuple[float, Column]:
        value, mean, _ = mean_forecast(rows, offset)
        return value - float(rates @ offset), mean - rates

    bounds = [(-FARTHEST_OFFSET, FARTHEST_OFFSET)] * rows.k
    found: Any = minimize(
        loss,
        np.zeros(rows.k),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000},
    )
    return _polished(rows, rates, found.x - found.x.mean())


def _polished(rows: Rows, rates: Column, offset: Column) -> Column:
    """Newton steps from near the optimum, as long as they come nearer."""
    _, mean, hessian = mean_forecast(rows, offset)
    off = np.abs(mean - rates).max()
    for _ in range(NEWTON_STEPS):
        if hessian is None:
            break
        step: Column = np.linalg.pinv(hessian, hermitian=True) @ (mean - rates)
        trial = offset - step
        _, mean, hessian = mean_forecast(rows, trial)
        before, off = off, np.abs(mean - rates).max()
        if not off < before or np.abs(trial).max() > FARTHEST_OFFSET:
            break
        offset = trial
    return offset


@dataclass(eq=False, repr=False)
class OffsetScaling(Recalibrator):
    """Shift the log-odds so that the mean forecast is the rate: intercept-only Platt.

    softmax(z + b), one b per class and no slope. It mends calibration in the large and
    nothing else, with one number for two classes, so that a few dozen rows are enough.
    Without `rate` the rates are those of the labels. With it labels have no say: the mean
    forecast of the rows becomes `rate`, which updates a model to a place of which only the
    rate is known. A probability of 0 stays 0.

    Parameters
    ----------
    scores, classes
        As in `Recalibrator`.
    rate : float or sequence of float, optional
        What the mean forecast is to be: one number for the positive class of two, or one
        per class.
    smoothing : float
        Pseudo-rows that agree with the scores, if the rates are those of the labels. Any
        s > 0 keeps a class without a row possible.

    Attributes
    ----------
    offset_ : ndarray of shape (k,)
        The offsets b, of mean 0. Of two classes the log-odds shift by b_1 - b_0.
    rate_ : ndarray of shape (k,)
        The mean forecast that was asked for.

    Examples
    --------
    >>> from calibrant.recalibration import OffsetScaling
    >>> p = [0.1, 0.2, 0.3, 0.4]
    >>> half = OffsetScaling(scores="probs", rate=0.5).fit(p, [0, 0, 0, 1])
    >>> half.predict_proba(p)[:, 1].round(3).tolist()  # their mean is one half
    [0.27, 0.454, 0.588, 0.689]
    """

    learned: ClassVar[Mapping[str, Any]] = {"offset_": Numbers, "rate_": Shares}

    scores: str = "logits"
    rate: Rates | None = None
    smoothing: float = 1.0
    classes: Sequence[Hashable] | None = None

    def _check_options(self) -> None:
        super()._check_options()
        self._check_not_negative("smoothing")
        if self.rate is not None:
            read_rates(self.rate, "rate")

    def _learn(self, rows: Rows, progress: Progress) -> None:
        _, mean, _ = mean_forecast(rows, np.zeros(rows.k))
        self.rate_ = self._rates(rows, mean)
        there = mean > 0
        if not there.all():
            self._note(
                f"{int(np.sum(~there))} of {rows.k} classes have probability 0 in every "
                "row, which no offset changes."
            )
            self.rate_ = np.where(there, self.rate_, 0.0) / self.rate_[there].sum()
        self.offset_ = offsets_for(rows, self.rate_)
        progress(1.0, "offset")
        _, mean, _ = mean_forecast(rows, self.offset_)
        if np.abs(mean - self.rate_).max() > 1e-6:
            self._note(
                "the mean forecast cannot be what it should, for too many rows are certain, "
                "or a class has no row; it comes as near as an offset of "
                f"{FARTHEST_OFFSET:g} allows."
            )

    def _rates(self, rows: Rows, mean: Column) -> Column:
        """What the mean forecast is to be."""
        if self.rate is not None:
            return read_rates(self.rate, "rate", rows.k)
        counts = np.bincount(rows.y, rows.weight, rows.k) + self.smoothing * mean
        return counts / counts.sum()

    def _disagreement(self, k: int) -> str | None:
        wrong = wrong_shape("offset_", self.offset_, (k,))
        wrong = wrong or wrong_shape("rate_", self.rate_, (k,))
        if wrong or close(self.rate_.sum(), 1):
            return wrong
        return "must have a rate_ that sums to 1"

    def _apply(self, rows: Rows) -> tuple[Kind, Matrix]:
        return "logits", shifted(rows, self.offset_)


@dataclass(eq=False, repr=False)
class PriorShift(Recalibrator):
    """Carry probabilities over to where classes are more or less frequent.

    If only the frequency of the classes changes, and not what examples of a class look
    like (label shift), Bayes' rule gives the new probabilities: each is multiplied by new
    over old frequency and rows are divided by their sum. The probabilities must be
    calibrated where they come from: recalibrate first.

    The new frequencies are known (`prior`), or `adapt` finds them from the scores of new
    rows, without labels (the EM algorithm of Saerens et al.). Until then nothing changes.

    Parameters
    ----------
    scores, classes
        As in `Recalibrator`.
    prior : float or sequence of float, optional
        New frequencies: one number for the positive class of two, or one per class.
    source : float or sequence of float, optional
        Old ones; those of the labels given to `fit`, if they are not said.

    Attributes
    ----------
    source_, prior_ : ndarray of shape (k,)
        Old and new frequencies.
    n_iter_ : int
        Iterations of `adapt`; 0 before.

    References
    ----------
    M. Saerens, P. Latinne, C. Decaestecker, *Adjusting the outputs of a classifier to new a
    priori probabilities*, Neural Computation 2002.

    Examples
    --------
    >>> from calibrant.recalibration import PriorShift
    >>> half = [0, 1] * 50
    >>> rare = PriorShift(scores="probs", prior=0.01).fit([0.5, 0.9] * 50, half)
    >>> rare.predict_proba([0.9])[:, 1].round(4).tolist()  # odds of 9 become 9/99
    [0.0833]
    >>> new = [0.1] * 70 + [0.9] * 30
    >>> found = PriorShift(scores="probs").fit([0.1, 0.9] * 50, half).adapt(new)
    >>> round(float(found.prior_[1]), 3)  # no longer one half: 0.3 = 0.1 + 0.8 * 0.25
    0.25
    """

    learned: ClassVar[Mapping[str, Any]] = {
        "source_": Annotated[Column, Range(0, 1)],
        "prior_": Annotated[Column, Range(0, 1)],
        "n_iter_": Whole,
    }

    scores: str = "logits"
    prior: Rates | None = None
    source: Rates | None = None
    classes: Sequence[Hashable] | None = None

    def adapt(self, scores: Any, sample_weight: Any = None) -> Self:
        """Find the frequencies of the classes among new rows, from their scores alone.

        It maximises the likelihood of the rows, which is concave; all of them are used
        together, so give many, and never labels. A `FitWarning` says if a class has no
        share at all: then `source` may not fit the scores.

        Parameters
        ----------
        scores : array_like
            Scores of new rows, as in `fit`.
        sample_weight : array_like, optional
            Importance of each row, in any unit.
        """
        density, weight = self._densities(scores, sample_weight)
        self.prior_, self.n_iter_ = shares_by_em(density, self.source_, weight)
        self.notes_ = tuple(x for x in self.notes_ if not x.startswith(ADAPTED))
        gone = self.prior_ < max(LEAST_SHARE, LEAST_COUNT / len(density))
        if gone.any():
            self._note(
                f"{ADAPTED}: the likeliest frequency of {int(gone.sum())} of {len(gone)} "
                "classes is 0, at the boundary, and so will be their probabilities. The "
                "scores may not be calibrated where source is the frequency: check "
                "source=, and recalibrate first."
            )
        return self

    def prior_interval(
        self,
        scores: Any,
        sample_weight: Any = None,
        *,
        cluster: Any = None,
        level: float = 0.95,
    ) -> tuple[Column, Column]:
        """Both ends of the interval of each frequency that `adapt` finds of the same rows.

        It is of the likelihood ratio, so it stays within 0 and 1 and heeds few rows of a
        class. Scores are taken to be calibrated where `source` is the frequency, and
        `source` to be known.

        Parameters
        ----------
        scores, sample_weight
            As in `adapt`.
        cluster : array_like, optional
            The cluster of each row, if rows depend on each other.
        level : float
            Confidence level of the intervals.

        Returns
        -------
        low, high : ndarray of shape (k,)

        Examples
        --------
        >>> from calibrant.recalibration import PriorShift
        >>> new = [0.1] * 70 + [0.9] * 30
        >>> shift = PriorShift(scores="probs").fit([0.1, 0.9] * 50, [0, 1] * 50)
        >>> low, high = shift.prior_interval(new)
        >>> [round(float(end[1]), 3) for end in (low, high)]  # 0.25 is in the middle
        [0.145, 0.368]
        """
        from scipy.special import stdtrit

        if not 0 < as_number(level) < 1:
            raise ValueError(f"level must be between 0 and 1, got {shown(level)}.")
        density, weight = self._densities(scores, sample_weight)
        groups, df = None, np.inf
        if cluster is not None:
            groups = _numbers_of(cluster, len(density))
            df = np.inf if groups is None else float(groups.max())
        shares, _ = shares_by_em(density, self.source_, weight)
        known = weight, groups, float(stdtrit(df, 0.5 + level / 2))
        return share_intervals(density, shares, *known)

    def _densities(
        self, scores: Any, sample_weight: Any
    ) -> tuple[Table, Column | None]:
        """How likely each row is in each class, up to a factor, and its weight."""
        rows = self._read_to_apply(scores)
        weight, _ = read_weights(sample_weight, None, len(rows))
        p = np.concatenate([rows.probabilities(part) for part in rows.parts()])
        return p.astype(np.float64) / self.source_, weight

    def _check_options(self) -> None:
        super()._check_options()
        for name in ("prior", "source"):
            if getattr(self, name) is not None:
                read_rates(getattr(self, name), name)

    def _learn(self, rows: Rows, progress: Progress) -> None:
        rows.check()
        counts = np.bincount(rows.y, rows.weight, rows.k).astype(np.float64)
        if self.source is not None:
            counts = read_rates(self.source, "source", rows.k)
        elif not counts.all():
            self._note(
                f"{int(np.sum(counts == 0))} of {rows.k} classes are the label of no row; "
                "one more row is shared by all classes."
            )
            counts += 1 / rows.k
        self.source_: Column = counts / counts.sum()
        self.prior_, self.n_iter_ = self.source_, 0
        if self.prior is not None:
            self.prior_ = read_rates(self.prior, "prior", rows.k)
        progress(1.0, "prior")

    def _disagreement(self, k: int) -> str | None:
        for name in ("source_", "prior_"):
            rates = getattr(self, name)
            if wrong := wrong_shape(name, rates, (k,)):
                return wrong
            if not (close(rates.sum(), 1) and (rates > 0).all()):
                return f"must have a {name} of positive numbers that sum to 1"
        return None

    def _apply(self, rows: Rows) -> tuple[Kind, Matrix]:
        return "logits", shifted(rows, np.log(self.prior_) - np.log(self.source_))


def _numbers_of(cluster: Any, rows: int) -> Index | None:
    """The number of each row's cluster; None if each row is one of its own."""
    names = to_numpy(cluster, "cluster")
    check_length(names, rows, "cluster")
    found, number = np.unique(hash_names(names), return_inverse=True)
    check_clusters(len(found))
    return None if len(found) == rows else number
