"""One query: rows become sums by cell and hit, inside the engine that holds them.

Within a cell of hits, or of misses, the residual, the Brier score of a pair and the
slope of the Brier score are polynomials of the place t in the cell, so their sums follow
from those of the powers of t (`filling`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from acumen.engines.roles import Roles
from acumen.engines.terms import (
    CERTAIN_NO,
    CERTAIN_YES,
    CLASS,
    FIRST_ODDS,
    HIT,
    INFINITE,
    ODDS,
    Reading,
    Rule,
    Step,
    cut,
    key_of,
    number,
    places,
    positive,
    unless,
)
from acumen.grid import ORDER
from acumen.sums import LOG_ODDS_REACH

Frame = nw.LazyFrame[Any]

POWERS = ORDER + 1
"""The highest power of t that is summed: r^2 t^4 needs the sixth."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """Sums of rows: one entry of each array for each cell, hit, class and group.

    `cell` is not cut at the ends of the log-odds grid. `sums` has ``rows``, ``low``,
    ``high`` and those of `_contributions`, where ``x_j`` is the sum of x t^j. `within`
    is that of `State`, if it is known without `predicted`.
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
    weighted = roles.weight is not None
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
    if roles.weight is not None:
        kept["w"], w = number(roles.weight), nw.col("w")
        says = f"{roles.weight!r} must be a finite weight, not negative"
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
        if roles.weight is not None:
            off = nw.when(nw.col("w") == 0).then(none).otherwise(off)
        broken[f"rule{i}"] = off
    sums = (nw.col(name).sum() for name in broken)
    found = _collected(rows.select(**broken).select(nw.len().alias("rows"), *sums))
    for i, rule in enumerate(rules):
        if count := int(found[f"rule{i}"][0]):
            return ValueError(
                f"{rule.says}: {count} of {int(found['rows'][0])} rows break this. Find "
                "them with a filter of the engine, and drop or mend them."
            )
    return AssertionError("rows broke no rule, and left sums that only such rows leave")
