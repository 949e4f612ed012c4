"""What a table prints, as frozen records: every format writes the same cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf, isfinite, isinf, isnan, nan
from typing import Any

import numpy as np

from calibrant._base.checks import check_flags, check_number, shown
from calibrant._base.comparison import EFFECTS, PRINTED_EFFECTS, Comparison
from calibrant._base.evaluation import Evaluation
from calibrant._base.measures import (
    MEASURES,
    Measure,
    is_trivial,
    key_of,
    plain,
    score_column,
)
from calibrant._base.measures import columns as columns_of_tables
from calibrant._base.records import Estimate
from calibrant._base.text import printed_gap
from calibrant._verbs.compare import has_ids, knows_kept, same_clusters

MISSING, INFINITE, DAGGER = "–", "∞", "†"


@dataclass(frozen=True, slots=True)
class Heading:
    """A column: its name for programs, its label for people, and a short one."""

    key: str
    label: str
    short: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A number as measured and as printed.

    `interval` is the printed interval, if one was asked for and exists; `low` and `high`
    are its ends as measured. `trivial` marks a calibration error that is as low as the
    best or lower, but of a model with (nearly) one confidence for all rows.
    """

    value: float
    text: str
    interval: str = ""
    low: float = nan
    high: float = nan
    best: bool = False
    trivial: bool = False

    @property
    def mark(self) -> str:
        """The sign after the number."""
        return DAGGER if self.trivial else ""


@dataclass(frozen=True, slots=True)
class Row:
    """A model and its cells, in the order of the headings."""

    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence below the table; a finding is about a model, not about conventions."""

    text: str
    mark: str = ""
    finding: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Headings, rows and notes, and what to call the whole and the column of names.

    `apart` are columns of texts that say what numbers are, for programs, which see no notes.
    """

    headings: tuple[Heading, ...]
    rows: tuple[Row, ...]
    notes: tuple[Note, ...] = ()
    caption: str = ""
    label: str = ""
    intervals: bool = False
    first: str = "Model"
    apart: Mapping[str, Any] = field(default_factory=dict)

    def notes_with(self, best: Note) -> tuple[Note, ...]:
        """The notes, if there are any, after what the mark of the best means."""
        marked = any(cell.best for row in self.rows for cell in row.cells)
        return (*([best] if marked else []), *self.notes) if self.notes else ()


BOLD = Note("Bold: best of its column.")


def fixed(value: float, digits: int, *, signed: bool = False) -> str:
    """A number with fixed digits; no sign on zero, signs for what is no number."""
    if isnan(value):
        return MISSING
    if isinf(value):
        return INFINITE if value > 0 else f"-{INFINITE}"
    text = f"{value:z.{digits}f}"
    return f"+{text}" if signed and float(text) > 0 else text


def lifted(value: Estimate, factor: float = 1.0, digits: int = 4) -> bool:
    """Whether noise lifts a number above its own interval, as printed.

    Examples
    --------
    >>> lifted(Estimate(0.0116, (0.0, 0.0110))), lifted(Estimate(0.01, (0.0, 0.02)))
    (True, False)
    """
    if value.interval is None or not all(map(isfinite, (value, *value.interval))):
        return False
    return round(factor * value, digits) > round(factor * value.interval[1], digits)


def printed(text: str) -> float:
    """The number that a cell shows."""
    words = {MISSING: nan, INFINITE: inf, f"-{INFINITE}": -inf}
    return words[text] if text in words else float(text.replace(",", ""))


# ----------------------------------------------------------------------------
# Numbers become cells: scaled, rounded, and the best of each column marked.


@dataclass(frozen=True, slots=True)
class Style:
    """How numbers are written: x100 or plain, digits, intervals, best marked or not."""

    percent: bool = True
    digits: int = 2
    intervals: bool = False
    best: bool = True

    @property
    def factor(self) -> int:
        """What scores and errors are multiplied by."""
        return 100 if self.percent else 1

    def checked(self) -> Style:
        """Itself, or one clear error."""
        flags = {"intervals": self.intervals, "best": self.best}
        check_flags(percent=self.percent, **flags)
        check_number(self.digits, "digits", 0, 15, kind="a whole number")
        return self


def cells_of(column: Column, comparison: Comparison, style: Style) -> list[Cell]:
    """The cells of one column, marks included."""
    cells = [_cell(column, value, style) for value in column.values(comparison)]
    if column.key == "sharpness_gap":
        cells = [*map(partial(_as_rest, style=style), cells, comparison)]
    if column.measure is None:
        return cells
    trivial = [column.measure.calibration and is_trivial(ev) for ev in comparison]
    for places in alike(comparison, column.key):
        some, flags = [cells[i] for i in places], [trivial[i] for i in places]
        marked = _marked(some, column.measure, flags, style)
        for i, cell in zip(places, marked, strict=True):
            cells[i] = cell
    return cells


def same_examples(comparison: Comparison) -> list[list[int]]:
    """Places of models that were tested on the same examples, as far as is known.

    Pairs without ids know no labels, and sketches no rows: for them it is enough to have
    as many, unless others were left out. Groups of a model have no example in common,
    however many they have.

    Examples
    --------
    >>> import calibrant as cal
    >>> a = cal.evaluate([0, 1, 1], probs=[0.2, 0.6, 0.9], name="a")
    >>> b = cal.evaluate([0, 1, 0], probs=[0.2, 0.6, 0.9], name="b")
    >>> same_examples(cal.Comparison((a, b)))
    [[0], [1]]
    """
    if comparison._each == "group":
        return [[place] for place in range(len(comparison))]
    known = all(
        has_ids(ev) if ev.target == "pairs" else ev.fingerprint for ev in comparison
    )
    told = all(ev.k is not None for ev in comparison)  # else of one it is not known
    found: dict[Any, list[int]] = {}
    for place, ev in enumerate(comparison):
        k = ev.k if told and ev.target != "pairs" else None
        known_of = ev.fingerprint if known or knows_kept(ev) else None
        key = k, ev.n, known_of, _clusters_of(ev, comparison)
        found.setdefault(key, []).append(place)
    return list(found.values())


def _clusters_of(ev: Evaluation, comparison: Comparison) -> Any:
    """Which rows belong together, as far as all of the models know; sketches do not."""
    if all(one.columns is not None for one in comparison):
        return next(i for i, one in enumerate(comparison) if same_clusters(one, ev))
    return ev.n_clusters if all(one.fingerprint for one in comparison) else None


ESTIMATED = ("calibration", "sharpness_gap")
"""Columns that depend on how d_CAL was estimated."""

BINNED = ("ece", "ace", "mce", "top_label_ece")
"""Columns that depend on bins of equal width."""

ESTIMATOR = ("bandwidth", "kernel", "boundary", "estimator", "counterpart")

DEPENDS = {
    **dict.fromkeys(BINNED, ("bins", "closed")),
    **dict.fromkeys(ESTIMATED, ("divergence", *ESTIMATOR)),
    "total": ("divergence",),
    "ece_mass": ("bins",),
    "smooth_ece": ("preset",),
}
"""Settings that the numbers of a column depend on: of others they are different things."""


def kind_of(ev: Evaluation, column: str = "", common: Sequence[str] = ()) -> Any:
    """What the number of a model must share with others to be held against them.

    That is its target, and the settings that the `column` depends on, but for those that
    are `common` to all numbers shown.
    """
    settings = {**ev.settings, "divergence": ev.divergence}
    needed = [name for name in DEPENDS.get(column, ()) if name not in common]
    return ev.target, *(settings.get(name) for name in needed)


def alike(
    comparison: Comparison, column: str = "", common: Sequence[str] = ()
) -> list[list[int]]:
    """Places of models among which there may be a best: same examples, same kind.

    See `kind_of` for what is of one kind in a `column`.

    Examples
    --------
    >>> import calibrant as cal
    >>> rows = {"y": [0, 1, 1], "probs": [0.2, 0.6, 0.9]}
    >>> a, b = (cal.evaluate(**rows, target=x, name=x) for x in ("positive", "top-label"))
    >>> alike(cal.Comparison((a, b)))
    [[0], [1]]
    """
    found: dict[Any, list[int]] = {}
    for examples, places in enumerate(same_examples(comparison)):
        for place in places:
            key = examples, *kind_of(comparison[place], column, common)
            found.setdefault(key, []).append(place)
    return list(found.values())


def is_published(ev: Evaluation) -> bool:
    """Whether a model was evaluated with ``preset="paper"``."""
    return bool(ev.settings.get("preset") == "paper")


def _cell(column: Column, value: Estimate, style: Style) -> Cell:
    low, high = value.interval or (float("nan"), float("nan"))
    interval = ""
    if style.intervals and isfinite(low) and isfinite(high):
        interval = f"[{_text(column, low, style)}, {_text(column, high, style)}]"
    return Cell(float(value), _text(column, value, style), interval, low, high)


def _as_rest(cell: Cell, ev: Evaluation, style: Style) -> Cell:
    """The sharpness gap as what d_CAL leaves of the score, so that rows add up."""
    gap = printed_gap(ev.decomposition, style.digits, style.factor)
    return replace(cell, text=fixed(gap, style.digits))


def _text(column: Column, value: float, style: Style) -> str:
    if column.is_share:
        signed = column.key == "accuracy_change"
        return fixed(style.factor * value, style.digits, signed=signed)
    if column.key == "fit_seconds":
        return fixed(value, 2)
    return f"{value:,.10g}" if isfinite(value) else fixed(value, 0)  # a count of rows


def _marked(
    cells: list[Cell], measure: Measure, trivial: list[bool], style: Style
) -> list[Cell]:
    """Mark what is best as rounded, so that what rounds to the same gets equal marks.

    A trivial model is never best; where it would be, it is marked as trivial instead.
    """
    values = [printed(cell.text) for cell in cells]
    places = [measure.place(x) for x in values]
    known = list(zip(places, values, trivial, strict=True))
    fair = [(place, x) for place, x, flag in known if not flag and place < inf]
    least, lowest = min(fair, default=(inf, inf))
    several = style.best and len(cells) > 1
    return [
        replace(
            cell,
            best=several and not flag and place == least < inf,
            trivial=flag and place <= least and place < inf and value <= lowest,
        )
        for cell, (place, value, flag) in zip(cells, known, strict=True)
    ]


# ----------------------------------------------------------------------------
# Columns of a table: which there are, what they are called, and how they are read.


SETS = ("paper", "study", "effects", "all")


def keys_of(name: str) -> tuple[str, ...]:
    """The columns of a set: the paper's are what print shows, and the parts of the score."""
    if name == "all":
        return (*columns_of_tables(), *EFFECTS)
    parts = ("calibration", "sharpness_gap")
    effects = PRINTED_EFFECTS if name in ("study", "effects") else ()
    shown = [key for key, x in columns_of_tables().items() if x.line and not x.aside]
    paper = [key for key in columns_of_tables() if key in (*shown, *parts)]
    return (*(paper if name != "effects" else ()), *effects)


EFFECT_HEADINGS = {
    "accuracy_change": Heading("accuracy_change", "Accuracy change", "Δ Acc"),
    "changed": Heading("changed", "Predictions changed", "changed"),
    "tied": Heading("tied", "Tied examples", "tied"),
    "impossible": Heading("impossible", "Impossible examples", "impossible"),
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
        keys = _with_score(keys_of(name), comparison)
        found = [_column(key, comparison) for key in keys]
        return [column for column in found if _has_any(column, comparison)]
    if not isinstance(columns, str | list | tuple):
        raise TypeError(f"columns must be a list of names, got {shown(columns)}.")
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    names = tuple(map(_key, names))
    for key in names:
        if key in EFFECTS:
            _check_effects(key, comparison)
    if not names:
        raise ValueError("columns must name at least one column, got none.")
    return [_column(key, comparison) for key in names]


def _with_score(keys: Sequence[str], comparison: Comparison) -> list[str]:
    """Columns with the score of the divergence first, if it is none of them."""
    asked, chosen = score_column(comparison[0]), list(keys)
    if "calibration" in chosen and asked not in chosen:
        chosen.insert(chosen.index("accuracy") + 1, asked)
    return chosen


def _column(key: str, comparison: Comparison) -> Column:
    if key in EFFECT_HEADINGS:
        return Column(EFFECT_HEADINGS[key], None)
    measure, names = MEASURES[key], {ev.divergence for ev in comparison}
    if key == "total" and not names & {"brier", "log"} and len(names) == 1:
        label = f"{measure.label} ({names.pop()})"
        return Column(Heading(key, label, label), measure)
    heading = Heading(key, measure.label, measure.short or measure.label)
    return Column(heading, measure)


def _has_any(column: Column, comparison: Comparison) -> bool:
    return not np.isnan(column.values(comparison)).all()


def _key(name: Any) -> str:
    """The key of a column by that key, or by its heading in any format."""
    effects = {
        plain(word): key
        for key, heading in EFFECT_HEADINGS.items()
        for word in (key, heading.label, heading.short)
    }
    key = None
    if isinstance(name, str):
        key = effects.get(plain(name)) or key_of(name)
    if key is None or key not in keys_of("all"):
        raise ValueError(
            f"columns has no {shown(name)}. Choose from {', '.join(keys_of('all'))}; or one of "
            f"the sets {', '.join(map(repr, SETS))}."
        )
    return key


def _check_effects(asked: str, comparison: Comparison) -> None:
    if not comparison.effects:
        raise ValueError(
            f"columns={asked!r} needs the effects of recalibration, which only a study "
            "knows; these models were evaluated by themselves."
        )
