"""The rules of the audit: each looks at a model or a comparison and may find something.

The first line of a rule's docstring says what is found, the rest why it matters; the
page of codes in the manual is made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations
from math import inf
from typing import Any, NamedTuple

import numpy as np

from calibrant._base.comparison import Comparison
from calibrant._base.evaluation import Evaluation
from calibrant._base.measures import (
    MEASURES,
    TRIVIAL_SHARE,
    auroc_error,
    effective,
    is_mirrored,
    is_trivial,
    is_weighted,
    some_of,
    spread_of,
)
from calibrant._base.records import FORECASTS, Estimate, listed
from calibrant._base.text import with_interval
from calibrant._inputs.arrays import Column
from calibrant._inputs.divergences import BRIER, score_in_words
from calibrant._inputs.options import Settings, brier_factor
from calibrant._sketch.kernels import GAUSSIAN
from calibrant._stats.bins import binned_error, width_bins
from calibrant._stats.closed_forms import WIDENED, quantile
from calibrant._stats.decomposition import analyse_shared
from calibrant._stats.intervals import FEW_EVENTS
from calibrant._stats.published import calibration_error, regress
from calibrant._verbs import compare
from calibrant._verbs.clinical import are_few
from calibrant._verbs.reading import sample_behind
from calibrant._views.diagram import axis_words
from calibrant._views.words import (
    FAR_OFF,
    contradicted,
    digits_of,
    direction,
    excludes_zero,
    verdict,
)
from calibrant.table._layout import kind_of, same_examples
from calibrant.table._table import names, rows


@dataclass(frozen=True, eq=False)
class Audited:
    """A comparison, and the differences of its models, found once."""

    comparison: Comparison
    found: dict[tuple[str, str, str], Estimate] = field(default_factory=dict)

    @cached_property
    def paired(self) -> bool:
        """Whether all models have the same rows, still at hand."""
        first = self.comparison[0]
        return all(self.same_rows(ev, first) for ev in self.comparison)

    def same_rows(self, ev: Evaluation, base: Evaluation) -> bool:
        """Whether two models have the same rows and clusters, still at hand."""
        if not getattr(self.comparison, "paired", True):  # as was said
            return False
        return compare.same_rows(ev, base) and compare.same_clusters(ev, base)

    @cached_property
    def rows(self) -> dict[str, compare.ModelRows]:
        """Rows of each model that has them, by name."""
        with_rows = (ev for ev in self.comparison if ev.columns is not None)
        return {ev.name: compare.rows_of(ev) for ev in with_rows}

    def difference(self, ev: Evaluation, base: Evaluation, key: str) -> Estimate:
        """One model less another in one column."""
        about = ev.name, base.name, key
        if about not in self.found:
            self.found[about] = self._difference(ev, base, key)
        return self.found[about]

    def _difference(self, ev: Evaluation, base: Evaluation, key: str) -> Estimate:
        if self.same_rows(ev, base):
            mine, theirs = self.rows[ev.name], self.rows[base.name]
            return compare.paired_difference(mine, theirs, MEASURES[key])
        if compare.were_paired(ev, base):  # of which the records tell too little
            return Estimate(float(MEASURES[key].of(ev)) - float(MEASURES[key].of(base)))
        apart = compare.independent_difference(ev, base, MEASURES[key])
        if self.same_examples(ev, base) and not compare.is_clear(apart):
            return Estimate(
                float(apart)
            )  # their rows are gone: paired, it might be clear
        return apart

    def same_examples(self, ev: Evaluation, base: Evaluation) -> bool:
        """Whether two models have the same examples, as far as is known."""
        if not getattr(self.comparison, "paired", True):
            return False
        names = [
            {self.comparison[i].name for i in x} for x in same_examples(self.comparison)
        ]
        return any({ev.name, base.name} <= some for some in names)

    def clearly_better(self, ev: Evaluation, base: Evaluation, key: str) -> bool:
        """Whether a column says so, with an interval to show for it."""
        if kind_of(ev, key) != kind_of(base, key):
            return False  # the two numbers are different things
        measure = MEASURES[key]
        lead = float(measure.of(ev)) - float(measure.of(base))
        better = lead > 0 if measure.higher_is_better else lead < 0
        return better and compare.is_clear(self.difference(ev, base, key))

    def pairs(self) -> Iterator[tuple[Evaluation, Evaluation]]:
        """Every ordered pair of models."""
        return permutations(self.comparison.evaluations, 2)


# -- one model --------------------------------------------------------------------


WHOSE = "\0"
"""In a text, where the models are named whose examples it is about, unless all have them."""


class Told(NamedTuple):
    """What a rule found. The code is the rule's name; without models, it is about one."""

    severity: str
    text: str
    evidence: dict[str, float]
    advice: str
    models: tuple[str, ...] = ()


Rule = Callable[[Evaluation], Iterator[Told]]

FEW_VALUES, MANY_ROWS, MOST_VALUES = 40, 100, 256
"""Few confidences: up to 40, or up to 256 if 100 rows or more share one on average."""

HALF = 0.5


def trivial_confidence(ev: Evaluation) -> Iterator[Told]:
    """The spread of the confidences explains (almost) nothing.

    All confidences are equal, or so close together that they explain the outcomes no better
    than their mean. Such a model needs only the right average to be calibrated, and
    cannot tell one example from another. Mean replacement does this to any model, with
    or without noise on top: accuracy stays, calibration errors vanish, and only a proper
    score or the sharpness gap shows what was lost. A study knows its mean replacement by
    the method: of forecasts it is p or 1 - p by the class that is likelier. Other forecasts
    of two values may be sharp, and are not meant; nor is a model that is certain and
    correct in every example.
    """
    if is_trivial(ev) and ev.decomposition.total > 0:
        middle, spread, gain = spread_of(ev)
        share = 100 * ev.largest_share
        given = f"gives {share:.4g} % of its examples the same confidence"
        known = "it cannot tell one example from another"
        if is_weighted(ev):  # it may be one example of great weight
            given = f"gives {share:.4g} % of the weight the same confidence"
            known = f"so weighted, {known}"
        if is_mirrored(ev):
            given = compare.sameness(ev)
            known = "it knows no more than which class is likelier"
        elif ev.largest_share < TRIVIAL_SHARE:
            given = f"gives every example (nearly) the same confidence, {middle:.3g}"
            given += f" with a standard deviation of {spread:.1g} that explains nothing"
        off = excludes_zero(ev.decomposition.calibration)
        yield Told(
            "serious",
            f"{ev.name} {given}: {known}.",
            {
                "miscalibrated": float(off),
                "largest_share": ev.largest_share,
                "distinct": float(ev.distinct),
                "spread": spread,
                "gain": gain,
            },
            "Do not quote its calibration error alone; compare Brier score and NLL.",
        )


WORTH = 0.01
"""Share of the proper score from which on recalibration is worth it."""

WHOLE = ("positive", "pairs")
"""Targets whose confidence is all there is to recalibrate."""


def miscalibrated(ev: Evaluation) -> Iterator[Told]:
    """The model is miscalibrated: the interval of d_CAL excludes 0.

    The size is d_CAL with its interval, and its share of the proper score is what
    recalibration can save: the most, if the forecast of one event is all there is
    (`positive` and `pairs`), and the least for other targets, where d_CAL is that of the
    confidence alone, and recalibrating whole probability vectors may save more. The
    direction is that of the mean confidence, if its interval excludes 0 too. The error is
    most visible in the region named, the smallest range of confidence in which bins of
    equal weight show at least half of it (noise taken out), at least as wide as d_CAL can
    resolve. Chance has a say in where that is: where the error is broad, the model is off
    outside the region, too, and by less inside it than these examples show. Where no
    region has half of d_CAL by the numbers told of it, none is named. A probability of 0
    or 1 that proved wrong is miscalibration, too, whatever the interval: no calibrated
    forecast does. Of calibrated models, this is raised as often as their interval is wrong. Where no
    interval of a calibration error excludes 0, print and report say that there is no
    evidence of miscalibration; where only that of ECE, ACE, SmoothECE or d_CAL by another
    divergence does, that the evidence is weak.
    """
    parts = ev.decomposition
    if verdict(ev) != "miscalibrated":
        return
    value, ends = float(parts.calibration), parts.calibration.interval
    evidence = {"calibration": value}
    evidence |= dict(zip(("low", "high"), ends or (), strict=False))
    score, gap = score_in_words(ev.divergence), ev.metrics.get("confidence_gap")
    if gap is not None:
        evidence["confidence_gap"] = float(gap)
    if ends is None or not np.isfinite(value) or not excludes_zero(parts.calibration):
        text = f"{ev.name} is miscalibrated: {contradicted(ev)}."
        yield Told(
            "warning", text, evidence, "Recalibrate, by a method without 0 and 1."
        )
        return
    where, region = _region(ev)
    evidence |= region
    severity, saved, advice = _worth(ev, score)
    least = FAR_OFF if gap is None or gap.interval is None else 0.0
    which = direction(ev, least).lower()
    if which and gap is not None and gap * region.get("region_gap", gap) < 0:
        which += " on average"  # and the other way where most of the error is
    which = which or "no clear direction"
    error = with_interval(parts.calibration, digits_of(parts.calibration))
    size = f"calibration error {error}{saved}"
    text = f"{ev.name} is miscalibrated ({which}): {size}{where}."
    yield Told(severity, text, evidence, advice)


def _two_digits(x: float) -> str:
    """Two digits that count, and no exponent for 100."""
    return f"{float(f'{x:.2g}'):g}"


def _worth(ev: Evaluation, score: str) -> tuple[str, str, str]:
    """Severity, size beside the proper score, and whether recalibration is worth it."""
    parts = ev.decomposition
    assert parts.calibration.interval is not None
    total = float(parts.total)
    if not 0 < total < float("inf"):
        return "warning", "", "Recalibrate (calibrant.study compares methods)."
    share, *ends = (x / total for x in (parts.calibration, *parts.calibration.interval))
    least, most = (_two_digits(100 * min(max(x, 0.0), 1.0)) for x in ends)
    saved = f", {_two_digits(100 * share)} % of the {score}"
    if ev.target in WHOLE and ends[1] < WORTH:
        advice = f"Recalibration would lower the {score} by {most} % at most: hardly"
        return "note", saved, f"{advice} worth it."
    size = f"{least} to {most}" if ev.target in WHOLE else f"at least {least}"
    gain = f"Recalibration can lower the {score} by {size} %"
    if ends[0] < WORTH:
        return "note", saved, f"{gain}: see what calibrant.study saves."
    return "warning", saved, f"{gain}: it is worth it (calibrant.study)."


PARTS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Shares of the error that a region is sought for, until its own numbers are half of it."""


def _region(ev: Evaluation) -> tuple[str, dict[str, float]]:
    """Where bins show most of the error, in words and numbers; empty if they do not.

    It is the range where these examples show it best, which is not to say that the model
    is right elsewhere: the words are of what is seen, and claim no share of d_CAL.

    Of pooled classes nothing is said: their errors cancel in the bins. Nor is it where no
    region has most of d_CAL by the numbers that are told of it.
    """
    if ev.per_class:
        return "", {}
    bins, filled = ev.mass_bins, ev.mass_bins.count > 0
    n, h, a, variance = (
        x[filled] for x in (bins.count, bins.confidence, bins.accuracy, bins.variance)
    )
    noise = variance * ev.n / effective(ev)
    error = np.maximum(n * (a - h) ** 2 - noise, 0.0)
    if not error.sum() > 0:
        return ", in ranges of confidence too narrow for bins", {}
    runs = (shortest_run(error, n, part) for part in PARTS)
    found = (Region.of(run, n, h, a, error) for run in runs)
    most = _comparable(ev, inf)
    of_bins = float(error.sum() / n.sum())
    whole = max(of_bins, _comparable(ev, of_bins))
    least = ev.decomposition.resolution or 0.0
    region = next((x for x in found if x.share >= least and x.has_most(whole)), None)
    if region is None or region.run == (0, len(n)):
        return "", {}
    lower, upper = bins.lower[filled], bins.upper[filled]
    start, stop = region.run
    seen, said = axis_words(ev).values()
    where = f"; most visible {in_range(lower, upper, n, region.run, said)}, "
    if region.is_mixed:
        size = min(region.size, (max(most, 0.0) / region.share) ** 0.5)
        where += f"where {said}s are too high and too low by about {size:.2g}"
    else:
        means = f"{region.confidence:.3g} and {seen} {region.accuracy:.3g}"
        where += f"where mean {said} is {means}"
    ends = {"region_low": float(lower[start]), "region_high": float(upper[stop - 1])}
    return where, {**ends, "region_share": region.share, "region_gap": region.gap}


def _comparable(ev: Evaluation, other: float) -> float:
    """d_CAL, if it is of the same kind as the squared error of bins; else another number."""
    if ev.target in WHOLE and ev.divergence == "brier":
        return float(ev.decomposition.calibration)
    return other


class Region(NamedTuple):
    """A run of bins: its share of the examples, its means, and how far off it is."""

    run: tuple[int, int]
    share: float
    confidence: float
    accuracy: float
    size: float

    @classmethod
    def of(
        cls, run: tuple[int, int], n: Column, h: Column, a: Column, error: Column
    ) -> Region:
        """That of bins with so many examples, such means, and squared errors."""
        here = slice(*run)
        weight = float(n[here].sum())
        confidence, accuracy = (float(n[here] @ x[here]) / weight for x in (h, a))
        size = (float(error[here].sum()) / weight) ** 0.5
        return cls(run, weight / float(n.sum()), confidence, accuracy, size)

    @property
    def gap(self) -> float:
        """Mean confidence less accuracy."""
        return self.confidence - self.accuracy

    @property
    def is_mixed(self) -> bool:
        """Whether errors of both signs are in it, which cancel in the means."""
        return abs(self.gap) < self.size / 2

    def has_most(self, error: float) -> bool:
        """Whether the numbers told of it are half of an error or more."""
        told = self.size if self.is_mixed else self.gap
        return self.share * told**2 >= HALF * error * (1 - 1e-9)


def shortest_run(size: Column, weight: Column, share: float = HALF) -> tuple[int, int]:
    """The consecutive entries of least weight that hold half of the size, or a share.

    Examples
    --------
    >>> shortest_run(np.array([0.0, 1.0, 5.0, 4.0]), np.ones(4))
    (2, 3)
    """
    before = np.concatenate([[0.0], np.cumsum(size)])
    passed = np.concatenate([[0.0], np.cumsum(weight)])
    starts = np.arange(len(size))
    wanted = before[:-1] + share * before[-1]
    stops = np.searchsorted(before, wanted * (1 - 1e-12))
    there = stops <= len(size)
    cost = np.where(there, passed[np.minimum(stops, len(size))] - passed[:-1], np.inf)
    best = int(np.argmin(cost))
    return int(starts[best]), max(int(stops[best]), best + 1)


MOST_DIGITS, UNSEEN = 4, 0.005
"""A range that needs more digits is told by ranks; ends are rounded as long
as this moves no larger share of the examples across them."""


def in_range(
    lower: Column, upper: Column, n: Column, run: tuple[int, int], said: str
) -> str:
    """Where a run of bins is: by its ends, if few digits tell them, or by ranks.

    Ends are rounded outwards, to digits that keep the share of examples (evenly spread
    within bins).

    Examples
    --------
    >>> n, low = np.full(3, 50.0), np.array([0.8811, 0.951, 0.983])
    >>> in_range(low, np.array([0.94, 0.98, 1.0]), n, (0, 2), "confidence")
    'at confidences from 0.88 to 0.98 (67 % of examples)'
    >>> low[1:] = 1 - 1e-10, 1 - 1e-12
    >>> in_range(low, low + 1e-13, n, (0, 1), "confidence")
    'at confidence 0.8811 (33 % of examples)'
    >>> in_range(low, np.append(low[1:] - 1e-11, 1), n, (0, 1), "confidence")
    'among the 33 % of examples with the lowest confidence'
    """
    start, stop = run
    part = f"{100 * n[start:stop].sum() / n.sum():.0f} % of examples"
    outside = np.array([[-1.0, *upper][start], [*lower, 2.0][stop]])
    ends = np.array([lower[start], upper[stop - 1]])
    digits = _digits(lower, upper, n, run)
    low, high = _outwards(ends, digits)
    form = ".4g" if 0.001 < ends[0] < 0.999 else ".6g"
    one, *others = (f"{x:{form}}" for x in (ends[0], *outside))
    if ends[1] - ends[0] < 1e-6 and one not in others:
        return f"at {said} {one} ({part})"
    if digits > MOST_DIGITS:
        return f"among the {part} {_ranked(n, run)} {said}"
    return f"at {said}s from {low:.{digits}f} to {high:.{digits}f} ({part})"


def _ranked(n: Column, run: tuple[int, int]) -> str:
    """Which ranks a run has, before the word for confidence."""
    if run[1] == len(n):
        return "with the highest"
    below = 100 * n[: run[0]].sum() / n.sum()
    return (
        f"that follow the {below:.0f} % with the lowest" if below else "with the lowest"
    )


def _digits(lower: Column, upper: Column, n: Column, run: tuple[int, int]) -> int:
    """How many digits tell the ends of a run apart, and keep its share of examples."""
    ends = np.array([lower[run[0]], upper[run[1] - 1]])
    at = np.column_stack([lower, upper]).ravel()
    below = np.column_stack([np.cumsum(n) - n, np.cumsum(n)]).ravel() / n.sum()
    share = n[slice(*run)].sum() / n.sum()
    for digits in range(2, 15):
        low, high = _outwards(ends, digits)
        first, last = np.interp((low - ROUNDING, high + ROUNDING), at, below)
        close = abs(last - first - share) <= UNSEEN
        if close and 10.0**-digits <= ends[1] - ends[0]:
            break
    return digits


ROUNDING = 1e-13


def _outwards(ends: Column, digits: int) -> Column:
    """A range rounded to digits, so that it holds its ends."""
    step, (low, high) = 10.0**-digits, np.round(ends, digits)
    low -= step * (low > ends[0] + ROUNDING)
    high += step * (high < ends[1] - ROUNDING)
    return np.round([low, high], digits)


def few_confidences(ev: Evaluation) -> Iterator[Told]:
    """There are few distinct confidences.

    Between them the calibration curve is made up by smoothing, and a binned error jumps
    where a bin edge passes a value. Histogram binning, forests and stated confidences
    are of this kind. Coarse confidences are easy to calibrate and tell fewer examples
    apart, which the sharpness gap shows.
    """
    few = 1 < ev.distinct <= FEW_VALUES and ev.rows > 2 * ev.distinct
    rounded = 1 < ev.distinct <= MOST_VALUES and ev.rows >= MANY_ROWS * ev.distinct
    if (few or rounded) and not is_trivial(ev):
        yield Told(
            "note",
            f"{ev.name} has only {ev.distinct} distinct confidences in {ev.rows:,} examples.",
            {"distinct": float(ev.distinct), "rows": float(ev.rows)},
            "Read the accuracy at each value, not the curve between them; choose bins "
            "that split no value.",
        )


STEPS, ROUND_OFF = (0.1, 0.05), 1e-6
MOSTLY = 0.9
"""Share of examples at multiples of a step from which on confidences are rounded to it."""


def rounded_confidences(ev: Evaluation) -> Iterator[Told]:
    """Confidences are rounded to multiples of 5 or 10 %.

    People and language models say 0.8 or 0.9, rarely 0.83. Such a number stands for a
    range, which is as wide as the step; no calibration error finer than that can be told,
    and a bin whose edge is a multiple puts all examples of one number on one side of it.
    """
    atoms = ev.atoms
    enough = len(atoms.count) > 2 and ev.rows >= FEW_VALUES
    if ev.target not in ("pairs", "positive") or not enough:
        return
    sure = np.isin(atoms.confidence, (0, 1))
    if not (~sure).sum() > 2:  # 0 and 1 are multiples of everything
        return
    for step in STEPS:
        off = np.abs(atoms.confidence / step - np.round(atoms.confidence / step))
        share, between = (
            float(
                atoms.count[which & (off < ROUND_OFF)].sum() / atoms.count[which].sum()
            )
            for which in (sure | True, ~sure)
        )
        if min(share, between) >= MOSTLY:
            yield Told(
                "note",
                f"{100 * share:.4g} % of the confidences of {ev.name} are multiples of "
                f"{100 * step:g} %, as if rounded: each then stands for a range.",
                {"step": step, "share": share},
                "Read the accuracy at each value; recalibration can move the values, not "
                "tell apart what was rounded to one.",
            )
            return


def left_out(ev: Evaluation) -> Iterator[Told]:
    """Some examples have no confidence, and are in no number.

    Abstentions and answers without a number are left out. What is left is often easier:
    a model may be well calibrated, and accurate, on what it chooses to answer. Accuracy on
    all examples lies between what it is if those left out are all wrong, and all correct.
    A comparison also leaves out what another model lacks, and then gives no such range.
    """
    if not ev.left_out:
        return
    share, some = ev.coverage, f"{ev.left_out:,.10g} of {ev.n + ev.left_out:,.10g}"
    about, evidence = _unanswered(ev) if not ev.unpaired else _not_compared(ev)
    yield Told(
        "note" if share >= MOSTLY else "warning",
        f"{some} examples{WHOSE} {about}",
        {"left_out": ev.left_out, "coverage": share, **evidence},
        "Quote the coverage beside every number, and compare models at equal coverage.",
    )


def _unanswered(ev: Evaluation) -> tuple[str, dict[str, float]]:
    """What is known of all examples if those left out may be right or wrong."""
    share, right = ev.coverage, float(ev.metrics["accuracy"])
    low, high = share * right, share * right + 1 - share
    return (
        f"have no confidence: coverage is {100 * share:.1f} %, and accuracy on all of them "
        f"between {100 * low:.1f} and {100 * high:.1f} %."
    ), {"low": low, "high": high}


def _not_compared(ev: Evaluation) -> tuple[str, dict[str, float]]:
    """Why examples are left out of a comparison: for this model, or for another."""
    own, none = ev.left_out - ev.unpaired, ev.unpaired - ev.absent
    told = [f"{own:,.10g} have no confidence"] if own else []
    if none:
        whom = f"{none:,.10g}" if own or ev.absent else "them"
        told.append(
            f"for {whom} another model has {'none' if own else 'no confidence'}"
        )
    if ev.absent:
        told.append(f"{ev.absent:,.10g} are not among the examples of another model")
    why = ", and ".join([", ".join(told[:-1]), told[-1]]) if told[1:] else told[0]
    coverage = f"Coverage is {100 * ev.coverage:.1f} %."
    return f"are not compared: {why}. {coverage}", {"unpaired": ev.unpaired}


def infinite_loss(ev: Evaluation) -> Iterator[Told]:
    """Some true class was given probability 0.

    The log loss is then infinite, whatever the other examples say, and any finite NLL
    printed for it comes from clipping. Isotonic and histogram recalibration make such
    zeros. The Brier score stays finite.
    """
    if ev.infinite_rows > 0:
        did = "was certain and wrong"
        if ev.target not in (*FORECASTS, "pairs"):
            did = "gave the true class probability 0"
        some = some_of(ev, ev.infinite_rows, out_of=True)
        unit = "weight" if is_weighted(ev) else "rows"
        yield Told(
            "warning",
            f"{ev.name} {did} in {some}: NLL is infinite.",
            {unit: ev.infinite_rows, "share": ev.infinite_rows / ev.n},
            "Report the count; a clipped NLL measures the clip.",
        )


def one_dimensional_score(ev: Evaluation) -> Iterator[Told]:
    """The proper score is that of the confidence, not of the classes.

    From pairs of confidence and correctness only the one-dimensional loss is known. It
    can vanish for a predictor that is always wrong, and knows it, while the full loss
    does not. It is no substitute for the score of the whole probability vector.
    """
    if ev.target == "pairs":
        right = float(ev.metrics["accuracy"])
        yield Told(
            "warning" if right < HALF else "note",
            f"Brier score and NLL of {ev.name} are those of its confidence alone "
            f"({100 * right:.1f} % of answers are correct).",
            {"share_correct": right},
            "Quote the share of correct answers beside it, and score whole probability "
            "vectors where they are available.",
        )


def smoothed_away(ev: Evaluation) -> Iterator[Told]:
    """The fixed bandwidth smooths miscalibration away.

    The published estimate smooths with bandwidth 0.05 on the probability scale. Where
    most confidences lie closer together than that, as in saturated networks, it blends
    over-confident examples with others and finds too little: it falls below the interval
    of the adaptive estimate. Of a model evaluated with a bandwidth of your own, it is that
    estimate which is held against the adaptive one. What four digits do not show is left
    out.
    """
    for fixed in _at_fixed(ev):
        if fixed.value < fixed.low and fixed.shows_beyond(fixed.low):
            yield fixed.told(ev, "below")


def overstated(ev: Evaluation) -> Iterator[Told]:
    """The fixed bandwidth finds more miscalibration than there is.

    Near 0 and 1 a bandwidth of 0.05 gives confidences the accuracy of others that are less
    sure, and the log divergence multiplies such a difference: the log calibration error of
    a saturated network may be three times too high. With few examples noise adds to it as
    well, since the published estimate is not debiased. It is held against the adaptive one
    where it was asked for: `bandwidth=` of your own, or ``preset="paper"``.
    """
    for fixed in _at_fixed(ev):
        beyond = fixed.value > fixed.high and fixed.shows_beyond(fixed.high)
        if fixed.headline and beyond:  # else nobody quotes it
            yield fixed.told(ev, "above")


class Fixed(NamedTuple):
    """A calibration error at a fixed bandwidth, and the adaptive one with its interval."""

    divergence: str
    headline: bool
    bandwidth: float
    value: float
    adaptive: float
    low: float
    high: float

    def shows_beyond(self, end: float) -> bool:
        """Whether four digits show the end, and that the value is beyond it."""
        return compare.shows(Estimate(end)) and compare.shows(
            Estimate(end - self.value)
        )

    def told(self, ev: Evaluation, where: str) -> Told:
        """What a finding says of it."""
        name = {BRIER.name: "Brier"}.get(self.divergence, self.divergence)
        which = "" if self.divergence == ev.divergence else f"{name} "
        own = self.headline and not which
        return Told(
            "warning" if own else "note",
            f"At bandwidth {self.bandwidth:g} the {which}calibration error of {ev.name} is "
            f"{self.value:.4f}, {where} the {self.adaptive:.4f} "
            f"[{self.low:.4f}, {self.high:.4f}] of the adaptive estimate.",
            {"fixed": self.value, "adaptive": self.adaptive}
            | {"low": self.low, "high": self.high},
            "Quote the adaptive estimate (bandwidth='auto').",
        )


def _at_fixed(ev: Evaluation) -> Iterator[Fixed]:
    """Errors at a fixed bandwidth: those asked for, or else the paper's Brier one."""
    headline = ev.decomposition.bandwidth is not None
    asked = ev.decompositions if headline else {BRIER.name: ev.paper}
    known = _adaptive(ev) if headline or ev.divergence == BRIER.name else {}
    for name, parts in asked.items():
        error = known.get(name)
        if error is None or error.interval is None or parts.bandwidth is None:
            continue
        value = float(parts.calibration)
        if not headline:
            value *= brier_factor(ev.settings.get("counterpart"), ev.k)
        ends = float(error), *error.interval
        yield Fixed(name, headline, parts.bandwidth, value, *ends)


def narrow_defect(ev: Evaluation) -> Iterator[Told]:
    """A narrow range of confidence is miscalibrated by more than the log estimate shows.

    The log calibration error comes from local fits wide enough to be stable, and a defect
    narrower than they are is smoothed away. Examples closer together still show that
    something is left; the interval was widened to include it. Round numbers that people
    or language models prefer have this effect.
    """
    parts = ev.decompositions.get("log")
    if parts is None or parts.calibration.interval is None:
        return
    if WIDENED in (parts.calibration.method or ""):
        value, high = float(parts.calibration), parts.calibration.interval[1]
        yield Told(
            "note",
            f"The log calibration error of {ev.name}, {value:.4f}, may be too low: "
            "examples of nearly equal confidence show more miscalibration than it sees. "
            f"Its interval, up to {high:.4f}, includes that.",
            {"log_calibration": value, "high": high},
            "Look for jumps in the curve. The Brier calibration error sees narrower ranges, "
            "though not arbitrarily narrow ones.",
        )


def _adaptive(ev: Evaluation) -> dict[str, Estimate]:
    """The adaptive estimates: the headline, or, if it is another, from the same examples."""
    found = ev.decompositions
    if ev.decomposition.bandwidth is not None:
        if ev.sketch is None:
            return {}
        kept = {x: ev.settings[x] for x in ("level", "counterpart")}
        main = ev.sketch.divergences.get(ev.divergence, ev.divergence)
        sample = sample_behind(ev, Settings(**kept, divergence=main))
        settings = sample.settings
        found = analyse_shared(sample.shared, settings, sample.factor).decompositions
    return {name: parts.calibration for name, parts in found.items()}


THIN_BIN, THIN_SHARE = 20, 0.5
"""A bin of fewer rows is thin; thin bins carry an error if half of it is theirs."""

FEW_ROWS, TOO_FEW_ROWS = 1000, 50


def thin_support(ev: Evaluation) -> Iterator[Told]:
    """Most of the ECE comes from bins of few examples.

    It does not matter how calibrated a model is where it rarely predicts, and it cannot
    be measured there. If most of ECE comes from bins of fewer than 20 examples, it is
    mostly noise; that is why a density belongs to every calibration curve.
    """
    bins = ev.bins
    filled = bins.count > 0
    count = bins.count[filled]
    size = count * np.abs(bins.accuracy - bins.confidence)[filled]
    share = float(size[count < THIN_BIN].sum() / size.sum()) if size.sum() > 0 else 0.0
    if ev.rows > 1 and share >= THIN_SHARE:
        yield Told(
            "warning",
            f"{100 * share:.0f} % of the ECE of {ev.name} comes from bins of fewer than "
            f"{THIN_BIN} examples.",
            {"share": share, "rows": float(ev.rows)},
            "Use fewer bins or more examples, and show the density beside the curve.",
        )


def too_few_rows(ev: Evaluation) -> Iterator[Told]:
    """There are few examples for a statement about calibration.

    With fewer than 1,000 examples the intervals of calibration errors are about as wide as
    the errors of common models; below 50 only d_CAL of the Brier score has one, and below 20
    no calibration error has.
    """
    if ev.n < FEW_ROWS:
        low = ev.n < TOO_FEW_ROWS
        count = "is 1 example" if ev.n == 1 else f"are {ev.n:,.10g} examples"
        yield Told(
            "warning" if low else "note",
            f"There {count}{WHOSE}: small errors and differences may be chance.",
            {"rows": float(ev.n)},
            "Quote intervals, or collect more examples.",
        )


VERY_FEW = 10
"""Below so many events it is a warning that they are few."""

OUTCOMES = {
    "positive": ("non-events", "events"),
    "multi-label": ("absent labels", "present labels"),
    "top-label": ("wrong predictions", "correct predictions"),
    "pairs": ("wrong answers", "correct answers"),
}
"""What misses and hits are called, by target."""


def few_events(ev: Evaluation) -> Iterator[Told]:
    """There are few wrong predictions, or few right ones (few events, or non-events).

    However many examples there are, what is known of calibration and discrimination rests
    on the rarer outcome: from 10 errors, be they among 100 predictions or 100,000, the rate
    of errors is known to about a third of itself.
    """
    if ev.n < TOO_FEW_ROWS or ev.target not in OUTCOMES or ev.soft_rows:
        return
    bins, filled = ev.bins, ev.bins.count > 0
    n = bins.count[filled] * effective(ev) / ev.n
    counts = [float(n @ x[filled]) for x in (bins.accuracy, bins.confidence)]
    hits_rarer = bool(counts[0] <= n.sum() / 2)
    seen, expected = counts if hits_rarer else [n.sum() - x for x in counts]
    if are_few(seen, expected):
        what = OUTCOMES[ev.target][hits_rarer]
        one = what.removesuffix("s") if round(seen, 6) == 1 else what
        many = "an effective number of " if is_weighted(ev) else ""
        rest = f"({_count(expected)} expected): its numbers rest on few events"
        if expected > n.sum() / 2:  # no rare event: the model expects the contrary
            rest = (
                f"where it expects {_count(expected)}: check the order of the classes"
            )
        yield Told(
            "warning" if are_few(seen, expected, VERY_FEW) else "note",
            f"{ev.name} has {many}{_count(seen)} {one} in {ev.n:,.10g} examples {rest}.",
            {"observed": seen, "expected": expected, "n": ev.n},
            "Quote intervals, do not rank models by such numbers, and collect more "
            f"{what}.",
        )


def _count(value: float) -> str:
    """A count, or an expected one: whole where it is."""
    return f"{round(value, 6):.3g}" if value < FEW_EVENTS else f"{value:,.0f}"


LEAST_EFFECTIVE = 1 / 3


def weights(ev: Evaluation) -> Iterator[Told]:
    """Importance weights leave little: the effective n is below a third of n.

    Where few examples carry most of the weight, averages vary as if there were only
    those. The effective number of examples is (sum of weights)^2 / sum of squared
    weights; intervals are as wide as it asks for.
    """
    left = effective(ev)
    if left < LEAST_EFFECTIVE * ev.n:
        yield Told(
            "warning",
            f"The weights of {ev.name} leave an effective number of {left:,.0f} examples "
            f"out of {ev.n:,.10g}.",
            {"effective": left, "n": ev.n, "share": left / ev.n},
            "Quote the effective number beside n; trim extreme weights, or collect "
            "examples where weights are large.",
        )


def duplicates(ev: Evaluation) -> Iterator[Told]:
    """Examples occur more than once, with the same score and the same outcome.

    Repeated examples are no new evidence, and intervals that count them are too narrow.
    Equal scores alone prove nothing: forecasts rounded to 1 % are often equal. But then the
    outcomes of equal scores differ about as often as those of neighbouring ones. This is
    raised if they (almost) never do, at 12 scores or more.
    """
    if ev.duplicates:
        share = ev.duplicates / ev.rows
        yield Told(
            "serious" if share > 0.01 else "warning",
            f"{ev.duplicates:,} of {ev.rows:,} examples of {ev.name} repeat the score and "
            "the outcome of another: they are counted as if they were new.",
            {"rows": float(ev.duplicates), "share": share},
            "Drop duplicates, or pass cluster= with one cluster for each original example.",
        )


FEW_CLUSTERS, SMALL_CLUSTERS = 20, 100
"""At least so many groups, of at most so many rows on average, are like clusters."""


def clusters_ignored(ev: Evaluation) -> Iterator[Told]:
    """Examples seem to depend on each other, and no cluster= was given.

    Answers to one question, visits of one patient or moments of one game are often right
    or wrong together. Intervals that count them one by one are then too narrow. This is
    raised if there are many small groups whose mean errors differ by more than chance
    allows, or if a file has a column of repeated ids.
    """
    if ev.n_clusters is not None:
        return
    for name, count in ev.repeated.items():
        yield Told(
            "note",
            f"{ev.name} has a column {name!r} whose values repeat, and its examples are "
            "counted as independent.",
            {"distinct": float(count)},
            f"If examples of one {name} depend on each other, make it the cluster.",
        )
    effect, limit = _design_effect(ev)
    if effect > limit:
        count = len(ev.per_group)
        yield Told(
            "warning",
            f"Mean errors of {ev.name} differ between its {count} groups: they vary "
            f"{effect:.2g} times as much as independent examples would.",
            {"design_effect": effect, "chance": limit, "groups": float(count)},
            "If examples of a group depend on each other, pass it as cluster= too.",
        )


def _design_effect(ev: Evaluation) -> tuple[float, float]:
    """How much more group means vary than by chance, and what chance may reach.

    The first is the mean of n_g (gap_g - gap)^2 / v over small groups, where v is the
    variance of one residual; under independence n_g gap_g^2 has mean v.
    """
    own = [x for x in ev.per_group.values() if "confidence_gap" in x.metrics]
    if len(own) < FEW_CLUSTERS or ev.rows > SMALL_CLUSTERS * len(own):
        return 0.0, 1.0
    n, gap, square = (
        np.array(x)
        for x in zip(
            *((x.n, float(x.metrics["confidence_gap"]), _square(x)) for x in own),
            strict=True,
        )
    )
    freedom = len(own) - 1
    variance = (n @ square) / n.sum()
    sum_ = float(n @ (gap - n @ gap / n.sum()) ** 2)
    limit = 1 + 3 * (2 / freedom) ** 0.5
    return sum_ / freedom / max(variance, 1e-300), limit


def _square(ev: Evaluation) -> float:
    """Mean squared residual a - h, by bins."""
    bins, filled = ev.bins, ev.bins.count > 0
    off = bins.accuracy[filled] - bins.confidence[filled]
    n = bins.count[filled]
    return float(n @ (bins.variance[filled] + off**2) / n.sum())


def below_chance(ev: Evaluation) -> Iterator[Told]:
    """Predictions do worse than chance.

    A model that learned anything beats chance. Far below it, labels and columns are
    mostly in different orders, the positive class is the other one, or confidence
    measures doubt. No calibration error makes sense before that is settled.
    """
    key, chance = _by_what(ev), _level(ev)
    value = ev.metrics.get(key)
    if value is None or not value < chance:
        return
    _, high = _ends(ev, key, value)
    if high < chance:
        yield Told(
            "serious",
            f"{ev.name} does worse than chance: {compare.name_of(key)} {value:.3f} where "
            f"guessing gives {chance:.3f}.",
            {key: float(value), "chance": chance},
            "Check the order of the classes (classes=), which class is positive, and "
            "that labels belong to these examples.",
        )


def at_chance(ev: Evaluation) -> Iterator[Told]:
    """Predictions are not significantly better than a guess.

    For classes the guess is the commonest class (of a sketch, any class at random); for
    forecasts and stated confidences it is an AUROC of one half. Such a model can be
    perfectly calibrated, by giving every example about the same confidence, and its
    calibration error then says nothing. Where a class is rare, accuracy does not tell
    whether its probability is worth something: `positive` as the target does. An AUROC must
    be so by its interval, which is wide of few events, and by Mann and Whitney's test; with
    clusters by its interval. Below 50 examples or 3 events nothing is said.
    """
    key = _by_what(ev)
    value = ev.metrics.get(key)
    if value is None or ev.rows < TOO_FEW_ROWS or (key == "auroc" and is_trivial(ev)):
        return
    guess, how = _guess(ev, key)
    low, high = _ends(ev, key, value)
    if key == "auroc" and _beats_random_order(ev, value):
        return
    if low <= guess and high >= _level(ev):  # below that, it is worse than chance
        better = (
            "better than chance" if key == "auroc" else "more accurate than a guess"
        )
        advice = (
            "Do not quote its calibration error alone, which is easily small at chance."
        )
        if guess > OFTEN:
            advice += " Of a rare class, evaluate the probability: target='positive'."
        yield Told(
            "warning",
            f"{ev.name} is not significantly {better}: {compare.name_of(key)} "
            f"{value:.3f} [{low:.3f}, {high:.3f}]; {how} gives {guess:.3f}.",
            {key: float(value), "low": low, "high": high, "chance": guess},
            advice,
        )


OFTEN = 0.9
"""If a class is as common as this, the others are rare."""


LEAST_EVENTS = 3
"""Of fewer events, or non-events, no rank test can tell much."""


def _beats_random_order(ev: Evaluation, value: float) -> bool:
    """Whether an AUROC is above one half by Mann and Whitney's test, or may well be."""
    _, share = ev.bins.means
    if effective(ev) * min(share, 1 - share) < LEAST_EVENTS:
        return True
    if ev.n_clusters is not None:
        return False
    error = auroc_error(ev) * (1 - float((_tied(ev) ** 3).sum())) ** 0.5
    return value - HALF > quantile(float(ev.settings["level"])) * error


def _tied(ev: Evaluation) -> Column:
    """Shares of examples at each confidence, as far as they are known."""
    if ev.columns is None:
        found = ev.atoms.count / ev.n
        return found if found.size else np.array([ev.largest_share])
    _, place = np.unique(ev.columns.confidence, return_inverse=True)
    return np.bincount(place, ev.columns.weights) / ev.columns.total_weight


def _guess(ev: Evaluation, key: str) -> tuple[float, str]:
    """What a guess has, and which one."""
    if key == "auroc":
        return HALF, "a random order"
    if ev.largest_class is None:
        return _level(ev), "guessing"
    return ev.largest_class, "always predicting the commonest class"


def _level(ev: Evaluation) -> float:
    """Below it, predictions are worse than random ones."""
    return HALF if _by_what(ev) == "auroc" else 1 / (ev.k or 2)


def _by_what(ev: Evaluation) -> str:
    """What shows whether predictions beat a guess."""
    classes = ev.target in ("top-label", "class-wise") and ev.k is not None
    return "accuracy" if classes else "auroc"


def _ends(ev: Evaluation, key: str, value: Estimate) -> tuple[float, float]:
    """The interval of the record; an AUROC without one has that of one half."""
    reach = 2 * auroc_error(ev) if key == "auroc" else 0.0
    return value.interval or (max(value - reach, 0.0), min(value + reach, 1.0))


def soft_labels(ev: Evaluation) -> Iterator[Told]:
    """Labels are distributions, not classes.

    Accuracy is then the mean probability of the predicted class under the labels, and
    the Brier score and NLL measure the distance to the label distribution: they are not
    comparable with those of hard labels. The NLL is then the Kullback-Leibler
    divergence, the cross-entropy less the entropy of the labels.
    """
    if ev.soft_rows:
        yield Told(
            "note",
            f"{ev.name} was evaluated against soft labels ({some_of(ev, ev.soft_rows)}); "
            "its NLL is the divergence from them (KL), not the cross-entropy.",
            {"rows": float(ev.soft_rows)},
            "Do not compare its scores with those of hard labels.",
        )


MODEL_RULES: tuple[Rule, ...] = (
    trivial_confidence,
    miscalibrated,
    few_confidences,
    rounded_confidences,
    left_out,
    infinite_loss,
    one_dimensional_score,
    smoothed_away,
    overstated,
    narrow_defect,
    thin_support,
    too_few_rows,
    few_events,
    weights,
    duplicates,
    clusters_ignored,
    below_chance,
    at_chance,
    soft_labels,
)

# -- several models ---------------------------------------------------------------

BANDWIDTHS = (0.01, 0.02, 0.05, 0.1)
"""The paper finds 0.01 to 0.05 to work best, and over-smoothing beyond 0.1."""

BIN_COUNTS = (10, 15, 20, 30, 50)
SCORES = ("brier", "nll")

POWER = 0.84
"""Normal quantile of a power of 80 %."""

ComparisonRule = Callable[[Audited], Iterator[Told]]


def score_worse(audited: Audited) -> Iterator[Told]:
    """Calibration is better where the proper score is worse.

    A proper score is calibration error plus sharpness gap. A model that wins on the
    first and loses on the sum has paid with sharpness: mean replacement always does,
    and any recalibration may. Tables of calibration errors and accuracy cannot show it.
    """
    for name, worse in _traded(audited).items():
        ev, others = audited.comparison[name], list(worse)
        best = max(others, key=lambda other: abs(worse[other][1]))
        calibration, score, key = worse[best]
        recalibrated = bool(audited.comparison.effects) or is_trivial(ev)
        yield Told(
            "warning" if recalibrated else "note",
            f"{name} {_won(audited, ev, others)}, but its score is worse: its "
            f"{compare.name_of(key)} is {score:.4f} higher than that of {best}.",
            {"calibration_difference": calibration, f"{key}_difference": score},
            "Choose by the proper score, and show the sharpness gap.",
            (name, *others),
        )


def _won(audited: Audited, ev: Evaluation, others: list[str]) -> str:
    """Which models another beats in calibration, and which it only does not lose to."""
    rivals = [audited.comparison[other] for other in others]
    beaten = [x.name for x in rivals if audited.clearly_better(ev, x, "calibration")]
    parts = {
        "has a significantly lower calibration error than": beaten,
        "is not significantly worse calibrated than": [
            other for other in others if other not in beaten
        ],
    }
    return " and ".join(f"{won} {listed(some)}" for won, some in parts.items() if some)


def _traded(audited: Audited) -> dict[str, dict[str, tuple[float, float, str]]]:
    """By model: others it beats in calibration and loses to in a proper score."""
    found: dict[str, dict[str, tuple[float, float, str]]] = {}
    for ev, other in audited.pairs():
        if not _wins_calibration(audited, ev, other):
            continue
        lost = [key for key in SCORES if audited.clearly_better(other, ev, key)]
        if lost:
            d = float(audited.difference(ev, other, "calibration"))
            score = float(audited.difference(ev, other, lost[0]))
            found.setdefault(ev.name, {})[other.name] = d, score, lost[0]
    return found


def _wins_calibration(audited: Audited, ev: Evaluation, other: Evaluation) -> bool:
    """Clearly, or, if it does so trivially, by not losing clearly where that is tested."""
    if is_trivial(ev) and not is_trivial(other):
        tested = audited.difference(ev, other, "calibration").interval is not None
        return tested and not audited.clearly_better(other, ev, "calibration")
    return audited.clearly_better(ev, other, "calibration")


def accuracy_changed(audited: Audited) -> Iterator[Told]:
    """Recalibration changed predictions.

    One-against-rest methods move classes past each other and make ties. What looks like
    better calibration may then be another classifier, and accuracy has to be reported
    before and after.
    """
    for name, effect in audited.comparison.effects.items():
        if effect.changed > 0:
            change = f"accuracy {100 * effect.accuracy_change:+.2f} points"
            if not effect.accuracy_change:
                change = "accuracy is the same"
            yield Told(
                "warning" if effect.accuracy_change < 0 else "note",
                f"{name} changed the predicted class of {rows(effect.changed)}: {change}.",
                {x: getattr(effect, x) for x in ("accuracy_change", "changed", "tied")},
                "Report accuracy before and after, or use a method that keeps the order "
                "of the classes.",
                (name,),
            )


def bandwidth_ranking(audited: Audited) -> Iterator[Told]:
    """Which model is better calibrated depends on the bandwidth.

    Over-smoothing can turn the order of calibration errors around. This is raised if the
    headline tells two models apart and a fixed bandwidth from 0.01 to 0.1 has them the
    other way round.
    """
    models = audited.comparison
    if models[0].divergence != "brier" or any(ev.sketch is None for ev in models):
        return
    errors = {
        ev.name: {width: _fixed(ev, width) for width in BANDWIDTHS} for ev in models
    }
    for ev, others, against, evidence in _turned(audited, "calibration", errors):
        yield Told(
            "warning",
            f"{ev.name} is better calibrated than {names(others)}, but not "
            f"{_at(others, 'at bandwidth', against)}.",
            evidence,
            "Rank by the adaptive estimate (bandwidth='auto') and its interval.",
            (ev.name, *others),
        )


def _fixed(ev: Evaluation, bandwidth: float) -> float:
    found = regress(ev.sketch, GAUSSIAN, bandwidth)
    return calibration_error(found, ev.sketch, "brier", "direct")


def bins_ranking(audited: Audited) -> Iterator[Told]:
    """Which model has the lower ECE depends on the bins.

    ECE jumps with bin edges, and few bins average errors of both signs away. This is
    raised if ECE as printed tells two models apart and another number of bins from 10 to
    50 has them the other way round.
    """
    if not audited.paired or audited.comparison[0].target == "class-wise":
        return
    ordered = {name: rows.sample.values.ordered for name, rows in audited.rows.items()}
    errors = {
        name: {bins: binned_error(width_bins(values, bins)) for bins in BIN_COUNTS}
        for name, values in ordered.items()
    }
    for ev, others, against, evidence in _turned(audited, "ece", errors):
        yield Told(
            "warning",
            f"{ev.name} has a lower ECE than {names(others)}, but not "
            f"{_at(others, 'with', against)} bins.",
            evidence,
            "Rank by d_CAL, which has no bins, or show several bin counts.",
            (ev.name, *others),
        )


def _turned(
    audited: Audited, key: str, errors: Mapping[str, Mapping[Any, float]]
) -> Iterator[tuple[Evaluation, list[str], str, dict[str, float]]]:
    """Models better than others in a column that some settings put the other way round.

    `errors` are by model and setting. The settings come in words; the evidence is the
    difference from the first of the others, and at each setting the largest against.
    """
    for ev in audited.comparison:
        turned: dict[str, dict[Any, float]] = {}
        for other in audited.comparison:
            if other is ev or not audited.clearly_better(ev, other, key):
                continue
            mine, theirs = errors[ev.name], errors[other.name]
            against = {x: mine[x] - theirs[x] for x in mine if mine[x] > theirs[x]}
            turned |= {other.name: against} if against else {}
        if turned:
            first = audited.comparison[next(iter(turned))]
            evidence = {"difference": float(audited.difference(ev, first, key))}
            all_of_them = [
                x
                for x in errors[ev.name]
                if any(x in found for found in turned.values())
            ]
            for x in all_of_them:
                most = max(found.get(x, 0.0) for found in turned.values())
                evidence[f"at_{x:g}"] = most
            yield ev, list(turned), listed([f"{x:g}" for x in all_of_them]), evidence


def _at(others: list[str], how: str, settings: str) -> str:
    """At which settings it is the other way round: for one model, or for some of several."""
    return (
        f"{how} {settings}"
        if len(others) == 1
        else f"than all of them {how} {settings}"
    )


def too_few_rows_to_rank(audited: Audited) -> Iterator[Told]:
    """There are too few examples to tell the best model from the next.

    The best in a column is only the luckiest if the interval of its lead holds 0. The
    number of examples that would settle a difference of this size grows as its inverse
    square. A lead that four digits do not show is left out.
    """
    for key in ("brier", "calibration"):
        measure = MEASURES[key]
        models = [ev for ev in audited.comparison if not is_trivial(ev)]
        ranked = sorted(models, key=lambda ev, m=measure: m.place(m.of(ev)))  # type: ignore[misc]
        if len({measure.place(measure.of(ev)) for ev in ranked[:2]}) < 2:
            continue  # one model, or no calibration error found in either
        if kind_of(ranked[0], key) != kind_of(ranked[1], key):
            continue
        lead = audited.difference(ranked[0], ranked[1], key)
        needed = _rows_needed(lead, ranked[0].n)
        if needed and compare.shows(lead):
            first, second = ranked[0].name, ranked[1].name
            sizes = [f"{ev.n:,.10g}" for ev in ranked[:2]]
            same = audited.same_examples(*ranked[:2])
            rows = f"these {sizes[0]}" if same else " and ".join(sizes)
            yield Told(
                "note",
                f"The {compare.name_of(key)} of {first} is {abs(lead):.4f} below that of {second}: "
                f"not significant on {rows} examples.",
                {"difference": float(lead), "rows_needed": needed},
                f"About {needed:,.0f} examples would settle a difference of this size.",
                (first, second),
            )


def _rows_needed(lead: Estimate, n: float) -> float:
    """Rows for a power of 80 %, if the lead is real; 0 if it is clear or there is none."""
    if (
        lead.interval is None
        or compare.is_clear(lead)
        or not lead
        or lead.interval[0] == lead
    ):
        return 0.0
    error = (lead.interval[1] - lead.interval[0]) / (2 * quantile(0.95))
    needed = n * ((quantile(0.95) + POWER) * error / abs(lead)) ** 2
    return float(f"{needed:.2g}")


def shared_rows(audited: Audited) -> Iterator[Told]:
    """Examples to fit on and examples to test on overlap.

    A recalibrator is calibrated on the examples it was fitted on by construction. Tested
    there, it looks better than it is, the more so the more freedom it has. Examples are
    the same if their scores and labels are, and more of them than chance explains: rounded
    scores also repeat within the examples to fit on, and within those to test on. Labels
    that are equal row by row, where no chance explains it, are those of the same examples,
    too: scores of two models are compared (`calibrant.compare`), not fitted and tested on.
    """
    advice = "Fit and test on different examples, or cross-fit (folds=)."
    if compare.SAME_LABELS in audited.comparison.protocol:
        n = audited.comparison[0].n
        yield Told(
            "serious",
            f"The {n:,.10g} examples to test on {compare.SAME_LABELS}.",
            {"rows": n, "share": 1.0},
            f"{advice} If these are two models, compare them (calibrant.compare).",
            audited.comparison.names,
        )
    if count := audited.comparison.shared_rows:
        n = audited.comparison[0].n
        yield Told(
            "serious" if count > 0.01 * n else "warning",
            f"{count:,.10g} of {n:,.10g} examples to test on {compare.SAME_AS_FIT}.",
            {"rows": float(count), "share": count / n},
            advice,
            audited.comparison.names,
        )


COMPARISON_RULES: tuple[ComparisonRule, ...] = (
    score_worse,
    accuracy_changed,
    bandwidth_ranking,
    bins_ranking,
    too_few_rows_to_rank,
    shared_rows,
)
