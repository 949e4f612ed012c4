"""`compare_groups`: the same model on groups of rows, and whether it is alike on all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, floor, isfinite, log10
from typing import Annotated, Any, ClassVar, Unpack

import numpy as np

from calibrant._base.checks import MOST_NAME, check_choice, one_line
from calibrant._base.evaluation import Evaluation
from calibrant._base.measures import MEASURES
from calibrant._base.records import (
    Amount,
    Estimate,
    OneOf,
    Range,
    Record,
    Share,
    listed,
)
from calibrant._base.text import aligned, number, with_interval, wrapped
from calibrant._inputs.arrays import Column, Index, Table, sigmoid
from calibrant._inputs.options import Options, Settings, takes_options
from calibrant._inputs.predictions import Predictions, read_predictions
from calibrant._rows.columns import Columns, log_odds_of
from calibrant._rows.reduce import reduce_to_columns
from calibrant._sketch.sketch import Sketch
from calibrant._stats import close_pairs
from calibrant._stats.curve import LEAST_ROWS
from calibrant._verbs.by_group import natural
from calibrant._verbs.compare import (
    Contrast,
    compare,
    is_clear,
    multiple_note,
    name_of,
    shows,
    told,
)
from calibrant._verbs.evaluate import check_alone, evaluate

WORST = ("brier", "nll", "calibration", "sharpness_gap", "accuracy")
"""Metrics whose intervals are closed forms, so that they reach far into the tails."""

BINS, ROWS_A_BIN, FAR = 20, 40, 8.0
"""Bins at most, rows of each group in one on average, and log-odds that are extreme."""

EVENTS_A_BIN, ENOUGH = 5, 20.0
"""Events (or their opposites, if rarer) in a bin on average, and expected in each group from
which on chi-squared is trusted."""

DRAWS, AT_ONCE = 1999, 2_000_000
"""Data sets that are simulated where it is not, and numbers held in memory for them."""


@dataclass(frozen=True, slots=True)
class EqualityTest(Record):
    """Whether groups are calibrated alike, whatever their confidences.

    Attributes
    ----------
    statistic, df : float, int
        Chi-squared, and its degrees of freedom.
    p_value : float
        How often groups that are calibrated alike look as different.
    law : str
        Where the p-value is from: ``"chi-squared"``, or ``"simulated"`` where a group has
        few expected events.

    Examples
    --------
    >>> import calibrant as cal
    >>> y, p, sex = [1, 0, 1, 1] * 60, [0.9, 0.4, 0.8, 0.7] * 60, ["f"] * 120 + ["m"] * 120
    >>> round(cal.compare_groups(y, probs=p, group=sex).equality.p_value, 3)
    1.0
    """

    statistic: Amount
    df: Annotated[int, Range(0)]
    p_value: Share
    law: Annotated[str, OneOf(("chi-squared", "simulated"))] = "chi-squared"


class TooFewEventsError(ValueError):
    """A group has too few expected events for a test."""


def equal_calibration(
    columns: Columns, group: Index, clusters: Index | None = None
) -> EqualityTest:
    """Test that accuracy at a confidence is the same in every group.

    What all groups share is fitted: a shift of the log-odds in each bin of confidence.
    Residuals from it are compared by a shift of each group and by one that grows with the
    log-odds, so that groups of other confidences, or of a model that is off for all alike,
    do not count as different. Where a group has few expected events, outcomes are drawn
    from the fit for the p-value. Residuals of clusters, weights and soft labels cannot be:
    then it is a `TooFewEventsError`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> h, group = rng.random(4000), np.arange(4000) % 2
    >>> hit = (rng.random(4000) < h**2).astype(float)  # off, but in both
    >>> equal_calibration(Columns(h, None, hit), group).p_value > 0.05
    True
    """
    from scipy.special import chdtrc

    w, hit = columns.weights, columns.hit
    bins = bins_of_rows(columns, _least_in_a_bin(columns, group))
    m = common_fit(columns, bins)
    part = _parts(columns, group, bins, m)
    moves, noise = part * (w * (hit - m)), w * m * (1 - m)
    drawn = clusters is None and counts_events(columns)
    spread = (part * noise) @ part.T if drawn else _spread(columns, moves, clusters)
    values, vectors = np.linalg.eigh(spread)
    kept = values > 1e-9 * max(values.max(initial=0.0), 1e-300)
    along = vectors[:, kept].T / np.sqrt(values[kept])[:, None]
    found, df = float(((along @ moves.sum(axis=1)) ** 2).sum()), int(kept.sum())
    expected = _expected(columns, group, m, clusters)
    if not df or expected.min() >= ENOUGH:
        return EqualityTest(found, df, float(chdtrc(df, found)) if df else 1.0)
    if not drawn:
        raise TooFewEventsError(_too_few(expected))
    p = _simulated(found, along @ part, w, m, group, bins)
    return EqualityTest(found, df, p, "simulated")


def _least_in_a_bin(columns: Columns, group: Index) -> float:
    """Rows that a bin must have, so that each group and each outcome is in it."""
    rate = columns.mean(columns.hit)
    rarer = max(min(rate, 1 - rate), 1e-300)
    return max(ROWS_A_BIN * (int(group.max()) + 1), EVENTS_A_BIN / rarer)


def counts_events(columns: Columns) -> bool:
    """Whether rows, or sums of rows, count events and examples."""
    w = columns.weights
    counts = np.concatenate([w, w * columns.hit])
    whole = np.abs(counts - np.rint(counts)) < 1e-6
    return columns.squared is None and bool(whole.all())


def common_fit(columns: Columns, bins: Index) -> Column:
    """Probabilities whose log-odds are shifted in each bin, as often right as the hits.

    Examples
    --------
    >>> columns = Columns(np.array([0.2, 0.8]), None, np.array([1.0, 1.0]), weight=np.ones(2))
    >>> common_fit(columns, np.array([0, 0])).round(6).tolist()
    [1.0, 1.0]
    """
    w, z = columns.weights, np.clip(log_odds_of(columns.confidence), -FAR, FAR)
    wanted = np.bincount(bins, w * columns.hit)
    low, high = np.full(len(wanted), -40.0), np.full(len(wanted), 40.0)
    for _ in range(60):
        middle = (low + high) / 2
        over = np.bincount(bins, w * sigmoid(z + middle[bins])) > wanted
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return sigmoid(z + ((low + high) / 2)[bins])


def _parts(columns: Columns, group: Index, bins: Index, m: Column) -> Table:
    """How much a residual of each row moves each group: nothing that a bin shares."""
    noise = columns.weights * m * (1 - m)
    z = np.clip(log_odds_of(columns.confidence), -FAR, FAR)
    mass = np.maximum(np.bincount(bins, noise), 1e-300)
    level = np.bincount(bins, noise * z) / mass
    apart = level - (mass @ level) / mass.sum()
    shapes = [np.ones(len(mass)), apart] if np.ptp(level) > 0 else [np.ones(len(mass))]
    parts = []
    for own in range(int(group.max()) + 1):
        inside = group == own
        share = np.bincount(bins, noise * inside) / mass
        parts += [(inside - share[bins]) * x[bins] for x in shapes]
    return np.array(parts)


def _spread(columns: Columns, moves: Table, clusters: Index | None) -> Table:
    """Covariance of sums of moves by what they are, whatever the law of the hits."""
    if clusters is None:
        return (moves * (columns.squares / columns.weights**2)) @ moves.T
    sums = np.array([np.bincount(clusters, x) for x in moves])
    return sums @ sums.T


def _expected(
    columns: Columns, group: Index, m: Column, clusters: Index | None
) -> Column:
    """Events expected of each group, or their opposites if rarer, as independent rows."""
    w, mass = columns.weights, np.bincount(group, columns.weights)
    events = np.bincount(group, w * m)
    if clusters is None:
        square = np.bincount(group, columns.squares)
    else:
        _, place = np.unique(np.stack([group, clusters]), axis=1, return_inverse=True)
        own = np.bincount(place.ravel(), w)
        first = np.unique(place.ravel(), return_index=True)[1]
        square = np.bincount(group[first], own**2)
    return np.minimum(events, mass - events) * mass / square


def _too_few(expected: Column) -> str:
    return (
        "No test of equal calibration: with weights, clusters or soft labels each group "
        f"needs {ENOUGH:g} expected events and non-events, and one has "
        f"{expected.min():.2g}. Put small groups together."
    )


def _simulated(
    found: float, along: Table, w: Column, m: Column, group: Index, bins: Index
) -> float:
    """How often outcomes drawn from the fit take the statistic as far.

    Rows of one group and bin and of nearly one probability are drawn together.
    """
    fine = np.floor(4 * np.clip(log_odds_of(m), -20, 20)).astype(np.intp)
    _, first, cell = np.unique(
        np.stack([group, bins, fine]), axis=1, return_index=True, return_inverse=True
    )
    count, claimed = (np.bincount(cell.ravel(), x) for x in (w, w * m))
    rng, whole, far, left = np.random.default_rng(0), np.rint(count), 0, DRAWS
    rate, moves = np.clip(claimed / count, 0, 1), along[:, first].T
    while left > 0:
        size = min(left, max(AT_ONCE // len(count), 1))
        drawn = rng.binomial(whole.astype(np.int64), rate, (size, len(count)))
        redrawn = (((drawn - claimed) @ moves) ** 2).sum(axis=1)
        far, left = far + int((redrawn >= found * (1 - 1e-9)).sum()), left - size
    return (1 + far) / (1 + DRAWS)


def bins_of_rows(columns: Columns, least: float, most: int = BINS) -> Index:
    """Bins of equal weight, few enough that each has at least so many rows; ties unsplit."""
    count = int(np.clip(columns.effective / least, 1, most))
    order = np.argsort(columns.confidence, kind="stable")
    h, w = columns.confidence[order], columns.weights[order]
    before = np.cumsum(w) - 0.5 * w
    place = np.minimum((before / w.sum() * count).astype(np.intp), count - 1)
    first = np.concatenate([[True], np.diff(h) > 0])  # ties stay together
    place = place[np.flatnonzero(first)][np.cumsum(first) - 1]
    bins = np.empty(len(h), np.intp)
    bins[order] = np.unique(place, return_inverse=True)[1]
    return bins


# -- the record ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Groups(Contrast):
    """One model on several groups of rows, each compared with a baseline group.

    A `Comparison` whose models are the groups: it prints, draws (small multiples), makes
    tables and reports as any other. ``calibrant.plot.groups`` draws all in one.

    Attributes
    ----------
    model : str
        Name of the model.
    worst : dict of str to Estimate
        By metric, the worst value of any group. The interval is that of the worst of all
        true values, whichever group has it, and not that of the group named.
    worst_group : dict of str to str
        Where it was found.
    equality : EqualityTest or None
        Whether groups are calibrated alike.
    untested : str
        Why there is no such test, if there is a reason to tell.
    origin : str
        Where the groups come from, if they were not given.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p, region = rng.random(3000), np.repeat(["east", "north", "west"], 1000)
    >>> y = rng.random(3000) < np.where(region == "west", p**2, p)
    >>> found = cal.compare_groups(y, probs=p, group=region)
    >>> found.names, found.worst_group["calibration"]
    (('east', 'north', 'west'), 'west')
    >>> found.equality.p_value < 0.001
    True
    """

    model: str = "model"
    worst: Mapping[str, Estimate] = field(default_factory=dict)
    worst_group: Mapping[str, str] = field(default_factory=dict)
    equality: EqualityTest | None = None
    origin: str = ""
    untested: str = ""
    _each: ClassVar = "group"

    def _told(self) -> Iterator[str]:
        """Differences that are significant, group by group."""
        base, any_clear = one_line(self.baseline, MOST_NAME), False
        for name, found in self.differences.items():
            clear = [
                key
                for key in told(found, self[0])
                if is_clear(found[key]) and shows(found[key])
            ]
            any_clear |= bool(clear)
            if clear:
                parts = [
                    f"{name_of(key, self[0].divergence)} {_change(found[key])}"
                    for key in clear
                ]
                yield f"{one_line(name, MOST_NAME)} against {base}: {listed(parts)}."
        if not any_clear:
            yield f"No group differs significantly from {base}."

    def _reminders(self) -> Iterator[str]:
        yield from multiple_note(self._claims(), self.level, self[0].divergence)
        keys = [key for key in ("brier", "calibration") if key in self.worst]
        yield from map(self._largest, keys)
        if self.equality is not None:
            p = self.equality.p_value
            said = (
                "Groups have different calibration curves"
                if p < 1 - self.level
                else "No evidence that groups have different calibration curves"
            )
            yield f"{said} (p = {p:.2g}, one test of all groups)."
        if self.untested:
            yield self.untested
        yield from few_note(
            (ev.n, {key: MEASURES[key].of(ev) for key in PRINTED}) for ev in self
        )
        if self.origin:
            yield self.origin

    def _largest(self, key: str) -> str:
        """Where the largest of all groups lies, and which seems to have it."""
        value, where = self.worst[key], one_line(self.worst_group[key], MOST_NAME)
        digits = digits_of([value])
        said, seen = f"The largest {name_of(key)} of all groups", number(value, digits)
        if value.interval is None:
            return f"{said} was found in {where}: {seen}."
        low, high = (number(end, digits) for end in value.interval)
        return f"{said} lies in [{low}, {high}]; it was found in {where}, {seen}."

    def _disagreement(self) -> str | None:
        strange = {*self.worst_group.values()} - {*self.names}
        if strange or {*self.worst} != {*self.worst_group}:
            return "must name a group for each worst value"
        return Contrast._disagreement(self)

    @property
    def against(self) -> str:
        """Nothing: each sentence says what it compares with."""
        return ""

    def __str__(self) -> str:
        keys = [key for key in PRINTED if MEASURES[key].of(self[0]) is not None]
        counts = self._counts()
        rows = [["group", *counts, *(MEASURES[key].label for key in keys)]]
        columns = [column_texts([MEASURES[key].of(ev) for ev in self]) for key in keys]
        shown = zip(*counts.values(), *columns, strict=True)
        for ev, row in zip(self, shown, strict=True):
            rows.append([one_line(ev.name, MOST_NAME), *row])
        head = f"{one_line(self.model, MOST_NAME)}: {len(self)} groups, {self._size()}"
        head += f"  [{100 * self.level:g}% intervals]"
        return "\n".join([head, "", *aligned(rows), "", *map(wrapped, self.sentences)])

    def _counts(self) -> dict[str, list[str]]:
        """Columns of sizes: examples, and those left out if there are any."""
        found = {"examples": [ev.n for ev in self]}
        if any(ev.left_out for ev in self):
            found["left out"] = [ev.left_out for ev in self]
        return {x: [f"{n:,.10g}" for n in sizes] for x, sizes in found.items()}

    def _size(self) -> str:
        """Examples of all groups, and the share of them that is not left out."""
        n, left = sum(ev.n for ev in self), sum(ev.left_out for ev in self)
        clustered = any(ev.n_clusters for ev in self)
        said = f"{n:,.10g} examples{' in clusters' * clustered}"
        if left:
            said += f" (coverage {100 * n / (n + left):.3g} %: {left:,.10g} left out)"
        return said


PRINTED = ("brier", "calibration", "ece", "accuracy")


def column_texts(values: Sequence[Estimate]) -> list[str]:
    """Numbers of one column of a table, with their intervals."""
    digits = digits_of(values)
    return [with_interval(x, digits) for x in values]


def digits_of(values: Iterable[Estimate]) -> int:
    """Decimals by which the largest number shows two digits: 4, or more if all are small.

    A lower end above 0 is not printed as 0, either.

    Examples
    --------
    >>> digits_of([Estimate(0.03), Estimate(0.0001)]), digits_of([Estimate(0.00031)])
    (4, 5)
    >>> digits_of([Estimate(0.0006, (0.00004, 0.003))])
    5
    """
    found = [x for x in values if isfinite(x)]
    most = max((abs(float(x)) for x in found), default=0.0)
    if not most:
        ends = [abs(end) for x in found for end in x.interval or () if isfinite(end)]
        most = max(ends, default=0.0)
    lows = [x.interval[0] for x in found if x.interval and x.interval[0] > 0]
    shown = [ceil(-log10(2 * low)) for low in lows if low > 1e-7]
    return min(max(1 - floor(log10(most)), 4, *shown), 8) if most else 4


def few_note(rows: Iterable[tuple[float, Mapping[str, Estimate]]]) -> Iterator[str]:
    """Why some rows of a table have no interval of errors of calibration."""
    least = {"calibration": LEAST_ROWS, "ece": close_pairs.LEAST_ROWS}
    lacking = {
        key
        for n, found in rows
        for key, enough in least.items()
        if key in found and found[key].interval is None and n < enough
        if isfinite(found[key]) and found["brier"].interval is not None
    }
    if lacking:
        said = [f"{name_of(x)} below {least[x]:g}" for x in least if x in lacking]
        yield f"No interval of {listed(said)} examples: so few do not tell."


def _change(value: Estimate) -> str:
    """How much higher or lower, with its interval."""
    sign = "higher" if value > 0 else "lower"
    low, high = sorted(map(abs, value.interval or (value, value)))
    return f"{number(abs(value))} {sign} [{number(low)}, {number(high)}]"


@takes_options
def compare_groups(
    y: Any,
    *,
    probs: Any = None,
    logits: Any = None,
    confidence: Any = None,
    group: Any = None,
    baseline: str | None = None,
    classes: Any = None,
    target: str | None = None,
    sample_weight: Any = None,
    frequency: Any = None,
    cluster: Any = None,
    name: str = "model",
    **options: Unpack[Options],
) -> Groups:
    """Compare groups of rows: sizes, differences, the worst group, and a test of equality.

    Parameters
    ----------
    y : array_like or Sketch
        As in `evaluate`; a `Sketch` that was updated with ``group=``.
    probs, logits, confidence, classes, target, sample_weight, frequency, cluster, name
        As in `evaluate`.
    group : array_like
        The group of each row.
    baseline : str, optional
        The group others are compared with; the largest by default.
    **options : Options

    Returns
    -------
    Groups
        A comparison whose models are the groups; print it to read it.

    Notes
    -----
    Differences are unpaired: the intervals of two groups combined. With many groups some
    exclude 0 by chance; the note on Holm's correction says which remain. The interval of
    the worst is that of the maximum over groups, all at once, each at level ** (1 / groups) (Sidak;
    with clusters that several groups share, Bonferroni).

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(1)
    >>> p, sex = rng.random(2000), np.repeat(["f", "m"], 1000)
    >>> found = cal.compare_groups(rng.random(2000) < p, probs=p, group=sex)
    >>> found.equality.p_value > 0.05
    True
    """
    settings = Settings.of(options, compare_groups)
    beside = {
        "sample_weight": sample_weight,
        "frequency": frequency,
        "cluster": cluster,
    }
    scores = {"probs": probs, "logits": logits, "confidence": confidence}
    about = {"classes": classes, "target": target, "group": group}
    if isinstance(y, Sketch):
        check_alone((*scores.values(), *beside.values(), *about.values()))
        given: dict[str, Any] = {"y": y}
        test, shared = _test_of_sketch(y), False
    else:
        given = {"y": y, **scores, **beside, **about}
        rows = read_predictions(**given)
        test, shared = _test_of_rows(rows, settings), _crosses(rows)

    def measure(level: float) -> Evaluation:
        own: dict[str, Any] = {**options, "level": level}
        return evaluate(**given, name=name, **own)

    return _compare(measure, settings.level, baseline, name, test, shared=shared)


def _compare(
    measure: Callable[[float], Evaluation],
    level: float,
    baseline: str | None,
    name: str,
    test: EqualityTest | str,
    *,
    shared: bool,
) -> Groups:
    """Compare what an evaluation says of its groups."""
    found = _named(measure(level))
    if baseline is None:
        baseline = max(found, key=lambda ev: ev.n).name
    check_choice(baseline, "baseline", tuple(ev.name for ev in found))
    plain = compare(*found, paired=False, level=level, baseline=baseline)
    each = 1 - (1 - level) / len(found) if shared else level ** (1 / len(found))
    worst = _worst(_named(measure(each)))
    return Groups(
        plain.evaluations,
        plain.protocol,
        plain.effects,
        plain.shared_rows,
        baseline=baseline,
        level=float(level),
        paired=False,
        differences=plain.differences,
        model=name,
        worst={key: value for key, (value, _) in worst.items()},
        worst_group={key: where for key, (_, where) in worst.items()},
        equality=None if isinstance(test, str) else test,
        untested=test if isinstance(test, str) else "",
    )


def _named(ev: Evaluation) -> list[Evaluation]:
    if len(ev.per_group) < 2:
        raise ValueError(
            f"compare_groups needs two groups or more, got {len(ev.per_group)}: give "
            "group=, the group of each row."
        )
    found = sorted(ev.per_group.items(), key=lambda item: natural(item[0]))
    return [replace(own, name=name) for name, own in found]


def _worst(groups: Sequence[Evaluation]) -> dict[str, tuple[Estimate, str]]:
    """The worst value of each metric, and the ends of the worst at once."""
    found = {}
    for key in WORST:
        measure = MEASURES[key]
        values = {ev.name: measure.of(ev) for ev in groups}
        if not all(isfinite(x) for x in values.values()):
            continue
        choose: Any = min if measure.higher_is_better else max
        where = choose(values, key=lambda name: float(values[name]))
        ends = [x.interval for x in values.values() if x.interval is not None]
        whole = len(ends) == len(values)
        interval = (
            (choose(x for x, _ in ends), choose(y for _, y in ends)) if whole else None
        )
        method = "simultaneous" if whole else None
        found[key] = Estimate(float(values[where]), interval, method), where
    return found


def _crosses(rows: Predictions) -> bool:
    """Whether a cluster has rows in several groups."""
    if rows.clusters is None or rows.groups is None:
        return False
    pairs = len({*zip(rows.clusters.tolist(), rows.groups.tolist(), strict=True)})
    return pairs > len(np.unique(rows.clusters))


def _test_of_rows(rows: Predictions, settings: Settings) -> EqualityTest | str:
    """The test, or why there is none."""
    if rows.groups is None or rows.target == "class-wise":
        return ""
    columns = reduce_to_columns(rows, settings.extra, settings.engine)
    group = np.unique(rows.groups, return_inverse=True)[1]
    return _tested(columns, group, rows.clusters)


def _tested(
    columns: Columns, group: Index, clusters: Index | None = None
) -> EqualityTest | str:
    try:
        return equal_calibration(columns, group, clusters)
    except TooFewEventsError as reason:
        return str(reason)


def _test_of_sketch(sketch: Sketch) -> EqualityTest | str:
    """From sums; those of clusters do not say enough."""
    kind, groups = sketch.checked(), [*sketch.groups.values()]
    if kind is None or kind.target == "class-wise" or not groups:
        return ""
    if kind.clustered:
        return "No test of equal calibration: a sketch of clusters does not say enough; give rows."
    parts = [cells.columns(cut=False) for cells in groups]
    group = np.repeat(np.arange(len(parts)), [len(x) for x in parts])
    names = ("confidence", "hit", "weights", "squares")
    h, hit, w, w2 = (np.concatenate([getattr(x, n) for x in parts]) for n in names)
    counted = all(x.squared is None for x in parts)
    whole = Columns(h, None, hit, weight=w, squared=None if counted else w2)
    return _tested(whole, group)
