"""Over- and under-confidence: d_CAL on either side of the diagonal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Self, Unpack

import numpy as np

from acumen.analysis import sketch_for
from acumen.bregman import Divergence
from acumen.columns import Columns
from acumen.encoding import number
from acumen.inputs import Scores, read, takes_scores, target_of
from acumen.records import Estimate, Record
from acumen.second_opinions.sides import Sides, adaptive_sides, published_sides
from acumen.settings import Settings


@dataclass(frozen=True, slots=True)
class ConfidenceSplit(Record):
    """d_CAL as the sum of over- and under-confidence.

    Attributes
    ----------
    divergence, target : str
        Whose calibration error, and what was asked of each row.
    n : float
        Rows, or total weight.
    bandwidth : float or None
        Of the paper's kernel; None where the width adapts.
    calibration : Estimate
        d_CAL, as in `acumen.evaluate`.
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
    >>> import acumen as ac
    >>> parts = ac.confidence_split([1, 1, 0, 1] * 25, confidence=[0.9] * 100)
    >>> parts.share_over, round(parts.gap_over, 4), parts.underconfidence
    (1.0, 0.15, 0.0)
    """

    divergence: str
    target: str
    n: float
    bandwidth: float | None
    calibration: Estimate
    overconfidence: float
    underconfidence: float
    gap_over: float
    gap_under: float
    share_over: float

    @property
    def gap(self) -> float:
        """Mean confidence minus accuracy."""
        return self.gap_over + self.gap_under

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Restore what ``to_dict`` gave."""
        restored = dict(given)
        for name in cls.__slots__[5:]:
            restored[name] = number(given[name])
        restored["calibration"] = Estimate.from_dict(given["calibration"])
        return cls(**restored)

    def __str__(self) -> str:
        return (
            f"d_CAL ({self.divergence}) {self.calibration:.5f} = "
            f"{self.overconfidence:.5f} over-confident ({self.share_over:.1%} of rows, "
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
    y : array_like
        Labels, or correctness if ``confidence=`` is given.
    divergence : str or Divergence
        ``"brier"``, ``"log"``, or your own.
    bandwidth : "auto" or float
        The adaptive curve and the debiased estimate, or the paper's of that width.
    level : float
        Coverage of the interval of d_CAL.
    **given
        One of ``probs=``, ``logits=`` and ``confidence=``, and optionally ``target=``,
        ``classes=`` and ``sample_weight=``, as in `acumen.evaluate`.

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
    >>> import acumen as ac
    >>> parts = ac.confidence_split([1, 0, 1, 0, 1, 1], bandwidth=0.05,
    ...                             confidence=[0.9, 0.9, 0.9, 0.9, 0.5, 0.5])
    >>> round(parts.overconfidence, 4), round(parts.underconfidence, 4)
    (0.1067, 0.0833)
    """
    settings = Settings(
        divergence=divergence, bandwidth=bandwidth, level=level
    ).checked()
    predictions, columns = read(y, given, settings.extra)
    return split_columns(columns, settings, target_of(predictions))


def split_columns(columns: Columns, settings: Settings, target: str) -> ConfidenceSplit:
    """The split of rows reduced to columns."""
    sketch, main = sketch_for(columns, settings), settings.main
    sides = adaptive_sides if settings.adaptive else published_sides
    found = sides(columns, sketch, settings)
    over, under = _add_up(found, columns, main)
    gap = columns.mean(columns.confidence - columns.hit)
    return ConfidenceSplit(
        divergence=main.name,
        target=target,
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
