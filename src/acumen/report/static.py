"""What a page shows before, or without, JavaScript: the table and lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from acumen.comparison import MEASURES, Comparison
from acumen.findings import Finding
from acumen.report.payload import headings
from acumen.report.remarks import LEVELS, badges
from acumen.results import Evaluation
from acumen.table import make_table
from acumen.table.cells import INFINITE, Cell
from acumen.table.html import escape
from acumen.table.numbers import Style

COLOURS, DASHES = 8, ("", "7 3", "2 2.5", "9 3 2 3", "4 2")
SIGNS = {"bad": "✕", "warn": "⚠", "note": "ℹ"}


def table_html(comparison: Comparison, found: Sequence[Finding]) -> str:
    """Head and body of the table of metrics, ordered by score."""
    keys = [heading.key for heading in headings(comparison)]
    made = make_table(comparison, Style(intervals=True), columns=keys, footnotes=False)
    measure = MEASURES["total"]
    place = [measure.place(measure.of(ev)) for ev in comparison]
    order = sorted(range(len(comparison)), key=lambda i: place[i])
    heads = "".join(f'<th scope="col">{_heading(h.label)}</th>' for h in made.headings)
    rows = "\n".join(
        _row(i, comparison[i], found, "".join(map(_cell, made.rows[i].cells)))
        for i in order
    )
    return (
        f'<thead><tr><th scope="col">Model</th>{heads}<th scope="col">Notes</th></tr>'
        f"</thead>\n<tbody>\n{rows}\n</tbody>"
    )


def _heading(label: str) -> str:
    # Styles are in the style sheet: the page's policy refuses them in attributes.
    part = label.removeprefix("d_")
    return f"<i>d</i><sub>{part}</sub>" if part != label else escape(label)


def _row(place: int, ev: Evaluation, found: Sequence[Finding], cells: str) -> str:
    name = escape(ev.name)
    notes = "".join(_badge(one["level"], one["text"]) for one in badges(ev, found))
    return (
        f'<tr><th scope="row" title="{name}">{_swatch(place)}{name}</th>{cells}'
        f'<td class="notes">{notes}</td></tr>'
    )


def _badge(level: str, text: str) -> str:
    return f'<span class="badge {level}">{SIGNS[level]} {escape(text)}</span>'


def _swatch(place: int) -> str:
    return (
        '<svg class="swatch" width="18" height="10" aria-hidden="true"><line x1="0" x2="18" '
        f'y1="5" y2="5" stroke="{colour(place)}" stroke-width="3" '
        f'stroke-dasharray="{DASHES[place % len(DASHES)]}"/></svg>'
    )


def _cell(cell: Cell) -> str:
    kind, said = "", ""
    if cell.best:
        kind, said = "best", " best"
    elif cell.trivial:
        kind, said = "hollow", " lower, but trivial"
    elif cell.text == INFINITE:
        kind, said = "infinite", " infinite"
    hidden = f'<span class="unseen">{said}</span>' if said else ""
    interval = f'<span class="interval">{cell.interval}</span>' if cell.interval else ""
    named = f' class="{kind}"' if kind else ""
    return f"<td{named}>{cell.text}{hidden}{interval}</td>"


def summary_html(sentences: Iterable[str]) -> str:
    """Sentences as a paragraph each."""
    return "\n".join(f"<p>{escape(text)}</p>" for text in sentences)


def findings_html(found: Iterable[Finding]) -> str:
    """Findings as items that open: what, how bad, code; then evidence and advice."""
    return "\n".join(map(_finding, found)) or "<li>The audit found nothing.</li>"


def _finding(one: Finding) -> str:
    evidence = ", ".join(
        f"{name.replace('_', ' ')} {value:.4g}" for name, value in one.evidence.items()
    )
    return (
        f"<li><details><summary>{_badge(LEVELS[one.severity], one.severity)} "
        f"{escape(one.text)} <code>{escape(one.code)}</code></summary>"
        f"<p>{escape(one.advice)} <span>Evidence: {escape(evidence)}.</span></p>"
        "</details></li>"
    )


def terms_html(terms: Iterable[tuple[str, str]]) -> str:
    """Terms and what is said of them."""
    return "\n".join(
        f"<div><dt>{escape(term)}</dt><dd>{escape(text)}</dd></div>"
        for term, text in terms
    )


def colour(place: int) -> str:
    """The colour of a model."""
    return f"var(--c{place % COLOURS})"
