"""Evaluations and comparisons in words: plain text for print and the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from math import isfinite, isinf, isnan
from typing import Any

from acumen.comparison import Comparison
from acumen.findings import Finding
from acumen.results import Decomposition, Estimate, Evaluation
from acumen.table import Note, make_table
from acumen.table.cells import DAGGER, INFINITE, MISSING, one_line
from acumen.table.footnotes import methods_of, names
from acumen.table.numbers import Style
from acumen.table.text import in_ascii, note_lines, write_text

FAR_OFF = 0.03
"""From here on a mean confidence is worth a remark."""

DIRECTIONS = {
    True: ("Forecasts too low", "Forecasts too high"),
    False: ("Under-confident", "Over-confident"),
}
"""By whether one class is forecast: the mean below and above what came true."""

SHOWN_BY_TABLES = ("trivial-confidence", "infinite-loss", "accuracy-changed")
"""Findings that the tables of a comparison tell themselves, by mark, note or column."""

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
        lines += ["", *note_lines([Note(text) for text in notes])]
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
    """What stands out beside the tables: mean confidence, the audit, notes of fits."""
    return [Note(text, finding=True) for text in _remarks(comparison)]


def _remarks(comparison: Comparison) -> Iterator[str]:
    yield from directions(comparison)
    for finding in comparison.audit():
        if finding.code not in SHOWN_BY_TABLES:
            yield in_brief(finding)
    for name, effect in comparison.effects.items():
        yield from (f"{name}: {note}" for note in effect.notes)


def directions(comparison: Comparison) -> list[str]:
    """Which models are far too sure, or not sure enough, and by how much."""
    far: dict[str, list[str]] = {}
    for ev in comparison:
        if word := direction(ev):
            points = 100 * abs(ev.metrics["confidence_gap"])
            far.setdefault(word, []).append(f"{ev.name} ({points:.1f} points)")
    return [f"{word} on average: {names(models)}." for word, models in far.items()]


def direction(ev: Evaluation) -> str:
    """Which way the mean confidence is off, if it is far off.

    Examples
    --------
    >>> import acumen as ac
    >>> direction(ac.evaluate_pairs([1, 0], [0.9, 0.9]))
    'Over-confident'
    >>> direction(ac.evaluate([1, 0], probs=[0.9, 0.9], target="positive"))
    'Forecasts too high'
    """
    gap = ev.metrics.get("confidence_gap", 0.0)
    if abs(gap) < FAR_OFF:
        return ""
    return DIRECTIONS[ev.target == "positive"][gap > 0]


def in_brief(finding: Finding) -> str:
    """What was found, and its code."""
    return f"{finding.text} [{finding.code}]"


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
    """A number as text: fixed digits, a sign only if one shows, words for the rest.

    Examples
    --------
    >>> number(0.12345), number(-1e-9), number(float("inf")), number(float("nan"))
    ('0.1235', '0.0000', 'inf', 'n/a')
    """
    if isnan(value):
        return "n/a"
    if isinf(value):
        return "inf" if value > 0 else "-inf"
    return f"{round(value, digits) + 0.0:.{digits}f}"


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


def _labels(ev: Evaluation, **words: str) -> dict[str, str]:
    """What the metrics that are shown are called, of those there are."""
    if ev.target == "pairs":
        words["accuracy"] = "share correct"
    return {key: word for key, word in (LABELS | words).items() if key in ev.metrics}


def _metric_lines(ev: Evaluation) -> list[str]:
    labels = _labels(ev, ece=f"ECE ({ev.settings['bins']} bins)")
    width = max(map(len, labels.values()))
    return [
        f"  {label:<{width}}  {with_interval(ev.metrics[key])}"
        for key, label in labels.items()
    ]


def _methods(ev: Evaluation) -> str:
    """How the intervals that are shown were found."""
    parts = sorted(ev.decompositions.items(), key=lambda x: x[0] != ev.divergence)
    errors = [(f"{name} d_CAL", x.calibration) for name, x in parts]
    others = [(label, ev.metrics[key]) for key, label in _labels(ev, ace="ACE").items()]
    told = methods_of([*errors, *others])
    return f"intervals: {told}." if told else ""


def _notes(ev: Evaluation) -> list[str]:
    """What a reader should know before quoting a number."""
    notes = [_direction(ev)]
    values = [float(parts.calibration) for parts in ev.decompositions.values()]
    if round(min(values), 4) < 0:
        notes.append(
            "a calibration error below 0 means that none was found; intervals begin at 0."
        )
    log = ev.decompositions.get("log")
    if log is not None and isnan(log.calibration):
        notes.append("the log calibration error needs at least 50 rows.")
    if ev.per_class:
        notes.append(
            "scores are summed over the classes, each against the rest; one evaluation "
            "per class is in per_class."
        )
    notes += [*map(in_brief, ev.audit()), _methods(ev)]
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
