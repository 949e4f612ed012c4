"""Top-label binning: the confidence is binned for each predicted class on its own."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from calibrant._base.checks import check_number
from calibrant._base.records import Shares
from calibrant._inputs.arrays import Column, Index, Matrix
from calibrant.recalibration import _modes as modes
from calibrant.recalibration._estimator import (
    Places,
    Progress,
    Recalibrator,
    wrong_shape,
)
from calibrant.recalibration._histogram import count_column, mass_edges, place
from calibrant.recalibration._rows import Kind, Rows


@dataclass(eq=False, repr=False)
class TopLabelBinning(Recalibrator):
    """Histogram binning of the confidence, for each predicted class on its own.

    "Of examples called a cat at 90 %, nine in ten are cats": the share of hits given the
    confidence and the predicted class, where ``HistogramBinning(mode="top-label")`` pools
    the classes. It promises that without any assumption on the law, but for what `rows_per_bin`
    rows leave open. The predicted class gets the share of hits of its bin; the others share
    the rest as in `HistogramBinning`. A class that was never predicted in the fit keeps its
    confidence; a note counts them.

    Parameters
    ----------
    scores, classes
        As in `Recalibrator`.
    rows_per_bin : int
        About how many rows of the fit a bin holds; a class with fewer has one bin.
    smoothing : float
        Pseudo-rows s per bin, half of them hits: (hits + s / 2) / (rows + s). 0 is what the
        authors do, and can make a class impossible.

    Attributes
    ----------
    edges_, values_ : ndarray
        Lower edges of the bins of all classes, one after the other, and what each gives.
    starts_ : ndarray
        Class c has the bins ``starts_[c]`` to ``starts_[c + 1]``.

    References
    ----------
    C. Gupta, A. Ramdas, *Top-label calibration and multiclass-to-binary reductions*, ICLR
    2022.

    Examples
    --------
    >>> from calibrant.recalibration import TopLabelBinning
    >>> p = [[0.9, 0.1]] * 4 + [[0.1, 0.9]] * 4  # right in 3 of 4, and in 1 of 4
    >>> binned = TopLabelBinning("probs", smoothing=0).fit(p, [0, 0, 0, 1, 1, 0, 0, 0])
    >>> binned.predict_proba(p[3:5]).tolist()
    [[0.75, 0.25], [0.75, 0.25]]
    """

    learned: ClassVar[Mapping[str, Any]] = {
        "edges_": Shares,
        "values_": Shares,
        "starts_": Places,
    }

    scores: str = "logits"
    rows_per_bin: int = 50
    smoothing: float = 1.0
    classes: Sequence[Hashable] | None = None

    def _check_options(self) -> None:
        super()._check_options()
        check_number(self.rows_per_bin, "rows_per_bin", 1, kind="a whole number")
        self._check_not_negative("smoothing")

    def _learn(self, rows: Rows, progress: Progress) -> None:
        h, hit = modes.confidences(rows)
        best, weight = self._predicted(rows), rows.weight_of_each
        edges, values = [], []
        for c in range(rows.k):
            own = best == c
            found = self._bins(h[own], hit[own], weight[own]) if own.any() else ([], [])
            edges.append(found[0])
            values.append(found[1])
            progress(c / rows.k, "bins")
        self.edges_, self.values_ = (
            np.concatenate(x).astype(float) for x in (edges, values)
        )
        self.starts_ = np.cumsum([0, *map(len, edges)], dtype=np.intp)
        progress(1.0, "bins")
        if never := int(np.sum(np.diff(self.starts_) == 0)):
            self._note(
                f"{never} of {rows.k} classes were never predicted; they keep their "
                "confidence."
            )

    def _predicted(self, rows: Rows) -> Index:
        found = [rows.block(part).argmax(axis=1) for part in rows.parts()]
        return np.concatenate(found)

    def _bins(self, h: Column, hit: Any, weight: Column) -> tuple[Any, Any]:
        """Lower edges and values of the bins of one class."""
        bins = max(1, int(weight.sum() // self.rows_per_bin))
        edges = np.unique(mass_edges(h, weight, bins))  # 0 and 1 are the ends
        counts, hits = count_column(h, hit, weight, edges)
        filled = counts > 0
        half = self.smoothing / 2
        value = (hits + half)[filled] / (counts + self.smoothing)[filled]
        return edges[:-1][filled], value

    def _disagreement(self, k: int) -> str | None:
        n, starts = len(self.edges_), self.starts_
        said = wrong_shape("starts_", starts, (k + 1,))
        said = said or wrong_shape("values_", self.values_, (n,))
        if said or starts[0] != 0 or starts[-1] != n or (np.diff(starts) < 0).any():
            return said or f"must have starts_ that go from 0 to {n}, and never fall"
        rise = all((np.diff(self.edges_[a:b]) > 0).all() for a, b in pairwise(starts))
        return None if rise else "must have edges_ that rise in each class"

    def _apply(self, rows: Rows) -> tuple[Kind, Matrix]:
        def work(part: slice, out: Matrix) -> None:
            probs, best, h = modes.find_top(rows, part)
            value = h.copy()
            for c in np.unique(best):
                a, b = self.starts_[c], self.starts_[c + 1]
                own = best == c
                if b > a:
                    at = place(h[own], np.append(self.edges_[a:b], 1.0))
                    value[own] = self.values_[a:b][at]
            known = np.diff(self.starts_)[best] > 0
            changed, kept = probs.copy(), ~known
            modes.give(changed, best, value, 1 - value)
            changed[kept] = probs[kept]
            out[...] = changed

        return "probs", rows.filled(work)
