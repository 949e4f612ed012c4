"""Histogram binning: a probability becomes the share of hits in its bin."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from acumen.arrays import Column, Matrix, as_number, check_choice
from acumen.compiled import fast
from acumen.recalibration import binning, onevsrest, toplabel
from acumen.recalibration.estimator import Progress, Recalibrator
from acumen.recalibration.rows import Kind, Rows

MOST_BINS = 10_000


class HistogramBinning(Recalibrator):
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
      wrong: `smoothing` prevents that.

    Parameters
    ----------
    scores : {"logits", "probs"}
        What the scores are.
    bins : int
        Number of bins.
    strategy : {"width", "mass"}
        Bins of equal width, or of equal weight of rows.
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
    classes : sequence, optional
        Names of the classes in column order, if labels are neither column numbers nor
        names in sorted order.
    engine : {"auto", "numpy", "numba"}
        ``"auto"`` uses numba for large matrices if it is installed; only equal-width
        bins one-vs-rest have a use for it.

    Attributes
    ----------
    edges_ : ndarray
        Edges of the bins: (bins + 1,), but (k, bins + 1) for equal mass one-vs-rest.
    counts_, values_ : ndarray
        Weight of the rows in each bin, and what the bin gives: (k, bins), but (bins,)
        for top-label.
    absent_ : ndarray
        Column numbers of classes without a row, one-vs-rest.

    Examples
    --------
    >>> from acumen.recalibration import HistogramBinning
    >>> h = [0.9, 0.9, 0.9, 0.9, 0.2]  # of the second class; 3 of 4 are right
    >>> binned = HistogramBinning(scores="probs", bins=2).fit(h, [1, 1, 1, 0, 0])
    >>> binned.values_[1].tolist(), binned.predict_proba([0.8]).tolist()
    ([0.0, 0.75], [[0.25, 0.75]])
    """

    learned: ClassVar[tuple[str, ...]] = ("edges_", "counts_", "values_", "absent_")

    def __init__(
        self,
        scores: str = "logits",
        bins: int = 15,
        strategy: str = "width",
        mode: str = "one-vs-rest",
        smoothing: float = 0.0,
        compat: str | None = None,
        classes: Sequence[Hashable] | None = None,
        engine: str = "auto",
    ) -> None:
        self.scores = scores
        self.bins = bins
        self.strategy = strategy
        self.mode = mode
        self.smoothing = smoothing
        self.compat = compat
        self.classes = classes
        self.engine = engine

    def _check_options(self) -> None:
        super()._check_options()
        _check_bins(self.bins)
        check_choice(self.strategy, "strategy", ("width", "mass"))
        check_choice(self.mode, "mode", ("one-vs-rest", "top-label"))
        check_choice(self.engine, "engine", fast.ENGINES)
        onevsrest.check_smoothing(self.smoothing)
        onevsrest.check_compat(
            self.compat,
            strategy=(self.strategy, "width"),
            mode=(self.mode, "one-vs-rest"),
            smoothing=(self.smoothing, 0),
        )

    def _learn(self, rows: Rows, progress: Progress) -> None:
        self.absent_ = onevsrest.absent_classes(rows, self.mode, self.compat)
        if self.mode == "top-label":
            counts, hits = self._count_top(rows)
        else:
            counts, hits = self._count_classes(rows, progress)
        self.counts_ = counts
        self.values_ = binning.shares(counts, hits, self.edges_, self.smoothing)
        if self.compat == "netcal":
            self.values_[self.absent_] = 0
        progress(1.0, "bins")
        if self.absent_.size:
            self._note(onevsrest.describe_absent(self.absent_, rows.k, self.compat))

    def _count_top(self, rows: Rows) -> tuple[Column, Column]:
        h, hit = toplabel.confidences(rows)
        weight = onevsrest.weight_of_rows(rows)
        if self.strategy == "mass":
            self.edges_ = binning.mass_edges(h, weight, self.bins)
        else:
            self.edges_ = binning.width_edges(self.bins)
        return binning.count_column(h, hit, weight, self.edges_)

    def _count_classes(self, rows: Rows, progress: Progress) -> tuple[Column, Column]:
        if self.strategy == "mass":
            return self._count_masses(rows, progress)
        if self.compat == "netcal":
            self.edges_ = np.linspace(0.0, 1.0, self.bins + 1)
            return binning.count(rows, self.edges_.astype(rows.work_type), "left")
        self.edges_ = binning.width_edges(self.bins)
        return binning.count(rows, self.edges_, "right")

    def _count_masses(self, rows: Rows, progress: Progress) -> tuple[Column, Column]:
        weight = onevsrest.weight_of_rows(rows)
        self.edges_ = np.empty((rows.k, self.bins + 1))
        counts, hits = np.empty((2, rows.k, self.bins))
        for c, given in onevsrest.columns(rows):
            p = np.minimum(given, 1)
            self.edges_[c] = binning.mass_edges(p, weight, self.bins)
            counts[c], hits[c] = binning.count_column(
                p, rows.y == c, weight, self.edges_[c]
            )
            progress(c / rows.k, "bins")
        return counts, hits

    def _apply(self, rows: Rows) -> tuple[Kind, Matrix]:
        out = np.empty(rows.scores.shape, rows.work_type)
        work = self._work(rows, out)
        rows.each(lambda part: work(part, out[part]))
        return "probs", out

    def _work(self, rows: Rows, out: Matrix) -> Callable[[slice, Matrix], None]:
        """What fills the new probabilities of some rows."""
        if self.mode == "top-label":
            return partial(self._give, rows)
        values = self.values_.astype(out.dtype)
        if self.strategy == "mass":
            inner = binning.inner_edges(self.edges_, out.dtype)
            return partial(self._look_up, rows, values, inner)
        if self.compat is None and fast.wanted(self.engine, rows.scores, plain=True):
            return partial(self._look_up_compiled, rows, np.ascontiguousarray(values.T))
        return partial(self._look_up, rows, values, None)

    def _give(self, rows: Rows, part: slice, out: Matrix) -> None:
        probs, best, h = toplabel.find_top(rows, part)
        value = self.values_[binning.place(h, self.edges_)]
        toplabel.give(probs, best, value, 1 - value)
        out[...] = probs

    def _look_up(
        self, rows: Rows, values: Matrix, inner: Matrix | None, part: slice, out: Matrix
    ) -> None:
        probs = onevsrest.probabilities(rows, part)
        if inner is None:
            binning.look_up(probs, self.edges_, values, out)
        else:
            binning.look_up_mass(np.minimum(probs, 1), inner, values, out)
        if self.compat == "netcal":
            onevsrest.divide_as_netcal(out)
        else:
            onevsrest.divide(out, probs, self.absent_)

    def _look_up_compiled(
        self, rows: Rows, values: Matrix, part: slice, out: Matrix
    ) -> None:
        from acumen.recalibration import binning_numba

        probs = onevsrest.probabilities(rows, part)
        binning_numba.replace(probs, self.edges_, values, self.absent_, out)


def _check_bins(bins: Any) -> None:
    if not (isinstance(bins, Integral) and 1 <= as_number(bins) <= MOST_BINS):
        raise ValueError(
            f"bins must be a whole number from 1 to {MOST_BINS:,}, got {bins!r}."
        )
