"""What an engine computes of every row, as expressions it understands.

Confidence and hit first, then the cell the row falls in. Arguments of logarithms are
made positive before, since engines differ in what they make of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw

from acumen.blocks import ROW_SUM_TOLERANCE
from acumen.engines.roles import Roles
from acumen.grid import CELLS
from acumen.sums import LOG_ODDS_CELLS, LOG_ODDS_REACH

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
    label, p = nw.col(str(roles.label)), nw.col("p")
    cases = [(label == no, nw.lit(0.0)), (label == yes, nw.lit(1.0))]
    rules = (
        Rule(
            (p >= 0) & (p <= 1 + ROW_SUM_TOLERANCE[dtype]),
            f"{roles.probs[0]!r} must be in [0, 1]",
        ),
        Rule(nw.col("a") < 2, f"{roles.label!r} must be {no!r} or {yes!r}", shows=True),
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
            f"{roles.label!r} must hold numbers or names of the {k} classes",
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
    label = nw.col(str(roles.label))
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
