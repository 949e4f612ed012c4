"""Tables of models: one set of cells, written as text, Markdown, LaTeX, HTML or CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import isfinite, isinf
from typing import Any

from calibrant._base.checks import check_choice, check_flags, check_kind, check_texts
from calibrant._base.comparison import Comparison, as_comparison, as_shown
from calibrant._base.evaluation import Evaluation, targets_apart
from calibrant._base.measures import (
    HEADLINE,
    MEASURES,
    is_mirrored,
    is_trivial,
    positive_class,
    sample_size,
    some_of,
)
from calibrant._base.records import FORECASTS, Estimate
from calibrant._stats.closed_forms import ONE_SIDED
from calibrant._stats.metrics import METRICS
from calibrant._verbs.compare import sameness
from calibrant.table._html import write_html
from calibrant.table._latex import write_latex
from calibrant.table._layout import (
    BINNED,
    DAGGER,
    Note,
    Row,
    Style,
    Table,
    alike,
    cells_of,
    choose,
    fixed,
    is_published,
    lifted,
    same_examples,
)
from calibrant.table._text import write_csv, write_frame, write_markdown, write_text

FORMATS: dict[str, Callable[[Table], Any]] = {
    "text": write_text,
    "markdown": write_markdown,
    "latex": write_latex,
    "html": write_html,
    "csv": write_csv,
    "frame": write_frame,
}


DATA = ("csv", "frame")
"""Formats to read again, which hold names as they are."""


def table(
    models: Any,
    format: str = "text",  # noqa: A002
    *,
    columns: str | Sequence[str] | None = None,
    percent: bool = True,
    digits: int = 2,
    intervals: bool = False,
    best: bool = True,
    footnotes: bool = True,
    caption: str | None = None,
    label: str | None = None,
) -> Any:
    r"""Write models and their numbers as a table.

    The best of each column is bold (in text, starred), and so is what rounds to the same;
    it is the best among models of one target that were tested on the same examples, with
    the settings that the column depends on. Calibration errors below 0 count as 0. A
    model with (nearly) one confidence for all rows is never the best in a calibration
    column: where its error is the lowest, a dagger says that this is trivial.

    Parameters
    ----------
    models : Comparison, Evaluation, list of Evaluation, or dict of any of them
        What to show, one row each. A dict names them: of several studies,
        ``{"A": study_a, "B": study_b}`` has rows such as "A: Temperature".
    format : {"text", "markdown", "latex", "html", "csv", "frame"}
        LaTeX needs the package booktabs. CSV and frame hold the numbers as measured,
        whatever `percent` and `digits` say, and a column `target` where some model is
        class-wise, as there are no notes to say so.
    columns : str or sequence of str, optional
        Names of columns, or a set: ``"paper"`` (the default: the paper's columns, d_CAL
        and sharpness gap), ``"study"`` (with what recalibration did), ``"effects"``
        (that alone) or ``"all"``.
    percent : bool
        Whether shares, errors and scores are written x100.
    digits : int
        Digits after the point.
    intervals : bool
        Whether intervals are shown, where there are any.
    best, footnotes : bool
        Whether to mark the best, and whether to say below what to watch out for.
    caption, label : str, optional
        Title of the table, and its name: for ``\ref`` in LaTeX, the id in HTML.

    Returns
    -------
    str or frame
        The table. A frame is one of Polars or pandas, or a dict of arrays.

    Examples
    --------
    >>> import calibrant as cal
    >>> from calibrant.table import table
    >>> careful = cal.evaluate_pairs([1, 1, 0, 1], [0.9, 0.8, 0.3, 0.8], name="careful")
    >>> bold = cal.evaluate_pairs([1, 1, 0, 1], [0.9, 0.9, 0.8, 0.9], name="bold")
    >>> names = ["accuracy", "ece", "brier"]
    >>> print(table([careful, bold], columns=names, footnotes=False))
    Model      Acc     ECE   Brier
    -------------------------------
    careful  75.00*  20.00*   4.50*
    bold     75.00*  27.50   16.75
    """
    check_choice(format, "format", tuple(FORMATS))
    style = Style(percent, digits, intervals, best)
    check_texts(caption=caption, label=label)
    words = {"caption": caption or "", "label": label or ""}
    made = make_table(models, style, columns=columns, footnotes=footnotes, **words)
    if format in DATA:
        rows = zip(made.rows, as_comparison(models).names, strict=True)
        made = replace(made, rows=tuple(replace(row, name=name) for row, name in rows))
    return FORMATS[format](made)


def make_table(
    models: Any,
    style: Style,
    *,
    columns: str | Sequence[str] | None = None,
    footnotes: bool = True,
    caption: str = "",
    label: str = "",
) -> Table:
    """The cells that every format writes."""
    check_kind(style, Style, "style")
    check_texts(caption=caption, label=label)
    check_flags(footnotes=footnotes)
    comparison, style = as_shown(models), style.checked()
    shown = shown_of(comparison, style, columns)
    notes = notes_of(shown) if footnotes else ()
    headings = tuple(column.heading for column in choose(columns, comparison))
    about = style.intervals, comparison._each.capitalize(), targets_apart(comparison)
    return Table(headings, shown.rows, notes, caption, label, *about)


def shown_of(
    comparison: Comparison, style: Style, columns: str | Sequence[str] | None
) -> Shown:
    """The cells of a table, beside what they are about."""
    chosen = choose(columns, comparison)
    by_column = [cells_of(column, comparison, style) for column in chosen]
    rows = tuple(map(Row, comparison.names, zip(*by_column, strict=True)))
    return Shown(comparison, tuple(column.key for column in chosen), rows, style)


# -- footnotes: what a reader must know before quoting a number of the table -----------

SHOWN_NAMES = 5

BRIER_RANGES = {
    "top-label": "summed over the classes: 0 to {}",
    "class-wise": "summed over the classes: 0 to {}",
    "positive": "of {1} alone: 0 to {0}",
    "multi-label": "averaged over the labels: 0 to {}",
    "pairs": "computed from the confidence only: 0 to {}",
}

EFFECT_WORDS = {
    "changed": "changed (another class is predicted than before)",
    "tied": "tied (several classes share the largest probability)",
    "impossible": "impossible ({})",
}


PART_WORDS = {
    "total": "d_TOT",
    "calibration": "d_CAL",
    "sharpness_gap": "sharpness gap",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """What the notes are about: the models, the columns by name, and the cells."""

    comparison: Comparison
    keys: tuple[str, ...]
    rows: tuple[Row, ...]
    style: Style

    @property
    def each(self) -> str:
        """What a row is: a model, or a group."""
        return self.comparison._each

    def some(self, *keys: str) -> bool:
        """Whether any of these columns is shown."""
        return any(key in self.keys for key in keys)

    def texts(self, key: str) -> list[str]:
        """The cells of one column, as printed; none if it is not shown."""
        if key not in self.keys:
            return []
        return [row.cells[self.keys.index(key)].text for row in self.rows]


def notes_of(shown: Shown) -> tuple[Note, ...]:
    """Findings first, one note each; conventions after, in one note."""
    findings = [note for find in FINDINGS for note in find(shown)]
    conventions = told_by(CONVENTIONS, shown)
    return (*findings, *([Note(conventions)] if conventions else []))


def told_by(those: Iterable[Callable[[Shown], Iterator[str]]], shown: Shown) -> str:
    """What some conventions say, as one text."""
    return " ".join(text for tell in those for text in tell(shown))


def names(given: Sequence[str]) -> str:
    """Names in a sentence.

    Examples
    --------
    >>> names(["HB"]), names(["HB", "IR", "MRR"])
    ('HB', 'HB, IR and MRR')
    >>> names(list("abcdefg"))
    'a, b, c, d, e and 2 others'
    """
    kept, rest = list(given[:SHOWN_NAMES]), len(given) - SHOWN_NAMES
    if rest > 0:
        kept.append(f"{rest} other{'s' if rest > 1 else ''}")
    if len(kept) == 1:
        return kept[0]
    return f"{', '.join(kept[:-1])} and {kept[-1]}"


def by_model(
    comparison: Comparison, said: Callable[[Evaluation], str]
) -> dict[str, list[str]]:
    """What is said of models, and of which."""
    found: dict[str, list[str]] = {}
    for ev in comparison:
        found.setdefault(said(ev), []).append(ev.name)
    return found


def apart(found: dict[str, list[str]]) -> str:
    """What is said of which models, where they differ."""
    told = "; ".join(f"of {names(who)} {said}" for said, who in found.items())
    return f", and cannot be compared: {told}"


def in_brackets(found: dict[str, list[str]]) -> str:
    """What is said, with the models in brackets where they differ.

    Examples
    --------
    >>> in_brackets({"95%": ["a"]}), in_brackets({"95%": ["a"], "90%": ["b"]})
    ('95%', '95% (a) and 90% (b)')
    """
    if len(found) == 1:
        return next(iter(found))
    return names([f"{said} ({names(who)})" for said, who in found.items()])


def rows(weight: float) -> str:
    """A number of examples, in words."""
    return f"{weight:,.10g} example{'' if weight == 1 else 's'}"


def _trivial(shown: Shown) -> Iterator[Note]:
    found = [ev for ev in shown.comparison if is_trivial(ev)]
    measures = [MEASURES[key] for key in shown.keys if key in MEASURES]
    if not found or not any(measure.calibration for measure in measures):
        return
    marked = any(cell.trivial for row in shown.rows for cell in row.cells)
    told = "lower, but meaningless: " if marked else ""
    same, known = sameness(found[0]), "cannot tell one example from another"
    if any(map(is_mirrored, found)):
        same = sameness(next(filter(is_mirrored, found)))
        known = "knows no more than which class is likelier"
    if len(found) > 1:
        same = same.replace("gives", "give").replace("it predicts", "they predict")
    yield Note(
        f"{told}{names([ev.name for ev in found])} {same}. A constant needs only the right "
        f"average to be calibrated. It {known} and is never best in a calibration column.",
        DAGGER if marked else "",
        finding=True,
    )


def _infinite(shown: Shown) -> Iterator[Note]:
    log = shown.comparison[0].divergence == "log" and shown.some(*HEADLINE)
    if not (shown.some("nll") or log):
        return
    found = [ev for ev in shown.comparison if isinf(ev.metrics.get("nll", 0.0))]
    why: dict[str, list[str]] = {}
    for ev in found:
        lost = f"{ev.name} ({some_of(ev, ev.infinite_rows)})"
        why.setdefault(_impossible(ev), []).append(lost)
    for what, who in why.items():
        yield Note(f"NLL is infinite where {what}: {names(who)}.", finding=True)


def _impossible(ev: Evaluation) -> str:
    """What makes the log loss infinite."""
    if ev.target == "pairs":
        return "an answer of confidence 1 was wrong, or one of confidence 0 correct"
    return "a true class was given probability 0"


def _accuracy(shown: Shown) -> Iterator[Note]:
    if shown.some("accuracy_change", "changed"):
        return
    style, found = shown.style, []
    for name, effect in shown.comparison.effects.items():
        if effect.changed > 0:
            size = style.factor * effect.accuracy_change
            change = fixed(size, style.digits, signed=True) if size else "the same"
            found.append(f"{name} ({rows(effect.changed)}; accuracy {change})")
    if found:
        told = names(found)
        yield Note(f"Recalibration changed predictions: {told}.", finding=True)


def _tied(shown: Shown) -> Iterator[Note]:
    effects = shown.comparison.effects
    found = [
        f"{name} ({rows(effect.tied)})"
        for name, effect in effects.items()
        if effect.tied > 0
    ]
    if found and not shown.some("tied"):
        yield Note(
            "Several classes share the largest probability, so that the order of the "
            f"columns decides: {names(found)}.",
            finding=True,
        )


def _unlike(shown: Shown) -> Iterator[Note]:
    for tell in (_targets, _sizes, _divergences):
        yield from (Note(text, finding=True) for text in tell(shown))


def _differing(shown: Shown, what: str, word: str) -> str:
    """In what models differ, and which has which; empty if they do not."""
    values: dict[Any, list[str]] = {}
    for ev in shown.comparison:
        values.setdefault(getattr(ev, what), []).append(ev.name)
    told = [
        f"{names(who)} ({f'{value:,.10g}' if what == 'n' else value})"
        for value, who in values.items()
    ]
    return f"The {shown.each}s differ in {word}: {names(told)}." if told[1:] else ""


def _sizes(shown: Shown) -> Iterator[str]:
    if text := _differing(shown, "n", "number of examples"):
        yield text


def _targets(shown: Shown) -> Iterator[str]:
    """That targets differ, among which there is no best."""
    sets, whole = alike(shown.comparison), same_examples(shown.comparison)
    if text := _differing(shown, "target", "target"):
        yield text + _unmarked(shown, sets, whole, "target", "best")


def _divergences(shown: Shown) -> Iterator[str]:
    """That divergences differ, among which there is no best part of the score."""
    sets, whole = alike(shown.comparison, "total"), alike(shown.comparison)
    parts = [PART_WORDS[key] for key in shown.keys if key in PART_WORDS]
    what = f"best {names(parts)}" if parts else ""
    if text := _differing(shown, "divergence", "divergence"):
        yield text + _unmarked(shown, sets, whole, "divergence", what)


def _unmarked(
    shown: Shown, sets: list[list[int]], whole: list[list[int]], of: str, what: str
) -> str:
    """That no best is marked, if that is because of what models differ in."""
    if not (shown.style.best and what) or len(sets) == len(whole):
        return ""
    if max(map(len, sets)) > 1:
        return f" The {what} is marked among {shown.each}s of the same {of}."
    return f" No {what} is marked."


def _examples(shown: Shown) -> Iterator[Note]:
    sets = same_examples(shown.comparison)
    if len(sets) > 1 and shown.style.best:
        some = f"the best is marked among {shown.each}s of the same examples"
        told = some if max(map(len, sets)) > 1 else "no best is marked"
        text = f"The {shown.each}s were tested on different examples: {told}."
        yield Note(text, finding=True)


FINDINGS = (_trivial, _infinite, _accuracy, _tied, _unlike, _examples)


def _size(shown: Shown) -> Iterator[str]:
    """Where weights or clusters leave less to learn from than there seems to be."""
    sizes = list(dict.fromkeys(sample_size(ev) for ev in shown.comparison))
    if not all(size.endswith(("example", "examples")) for size in sizes):
        yield f"Evaluated on {names(sizes)}."


def _scale(shown: Shown) -> Iterator[str]:
    if shown.style.percent and any(key in MEASURES for key in shown.keys):
        yield "Numbers are ×100."
    elif shown.style.percent and shown.some("accuracy_change"):
        yield "The change of accuracy is ×100."


def _parts(shown: Shown) -> Iterator[str]:
    if not shown.some("calibration", "sharpness_gap"):
        return
    scores = by_model(shown.comparison, lambda ev: total_label(ev, ev.divergence))
    score = in_brackets(scores)
    sum_ = f"d_CAL (calibration error) + sharpness gap = {score}, up to rounding"
    yield sum_ + estimators_in_words(shown.comparison)
    if shown.style.intervals and any(map(is_published, shown.comparison)):
        yield "As published d_CAL has no interval; evaluate without preset= for one."
    if any(text.startswith("-") for text in shown.texts("calibration")):
        yield "d_CAL below 0 means that no calibration error was found."
    if any(text.startswith("-") for text in shown.texts("sharpness_gap")):
        yield f"A {GAP_BELOW_0}"


def total_label(ev: Evaluation, divergence: str) -> str:
    """What the sum of d_CAL and sharpness gap is called."""
    known = {"brier": "Brier", "log": "d_TOT" if ev.per_class else "NLL"}
    return known.get(divergence, f"d_TOT ({divergence})")


def estimators_in_words(comparison: Comparison) -> str:
    """How d_CAL was estimated, to go on with after its sum."""
    found = by_model(comparison, lambda ev: f"it is {estimator_in_words(ev)}")
    if len(found) == 1:
        return f"; d_CAL {next(iter(found)).removeprefix('it ')}."
    return f". d_CAL is not estimated alike{apart(found)}."


def variants_in_words(comparison: Comparison) -> str:
    """How d_CAL differs at one bandwidth and with one kernel; empty if it does not."""
    found = by_model(comparison, lambda ev: f"it is {_estimator(ev)}{_changed(ev)}")
    return f" It is not estimated alike{apart(found)}." if len(found) > 1 else ""


GAP_BELOW_0 = (
    "sharpness gap below 0 cannot be: the calibration error is estimated too high, above the "
    "whole score."
)

ADAPTIVE = "the debiased adaptive estimate"


def estimator_in_words(ev: Evaluation) -> str:
    """How d_CAL of a model was estimated."""
    parts, how = ev.decomposition, ADAPTIVE
    if parts.bandwidth is not None:
        how = f"the {_estimator(ev)} {parts.kernel} kernel estimate"
        how += f" of bandwidth {parts.bandwidth:g}"
    return how + _changed(ev)


def _estimator(ev: Evaluation) -> str:
    return "plug-in" if ev.settings.get("estimator") == "plugin" else "direct"


def _changed(ev: Evaluation) -> str:
    """What else becomes of an estimate of d_CAL."""
    reflected = ev.settings.get("boundary") == "reflect"
    tight = ev.settings.get("counterpart") == "tight"
    return (
        f"{', reflected at 0 and 1' * reflected}"
        f"{', times k / (k - 1) (tight counterpart)' * tight}"
    )


ROOT_MEAN_SQUARE = "is a root mean square over bins of equal mass, so it can exceed ECE, which is a mean"


def _count(ev: Evaluation) -> str:
    bins = ev.settings["bins"]
    return f"{bins} bin{'' if bins == 1 else 's'}"


def _of_equal_width(ev: Evaluation, *, ends: bool) -> str:
    """The bins of a model, and if asked for which of their ends belong to them."""
    closed = f" (closed on the {ev.settings.get('closed')})" if ends else ""
    return f"{_count(ev)} of equal width{closed}"


def _binned(
    shown: Shown, keys: Sequence[str], bins: dict[str, list[str]]
) -> Iterator[str]:
    """Which bins some columns use, if they are shown."""
    labels = [MEASURES[key].label for key in keys if key in shown.keys]
    use, do = ("uses", "does") if len(labels) == 1 else ("use", "do")
    if labels and len(bins) == 1:
        yield f"{names(labels)} {use} {next(iter(bins))}."
    elif labels:
        yield f"{names(labels)} {do} not use the same bins{apart(bins)}."


def _bins(shown: Shown) -> Iterator[str]:
    models = shown.comparison
    ends = len({ev.settings.get("closed") for ev in models}) > 1
    width = by_model(models, lambda ev: _of_equal_width(ev, ends=ends))
    yield from _binned(shown, BINNED, width)
    yield from _binned(shown, ("ece_mass",), by_model(models, _count))
    if shown.some("ece_debiased"):
        yield f"{MEASURES['ece_debiased'].label} {ROOT_MEAN_SQUARE}."
    if shown.some("ace"):
        yield "ACE is the average, not the adaptive, calibration error."
    published = [ev.name for ev in shown.comparison if is_published(ev)]
    if shown.some("smooth_ece") and published:
        if len(published) == len(shown.rows):
            yield "SmoothECE is computed as relplot does: another number than without the preset."
        else:
            yield (
                f"SmoothECE of {names(published)} is computed as relplot does, and cannot be "
                "compared with the others."
            )


OVER_CLASSES = {
    "mean": "averaged over the classes",
    "max": "the largest of any class",
    "sum": "summed",
}


def _classes(shown: Shown) -> Iterator[str]:
    """What class-wise numbers are, which have the names of others."""
    found = [ev.name for ev in shown.comparison if ev.target == "class-wise"]
    labels: dict[str, list[str]] = {}
    for key in shown.keys if found else ():
        how = METRICS[key].per_class if key in METRICS else ""
        how = "sum" if key in PART_WORDS else how
        if how in OVER_CLASSES:
            label = PART_WORDS.get(key) or MEASURES[key].label
            labels.setdefault(how, []).append(label)
    if labels:
        who = f" of {names(found)}" if len(found) < len(shown.comparison) else ""
        told = [
            f"{names(some)} {'is' if len(some) == 1 else 'are'} {OVER_CLASSES[how]}"
            for how, some in labels.items()
        ]
        lead = f"The target{who} is class-wise, each class against the rest"
        yield f"{lead}: {'; '.join(told)}."


def _brier(shown: Shown) -> Iterator[str]:
    if shown.some("brier"):
        found = by_model(shown.comparison, lambda ev: _range(ev, shown.style.factor))
        for text, who in found.items():
            yield f"Brier{f' of {names(who)}' if len(found) > 1 else ''} is {text}."


def _range(ev: Evaluation, factor: float) -> str:
    most = 1 if ev.target in (*FORECASTS, "pairs") else 2
    said = BRIER_RANGES.get(ev.target, BRIER_RANGES["top-label"])
    return said.format(most * factor, positive_class(ev))


def _effects(shown: Shown) -> Iterator[str]:
    why = _impossible(shown.comparison[0])
    told = [x.format(why) for key, x in EFFECT_WORDS.items() if key in shown.keys]
    if told:
        yield f"Counted in examples: {names(told)}."


def _intervals(shown: Shown) -> Iterator[str]:
    if not shown.style.intervals:
        return
    named = [
        (MEASURES[key].label, MEASURES[key].of(ev))
        for key in shown.keys
        if key in MEASURES
        for ev in shown.comparison
    ]
    what, told = intervals_in_words(shown.comparison), methods_of(named)
    yield (
        f"In brackets: {what}: {told}." if told else "No column shown has an interval."
    )


def intervals_in_words(comparison: Comparison) -> str:
    """What intervals these are, by model where they differ."""
    levels = levels_in_words(comparison)
    return f"intervals of {levels}" if " " in levels else f"{levels} intervals"


def levels_in_words(comparison: Comparison) -> str:
    """Coverage of the intervals, by model where it differs."""
    found = by_model(comparison, lambda ev: f"{100 * float(ev.settings['level']):g}%")
    return in_brackets(found)


def _lifted(shown: Shown) -> Iterator[str]:
    """Why a number lies above its own interval, where one does."""
    style = shown.style
    if not style.intervals:
        return
    known = [MEASURES[key] for key in shown.keys if key in MEASURES]
    above = {
        measure.key: [ev for ev in shown.comparison if _lifts(measure.of(ev), style)]
        for measure in known
    }
    labels = [MEASURES[key].label for key, evs in above.items() if evs]
    if not labels:
        return
    is_, its = (
        ("is", "its interval") if len(labels) == 1 else ("are", "their intervals")
    )
    yield (
        f"{names(labels)} {is_} biased up by noise, so the plain value can lie above "
        f"{its}, where noise is taken out."
    )
    debiased, told = MEASURES["ece_debiased"], []
    for ev in above.get("ece", ()) if "ece_debiased" not in shown.keys else ():
        value = fixed(style.factor * debiased.of(ev), style.digits)
        told.append(f"{value} ({ev.name})" if len(shown.comparison) > 1 else value)
    if told:
        yield f"Debiased ECE (root mean square): {names(told)}."


def _lifts(value: Estimate, style: Style) -> bool:
    return lifted(value, style.factor, style.digits)


def methods_of(named: Iterable[tuple[str, Estimate]]) -> str:
    """How the intervals of these numbers were found; nothing if there are none.

    Examples
    --------
    >>> d = Estimate(0.1, (0.05, 0.2), "score")
    >>> methods_of([("ECE", Estimate(0.1)), ("d_CAL", d), ("MCB", d)])
    'score (d_CAL, MCB)'
    >>> methods_of([("MCB", d), ("MCB", Estimate(0.1, (0.0, 0.2), "one-sided score"))])
    'score, one-sided where it begins at 0 (MCB)'
    """
    methods: dict[str, list[str]] = {}
    for name, value in named:
        if value.interval is not None and all(isfinite(end) for end in value.interval):
            told = methods.setdefault(value.method or "unnamed", [])
            told += [] if name in told else [name]
    for method in [x for x in methods if x.startswith(ONE_SIDED)]:
        both = method.removeprefix(ONE_SIDED)
        if {*methods[method]} & {*methods.get(both, ())}:
            told = list(dict.fromkeys(methods.pop(both) + methods.pop(method)))
            methods[f"{both}, one-sided where it begins at 0"] = told
    return "; ".join(
        f"{method} ({', '.join(told)})" for method, told in methods.items()
    )


STEADY = (_scale, _classes, _bins, _brier, _lifted, _size)
"""Conventions that hold whatever the bandwidth is."""

PARTS = (_divergences, _parts)
"""What the parts of the score are; it depends on the bandwidth."""

CONVENTIONS = (
    _scale,
    _classes,
    _bins,
    _brier,
    _parts,
    _effects,
    _intervals,
    _lifted,
    _size,
)
