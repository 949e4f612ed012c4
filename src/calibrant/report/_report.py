"""The report: one self-contained interactive HTML file that loads nothing."""

from __future__ import annotations

import base64
import hashlib
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from math import isfinite
from os import PathLike
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from calibrant import __version__
from calibrant._base.checks import (
    as_path,
    check_flags,
    check_kind,
    check_text,
    check_texts,
    one_line,
    read_names,
)
from calibrant._base.comparison import Comparison, as_comparison, as_shown
from calibrant._base.measures import columns
from calibrant._base.write import write_text
from calibrant._verbs.by_group import natural
from calibrant._verbs.compare import Contrast, compare, why_apart
from calibrant._views.diagram import axis_words
from calibrant._views.words import (
    count_in_words,
    number_of_classes,
    question,
    sizes_in_words,
)
from calibrant.report import _html as html
from calibrant.report import _payload as page
from calibrant.report._coarse import MEASURED_AT, Coarse, page_error
from calibrant.table._html import escape
from calibrant.table._layout import Style, alike
from calibrant.table._table import (
    PARTS,
    STEADY,
    by_model,
    estimator_in_words,
    in_brackets,
    levels_in_words,
    methods_of,
    shown_of,
    told_by,
)

MOST_TITLE = 300
TITLE = "Calibration-sharpness report"
STYLES = ("page.css", "views.css")
MARKS = (
    ' · <span aria-hidden="true">●</span> best (a trivially calibrated model is never best '
    'in a calibration column) · <span aria-hidden="true">○</span> lower, but meaningless'
)
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

SCRIPTS = (
    "data",
    "estimate",
    "state",
    "record",
    "marks",
    "diagram",
    "panels",
    "table",
    "sweep",
    "map",
    "views",
    "saving",
    "controls",
    "main",
)
"""Files of the script, put together in this order; they share one scope."""


def report(
    models: Any,
    path: str | PathLike[str] = "report.html",
    *,
    title: str | None = None,
    groups: Mapping[str, Any] | None = None,
    group_differences: Mapping[str, Contrast] | None = None,
    failed: Sequence[str] = (),
    force: bool = False,
) -> Path:
    """Write an interactive report as one HTML file.

    Parameters
    ----------
    models : Comparison, Evaluation or list of Evaluation
        What to show. Several models on the same examples are compared, each with the
        first (or, of a `Contrast`, with its baseline). Models that kept the sums behind them (any that was not restored
        from a file or evaluated class by class) follow the bandwidth slider.
    path : path
        The file; it is replaced as a whole or not at all.
    title : str, optional
        Heading of the page.
    groups : dict of str to models, optional
        The same models, evaluated on groups of examples, by name of the group; by default
        those that the evaluations hold.
    group_differences : dict of str to Contrast, optional
        What `compare` says of these models on each group; it is folded below the differences.
    failed : sequence of str
        Conditions that were set on these numbers and are not met, to stand first.
    force : bool
        Whether a file that exists may be replaced; else it is an error.

    Returns
    -------
    Path
        The file written.

    Notes
    -----
    The page loads nothing and sends nothing: its content policy allows no network, and
    only its own script and style. It holds sums over examples, not examples. Without
    JavaScript it shows the findings, the tables and the diagrams as evaluated. The same
    evaluations give the same bytes.

    Examples
    --------
    >>> import tempfile, calibrant as cal
    >>> from calibrant.report import report
    >>> ev = cal.evaluate_pairs([1, 0, 1, 1] * 30, [0.9, 0.4, 0.8, 0.7] * 30, name="a")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = report(ev, folder + "/a.html", title="Four answers")
    ...     print(path.name, path.stat().st_size < 200_000)
    a.html True
    """
    target = as_path(path)
    check_flags(force=force)
    shown = groups_of(models) if groups is None else groups
    more: dict[str, Any] = {"group_differences": group_differences, "failed": failed}
    write_text(target, build(models, title=title, groups=shown, **more), force=force)
    return target


def groups_of(models: Any) -> dict[str, list[Any]]:
    """The models on each group, by name in natural order, if they were given any."""
    groups: dict[str, list[Any]] = {}
    for ev in as_comparison(models):
        for name, of_group in ev.per_group.items():
            groups.setdefault(name, []).append(replace(of_group, name=ev.name))
    return dict(sorted(groups.items(), key=lambda item: natural(item[0])))


def build(
    models: Any,
    *,
    title: str | None = None,
    groups: Mapping[str, Any] | None = None,
    group_differences: Mapping[str, Contrast] | None = None,
    failed: Sequence[str] = (),
) -> str:
    """Make the page as text; see `calibrant.report.report`.

    Examples
    --------
    >>> import calibrant as cal
    >>> from calibrant.report import build
    >>> page = build(cal.evaluate_pairs([1, 0, 1, 1] * 30, [0.9, 0.4, 0.8, 0.7] * 30))
    >>> page[:15], page.count("<script")
    ('<!doctype html>', 2)
    """
    comparison = as_shown(models)
    check_texts(title=title)
    if groups is not None:
        check_kind(groups, Mapping, "groups")
    apart, gates = _read_apart(group_differences), gates_told(failed)
    sums, found = page.sums_of(comparison), comparison.audit()
    data = page.payload(comparison, sums, groups, found)
    shown = shown_of(comparison, Style(intervals=True), page.shown_keys(comparison))
    style = "\n" + "\n".join(read_part(name) for name in STYLES)
    parts = "\n".join(read_part(f"script/{name}.js") for name in SCRIPTS)
    script = f'\n"use strict";\n(() => {{\n{parts}}})();\n'
    return Template(read_part("page.html")).substitute(
        policy=_policy(style, script),
        version=escape(__version__),
        title=escape(one_line(title or TITLE, MOST_TITLE)),
        subtitle=escape(_subtitle(comparison)),
        style=style,
        summary=html.summary_html([*gates, *page.summary(comparison)]),
        findings=html.findings_html(found),
        table=html.table_html(comparison, found),
        steady=escape(told_by(STEADY, shown)),
        parts=escape(told_by(PARTS, shown)),
        risk=html.risk_html(comparison),
        differences=_differences(comparison, apart),
        marks=MARKS if max(map(len, alike(comparison))) > 1 else "",
        count=len(comparison),
        each=comparison._each.capitalize(),
        across=page.across(len(comparison)),
        panels=html.panels_html(comparison),
        sweep_heading=_sweep_heading(comparison),
        curve=_curve(comparison),
        methods=html.terms_html(_methods(comparison, sums)),
        data=page.as_json(data),
        script=script,
    )


def _read_apart(given: Any) -> Mapping[str, Contrast]:
    """The differences on each group."""
    found = {} if given is None else given
    check_kind(found, Mapping, "group_differences")
    for name, contrast in found.items():
        check_text(name, "group_differences")
        check_kind(contrast, Contrast, "group_differences")
    return found


def gates_told(given: Any) -> list[str]:
    """What a page says of conditions that are not met."""
    found = read_names(given, "failed")
    for one in found:
        check_text(one, "failed")
    return [f"Gate failed: {one}" for one in found]


# -- the file ---------------------------------------------------------------------


@cache
def read_part(name: str) -> str:
    return files("calibrant.report").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Nothing is loaded; this style and this script run, and no other."""
    return (
        f"default-src 'none'; style-src '{hash_of(style)}'; script-src '{hash_of(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def hash_of(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


# -- differences ------------------------------------------------------------------

DIFFERENCES = """\
  <section class="differences" aria-labelledby="h-differences">
    <div class="head">
      <h2 id="h-differences">Differences from {baseline}</h2>
      <span class="hint">{hint}</span>
    </div>
{content}
  </section>
"""


def _differences(comparison: Comparison, by_group: Mapping[str, Contrast]) -> str:
    """What `compare` says of several models, as a section of the page."""
    if len(comparison) < 2:
        return ""
    found, apart = _contrast(comparison)
    why = "".join(f"<p>{escape(text)}</p>\n" for text in apart)
    if found is None:
        first, hint = escape(comparison.names[0]), "not computed"
        return DIFFERENCES.format(baseline=first, hint=hint, content=why)
    pairs = "paired, example by example" if found.paired else "not paired"
    hint = (
        f"×100, {pairs} · [{100 * found.level:g}% interval] · ✓ significantly better, "
        "✕ significantly worse"
    )
    content = why + html.differences_html(found) + html.by_group_html(by_group)
    baseline = escape(found.baseline)
    return DIFFERENCES.format(baseline=baseline, hint=hint, content=content)


def _contrast(comparison: Comparison) -> tuple[Contrast | None, list[str]]:
    """The differences it knows, or those found now, and which models have none, and why.

    The baseline is the model with which most others can be paired, the first of several.
    """
    if isinstance(comparison, Contrast):
        return comparison, []
    apart = {
        base.name: {
            ev.name: why
            for ev in comparison
            if ev is not base and (why := why_apart(ev, base))
        }
        for base in comparison
    }
    baseline = min(apart, key=lambda name: len(apart[name]))
    without = apart[baseline]
    told = [
        f"{name} cannot be compared with {baseline}, example by example: {why}."
        for name, why in without.items()
    ]
    models = tuple(ev for ev in comparison if ev.name not in without)
    if len(models) < 2:
        return None, told
    level = float(comparison[0].settings["level"])
    found = compare(Comparison(models), level=level, baseline=baseline)
    return replace(found, evaluations=comparison.evaluations), told


# -- words ------------------------------------------------------------------------


def _subtitle(comparison: Comparison) -> str:
    first = comparison[0]
    sizes = sizes_in_words(comparison), *number_of_classes(first)
    return " · ".join([*sizes, count_in_words(comparison), question(first)])


def _curve(comparison: Comparison) -> str:
    words = axis_words(comparison[0])
    high, low = "forecasts are too high", "too low"
    if words["said"] == "confidence":
        high, low = "the model is over-confident", "under-confident"
    return (
        f"{words['hit'].capitalize()} among examples of this {words['said']}. Below the "
        f"dashed line {high}, above it {low}."
    )


def _sweep_heading(comparison: Comparison) -> str:
    what = "ranking" if len(comparison) > 1 else "calibration error"
    return f"Does the {what} depend on the bandwidth?"


def _methods(
    comparison: Comparison, sums: list[Coarse | None]
) -> Iterator[tuple[str, str]]:
    first = comparison[0]
    yield "Question", f"{first.target}: {question(first)}"
    counted = "" if first.n == first.rows else f", as {first.rows:,} rows of counts"
    yield "Data", f"{sizes_in_words(comparison)}{counted}"
    if comparison.protocol:
        yield "Protocol", comparison.protocol
    yield "Estimator", _estimator(comparison)
    yield "Intervals", _intervals(comparison)
    yield "Live numbers", _live(comparison, sums)
    python = platform.python_version()
    software = f"calibrant {__version__}, Python {python}, NumPy {np.__version__}"
    yield "Software", software
    yield "Digest of the evaluations (SHA-256)", _digest(comparison)


ADAPTIVE = (
    " The adaptive estimate (auto) is made of pairs of examples for Brier, and of local Platt "
    "scaling for log; its curve is one of local Platt fits, with a band drawn at bandwidth "
    "0.05. As published: Gaussian kernel of bandwidth 0.05."
)


def _estimator(comparison: Comparison) -> str:
    how = in_brackets(by_model(comparison, estimator_in_words))
    adaptive = any(ev.decomposition.bandwidth is None for ev in comparison)
    return f"d_CAL is {how}.{ADAPTIVE if adaptive else ''}"


def _intervals(comparison: Comparison) -> str:
    known = [(ev, measure) for measure in columns().values() for ev in comparison]
    told = methods_of((measure.label, measure.of(ev)) for ev, measure in known)
    methods = f" {told[0].upper()}{told[1:]}." if told else ""
    reach = by_model(comparison, lambda ev: f"{page.standard_errors(ev):.2f}")
    return (
        f"{levels_in_words(comparison)}. The darker ribbon of a curve holds at each place, the lighter one at "
        f"all places at once, for a curve without jumps.{methods} Live ones are the kernel "
        f"estimate ± {in_brackets(reach)} standard errors; they do not cover its bias."
    )


def _live(comparison: Comparison, sums: list[Coarse | None]) -> str:
    pairs = [(ev.sketch, s) for ev, s in zip(comparison, sums, strict=True) if s]
    if not pairs:
        return (
            "None: these evaluations came without the sums behind them, so bandwidth "
            "and kernel are fixed."
        )
    told = []
    for kernel, bandwidth in MEASURED_AT:
        errors = [page_error(sketch, s, kernel, bandwidth) for sketch, s in pairs]
        curve, cal = max(e.curve for e in errors), max(e.calibration for e in errors)
        told.append(
            f"{in_powers(curve)} in a curve and {in_powers(cal)} in d_CAL at bandwidth "
            f"{bandwidth:g}"
        )
    return (
        f"Computed in the browser from sums on {pairs[0][1].nodes:,} places per {comparison._each}. "
        "Measured for this page, the largest difference from the full sums is "
        f"{', '.join(told)} (Gaussian kernel)."
    )


def in_powers(value: float) -> str:
    """A small number that no line break tears apart."""
    if not isfinite(value) or value == 0:
        return f"{value:.1f}"
    factor, power = f"{value:.1e}".split("e")
    return f"{factor}×10{str(int(power)).translate(RAISED)}"


def _digest(comparison: Comparison) -> str:
    """Of the evaluations as JSON: the same numbers give the same digest."""
    digest = hashlib.sha256()
    for ev in comparison:
        digest.update(ev.to_json().encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
