"""Compare models on the same rows: differences with intervals, and what they mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from acumen.arrays import as_number, check_choice
from acumen.comparison import Comparison, as_comparison
from acumen.contrasts.difference_words import multiple_note, sentence
from acumen.contrasts.differences import (
    independent_differences,
    paired_differences,
    rows_of,
    same_clusters,
    same_rows,
)
from acumen.encoding import number
from acumen.results import Estimate, Evaluation

TOLD = (
    "brier",
    "nll",
    "accuracy",
    "calibration",
    "sharpness_gap",
    "ece",
    "smooth_ece",
)
"""Columns that are put into words, in this order."""

ALIKE = (
    "bins",
    "closed",
    "bandwidth",
    "kernel",
    "boundary",
    "estimator",
    "counterpart",
    "preset",
)
"""Settings that must agree, or numbers of the same name are different things."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Contrast(Comparison):
    """A comparison that knows how far each model is from a baseline.

    Attributes
    ----------
    baseline : str
        Name of the model the others are compared with.
    level : float
        Coverage of the intervals.
    paired : bool
        Whether all models saw the same rows, and differences were taken row by row.
    differences : dict of dict of Estimate
        Model less baseline, by model and column, with intervals where they are known.

    Examples
    --------
    >>> import acumen as ac
    >>> sure = ac.evaluate_pairs([1, 0, 1, 1] * 20, [0.9, 0.8, 0.9, 1.0] * 20, name="sure")
    >>> fair = ac.evaluate_pairs([1, 0, 1, 1] * 20, [0.8, 0.6, 0.8, 0.9] * 20, name="fair")
    >>> found = ac.compare(sure, fair)
    >>> found.baseline, round(found.differences["fair"]["brier"], 3)
    ('sure', -0.053)
    >>> ac.Contrast.from_dict(found.to_dict()).level
    0.95
    """

    baseline: str = ""
    level: float = 0.95
    paired: bool = True
    differences: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Each difference in words, then what to keep in mind."""
        return (*self._told(), *self._reminders())

    def _told(self) -> Iterator[str]:
        base = self[self.baseline]
        for name, found in self.differences.items():
            for key in TOLD:
                if key in found:
                    yield sentence(
                        self[name], base, key, found[key], paired=self.paired
                    )

    def _reminders(self) -> Iterator[str]:
        told = {
            (name, key): found[key]
            for name, found in self.differences.items()
            for key in TOLD
            if key in found
        }
        yield from multiple_note(told, self.level)
        if not self.paired:
            yield (
                "Rows were not paired: intervals of the models were combined as if from "
                "separate rows, which is wider than need be if they are the same."
            )
        elif self[0].target == "pairs":
            yield (
                "Pairs carry no labels: that row i is the same question for every model "
                "is taken on trust."
            )

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Restore what ``to_dict`` gave."""
        plain = Comparison.from_dict(given)
        differences = {
            name: {key: _estimate(one) for key, one in found.items()}
            for name, found in given["differences"].items()
        }
        return cls(
            plain.evaluations,
            plain.protocol,
            plain.effects,
            plain.shared_rows,
            baseline=given["baseline"],
            level=given["level"],
            paired=given["paired"],
            differences=differences,
        )

    def __str__(self) -> str:
        table = Comparison.__str__(self)
        return "\n".join([table, "", f"Against {self.baseline}:", "", *self.sentences])


def _estimate(given: Mapping[str, Any]) -> Estimate:
    ends = given["interval"]
    interval = None if ends is None else (number(ends[0]), number(ends[1]))
    return Estimate(number(given["value"]), interval, given["method"])


def compare(
    *models: Any, paired: bool = True, level: float = 0.95, baseline: str | None = None
) -> Contrast:
    """Compare models on the same rows, each with a baseline, in every column.

    Parameters
    ----------
    *models : Evaluation
        Two or more, of distinct names, or one `Comparison` such as a study.
    paired : bool
        Whether the models saw the same rows in the same order, which is checked. Models
        of other rows are refused unless it is False: their intervals are then combined
        as independent.
    level : float
        Coverage of the intervals of the differences.
    baseline : str, optional
        Name of the model to compare with; the first by default.

    Returns
    -------
    Contrast
        A comparison with ``differences`` and ``sentences``; print it to read them.

    Notes
    -----
    Accuracy, losses and the confidence gap are means over rows: their differences have
    the interval of a mean of row differences (for accuracy the adjusted one of Bonett
    and Price, 2012). Other columns are means to first order: each row counts by its
    influence on the estimate. Nothing is resampled. Whole clusters count as one if the
    evaluations had ``cluster=``. Errors that cannot be negative, such as ECE, are too large
    by an amount that depends on n, and on how well calibrated the model is; models that
    are about as good share most of it. If neither can be told from 0, the interval of
    their difference holds 0. Lead with losses and d_CAL, which have no such excess.

    Examples
    --------
    >>> import numpy as np, acumen as ac
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(2000, 3))
    >>> y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> a = ac.evaluate(y, logits=z, name="A")
    >>> b = ac.evaluate(y, logits=3 * z, name="B")
    >>> found = ac.compare(a, b)
    >>> found.differences["B"]["brier"].interval[0] > 0.05
    True
    >>> print(found.sentences[2])
    Accuracy of B and A is the same in every row.
    """
    check_level(level)
    comparison = as_comparison(models[0] if len(models) == 1 else models)
    if len(comparison) < 2:
        raise ValueError("compare needs at least two models, got one.")
    name = comparison.names[0] if baseline is None else baseline
    check_choice(name, "baseline", comparison.names)
    base = comparison[name]
    others = [ev for ev in comparison if ev.name != name]
    for ev in others:
        _check_alike(ev, base)
        _check_rows(ev, base, level, paired=paired)
    if paired:
        rows = rows_of(base)
        differences = {
            ev.name: paired_differences(rows_of(ev), rows, level) for ev in others
        }
    else:
        differences = {ev.name: independent_differences(ev, base) for ev in others}
    return Contrast(
        comparison.evaluations,
        comparison.protocol,
        comparison.effects,
        comparison.shared_rows,
        baseline=name,
        level=float(level),
        paired=paired,
        differences=differences,
    )


def check_level(level: Any) -> None:
    """Refuse a coverage that is none."""
    if not 0 < as_number(level) < 1:
        raise ValueError(f"level must be between 0 and 1, got {level!r}.")


def _check_alike(ev: Evaluation, base: Evaluation) -> None:
    facts = {name: (getattr(ev, name), getattr(base, name)) for name in _FACTS}
    facts |= {name: (ev.settings.get(name), base.settings.get(name)) for name in ALIKE}
    for name, (mine, theirs) in facts.items():
        if mine != theirs:
            raise ValueError(
                f"models must be evaluated alike; {name} is {mine!r} for {ev.name!r} and "
                f"{theirs!r} for {base.name!r}."
            )


_FACTS = ("target", "divergence", "k")


def _check_rows(
    ev: Evaluation, base: Evaluation, level: float, *, paired: bool
) -> None:
    if not paired:
        if ev.settings["level"] != level:
            raise ValueError(
                f"without pairing, intervals are those of the evaluations; {ev.name!r} "
                f"has level {ev.settings['level']!r}, not {level!r}. Evaluate it with "
                f"level={level!r}."
            )
        return
    for one in (ev, base):
        rows_of(one)  # or it says that they are gone
    if not same_rows(ev, base):
        raise ValueError(
            f"{ev.name!r} and {base.name!r} were evaluated on different rows (labels or "
            "weights differ), so rows cannot be paired. Evaluate both on the same rows "
            "in the same order, or pass paired=False."
        )
    if not same_clusters(ev, base):
        raise ValueError(
            f"{ev.name!r} and {base.name!r} were evaluated with different clusters, so "
            "their rows cannot be paired. Give both the same cluster=."
        )
