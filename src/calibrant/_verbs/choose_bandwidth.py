"""Leave-one-out choice of the paper's bandwidth, and how flat its criterion is."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Annotated, Any, Unpack

import numpy as np

from calibrant._base.checks import shown
from calibrant._base.records import (
    Amounts,
    Bandwidth,
    Columnar,
    Positive,
    Range,
    Shares,
    Target,
)
from calibrant._inputs.arrays import Column, Table, as_scores
from calibrant._inputs.options import (
    LEAST_BANDWIDTH,
    MOST_BANDWIDTH,
    PAPER_BANDWIDTH,
    Scores,
    takes_scores,
    target_of,
)
from calibrant._rows.columns import Columns
from calibrant._rows.reduce import read
from calibrant._sketch.grid import ORDER, add_moments, at_rows, node_weights
from calibrant._sketch.kernels import GAUSSIAN, sums_at_nodes
from calibrant._stats.published import LEAST_SUPPORT, cells_for

CANDIDATES = PAPER_BANDWIDTH * 10 ** (np.arange(-14, 11) / 10)
"""From 0.002 to 0.5, ten to a decade, with the paper's 0.05 among them."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BandwidthChoice(Columnar):
    """The bandwidth that predicts left-out rows best, and those that do about as well.

    Attributes
    ----------
    bandwidth : float
        The best of the candidates.
    flat_from, flat_to : float
        The range around it in which no candidate is worse by more than one standard
        error of the difference.
    candidates, criterion, standard_error : arrays
        The bandwidths tried, the mean squared error of the accuracy at each row without
        that row, and the standard error of its excess over the least.
    n, target : float, str
        Rows, or total weight, and what was asked of each row.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.choose_bandwidth([0, 1], confidence=[0.7, 0.7], candidates=[0.1, 0.2])
    >>> found.criterion.round(6)  # each is predicted as the other
    array([1., 1.])
    """

    bandwidth: Bandwidth
    flat_from: Bandwidth
    flat_to: Bandwidth
    candidates: Annotated[Column, Range(0, 10, above=True)]
    criterion: Shares
    standard_error: Amounts
    n: Positive
    target: Target

    def _disagreement(self) -> str | None:
        if said := Columnar._disagreement(self):
            return said
        for name in ("bandwidth", "flat_from", "flat_to"):
            if getattr(self, name) not in self.candidates:
                return f"must have a {name} among its candidates"
        if not self.flat_from <= self.bandwidth <= self.flat_to:
            return "must have its bandwidth between flat_from and flat_to"
        return None

    @property
    def at_an_end(self) -> bool:
        """Whether the best is the least or greatest candidate: look further there."""
        return bool(self.bandwidth in (self.candidates[0], self.candidates[-1]))

    def __repr__(self) -> str:
        ends = f"flat_from={self.flat_from:.3g}, flat_to={self.flat_to:.3g}"
        return f"BandwidthChoice(bandwidth={self.bandwidth:.3g}, {ends})"

    def __str__(self) -> str:
        end = "; the best is at an end of the grid." if self.at_an_end else "."
        return (
            f"bandwidth {self.bandwidth:.3g} by leave-one-out ({self.n:,.10g} examples); "
            f"from {self.flat_from:.3g} to {self.flat_to:.3g} it makes no difference "
            f"beyond one standard error{end}"
        )


@takes_scores
def choose_bandwidth(
    y: Any, *, candidates: Any = None, **given: Unpack[Scores]
) -> BandwidthChoice:
    r"""Choose the bandwidth of the paper's curve by leaving out one row at a time.

    Parameters
    ----------
    candidates : array_like, optional
        Bandwidths to try; by default 25 from 0.002 to 0.5.

    Returns
    -------
    BandwidthChoice
        The best, the range that does about as well, and the criterion at each.

    Notes
    -----
    With Gaussian weights K of the others, row i is predicted by

    .. math:: m_{-i} = \frac{\sum_{j \ne i} K_{ij} a_j + \epsilon \bar a_{-i}}
                            {\sum_{j \ne i} K_{ij} + \epsilon},

    where :math:`\epsilon = e^{-4.5}` times the mean hit of the others speaks for rows
    that have no neighbour. The criterion is the mean of :math:`(a_i - m_{-i})^2`. It is
    computed from sums over a grid, at a cost linear in rows. Of a row of frequency 2, one
    is left out and the other kept; a row of weight 2 is left out with all of its weight.

    The best bandwidth for the curve is not the best for the calibration error, which
    ``bandwidth="auto"`` estimates without one.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> h = rng.uniform(size=5000)
    >>> found = cal.choose_bandwidth(rng.random(5000) < h**2, confidence=h)
    >>> bool(found.flat_from <= found.bandwidth <= found.flat_to)
    True
    """
    tried = _read_candidates(candidates)
    predictions, columns = read(y, given)
    if columns.total_weight < 2:
        raise ValueError("choose_bandwidth needs two rows or more: one is left out.")
    cells = cells_for(float(tried[0]))
    counted = columns.squared is None
    left_out = (LeaveOneOut if counted else LeaveWeightedOut).of(columns, cells)
    criterion = np.array([left_out.mean(left_out.losses(b)) for b in tried])
    best = int(np.argmin(criterion))
    least = left_out.losses(tried[best])
    error = np.array([left_out.error(left_out.losses(b) - least) for b in tried])
    far = np.flatnonzero(~(criterion - criterion[best] <= error))
    low = max((place + 1 for place in far if place < best), default=0)
    high = min((place - 1 for place in far if place > best), default=-1)
    ends = float(tried[best]), float(tried[low]), float(tried[high])
    target = target_of(predictions)
    return BandwidthChoice(*ends, tried, criterion, error, left_out.n, target)


def _read_candidates(candidates: Any) -> Column:
    if candidates is None:
        return CANDIDATES
    tried = np.unique(as_scores(candidates, "candidates").astype(np.float64))
    inside = (tried >= LEAST_BANDWIDTH) & (tried <= MOST_BANDWIDTH)
    if len(tried) < 2 or not inside.all():
        raise ValueError(
            f"candidates must be two or more numbers from {LEAST_BANDWIDTH:g} to "
            f"{MOST_BANDWIDTH:g}, got {shown(candidates)}."
        )
    return tried


@dataclass(frozen=True, slots=True, eq=False)
class LeaveOneOut:
    """Rows as weights on nodes: `weights[j]` sums w a^j, for j from 0 to 4.

    The loss of a left-out row is a quadratic in its hit, whose coefficients are smooth
    in its confidence. So the mean loss, and that of its square, are sums over nodes.
    """

    weights: Table

    @classmethod
    def of(cls, columns: Columns, cells: int) -> LeaveOneOut:
        """Gather the rows; a hit of 0 or 1 is equal to its powers."""
        w, a = columns.weight, columns.hit
        powers: list[Column | None] = [w, a if w is None else w * a]
        if not columns.hard:
            powers += [powers[1] * a**j for j in (1, 2, 3)]  # type: ignore[operator]
        moments = np.zeros((len(powers), ORDER, cells))
        add_moments(moments, columns.confidence, powers)
        weights = node_weights(moments)
        return cls(weights if len(weights) == 5 else weights[[0, 1, 1, 1, 1]])

    @property
    def n(self) -> float:
        """Total weight."""
        return float(self.weights[0].sum())

    def losses(self, bandwidth: float) -> Table:
        """Coefficients of 1, a and a^2 in the loss of a row left out, at the nodes."""
        mass, hits = sums_at_nodes(self.weights[:2], GAUSSIAN, bandwidth)
        prior, others = LEAST_SUPPORT, self.n - 1
        whole = np.maximum(mass - 1, 0.0) + prior
        # m = (top - own a) / whole, so a - m = (rise a - top) / whole.
        top = hits + prior * float(self.weights[1].sum()) / others
        rise = whole + 1 + prior / others
        return np.stack([top * top, -2 * rise * top, rise * rise]) / whole**2

    def mean(self, losses: Table) -> float:
        """Mean loss over rows."""
        return float((losses * self.weights[:3]).sum() / self.n)

    def error(self, losses: Table) -> float:
        """Standard error of the mean loss."""
        c0, c1, c2 = losses
        powers = [c0 * c0, 2 * c0 * c1, c1 * c1 + 2 * c0 * c2, 2 * c1 * c2, c2**2]
        square = float((np.stack(powers) * self.weights).sum() / self.n)
        return sqrt(max(square - self.mean(losses) ** 2, 0.0) / self.n)


@dataclass(frozen=True, slots=True, eq=False)
class LeaveWeightedOut:
    """The same of rows of unequal weight, each left out with its own: row by row."""

    columns: Columns
    nodes: LeaveOneOut

    @classmethod
    def of(cls, columns: Columns, cells: int) -> LeaveWeightedOut:
        """Gather the rows."""
        return cls(columns, LeaveOneOut.of(columns, cells))

    @property
    def n(self) -> float:
        """Total weight."""
        return self.columns.total_weight

    def losses(self, bandwidth: float) -> Column:
        """Loss of each row left out."""
        rows, a = self.columns, self.columns.hit
        own = rows.squares / rows.weights
        sums = sums_at_nodes(self.nodes.weights[:2], GAUSSIAN, bandwidth)
        mass, hits = at_rows(sums, rows.confidence)
        mean = (rows.weights @ a - own * a) / (self.n - own)
        top = hits - own * a + LEAST_SUPPORT * mean
        loss: Column = (a - top / (np.maximum(mass - own, 0.0) + LEAST_SUPPORT)) ** 2
        return loss

    def mean(self, losses: Column) -> float:
        """Mean loss over rows."""
        return self.columns.mean(losses)

    def error(self, losses: Column) -> float:
        """Standard error of the mean loss."""
        off = losses - self.mean(losses)
        return sqrt(float(self.columns.squares @ off**2)) / self.n
