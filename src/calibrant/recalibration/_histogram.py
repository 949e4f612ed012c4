"""Histogram binning: a probability becomes the share of hits in its bin."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np

from calibrant._base.checks import as_number, read_strategy
from calibrant._base.records import CLOSE, SLACK, Amounts, Shares
from calibrant._inputs.arrays import Column, Index, Mask, Matrix
from calibrant._rows import compiled, engines
from calibrant._rows.engines import PARTS, over_ranges
from calibrant.recalibration import _modes as modes
from calibrant.recalibration._estimator import Places, wrong_shape
from calibrant.recalibration._modes import Report
from calibrant.recalibration._rows import Kind, Rows


def width_edges(bins: int) -> Column:
    """Edges of equal-width bins: the doubles nearest to i / bins."""
    return np.arange(bins + 1) / bins


def mass_edges(p: Matrix, weight: Column, bins: int) -> Column:
    """Edges of bins of equal weight; each distinct value goes where its mid-rank falls.

    An edge is half way between two values. Where there are fewer values than bins,
    edges are repeated: there is nothing between them.

    >>> mass_edges(np.array([0.1, 0.2, 0.2, 0.8]), np.ones(4), bins=3).tolist()
    [0.0, 0.15000000000000002, 0.5, 1.0]
    """
    order = np.argsort(p)
    value = p[order].astype(np.float64)
    first = np.flatnonzero(np.concatenate([[True], value[1:] != value[:-1]]))
    value, weight = value[first], np.add.reduceat(weight[order], first)
    before = np.cumsum(weight)
    cuts = np.arange(1, bins) * before[-1] / bins
    inner = np.searchsorted(before, cuts, side="left")
    inner += before[inner] - 0.5 * weight[inner] <= cuts
    ends = np.concatenate([[0.0], value, [1.0]])
    low, high = ends[inner], ends[inner + 1]
    half = low + (high - low) / 2
    edges = np.where(half < high, half, low)  # neighbours have nothing between them
    return np.concatenate([[0.0], edges, [1.0]])


Closed = Literal["right", "left"]


def place(p: Matrix, edges: Column, closed: Closed = "right") -> Index:
    """Numbers of the bins; what lies beyond an end is in the bin at that end."""
    return np.searchsorted(edges[1:-1], p, "left" if closed == "right" else "right")


def count(
    rows: Rows, edges: Column, closed: Closed, engine: str = "auto"
) -> tuple[Column, Column]:
    """Weight of all rows, and of those of the class, in each bin of each class."""
    k, bins = rows.k, len(edges) - 1
    if engines.wanted(engine, plain=closed == "right"):
        return _counted(rows, edges)

    def work(part: slice) -> Column:
        probs, y = modes.probabilities(rows, part), rows.y[part]
        weight = np.broadcast_to(rows.weights(part), len(probs))
        # Most are in the first bin: of a row, only 1 / edge can be above it.
        above = probs >= float(edges[1])
        row, column = np.divmod(np.flatnonzero(above), k)
        at = column * bins + place(probs[row, column], edges, closed)
        counts = _tally(at, weight[row], k * bins)
        counts[::bins] += np.where(above, 0.0, weight[:, None]).sum(axis=0)
        own = y * bins + place(probs[np.arange(len(y)), y], edges, closed)
        return np.stack([counts, _tally(own, weight, k * bins)])

    counts, hits = rows.add_up(work).reshape(2, k, bins)
    return counts, hits


def _counted(rows: Rows, edges: Column) -> tuple[Column, Column]:
    """As `count` by the compiled loop, of bins of equal width."""

    def work(start: int, stop: int) -> Column:
        found = np.zeros((2, rows.k, len(edges) - 1))
        for part in rows.parts(start, stop):
            weight = None if rows.weight is None else compiled.ready(rows.weight[part])
            labels = compiled.ready(rows.y[part], np.int64)
            probs = modes.probabilities(rows, part)
            compiled.loops.tally(rows.k, probs, edges, weight, labels, *found)
        return found

    found = over_ranges(work, len(rows), rows.scores.size, PARTS)
    counts, hits = np.sum(found, axis=0)
    return counts, hits


def count_column(
    p: Matrix, hit: Mask, weight: Column, edges: Column
) -> tuple[Column, Column]:
    """Weight of all rows, and of the hits, in each bin of one class."""
    at, bins = place(p, edges), len(edges) - 1
    return _tally(at, weight, bins), _tally(at[hit], weight[hit], bins)


def _tally(at: Index, weight: Column, size: int) -> Column:
    """Weight at each of the first numbers."""
    return np.bincount(at, weight, size).astype(np.float64)  # of nothing, it is int


def shares(counts: Column, hits: Column, edges: Column, smoothing: float) -> Column:
    """What a bin gives: its share of hits, with some pseudo-rows at its mid-point."""
    middle = 0.5 * (edges[..., :-1] + edges[..., 1:])
    whole = counts + smoothing
    filled = whole > 0
    share = (hits + smoothing * middle) / np.where(filled, whole, 1.0)
    return np.where(filled, share, middle)


def look_up(probs: Matrix, edges: Column, values: Matrix, out: Matrix) -> None:
    """Values of the bins that probabilities fall into, all classes having same edges."""
    out[...] = np.ascontiguousarray(values[:, 0])  # four times as fast
    above = np.flatnonzero(probs >= float(edges[1]))
    at = place(probs.ravel()[above], edges)
    out.reshape(-1)[above] = values[above % probs.shape[1], at]


def look_up_compiled(
    rows: Rows, edges: Column, values: Matrix, absent: Index, part: slice, out: Matrix
) -> None:
    """As `look_up`, then `modes.divide`, in one go; `values` by bin, then class."""
    probs = modes.probabilities(rows, part)
    compiled.loops.replace(rows.k, probs, edges, values, absent, out)


def look_up_mass(probs: Matrix, inner: Matrix, values: Matrix, out: Matrix) -> None:
    """The same, each class having its own inner edges, by bin and class in `inner`."""
    at = np.broadcast_to(np.arange(len(values)) * values.shape[1], probs.shape).copy()
    for edge in inner:
        at += probs > edge
    out[...] = values.ravel()[at]


MOST_BINS = 10_000


@dataclass(eq=False, repr=False)
class HistogramBinning(modes.ByMode):
    """Replace probabilities by the share of hits among the rows in the same bin.

    With ``mode="one-vs-rest"`` each class has its own bins, and rows are divided by
    their sum. The order of the classes of a row, and so the accuracy, may change.

    With ``mode="top-label"`` only the confidence is binned. The predicted class gets
    the accuracy v of its bin, the others share 1 - v in proportion to what they had, or
    more evenly where one of them would overtake it. The prediction changes only if
    v <= 1/k.

    Equal-width bins are (a, b], and 0 is in the first one. Equal-mass bins have edges
    half way between scores and never part equal scores.

    - An empty bin gives its mid-point.
    - A class without any row to fit on keeps its own probability; a note counts them.
    - A row whose new values are all 0 keeps its probabilities.
    - A bin without a hit gives exactly 0, which makes the log loss infinite where it is
      wrong: a note tells, and `smoothing` prevents that.

    Parameters
    ----------
    scores, classes
        As in `Recalibrator`.
    bins : int
        Number of bins.
    strategy : {"width", "mass"}
        Bins of equal width, or of equal weight of rows; scikit-learn's words for them,
        ``"uniform"`` and ``"quantile"``, are understood.
    mode : {"one-vs-rest", "top-label"}
        Recalibrate all classes, or the confidence only.
    smoothing : float
        Pseudo-rows s per bin that agree with its mid-point m: a bin gives
        (hits + s m) / (rows + s). Any s > 0 rules out exact zeros.
    compat : {None, "netcal"}
        ``"netcal"`` gives what netcal 1.4.0 does, in double precision bit for bit. Bins
        are [a, b) in `fit` but (a, b] later, a class without a row becomes impossible,
        and of two classes only the second is recalibrated. A row of zeros, which there
        becomes NaN, here makes all classes as likely.
    engine
        As in `Recalibrator`; only equal-width bins one-vs-rest have a use for it.

    Attributes
    ----------
    edges_ : ndarray
        Edges of the bins: (bins + 1,), but (k, bins + 1) for equal mass one-vs-rest.
    counts_, values_ : ndarray
        Number of the rows in each bin (as much of the effective number as their weight
        is of all), and what the bin gives: (k, bins), but (bins,)
        for top-label.
    absent_ : ndarray
        Column numbers of classes without a row, one-vs-rest.

    Examples
    --------
    >>> from calibrant.recalibration import HistogramBinning
    >>> h = [0.9, 0.9, 0.9, 0.9, 0.2, 0.2]  # of the second class; 3 of 4 are right
    >>> binned = HistogramBinning(scores="probs", bins=2).fit(h, [1, 1, 1, 0, 0, 1])
    >>> binned.values_[1].tolist(), binned.predict_proba([0.8]).tolist()
    ([0.5, 0.75], [[0.25, 0.75]])
    """

    learned: ClassVar[Mapping[str, Any]] = {
        "edges_": Shares,
        "counts_": Amounts,
        "values_": Shares,
        "absent_": Places,
    }
    fits = "bins"

    scores: str = "logits"
    bins: int = 15
    strategy: str = "width"
    mode: str = "one-vs-rest"
    smoothing: float = 0.0
    compat: str | None = None
    classes: Sequence[Hashable] | None = None
    engine: str = "auto"

    def _check_options(self) -> None:
        super()._check_options()
        bins: Any = self.bins
        if not (isinstance(bins, Integral) and 1 <= as_number(bins) <= MOST_BINS):
            raise ValueError(
                f"bins must be a whole number from 1 to {MOST_BINS:,}, got {bins!r}."
            )

    def _disagreement(self, k: int) -> str | None:
        top, each = self.mode == "top-label", self._by_mass
        classes = () if top else (k,)
        shapes = {
            "edges_": (*(classes if each else ()), self.bins + 1),
            "counts_": (*classes, self.bins),
            "values_": (*classes, self.bins),
        }
        own = ((name, getattr(self, name), shape) for name, shape in shapes.items())
        wrong = (wrong_shape(*one) for one in own)
        return next(filter(None, wrong), None) or self._misfit(k)

    def _misfit(self, k: int) -> str | None:
        """What is wrong with edges and counts of the right shapes."""
        edges, rows = self.edges_, self.counts_.sum(axis=-1)
        ends = (edges[..., 0] == 0).all() and (edges[..., -1] == 1).all()
        if not ends or (np.diff(edges) < 0).any():
            return "must have edges_ that go from 0 to 1 and never fall"
        if not self._by_mass and not np.allclose(
            edges, width_edges(self.bins), rtol=0, atol=SLACK
        ):
            return "must have edges_ of bins of equal width"
        if not (rows > 0).all() or not np.allclose(rows, rows.max(), rtol=CLOSE):
            return "must have counts_ of the same rows for each class"
        return self._strangely_absent(k)

    @property
    def _by_mass(self) -> bool:
        return read_strategy(self.strategy) == "mass"

    def _fit(self, rows: Rows, report: Report) -> None:
        by_mass, weight = self._by_mass, rows.weight_of_each
        self.edges_ = width_edges(self.bins)
        if self.mode == "top-label":
            h, hit = modes.confidences(rows)
            self.edges_ = mass_edges(h, weight, self.bins) if by_mass else self.edges_
            self.counts_, hits = count_column(h, hit, weight, self.edges_)
        elif by_mass:
            self.counts_, hits = self._count_masses(rows, report)
        elif self.compat == "netcal":
            self.edges_ = np.linspace(0.0, 1.0, self.bins + 1)
            edges = self.edges_.astype(rows.work_type)
            self.counts_, hits = count(rows, edges, "left")
        else:
            self.counts_, hits = count(rows, self.edges_, "right", self.engine)
        self.values_ = shares(self.counts_, hits, self.edges_, self.smoothing)
        if self.compat == "netcal":
            self.values_[self.absent_] = 0

    def _count_masses(self, rows: Rows, report: Report) -> tuple[Column, Column]:
        weight = rows.weight_of_each
        self.edges_ = np.empty((rows.k, self.bins + 1))
        counts, hits = np.empty((2, rows.k, self.bins))
        for c, given in modes.columns(rows):
            p = np.minimum(given, 1)
            self.edges_[c] = mass_edges(p, weight, self.bins)
            counts[c], hits[c] = count_column(p, rows.y == c, weight, self.edges_[c])
            report(c / rows.k)
        return counts, hits

    def _certainties(self) -> str | None:
        filled, sure = self.counts_ > 0, (0, 1) if self.mode == "top-label" else (0,)
        certain = int(np.sum(np.isin(self.values_, sure) & filled))
        whose = "accuracy 0 or 1" if self.mode == "top-label" else "a share of 0"
        return f"{certain} of {filled.sum()} bins have {whose}" if certain else None

    def _apply(self, rows: Rows) -> tuple[Kind, Matrix]:
        if self.mode == "top-label":
            return "probs", rows.filled(partial(self._give, rows))
        values, inner = self.values_.astype(rows.work_type), None
        if self._by_mass:
            # For numbers of this type, to exceed these is to exceed the edge itself.
            inner = modes.rounded_down(self.edges_[:, 1:-1].T, rows.work_type)
        elif engines.wanted(self.engine, plain=not self.compat):
            edges, absent = self.edges_, compiled.ready(self.absent_, np.int64)
            known = compiled.ready(edges), np.ascontiguousarray(values.T), absent
            return "probs", rows.filled(partial(look_up_compiled, rows, *known))
        return "probs", rows.filled(partial(self._look_up, rows, values, inner))

    def _give(self, rows: Rows, part: slice, out: Matrix) -> None:
        probs, best, h = modes.find_top(rows, part)
        value = self.values_[place(h, self.edges_)]
        modes.give(probs, best, value, 1 - value)
        out[...] = probs

    def _look_up(
        self, rows: Rows, values: Matrix, inner: Matrix | None, part: slice, out: Matrix
    ) -> None:
        probs = modes.probabilities(rows, part)
        if inner is None:
            look_up(probs, self.edges_, values, out)
        else:
            look_up_mass(np.minimum(probs, 1), inner, values, out)
        self._divide(out, probs)
