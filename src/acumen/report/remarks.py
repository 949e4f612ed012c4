"""What a page says in words: badges beside a model, findings about all of them."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, isinf

from acumen.comparison import MEASURES, Comparison, Effect, is_trivial
from acumen.results import Evaluation
from acumen.table import make_table
from acumen.table.cells import fixed
from acumen.table.footnotes import rows
from acumen.table.numbers import Style
from acumen.words import FAR_OFF, FEW_VALUES, remarks

Badge = dict[str, str]
SCORE_LABELS = {"brier": "Brier", "log": "NLL / KL"}


def badges(ev: Evaluation, effect: Effect | None) -> list[Badge]:
    """Pitfalls of one model; each has a level, a text and a sentence."""
    return [
        {"level": level, "text": text, "detail": detail}
        for level, text, detail in _pitfalls(ev, effect)
    ]


def _pitfalls(ev: Evaluation, effect: Effect | None) -> Iterator[tuple[str, str, str]]:
    if is_trivial(ev):
        yield (
            "bad",
            "constant confidence: trivially calibrated",
            "One confidence for (nearly) every row: read the sharpness gap instead.",
        )
    elif ev.distinct <= FEW_VALUES:
        yield (
            "warn",
            f"only {ev.distinct} distinct confidences",
            "A curve between these values is interpolation.",
        )
    if isinf(ev.metrics.get("nll", 0.0)):
        yield (
            "bad",
            f"infinite NLL ({rows(ev.infinite_rows)})",
            "These rows gave their true class probability 0.",
        )
    gap = ev.metrics.get("confidence_gap", 0.0)
    if abs(gap) >= FAR_OFF:
        points = f"{100 * abs(gap):.1f} points"
        text = (
            f"forecasts {points} too {'high' if gap > 0 else 'low'}"
            if ev.target == "positive"
            else f"{'over' if gap > 0 else 'under'}-confident by {points}"
        )
        yield "warn", text, "Mean confidence less the share of hits."
    if effect is not None and effect.changed > 0:
        change = fixed(100 * effect.accuracy_change, 2, signed=True)
        yield (
            "warn",
            f"accuracy changed by {change}",
            f"Recalibration changed the predicted class of {rows(effect.changed)}.",
        )


def findings(comparison: Comparison) -> list[str]:
    """Sentences a reader should have seen before quoting a number."""
    notes = make_table(comparison, Style()).notes
    told = [note.text for note in (*notes, *remarks(comparison)) if note.finding]
    return [*_headline(comparison), *map(_capital, told)]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _headline(comparison: Comparison) -> Iterator[str]:
    """The best by its score, or the one model there is, and the parts of the score."""
    measure = MEASURES["total"]
    place = {ev.name: measure.place(measure.of(ev)) for ev in comparison}
    ranked = sorted(comparison, key=lambda ev: place[ev.name])
    best = ranked[0]
    if not isfinite(place[best.name]):
        return
    parts = best.decomposition
    score = {"brier": "Brier score", "log": "log loss"}.get(
        best.divergence, best.divergence
    )
    total, cal, gap = (
        fixed(100 * x, 2) for x in (parts.total, parts.calibration, parts.sharpness_gap)
    )
    lowest = (
        f"{best.name} has the lowest {score}"
        if len(ranked) > 1
        else f"{best.name} has a {score} of"
    )
    yield (
        f"{lowest} {total}: calibration error {cal}{_interval(best)} plus sharpness gap "
        f"{gap} (×100)."
    )


def _interval(ev: Evaluation) -> str:
    interval = ev.decomposition.calibration.interval
    if interval is None or not all(map(isfinite, interval)):
        return ""
    low, high = (fixed(100 * end, 2) for end in interval)
    return f" ({100 * float(ev.settings['level']):g}% interval {low} to {high})"
