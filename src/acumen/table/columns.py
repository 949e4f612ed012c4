"""Columns of a table: which there are, what they are called, and how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acumen.comparison import EFFECTS, MEASURES, Comparison, Measure
from acumen.results import Estimate
from acumen.table.cells import Heading

PAPER = (
    "accuracy",
    "ece",
    "ace",
    "smooth_ece",
    "nll",
    "brier",
    "calibration",
    "sharpness_gap",
)
"""The paper's columns, and the two parts of the score."""

SETS = {
    "paper": PAPER,
    "study": (*PAPER, *EFFECTS),
    "effects": EFFECTS,
    "all": (*MEASURES, *EFFECTS),
}

EFFECT_HEADINGS = {
    "accuracy_change": Heading("accuracy_change", "Accuracy change", "Δ Acc"),
    "changed": Heading("changed", "Predictions changed", "changed"),
    "tied": Heading("tied", "Tied rows", "tied"),
    "impossible": Heading("impossible", "Impossible rows", "impossible"),
    "fit_seconds": Heading("fit_seconds", "Fit (s)", "fit (s)"),
}


@dataclass(frozen=True, slots=True)
class Column:
    """A heading and where its numbers come from: a measure, or else an effect."""

    heading: Heading
    measure: Measure | None

    @property
    def key(self) -> str:
        """The column's name."""
        return self.heading.key

    @property
    def is_share(self) -> bool:
        """Whether the numbers may be written x100: not counts, not seconds."""
        return self.measure is not None or self.key == "accuracy_change"

    def values(self, comparison: Comparison) -> list[Estimate]:
        """One number per model; NaN where it has none."""
        if self.measure is not None:
            return [self.measure.of(ev) for ev in comparison]
        return [Estimate(comparison.effect(n, self.key)) for n in comparison.names]


def choose(columns: str | Sequence[str] | None, comparison: Comparison) -> list[Column]:
    """The columns asked for.

    A set of columns leaves out what no model has; a column asked for by name stays.
    """
    if columns is None or (isinstance(columns, str) and columns in SETS):
        name = columns or "paper"
        if name in ("study", "effects"):
            _check_effects(name, comparison)
        found = [_column(key) for key in SETS[name]]
        return [column for column in found if _has_any(column, comparison)]
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    for key in names:
        _check_name(key)
        if key in EFFECTS:
            _check_effects(key, comparison)
    if not names:
        raise ValueError("columns must name at least one column, got none.")
    return [_column(key) for key in names]


def _column(key: str) -> Column:
    if key in EFFECT_HEADINGS:
        return Column(EFFECT_HEADINGS[key], None)
    measure = MEASURES[key]
    heading = Heading(key, measure.label, measure.short or measure.label)
    return Column(heading, measure)


def _has_any(column: Column, comparison: Comparison) -> bool:
    return not np.isnan(column.values(comparison)).all()


def _check_name(key: str) -> None:
    if key not in SETS["all"]:
        raise ValueError(
            f"columns has no {key!r}. Choose from {', '.join(SETS['all'])}; or one of "
            f"the sets {', '.join(map(repr, SETS))}."
        )


def _check_effects(asked: str, comparison: Comparison) -> None:
    if not comparison.effects:
        raise ValueError(
            f"columns={asked!r} needs the effects of recalibration, which only a study "
            "knows; these models were evaluated by themselves."
        )
