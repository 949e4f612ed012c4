"""`monitor`: how a model's numbers change from period to period, and since when."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import date
from math import exp
from typing import Annotated, Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import (
    MOST_NAME,
    RowError,
    check_choice,
    check_kind,
    check_length,
    check_number,
    check_text,
    one_line,
    read_names,
)
from calibrant._base.evaluation import Evaluation
from calibrant._base.measures import MEASURES
from calibrant._base.records import (
    Amounts,
    Estimate,
    Frame,
    Range,
    Record,
    Target,
    listed,
    to_frame,
)
from calibrant._base.text import with_interval
from calibrant._base.views import Told
from calibrant._inputs.arrays import Column, to_numpy
from calibrant._inputs.options import Options, Settings, takes_options
from calibrant._inputs.predictions import (
    LEAST_CLUSTERS,
    MOST_CLUSTER_GROUPS,
    MOST_GROUPS,
)
from calibrant._sketch.cells import Cells, Kind
from calibrant._sketch.sketch import Sketch
from calibrant._verbs.alarm import (
    Alarm,
    Line,
    gains,
    gains_of_steps,
    raise_alarm,
    rows_within,
)
from calibrant._verbs.by_group import natural
from calibrant._verbs.compare import (
    ends_of,
    independent_differences,
    is_clear,
    multiple_note,
    name_of,
    told,
)
from calibrant._verbs.compare_groups import PRINTED, column_texts, few_note
from calibrant._verbs.evaluate import check_alone, evaluate
from calibrant._verbs.features import check_rows

EVERY = ("day", "week", "month", "quarter", "year")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Monitor(Told, Record):
    """Every number of a model by period, its change since a reference, and the alarm.

    Attributes
    ----------
    name, target, divergence, level
        As in `Evaluation`: the model, what was asked of each row, the score that is split,
        and the coverage of intervals.
    periods : tuple of str
        In order of time.
    n : array
        Examples in each period.
    trend : dict of str to tuple of Estimate
        Each metric in each period, by key.
    reference : tuple of str
        The periods that others are compared with.
    baseline : dict of str to Estimate
        Each metric in the reference periods together.
    changes : dict of str to tuple of Estimate
        Each metric less its baseline, NaN in periods of the reference.
    alarm : Alarm or None
        The evidence of miscalibration so far. With clusters, None if one has rows in several
        periods, or a sketch of many does not tell; and with clusters or sample weights, None
        for ``against="reference"``.
    few_clusters : tuple of str
        Periods of fewer than 10 clusters, whose numbers have no intervals.
    no_alarm : str
        Why there is no alarm, if there is none.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, month = rng.random(3000), np.repeat(["01", "02", "03"], 1000)
    >>> y = rng.random(3000) < np.where(month == "03", p**2, p)
    >>> found = cal.monitor(y, probs=p, period=month)
    >>> found.alarm.period, found.alarm.since
    ('03', '03')
    >>> found.trend["brier"][2].interval[0] < found.trend["brier"][2]
    True
    >>> len(found.frame()["period"]) == 3 * len(found.trend)
    True
    """

    FIGURE = "trend"
    _beside = ("failed",)

    name: str
    target: Target
    divergence: str
    level: Annotated[float, Range(0, 1, above=True)]
    periods: tuple[str, ...]
    n: Amounts
    trend: Mapping[str, tuple[Estimate, ...]]
    reference: tuple[str, ...]
    baseline: Mapping[str, Estimate]
    changes: Mapping[str, tuple[Estimate, ...]]
    alarm: Alarm | None = None
    few_clusters: tuple[str, ...] = ()
    no_alarm: str = ""

    def frame(self, kind: str | None = None) -> Frame:
        """One row per period and metric: value, change, their intervals, and evidence."""
        rows = [*self._rows()]
        names = ["period", "n", "metric", "value", "low", "high"]
        names += ["change", "change_low", "change_high", "log_evidence"]
        columns = zip(*rows, strict=True)
        return to_frame(
            {x: np.array(y) for x, y in zip(names, columns, strict=True)}, kind
        )

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        log_e = self.evidence
        for place, period in enumerate(self.periods):
            for key, values in self.trend.items():
                change = self.changes[key][place]
                numbers = (*ends_of(values[place]), *ends_of(change), log_e[place])
                yield period, self.n[place], key, *numbers

    @property
    def evidence(self) -> Column:
        """Natural logarithm of the evidence after each period; NaN without an alarm."""
        nothing = np.full(len(self.periods), np.nan)
        return nothing if self.alarm is None else self.alarm.evidence

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the alarm says, how the last period differs, and what to keep in mind."""
        told = (
            self._alarm_told(),
            self._order_told(),
            self._changes_told(),
            self._few_told(),
        )
        return tuple(sentence for some in told for sentence in some)

    def _order_told(self) -> Iterator[str]:
        if not sort_by_time(self.periods):
            first = " before ".join(_called(self.periods[:2]))
            yield (
                f"Periods are in the order of their names, {first}. If that is not the "
                "order of time, name them so that it is, such as 2024-01."
            )

    def _alarm_told(self) -> Iterator[str]:
        if (alarm := self.alarm) is None:
            why = self.no_alarm or "with clusters or sample weights there may be none"
            yield f"No alarm was computed: {one_line(why)}."
            return
        null = "calibrated"
        if alarm.against == "reference":
            null = f"as in {listed(_called(self.reference))}"
        if alarm.tolerance:
            null += f" within {alarm.tolerance:g}"
        most = f"a false alarm has a probability of at most {100 * alarm.alpha:g} %, however often one looks"
        if alarm.period is None:
            found = f"too little evidence that the model is not {null}"
            proof = f"this does not prove that it is; p = {alarm.p_value:.2g}"
            yield f"No alarm: {found} ({proof}; {most})."
            return
        where, since = (
            f"period {name}" if name.isdecimal() else name
            for name in _called((alarm.period, str(alarm.since)))
        )
        odds = exp(min(float(alarm.evidence.max()), 700.0))
        yield (
            f"ALARM in {where}: the model is not {null}, most likely since {since} "
            f"(evidence {odds:.3g} : 1; {most})."
        )

    def _changes_told(self) -> Iterator[str]:
        last, base = self.periods[-1], listed(_called(self.reference))
        if last in self.reference:
            return
        latest = {key: found[-1] for key, found in self.changes.items()}
        said = {key: latest[key] for key in told(latest)}
        clear = [key for key in said if is_clear(said[key])]
        for key in clear:
            change = with_interval(said[key])
            yield f"{_called((last,))[0]}: {name_of(key)} changed by {change} since {base}."
        if not any(x.interval for x in said.values()):
            yield f"{_called((last,))[0]}: no change since {base} has an interval."
        elif not clear:
            yield f"{_called((last,))[0]}: no metric differs significantly from {base}."
        yield from multiple_note(
            {(last, key): x for key, x in said.items()}, self.level
        )

    def _few_told(self) -> Iterator[str]:
        if few := self.few_clusters:
            some = "a period has" if len(few) == 1 else f"{len(few)} periods have"
            which = (
                _called(few[:1])[0] if len(few) == 1 else f"first {_called(few[:1])[0]}"
            )
            yield (
                f"No intervals where {some} fewer than {LEAST_CLUSTERS} clusters "
                f"({which}), and d_CAL there takes rows as independent. Longer periods "
                "or smaller clusters have them."
            )
        yield from few_note(
            (self.n[place], {key: x[place] for key, x in self.trend.items()})
            for place in range(len(self.periods))
        )

    def _disagreement(self) -> str | None:
        count = len(self.periods)
        lengths = {"n": len(self.n), "evidence": len(self.evidence)}
        lengths |= {f"trend of {key}": len(x) for key, x in self.trend.items()}
        lengths |= {f"changes of {key}": len(x) for key, x in self.changes.items()}
        off = [name for name, length in lengths.items() if length != count]
        if off:
            return f"has {count} periods and {lengths[off[0]]} entries of {off[0]}"
        if not self.reference:
            return "has no period of reference"
        strange = {*self.reference, *self.few_clusters} - {*self.periods}
        return f"refers to {min(strange)!r}, which is no period" if strange else None

    def _heading(self) -> str:
        count = f"{len(self.periods)} period{'s' * (len(self.periods) > 1)}"
        name, level = one_line(self.name, MOST_NAME), 100 * self.level
        examples = f"{self.n.sum():,.10g} examples{self._in_clusters()}"
        return f"{name}: {count}, {examples}  [{level:g}% intervals]"

    def _in_clusters(self) -> str:
        """What is said beside the number of examples if they belong to clusters."""
        told = " in clusters" if self.few_clusters else ""
        return told or max(map(_in_clusters, self.trend.get("brier", ())), default="")

    def _table(self) -> list[list[str]]:
        keys = [key for key in PRINTED if key in self.trend]
        head = ["period", "examples", *(MEASURES[key].label for key in keys)]
        rows = [[*head, *(["evidence"] if self.alarm else [])]]
        columns = [column_texts(self.trend[key]) for key in keys]
        for place, name in enumerate(_called(self.periods)):
            found = [column[place] for column in columns]
            odds = [_odds(self.evidence[place])] if self.alarm else []
            rows.append([name, f"{self.n[place]:,.10g}", *found, *odds])
        return rows

    def __repr__(self) -> str:
        alarm = "none" if self.alarm is None else self.alarm.period or "none"
        return f"Monitor({one_line(self.name, MOST_NAME)!r}, {len(self.periods)} periods, alarm: {alarm})"


def _odds(log_e: float) -> str:
    return f"{exp(min(log_e, 700.0)):.3g}"


def _called(names: Iterable[str]) -> list[str]:
    return [one_line(name, MOST_NAME) for name in names]


@takes_options
def monitor(
    y: Any,
    *,
    probs: Any = None,
    logits: Any = None,
    confidence: Any = None,
    period: Any = None,
    every: str | None = None,
    reference: Any = None,
    against: str = "calibration",
    alpha: float = 0.01,
    tolerance: float = 0.0,
    classes: Any = None,
    target: str | None = None,
    sample_weight: Any = None,
    frequency: Any = None,
    cluster: Any = None,
    name: str = "model",
    **options: Unpack[Options],
) -> Monitor:
    """Follow a model over time: the trend of every metric, and an alarm that may be watched.

    Parameters
    ----------
    y : array_like, Sketch, or mapping of str to Sketch
        Labels as in `evaluate`. Or a `Sketch` whose groups are the periods
        (``sketch.update(..., group=period)``): a small file that grows, merges and is
        looked at again. Or sketches by period.
    probs, logits, confidence, classes, target, sample_weight, frequency, cluster, name
        As in `evaluate`.
    period : array_like
        The period of each row: dates, or names or numbers that sort in order of time. At
        most 200 distinct ones.
    every : {"day", "week", "month", "quarter", "year"}, optional
        Put dates together in periods of this length.
    reference : str or sequence of str, optional
        Periods that others are compared with; the first by default.
    against : {"calibration", "reference"}
        What the alarm is about: that accuracy is no longer what the confidence says, or
        no longer what it was in the reference.
    alpha : float
        Largest probability of a false alarm over all of time, however often one looks.
    tolerance : float
        How far accuracy may be from that without an alarm, such as 0.02.
    **options : Options

    Returns
    -------
    Monitor
        Trend, changes and alarm; print it to read it, ``.plot()`` draws it.

    Notes
    -----
    The alarm is an e-process: money that was bet on miscalibration. See `Alarm`. It
    needs no correction for looking often, for stopping, or for periods of unequal size.
    ``against="reference"`` assumes that accuracy in the reference is a logistic function
    of confidence, and spends half of `alpha` on not knowing which.

    With ``cluster=`` a cluster (of more than 128 in a period, one of 128 groups of them) is
    one step of the e-process, which pays the mean of what its rows would. That is valid
    however its rows depend on each other, if clusters of different periods do not: each must
    lie within one period. With ``sample_weight=`` rows count as they weigh. What is assumed
    until evidence says otherwise is that accuracy equals confidence whatever the weight.

    Changes since the reference are unpaired differences with plain intervals: one in
    twenty excludes 0 by chance. The alarm is what may be watched.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> day = np.datetime64("2024-01-01") + np.arange(2000) // 10
    >>> p = rng.random(2000)
    >>> found = cal.monitor(rng.random(2000) < p, probs=p, period=day, every="month")
    >>> found.periods[:2], found.alarm.period
    (('2024-01', '2024-02'), None)
    """
    settings = Settings.of(options, monitor)
    check_text(name, "name")
    check_choice(against, "against", ("calibration", "reference"))
    check_number(alpha, "alpha", 1e-12, 0.5)
    check_number(tolerance, "tolerance", 0, 0.5)
    scores = {"probs": probs, "logits": logits, "confidence": confidence}
    beside = {
        "sample_weight": sample_weight,
        "frequency": frequency,
        "cluster": cluster,
    }
    if isinstance(y, Sketch | Mapping | Watched):
        given = (*scores.values(), *beside.values(), classes, target, period, every)
        check_alone(given)
        sketch, back = y if isinstance(y, Watched) else (y, None)
        sketch = by_period(sketch) if isinstance(sketch, Mapping) else sketch
    else:
        check_rows(y, scores, period=period)
        named = names_of_periods(period, every)
        sketch = Sketch(target=target, classes=classes, divergence=settings.main)
        _add(sketch, y, {**scores, **beside, "group": named})
        back = None if cluster is None else _coming_back(cluster, named)
    cells = in_order(sketch)
    chosen = _reference(reference, tuple(cells))
    why = _without_alarm(cells, against, _known_back(cells) if back is None else back)
    about = float(alpha), float(tolerance), against
    return _monitor(sketch, cells, chosen, about, name, options, why)


class Watched(NamedTuple):
    """A sketch, and which clusters came back in another period, of whoever saw the rows."""

    sketch: Sketch
    back: str


OF_CALIBRATION = "with clusters or sample weights it is of calibration alone, not against the reference"
UNTOLD = (
    f"a sketch of more than {MOST_CLUSTER_GROUPS} clusters does not tell whether one comes back "
    "in another period; give all examples at once (to the command without --state)"
)


def _without_alarm(cells: Mapping[str, Cells], against: str, back: str) -> str:
    """Why there is no alarm; empty if there is one."""
    if all(x.squares is None and x.clusters is None for x in cells.values()):
        return ""
    return OF_CALIBRATION if against == "reference" else back


def came_back(who: str, periods: Sequence[str], count: int) -> str:
    """That clusters have examples in several periods, and what to do."""
    more = f" (as {count:,} clusters have)" if count > 1 else ""
    return (
        f"{who} has examples in {_called(periods)[0]} and {_called(periods)[1]}{more}, and "
        "periods that share a cluster are not independent; make periods longer, or leave out "
        "examples of clusters that were there before"
    )


def _coming_back(cluster: Any, named: NDArray[np.str_]) -> str:
    """Which clusters have rows of several periods, in words; empty if none has."""
    text = to_numpy(cluster, "cluster").astype(str)
    (names, number), (periods, place) = (
        np.unique(x, return_inverse=True) for x in (text, named)
    )
    number, place = np.unique(np.stack([number, place]), axis=1)
    again = np.flatnonzero(np.diff(number) == 0)
    if not len(again):
        return ""
    first = again[0]
    who = f"cluster {one_line(names.tolist()[number[first]], MOST_NAME)!r}"
    both = periods[place[first : first + 2]].tolist()
    return came_back(who, both, len(np.unique(number[again])))


def _known_back(cells: Mapping[str, Cells]) -> str:
    """The same of sketches, which know no names; those of many clusters do not tell."""
    first: dict[int, str] = {}
    back: dict[int, str] = {}
    for period, own in cells.items():
        if own.clusters is None:
            continue
        if own.clusters.folded:
            return UNTOLD
        for number in np.unique(own.clusters.cluster).tolist():
            if first.setdefault(number, period) != period:
                back.setdefault(number, period)
    if not back:
        return ""
    number, period = next(iter(back.items()))
    return came_back("a cluster", (first[number], period), len(back))


def _add(sketch: Sketch, y: Any, given: dict[str, Any]) -> None:
    """Add rows of scores of any kind, exactly one."""
    if given["confidence"] is None:
        del given["confidence"]
        sketch.update(y, **given)
        return
    if given.pop("probs") is not None or given.pop("logits") is not None:
        raise ValueError("give exactly one of probs=, logits= and confidence=.")
    confidence = given.pop("confidence")
    sketch.update_pairs(y, confidence, **given)


def by_period(sketches: Mapping[Any, Any]) -> Sketch:
    """One sketch whose groups are the sketches given."""
    whole = Sketch()
    for sketch in sketches.values():
        check_kind(sketch, Sketch, "each period")
        whole = whole + replace_groups(sketch, {})
    found = {str(name): sketch.cells for name, sketch in sketches.items()}
    return replace_groups(whole, found)


def replace_groups(sketch: Sketch, groups: Mapping[str, Cells]) -> Sketch:
    """The same rows in other groups."""
    if (kind := sketch.checked()) is None:
        raise ValueError("a period holds no row of positive weight; leave it out.")
    return Sketch.of(kind, sketch.cells, groups)


def in_order(sketch: Sketch) -> dict[str, Cells]:
    """Sums of each period, in order of time."""
    kind = sketch.checked()
    if kind is None or not sketch.groups:
        raise ValueError(
            "monitor needs the period of each row: give period=, or to a sketch "
            "update(..., group=period)."
        )
    if kind.target == "class-wise":
        raise ValueError(
            "monitor follows one probability per row; use target='top-label' or "
            "'positive', one class at a time."
        )
    numbers = all(NUMBER.fullmatch(name) for name in sketch.groups)
    key: Any = float if numbers else natural
    order = sorted(sketch.groups, key=key)
    return {name: sketch.groups[name] for name in order}


NUMBER = re.compile(r"-?\d+(\.\d*)?")


def sort_by_time(periods: Sequence[str]) -> bool:
    """Whether the order of names is likely that of time: years first, or one number.

    Examples
    --------
    >>> sort_by_time(["2024-01", "2024-02"]), sort_by_time(["week 9", "week 10"])
    (True, True)
    >>> sort_by_time(["Feb", "Jan"]), sort_by_time(["01/02/2024", "02/01/2024"])
    (False, False)
    """
    if len(periods) < 2 or all(re.match(r"\d{4}(\D|$)", x) for x in periods):
        return True
    forms = {re.sub(r"\d+", "0", NUMBER.sub("0", x, count=1)) for x in periods}
    return len(forms) == 1 and min(forms).count("0") == 1


def _reference(given: Any, periods: tuple[str, ...]) -> tuple[str, ...]:
    if given is None:
        return periods[:1]
    asked = [given] if isinstance(given, str) else read_names(given, "reference")
    names = tuple(map(str, asked))
    for name in names:
        check_choice(name, "reference", periods)
    if not names or len({*names}) == len(periods):
        raise ValueError(
            "reference must name some periods, and leave others to compare with them."
        )
    return names


def _monitor(
    sketch: Sketch,
    cells: Mapping[str, Cells],
    reference: tuple[str, ...],
    about: tuple[float, float, str],
    name: str,
    options: Options,
    no_alarm: str,
) -> Monitor:
    kind = sketch.checked()
    assert kind is not None
    found = [_of_cells(kind, own, name, options) for own in cells.values()]
    base = found[0]
    if reference != tuple(cells)[:1]:
        base = _of_cells(kind, _sum([cells[x] for x in reference]), name, options)
    keys = [x.key for x in MEASURES.values() if x.compared and not np.isnan(x.of(base))]
    few = tuple(period for period, own in cells.items() if _few(own))
    poor, nothing = _few(_sum([cells[x] for x in reference])), Estimate(np.nan)
    each = list(zip(cells, found, strict=True))
    trend = [_values(ev, keys, bare=period in few) for period, ev in each]
    moves = [
        {} if period in reference else _moved(ev, base, bare=poor or period in few)
        for period, ev in each
    ]
    return Monitor(
        name=name,
        target=base.target,
        divergence=base.divergence,
        level=float(base.settings["level"]),
        periods=tuple(cells),
        n=np.array([ev.n for ev in found]),
        trend={key: tuple(x[key] for x in trend) for key in keys},
        reference=reference,
        baseline=_values(base, keys, bare=poor),
        changes={key: tuple(x.get(key, nothing) for x in moves) for key in keys},
        alarm=None if no_alarm else _alarm(cells, reference, *about),
        few_clusters=few,
        no_alarm=no_alarm,
    )


def _values(
    ev: Evaluation, keys: Sequence[str], *, bare: bool
) -> Mapping[str, Estimate]:
    """Numbers of a period; `bare` is without intervals."""
    values = {key: MEASURES[key].of(ev) for key in keys}
    return _bare(values) if bare else values


def _moved(ev: Evaluation, base: Evaluation, *, bare: bool) -> Mapping[str, Estimate]:
    """How far they are from those of the reference."""
    moved = independent_differences(ev, base)
    return _bare(moved) if bare else moved


def _bare(values: Mapping[str, Estimate]) -> dict[str, Estimate]:
    return {key: Estimate(float(x)) for key, x in values.items()}


def _few(cells: Cells) -> bool:
    """Whether there are too few clusters to learn how they differ."""
    return cells.clusters is not None and cells.clusters.count < LEAST_CLUSTERS


def _of_cells(kind: Kind, cells: Cells, name: str, options: Options) -> Evaluation:
    """Evaluate a period; where clusters are too few, as if its rows were independent."""
    if _few(cells):
        cells, kind = copy(cells), replace(kind, clustered=False)
        cells.clusters = None
    return evaluate(Sketch.of(kind, cells), name=name, **options)


def _sum(cells: Sequence[Cells]) -> Cells:
    whole = cells[0]
    for more in cells[1:]:
        whole = whole + more
    return whole


def _alarm(
    cells: Mapping[str, Cells],
    reference: tuple[str, ...],
    alpha: float,
    tolerance: float,
    against: str,
) -> Alarm:
    if any(x.squares is not None or x.clusters is not None for x in cells.values()):
        steps = [_gains_of_steps(own, tolerance) for own in cells.values()]
        return raise_alarm(steps, tuple(cells), alpha, tolerance, against)
    columns = {name: own.columns(cut=False) for name, own in cells.items()}
    if against == "calibration":
        rows = [rows_within(x, tolerance) for x in columns.values()]
        gain = [gains(x) for x in rows]
    else:
        line = Line.fit(_sum([cells[x] for x in reference]).columns(cut=False))
        wide = {x: line.rows(y, alpha / 2, tolerance) for x, y in columns.items()}
        gain = [gains(x) * (name not in reference) for name, x in wide.items()]
    return raise_alarm(gain, tuple(cells), alpha, tolerance, against)


def _gains_of_steps(cells: Cells, tolerance: float) -> Column:
    """Of a period whose steps are clusters or, without any, cells of weighted rows."""
    if cells.clusters is not None:
        columns, step = cells.clustered_columns()
    else:
        columns = cells.columns(cut=False)
        step = np.unique(columns.confidence, return_inverse=True)[1]
    rows = rows_within(columns, tolerance)
    return gains_of_steps(rows, np.unique(step, return_inverse=True)[1])


# -- periods of dates ------------------------------------------------------------------


MISSING = ("NaT", "nan", "None", "<NA>", "")
"""How a period that is not there is written."""


def names_of_periods(period: Any, every: str | None = None) -> NDArray[np.str_]:
    """The name of each row's period; dates in ISO order, put together if asked for.

    Examples
    --------
    >>> names_of_periods(["2024-02-29", "2024-12-30"], "week").tolist()
    ['2024-W09', '2025-W01']
    >>> names_of_periods([3, 1]).tolist()
    ['3', '1']
    """
    check_choice(every, "every", (None, *EVERY))
    if period is None:
        raise ValueError("monitor needs the period of each row: give period=.")
    given = to_numpy(period, "period")
    check_length(given, given.size, "period")
    dates = given.dtype.kind == "M"
    texts = (given.astype("datetime64[D]") if dates else given).astype(str)
    missing = np.isin(texts, MISSING)
    if missing.any():
        raise RowError.at_first("period must be given for each row;", missing, texts)
    if every is not None:
        known, place = np.unique(texts, return_inverse=True)
        texts = np.array(
            [_named(text, every, place, i) for i, text in enumerate(known)]
        )
        texts = texts[place]
    if (count := len(np.unique(texts))) > MOST_GROUPS:
        raise ValueError(
            f"period has {count:,} distinct values, more than {MOST_GROUPS}; put dates, "
            "written as 2024-03-31, together with every='week' or every='month'."
        )
    return texts


def _named(text: str, every: str, place: NDArray[np.intp], number: int) -> str:
    """The period of a date, which may have a time behind it."""
    try:
        day = date.fromisoformat(text[:10])
    except ValueError:
        row = int(np.argmax(place == number))
        rule = "period must be a date such as 2024-03-31 to be put together;"
        remedy = "Write dates so, or leave out every=."
        raise RowError(rule, row, f"is {text}", remedy=remedy) from None
    if every == "week":
        year, week, _ = day.isocalendar()
        return f"{year}-W{week:02d}"
    if every == "quarter":
        return f"{day.year}-Q{(day.month + 2) // 3}"
    return day.isoformat()[: {"day": 10, "month": 7, "year": 4}[every]]


def _in_clusters(value: Estimate) -> str:
    """What is said beside the number of examples if intervals keep clusters together."""
    return " in clusters" * (value.method or "").endswith("clusters")
