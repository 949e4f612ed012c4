"""What a page says in words: a headline, the findings of the audit, badges of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite

from acumen.comparison import MEASURES, Comparison
from acumen.findings import Finding
from acumen.results import Evaluation
from acumen.table import make_table
from acumen.table.cells import fixed
from acumen.table.footnotes import rows
from acumen.table.numbers import Style
from acumen.words import direction, directions

Badge = dict[str, str]
SCORE_LABELS = {"brier": "Brier", "log": "NLL / KL"}
LEVELS = {"serious": "bad", "warning": "warn", "note": "note"}
"""Classes of the style sheet, by severity."""

SHORT: dict[str, Callable[[Mapping[str, float]], str]] = {
    "below-chance": lambda _: "worse than chance",
    "trivial-confidence": lambda _: "constant confidence: trivially calibrated",
    "few-confidences": lambda e: f"only {e['distinct']:,.0f} distinct confidences",
    "infinite-loss": lambda e: f"infinite NLL ({rows(e['rows'])})",
    "accuracy-changed": lambda e: f"accuracy {_points(e)} points",
    "thin-support": lambda e: f"{100 * e['share']:.0f}% of ECE from thin bins",
    "renormalised-rows": lambda e: f"{rows(e['rows'])} renormalised",
    "soft-labels": lambda _: "soft labels",
}
"""Findings about one model in a word or two, made of their evidence, by code."""


def _points(evidence: Mapping[str, float]) -> str:
    return fixed(100 * evidence["accuracy_change"], 2, signed=True)


def badges(ev: Evaluation, found: Sequence[Finding]) -> list[Badge]:
    """What was found about one model; each has a level, a text and a sentence."""
    told = [
        (LEVELS[one.severity], SHORT[one.code](one.evidence), one.text)
        for one in found
        if one.models == (ev.name,) and one.code in SHORT
    ]
    if word := direction(ev):
        points = 100 * abs(ev.metrics["confidence_gap"])
        text = f"{word.lower()} by {points:.1f} points"
        told.append(("warn", text, "Mean confidence less the share of hits."))
    return [
        {"level": level, "text": text, "detail": more} for level, text, more in told
    ]


def summary(comparison: Comparison) -> list[str]:
    """The result in a few sentences: the score, and what stands out beside it."""
    return [
        *_headline(comparison),
        *directions(comparison),
        *_unlike(comparison),
        *(
            f"{name}: {note}"
            for name, effect in comparison.effects.items()
            for note in effect.notes
        ),
    ]


def _unlike(comparison: Comparison) -> list[str]:
    """What keeps models from being compared, as below a table without their errors."""
    plain = Comparison(comparison.evaluations)
    notes = make_table(plain, Style(), columns=["accuracy"]).notes
    return [note.text for note in notes if note.finding]


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
