"""`cutoff_error`: miscalibration as one who decides by a cutoff meets it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import MOST_NAME, check_number, one_line
from calibrant._base.records import (
    Columnar,
    Estimate,
    Positive,
    Range,
    Shares,
    Target,
    Whole,
    close,
)
from calibrant._base.views import Plotted, Printed
from calibrant._inputs.arrays import Column, Table
from calibrant._inputs.options import RESAMPLES, Scores, check_rng, takes_scores
from calibrant._sketch.ordered import Ordered
from calibrant._stats import closed_forms, intervals
from calibrant._stats.bins import Isotonic
from calibrant._stats.close_pairs import LEAST_ROWS
from calibrant._stats.intervals import BAND, INVERSION, Family, Resampled
from calibrant._stats.sample import Sample
from calibrant._verbs.decisions import check_one_event
from calibrant._verbs.reading import examples_of, read_sample

MOST_PLACES = 2000
"""Places of the walk that the record keeps, beside its ends."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CutoffError(Plotted, Printed, Columnar):
    """Cumulative differences of outcomes and confidences, and what they cost at most.

    Attributes
    ----------
    error : Estimate
        The cutoff calibration error: the largest sum of outcomes less confidences over an
        interval of confidences, as a share of all examples. It is the range of the
        cumulative differences.
    decision_loss : Estimate
        The most that a decision by a cutoff loses because the probabilities are taken at
        face value, over all cutoffs; gains and losses of a decision are at most 1.
    cutoff : float
        The cutoff at which it is lost.
    share, confidence, difference : arrays
        The share of examples up to a confidence, in increasing order, that confidence, and
        the sum of outcomes less confidences up to there, over n. The first place is 0.
    reach : float
        How far from 0 the differences of a calibrated model go, at this level.
    n, level : float
        Examples, and coverage of the intervals.
    name, target : str
        The model, and what was asked.
    n_clusters, folded : int or None, bool
        Clusters, if they were given, and whether a sketch could not tell them all apart.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.cutoff_error([0, 1, 1, 1], confidence=[0.4, 0.5, 0.8, 0.9])
    >>> [round(float(x), 3) for x in found.difference]
    [0.0, -0.1, 0.025, 0.075, 0.1]
    >>> round(float(found.error), 3)
    0.2
    """

    name: str
    target: Target
    n: Positive
    level: Annotated[float, Range(0, 1, above=True)]
    error: Annotated[Estimate, Range(0, 1)]
    decision_loss: Annotated[Estimate, Range(0, 1)]
    cutoff: Annotated[float, Range(0, 1)]
    reach: Annotated[float, Range(0)]
    share: Shares
    confidence: Shares
    difference: Annotated[NDArray[np.float64], Range(-1, 1)]
    n_clusters: Whole | None = None
    folded: bool = False

    _figure: ClassVar[str] = "cumulative_differences"

    def _disagreement(self) -> str | None:
        if said := Columnar._disagreement(self):
            return said
        spread = float(np.ptp(self.difference))
        return (
            None if close(spread, self.error) else "has an error that is not its range"
        )

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def __repr__(self) -> str:
        return f"CutoffError({one_line(self.name, MOST_NAME)}, {self.error:.4f})"


def _lines(found: CutoffError) -> Iterator[str]:
    name = one_line(found.name, MOST_NAME)
    yield f"{name}: cumulative differences, {examples_of(found)}"
    yield ""
    for label, value in (
        ("cutoff error", found.error),
        ("decision loss", found.decision_loss),
    ):
        ends = value.interval
        said = "" if ends is None else f" [{ends[0]:.4f}, {ends[1]:.4f}]"
        yield f"  {label:<14} {value:.4f}{said}"
    yield ""
    yield f"The decision threshold with the largest loss is {found.cutoff:.3g}."


@takes_scores
def cutoff_error(
    y: Any,
    *,
    cluster: Any = None,
    level: float = 0.95,
    resamples: int = 1000,
    rng: Any = 0,
    name: str | None = None,
    **given: Unpack[Scores],
) -> CutoffError:
    r"""Cutoff calibration error: the range of the cumulative differences.

    Parameters
    ----------
    cluster : array_like, optional
        The cluster of each row, if rows depend on each other.
    level : float
        Coverage of the intervals.
    resamples : int
        Number of resamples of the walk.
    rng : int or Generator
        Their seed.
    name : str, optional
        The model's name.

    Returns
    -------
    CutoffError
        The error with its interval, the decision loss, and the walk.

    Notes
    -----
    With examples in order of their confidence :math:`h_i`, and outcomes :math:`a_i`,

    .. math:: \max_{s < t} \frac{1}{n} \Bigl| \sum_{s < h_i \le t} (a_i - h_i) \Bigr|
              = \max_t D(t) - \min_t D(t) ,

    :math:`D(t)` the sum up to t, from 0 on; ties are one step. No bins, no bandwidth. Its
    interval comes from resampled walks, by inverting a test of how large the range is.
    `calibration_test` asks of the same range whether chance explains it (Kuiper).

    The decision loss of a cutoff c is what is lost by acting from c on, not from the
    confidence at which the outcome has that probability, with a monotone relation of the
    two: :math:`\max_t \frac{1}{n} \sum (a_i - c) ([h_i \ge t] - [h_i \ge c])`, over
    max(c, 1 - c), so that no gain or loss exceeds 1. It is at most twice the cutoff error.
    Noise can only make it larger; its interval is a band, and holds at least as often as
    its level says.

    References
    ----------
    I. Arrieta-Ibarra et al., *Metrics of calibration for probabilistic predictions*, JMLR
    23, 2022. R. Rossellini et al., *Can a calibration metric be both testable and
    actionable?*, COLT 2025. L. Hu and Y. Wu, *Predict to minimize swap regret for all
    payoff-bounded tasks*, FOCS 2024.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.cutoff_error([1, 0] * 50, probs=[0.9, 0.3] * 50)
    >>> round(float(found.error), 2), found.error.interval is not None
    (0.15, True)
    """
    check_number(resamples, "resamples", *RESAMPLES, kind="a whole number")
    check_rng(rng)
    one = read_sample(y, given, cluster, name, level)
    check_one_event(one.sample)
    sample, ordered = one.sample, one.sample.rows.ordered
    share, h, walk = walk_of(ordered)
    loss, cutoff = worst_cutoff(sample.isotonic, sample.values.ordered)
    error, loss, reach = _with_intervals(
        sample, float(np.ptp(walk)), loss, resamples, rng
    )
    kept = _kept(walk)
    return CutoffError(
        name=one.name,
        target=sample.target,
        **one.size,
        level=level,
        error=error,
        decision_loss=loss,
        cutoff=cutoff,
        reach=reach,
        share=share[kept],
        confidence=h[kept],
        difference=walk[kept],
    )


def walk_of(ordered: Ordered) -> tuple[Column, Column, Column]:
    """Share of examples, confidence and cumulative difference, from the origin on."""
    n = ordered.total
    share = np.minimum(np.cumsum(ordered.weight) / n, 1.0)
    walk = np.cumsum(ordered.residual) / n
    start = np.zeros(1)
    h = np.concatenate([start, ordered.confidence])
    return np.concatenate([start, share]), h, np.concatenate([start, walk])


def _kept(walk: Column) -> Any:
    """Places that are kept: some that are equally far, and the extremes."""
    some = np.linspace(0, len(walk) - 1, min(MOST_PLACES, len(walk))).astype(np.intp)
    return np.unique([*some, int(walk.argmax()), int(walk.argmin())])


def worst_cutoff(fit: Isotonic, ordered: Ordered) -> tuple[float, float]:
    """The largest decision loss over all cutoffs, and where it is.

    Between confidences and levels of the isotonic fit the loss is linear in the cutoff,
    over 1 - c or c, so that it is largest at one of them, or at one half.
    """
    levels, h = fit.level, ordered.confidence
    at = np.unique(np.clip(np.concatenate([h, levels, [0.0, 0.5, 1.0]]), 0, 1))
    hits = np.concatenate([[0.0], np.cumsum(ordered.hits)]) / ordered.total
    mass = np.concatenate([[0.0], np.cumsum(ordered.weight)]) / ordered.total
    best, loss = np.searchsorted(levels, at), np.zeros(len(at))
    for side in ("left", "right"):  # who acts at exactly the cutoff, and who does not
        taken = np.searchsorted(h, at, side=side)
        lost = (hits[taken] - hits[best]) - at * (mass[taken] - mass[best])
        loss = np.maximum(loss, lost / np.maximum(at, 1 - at))
    worst = int(loss.argmax())
    return min(max(float(loss[worst]), 0.0), 1.0), float(at[worst])


def range_size(x: Table, direction: Column) -> tuple[Column, Column]:
    """Range of each row, the origin included, and how it grows in a direction."""
    start = np.zeros((len(x), 1))
    walks, along = np.hstack([start, x]), np.concatenate([[0.0], direction])
    top, bottom = walks.argmax(axis=1), walks.argmin(axis=1)
    rows = np.arange(len(x))
    return walks[rows, top] - walks[rows, bottom], along[top] - along[bottom]


def _with_intervals(
    sample: Sample, error: float, loss: float, resamples: int, rng: Any
) -> tuple[Estimate, Estimate, float]:
    """Both numbers with intervals, and how far noise alone goes; all from one walk."""
    if sample.columns.effective < LEAST_ROWS:
        return Estimate(error), Estimate(loss), 0.0
    level, seed = sample.settings.level, np.random.default_rng(rng)
    width = max(sample.smooth_error, 1e-3)
    found = resampled_walk(sample, width, resamples, seed)
    noise = np.cumsum(found.noise, axis=1)
    ends = beyond_the_gap(_range_interval(found, noise, error), sample)
    spread = range_size(noise, noise[0])[0]
    far = float(np.quantile(spread, level))
    lost = max(loss - 2 * far, 0.0), min(loss + 2 * far, 1.0)
    suffix = "" if sample.clusters is None else ", clusters"
    return (
        Estimate(error, ends, closed_forms.named(INVERSION, ends) + suffix),
        Estimate(loss, lost, closed_forms.named(BAND, lost) + suffix),
        float(np.quantile(np.abs(noise).max(axis=1), level)),
    )


def resampled_walk(
    sample: Sample, width: float, resamples: int, rng: np.random.Generator
) -> Resampled:
    """Residuals and their noise, as much larger as few clusters leave unknown."""
    level, bins = sample.settings.level, (sample.width_bins, sample.mass_bins)
    found = intervals.resampled(sample.values, width, bins, level, resamples, rng)
    if sample.clusters is None:
        return found
    wider = closed_forms.student(level, sample.rows.df) / closed_forms.quantile(level)
    return replace(found, noise=wider * found.noise)


def beyond_the_gap(
    ends: closed_forms.Interval, sample: Sample
) -> closed_forms.Interval:
    """Ends of what is at least the gap between observed and expected: as far as it may be.

    Of few events resamples vary too little.
    """
    rows, columns = sample.rows, sample.rows.columns
    gap = columns.mean(columns.confidence - columns.hit)
    known, _ = intervals.of_gap(rows, gap, sample.settings.level)
    return ends[0], max(ends[1], *map(abs, known))


def _range_interval(
    found: Resampled, noise: Table, value: float
) -> closed_forms.Interval:
    """Ranges that the observed one does not contradict, as if of two likely shapes."""
    ends = [
        intervals.invert(
            Family(np.cumsum(shape), noise, range_size), value, found.level, 1.0
        )
        for shape in (found.shape, found.observed)
    ]
    return min(low for low, _ in ends), max(high for _, high in ends)
