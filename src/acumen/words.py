"""Evaluations and comparisons in words: plain text for print and the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from math import isfinite, isinf, isnan
from typing import Any

from acumen.comparison import Comparison, is_trivial
from acumen.results import Decomposition, Estimate, Evaluation
from acumen.table import Note, make_table
from acumen.table.cells import DAGGER, INFINITE, MISSING, one_line
from acumen.table.footnotes import names
from acumen.table.numbers import Style
from acumen.table.text import in_ascii, note_lines, write_text

FAR_OFF = 0.03
"""From here on a mean confidence is worth a remark."""

FEW_VALUES = 40
FEW_ROWS = 1000

LABELS = {
    "accuracy": "accuracy",
    "ece": "ECE",
    "ace": "ACE (average)",
    "smooth_ece": "SmoothECE",
    "nll": "NLL",
    "brier": "Brier",
}
TARGETS = {
    "top-label": "is the predicted class as likely as claimed?",
    "positive": "is the positive class as likely as forecast?",
    "class-wise": "is every class as likely as forecast?",
    "pairs": "is an answer right as often as its confidence says?",
}


def describe(ev: Evaluation) -> str:
    """The whole evaluation as a few lines of text."""
    classes = "" if ev.target == "pairs" else f", {ev.k} classes"
    lines = [
        f"{ev.name}: {ev.n:,.10g} rows{classes}",
        f"target: {ev.target} ({TARGETS[ev.target]})",
        "",
        *_decomposition_lines(ev),
        "",
        *_metric_lines(ev),
    ]
    notes = _notes(ev)
    if notes:
        lines += ["", *notes]
    return "\n".join(lines)


def describe_comparison(comparison: Comparison, *, unicode: bool | None = None) -> str:
    """How it was made, the table, and what stands out, as text.

    Without `unicode` said, it keeps to signs that standard output can show.
    """
    if unicode is None:
        unicode = can_show(sys.stdout, INFINITE + DAGGER + MISSING)
    # What recalibration did to predictions is said by its own table.
    scores = make_table(Comparison(comparison.evaluations), Style())
    parts = [head_lines(comparison), [write_text(scores, unicode=unicode)]]
    if comparison.effects:
        effects = make_table(
            comparison, Style(), columns="effects", caption="What recalibration did:"
        )
        parts.append([write_text(effects, unicode=unicode)])
    parts.append(note_lines(remarks(comparison)))
    text = "\n\n".join("\n".join(lines) for lines in parts if lines)
    return text if unicode else in_ascii(text)


def head_lines(comparison: Comparison) -> list[str]:
    """How many models and rows, the question asked, and the protocol."""
    first, count = comparison[0], len(comparison)
    classes = "" if first.target == "pairs" else f", {first.k:,} classes"
    lines = [
        f"{count} model{'' if count == 1 else 's'}, {first.n:,.10g} rows{classes}",
        f"target: {first.target} ({TARGETS[first.target]})",
    ]
    if comparison.protocol:
        lines.append(f"protocol: {one_line(comparison.protocol)}")
    return lines


def remarks(comparison: Comparison) -> list[Note]:
    """What stands out beside the numbers of the table."""
    return [Note(text, finding=True) for text in _remarks(comparison)]


def _remarks(comparison: Comparison) -> Iterator[str]:
    for word, sign in (("Over", 1), ("Under", -1)):
        gaps = {
            ev.name: sign * ev.metrics.get("confidence_gap", 0) for ev in comparison
        }
        far = [f"{n} ({100 * x:.1f} points)" for n, x in gaps.items() if x >= FAR_OFF]
        if far:
            yield f"{word}-confident on average: {names(far)}."
    few = [f"{ev.name} ({ev.distinct})" for ev in comparison if _has_few_values(ev)]
    if few:
        yield f"Few distinct confidences: {names(few)}."
    if comparison[0].rows < FEW_ROWS:
        yield f"Fewer than {FEW_ROWS:,} rows: small differences may be chance."
    for name, effect in comparison.effects.items():
        yield from (f"{name}: {note}" for note in effect.notes)


def _has_few_values(ev: Evaluation) -> bool:
    return ev.distinct <= FEW_VALUES and not is_trivial(ev)


def can_show(stream: Any, signs: str) -> bool:
    """Whether a stream's encoding has these signs; text in memory has all."""
    try:
        signs.encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def in_one_line(ev: Evaluation) -> str:
    """Name, size and headline."""
    parts = ev.decomposition
    return (
        f"Evaluation({ev.name!r}, {ev.n:,.10g} rows, {ev.target}, {ev.divergence} "
        f"{number(parts.total)} = {number(parts.calibration)} + "
        f"{number(parts.sharpness_gap)})"
    )


def number(value: float, digits: int = 4) -> str:
    """A number as text: fixed digits, a sign only if negative, words for the rest.

    Examples
    --------
    >>> number(0.12345), number(float("inf")), number(float("nan"))
    ('0.1235', 'inf', 'n/a')
    """
    if isnan(value):
        return "n/a"
    if isinf(value):
        return "inf" if value > 0 else "-inf"
    return f"{value:.{digits}f}"


def with_interval(value: Estimate, digits: int = 4) -> str:
    """A number with its interval, if it has a finite one."""
    text = number(value, digits)
    if value.interval is None or not all(isfinite(end) for end in value.interval):
        return text
    low, high = (number(end, digits) for end in value.interval)
    return f"{text} [{low}, {high}]"


def _decomposition_lines(ev: Evaluation) -> list[str]:
    head = "proper score = calibration error + sharpness gap"
    if any(parts.calibration.interval for parts in ev.decompositions.values()):
        head += f"  [{100 * float(ev.settings['level']):g}% interval]"
    ordered = sorted(ev.decompositions, key=lambda name: name != ev.divergence)
    width = max(len(name) for name in ordered)
    lines = [f"  {name:<{width}}  {_sum(ev.decompositions[name])}" for name in ordered]
    if ev.decomposition.bandwidth != ev.paper.bandwidth:
        lines.append(
            f"  {ev.divergence} as published, at the fixed bandwidth "
            f"{ev.paper.bandwidth:g}: {_sum(ev.paper)}"
        )
    return [head, *lines]


def _sum(parts: Decomposition) -> str:
    return (
        f"{number(parts.total)} = {with_interval(parts.calibration)} + "
        f"{number(parts.sharpness_gap)}"
    )


def _metric_lines(ev: Evaluation) -> list[str]:
    labels = {**LABELS, "ece": f"ECE ({ev.settings['bins']} bins)"}
    if ev.target == "pairs":
        labels["accuracy"] = "share correct"
    cells = [
        (label, with_interval(ev.metrics[name]))
        for name, label in labels.items()
        if name in ev.metrics
    ]
    width = max(len(label) for label, _ in cells)
    return [f"  {label:<{width}}  {value}" for label, value in cells]


def _notes(ev: Evaluation) -> list[str]:
    """What a reader should know before quoting a number."""
    notes = [_direction(ev)]
    values = [float(parts.calibration) for parts in ev.decompositions.values()]
    if min(values) < 0:
        notes.append(
            "a calibration error below 0 means that none was found; intervals end at 0."
        )
    if ev.infinite_rows:
        notes.append(
            f"log loss is infinite: {ev.infinite_rows:,.10g} rows gave their true class "
            "probability 0."
        )
    if ev.distinct == 1 and ev.n > 1:
        notes.append(
            "the confidence is the same in every row: such a model is calibrated by "
            "matching one number, and says nothing about single rows."
        )
    if isnan(ev.decompositions["log"].calibration):
        notes.append("the log calibration error needs at least 50 rows.")
    if ev.per_class:
        notes.append(
            "scores are summed over the classes, each against the rest; one evaluation "
            "per class is in per_class."
        )
    return [note for note in notes if note]


def _direction(ev: Evaluation) -> str:
    """Too sure or not sure enough; for a positive class, too high or too low."""
    gap = ev.metrics.get("confidence_gap", 0.0)
    if abs(gap) < 0.005:
        return ""
    if ev.target == "positive":
        return (
            f"forecasts are too {'high' if gap > 0 else 'low'}: their mean is "
            f"{abs(gap):.3f} {'above' if gap > 0 else 'below'} the share of events."
        )
    return (
        f"{'over' if gap > 0 else 'under'}-confident: mean confidence is {abs(gap):.3f} "
        f"{'above' if gap > 0 else 'below'} the share of hits."
    )
