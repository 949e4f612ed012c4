"""The group-by of a lazy frame: rows become sums by cell where they are."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add, mul
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import (
    RowError,
    check_choice,
    check_kind,
    check_texts,
    read_names,
    shown,
)
from calibrant._inputs.arrays import ROW_SUM_TOLERANCE, Column
from calibrant._inputs.divergences import BUILT_IN
from calibrant._inputs.predictions import TARGETS, Predictions, check_names
from calibrant._rows import compiled
from calibrant._rows.reduce import Output, reduce_compiled
from calibrant._sketch import cells as cell_sums
from calibrant._sketch import grid
from calibrant._sketch.sketch import Sketch, known_losses
from calibrant.files._plan import in_order, split_pattern

# -- which column of a frame plays which part -------------------------------------------


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
    frequency: str | None = None
    cluster: str | None = None
    group: str | None = None
    target: str | None = None
    classes: tuple[Hashable, ...] | None = None

    @property
    def pairs(self) -> bool:
        """Whether rows are pairs of confidence and correctness."""
        return self.confidence is not None

    @property
    def weighted(self) -> bool:
        """Whether rows count otherwise than once each."""
        return self.sample_weight is not None or self.frequency is not None

    @property
    def kind(self) -> cell_sums.Kind:
        """What the rows are, to a sketch."""
        if self.losses:
            scores = known_losses(self.losses)
            return cell_sums.Kind("top-label", self.classes or (), scores)
        if self.pairs:
            return cell_sums.Kind("pairs", (False, True), dict(BUILT_IN))
        k, one = len(self.probs), len(self.probs) == 1
        target = self.target or ("positive" if one else "top-label")
        return cell_sums.Kind(
            target, self.classes or tuple(range(max(k, 2))), dict(BUILT_IN)
        )

    @property
    def names(self) -> list[str]:
        """Every column that is read, once."""
        one = (self.y, self.confidence, self.correct, self.sample_weight)
        given = [*self.probs, *self.losses.values(), *one]
        given += [self.frequency, self.cluster, self.group]
        return list(dict.fromkeys(name for name in given if name is not None))


def read_roles(columns: Sequence[str], asked: Mapping[str, Any]) -> Roles:
    """Check what `frames.sketch_frame` was asked for against the columns there are."""
    loss, classes = asked["loss"], asked["classes"]
    if asked["target"] is not None:
        check_choice(asked["target"], "target", TARGETS)
    _check_combination(asked)
    single = {x: asked[x] for x in SINGLE}
    check_texts(**single)
    losses = {"brier": loss} if isinstance(loss, str) else {} if loss is None else loss
    check_kind(losses, Mapping, "loss")
    if losses:
        known_losses(losses)
        read_names([*losses.values()], "loss", len(losses))
    names = None if classes is None else read_names(classes, "classes")
    rest = {x: asked[x] for x in asked if x not in ("probs", "loss", "classes")}
    found = Roles(
        _columns_of(asked["probs"], columns), losses=losses, classes=names, **rest
    )
    role_of = {column: role for role, column in single.items()}
    role_of |= dict.fromkeys(losses.values(), "loss")
    role_of |= dict.fromkeys(found.probs, "probs")
    for name in found.names:
        if name not in columns:
            raise ValueError(
                f"{role_of[name]}: the frame has no column {shown(name)}; it has "
                f"{_listed(columns)}."
            )
    return found


SINGLE = (
    "y",
    "confidence",
    "correct",
    "sample_weight",
    "frequency",
    "cluster",
    "group",
)
"""Roles of which each is one column."""


def _check_combination(asked: Mapping[str, Any]) -> None:
    ways = ({"probs", "y"}, {"confidence", "correct"})
    given = {name for name in set.union(*ways) if asked[name] is not None}
    if given not in ways:
        got = ", ".join(f"{name}=" for name in sorted(given)) or "neither"
        raise TypeError(
            "name the columns of probs= and y=, or of confidence= and correct=; "
            f"got {got}."
        )
    if "confidence" in given:
        named = asked["loss"] is None and asked["classes"] is not None
        if named or asked["target"] is not None:
            what = "classes" if named else "target"
            raise ValueError(f"{what} does not apply to confidence pairs.")
    if "probs" in given and asked["loss"] is not None:
        raise ValueError(
            "loss= goes with confidence= and correct=; the losses of probs are computed."
        )


def _columns_of(
    probs: str | Sequence[str] | None, columns: Sequence[str]
) -> tuple[str, ...]:
    """One column, those of a pattern in the order of their numbers, or those listed."""
    if probs is None:
        return ()
    if not isinstance(probs, str):
        if listed := read_names(probs, "probs"):
            return tuple(map(str, listed))
        raise ValueError("probs must name one column or more, got none.")
    if "*" not in probs or probs in columns:
        return (probs,)
    found = in_order(split_pattern(probs, columns))
    if not found:
        raise ValueError(
            f"no column fits {probs!r}, given as probs; there are {_listed(columns)}."
        )
    return tuple(found)


def _listed(columns: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(map(repr, columns[:most]))
    return shown + (f" and {len(columns) - most} more" if len(columns) > most else "")


# -- what a query computes of every row, as expressions any lazy frame understands ------
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
    says = (
        f"{roles.confidence!r} must be in [0, 1]",
        f"{roles.correct!r} must be 0 or 1",
    )
    rules = [Rule((h >= 0) & (h <= 1), says[0], shows=True)]
    rules.append(Rule((a == 0) | (a == 1), says[1], shows=whole))
    for name, column in roles.losses.items():
        loss = nw.col(f"{name}_loss")
        finite = loss < INFINITE if name == "brier" else loss <= INFINITE
        told = f"{column!r} must be a {name} loss, not negative"
        rules.append(Rule((loss >= 0) & finite, told, shows=name == "brier"))
    numbers = {name: number(str(column)) for name, column in given.items()}
    return Reading((Step(numbers),), tuple(rules), losses)


def read_positive(roles: Roles, dtype: str) -> Reading:
    """The probability of the positive class, and the label."""
    no, yes = roles.classes or (0, 1)
    label, p = nw.col(str(roles.y)), nw.col("p")
    within = (p >= 0) & (p <= 1 + ROW_SUM_TOLERANCE[dtype])
    rules = (
        Rule(within, f"{roles.probs[0]!r} must be in [0, 1]"),
        Rule(nw.col("a") < 2, f"{roles.y!r} must be {no!r} or {yes!r}", shows=True),
    )
    hit = first_of([(label == no, 0), (label == yes, 1)], 2)
    first = Step({"p": number(roles.probs[0]), "a": hit})
    return Reading((first, Step({"h": pick(p > 1, 1, p)})), rules)


def read_classes(roles: Roles, dtype: str) -> Reading:
    """One column per class: as `blocks.sums_of_probs` and `hard_losses_of_probs`."""
    k, tolerance = len(roles.probs), ROW_SUM_TOLERANCE[dtype]
    p = [nw.col(f"p{i}") for i in range(k)]
    whole = nw.col("top") + nw.col("others")
    near_one = (whole >= 1 - tolerance) & (whole <= 1 + tolerance)
    sums = (
        f"{roles.probs[0]!r} to {roles.probs[-1]!r} must be probabilities that sum to 1 "
        f"within {tolerance:g}"
    )
    labels = f"{roles.y!r} must hold numbers or names of the {k} classes"
    rules = (
        Rule((nw.col("least") >= 0) & near_one, sums),  # NaN and null fail too
        Rule(nw.col("a") < 2, labels, shows=True),
    )
    names = enumerate(roles.classes or range(k))
    label = first_of([(nw.col(str(roles.y)) == x, i) for i, x in names], -1)
    numbers = {f"p{i}": number(name) for i, name in enumerate(roles.probs)}
    own = first_of([(nw.col("y") == i, x) for i, x in enumerate(p)], 0.5)
    ends = {"top": nw.max_horizontal(*p), "least": nw.min_horizontal(*p)}
    steps = (
        Step({**numbers, "y": label}),
        Step({**ends, "own": own}),
        Step({"best": first_of([(x == nw.col("top"), i) for i, x in enumerate(p)], 0)}),
        Step(_losses(p), {"log_own": "some_own"}),
        Step({"log_loss": 0 - nw.col("log_own")}),
    )
    return Reading(steps, rules, {"brier": "brier_loss", "log": "log_loss"}, k)


def _losses(p: Sequence[nw.Expr]) -> dict[str, nw.Expr]:
    top, best, y, own = (nw.col(name) for name in ("top", "best", "y", "own"))
    squares = reduce(add, [pick(y == i, 0, x * x) for i, x in enumerate(p)])
    return {
        "h": pick(top > 1, 1, top),
        "a": first_of([(best == y, 1), (y < 0, 2)], 0),
        "others": reduce(add, [pick(best == i, 0, x) for i, x in enumerate(p)]),
        "brier_loss": (1 - own) * (1 - own) + squares,
        "some_own": first_of([(own > 1, 1), (own > 0, own)], 1),
        "log_infinite": pick(own > 0, 0, 1),
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
    inside = pick((h > 0) & (h < 1), h, 0.5)
    steps = [Step({"p_cell": (h * grid.CELLS).ceil() - 1, "x": inside})]
    steps.append(Step({"odds": x / (1 - x)}, {"own_z": "odds"}))
    if not short:
        lower = pick((h <= p / grid.CELLS) & (h > 0), p - 1, p)
        upper = pick(h > (p + 1) / grid.CELLS, p + 1, p)
        steps += [Step({"p_cell": lower}), Step({"p_cell": upper})]
    scale = grid.LOG_ODDS_CELLS / (2 * grid.LOG_ODDS_REACH)
    z_cell = ((nw.col("own_z") + grid.LOG_ODDS_REACH) * scale).floor() + 1
    return [*steps, Step({"z_cell": z_cell, "t": h * grid.CELLS - p - 0.5})]


def key_of(reading: Reading, rules: Sequence[Rule], *, weighted: bool) -> nw.Expr:
    """Cell, hit and predicted class as one number; not finite if a rule is broken."""
    key = nw.col("p_cell") + 1 + ODDS * (nw.col("z_cell") + FIRST_ODDS)
    key = key + HIT * nw.col("a")
    if reading.classes:
        key = key + CLASS * nw.col("best")
    elif "brier" in reading.losses:
        # 0 for finite numbers from 0 on; null, NaN or enormous for all others.
        loss = nw.col(reading.losses["brier"])
        key = key + (loss.abs() - loss) * 1e300
    for rule in rules:
        if not rule.shows:
            key = pick(rule.holds, key, float("nan"))
    return pick(nw.col("w") == 0, -1, key) if weighted else key


def number(name: str) -> nw.Expr:
    """A column as double precision numbers."""
    return nw.col(name).cast(nw.Float64)


def pick(condition: nw.Expr, yes: nw.Expr | float, no: nw.Expr | float) -> nw.Expr:
    """One of two expressions or numbers, by whether a condition holds."""
    one, other = (x if isinstance(x, nw.Expr) else nw.lit(float(x)) for x in (yes, no))
    return nw.when(condition).then(one).otherwise(other)


def first_of(cases: Sequence[tuple[nw.Expr, Any]], otherwise: Any) -> nw.Expr:
    """The value of the first case that holds."""
    found = otherwise
    for condition, value in reversed(cases):
        found = pick(condition, value, found)
    return found


# -- one query: rows become sums by cell and hit, inside the library that holds them ----
#
# Within a cell of hits, or of misses, the residual, the Brier score of a pair and the
# slope of the Brier score are polynomials of the place t in the cell, so their sums follow
# from those of the powers of t (`_Terms`).

Frame = nw.LazyFrame[Any]

POWERS = grid.ORDER + 1
"""The highest power of t that is summed: r^2 t^4 needs the sixth."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """Sums of rows: one entry of each array for each cell, hit, class and group.

    `cell` is not cut at the ends of the log-odds grid. `sums` has ``rows``, ``low``,
    ``high`` and those of `_contributions`, where ``x_j`` is the sum of x t^j, of ``w2`` and
    ``w3`` where rows have weights other than 0 and 1. `within`
    is that of `Cells`, if it is known without `predicted`.
    """

    cell: NDArray[np.int64]
    hit: NDArray[np.float64]
    predicted: NDArray[np.int64]
    group: NDArray[np.str_] | None
    sums: dict[str, NDArray[np.float64]]
    within: cell_sums.Table | None = None

    def of_group(self, name: str) -> Grouped:
        """The sums of one group."""
        assert self.group is not None
        some = self.group == name
        sums = {field: values[some] for field, values in self.sums.items()}
        rows = self.cell[some], self.hit[some], self.predicted[some]
        return Grouped(*rows, None, sums)


def group_rows(frame: Frame, reading: Reading, roles: Roles, *, short: bool) -> Grouped:
    """Run the query, and raise if a row breaks a rule."""
    rows, rules = _prepared(frame, reading, roles)
    rows = _after(rows, (*places(short=short), *_logs(reading)))
    products = _contributions(reading, roles)
    keys = {"key": key_of(reading, rules, weighted=roles.weighted)}
    if roles.group is not None:
        keys["group"] = nw.col("group")
    rows = rows.select(**keys, low=nw.col("h"), high=nw.col("h"), **products)
    wanted = [nw.len().alias("rows"), nw.col("low").min(), nw.col("high").max()]
    wanted += [nw.col(name).sum() for name in products]
    found = _collected(rows.group_by(*keys).agg(*wanted))
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
    made, needed = _weights(roles)
    rows = frame.select(**kept, **(made.pop(0).columns if made else {}))
    return _after(rows, (*made, *steps)), [*rules, *needed]


def _weights(roles: Roles) -> tuple[list[Step], list[Rule]]:
    """Steps to the mass ``w`` = f v of a row of count f and importance v, and rules.

    With importance they go on to ``w2`` = f v^2 and ``w3`` = f v^3.
    """
    numbers, rules = dict[str, nw.Expr](), list[Rule]()
    f, v = nw.col("f"), nw.col("v")
    if roles.sample_weight is not None:
        numbers["v"] = number(roles.sample_weight)
        says = f"{roles.sample_weight!r} must be a finite weight, not negative"
        rules.append(Rule((v >= 0) & (v < INFINITE), says))
    if roles.frequency is not None:
        numbers["f"] = number(roles.frequency)
        says = f"{roles.frequency!r} must be a whole number, not negative"
        rules.append(Rule((f >= 0) & (f < INFINITE) & (f == f.floor()), says))
    if not numbers:
        return [], []
    mass = reduce(mul, [nw.col(name) for name in numbers])
    steps = [Step(numbers), Step({"w": mass})]
    if roles.sample_weight is not None:
        steps += [Step({"w2": nw.col("w") * v}), Step({"w3": nw.col("w2") * v})]
    return steps, rules


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
    steps = [*powers, Step({"z": nw.col("own_z")})]
    if _has_log(reading):
        right = pick(nw.col("a") == 1, nw.col("h"), 1 - nw.col("h"))
        steps.append(Step({"given": pick(right > 0, right, 1)}, {"log_given": "given"}))
        steps.append(Step({"unit": 0 - nw.col("log_given")}))
    return steps


def _logs_of_classes() -> list[Step]:
    # z = log(top / others), and the loss of the pair is log(1 + others / top) of a hit.
    top, others, rest = map(nw.col, ("top", "others", "rest"))
    odds = first_of([(nw.col("a") == 1, others / top), (others <= 0, 0)], top / rest)
    some = {
        "some_top": pick(top > 0, top, 1),
        "some_rest": pick(rest > 0, rest, 1),
        "one_and_odds": pick(1 + odds > 0, 1 + odds, 1),
    }
    logs = {"log_top": "some_top", "log_rest": "some_rest", "unit": "one_and_odds"}
    return [
        Step({"rest": pick(others > 0, others, top)}),
        Step(some, logs),
        Step({"z": nw.col("log_top") - nw.col("log_rest")}),
    ]


def _has_log(reading: Reading) -> bool:
    return not reading.losses or "log" in reading.losses


def _contributions(reading: Reading, roles: Roles) -> dict[str, nw.Expr]:
    """What is summed, by name."""
    most, z = POWERS if not reading.losses else grid.ORDER, nw.col("z")
    found = {f"t_{j}": _t(j) for j in range(1, most + 1)} | {"z_0": z}
    if _has_log(reading):
        found |= {f"z_{j}": z * _t(j) for j in range(1, grid.ORDER)}
    losses = {name: nw.col(column) for name, column in reading.losses.items()}
    if not losses:
        losses["log"] = nw.col("unit")
    elif "log" in losses:
        lost = losses["log"] == INFINITE
        losses["log"] = pick(lost, 0, losses["log"])
        found |= {"unit_0": nw.col("unit"), "log_infinite": pick(lost, 1, 0)}
    if reading.classes:
        reach = grid.LOG_ODDS_REACH
        found["z_cut"] = first_of([(z > reach, reach), (z < -reach, -reach)], z)
        found["certain"] = pick(nw.col("others") > 0, 0, 1)
        found["log_infinite"] = nw.col("log_infinite")
    for name, loss in losses.items():
        found |= {f"{name}_0": loss, f"{name}_square": loss * loss}
        found |= {f"{name}_{j}": loss * _t(j) for j in range(1, grid.ORDER)}
    if not roles.weighted:
        return found
    found = {name: nw.col("w") * value for name, value in found.items()}
    found["t_0"] = nw.col("w")
    if roles.frequency is not None:
        found["count"] = nw.col("f")
    squares = {} if roles.sample_weight is None else _squares(losses)
    return found | squares


def _squares(losses: Mapping[str, nw.Expr]) -> dict[str, nw.Expr]:
    """What `cells.SQUARES` and squared weights in `Totals` follow from."""
    w2, w3 = nw.col("w2"), nw.col("w3")
    found = {"w2_0": w2, "w3_0": w3}
    found |= {f"w3_{j}": w3 * _t(j) for j in (1, 2)}
    found |= {f"w2_{j}": w2 * _t(j) for j in (1, 2, 3, 4)}
    for name, loss in losses.items():
        found |= {f"w2_{name}_0": w2 * loss, f"w2_{name}_square": w2 * loss * loss}
    return found


def _t(j: int) -> nw.Expr:
    return nw.col(f"t{j}")


def _collected(frame: Frame) -> dict[str, NDArray[Any]]:
    streamed: dict[str, Any] = {"engine": "streaming"}
    found = frame.collect(**streamed if frame.implementation.is_polars() else {})
    return {name: array_of(found[name]) for name in found.columns}


def array_of(column: nw.Series[Any]) -> NDArray[Any]:
    """The values of a column; text as objects, for that of NumPy drops a last NUL."""
    text = column.dtype in (nw.String, nw.Binary) and column.implementation.is_polars()
    return column.to_native().to_numpy() if text else column.to_numpy()


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
    group = _names_of(found.pop("group")[kept]) if "group" in found else None
    sums = {name: values[kept].astype(float) for name, values in found.items()}
    for name, values in sums.items():
        if name[-2:] in ("_1", "_3", "_5"):
            # Rows of h = 0 lie at the start of the first cell, not before it.
            values[high == 0] *= -1
    sums.setdefault("t_0", sums["rows"])
    sums |= {"low": low, "high": high}
    if "w2_0" in sums and all(np.array_equal(sums[x], sums["t_0"]) for x in _ONES):
        # Then every weight is 0 or 1, since f v (1 - v)^2 adds up to 0: rows only count.
        sums = {x: values for x, values in sums.items() if x[:3] not in ("w2_", "w3_")}
    cell = _cell(cells, low, high)
    return Grouped(cell, hit, predicted.astype(np.int64), group, sums)


def _names_of(group: NDArray[Any]) -> NDArray[np.str_]:
    try:
        check_names(group, "group")
    except RowError as error:  # rows of sums, whose numbers say nothing
        said = f"{error.rule} a row {error.what}. {error.remedy}"
        raise ValueError(said) from None
    return group.astype(str)


_ONES = ("w2_0", "w3_0")


def _cell(cells: Column, low: Column, high: Column) -> NDArray[np.int64]:
    odds, place = np.divmod(cells.astype(np.int64), ODDS)
    found = (place - 1) + (odds - FIRST_ODDS)
    found[high == 0] = CERTAIN_NO
    found[low == 1] = CERTAIN_YES
    return found


def _error(frame: Frame, reading: Reading, roles: Roles) -> Exception:
    """Count the rows that break each rule; the error of the first that some do."""
    rows, rules = _prepared(frame, reading, roles)
    broken = {f"rule{i}": pick(rule.holds, 0, 1) for i, rule in enumerate(rules)}
    if roles.weighted:
        broken = {x: pick(nw.col("w") == 0, 0, off) for x, off in broken.items()}
    sums = (nw.col(name).sum() for name in broken)
    found = _collected(rows.select(**broken).select(nw.len().alias("rows"), *sums))
    for i, rule in enumerate(rules):
        if count := int(found[f"rule{i}"][0]):
            return ValueError(
                f"{rule.says}: {count} of {int(found['rows'][0])} rows break this. Find "
                "them with a filter of the frame, and drop or mend them."
            )
    return AssertionError("rows broke no rule, and left sums that only such rows leave")


# -- from sums by cell and hit to a sketch ----------------------------------------------

Table = cell_sums.Table
Polynomial = NDArray[np.float64]
"""Coefficients of the powers of the place t, one column per group."""


def sketch_of(kind: cell_sums.Kind, grouped: Grouped) -> Sketch:
    """The sketch whose rows have these sums."""
    names = [] if grouped.group is None else np.unique(grouped.group).tolist()
    cell_sums.check_groups(names)
    groups = {name: _cells(kind, grouped.of_group(name)) for name in names}
    return Sketch.of(kind, _cells(kind, grouped), groups)


def _cells(kind: cell_sums.Kind, grouped: Grouped) -> cell_sums.Cells:
    cells, sums, terms = kind.empty(), grouped.sums, _Terms(grouped)
    for name, values in _fields(kind, terms):
        cells[name][:] = np.bincount(terms.at, values, grid.STEPS)
    np.minimum.at(cells.low, terms.at, sums["low"])
    np.maximum.at(cells.high, terms.at, sums["high"])
    cells.rows, cells.count = int(sums["rows"].sum()), float(terms.count.sum())
    if "w2_0" in sums:
        by_group = terms.squares()
        cells.squares = np.stack(
            [np.bincount(terms.at, x, grid.STEPS) for x in by_group]
        )
    cells.certain_no, cells.certain_yes = float(terms.no.sum()), float(terms.yes.sum())
    for name in kind.divergences:
        totals = terms.brier_totals() if name == "brier" else terms.log_totals()
        own = cell_sums.Totals.of_counted(*(float(x.sum()) for x in totals))
        if cells.squares is not None:
            squared = terms.squared_losses(name)
            own.w2_loss, own.w2_loss2 = (float(x.sum()) for x in squared)
        cells.totals[name] = own
    cells.find_values()
    cells.within = _residuals(grouped, terms, cells.within)
    return cells


def _residuals(grouped: Grouped, terms: _Terms, empty: Table | None) -> Table | None:
    """Sums of residuals by predicted class and bin, if these are kept and known."""
    if grouped.within is not None:
        return grouped.within
    if empty is None or "certain" not in grouped.sums:
        return None
    place = grouped.predicted * cell_sums.CLASS_BINS
    place += terms.cell // (grid.CELLS // cell_sums.CLASS_BINS)
    sums = np.bincount(place, terms.sum_of(terms.r), empty.size)
    return np.asarray(sums, float).reshape(empty.shape)


class _Terms:
    """Sums of polynomials of the place, and of columns times powers of it, by group.

    `at` is the cell of the path, to whose ends log-odds beyond the grid belong, `cell`
    that of probability; `no` and `yes` are the weight of rows of log-odds -inf and inf,
    `wrong` that of rows that were certain and wrong.
    """

    def __init__(self, grouped: Grouped) -> None:
        self.grouped, self.sums, self.hit = grouped, grouped.sums, grouped.hit
        self.weight = weight = self.sums["t_0"]
        alone = "rows" if "w2_0" in self.sums else "t_0"
        self.count = self.sums.get("count", self.sums[alone])
        no, yes = grouped.cell == CERTAIN_NO, grouped.cell >= CERTAIN_YES
        self.at = np.clip(grouped.cell, 1, grid.STEPS - 2)
        self.at[no], self.at[yes] = 0, grid.STEPS - 1
        self.no, self.yes = np.where(no, weight, 0.0), np.where(yes, weight, 0.0)
        if "certain" in self.sums:
            self.no, self.yes = np.zeros_like(weight), self.sums["certain"]
        self.wrong = np.where(self.hit == 1, self.no, self.yes)
        self.cell = grid.path().probability[self.at]
        centre = (self.cell + 0.5) / grid.CELLS
        step = np.full_like(centre, 1 / grid.CELLS)
        self.h = np.stack([centre, step])
        self.r = np.stack([self.hit - centre, -step])

    def sum_of(self, x: Polynomial, j: int = 0, weights: str = "t") -> Column:
        """The sums of the polynomial times t^j, perhaps by squared weights."""
        found = np.zeros(x.shape[1])
        for i, row in enumerate(x):
            found = found + row * self.sums[f"{weights}_{i + j}"]
        return found

    def squares(self) -> tuple[Column, ...]:
        """The sums of `cells.SQUARES`."""
        r2 = _power(self.r, 2)
        w2r = (self.sum_of(x, weights="w2") for x in (self.r, r2))
        return self.sums["w2_0"], *w2r, self.sum_of(r2, weights="w3")

    def squared_losses(self, name: str) -> tuple[Column, Column]:
        """Sums of loss and squared loss by squared weights."""
        if f"w2_{name}_0" in self.sums:
            return self.sums[f"w2_{name}_0"], self.sums[f"w2_{name}_square"]
        r2, r4 = (self.sum_of(_power(self.r, i), weights="w2") for i in (2, 4))
        return r2, r4

    def brier_loss(self, j: int) -> Column:
        """Sums of the Brier score times t^j."""
        if "brier_0" in self.sums:
            return self.sums[f"brier_{j}"]
        return self.sum_of(_power(self.r, 2), j)

    def cut_log_odds(self) -> Column:
        """Sums of log-odds, cut at the ends of the grid; 0 for certain rows."""
        if "z_cut" in self.sums:
            return self.sums["z_cut"]
        cell, beyond = self.grouped.cell, grid.LOG_ODDS_REACH * self.weight
        low = (cell < 1) & (cell != CERTAIN_NO)
        high = (cell > grid.STEPS - 2) & (cell < CERTAIN_YES)
        return np.where(low, -beyond, np.where(high, beyond, self.sums["z_0"]))

    def brier_totals(self) -> tuple[Column, ...]:
        """What adds up to `Totals` of the Brier score."""
        square = self.sums.get("brier_square")
        if square is None:
            square = self.sum_of(_power(self.r, 4))
        unit, tangent = self.sum_of(_power(self.r, 2)), self.sum_of(_power(self.h, 2))
        return self.brier_loss(0), square, unit, self.hit * self.weight, -tangent

    def log_totals(self) -> tuple[Column, ...]:
        """The same of the log loss."""
        # Of a hit the loss of the pair is softplus(-z), and softplus(z) that plus z.
        loss, square = self.sums["log_0"], self.sums["log_square"]
        unit = self.sums.get("unit_0", loss)
        tangent = -(unit + self.hit * self.sums["z_0"])
        if self.wrong.any():
            unit = np.full_like(unit, INFINITE)
        return loss, square, unit, np.zeros(1), tangent


def _power(x: Polynomial, exponent: int) -> Polynomial:
    found = np.ones((1, x.shape[1]))
    for _ in range(exponent):
        product = np.zeros((len(found) + len(x) - 1, x.shape[1]))
        for i, row in enumerate(found):
            product[i : i + len(x)] += row * x
        found = product
    return found


def _fields(kind: cell_sums.Kind, terms: _Terms) -> Iterator[tuple[str, Column]]:
    """Every field of a cell with its sums by group."""
    sums, hit = terms.sums, terms.hit
    for j in range(grid.ORDER):
        yield f"weight_{j}", sums[f"t_{j}"]
        yield f"hit_{j}", hit * sums[f"t_{j}"]
        yield f"brier_slope_{j}", terms.sum_of(2 * terms.h, j)
        yield f"brier_loss_{j}", terms.brier_loss(j)
        if "log" in kind.divergences:
            yield f"log_loss_{j}", sums[f"log_{j}"]
            yield f"log_slope_{j}", sums[f"z_{j}"]
    yield "hit2", hit * terms.weight
    for exponent in range(1, 5):
        yield f"r{exponent}", terms.sum_of(_power(terms.r, exponent))
    yield "h", terms.sum_of(terms.h)
    certain = grid.LOG_ODDS_REACH * (terms.yes - terms.no)
    yield "z", terms.cut_log_odds() + certain
    yield "finite_z", sums["z_0"]
    if "log" in kind.divergences:
        yield "log_infinite", sums.get("log_infinite", terms.wrong)


# -- rows in memory, summed by cell and hit in a loop: the query, without a frame -------
#
# A sketch adds rows in general: soft labels, weights, groups, distinct confidences. What is
# left once these are out of the question is quicker as one compiled loop.

FLUSH = 1 << 24
"""Rows after which partial sums join the total: sums of sums have less round-off."""

REDUCED = 1 << 12
"""Rows that are reduced and added up at a time, so that what is made of them stays in
cache."""


def _powers(name: str, first: int = 0) -> list[str]:
    return [f"{name}_{j}" for j in range(first, grid.ORDER)]


_ALWAYS = [*_powers("t"), f"t_{grid.ORDER}"]
WITH_BRIER = [*_ALWAYS, "brier_square", "z_0", *_powers("brier")]
WITH_LOG = [*_ALWAYS, "log_square", "z_0", *_powers("log"), "t_6", *_powers("z", 1)]

OF_TOP = [*WITH_BRIER, *_powers("log"), "log_square", "log_infinite", "unit_0"]
OF_TOP += ["certain", "z_cut", *_powers("z", 1)]
"""Names of the sums in the order of the compiled loops."""


class Tally:
    """Sums of unweighted rows that are hits or misses, all of one kind.

    `names` is `WITH_BRIER` or `WITH_LOG` for pairs with and without Brier scores, or
    `OF_TOP`; `classes` is the number of classes that may be predicted.
    """

    def __init__(self, names: list[str], classes: int = 0) -> None:
        cells = 2 * (grid.STEPS + 2)  # hit or not, two ends beyond the grid
        self._width = -(-(len(names) + 2) // 8) * 8  # whole cache lines
        self._table, self._part = np.zeros((2, cells, self._width))
        for table in (self._table, self._part):
            table[:, -2:] = np.inf, -np.inf
        self._within = np.zeros((classes, cell_sums.CLASS_BINS)) if classes else None
        self._names, self._new = names, 0

    def add_pairs(
        self, h: NDArray[Any], hit: NDArray[Any], loss: NDArray[Any] | None
    ) -> bool:
        """Add pairs if all are hits or misses and follow the rules; say whether."""
        given = h, hit, loss
        if any(x is not None and x.dtype.kind not in "bfiu" for x in given):
            return False
        extra = None if loss is None else compiled.ready(loss)
        rows = compiled.ready(h), compiled.ready(hit), extra
        fine = compiled.loops.add_pairs(self._width, self._part, *rows)
        self._count(len(h) if fine else 0)
        return fine

    def add_probs(self, predictions: Predictions) -> bool:
        """Add top labels of rows of probabilities; say whether all follow the rules."""
        assert self._within is not None
        n, fine = len(predictions.scores), True
        sums = self._width, self._within.shape[1], self._part, self._within
        for first in range(0, n, REDUCED):
            part = slice(first, first + REDUCED)
            scores, labels = predictions.scores[part], predictions.labels[part]
            out = Output(len(scores), {})
            some = replace(predictions, scores=scores, labels=labels)
            fine &= not reduce_compiled(some, out, 0, len(scores)).size
            top = out.confidence, out.log_odds, out.hit, out.brier, out.log
            compiled.loops.add_top(*sums, *top, out.predicted)
        self._count(n)
        return fine

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
        ends = {
            0: CERTAIN_NO,
            grid.STEPS - 1: CERTAIN_YES,
            grid.STEPS: 0,
            grid.STEPS + 1: grid.STEPS - 1,
        }
        cells = cell.copy()
        for place, name in ends.items():
            cells[cell == place] = name
        *columns, low, high = self._table[some].T
        sums = dict(zip(self._names, columns, strict=False))
        sums |= {"rows": sums["t_0"], "low": low, "high": high}
        hits, nobody = hit.astype(float), np.zeros_like(cell)
        return Grouped(cells, hits, nobody, None, sums, self._within)


def can_tally(kind: cell_sums.Kind) -> bool:
    """Whether rows of this kind are top labels, of no more classes than are kept."""
    few = len(kind.classes) * cell_sums.CLASS_BINS <= cell_sums.MOST_CLASS_BINS
    return kind.target == "top-label" and few
