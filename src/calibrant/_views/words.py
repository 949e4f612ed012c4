"""Results in words: for print, for the terminal, and for those who cannot see figures."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from math import exp, floor, inf, isfinite, isnan, log10
from operator import attrgetter
from typing import Any

import numpy as np

from calibrant._base.checks import MOST_NAME, check_choice, one_line
from calibrant._base.comparison import Comparison, as_shown, shown_names
from calibrant._base.evaluation import Evaluation
from calibrant._base.measures import (
    MEASURES,
    effective,
    is_trivial,
    positive_class,
    sample_size,
    some_of,
)
from calibrant._base.records import (
    FORECASTS,
    Curve,
    Decomposition,
    Estimate,
    Finding,
    listed,
)
from calibrant._base.text import number, printed_gap, with_interval
from calibrant._inputs.divergences import score_in_words
from calibrant._inputs.targets import TOP
from calibrant._sketch.grid import LOG_ODDS_REACH
from calibrant._stats.close_pairs import LEAST_ROWS
from calibrant._verbs.by_group import natural
from calibrant._views.diagram import GEOMETRY, axis_words
from calibrant.table._html import paragraphs, write_html, write_list
from calibrant.table._layout import (
    DAGGER,
    INFINITE,
    MISSING,
    Note,
    Style,
    lifted,
    same_examples,
)
from calibrant.table._table import (
    ADAPTIVE,
    GAP_BELOW_0,
    estimator_in_words,
    make_table,
    methods_of,
    names,
)
from calibrant.table._text import in_ascii, note_lines, write_text

NOTED, FAR_OFF = 0.005, 0.03
"""From the first on, print says how far a mean confidence is off; without an interval it
names a direction from the second on."""

DIRECTIONS = {
    True: ("Forecasts too low", "Forecasts too high"),
    False: ("Under-confident", "Over-confident"),
}
"""By whether one class is forecast: the mean below and above what came true."""

SHOWN_BY_TABLES = ("trivial-confidence", "infinite-loss", "accuracy-changed")
"""Findings that the tables of a comparison tell themselves, by mark, note or column."""

TARGETS = {
    "top-label": "is the predicted class as likely as claimed?",
    "positive": "is {positive} as likely as forecast?",
    "class-wise": "is every class as likely as forecast?",
    "multi-label": "is each label as likely as forecast?",
    "pairs": "is an answer right as often as its confidence says?",
}


def question(ev: Evaluation) -> str:
    """What was asked of each example."""
    event = "does the event come true as often as claimed?"
    if found := TOP.fullmatch(ev.target):
        among = f"among the {found[1]} likeliest"
        event = f"is the true class {among} as often as claimed?"
    return TARGETS.get(ev.target, event).format(positive=positive_class(ev))


def number_of_classes(ev: Evaluation) -> list[str]:
    """How many classes there are, in words; nothing where that is not known."""
    return [] if ev.target == "pairs" or ev.k is None else [f"{ev.k:,} classes"]


def in_words(models: Any) -> str:
    """What a result prints."""
    shown = as_shown(models)
    if isinstance(models, Evaluation):
        return describe(shown[0])
    return describe_comparison(shown)


def in_html(models: Any) -> str:
    """What a notebook shows: all that is printed, as tables and lists."""
    comparison, one = as_shown(models), isinstance(models, Evaluation)
    parts = [paragraphs(head_lines(comparison))]
    plain, style = replace(comparison, effects={}), Style(intervals=True)
    parts.append(write_html(make_table(plain, style)))
    if comparison.effects:
        parts.append(write_html(make_table(comparison, Style(), columns="effects")))
    if one:
        groups = [f"group {line.strip()}" for line in _group_lines(comparison[0])[2:]]
        methods = _methods(comparison[0])  # the table names those of what it shows
        others = [note for note in _notes(comparison[0]) if note != methods]
        notes = [_as_published(comparison[0]), *groups, *others]
    else:
        notes = [note.text for note in remarks(comparison, comparison.audit())]
    parts.append(write_list(notes))
    if sentences := getattr(comparison, "sentences", ()):
        head = getattr(comparison, "against", "")
        parts += [paragraphs([head]) if head else "", write_list(sentences)]
    return "\n".join(part for part in parts if part)


def describe(ev: Evaluation) -> str:
    """The whole evaluation as a few lines of text."""
    lines = [
        ", ".join([f"{ev.name}: {sample_size(ev)}", *number_of_classes(ev)]),
        f"target: {ev.target} ({question(ev)})",
        "",
        *_decomposition_lines(ev),
        "",
        *_metric_lines(ev),
        *_group_lines(ev),
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
    scores = make_table(replace(comparison, effects={}), Style())
    parts = [head_lines(comparison), [write_text(scores, unicode=unicode)]]
    if comparison.effects:
        effects = make_table(
            comparison, Style(), columns="effects", caption="What recalibration did:"
        )
        parts.append([write_text(effects, unicode=unicode)])
    parts.append(note_lines(remarks(comparison, comparison.audit())))
    text = "\n\n".join("\n".join(lines) for lines in parts if lines)
    return text if unicode else in_ascii(text)


def head_lines(comparison: Comparison) -> list[str]:
    """How many models and rows, the question asked, and the protocol."""
    first, count = comparison[0], len(comparison)
    sizes = count_in_words(comparison), sizes_in_words(comparison)
    lines = [
        ", ".join([*sizes, *number_of_classes(first)]),
        f"target: {first.target} ({question(first)})",
    ]
    if comparison.protocol:
        lines.append(f"protocol: {one_line(comparison.protocol)}")
    if count == 1 and (fineness := resolution(first)):
        lines.append(fineness)
    return lines


def count_in_words(comparison: Comparison) -> str:
    """How many models or groups there are."""
    count = len(comparison)
    return f"{count} {comparison._each}{'' if count == 1 else 's'}"


def sizes_in_words(comparison: Comparison) -> str:
    """How many examples the models have: one number, or from the least to the most.

    Examples of their own are told from the same ones.
    """
    sizes = sorted(ev.n for ev in comparison)
    shares = sorted(ev.coverage for ev in comparison)
    said = sample_size(comparison[0])
    if sizes[0] < sizes[-1]:
        said = f"{sizes[0]:,.10g} to {sizes[-1]:,.10g} examples"
    elif len(same_examples(comparison)) > 1:
        lacking = shares[0] == shares[-1] < 1
        known = f" (coverage {100 * shares[0]:.3g} %)" if lacking else ""
        said = f"{sizes[0]:,.10g} examples each{known}"
    elif shares[0] < shares[-1]:
        said = sample_size(replace(comparison[0], left_out=0.0, unpaired=0.0))
    if shares[0] < shares[-1]:
        said += f" (coverage {100 * shares[0]:.3g} to {100 * shares[-1]:.3g} %)"
    return said


def resolution(ev: Evaluation) -> str:
    """How fine a defect d_CAL can see, as a share of the examples.

    Examples
    --------
    >>> import calibrant as cal
    >>> resolution(cal.evaluate_pairs([1, 0, 1, 1] * 100, [0.9, 0.4, 0.8, 0.7] * 100))
    'd_CAL resolves ranges of confidence with at least 5 % of the examples'
    """
    share = ev.decomposition.resolution
    if share is None or share >= 1:
        return ""
    what = f"with at least {100 * share:.2g} % of the examples"
    return f"d_CAL resolves ranges of confidence {what}"


def remarks(comparison: Comparison, found: Iterable[Finding]) -> list[Note]:
    """What stands out beside the tables: verdicts, findings, notes of fits."""
    told = [in_brief(one) for one in found if one.code not in SHOWN_BY_TABLES]
    texts = [*directions(comparison), *told, *fit_notes(comparison)]
    worth = getattr(comparison, "worth", ())  # of a study
    if comparison.effects and any(ev.columns is None for ev in comparison):
        worth = (*worth, READ_BACK)
    good = [Note(text) for text in (*worth, *good_news(comparison))]
    return [*good, *(Note(text, finding=True) for text in texts)]


READ_BACK = (
    "This study was read back. A record keeps no examples and no recalibrators: whether "
    "recalibration helps, and findings that compare examples, are not told again."
)


def fit_notes(comparison: Comparison) -> list[str]:
    """What the fits of recalibrators had to say."""
    effects = comparison.effects.items()
    return [f"{name}: {note}" for name, effect in effects for note in effect.notes]


def good_news(comparison: Comparison) -> list[str]:
    """Which models show no miscalibration, or little; of a trivial one that is no news."""
    verdicts = {ev: verdict(ev) for ev in comparison if not is_trivial(ev)}
    clean = [ev.name for ev, found in verdicts.items() if found == "none"]
    weak = [
        f"{ev.name} ({listed(signs_in(ev))})"
        for ev, found in verdicts.items()
        if found == "weak"
    ]
    told = [f"No evidence of miscalibration: {names(clean)}."] if clean else []
    if weak:
        by = "the interval of d_CAL reaches 0, others do not"
        told.append(f"Weak evidence of miscalibration ({by}): {names(weak)}.")
    return told


def excludes_zero(value: Estimate) -> bool:
    """Whether an interval says that a number is not 0.

    Examples
    --------
    >>> excludes_zero(Estimate(0.1, (0.0, 0.2))), excludes_zero(Estimate(0.1, (0.05, 0.2)))
    (False, True)
    """
    return value.interval is not None and not (
        value.interval[0] <= 0 <= value.interval[1]
    )


def verdict(ev: Evaluation) -> str:
    """Whether a model is miscalibrated: the one place that decides it for every view.

    It is if the interval of d_CAL excludes 0, or a probability of 0 or 1 proved wrong. The
    evidence is weak if only the interval of another error excludes 0, and none if no
    interval does. Without an interval nothing is said.

    Examples
    --------
    >>> import calibrant as cal
    >>> verdict(cal.evaluate([0, 1, 1], probs=[0.1, 0.6, 0.0]))
    'miscalibrated'
    >>> verdict(cal.evaluate_pairs([1, 0] * 50, [0.5] * 100))
    'none'
    """
    error = ev.decomposition.calibration
    if excludes_zero(error) or contradicted(ev):
        return "miscalibrated"
    if error.interval is None:
        return ""
    return "weak" if signs_in(ev) else "none"


def contradicted(ev: Evaluation) -> str:
    """Whether a probability of 0 or 1 proved wrong, in words: no calibrated one does.

    What the class that came true was given besides the predicted one is no matter of the
    confidence.

    Examples
    --------
    >>> import calibrant as cal
    >>> contradicted(cal.evaluate([0, 1, 1], probs=[0.1, 0.6, 0.0]))
    'a forecast of 0 or 1 was contradicted in 1 of 3 examples'
    """
    log = ev.decompositions.get("log")
    told = f"a {axis_words(ev)['said']} of 0 or 1 was contradicted"
    if ev.infinite_rows and ev.target in (*FORECASTS, "class-wise", "pairs"):
        return f"{told} in {some_of(ev, ev.infinite_rows, out_of=True)}"
    if log is None or log.bandwidth is not None:  # infinite by what lies beside it
        return ""
    return told if log.calibration == inf else ""


def signs_in(ev: Evaluation) -> list[str]:
    """Signs of miscalibration beside the headline: what has an interval that excludes 0."""
    others = {
        f"{name} d_CAL": parts.calibration
        for name, parts in ev.decompositions.items()
        if name != ev.divergence and isfinite(parts.calibration)
    }
    printed = (x for x in MEASURES.values() if x.line and x.inflated)
    others |= {x.label: ev.metrics[x.key] for x in printed if x.key in ev.metrics}
    if "confidence_gap" in ev.metrics:
        mean = f"mean {axis_words(ev)['said']}"
        others[f"{mean} less {axis_words(ev)['hit']}"] = ev.metrics["confidence_gap"]
    return [name for name, value in others.items() if excludes_zero(value)]


def directions(comparison: Comparison) -> list[str]:
    """Which models are far too sure, or not sure enough, and by how much."""
    far: dict[str, list[str]] = {}
    for ev in comparison:
        if word := direction(ev, NOTED):
            points = 100 * abs(ev.metrics["confidence_gap"])
            far.setdefault(word, []).append(f"{ev.name} ({points:.1f} points)")
    return [f"{word} on average: {names(models)}." for word, models in far.items()]


def direction(ev: Evaluation, least: float = FAR_OFF) -> str:
    """Which way the mean confidence is off, if it is by so much and not by chance.

    Examples
    --------
    >>> import calibrant as cal
    >>> direction(cal.evaluate_pairs([1, 0] * 30, [0.9] * 60))
    'Over-confident'
    >>> direction(cal.evaluate([1, 0] * 30, probs=[0.9] * 60, target="positive"))
    'Forecasts too high'
    >>> direction(cal.evaluate_pairs([1, 0], [0.9, 0.9]))
    ''
    """
    gap = ev.metrics.get("confidence_gap", Estimate(0.0))
    told = gap if gap.interval is not None else ev.decomposition.calibration
    if not excludes_zero(told) or not gap or abs(gap) < least:
        return ""
    return DIRECTIONS[ev.target in FORECASTS][gap > 0]


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


def in_one_line(ev: Any) -> str:
    """Name, size and headline of a model, or the names of several."""
    if not isinstance(ev, Evaluation):
        names = shown_names(ev.names).values()
        return f"{type(ev).__name__}({', '.join(map(repr, names))})"
    parts = ev.decomposition
    bare = replace(parts, calibration=Estimate(float(parts.calibration)))
    return (
        f"Evaluation({one_line(ev.name, MOST_NAME)!r}, {sample_size(ev)}, {ev.target}, "
        f"{ev.divergence} {_sum(bare)})"
    )


def _decomposition_lines(ev: Evaluation) -> list[str]:
    head = "proper score = calibration error + sharpness gap"
    if any(parts.calibration.interval for parts in ev.decompositions.values()):
        head += f"  [{100 * float(ev.settings['level']):g}% interval]"
    ordered = sorted(ev.decompositions, key=lambda name: name != ev.divergence)
    width = max(len(name) for name in ordered)
    lines = [f"  {name:<{width}}  {_sum(ev.decompositions[name])}" for name in ordered]
    if (how := estimator_in_words(ev)) != ADAPTIVE:
        lines.append(f"  d_CAL is {how}")
    if published := _as_published(ev):
        lines.append(f"  {published}")
    return [head, *lines]


def _as_published(ev: Evaluation) -> str:
    """The headline by the paper's estimator, if it is another."""
    made = attrgetter("bandwidth", "kernel", "boundary", "estimator")
    if made(ev.decomposition) == made(ev.paper):
        return ""
    how = f"the paper's estimator (bandwidth {ev.paper.bandwidth:g})"
    return f"{ev.divergence}, {how}: {_sum(ev.paper)}"


def _sum(parts: Decomposition) -> str:
    digits = digits_of(parts.calibration)
    total, gap = (number(x, digits) for x in (parts.total, printed_gap(parts, digits)))
    return f"{total} = {with_interval(parts.calibration, digits)} + {gap}"


FOUR, MOST_DECIMALS = 4, 8


def digits_of(value: Estimate) -> int:
    """Decimals that show something of a number and its interval: four, or as many as needed.

    An end above 0 does not print as 0, if eight decimals show it.

    Examples
    --------
    >>> digits_of(Estimate(0.00008, (0.00002, 0.00035))), digits_of(Estimate(0.2))
    (5, 4)
    >>> digits_of(Estimate(0.0004, (0.00003, 0.0011)))
    5
    """
    ends = value.interval or (0.0,)
    size = max(abs(float(value)), *map(abs, ends))
    if not 10.0**-MOST_DECIMALS <= size < inf:
        return FOUR
    needed = FOUR if size >= SHOWS else min(1 - floor(log10(size)), MOST_DECIMALS)
    if ends[0] >= 10.0**-MOST_DECIMALS:
        while not round(ends[0], needed):
            needed += 1
    return needed


SHOWS = 5e-4
"""From here on four decimals show a digit that counts."""


def _labels(ev: Evaluation, **words: str) -> dict[str, str]:
    """What the metrics that are shown are called, of those there are."""
    if ev.target == "pairs":
        words["accuracy"] = "share correct"
    printed = {key: measure.line for key, measure in MEASURES.items() if measure.line}
    return {key: word for key, word in (printed | words).items() if key in ev.metrics}


def _metric_lines(ev: Evaluation) -> list[str]:
    labels = _labels(ev, ece=f"ECE ({ev.settings['bins']} bins)")
    width = max(map(len, labels.values()))
    return [
        f"  {label:<{width}}  {_precise(ev.metrics[key])}{_why_above(ev, key)}"
        for key, label in labels.items()
    ]


def _precise(value: Estimate) -> str:
    return with_interval(value, digits_of(value))


MOST_GROUPS = 12
"""Groups that print lists; more are counted."""


def _group_lines(ev: Evaluation) -> list[str]:
    """Names and sizes of the groups, and the headline of each."""
    listed = sorted(ev.per_group, key=natural)[:MOST_GROUPS]
    if not listed:
        return []
    sums = {
        one_line(name, MOST_NAME): (_sum(own.decomposition), sample_size(own))
        for name, own in ((name, ev.per_group[name]) for name in listed)
    }
    first, second = max(map(len, sums)), max(len(x) for x, _ in sums.values())
    lines = [f"  {x:<{first}}  {y:<{second}}  {z}" for x, (y, z) in sums.items()]
    count = len(ev.per_group)
    head = f"{count:,} group{'' if count == 1 else 's'}, {ev.divergence}:"
    more = [f"  and {count - MOST_GROUPS:,} more"] * (count > MOST_GROUPS)
    return ["", head, *lines, *more]


def _why_above(ev: Evaluation, key: str) -> str:
    """Why a number lies above its own interval, if it does."""
    if not lifted(ev.metrics[key]):
        return ""
    debiased = ev.metrics.get("ece_debiased") if key == "ece" else None
    more = (
        "" if debiased is None else f" (debiased, root mean square: {number(debiased)})"
    )
    return f"  biased up by noise{more}"


def _methods(ev: Evaluation) -> str:
    """How the intervals that are shown were found."""
    parts = sorted(ev.decompositions.items(), key=lambda x: x[0] != ev.divergence)
    errors = [(f"{name} d_CAL", x.calibration) for name, x in parts]
    others = [(label, ev.metrics[key]) for key, label in _labels(ev, ace="ACE").items()]
    told = methods_of([*errors, *others])
    return f"intervals: {told}." if told else ""


def _notes(ev: Evaluation) -> list[str]:
    """What a reader should know before quoting a number."""
    notes = [in_which_direction(ev), in_case_of_none(ev)]
    if any(map(lifted, map(ev.metrics.__getitem__, _labels(ev)))):
        notes.append(
            "biased up by noise: above 0 even for a calibrated model, and above the "
            "interval, where noise is taken out."
        )
    values = [float(parts.calibration) for parts in ev.decompositions.values()]
    if round(min(values), 4) < 0:
        notes.append(
            "a calibration error below 0 means that none was found; intervals begin at 0."
        )
    if any(printed_gap(parts) < 0 for parts in ev.decompositions.values()):
        notes.append(f"a {GAP_BELOW_0}")
    log = ev.decompositions.get("log")
    if log is not None and not float(log.total) > 0:
        notes.append(
            "every example was certain and correct: what an error would add to the NLL has "
            "no bound, so it has no interval."
        )
    if log is not None and isnan(log.calibration):
        notes.append("the log calibration error needs at least 50 examples.")
    if ev.per_class:
        notes.append(
            "scores are summed over the classes, each against the rest, and the calibration "
            "error is estimated from all of them together; each class is in per_class."
        )
    if ev.settings.get("preset") == "paper":
        notes.append("d_CAL as published has no interval; leave out preset= for one.")
    fineness = resolution(ev)
    notes += [*map(in_brief, ev.audit()), fineness and f"{fineness}.", _methods(ev)]
    return [note for note in notes if note]


def in_case_of_none(ev: Evaluation) -> str:
    """How large an error d_CAL leaves room for, where it finds none, and what others say."""
    error, found = ev.decomposition.calibration, verdict(ev)
    if not found and effective(ev) < LEAST_ROWS:
        return "there are too few examples to tell whether the model is calibrated."
    if found not in ("weak", "none") or error.interval is None:
        return ""
    reach = f"reaches from 0 to {error.interval[1]:.2g}"
    if found == "none":
        told = f"the interval of d_CAL {reach} (this does not prove calibration)"
        return f"no evidence of miscalibration: {told}."
    signs = signs_in(ev)
    told = f"{listed(signs)} exclude{'s' * (len(signs) == 1)} 0"
    told = f"the interval{'s' * (len(signs) > 1)} of {told}, that of d_CAL {reach}"
    return f"weak evidence of miscalibration: {told}."


def in_which_direction(ev: Evaluation) -> str:
    """Too sure or not sure enough; for a positive class, too high or too low."""
    if not (word := direction(ev, NOTED)):
        return ""
    gap = ev.metrics["confidence_gap"]
    mean, share = "mean confidence", "accuracy"
    if ev.target in FORECASTS:
        mean, share = "the mean forecast", "the observed frequency"
    off = f"{'exceeds' if gap > 0 else 'is below'} {share} by {abs(gap):.3f}"
    return f"{word.lower().replace(' too', ' are too')}: {mean} {off}."


# -- figures in words, for those who cannot see them ----------------------------------

NEARLY, MOSTLY = 0.01, 0.9
"""A curve this close to the diagonal is said to follow it; one that is above at this share
of its places is said to lie above."""


def describe_diagrams(models: Any, style: str = "modern") -> str:
    """What the diagrams of some models show, in a paragraph each."""
    return "\n\n".join(describe_diagram(ev, style) for ev in as_shown(models))


def describe_diagram(ev: Evaluation, style: str = "modern") -> str:
    """What a calibration-sharpness diagram shows, in one paragraph.

    Examples
    --------
    >>> import calibrant as cal
    >>> ev = cal.evaluate_pairs([1, 0, 1, 1] * 25, [0.75] * 100, name="constant")
    >>> print(describe_diagram(ev)[:101])
    Calibration-sharpness diagram of constant: 100 examples, accuracy (share correct) against confidence.
    """
    check_choice(style, "style", ("modern", "paper"))
    paper = style == "paper"
    parts = ev.paper if paper else ev.decomposition
    curve = ev.paper_curve if paper else ev.curve
    sentences = [
        _subject(ev),
        _rows(ev),
        _line(ev, curve),
        _score(ev, parts),
        _band(ev),
    ]
    if ev.divergence == "log" and ev.infinite_rows:
        some = some_of(ev, ev.infinite_rows)
        sentences.append(f"The loss of {some} is infinite.")
    return " ".join(sentences)


def _subject(ev: Evaluation) -> str:
    what = {
        "top-label": "accuracy of the predicted class",
        "positive": "observed frequency of the positive class",
        "class-wise": "observed frequency of each class, all classes together,",
        "multi-label": "observed frequency of each label, all labels together,",
        "pairs": "accuracy (share correct)",
    }.get(ev.target, "frequency of the event")
    return (
        f"Calibration-sharpness diagram of {ev.name}: {sample_size(ev, in_sentence=True)}, {what} against "
        f"{axis_words(ev)['said']}."
    )


def _rows(ev: Evaluation) -> str:
    """Where the examples are."""
    atoms, said = len(ev.atoms.count), axis_words(ev)["said"]
    if atoms == 1:
        return f"Every example has the {said} {ev.atoms.confidence[0]:.3g}."
    low, middle, high = (_digits(_quantile(ev, share)) for share in (0.05, 0.5, 0.95))
    few = f" There are only {atoms} distinct {said}s." if atoms else ""
    return (
        f"Half of the examples have a {said} of at least {middle}, and nine in ten "
        f"lie between {low} and {high}.{few}"
    )


FINE = 0.01
"""So near 0 and 1 the histogram of log-odds is the finer one."""


def _quantile(ev: Evaluation, share: float) -> float:
    """A quantile of the confidence, interpolated in the finer histogram there."""
    found = _interpolated(ev.histogram, 0.0, 1.0, share)
    if FINE <= found <= 1 - FINE:
        return found
    z = _interpolated(ev.log_odds_histogram, -LOG_ODDS_REACH, LOG_ODDS_REACH, share)
    return 1 / (1 + exp(-z))


def _interpolated(weights: np.ndarray, low: float, high: float, share: float) -> float:
    below = np.concatenate([[0.0], np.cumsum(weights)])
    edges = np.linspace(low, high, len(below))
    return float(np.interp(share * below[-1], below, edges))


def _digits(x: float) -> str:
    """A number from 0 to 1; near an end with two digits of what is left to it.

    Examples
    --------
    >>> [_digits(x) for x in (0.6696, 0.000837, 0.99987, 4e-9, 1 - 4e-9)]
    ['0.67', '0.00084', '0.99987', '4e-09', '1 - 4e-09']
    """
    left = min(x, 1 - x)
    if left >= FINE:
        return f"{x:.3g}"
    if x < FINE or left <= 0:
        return f"{x:.2g}"
    return f"{x:.{1 - floor(log10(left))}f}" if left > 1e-6 else f"1 - {left:.1g}"


def _line(ev: Evaluation, curve: Curve) -> str:
    """How the curve lies to the diagonal, where examples support it."""
    atoms, words = ev.atoms, axis_words(ev)
    if len(atoms.count) == 1:
        return f"The {words['hit']} there is {number(atoms.accuracy[0], 3)}."
    seen = np.isfinite(curve.accuracy) & (
        curve.support >= min(GEOMETRY.enough_rows, ev.n / 10)
    )
    if not seen.any():
        return "There are too few examples for a curve."
    h, m = curve.confidence[seen], curve.accuracy[seen]
    off = m - h
    worst = int(np.argmax(np.abs(off)))
    low, high = (
        DIRECTIONS[words["said"] == "forecast"] if direction(ev, 0.0) else ("", "")
    )
    side, said = _side(off, low.lower(), high.lower()), words["said"]
    ends = f"from {m[0]:.2f} at {said} {h[0]:.2f} to {m[-1]:.2f} at {h[-1]:.2f}"
    far = f"furthest at {said} {h[worst]:.2f}, where it is {m[worst]:.2f}"
    return f"The curve runs {ends} and {side}, {far}."


def _side(off: np.ndarray, low: str, high: str) -> str:
    """Where the curve lies, and what that means, if it is more than chance."""
    above, below = off.max(), -off.min()
    if max(above, below) < NEARLY:
        return "follows the diagonal"
    if below < NEARLY:
        on = "" if np.mean(off > 0) > MOSTLY else "on or "
        return f"lies {on}above the diagonal" + (f" ({low})" if low else "")
    if above < NEARLY:
        on = "" if np.mean(off < 0) > MOSTLY else "on or "
        return f"lies {on}below the diagonal" + (f" ({high})" if high else "")
    return "crosses the diagonal"


def _score(ev: Evaluation, parts: Decomposition) -> str:
    digits = digits_of(parts.calibration)
    cal = f"a calibration error of {number(parts.calibration, digits)}"
    if parts.calibration.interval is not None and isfinite(parts.calibration):
        low, high = (number(end, digits) for end in parts.calibration.interval)
        level = 100 * float(ev.settings["level"])
        cal += f" ({level:g}% interval {low} to {high})"
    name = score_in_words(parts.divergence)
    total, gap = (number(x, digits) for x in (parts.total, printed_gap(parts, digits)))
    return f"The {name} of {total} is {cal} plus a sharpness gap of {gap}."


def _band(ev: Evaluation) -> str:
    curve = ev.paper_curve
    height = curve.density * curve.sharpness_gap
    if np.isinf(height).any():
        return "The band of the sharpness gap has no end where the loss is infinite."
    widest = int(np.nanargmax(height))
    return (
        f"The band of the sharpness gap is widest at {axis_words(ev)['said']} "
        f"{curve.confidence[widest]:.2f}, where it is {height[widest]:.2f} high."
    )
