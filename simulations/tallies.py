"""Tallies of intervals, by case: kept in a file, gone on with, and shown as a table.

A case draws data set number r and says what was found beside what is true. Its tallies go to
a JSON file beside the page, so that a run may stop at any time and go on later.
"""

import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import numpy as np
from scipy.stats import binom

import calibrant as cal

Found = Iterable[tuple[str, cal.Estimate, float]]
"""What a number is called, its estimate, and the truth."""

REPLICATES, EVERY = 400, 20
LOW, HIGH = 0.93, 0.97
SLACK = 1e-9


@dataclass(frozen=True)
class Case:
    """A law, how many examples a data set has, and what is measured of data set r."""

    name: str
    words: str
    n: int
    measure: Callable[[int], Found]


Tally = dict[str, list[float]]
"""By number: data sets, those with an interval, those whose interval holds the truth, those
whose interval begins above it, and the sums of estimates, truths and squared errors."""


def tally_of(found: Found, tally: Tally) -> Tally:
    """The same with one more data set."""
    for key, value, truth in found:
        slack = SLACK * (1 + abs(truth))
        known = value.interval is not None
        low, high = value.interval if known else (truth, truth)
        held = known and low - slack <= truth <= high + slack
        new = [1, known, held, known and low - slack > truth, float(value), truth]
        new.append((float(value) - truth) ** 2)
        old = tally.get(key, [0] * len(new))
        tally[key] = [x + y for x, y in zip(old, map(float, new), strict=True)]
    return tally


def run(
    cases: Sequence[Case],
    path: Path,
    page: Callable[[Mapping[str, dict]], str],
    replicates: int = REPLICATES,
    minutes: float = 1e9,
    only: Collection[str] | None = None,
) -> None:
    """Go on until each case has so many data sets or time is up, and write the page."""
    known = json.loads(path.read_text()) if path.exists() else {}
    known = {case.name: known.get(case.name, {"sets": 0, "of": {}}) for case in cases}
    stop = time.monotonic() + 60 * minutes
    for goal in range(EVERY, replicates + EVERY, EVERY):
        for case in (x for x in cases if only is None or x.name in only):
            _go_on(case, known[case.name], min(goal, replicates), stop)
        if time.monotonic() > stop:
            break
    path.write_text(json.dumps(known, indent=0) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(page(known), encoding="utf-8")


def _go_on(case: Case, own: dict, goal: int, stop: float) -> None:
    while own["sets"] < goal and time.monotonic() < stop:
        tally_of(case.measure(own["sets"]), own["of"])
        own["sets"] += 1


def chosen(only: str, kinds: Mapping[str, Sequence[Case]]) -> set[str]:
    """Names of the cases of these kinds, or of these names."""
    asked = only.split(",")
    every = [(kind, case.name) for kind, cases in kinds.items() for case in cases]
    return {name for kind, name in every if kind in asked or name in asked}


# -- pages -----------------------------------------------------------------------------


def share(tally: Sequence[float] | None, *, band: bool = False) -> str:
    """Coverage in per cent with its binomial error; bold outside 93 to 97.

    A band is to hold at least so often. Where intervals are missing, how many.
    """
    if not tally or not tally[0]:
        return ""
    sets, some, held = tally[:3]
    if not some:
        return "no interval"
    p = held / some
    error = sqrt(max(p * (1 - p), 0.5 / some) / some)
    told = f"{100 * p:.1f} ± {100 * error:.1f}"
    if p < LOW or (p > HIGH and not band):
        told = f"**{told}**"
    return told if some == sets else f"{told} ({sets - some:.0f} none)"


def coverage_table(
    cases: Sequence[Case],
    known: Mapping[str, dict],
    bands: Sequence[str] = (),
    plain: Sequence[str] = (),
) -> str:
    """A line per number, a column per case; plain ones are never bold."""
    used = [case for case in cases if known.get(case.name, {}).get("sets")]
    keys = dict.fromkeys(key for case in used for key in known[case.name]["of"])
    lines = [
        [
            f"*{key}*" if key in bands else key,
            *(_cell(known[c.name]["of"].get(key), key, bands, plain) for c in used),
        ]
        for key in keys
    ]
    names = (f"`{case.name.rstrip('*')}`" for case in used)
    return table(["", *names], lines)


def _cell(tally: Sequence[float] | None, key: str, bands, plain) -> str:
    told = share(tally, band=key in bands)
    return told.replace("**", "") if key in plain else told


def legend(cases: Sequence[Case], known: Mapping[str, dict]) -> str:
    """What each case is, with its examples and data sets."""
    return "".join(
        f"- `{c.name}`: {c.words}; {c.n:,} examples, {known[c.name]['sets']} data sets\n"
        for c in cases
    )


def outside(
    cases: Sequence[Case], known: Mapping[str, dict], bands: Sequence[str] = ()
) -> str:
    """How many coverages are below 93, within, and above 97, bands left out."""
    some = [
        tally
        for case in cases
        for key, tally in known[case.name]["of"].items()
        if tally[1] and key not in bands
    ]
    shares = [tally[2] / tally[1] for tally in some]
    low, high = sum(x < LOW for x in shares), sum(x > HIGH for x in shares)
    chance = [_by_chance(int(tally[1])) for tally in some]
    return (
        f"Of {len(shares)} coverages {low} are below 93 %, "
        f"{len(shares) - low - high} within 93 to 97 %, {high} above; so few data sets put "
        f"{sum(x for x, _ in chance):.0f} below and {sum(x for _, x in chance):.0f} above by "
        "chance if all true ones are 95 %."
    )


def _by_chance(sets: int) -> tuple[float, float]:
    """How likely a true coverage of 95 % looks lower than 93 %, and higher than 97 %."""
    held = np.arange(sets + 1)
    chance = binom.pmf(held, sets, 0.95)
    return float(chance[held / sets < LOW].sum()), float(
        chance[held / sets > HIGH].sum()
    )


def table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    rows = [list(head), *map(list, lines)]
    rows.insert(1, ["---"] * len(rows[0]))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"
