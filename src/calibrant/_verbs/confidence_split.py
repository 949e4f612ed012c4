"""`confidence_split`: d_CAL on either side of the diagonal."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from math import inf
from typing import Annotated, Any, NamedTuple, Unpack

import numpy as np

from calibrant._base.records import (
    Bandwidth,
    Estimate,
    Positive,
    Range,
    Record,
    Share,
    Target,
    close,
)
from calibrant._base.views import Printed
from calibrant._inputs.arrays import Mask
from calibrant._inputs.divergences import Divergence
from calibrant._inputs.options import Scores, Settings, takes_scores, target_of
from calibrant._rows.columns import Columns
from calibrant._rows.reduce import read
from calibrant._sketch.cells import Cells
from calibrant._sketch.grid import coarsen, node_places, node_weights
from calibrant._sketch.kernels import GAUSSIAN, sums_at_nodes
from calibrant._stats import decomposition, platt_error
from calibrant._stats.curve import fit_places, gather_places
from calibrant._stats.ladder import Ladder
from calibrant._stats.neighbours import Neighbours
from calibrant._stats.published import NODES_PER_BANDWIDTH


class Sides(NamedTuple):
    """d_CAL, its two parts (round-off apart), and gap and share of the over-confident."""

    calibration: Estimate
    over: float
    under: float
    gap: float
    share: float


def adaptive_sides(columns: Columns, sums: Cells, settings: Settings) -> Sides:
    """The sides of the adaptive curve."""
    cells, local = decomposition.find_cells(columns, sums)
    main, level = settings.main, settings.level
    curve = fit_places(gather_places(cells)).fitted
    seen = cells if main.by_pairs else local
    over, ladder = curve.at(seen.z, curve.shift) < 0, Ladder.of(cells)
    how = sums, main.name, level, settings.engine, ladder
    error = decomposition.adaptive_error(cells, local, *how)
    if main.by_pairs:
        each = ladder.contributions
        parts = float(each[over].sum()), float(each[~over].sum())
    else:
        parts = _parts(local, main, over)
    gap = -float(seen.r1[over].sum() / seen.n)
    share = float(seen.weight[over].sum() / seen.n)
    whole = Estimate(error.value, error.interval, error.method)
    return Sides(whole, *parts, gap, share)


def _parts(
    cells: Neighbours, divergence: Divergence, over: Mask
) -> tuple[float, float]:
    """What local Platt scaling saves on both sides.

    From the larger one: few rows alone have no local estimate.
    """
    fitted = platt_error.fit_for_error(cells)
    larger = over if cells.weight[over].sum() >= 0.5 * cells.n else ~over
    columns = {name: getattr(cells, name)[larger] for name in SUMS}
    side = replace(cells, **columns, losses={})
    whole, part = (
        platt_error.smooth_error(x, divergence, fitted) for x in (cells, side)
    )
    part *= side.n / cells.n
    return (part, whole - part) if larger is over else (whole - part, part)


SUMS = tuple(f.name for f in fields(Neighbours) if f.name not in ("losses", "groups"))


def published_sides(columns: Columns, cells: Cells, settings: Settings) -> Sides:
    """The sides of the paper's curve."""
    main, h = settings.main, columns.confidence
    analysis = decomposition.analyse(columns, cells, settings, 1.0)
    # The paper's curve at rows, interpolated between nodes 96 to a bandwidth.
    bandwidth = float(settings.bandwidth)
    moments = coarsen(cells.moments[:2], NODES_PER_BANDWIDTH / bandwidth)
    mass, hits = sums_at_nodes(node_weights(moments), GAUSSIAN, bandwidth)
    near = mass > 1e-9 * cells.weight
    places = node_places(moments.shape[2])[near]
    m = np.clip(np.interp(h, places, hits[near] / mass[near]), 0.0, 1.0)
    over = m < h
    d = replace(columns, hit=m, losses={}).unit_loss(main)
    return Sides(
        analysis.decompositions[main.name].calibration,
        over=columns.mean(np.where(over, d, 0.0)),
        under=columns.mean(np.where(over, 0.0, d)),
        gap=columns.mean(np.where(over, h - columns.hit, 0.0)),
        share=columns.mean(over.astype(np.float64)),
    )


@dataclass(frozen=True, slots=True)
class ConfidenceSplit(Printed, Record):
    """d_CAL as the sum of over- and under-confidence.

    Attributes
    ----------
    divergence, target : str
        Whose calibration error, and what was asked of each row.
    n, bandwidth : float
        Rows, or total weight, and the paper's width; None where the width adapts.
    calibration : Estimate
        d_CAL, as in `calibrant.evaluate`.
    overconfidence, underconfidence : float
        Its parts from confidences whose accuracy is lower, and not lower, than claimed.
        Debiased like the whole, either may be slightly negative.
    gap_over, gap_under : float
        The same parts of mean confidence minus accuracy: what is claimed too much (about
        0 or more), and too little (about 0 or less).
    share_over : float
        Share of rows on the over-confident side.

    Examples
    --------
    >>> import calibrant as cal
    >>> parts = cal.confidence_split([1, 1, 0, 1] * 25, confidence=[0.9] * 100)
    >>> parts.share_over, round(parts.gap_over, 4), parts.underconfidence
    (1.0, 0.15, 0.0)
    """

    divergence: str
    target: Target
    n: Positive
    bandwidth: Bandwidth | None
    calibration: Estimate
    overconfidence: float
    underconfidence: float
    gap_over: Annotated[float, Range(-1, 1)]
    gap_under: Annotated[float, Range(-1, 1)]
    share_over: Share

    def _disagreement(self) -> str | None:
        parts = self.overconfidence + self.underconfidence
        if close(self.calibration, parts):
            return None
        return f"has a calibration of {self.calibration:g}, and its parts add up to {parts:g}"

    @property
    def gap(self) -> float:
        """Mean confidence minus accuracy."""
        return self.gap_over + self.gap_under

    def __str__(self) -> str:
        return (
            f"d_CAL ({self.divergence}) {self.calibration:.5f} = "
            f"{self.overconfidence:.5f} over-confident ({self.share_over:.1%} of examples, "
            f"gap {self.gap_over:+.4f}) + {self.underconfidence:.5f} under-confident "
            f"(gap {self.gap_under:+.4f})"
        )


@takes_scores
def confidence_split(
    y: Any,
    *,
    divergence: Any = "brier",
    bandwidth: float | str = "auto",
    level: float = 0.95,
    **given: Unpack[Scores],
) -> ConfidenceSplit:
    """Split d_CAL into over-confidence and under-confidence.

    Where the calibration curve lies below the diagonal, rows are over-confident. Each
    part is what those rows contribute to d_CAL, so parts add up to the whole.

    Parameters
    ----------
    divergence : str or Divergence
        ``"brier"``, ``"log"``, or your own.
    bandwidth : "auto" or float
        The adaptive curve and the debiased estimate, or the paper's of that width.
    level : float
        Coverage of the interval of d_CAL.

    Returns
    -------
    ConfidenceSplit
        The whole, its two parts, and the same parts of the confidence gap.

    Notes
    -----
    With ``bandwidth="auto"`` the side of a row is that of the adaptive curve, and parts
    are sums of the contributions of rows to the debiased estimate. All divergences but
    Brier need 100 rows; with fewer, their parts are NaN.

    Examples
    --------
    >>> import calibrant as cal
    >>> parts = cal.confidence_split([1, 0, 1, 0, 1, 1], bandwidth=0.05,
    ...                             confidence=[0.9, 0.9, 0.9, 0.9, 0.5, 0.5])
    >>> round(parts.overconfidence, 4), round(parts.underconfidence, 4)
    (0.1067, 0.0833)
    """
    settings = Settings(divergence, bandwidth, level=level).checked()
    predictions, columns = read(y, given, settings.extra)
    cells, main = decomposition.cells_of_columns(columns, settings), settings.main
    sides = adaptive_sides if settings.adaptive else published_sides
    found = sides(columns, cells, settings)
    over, under = _add_up(found, columns, main)
    gap = columns.mean(columns.confidence - columns.hit)
    return ConfidenceSplit(
        divergence=main.name,
        target=target_of(predictions),
        n=columns.total_weight,
        bandwidth=None if settings.adaptive else float(settings.bandwidth),
        calibration=found.calibration,
        overconfidence=over,
        underconfidence=under,
        gap_over=found.gap,
        gap_under=gap - found.gap,
        share_over=found.share,
    )


def _add_up(
    found: Sides, columns: Columns, divergence: Divergence
) -> tuple[float, float]:
    """Parts that add up to the whole, also where grids round the place of rows."""
    whole = float(found.calibration)
    if whole < inf or np.isnan(whole):
        over = found.over + found.share * (whole - found.over - found.under)
        return over, whole - over
    endless = np.isinf(columns.unit_loss(divergence))
    above = columns.confidence > columns.hit  # certain, and wrong
    over = inf if (endless & above).any() else found.over
    return over, inf if (endless & ~above).any() else found.under
