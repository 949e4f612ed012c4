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
