"""Bins of the confidence, isotonic blocks, and what cumulative sums tell."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import as_number, check_choice, shown
from calibrant._base.records import Bins, Corp
from calibrant._inputs.arrays import Column, Index, distinct
from calibrant._inputs.options import MOST_BINS
from calibrant._rows.columns import Columns
from calibrant._sketch.cells import Cells
from calibrant._sketch.grid import LOG_ODDS_CELLS
from calibrant._sketch.ordered import Ordered, pooled

# -- equal-width or equal-mass bins; ties are never split --------------------------

BinCount = int | str


def count_bins(bins: BinCount, n: float) -> int:
    """Turn a number or the cube-root rule (10 for 1000 rows) into a number of bins."""
    if isinstance(bins, str) and bins in ("cube-root", "cube_root"):
        return max(1, ceil(n ** (1 / 3) - 1e-9))
    count = as_number(bins)
    if not 1 <= count <= MOST_BINS or count != int(count):
        raise ValueError(
            f"bins must be a positive whole number (at most {MOST_BINS:,}) or "
            f"'cube-root'; got {shown(bins)}."
        )
    return int(count)


def width_bins(ordered: Ordered, bins: BinCount = 15, closed: str = "right") -> Bins:
    """Equal-width bins of [0, 1]; both 0 and 1 always fall inside.

    Edges are the doubles nearest to i / bins, so a confidence written 0.6 lies on the
    edge 9 / 15 and not beside it.
    """
    check_choice(closed, "closed", ("right", "left"))
    count = count_bins(bins, ordered.effective)
    edges = np.arange(count + 1) / count
    inner = np.searchsorted(ordered.confidence, edges[1:-1], side=closed)  # type: ignore[call-overload]
    bounds = np.concatenate([[0], inner, [len(ordered.confidence)]])
    return _cut(ordered, bounds, edges[:-1], edges[1:])


def mass_bins(ordered: Ordered, bins: int) -> Bins:
    """Bins of equal weight; each distinct confidence goes where its mid-rank falls.

    A mid-rank on an edge belongs to the lower bin. Values that differ by round-off
    should be put together first, with `Ordered.without_twins`.
    """
    # The first value whose mid-rank exceeds an edge is the one that reaches it, or the
    # next, since mid-ranks lag behind by half a weight.
    edges, inner, before = ordered.cut(bins)
    inner += before - 0.5 * ordered.weight[inner] <= edges
    bounds = distinct(np.concatenate([[0], inner, [len(ordered.weight)]]))
    h = ordered.confidence
    return _cut(ordered, bounds, h[bounds[:-1]], h[bounds[1:] - 1])


def _cut(ordered: Ordered, bounds: Index, lower: Column, upper: Column) -> Bins:
    """Bins of consecutive distinct confidences, some of them empty."""
    filled = np.diff(bounds) > 0
    columns = ordered.weight, ordered.claimed, ordered.hits, ordered.hits2
    sums = np.zeros((4, len(filled)))
    for total, x in zip(sums, columns, strict=True):
        total[filled] = np.add.reduceat(x, bounds[:-1][filled])
    return _from_sums(lower, upper, *sums)


def _from_sums(
    lower: Column, upper: Column, weight: Column, claimed: Column, *hits: Column
) -> Bins:
    """Bins with these sums; an empty one has NaN for means."""
    whole = np.where(weight > 0, weight, np.nan)
    accuracy, square = hits[0] / whole, hits[1] / whole
    spread = np.maximum(square - accuracy**2, 0.0)
    return Bins(lower, upper, weight, claimed / whole, accuracy, spread)


LEAST_MIXED, FEW_MIXED = 12.0, 0.25
"""Values at which equal scores should have unequal outcomes by chance: so many say
something, and equal scores are duplicates if less than this share of these have."""


def duplicates(ordered: Ordered) -> int:
    """Rows that repeat another, score and outcome; 0 where ties may be chance.

    Rounded scores are equal too, but then the outcomes of equal scores differ about as
    often as those of neighbouring ones. Duplicates never differ. Weights must be counts,
    and hits 0 or 1.

    Examples
    --------
    >>> h, hits = np.linspace(0.3, 0.7, 50), np.tile([0.0, 2.0], 25)
    >>> duplicates(Ordered.of(h, np.full(50, 2.0), hits, hits))
    50
    """
    if ordered.single:
        return 0
    tied = ordered.weight > 1
    if not tied.any() or len(tied) < LEAST_MIXED:
        return 0
    rate = ordered.hits / ordered.weight
    next_ = np.append(rate[1:], rate[-2])
    expected = float((rate + next_ - 2 * rate * next_)[tied].sum())
    pure = tied & ((rate == 0) | (rate == 1))
    mixed = int(tied.sum() - pure.sum())
    if expected < LEAST_MIXED or mixed > FEW_MIXED * expected:
        return 0
    return int((ordered.weight[pure] - 1).sum())


def debiased_bins(values: Ordered) -> Bins:
    """Equal-mass bins by the cube-root rule, for the debiased L2 error."""
    return mass_bins(values, count_bins("cube-root", values.effective))


def place_in_width_bins(h: Column, bins: int, closed: str) -> Index:
    """Number of the equal-width bin of each confidence."""
    inner = np.arange(1, bins) / bins
    return np.searchsorted(inner, h, side="left" if closed == "right" else "right")


def sweep_bins(ordered: Ordered) -> Bins:
    """Most equal-mass bins whose accuracies still increase (Roelofs et al. 2022)."""
    values = len(ordered.confidence)
    if np.all(np.diff(ordered.hits / ordered.weight) >= 0):
        return pool(ordered, np.arange(values))
    best = mass_bins(ordered, 1)
    for bins in range(2, values + 1):
        finer = mass_bins(ordered, bins)
        if np.any(np.diff(finer.accuracy) < 0):
            break
        best = finer
    return best


def binned_error(bins: Bins, norm: Any = 1) -> float:
    """L^q mean of |accuracy - confidence| over bins, weighted by their counts."""
    filled = bins.count > 0
    share = bins.count[filled] / bins.count[filled].sum()
    gap = np.abs(bins.accuracy[filled] - bins.confidence[filled])
    if check_norm(norm) == inf:
        return float(gap.max())
    return float((share * gap**norm).sum() ** (1 / norm))


def debiased_error(bins: Bins, values: Ordered) -> float:
    """Root of the debiased squared error; 0 where that is below."""
    return float(np.sqrt(max(debiased_square(bins, values), 0.0)))


def check_norm(norm: Any) -> float:
    """The q of an L^q norm; "max" is infinite."""
    if isinstance(norm, str) and norm == "max":
        return inf
    if not as_number(norm) >= 1:
        raise ValueError(f"norm must be a number >= 1 or 'max', got {shown(norm)}.")
    return as_number(norm)


def debiased_square(bins: Bins, values: Ordered) -> float:
    """Debiased mean squared error over bins of these values; may be slightly negative.

    The sampling variance of each bin's accuracy is subtracted (Bröcker 2012; Kumar et al.
    2019). A bin of one row has no variance to subtract and is left out, as its square is
    all noise. Rows with weights count as many as would have as little noise.
    """
    n = effective_counts(bins, values)
    several = n > 1 + 1e-9  # weights of one row leave 1 to round-off
    variance = bins.variance[several] / (n[several] - 1)
    square = (bins.accuracy - bins.confidence)[several] ** 2 - variance
    return float((bins.count[several] * square).sum() / bins.count.sum())


def effective_counts(bins: Bins, values: Ordered) -> Column:
    """Number of rows of equal weight in each bin that would have as little noise."""
    if values.squared is values.weight:
        return bins.count
    count, full = np.zeros_like(bins.count), bins.count > 0
    place = place_of_values(values, bins)
    count[full] = bins.count[full] ** 2 / np.bincount(place, values.squared)
    return count


def place_of_values(values: Ordered, bins: Bins) -> Index:
    """Which of the bins that hold rows each distinct confidence belongs to."""
    count = bins.count[bins.count > 0]
    middle = np.cumsum(values.weight)
    middle -= 0.5 * values.weight  # half a row is more than round-off
    return np.searchsorted(np.cumsum(count)[:-1], middle)


def average_error(bins: Bins) -> float:
    """Unweighted mean of |accuracy - confidence| over the bins that hold rows."""
    return float(np.nanmean(np.abs(bins.accuracy - bins.confidence)))


def mean_gap(bins: Bins) -> float:
    """Mean confidence minus accuracy over all rows; the same for any bins."""
    gap = bins.count * (bins.confidence - bins.accuracy)
    return float(np.nansum(gap) / bins.count.sum())


def errors_within(
    columns: Columns, groups: NDArray[Any], k: int, bins: int, norm: Any, closed: str
) -> tuple[Column, Column]:
    """Equal-width L^q error within each of k groups of rows, and the groups' weights."""
    check_choice(closed, "closed", ("right", "left"))
    bins, norm = count_bins(bins, columns.effective), check_norm(norm)
    h, a, w = columns.confidence, columns.hit, columns.weights
    place = groups * bins + place_in_width_bins(h, bins, closed)
    weight, residual = (
        np.bincount(place, x, k * bins).reshape(k, bins) for x in (w, w * (a - h))
    )
    whole = weight.sum(axis=1)
    gap = np.abs(residual) / np.where(weight > 0, weight, 1.0)
    if norm == inf:
        return gap.max(axis=1), whole
    power = (weight * gap**norm).sum(axis=1) / np.where(whole > 0, whole, 1.0)
    return power ** (1 / norm), whole


# -- what cumulative sums over ordered confidences tell ----------------------------


def ks_error(ordered: Ordered) -> float:
    """Largest absolute cumulative sum of a - h, from the origin on, divided by n."""
    furthest = end = 0.0
    for part in ordered.parts():
        walk = np.cumsum(part.residual)
        walk += end
        furthest, end = max(furthest, walk.max(), -walk.min()), walk[-1]
    return float(furthest / ordered.total)


def auroc(ordered: Ordered) -> float:
    """Chance that a hit has the higher confidence than a miss, ties counting half.

    NaN if there are only hits, or none.
    """
    right = all_hits = all_misses = 0.0
    for part in ordered.parts():
        misses = part.weight - part.hits
        right -= 0.5 * float(part.hits @ misses)
        np.cumsum(misses, out=misses)
        misses += all_misses
        right += float(part.hits @ misses)
        all_hits, all_misses = all_hits + part.hits.sum(), misses[-1]
    some = all_hits > 0 and all_misses > 0
    return float(right / (all_hits * all_misses)) if some else nan


# -- CORP: isotonic recalibration, and the decomposition of the score it gives -----


@dataclass(frozen=True, slots=True, eq=False)
class Isotonic:
    """The increasing accuracy that is closest to the hits, at each distinct confidence.

    `first` are the places where its levels begin; `hits` and `weight` are those on each.
    """

    ordered: Ordered
    first: Index
    hits: Column
    weight: Column

    @classmethod
    def of(cls, ordered: Ordered) -> Isotonic:
        """Fit it."""
        return cls(ordered, *pooled(ordered.hits, ordered.weight))

    @property
    def level(self) -> Column:
        """At each distinct confidence."""
        rows = np.diff(self.first, append=len(self.ordered.hits))
        return np.repeat(self.hits / self.weight, rows)

    def bins(self) -> Bins:
        """The blocks on which it is constant."""
        return pool(self.ordered, self.first)


def corp_of(fit: Isotonic, sums: Cells, name: str) -> Corp:
    """CORP decomposition of the mean one-dimensional score of a divergence.

    Score = miscalibration - discrimination + uncertainty (Dimitriadis, Gneiting and
    Jordan 2021), each term a difference of mean scores: of the forecast, of its isotonic
    recalibration, and of the constant base rate.
    """
    totals, n, total = sums.totals[name], sums.weight, fit.ordered.total
    phi = sums.divergences[name].phi_1d
    score, hit_phi = totals.unit_loss / n, totals.phi_hit / n
    levels = np.clip(fit.hits / fit.weight, 0.0, 1.0)
    # A recalibrated forecast m has mean score mean phi(a) - mean phi(m), since hits
    # average to m on every level of m.
    recalibrated = hit_phi - float((fit.weight * phi(levels)).sum() / total)
    base = np.full(1, fit.ordered.hits.sum() / total)
    uncertainty = hit_phi - float(phi(base)[0])
    terms = score - recalibrated, uncertainty - recalibrated, uncertainty
    return Corp(name, score, *terms)


# -- rows pooled where they belong together ----------------------------------------

MOST_ATOMS = 40
"""Up to this many distinct confidences, a figure shows each of them."""

HISTOGRAM_CELLS, LOG_ODDS_HISTOGRAM_CELLS = 480, 200


def atoms(values: Ordered) -> Bins:
    """One bin per distinct confidence, or none at all if there are too many."""
    if len(values.confidence) > MOST_ATOMS:
        return Bins(*np.empty((6, 0)))
    return pool(values, np.arange(len(values.confidence)))


def pool(values: Ordered, first: Index) -> Bins:
    """Bins of consecutive distinct confidences, one from each of the `first` on."""
    h, bounds = values.confidence, np.append(first, len(values.confidence))
    return _cut(values, bounds, h[first], h[bounds[1:] - 1])


def histogram(cells: Cells) -> Column:
    """Weight of rows in equal cells of [0, 1]."""
    return cells.moments[0, 0].reshape(HISTOGRAM_CELLS, -1).sum(axis=1)


def log_odds_histogram(sums: Cells) -> Column:
    """Weight of rows in equal cells of the log-odds."""
    cells = LOG_ODDS_HISTOGRAM_CELLS, LOG_ODDS_CELLS // LOG_ODDS_HISTOGRAM_CELLS
    return sums.log_odds_sums[0].reshape(cells).sum(axis=1)


RESAMPLES = 400


def consistency_band(
    confidence: Column, count: Column, level: float = 0.95, seed: int = 0
) -> tuple[Column, Column]:
    """What isotonic fits look like if the model is calibrated: a pointwise band.

    Labels are drawn with the stated confidences, which are distinct and increase;
    `count` are the rows at each, `level` the share of fits inside. The draws are
    random, but the same every time.
    """
    rng = np.random.default_rng(seed)
    rows = np.maximum(np.round(count), 1).astype(np.int64)
    fits = np.empty((RESAMPLES, len(confidence)))
    for fit in fits:
        hits = rng.binomial(rows, confidence) / rows * count
        first, hits, weight = pooled(hits, count)
        fit[:] = np.repeat(hits / weight, np.diff(first, append=len(fit)))
    low, high = np.quantile(fits, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high
