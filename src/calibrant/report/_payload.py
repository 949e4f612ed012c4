"""The data of a page: names, numbers, words and sums, as JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite, nan
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._base.comparison import Comparison, as_comparison, as_shown, shown_names
from calibrant._base.evaluation import Evaluation, group_name
from calibrant._base.measures import MEASURES, is_trivial, some_of
from calibrant._base.records import Estimate, Finding, as_plain
from calibrant._base.text import number, printed_gap, with_interval
from calibrant._inputs.divergences import score_in_words
from calibrant._inputs.options import PAPER_BANDWIDTH
from calibrant._verbs.by_group import macro_average, with_reason
from calibrant._verbs.compare import SAME, is_clear, shows
from calibrant._views.diagram import GEOMETRY, View, axis_words, view
from calibrant._views.words import (
    contradicted,
    digits_of,
    direction,
    directions,
    excludes_zero,
    fit_notes,
    good_news,
    in_case_of_none,
    in_which_direction,
    verdict,
)
from calibrant.audit._rules import Audited
from calibrant.report import _coarse as coarse
from calibrant.table._layout import (
    ESTIMATED,
    Heading,
    Style,
    alike,
    choose,
    fixed,
    keys_of,
)
from calibrant.table._table import (
    GAP_BELOW_0,
    estimators_in_words,
    intervals_in_words,
    make_table,
    rows,
    total_label,
    variants_in_words,
)


@dataclass(frozen=True, slots=True)
class Box:
    """Pixels around a diagram of the page, and what tells models apart.

    A strip for the rows is `between` below the diagram; the tallest of its bars is `bar`
    high. Models beyond the number of `colours` and `dashes` begin anew.
    """

    left: float = 34.0
    right: float = 10.0
    head: float = 8.0
    between: float = 8.0
    strip: float = 40.0
    bar: float = 38.0
    bars: int = 60
    colours: int = 8
    dashes: tuple[str, ...] = ("", "7 3", "2 2.5", "9 3 2 3", "4 2")


BOX = Box()


def base64_of(values: NDArray[Any], kind: str = "<f4") -> str:
    """The values in this type, as ASCII text."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode()


# -- words: a headline, the findings of the audit, badges of a model ------------------

Badge = dict[str, str]
SCORE_LABELS = {"brier": "Brier", "log": "NLL"}

LEVELS = {"serious": "bad", "warning": "warn", "note": "note"}
"""Classes of the style sheet, by severity."""

SHORT: dict[str, Callable[[Mapping[str, float]], str]] = {
    "below-chance": lambda _: "worse than chance",
    "at-chance": lambda e: (
        "no more accurate than a guess" if "accuracy" in e else "no better than chance"
    ),
    "trivial-confidence": lambda _: "constant confidence",
    "few-confidences": lambda e: f"only {e['distinct']:,.0f} distinct confidences",
    "rounded-confidences": lambda e: f"multiples of {100 * e['step']:g}%",
    "left-out": lambda e: f"coverage {100 * e['coverage']:.1f}%",
    "infinite-loss": lambda e: f"infinite NLL ({_lost(e)})",
    "accuracy-changed": lambda e: (
        f"accuracy {fixed(100 * e['accuracy_change'], 2, signed=True)} points"
    ),
    "thin-support": lambda e: f"{100 * e['share']:.0f}% of ECE from thin bins",
    "soft-labels": lambda _: "soft labels",
    "miscalibrated": lambda e: (
        f"miscalibrated: d_CAL {fixed(100 * e['calibration'], 2)}"
    ),
    "few-events": lambda e: f"rests on few events ({e['observed']:.3g})",
    "weights": lambda e: f"effective n {e['effective']:,.0f}",
    "duplicates": lambda e: f"{rows(e['rows'])} repeated",
    "clusters-ignored": lambda _: "clusters ignored",
}
"""Findings about one model in a word or two, made of their evidence, by code."""


def _lost(evidence: Mapping[str, float]) -> str:
    """How many examples have infinite loss; of weights, which are no number, the share."""
    if "rows" in evidence:
        return rows(evidence["rows"])
    return f"{100 * evidence['share']:.3g} % by weight"


def badges(ev: Evaluation, found: Sequence[Finding]) -> list[Badge]:
    """What was found about one model; each has a level, a text and a sentence."""
    told = [
        (LEVELS[one.severity], SHORT[one.code](one.evidence), one.text)
        for one in found
        if ev.name in one.models and one.code in SHORT
    ]
    if word := direction(ev):
        points = 100 * abs(ev.metrics["confidence_gap"])
        text = f"{word.lower()} by {points:.1f} points"
        told.append(("warn", text, "Mean confidence minus accuracy."))
    return [dict(zip(("level", "text", "detail"), one, strict=True)) for one in told]


def summary(comparison: Comparison) -> list[str]:
    """The verdict in a few sentences: calibration, score, and what stands out."""
    # What keeps models from being compared, as below a table without their errors.
    plain = replace(comparison, effects={})
    notes = make_table(plain, Style(), columns=["accuracy"]).notes
    unlike = [note.text for note in notes if note.finding]
    if len(comparison) == 1:
        first = [*_verdict(comparison[0]), *_headline(comparison)]
    else:
        calibrated = [*good_news(comparison), *directions(comparison)]
        first = [*_headline(comparison), *calibrated]
    return [*first, *_macro(comparison), *unlike, *fit_notes(comparison)]


def _macro(comparison: Comparison) -> Iterator[str]:
    """Models whose groups are counted once each."""
    for ev in comparison:
        if len(ev.per_group) > 1:
            found = macro_average(ev)
            parts = [f"{word} {with_reason(found[key])}" for key, word in MACRO.items()]
            count = f"{len(ev.per_group)} groups counted once (macro average)"
            yield f"{ev.name}, each of its {count}: {', '.join(parts)}."


MACRO = {
    "accuracy": "accuracy",
    "brier": "Brier score",
    "calibration": "calibration error",
}
"""Numbers of which the mean over groups is told, and what they are called."""


def _verdict(ev: Evaluation) -> Iterator[str]:
    """Whether one model is miscalibrated, as far as its interval tells."""
    error, level = ev.decomposition.calibration, 100 * float(ev.settings["level"])
    if verdict(ev) == "miscalibrated":
        digits = digits_of(error)
        size = f"{number(error, digits)} ({level:g}% interval {_ends(error, digits)})"
        told = f"calibration error {size}"
        shown = excludes_zero(error) and isfinite(error)
        told = told if shown else contradicted(ev)
        yield f"{ev.name} is miscalibrated: {told}."
    for text in (in_case_of_none(ev), in_which_direction(ev)):
        if text:
            yield text[0].upper() + text[1:]


def _ends(value: Estimate, digits: int) -> str:
    low, high = value.interval or (nan, nan)
    return f"{number(low, digits)} to {number(high, digits)}"


def _headline(comparison: Comparison) -> Iterator[str]:
    """The best by its score, or the one model there is, and the parts of the score."""
    if len({(ev.target, ev.divergence) for ev in comparison}) > 1:
        return  # their scores are other quantities
    measure = MEASURES["total"]
    place = {ev.name: measure.place(measure.of(ev)) for ev in comparison}
    ranked = sorted(comparison, key=lambda ev: place[ev.name])
    best = ranked[0]
    if not isfinite(place[best.name]):
        return
    parts = best.decomposition
    score = score_in_words(best.divergence)
    cal, gap = with_interval(parts.calibration), number(printed_gap(parts))
    none = " (below 0: none was found)" if number(parts.calibration)[0] == "-" else ""
    sum_ = (
        f"{number(parts.total)} = calibration error {cal}{none} + sharpness gap {gap}"
    )
    if len(ranked) == 1:
        yield f"Its {score} is {sum_}."
        return
    lead = " ".join(_lead(comparison, best, ranked[1]))
    yield f"{best.name} has the lowest {score}, {number(parts.total)}. {lead}".strip()
    yield f"{best.name}: {sum_}."


def _lead(
    comparison: Comparison, best: Evaluation, second: Evaluation
) -> Iterator[str]:
    """Whether the best score is better than the next by more than chance."""
    key = column_of_total(comparison, best.divergence) or "total"
    apart = _set_of(best, comparison) != _set_of(second, comparison)
    if apart and getattr(comparison, "paired", True):
        yield f"The next, {second.name}, was tested on different examples; they are not compared."
        return
    lead = Audited(comparison).difference(second, best, key)
    by = with_interval(lead)
    if lead.method == SAME or not shows(lead):
        yield f"That of {second.name} is the same to four digits."
    elif is_clear(lead):
        yield f"That of the next, {second.name}, is significantly higher: by {by}."
    elif lead.interval is not None:
        yield f"The lead over the next, {second.name}, is not significant: {by}."


# -- views of parts: classes one against the rest, or groups of rows -------------------

MOST_PARTS = 24
"""More classes than these are not shown one by one, but the worst of them are."""

NOTHING = 65535
"""Stands for NaN among whole numbers that stand for shares of 65534."""


def class_view(comparison: Comparison) -> dict[str, Any] | None:
    """Each class against the rest, for models evaluated class by class."""
    first = comparison[0].per_class
    labels = [part.name for part in first]
    if not labels or any([p.name for p in ev.per_class] != labels for ev in comparison):
        return None
    by_class = [[ev.per_class[i] for ev in comparison] for i in range(len(labels))]
    chosen, note = list(range(len(labels))), ""
    if len(labels) > MOST_PARTS:
        chosen = sorted(chosen, key=lambda i: _error(by_class[i]))[:MOST_PARTS]
        count = f"{MOST_PARTS} of {len(labels):,} classes"
        note = f"{count}: those of the largest calibration error."
    found = {labels[i]: by_class[i] for i in chosen}
    return _view("class", "Each class against the rest", note, found)


def _error(evs: Sequence[Evaluation]) -> float:
    """Sorts by the largest calibration error of any model, worst first."""
    errors = [float(ev.decomposition.calibration) for ev in evs]
    return -max((x for x in errors if isfinite(x)), default=float("-inf"))


def group_view(
    comparison: Comparison, groups: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """Models on some of the rows, by name of the group; some models may have none of one."""
    if not groups:
        return None
    called = shown_names(map(str, groups))
    read = {
        called[str(name)]: as_shown(as_comparison(models, "groups"))
        for name, models in groups.items()
    }
    names, found = comparison.names, {}
    for name, models in read.items():
        own = {group_name(x, name): x for x in names} | {x: x for x in names}
        if not {*models.names} <= {*own}:
            raise ValueError(
                f"groups must hold the models {', '.join(names)}; the group "
                f"{name!r} holds {', '.join(models.names)}."
            )
        there = {own[ev.name]: ev for ev in models}
        found[name] = [there.get(x) for x in names]
    return _view("group", "Groups of examples", "", found)


def _view(
    kind: str, heading: str, note: str, found: Mapping[str, Iterable[Evaluation | None]]
) -> dict[str, Any]:
    """Parts by name, each with all models, turned round: by model, each with all parts."""
    by_part = [
        [None if ev is None else _part(ev) for ev in models]
        for models in found.values()
    ]
    models = [list(parts) for parts in zip(*by_part, strict=True)]
    said = {"kind": kind, "heading": heading, "note": note}
    return {**said, "names": list(found), "models": models}


def _part(ev: Evaluation) -> dict[str, Any]:
    parts = ev.decomposition
    numbers = {
        "rows": ev.n,
        "accuracy": float(ev.metrics.get("accuracy", nan)),
        "ece": float(ev.metrics.get("ece", nan)),
        "calibration": interval_of(parts.calibration),
        "sharpness_gap": float(parts.sharpness_gap),
        "total": float(parts.total),
    }
    seen = view(ev)
    curve = seen.curve
    columns = (curve.confidence, curve.accuracy, curve.low, curve.high)
    drawn = base64_of(np.concatenate(list(map(shares, columns))), "<u2")
    return as_plain({**numbers, "curve": drawn, "state": state_of(seen)})


def interval_of(value: Estimate) -> list[float]:
    """A number and the ends of its interval, which are NaN if it has none."""
    low, high = value.interval or (nan, nan)
    return [float(value), low, high]


def state_of(seen: View) -> str:
    """One digit per place: 2 where a line is drawn, 1 where it is dotted, else 0."""
    drawn = np.where(seen.trusted(), 2, np.where(seen.doubtful(), 1, 0))
    return "".join(map(str, drawn))


def shares(values: NDArray[np.float64]) -> NDArray[np.uint16]:
    """Numbers of [0, 1] in 16 bits: fine enough to draw, too coarse to quote."""
    scaled = np.clip(values, 0, 1) * (NOTHING - 1)
    return np.where(np.isnan(scaled), NOTHING, scaled.round()).astype(np.uint16)


# -- the data of a page: names, numbers and sums, as JSON -----------------------------

LIVE = ("calibration", "sharpness_gap", "total")
"""Columns that follow the bandwidth."""

BANDWIDTHS = (
    0.005,
    0.007,
    0.01,
    0.014,
    0.02,
    0.03,
    0.04,
    0.05,
    0.07,
    0.1,
    0.14,
    0.18,
    0.25,
)

KERNELS = ("gaussian", "epanechnikov")


def headings(comparison: Comparison) -> list[Heading]:
    """Columns of the table: those of the paper that some model has, and the parts."""
    fixed = [key for key in keys_of("paper") if key not in LIVE]
    found = choose(fixed, comparison)
    kept = [c.heading for c in found if not np.isnan(c.values(comparison)).all()]
    return [*kept, *(c.heading for c in choose(LIVE, comparison))]


TOTALS = {"brier": "brier", "log": "nll"}
"""Metrics that are the whole of a score, as a rule."""


def column_of_total(comparison: Comparison, score: str) -> str | None:
    """The metric that shows the whole of a score, so that no column comes twice."""
    key = TOTALS.get(score)
    if key is None or any(score not in ev.decompositions for ev in comparison):
        return None
    both = [(ev.metrics.get(key, nan), ev.decompositions[score]) for ev in comparison]
    same = [x == y.total or abs(x - y.total) < 5e-7 for x, y in both]
    return key if all(same) else None


def shown_keys(comparison: Comparison) -> list[str]:
    """Columns of the table at first: the score, once."""
    keys = [heading.key for heading in headings(comparison)]
    twice = column_of_total(comparison, comparison[0].divergence) in keys
    return [key for key in keys if not (twice and key == "total")]


def across(count: int) -> int:
    """Diagrams side by side, so that rows are full and few.

    Examples
    --------
    >>> [across(n) for n in (1, 2, 5, 6, 9, 12)]
    [1, 2, 5, 3, 5, 4]
    """
    if count <= 5:
        return count
    return min((5, 4, 3), key=lambda c: -count % c + 1.5 * -(-count // c))


def nodes_for(comparison: Comparison) -> int:
    """Nodes per model: fewer where there are many models."""
    return coarse.FEWER_NODES if len(comparison) >= coarse.MANY_MODELS else coarse.NODES


def sums_of(comparison: Comparison) -> list[coarse.Coarse | None]:
    """Coarse sums of every model that has a sketch."""
    nodes = nodes_for(comparison)
    return [coarse.coarse_sums(ev, nodes) for ev in comparison]


def payload(
    comparison: Comparison,
    sums: list[coarse.Coarse | None],
    groups: Mapping[str, Any] | None = None,
    found: Sequence[Finding] = (),
) -> dict[str, Any]:
    """Everything the page computes and draws from."""
    first = comparison[0]
    known = [ev.decompositions for ev in comparison]
    common = [name for name in known[0] if all(name in parts for parts in known)]
    views = [class_view(comparison), group_view(comparison, groups)]
    return as_plain(
        {
            "geometry": asdict(GEOMETRY),
            "box": asdict(BOX),
            "nothing": NOTHING,
            "widths": [BANDWIDTHS[0], BANDWIDTHS[-1]],
            "live": list(coarse.SCORES),
            "nodes": nodes_for(comparison),
            "scores": [_score(comparison, name) for name in common],
            "estimators": estimators_in_words(comparison),
            "variants": variants_in_words(comparison),
            "gap_below_0": f" A {GAP_BELOW_0}",
            "score": first.divergence if first.divergence in common else common[0],
            "adaptive": all(e.decomposition.bandwidth is None for e in comparison),
            "bandwidth": first.decomposition.bandwidth or PAPER_BANDWIDTH,
            "kernel": first.decomposition.kernel,
            "intervals": intervals_in_words(comparison),
            "words": axis_words(first),
            "each": comparison._each,
            "columns": [_column(heading) for heading in headings(comparison)],
            "models": [
                {**_model(ev, one, comparison, common), "badges": badges(ev, found)}
                for ev, one in zip(comparison, sums, strict=True)
            ],
            "sweep": _sweep(sums),
            "views": [one for one in views if one is not None],
        }
    )


def _score(comparison: Comparison, name: str) -> dict[str, Any]:
    """What a score is called, alone and as a sum, and which column has it already."""
    label, total = SCORE_LABELS.get(name, name), total_label(comparison[0], name)
    column = column_of_total(comparison, name)
    return {"key": name, "label": label, "total": total, "column": column}


def _column(heading: Heading) -> dict[str, Any]:
    key, measure = heading.key, MEASURES[heading.key]
    kind = {"up": measure.higher_is_better, "calibration": measure.calibration}
    follows = {"live": key in LIVE, "estimated": key in ESTIMATED}
    return {"key": key, "label": heading.label, **kind, **follows}


def _set_of(
    ev: Evaluation, comparison: Comparison, column: str = "", common: Sequence[str] = ()
) -> int:
    """A number for a model, the same for those it is held against in a column.

    The page shows the parts of one score for all; other settings are `common` if it says so.
    """
    sets = enumerate(alike(comparison, column, ("divergence", *common)))
    return next(i for i, places in sets if any(comparison[j] is ev for j in places))


def standard_errors(ev: Evaluation) -> float:
    """Standard errors on either side of an interval of a model."""
    return NormalDist().inv_cdf(0.5 + float(ev.settings["level"]) / 2)


def _model(
    ev: Evaluation,
    sums: coarse.Coarse | None,
    comparison: Comparison,
    scores: list[str],
) -> dict[str, Any]:
    atoms = ev.atoms.confidence, ev.atoms.count / ev.n, ev.atoms.accuracy
    keys = [heading.key for heading in headings(comparison)]
    fixed = [key for key in keys if key not in LIVE]
    return {
        "name": ev.name,
        "rows": ev.n,
        "trivial": is_trivial(ev),
        "alike": {key: _set_of(ev, comparison, key) for key in keys},
        "alike_live": _set_of(ev, comparison, "calibration", ("bandwidth", "kernel")),
        "z": standard_errors(ev),
        "infinite": ev.infinite_rows,
        "lost": some_of(ev, ev.infinite_rows),
        "metrics": {key: interval_of(MEASURES[key].of(ev)) for key in fixed},
        "atoms": np.stack(atoms, axis=1),
        "bars": ev.histogram.reshape(BOX.bars, -1).sum(axis=1) / ev.n,
        "reported": {score: _parts(ev, score) for score in scores},
        "line": _line(ev, scores),
        "mass": _mass(
            ev, scores, whole=sums is None or set(scores) > set(coarse.SCORES)
        ),
        "sums": None if sums is None else _sums(sums),
    }


def _parts(ev: Evaluation, score: str) -> dict[str, Any]:
    parts = ev.decompositions[score]
    keys = ("calibration", "total", "sharpness_gap")
    return {key: interval_of(getattr(parts, key)) for key in keys}


def _line(ev: Evaluation, scores: list[str]) -> dict[str, Any]:
    """The line as evaluated: adaptive, or at the bandwidth asked for."""
    seen = view(ev)
    names = "confidence", "accuracy", "low", "high", "band_low", "band_high", "support"
    columns = {name: base64_of(getattr(seen.curve, name)) for name in names}
    gaps = {score: base64_of(ev.curves[score].sharpness_gap) for score in scores}
    drawn = {"state": state_of(seen), "bandwidth": seen.parts.bandwidth}
    return {**columns, "gaps": gaps, **drawn}


def _mass(ev: Evaluation, scores: list[str], *, whole: bool) -> dict[str, Any]:
    """What the band of that line is made of: density times sharpness gap.

    The columns are left out where the page can make them from the sums.
    """
    seen = {score: view(ev, score) for score in scores}
    some = next(iter(seen.values()))
    bandwidth = some.parts.bandwidth or PAPER_BANDWIDTH
    made = {"bandwidth": bandwidth, "kernel": some.parts.kernel}
    if not whole:
        return made
    return {
        **made,
        "density": base64_of(some.mass.density),
        "support": base64_of(some.mass.support),
        "gaps": {score: base64_of(v.mass.sharpness_gap) for score, v in seen.items()},
    }


def _sums(sums: coarse.Coarse) -> dict[str, Any]:
    return asdict(sums) | {
        "weight": base64_of(sums.weight),
        "hits": base64_of(sums.hits),
        "losses": {score: base64_of(sums.losses[score]) for score in coarse.SCORES},
        "infinite": base64_of(sums.infinite) if sums.infinite.any() else "",
        "slope": base64_of(sums.slope, "<f8"),
    }


def _sweep(sums: list[coarse.Coarse | None]) -> dict[str, Any] | None:
    """d_CAL of every model by kernel, score and bandwidth."""
    if any(one is None for one in sums):
        return None
    found: dict[str, Any] = {"bandwidths": BANDWIDTHS}
    for kernel in KERNELS:
        table = [
            [coarse.calibrations(x, b, kernel) for b in BANDWIDTHS] for x in sums if x
        ]
        found[kernel] = {
            score: [[float(f"{at[score]:.6g}") for at in row] for row in table]
            for score in coarse.SCORES
        }
    return found


def as_json(data: Mapping[str, Any]) -> str:
    r"""Strict JSON, safe inside a script element.

    Examples
    --------
    >>> print(as_json({"name": "</script>&"}))
    {"name":"\u003c/script\u003e\u0026"}
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
