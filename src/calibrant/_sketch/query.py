"""The group-by of a lazy frame: rows become sums by cell where they are."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import check_choice
from calibrant._inputs.arrays import Column
from calibrant._inputs.divergences import BUILT_IN
from calibrant._inputs.predictions import TARGETS, Predictions
from calibrant._rows.losses import ROW_SUM_TOLERANCE
from calibrant._sketch.cells import (
    CLASS_BINS,
    MOST_CLASS_BINS,
    Cells,
    Kind,
    Totals,
    check_groups,
)
from calibrant._sketch.grid import (
    CELLS,
    LOG_ODDS_CELLS,
    LOG_ODDS_REACH,
    ORDER,
    STEPS,
    path,
)
from calibrant._sketch.sketch import Sketch, known_losses
from calibrant.files._plan import in_order, split_pattern

# ----------------------------------------------------------------------------
# Which column of a frame plays which part.


@dataclass(frozen=True, slots=True)
class Roles:
    """Names of columns, resolved: either `probs` and `y`, or a pair.

    `probs` are columns of one class each, one column of the positive class, or one
    column of lists; `losses` are columns of full losses by score.
    """

    probs: tuple[str, ...] = ()
    y: str | None = None
    confidence: str | None = None
    correct: str | None = None
    losses: Mapping[str, str] = field(default_factory=dict)
    sample_weight: str | None = None
    group: str | None = None
    target: str | None = None
    classes: tuple[Hashable, ...] | None = None

    @property
    def pairs(self) -> bool:
        """Whether rows are pairs of confidence and correctness."""
        return self.confidence is not None

    @property
    def kind(self) -> Kind:
        """What the rows are, to a sketch."""
        if self.losses:
            return Kind("top-label", (False, True), known_losses(self.losses))
        if self.pairs:
            return Kind("pairs", (False, True), dict(BUILT_IN))
        k, one = len(self.probs), len(self.probs) == 1
        target = self.target or ("positive" if one else "top-label")
        return Kind(target, self.classes or tuple(range(max(k, 2))), dict(BUILT_IN))

    @property
    def names(self) -> list[str]:
        """Every column that is read, once."""
        one = (self.y, self.confidence, self.correct, self.sample_weight, self.group)
        given = [*self.probs, *self.losses.values(), *one]
        return list(dict.fromkeys(name for name in given if name is not None))


def read_roles(
    columns: Sequence[str],
    *,
    y: str | None,
    probs: str | Sequence[str] | None,
    confidence: str | None,
    correct: str | None,
    loss: str | Mapping[str, str] | None,
    sample_weight: str | None,
    group: str | None,
    target: str | None,
    classes: Sequence[Hashable] | None,
) -> Roles:
    """Check what was asked for against the columns there are."""
    if target is not None:
        check_choice(target, "target", TARGETS)
    _check_combination(
        of_probs={"probs": probs, "y": y},
        of_pairs={"confidence": confidence, "correct": correct},
        only_probs={"target": target, "classes": classes},
        loss=loss,
    )
    losses = {"brier": loss} if isinstance(loss, str) else dict(loss or {})
    if losses:
        known_losses(losses)
    found = Roles(
        _columns_of(probs, columns),
        y,
        confidence,
        correct,
        losses,
        sample_weight,
        group,
        target,
        None if classes is None else tuple(classes),
    )
    for name in found.names:
        if name not in columns:
            raise ValueError(
                f"the frame has no column {name!r}; it has {_listed(columns)}."
            )
    return found


def _check_combination(
    *,
    of_probs: Mapping[str, object],
    of_pairs: Mapping[str, object],
    only_probs: Mapping[str, object],
    loss: object,
) -> None:
    given = {*_given(of_probs), *_given(of_pairs)}
    if given not in ({*of_probs}, {*of_pairs}):
        got = ", ".join(f"{name}=" for name in sorted(given)) or "neither"
        raise TypeError(
            "name the columns of probs= and y=, or of confidence= and correct=; "
            f"got {got}."
        )
    if given == {*of_pairs} and (extra := _given(only_probs)):
        raise ValueError(f"{extra[0]} does not apply to confidence pairs.")
    if given == {*of_probs} and loss is not None:
        raise ValueError(
            "loss= goes with confidence= and correct=; the losses of probs are computed."
        )


def _given(named: Mapping[str, object]) -> list[str]:
    return [name for name, value in named.items() if value is not None]


def _columns_of(
    probs: str | Sequence[str] | None, columns: Sequence[str]
) -> tuple[str, ...]:
    """One column, those of a pattern in the order of their numbers, or those listed."""
    if probs is None:
        return ()
    if not isinstance(probs, str):
        return tuple(probs)
    if "*" not in probs or probs in columns:
        return (probs,)
    found = in_order(split_pattern(probs, columns))
    if not found:
        raise ValueError(f"no column fits {probs!r}; there are {_listed(columns)}.")
    return tuple(found)


def _listed(columns: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(map(repr, columns[:most]))
    return shown + (f" and {len(columns) - most} more" if len(columns) > most else "")


# ----------------------------------------------------------------------------
# What a query computes of every row, as expressions any lazy frame understands.
#
# Confidence and hit first, then the cell the row falls in. Arguments of logarithms are
# made positive before, since libraries differ in what they make of the others.


INFINITE = float("inf")


# A key is a sum: the probability cell, counted from 1; the log-odds cell, from -FIRST_ODDS;
# the hit; the predicted class. HIT is not whole, so that whole numbers other than 0 and 1
# in place of the hit show.
ODDS, FIRST_ODDS, HIT, CLASS = 1 << 14, 40_000, (1 << 31) + 0.5, 1 << 34

CERTAIN_NO, CERTAIN_YES = -FIRST_ODDS, 50_000
"""Numbers in place of the cells of 0 and 1; those of other doubles lie between."""


@dataclass(frozen=True, slots=True)
class Step:
    """Columns to be made from those before; then logarithms of columns, by name."""

    columns: Mapping[str, nw.Expr]
    logs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rule:
    """What must hold in every row; `shows` if rows that break it spoil key or range."""

    holds: nw.Expr
    says: str
    shows: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """How rows become ``h`` and ``a``, confidence and hit, and their losses.

    `losses` are the columns of full losses, if they are not those of h and a; `classes`
    is the number of columns of probabilities, 0 if there is but h. Then ``top`` and
    ``others`` are the largest of them and the sum of the rest.
    """

    steps: tuple[Step, ...]
    rules: tuple[Rule, ...]
    losses: Mapping[str, str] = field(default_factory=dict)
    classes: int = 0


def read_pairs(roles: Roles, *, whole: bool) -> Reading:
    """Confidence and correctness; `whole` if the latter can only hold whole numbers."""
    given = {"h": roles.confidence, "a": roles.correct}
    losses = {name: f"{name}_loss" for name in roles.losses}
    given |= {f"{name}_loss": column for name, column in roles.losses.items()}
    h, a = nw.col("h"), nw.col("a")
    rules = [
        Rule(
            (h >= 0) & (h <= 1), f"{roles.confidence!r} must be in [0, 1]", shows=True
        ),
        Rule((a == 0) | (a == 1), f"{roles.correct!r} must be 0 or 1", shows=whole),
    ]
    for name, column in roles.losses.items():
        loss = nw.col(f"{name}_loss")
        finite = loss < INFINITE if name == "brier" else loss <= INFINITE
        says = f"{column!r} must be a {name} loss, not negative"
        rules.append(Rule((loss >= 0) & finite, says, shows=name == "brier"))
    numbers = {name: number(str(column)) for name, column in given.items()}
    return Reading((Step(numbers),), tuple(rules), losses)


def read_positive(roles: Roles, dtype: str) -> Reading:
    """The probability of the positive class, and the label."""
    no, yes = roles.classes or (0, 1)
    label, p = nw.col(str(roles.y)), nw.col("p")
    cases = [(label == no, nw.lit(0.0)), (label == yes, nw.lit(1.0))]
    rules = (
        Rule(
            (p >= 0) & (p <= 1 + ROW_SUM_TOLERANCE[dtype]),
            f"{roles.probs[0]!r} must be in [0, 1]",
        ),
        Rule(nw.col("a") < 2, f"{roles.y!r} must be {no!r} or {yes!r}", shows=True),
    )
    first = Step({"p": number(roles.probs[0]), "a": first_of(cases, 2.0)})
    return Reading((first, Step({"h": at_most_one(p)})), rules)


def read_classes(roles: Roles, dtype: str) -> Reading:
    """One column per class: as `blocks.sums_of_probs` and `hard_losses_of_probs`."""
    k, tolerance = len(roles.probs), ROW_SUM_TOLERANCE[dtype]
    p = [nw.col(f"p{i}") for i in range(k)]
    whole = nw.col("top") + nw.col("others")
    near_one = (whole >= 1 - tolerance) & (whole <= 1 + tolerance)
    rules = (
        Rule(
            (nw.col("least") >= 0) & near_one,  # NaN and null fail too
            f"{roles.probs[0]!r} to {roles.probs[-1]!r} must be probabilities that sum "
            f"to 1 within {tolerance:g}",
        ),
        Rule(
            nw.col("a") < 2,
            f"{roles.y!r} must hold numbers or names of the {k} classes",
            shows=True,
        ),
    )
    steps = (
        Step(_numbers_and_label(roles)),
        Step(_extremes(p)),
        Step({"best": first_of([(x == nw.col("top"), i) for i, x in enumerate(p)], 0)}),
        Step(_losses(p), {"log_own": "some_own"}),
        Step({"log_loss": -nw.col("log_own")}),
    )
    return Reading(steps, rules, {"brier": "brier_loss", "log": "log_loss"}, k)


def _numbers_and_label(roles: Roles) -> dict[str, nw.Expr]:
    label = nw.col(str(roles.y))
    names = roles.classes or range(len(roles.probs))
    numbers = {f"p{i}": number(name) for i, name in enumerate(roles.probs)}
    return {
        **numbers,
        "y": first_of([(label == x, i) for i, x in enumerate(names)], -1),
    }


def _extremes(p: Sequence[nw.Expr]) -> dict[str, nw.Expr]:
    return {
        "top": nw.max_horizontal(*p),
        "least": nw.min_horizontal(*p),
        "own": first_of([(nw.col("y") == i, x) for i, x in enumerate(p)], 0.5),
    }


def _losses(p: Sequence[nw.Expr]) -> dict[str, nw.Expr]:
    top, best, y, own = (nw.col(name) for name in ("top", "best", "y", "own"))
    missed = nw.when(y < 0).then(nw.lit(2.0)).otherwise(nw.lit(0.0))
    squares = total([unless(y == i, x * x) for i, x in enumerate(p)])
    return {
        "h": at_most_one(top),
        "a": nw.when(best == y).then(nw.lit(1.0)).otherwise(missed),
        "others": total([unless(best == i, x) for i, x in enumerate(p)]),
        "brier_loss": (1 - own) * (1 - own) + squares,
        "some_own": at_most_one(positive(own, nw.lit(1.0))),
        "log_infinite": nw.when(own > 0).then(nw.lit(0.0)).otherwise(nw.lit(1.0)),
    }


# -- the cell of a row -----------------------------------------------------------------


def places(*, short: bool) -> list[Step]:
    """The cell of each row, its place there and its own log-odds.

    `short` says that confidences have 24 digits at most: products with 9600 are then
    exact, and no edge needs the second look that `grid.cell_of` takes.
    """
    h, p, x = nw.col("h"), nw.col("p_cell"), nw.col("x")
    # Certain rows get the log-odds cell of 1/2, which no other row so far out has, and 0
    # the probability cell before the first: cheaper than to ask every row.
    inside = nw.when((h > 0) & (h < 1)).then(h).otherwise(nw.lit(0.5))
    steps = [Step({"p_cell": (h * CELLS).ceil() - 1, "x": inside})]
    steps.append(Step({"odds": x / (1 - x)}, {"own_z": "odds"}))
    if not short:
        lower = nw.when((h <= p / CELLS) & (h > 0)).then(p - 1).otherwise(p)
        upper = nw.when(h > (p + 1) / CELLS).then(p + 1).otherwise(p)
        steps += [Step({"p_cell": lower}), Step({"p_cell": upper})]
    scale = LOG_ODDS_CELLS / (2 * LOG_ODDS_REACH)
    z_cell = ((nw.col("own_z") + LOG_ODDS_REACH) * scale).floor() + 1
    return [*steps, Step({"z_cell": z_cell, "t": h * CELLS - p - 0.5})]


def key_of(reading: Reading, rules: Sequence[Rule], *, weighted: bool) -> nw.Expr:
    """Cell, hit and predicted class as one number; not finite if a rule is broken."""
    key = nw.col("p_cell") + 1 + ODDS * (nw.col("z_cell") + FIRST_ODDS)
    key = key + HIT * nw.col("a")
    if reading.classes:
        key = key + CLASS * nw.col("best")
    elif "brier" in reading.losses:
        key = key + _trace(nw.col(reading.losses["brier"]))
    for rule in rules:
        if not rule.shows:
            key = nw.when(rule.holds).then(key).otherwise(nw.lit(float("nan")))
    if weighted:
        key = nw.when(nw.col("w") == 0).then(nw.lit(-1.0)).otherwise(key)
    return key


def _trace(loss: nw.Expr) -> nw.Expr:
    """0 for finite numbers from 0 on; null, NaN or enormous for all others."""
    return (loss.abs() - loss) * 1e300


# -- small expressions -----------------------------------------------------------------


def number(name: str) -> nw.Expr:
    """A column as double precision numbers."""
    return nw.col(name).cast(nw.Float64)


def cut(x: nw.Expr, low: float, high: float) -> nw.Expr:
    """The number, or the end of the interval it is beyond."""
    below = nw.when(x < low).then(nw.lit(low)).otherwise(x)
    return nw.when(x > high).then(nw.lit(high)).otherwise(below)


def at_most_one(x: nw.Expr) -> nw.Expr:
    """The number, or 1."""
    return nw.when(x > 1).then(nw.lit(1.0)).otherwise(x)


def positive(x: nw.Expr, otherwise: nw.Expr) -> nw.Expr:
    """The number if it is positive."""
    return nw.when(x > 0).then(x).otherwise(otherwise)


def unless(condition: nw.Expr, x: nw.Expr) -> nw.Expr:
    """0 where the condition holds."""
    return nw.when(condition).then(nw.lit(0.0)).otherwise(x)


def total(values: Sequence[nw.Expr]) -> nw.Expr:
    """The sum, missing if a value is."""
    found = values[0]
    for value in values[1:]:
        found = found + value
    return found


def first_of(cases: Sequence[tuple[nw.Expr, Any]], otherwise: float) -> nw.Expr:
    """The value of the first case that holds."""
    found = nw.lit(float(otherwise))
    for condition, value in reversed(cases):
        own = value if isinstance(value, nw.Expr) else nw.lit(float(value))
        found = nw.when(condition).then(own).otherwise(found)
    return found


# ----------------------------------------------------------------------------
# One query: rows become sums by cell and hit, inside the library that holds them.
#
# Within a cell of hits, or of misses, the residual, the Brier score of a pair and the
# slope of the Brier score are polynomials of the place t in the cell, so their sums follow
# from those of the powers of t (`filling`).


Frame = nw.LazyFrame[Any]

POWERS = ORDER + 1
"""The highest power of t that is summed: r^2 t^4 needs the sixth."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """Sums of rows: one entry of each array for each cell, hit, class and group.

    `cell` is not cut at the ends of the log-odds grid. `sums` has ``rows``, ``low``,
    ``high`` and those of `_contributions`, where ``x_j`` is the sum of x t^j. `within`
    is that of `Cells`, if it is known without `predicted`.
    """

    cell: NDArray[np.int64]
    hit: NDArray[np.float64]
    predicted: NDArray[np.int64]
    group: NDArray[np.str_] | None
    sums: dict[str, NDArray[np.float64]]
    within: NDArray[np.float64] | None = None

    def of_group(self, name: str) -> Grouped:
        """The sums of one group."""
        assert self.group is not None
        some = self.group == name
        sums = {field: values[some] for field, values in self.sums.items()}
        return Grouped(
            self.cell[some], self.hit[some], self.predicted[some], None, sums
        )


def group_rows(frame: Frame, reading: Reading, roles: Roles, *, short: bool) -> Grouped:
    """Run the query, and raise if a row breaks a rule."""
    rows, rules = _prepared(frame, reading, roles)
    weighted = roles.sample_weight is not None
    rows = _after(rows, (*places(short=short), *_logs(reading)))
    products = _contributions(reading, weighted=weighted)
    keys = {"key": key_of(reading, rules, weighted=weighted)}
    if roles.group is not None:
        keys["group"] = nw.col("group")
    rows = rows.select(**keys, low=nw.col("h"), high=nw.col("h"), **products)
    found = _collected(
        rows.group_by(*keys).agg(
            nw.len().alias("rows"),
            nw.col("low").min(),
            nw.col("high").max(),
            *(nw.col(name).sum() for name in products),
        )
    )
    grouped = _read(found, max(reading.classes, 1))
    if grouped is None:
        raise _error(frame, reading, roles)
    return grouped


def _prepared(frame: Frame, reading: Reading, roles: Roles) -> tuple[Frame, list[Rule]]:
    """Rows with what the reading gives, and the rules they must follow."""
    first, *steps = reading.steps
    kept, rules = dict(first.columns), list(reading.rules)
    if roles.group is not None:
        kept["group"] = nw.col(roles.group)
    if roles.sample_weight is not None:
        kept["w"], w = number(roles.sample_weight), nw.col("w")
        says = f"{roles.sample_weight!r} must be a finite weight, not negative"
        rules.append(Rule((w >= 0) & (w < INFINITE), says))
    return _after(frame.select(**kept), steps), rules


def _after(rows: Frame, steps: Iterable[Step]) -> Frame:
    for step in steps:
        rows = rows.with_columns(**step.columns)
        if step.logs:
            rows = _with_logs(rows, step.logs)
    return rows


def _with_logs(rows: Frame, logs: Mapping[str, str]) -> Frame:
    if not rows.implementation.is_duckdb():
        return rows.with_columns(**{name: nw.col(x).log() for name, x in logs.items()})
    # narwhals asks of every number whether it is negative or 0, at some cost.
    made = ", ".join(f'ln("{x}") AS "{name}"' for name, x in logs.items())
    return nw.from_native(rows.to_native().project(f"*, {made}"))


def _logs(reading: Reading) -> list[Step]:
    """Powers of t, log-odds z and the log loss of the pair; 0 where infinite."""
    t = nw.col("t")
    powers = [
        Step({"t1": t, "t2": t * t}),
        Step({"t3": _t(2) * t, "t4": _t(2) * _t(2)}),
        Step({"t5": _t(4) * t, "t6": _t(4) * _t(2)}),
    ]
    if reading.classes:
        return [*powers, *_logs_of_classes()]
    own = Step({"z": nw.col("own_z")})
    return [*powers, own, *(_logs_of_pairs() if _has_log(reading) else [])]


def _logs_of_pairs() -> list[Step]:
    h = nw.col("h")
    right = nw.when(nw.col("a") == 1).then(h).otherwise(1 - h)
    given = {"given": positive(right, nw.lit(1.0))}
    return [Step(given, {"log_given": "given"}), Step({"unit": -nw.col("log_given")})]


def _logs_of_classes() -> list[Step]:
    # z = log(top / others), and the loss of the pair is log(1 + others / top) of a hit.
    top, others, rest, one = *map(nw.col, ("top", "others", "rest")), nw.lit(1.0)
    missed = unless(others <= 0, top / rest)
    odds = nw.when(nw.col("a") == 1).then(others / top).otherwise(missed)
    some = {
        "some_top": positive(top, one),
        "some_rest": positive(rest, one),
        "one_and_odds": positive(1 + odds, one),
    }
    logs = {"log_top": "some_top", "log_rest": "some_rest", "unit": "one_and_odds"}
    return [
        Step({"rest": positive(others, top)}),
        Step(some, logs),
        Step({"z": nw.col("log_top") - nw.col("log_rest")}),
    ]


def _has_log(reading: Reading) -> bool:
    return not reading.losses or "log" in reading.losses


def _contributions(reading: Reading, *, weighted: bool) -> dict[str, nw.Expr]:
    """What is summed, by name."""
    most, z = POWERS if not reading.losses else ORDER, nw.col("z")
    found = {f"t_{j}": _t(j) for j in range(1, most + 1)} | {"z_0": z}
    if _has_log(reading):
        found |= {f"z_{j}": z * _t(j) for j in range(1, ORDER)}
    losses = {name: nw.col(column) for name, column in reading.losses.items()}
    if not losses:
        losses["log"] = nw.col("unit")
    elif "log" in losses:
        lost = losses["log"] == INFINITE
        losses["log"] = unless(lost, losses["log"])
        found["unit_0"] = nw.col("unit")
        found["log_infinite"] = nw.when(lost).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
    if reading.classes:
        found["z_cut"] = cut(z, -LOG_ODDS_REACH, LOG_ODDS_REACH)
        found["certain"] = unless(nw.col("others") > 0, nw.lit(1.0))
        found["log_infinite"] = nw.col("log_infinite")
    for name, loss in losses.items():
        found |= {f"{name}_0": loss, f"{name}_square": loss * loss}
        found |= {f"{name}_{j}": loss * _t(j) for j in range(1, ORDER)}
    if weighted:
        found = {name: nw.col("w") * value for name, value in found.items()}
        found["t_0"] = nw.col("w")
    return found


def _t(j: int) -> nw.Expr:
    return nw.col(f"t{j}")


def _collected(frame: Frame) -> dict[str, NDArray[Any]]:
    streamed: dict[str, Any] = {"engine": "streaming"}
    found = frame.collect(**streamed if frame.implementation.is_polars() else {})
    return {name: found[name].to_numpy() for name in found.columns}


def _read(found: dict[str, NDArray[Any]], classes: int) -> Grouped | None:
    """The sums by what their keys say; None if rows broke a rule."""
    kept = found["key"] != -1
    key, low, high = (found.pop(x)[kept].astype(float) for x in ("key", "low", "high"))
    if not (np.isfinite(key).all() and (low >= 0).all() and (high <= 1).all()):
        return None
    predicted, rest = np.divmod(key, CLASS)
    hit, cells = np.divmod(rest, HIT)
    whole = (cells == np.floor(cells)) & (hit <= 1) & (predicted >= 0)
    if not (whole & (predicted < classes)).all():
        return None
    group = found.pop("group")[kept].astype(str) if "group" in found else None
    sums = {name: values[kept].astype(float) for name, values in found.items()}
    _turn_zeros(sums, high == 0)
    sums.setdefault("t_0", sums["rows"])
    sums |= {"low": low, "high": high}
    return Grouped(
        _cell(cells, low, high), hit, predicted.astype(np.int64), group, sums
    )


def _cell(
    cells: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> NDArray[np.int64]:
    odds, place = np.divmod(cells.astype(np.int64), ODDS)
    found = (place - 1) + (odds - FIRST_ODDS)
    found[high == 0] = CERTAIN_NO
    found[low == 1] = CERTAIN_YES
    return found


def _turn_zeros(sums: dict[str, NDArray[np.float64]], zeros: NDArray[np.bool_]) -> None:
    """Rows of h = 0 lie at the start of the first cell, not at the end of one before."""
    for name, values in sums.items():
        if name[-2:] in ("_1", "_3", "_5"):
            values[zeros] *= -1


def _error(frame: Frame, reading: Reading, roles: Roles) -> Exception:
    """Count the rows that break each rule; the error of the first that some do."""
    rows, rules = _prepared(frame, reading, roles)
    none, one = nw.lit(0), nw.lit(1)
    broken = {}
    for i, rule in enumerate(rules):
        off = nw.when(rule.holds).then(none).otherwise(one)
        if roles.sample_weight is not None:
            off = nw.when(nw.col("w") == 0).then(none).otherwise(off)
        broken[f"rule{i}"] = off
    sums = (nw.col(name).sum() for name in broken)
    found = _collected(rows.select(**broken).select(nw.len().alias("rows"), *sums))
    for i, rule in enumerate(rules):
        if count := int(found[f"rule{i}"][0]):
            return ValueError(
                f"{rule.says}: {count} of {int(found['rows'][0])} rows break this. Find "
                "them with a filter of the frame, and drop or mend them."
            )
    return AssertionError("rows broke no rule, and left sums that only such rows leave")


# ----------------------------------------------------------------------------
# From sums by cell and hit to a sketch.


Polynomial = NDArray[np.float64]
"""Coefficients of the powers of the place t, one column per group."""


def sketch_of(kind: Kind, grouped: Grouped) -> Sketch:
    """The sketch whose rows have these sums."""
    names = [] if grouped.group is None else np.unique(grouped.group).tolist()
    check_groups(names)
    groups = {name: _cells(kind, grouped.of_group(name)) for name in names}
    return Sketch.of(kind, _cells(kind, grouped), groups)


def _cells(kind: Kind, grouped: Grouped) -> Cells:
    cells, sums, at = kind.empty(), grouped.sums, _cells_of(grouped)
    terms = _Terms(grouped)
    for name, values in _fields(kind, grouped, terms):
        cells.table[:, cells.fields.index(name)] = np.bincount(at, values, STEPS)
    np.minimum.at(cells.low, at, sums["low"])
    np.maximum.at(cells.high, at, sums["high"])
    cells.rows = int(sums["rows"].sum())
    no, yes = _certain(grouped)
    cells.certain_no, cells.certain_yes = float(no.sum()), float(yes.sum())
    for name in kind.divergences:
        cells.totals[name] = (_brier if name == "brier" else _log)(grouped, terms)
    cells.find_values()
    cells.within = _residuals(grouped, terms, cells.within)
    return cells


def _residuals(
    grouped: Grouped, terms: _Terms, empty: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """Sums of residuals by predicted class and bin, if these are kept and known."""
    if grouped.within is not None:
        return grouped.within
    if empty is None or "certain" not in grouped.sums:
        return None
    place = grouped.predicted * CLASS_BINS
    place += path().probability[_cells_of(grouped)] // (CELLS // CLASS_BINS)
    sums = np.bincount(place, terms.sum_of(terms.r), empty.size)
    return np.asarray(sums, float).reshape(empty.shape)


class _Terms:
    """Sums of polynomials of the place, and of columns times powers of it."""

    def __init__(self, grouped: Grouped) -> None:
        self.grouped, self.sums = grouped, grouped.sums
        centre = (path().probability[_cells_of(grouped)] + 0.5) / CELLS
        step = np.full_like(centre, 1 / CELLS)
        self.one = np.ones((1, len(centre)))
        self.h = np.stack([centre, step])
        self.r = np.stack([grouped.hit - centre, -step])

    def power(self, x: Polynomial, exponent: int) -> Polynomial:
        """A power of a polynomial."""
        found = self.one
        for _ in range(exponent):
            found = _product(found, x)
        return found

    def sum_of(self, x: Polynomial, j: int = 0) -> Column:
        """The sums of the polynomial times t^j, by group."""
        return sum(
            (row * self.sums[f"t_{i + j}"] for i, row in enumerate(x)),
            np.zeros(x.shape[1]),
        )


def _product(x: Polynomial, y: Polynomial) -> Polynomial:
    found = np.zeros((len(x) + len(y) - 1, x.shape[1]))
    for i, row in enumerate(x):
        found[i : i + len(y)] += row * y
    return found


def _cells_of(grouped: Grouped) -> NDArray[np.int64]:
    """Cells of the sketch: log-odds beyond the grid belong to its ends."""
    cell, inside = grouped.cell, np.clip(grouped.cell, 1, STEPS - 2)
    inside[cell == CERTAIN_NO] = 0
    inside[cell >= CERTAIN_YES] = STEPS - 1
    return inside


def _certain(grouped: Grouped) -> tuple[Column, Column]:
    """Weight of rows of log-odds -inf and inf, by group."""
    weight = grouped.sums["t_0"]
    if "certain" in grouped.sums:
        return np.zeros_like(weight), grouped.sums["certain"]
    no, yes = grouped.cell == CERTAIN_NO, grouped.cell >= CERTAIN_YES
    return np.where(no, weight, 0.0), np.where(yes, weight, 0.0)


def _fields(
    kind: Kind, grouped: Grouped, terms: _Terms
) -> Iterator[tuple[str, Column]]:
    """Every field of a cell with its sums by group."""
    sums, hit = grouped.sums, grouped.hit
    no, yes = _certain(grouped)
    for j in range(ORDER):
        yield f"weight_{j}", sums[f"t_{j}"]
        yield f"hit_{j}", hit * sums[f"t_{j}"]
        yield f"brier_slope_{j}", terms.sum_of(2 * terms.h, j)
        yield f"brier_loss_{j}", _brier_loss(terms, j)
        if "log" in kind.divergences:
            yield f"log_loss_{j}", sums[f"log_{j}"]
            yield f"log_slope_{j}", sums[f"z_{j}"]
    yield "hit2", hit * sums["t_0"]
    for exponent in range(1, 5):
        yield f"r{exponent}", terms.sum_of(terms.power(terms.r, exponent))
    yield "h", terms.sum_of(terms.h)
    yield "z", _cut_log_odds(grouped) + LOG_ODDS_REACH * (yes - no)
    yield "finite_z", sums["z_0"]
    if "log" in kind.divergences:
        yield "log_infinite", _lost(grouped)


def _cut_log_odds(grouped: Grouped) -> Column:
    """Sums of log-odds, cut at the ends of the grid; 0 for certain rows."""
    if "z_cut" in grouped.sums:
        return grouped.sums["z_cut"]
    low = (grouped.cell < 1) & (grouped.cell != CERTAIN_NO)
    high = (grouped.cell > STEPS - 2) & (grouped.cell < CERTAIN_YES)
    beyond = LOG_ODDS_REACH * grouped.sums["t_0"]
    return np.where(low, -beyond, np.where(high, beyond, grouped.sums["z_0"]))


def _brier_loss(terms: _Terms, j: int) -> Column:
    if "brier_0" in terms.sums:
        return terms.sums[f"brier_{j}"]
    return terms.sum_of(terms.power(terms.r, 2), j)


def _lost(grouped: Grouped) -> Column:
    """Weight of rows of infinite log loss, by group."""
    if "log_infinite" in grouped.sums:
        return grouped.sums["log_infinite"]
    return _certainly_wrong(grouped)


def _certainly_wrong(grouped: Grouped) -> Column:
    no, yes = _certain(grouped)
    return np.where(grouped.hit == 1, no, yes)


def _brier(grouped: Grouped, terms: _Terms) -> Totals:
    sums, h2 = grouped.sums, terms.power(terms.h, 2)
    square = sums.get("brier_square")
    if square is None:
        square = terms.sum_of(terms.power(terms.r, 4))
    return Totals(
        loss=float(_brier_loss(terms, 0).sum()),
        loss2=float(square.sum()),
        unit_loss=float(terms.sum_of(terms.power(terms.r, 2)).sum()),
        phi_hit=float((grouped.hit * sums["t_0"]).sum()),
        tangent=-float(terms.sum_of(h2).sum()),
    )


def _log(grouped: Grouped, terms: _Terms) -> Totals:
    # Of a hit the loss of the pair is softplus(-z), and softplus(z) that plus z.
    sums, hit = grouped.sums, grouped.hit
    unit = sums.get("unit_0", sums["log_0"])
    wrong = _certainly_wrong(grouped).any()
    return Totals(
        loss=float(sums["log_0"].sum()),
        loss2=float(sums["log_square"].sum()),
        unit_loss=float("inf") if wrong else float(unit.sum()),
        phi_hit=0.0,
        tangent=-float((unit + hit * sums["z_0"]).sum()),
    )


# ----------------------------------------------------------------------------
# Rows in memory, summed by cell and hit with numba: the query of frames, without one.
#
# A sketch adds rows in general: soft labels, weights, groups, distinct confidences. What is
# left once these are out of the question is quicker as one compiled loop.


FLUSH = 1 << 24
"""Rows after which partial sums join the total: sums of sums have less round-off."""


def _powers(name: str, first: int = 0) -> list[str]:
    return [f"{name}_{j}" for j in range(first, ORDER)]


_ALWAYS = [*_powers("t"), f"t_{ORDER}"]
WITH_BRIER = [*_ALWAYS, "brier_square", "z_0", *_powers("brier")]
WITH_LOG = [*_ALWAYS, "log_square", "z_0", *_powers("log"), "t_6", *_powers("z", 1)]

OF_TOP = [
    *WITH_BRIER,
    *_powers("log"),
    "log_square",
    "log_infinite",
    "unit_0",
    "certain",
    "z_cut",
    *_powers("z", 1),
]
"""Names of the sums in the order of the compiled loops."""


class Tally:
    """Sums of unweighted rows that are hits or misses, all of one kind.

    `names` is `WITH_BRIER` or `WITH_LOG` for pairs with and without Brier scores, or
    `OF_TOP`; `classes` is the number of classes that may be predicted.
    """

    def __init__(self, names: list[str], classes: int = 0) -> None:
        from calibrant._sketch import numba_cells

        self._compiled, cells = numba_cells, 2 * (numba_cells.ABOVE + 1)
        width = -(-(len(names) + 2) // 8) * 8  # whole cache lines
        self._table, self._part = np.zeros((2, cells, width))
        for table in (self._table, self._part):
            table[:, -2:] = np.inf, -np.inf
        self._within = np.zeros((classes, CLASS_BINS)) if classes else None
        self._names, self._new = names, 0

    def add_pairs(
        self, h: NDArray[Any], hit: NDArray[Any], loss: NDArray[Any] | None
    ) -> bool:
        """Add pairs if all are hits or misses and follow the rules; say whether."""
        rows = [x if x is None else _ready(x) for x in (h, hit, loss)]
        if any(x is not None and x.dtype.kind not in "fiu" for x in rows):
            return False
        if self._compiled.count_others(*rows):
            return False
        self._compiled.add_pairs(self._part, *rows)
        self._count(len(h))
        return True

    def add_probs(self, predictions: Predictions) -> bool:
        """Add top labels of rows of probabilities; say whether all follow the rules."""
        assert self._within is not None
        fine = self._compiled.add_predictions(self._part, self._within, predictions)
        self._count(len(predictions.scores))
        return bool(fine)

    def _count(self, rows: int) -> None:
        self._new += rows
        if self._new >= FLUSH:
            self._flush()

    def _flush(self) -> None:
        table, part = self._table, self._part
        table[:, :-2] += part[:, :-2]
        np.minimum(table[:, -2], part[:, -2], out=table[:, -2])
        np.maximum(table[:, -1], part[:, -1], out=table[:, -1])
        part[:, :-2] = 0.0
        self._new = 0

    def grouped(self) -> Grouped:
        """The sums so far, as a query would give them."""
        self._flush()
        some = np.flatnonzero(self._table[:, 0])
        cell, hit = np.divmod(some, 2)
        ends = {0: CERTAIN_NO, STEPS - 1: CERTAIN_YES, STEPS: 0, STEPS + 1: STEPS - 1}
        cells = cell.copy()
        for place, name in ends.items():
            cells[cell == place] = name
        *columns, low, high = self._table[some].T
        sums = dict(zip(self._names, columns, strict=False))
        sums |= {"rows": sums["t_0"], "low": low, "high": high}
        hits, nobody = hit.astype(float), np.zeros_like(cell)
        return Grouped(cells, hits, nobody, None, sums, self._within)


def can_tally(kind: Kind) -> bool:
    """Whether rows of this kind are top labels, of no more classes than are kept."""
    few = len(kind.classes) * CLASS_BINS <= MOST_CLASS_BINS
    return kind.target == "top-label" and few


def _ready(column: NDArray[Any]) -> NDArray[Any]:
    """Booleans as bytes, and no array writeable: fewer types to compile for."""
    found = column.view(np.int8) if column.dtype == bool else column.view()
    found.flags.writeable = False
    return found
