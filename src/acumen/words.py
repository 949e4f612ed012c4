"""An evaluation in words: plain text for print and the terminal."""

from __future__ import annotations

from math import isfinite, isinf, isnan

from acumen.results import Decomposition, Estimate, Evaluation

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
    lines = [
        f"{ev.name}: {ev.n:,.10g} rows, {ev.k} classes",
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
    level = f"{100 * float(ev.settings['level']):g}"
    lines = [f"proper score = calibration error + sharpness gap  [{level}% interval]"]
    ordered = [
        ev.divergence,
        *(name for name in ev.decompositions if name != ev.divergence),
    ]
    width = max(len(name) for name in ordered)
    lines += [f"  {name:<{width}}  {_sum(ev.decompositions[name])}" for name in ordered]
    paper = ev.paper
    lines.append(
        f"  {ev.divergence} as published (bandwidth {paper.bandwidth:g}): "
        f"{number(paper.total)} = {number(paper.calibration)} + "
        f"{number(paper.sharpness_gap)}"
    )
    return lines


def _sum(parts: Decomposition) -> str:
    return (
        f"{number(parts.total)} = {with_interval(parts.calibration)} + "
        f"{number(parts.sharpness_gap)}"
    )


def _metric_lines(ev: Evaluation) -> list[str]:
    known = [name for name in LABELS if name in ev.metrics]
    cells = [(LABELS[name], with_interval(ev.metrics[name])) for name in known]
    width = max(len(label) for label, _ in cells)
    return [f"  {label:<{width}}  {value}" for label, value in cells]


def _notes(ev: Evaluation) -> list[str]:
    notes = []
    gap = ev.metrics.get("confidence_gap")
    if gap is not None and abs(gap) >= 0.005:
        direction = "over" if gap > 0 else "under"
        notes.append(
            f"{direction}-confident: mean confidence is {abs(gap):.3f} "
            f"{'above' if gap > 0 else 'below'} the share of hits."
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
    return notes
