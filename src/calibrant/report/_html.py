"""What a page shows before, or without, JavaScript: table, lists and diagrams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isinf, nan

import numpy as np

from calibrant._base.comparison import Comparison
from calibrant._base.evaluation import Evaluation
from calibrant._base.measures import MEASURES, is_trivial
from calibrant._base.records import Decomposition, Estimate, Finding
from calibrant._base.text import printed_gap
from calibrant._inputs.arrays import Column
from calibrant._verbs.compare import (
    SAME,
    Contrast,
    is_clear,
    shows,
    told,
    told_and_reminders,
)
from calibrant._views.diagram import (
    Band,
    View,
    axis_words,
    band_scale,
    shared_top,
    spans,
    view,
)
from calibrant._views.words import describe_diagram
from calibrant.report._payload import BOX, LEVELS, badges, shown_keys
from calibrant.table._html import escape
from calibrant.table._layout import INFINITE, Cell, Style, fixed
from calibrant.table._table import make_table, total_label

SIGNS = {"bad": "✕", "warn": "⚠", "note": "ℹ"}


def table_html(comparison: Comparison, found: Sequence[Finding]) -> str:
    """Head and body of the table of metrics, ordered by score."""
    keys, style = shown_keys(comparison), Style(intervals=True)
    made = make_table(comparison, style, columns=keys, footnotes=False)
    labels = [heading.label for heading in made.headings]
    measure = MEASURES["total"]
    place = [measure.place(measure.of(ev)) for ev in comparison]
    order = sorted(range(len(comparison)), key=lambda i: place[i])
    heads = "".join(f'<th scope="col">{_heading(label)}</th>' for label in labels)
    rows = "\n".join(
        _row(i, comparison[i], found, "".join(map(_cell, labels, made.rows[i].cells)))
        for i in order
    )
    return (
        f'<thead><tr><th scope="col">{_first(comparison)}</th>{heads}<th scope="col">Notes</th></tr>'
        f"</thead>\n<tbody>\n{rows}\n</tbody>"
    )


def _first(comparison: Comparison) -> str:
    """The heading of the names."""
    return comparison._each.capitalize()


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
        f'stroke-dasharray="{BOX.dashes[place % len(BOX.dashes)]}"/></svg>'
    )


def _cell(label: str, cell: Cell) -> str:
    kind, said = "", ""
    if cell.best:
        kind, said = "best", " best"
    elif cell.trivial:
        kind, said = "hollow", " lower, but meaningless"
    elif cell.text == INFINITE:
        kind, said = "infinite", " infinite"
    return _number(label, kind, cell.text, said, cell.interval)


def _number(label: str, kind: str, text: str, said: str, interval: str) -> str:
    """A cell: a number, what its mark says, and the interval below; a phone shows the label."""
    hidden = f'<span class="unseen">{said}</span>' if said else ""
    ends = f'<span class="interval">{interval}</span>' if interval else ""
    named = f' class="{kind}"' if kind else ""
    return f'<td{named} data-label="{escape(label)}">{text}{hidden}{ends}</td>'


def summary_html(sentences: Iterable[str]) -> str:
    """Sentences as a paragraph each."""
    return "\n".join(f"<p>{escape(text)}</p>" for text in sentences)


MANY = 6
"""From so many findings on, mere notes are folded away."""


def findings_html(found: Sequence[Finding]) -> str:
    """Findings as items that open: what, how bad, code; then evidence and advice."""
    if not found:
        return "<ul>\n<li>No pitfalls detected.</li>\n</ul>"
    notes = [one for one in found if one.severity == "note"]
    first = [one for one in found if one.severity != "note"]
    if len(found) < MANY or len(notes) < 2 or not first:
        return _list(found)
    return (
        f'{_list(first)}\n<details class="more"><summary>{len(notes)} notes</summary>\n'
        f"{_list(notes)}\n</details>"
    )


def _list(found: Sequence[Finding]) -> str:
    return "\n".join(["<ul>", *map(_finding, found), "</ul>"])


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


# -- differences of models ------------------------------------------------------------

FEW_SENTENCES = 10
"""So many sentences are shown; more are folded away."""


def differences_html(found: Contrast) -> str:
    """Each model less the baseline: a table, and what it says in words."""
    known = {key: x for one in found.differences.values() for key, x in one.items()}
    keys = told(known, found[0])
    labels = [MEASURES[key].label for key in keys]
    heads = "".join(f'<th scope="col">{_heading(label)}</th>' for label in labels)
    rows = "\n".join(_difference_row(found, name, keys) for name in found.differences)
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Table of differences">'
        f'<table class="plain" id="differences"><thead><tr><th scope="col">{_first(found)}</th>{heads}'
        f"</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>\n{_sentences(found)}"
    )


def by_group_html(by_group: Mapping[str, Contrast]) -> str:
    """Each model less the baseline on each group, folded; nothing without groups."""
    known = {
        key: x
        for found in by_group.values()
        for one in found.differences.values()
        for key, x in one.items()
    }
    if not known:
        return ""
    keys = told(known)
    labels = [f'<th scope="col">{_heading(MEASURES[key].label)}</th>' for key in keys]
    rows = "\n".join(
        _difference_row(found, name, keys, f"{group}: ")
        for group, found in by_group.items()
        for name in found.differences
    )
    return (
        "\n<details><summary>Differences by group, each tested alone</summary>"
        '<div class="scroll" tabindex="0" role="region" aria-label="Differences by group">'
        '<table class="plain" id="group-differences"><thead><tr><th scope="col">Group and '
        f"model</th>{''.join(labels)}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>"
        "</details>"
    )


def _difference_row(
    found: Contrast, name: str, keys: Sequence[str], group: str = ""
) -> str:
    place, of_model = found.names.index(name), found.differences[name]
    trivial, unknown = is_trivial(found[name]), Estimate(nan)
    values = [of_model.get(key, unknown) for key in keys]
    cells = [
        _difference(k, x, trivial=trivial) for k, x in zip(keys, values, strict=True)
    ]
    title = escape(f"{group}{name}")
    head = f'<th scope="row" title="{title}">{_swatch(place)}{title}</th>'
    return f"<tr>{head}{''.join(cells)}</tr>"


def _difference(key: str, value: Estimate, *, trivial: bool) -> str:
    """A difference, and whether it is significant and which way."""
    measure, kind, said, ends = MEASURES[key], "", "", ""
    if is_clear(value) and shows(value):
        better = (value > 0) == measure.higher_is_better
        kind = "better" if better else "worse"
        if better and trivial and measure.calibration:
            kind = "hollow"
        said = {"hollow": " lower, but meaningless"}.get(kind, f" significantly {kind}")
    if isinf(value):
        kind, said = "infinite", " infinite"
    if value.method == SAME:
        ends = "same for every example"
    elif value.interval is not None:
        low, high = (fixed(100 * end, 2, signed=True) for end in value.interval)
        ends = f"[{low}, {high}]"
    text = fixed(100 * value, 2, signed=True)
    return _number(measure.label, kind, text, said, ends)


def _sentences(found: Contrast) -> str:
    told_, reminders = told_and_reminders(found)
    items = "".join(f"<li>{escape(text)}</li>" for text in told_)
    said = f'<ul class="told">{items}</ul>'
    if len(told_) > FEW_SENTENCES:
        said = f"<details><summary>In {len(told_)} sentences</summary>{said}</details>"
    return "\n".join([*(f"<p>{escape(text)}</p>" for text in reminders), said])


# -- risk and coverage ----------------------------------------------------------------

AREAS = ("aurc", "excess_aurc", "augrc")


def risk_html(comparison: Comparison) -> str:
    """The areas under the risk by coverage, folded; nothing where no model has them."""
    known = [(i, ev) for i, ev in enumerate(comparison) if AREAS[0] in ev.metrics]
    if not known:
        return ""
    labels = [MEASURES[key].label for key in AREAS]
    heads = "".join(
        f'<th scope="col">{escape(x)}</th>' for x in ("Error rate", *labels)
    )
    rows = "\n".join(_risk_row(place, ev) for place, ev in known)
    return (
        '<section aria-label="Risk by coverage"><details>'
        "<summary>Which examples can be trusted: risk by coverage</summary>\n"
        f"<p>{RISK}</p>\n"
        '<div class="scroll" tabindex="0" role="region" aria-label="Risk by coverage">'
        f'<table class="plain" id="risk"><thead><tr><th scope="col">{_first(comparison)}</th>{heads}</tr>'
        f"</thead>\n<tbody>\n{rows}\n</tbody></table></div></details></section>"
    )


RISK = (
    "AURC is the mean share of errors if only the most confident examples are accepted, "
    "over all numbers of them. The same confidence for every example has an AURC equal to "
    "the error rate. E-AURC is what it is above that of a perfect order, AUGRC the area "
    "under the share that is accepted and wrong. ×100, lower is better."
)


def _risk_row(place: int, ev: Evaluation) -> str:
    name = escape(ev.name)
    error = fixed(100 * (1 - ev.metrics["accuracy"]), 2)
    cells = [_number("Error rate", "", error, "", "")]
    for key in AREAS:
        value, ends = ev.metrics[key], ""
        if value.interval is not None:
            low, high = (fixed(100 * end, 2) for end in value.interval)
            ends = f"[{low}, {high}]"
        cells.append(_number(MEASURES[key].label, "", fixed(100 * value, 2), "", ends))
    head = f'<th scope="row" title="{name}">{_swatch(place)}{name}</th>'
    return f"<tr>{head}{''.join(cells)}</tr>"


def terms_html(terms: Iterable[tuple[str, str]]) -> str:
    """Terms and what is said of them."""
    return "\n".join(
        f"<div><dt>{escape(term)}</dt><dd>{escape(text)}</dd></div>"
        for term, text in terms
    )


def colour(place: int) -> str:
    """The colour of a model."""
    return f"var(--c{place % BOX.colours})"


# -- diagrams, as the script draws them -----------------------------------------------

WIDTH, HEIGHT, LEFT, TOP = 250.0, 200.0, BOX.left, BOX.head
ACROSS, FLOOR = WIDTH - LEFT - BOX.right, TOP + HEIGHT
BOTTOM = FLOOR + BOX.between + BOX.strip


def panels_html(comparison: Comparison) -> str:
    """One diagram per model, as evaluated."""
    views = [view(ev) for ev in comparison]
    honest = [seen for seen in views if not is_trivial(seen.ev)] or views
    scale = band_scale([seen.band() for seen in honest])
    bands = [seen.band(scale) for seen in views]
    top = shared_top(bands)
    return "\n".join(
        _figure(i, seen, band, top)
        for i, (seen, band) in enumerate(zip(views, bands, strict=True))
    )


def _figure(place: int, seen: View, band: Band, top: float) -> str:
    ev, name = seen.ev, escape(seen.ev.name)
    return (
        f'<figure class="panel m{place % BOX.colours}"><figcaption><b title="{name}">{name}</b>'
        f"{_sum(ev, seen.parts)}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH:g} {BOTTOM + 34:g}" role="img" '
        f'aria-label="{escape(describe_diagram(ev))}">'
        f"{_axes(top, axis_words(ev)['said'])}{_band(place, band, top)}{_strip(ev)}{_line(place, seen, top)}"
        "</svg></figure>"
    )


def _sum(ev: Evaluation, parts: Decomposition) -> str:
    values = 100 * parts.calibration, printed_gap(parts, 2, 100), 100 * parts.total
    names = "d_CAL", "+ gap", f"= {total_label(ev, parts.divergence)}"
    numbers = zip(names, values, strict=True)
    cells = (f"<div>{escape(label)}<b>{fixed(x, 2)}</b></div>" for label, x in numbers)
    return f'<div class="sum">{"".join(cells)}</div>'


def _x(confidence: Column | float) -> Column:
    return np.asarray(LEFT + np.asarray(confidence) * ACROSS)


def _y(value: Column | float, top: float) -> Column:
    return np.asarray(TOP + (1 - np.minimum(value, top) / top) * HEIGHT)


def _path(x: Column, y: Column) -> str:
    points = (f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))
    return "M" + "L".join(points)


def _axes(top: float, said: str) -> str:
    lines, right = [], _x(1.0)
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = _x(tick), _y(tick, top)
        lines.append(
            f'<path class="grid" d="M{LEFT:g} {y:.1f}H{right:.1f}M{x:.1f} {TOP:g}V{FLOOR:g}"/>'
        )
        if tick in (0.0, 0.5, 1.0):
            lines.append(_text(f"{tick:g}", LEFT - 6, float(y) + 4, "end"))
        anchor = {0.0: "start", 1.0: "end"}.get(tick, "middle")
        lines.append(_text(f"{tick:g}", float(x), BOTTOM + 14, anchor))
    lines.append(_text(said, float(_x(0.5)), BOTTOM + 29, "middle"))
    floors = f"M{LEFT:g} {FLOOR:g}H{right:.1f}M{LEFT:g} {BOTTOM:g}H{right:.1f}"
    diagonal = f"M{LEFT:g} {FLOOR:g}L{right:.1f} {_y(1.0, top):.1f}"
    return (
        f'{"".join(lines)}<path class="axis" d="{floors}"/>'
        f'<path class="diagonal" d="{diagonal}"/>'
    )


def _text(text: str, x: float, y: float, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def _band(place: int, band: Band, top: float) -> str:
    shapes = []
    for first, last in spans(band.drawn):
        part = slice(first, last + 1)
        x, up, down = _x(band.confidence[part]), band.high[part], band.low[part]
        y = np.concatenate([_y(up, top), _y(down, top)[::-1]])
        edge = _path(np.concatenate([x, x[::-1]]), y)
        shapes.append(
            f'<path class="band" d="{edge}Z" fill="{colour(place)}" '
            f'stroke="{colour(place)}"/>'
        )
    return "".join(shapes)


def _line(place: int, seen: View, top: float) -> str:
    shapes = []
    for kind, where in (("curve", seen.trusted()), ("faint", seen.doubtful())):
        for first, last in spans(where):
            part = slice(first, last + 1)
            x, y = seen.curve.confidence[part], seen.curve.accuracy[part]
            shapes.append(
                f'<path class="{kind}" d="{_path(_x(x), _y(y, top))}" '
                f'stroke="{colour(place)}"/>'
            )
    atoms = seen.ev.atoms
    share = atoms.count / seen.ev.n
    for h, m, s in zip(atoms.confidence, atoms.accuracy, share, strict=True):
        shapes.append(
            f'<circle class="atom" cx="{_x(h):.1f}" cy="{_y(m, top):.1f}" '
            f'r="{2 + 5 * s**0.5:.1f}" stroke="{colour(place)}"/>'
        )
    return "".join(shapes)


def _strip(ev: Evaluation) -> str:
    """Stems for few distinct confidences, else bars."""
    if len(ev.atoms.count):
        at, share, width = ev.atoms.confidence, ev.atoms.count, 3.0
    else:
        share = ev.histogram.reshape(BOX.bars, -1).sum(axis=1)
        at, width = (np.arange(BOX.bars) + 0.5) / BOX.bars, ACROSS / BOX.bars
    tall = BOX.bar * share / share.max()
    seen = zip(_x(at)[tall > 0], tall[tall > 0], strict=True)
    bars = "".join(f"M{x:.1f} {BOTTOM:g}v{-h:.1f}" for x, h in seen)
    return f'<path class="bars" d="{bars}" stroke-width="{width:.2f}"/>'
