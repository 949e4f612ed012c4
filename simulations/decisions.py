"""How often intervals of risk and coverage, decisions and clinical measures hold the truth.

    python -m simulations.decisions

Data sets come from worlds whose truth is known: that of 50,021 evenly spaced places whose
outcomes are their own probabilities. Writes `decisions.md`.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: processes share the cores

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from operator import add
from pathlib import Path

import click
import numpy as np

import calibrant as cal
from simulations.worlds import (
    Clusters,
    Weights,
    World,
    beta,
    normal,
    rival,
    same,
    tempered,
)

HERE = Path(__file__).resolve().parent
N, REPLICATES, PART, SEED, RESAMPLES = 1000, 400, 50, 1, 200
PLACES = 50_021
BENEFIT, COST, ACCEPTED = (0.1, 0.3), (0.2, 0.5), 0.8

RISK = beta(1.2, 3)
WORLDS = (
    World("calibrated", "risks of Beta(1.2, 3), calibrated", RISK, same),
    World("off", "the same, temperature 1.5", RISK, tempered(1.5)),
    World("rare", "3 % events, calibrated", beta(0.6, 19), same, rare=True),
    World("sure", "saturated, temperature 1.5", normal(2.5, 1.5), tempered(1.5)),
    World(
        "weights_cal", "log-normal weights, calibrated", RISK, same, Weights(spread=1.0)
    ),
    World(
        *("weights_off", "log-normal weights, temperature 1.5", RISK, tempered(1.5)),
        Weights(spread=1.0),
    ),
    World(
        *("clusters_cal", "10 rows of any risk, calibrated", RISK, same, None),
        Clusters(10, 0.25, near=None),
    ),
    World(
        *("clusters_off", "10 rows of near risk, temperature 1.5", RISK, tempered(1.5)),
        *(None, Clusters(10, 0.25, near=0.02)),
    ),
)
CLINICAL = (
    *("in_the_large", "oe_ratio", "intercept", "slope", "joint_intercept", "ici"),
    *("e50", "e90", "emax", "scaled_brier", "c_statistic"),
)
CONSERVATIVE = ("e50", "e90", "emax", "decision loss")
"""Their intervals are bands, which promise to hold at least as often as their level."""

Numbers = Mapping[str, cal.Estimate]


def accepted(hit, h):
    """Whether the likelier outcome came true, and how likely it was."""
    return np.where(h >= 0.5, hit, 1 - hit), np.maximum(h, 1 - h)


def selective(hit, h, risk, **given) -> Iterator[tuple[str, cal.Estimate]]:
    """Numbers of the risk-coverage curve; `risk` is the one that coverage is asked at."""
    right, sure = accepted(hit, h)
    found = cal.risk_coverage(right, confidence=sure, **given)
    yield from (("AURC", found.aurc), ("E-AURC", found.excess), ("AUGRC", found.augrc))
    yield f"accuracy at {ACCEPTED:.0%}", found.accuracy_at(ACCEPTED)
    yield "coverage at a risk", found.coverage_at(risk)


def decisions(hit, h, **given) -> Iterator[tuple[str, cal.Estimate]]:
    """Net benefit, elementary scores, and the cumulative differences."""
    curve = cal.decision_curve(hit, confidence=h, thresholds=BENEFIT, **given)
    for t, *found in zip(
        BENEFIT, curve.net_benefit, curve.low, curve.high, strict=True
    ):
        yield f"net benefit at {t:g}", cal.Estimate(found[0], tuple(found[1:]))
    curve = cal.murphy(hit, confidence=h, thresholds=COST, **given)
    for t, *found in zip(COST, curve.score, curve.low, curve.high, strict=True):
        yield f"Murphy score at {t:g}", cal.Estimate(found[0], tuple(found[1:]))


def walk(hit, h, **given) -> Iterator[tuple[str, cal.Estimate]]:
    """Numbers of the cumulative differences."""
    found = cal.cutoff_error(hit, confidence=h, resamples=RESAMPLES, **given)
    yield from (("cutoff error", found.error), ("decision loss", found.decision_loss))


def difference(hit, h, **given) -> Iterator[tuple[str, cal.Estimate]]:
    """What another model's Murphy score is more."""
    pair = [
        cal.evaluate_pairs(hit, x, interval=None, name=name, **given)
        for name, x in {"rival": rival(h), "own": h}.items()
    ]
    found = cal.murphy(pair[0], baseline=pair[1], thresholds=COST)
    for t, *ends in zip(COST, found.score, found.low, found.high, strict=True):
        yield f"Murphy difference at {t:g}", cal.Estimate(ends[0], tuple(ends[1:]))


def measured(hit, h, risk, **given) -> dict[str, cal.Estimate]:
    """Everything, of one data set."""
    found = dict(selective(hit, h, risk, **given)) | dict(decisions(hit, h, **given))
    found |= dict(walk(hit, h, **given)) | dict(difference(hit, h, **given))
    told = cal.clinical(hit, confidence=h, resamples=RESAMPLES, **given).estimates
    return found | {key: told[key] for key in CLINICAL}


@cache
def truth_of(world: World) -> tuple[dict[str, float], float]:
    """Population values, and the risk at the coverage that is asked for."""
    h = world.confidence((np.arange(PLACES) + 0.5) / PLACES)
    m = world.truth_at(h)
    right, sure = accepted(m, h)
    risk = 1 - float(cal.risk_coverage(right, confidence=sure).accuracy_at(ACCEPTED))
    found = {key: float(x) for key, x in measured(m, h, risk).items()}
    rate, score = m.mean(), (m * (1 - h) ** 2 + (1 - m) * h**2).mean()
    return found | {"scaled_brier": 1 - score / (rate * (1 - rate))}, risk


Tally = dict[str, tuple[int, ...]]
"""By quantity: data sets with an interval, and those whose interval holds the truth."""


def coverage(world: World, replicates: Iterable[int], n: int = N) -> Tally:
    """How often intervals hold, over these data sets."""
    (truth, risk), tally = truth_of(world), defaultdict(lambda: np.zeros(2, int))
    for replicate in replicates:
        rows = world.draw(n, replicate, SEED)
        hit = rows.hit.astype(float)
        for key, found in measured(hit, rows.confidence, risk, **rows.given).items():
            if found.interval is not None:
                tiny = 1e-9 * (1 + abs(truth[key]))
                low, high = found.interval
                tally[key] += (1, low - tiny <= truth[key] <= high + tiny)
    return {key: tuple(map(int, x)) for key, x in tally.items()}


def _part(task: tuple[int, int]) -> tuple[str, Tally]:
    """A part of the data sets of a world."""
    world, block = WORLDS[task[0]], task[1]
    return world.name, coverage(world, range(block * PART, (block + 1) * PART))


def table(head: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    whole = [list(head), ["---"] * len(list(head)), *map(list, lines)]
    return "\n".join(f"| {' | '.join(line)} |" for line in whole) + "\n"


PAGE = """\
# Risk and coverage, decisions, clinical measures: how often intervals hold

Written by

    python -m simulations.decisions

{replicates} data sets of {n:,} examples from each world; intervals of 95 %. A number is the
share of intervals, in per cent, that hold the truth; chance moves 95 by two standard errors
(one is {error:.1f}). *Bands* promise to hold at least as often as that: E50,
E90, Emax and the decision loss. Intervals of errors near 0 begin at 0, so in calibrated
worlds they can miss on one side only.

{worlds}
{table}
"""


def page(found: Mapping[str, Tally]) -> str:
    """The whole of `decisions.md`."""
    keys = list(dict.fromkeys(key for each in found.values() for key in each))
    lines = [
        [_named(key), *(_share(each.get(key)) for each in found.values())]
        for key in keys
    ]
    worlds = "".join(f"- `{x.name}`: {x.words}\n" for x in WORLDS if x.name in found)
    replicates = min(each["AURC"][0] for each in found.values())
    error = 100 * (0.95 * 0.05 / replicates) ** 0.5
    shown = table(["", *found], lines)
    given = {"replicates": replicates, "n": N, "error": error}
    return PAGE.format(**given, worlds=worlds, table=shown)


def _named(key: str) -> str:
    return f"*{key}*" if key in CONSERVATIVE else key


def _share(found: tuple[int, ...] | None) -> str:
    return "" if not found else f"{100 * found[1] / found[0]:.1f}"


@click.command(help=__doc__.split("\n")[0])
@click.option("--replicates", default=REPLICATES, show_default=True)
@click.option("--processes", default=2, show_default=True)
@click.option("--output", default=HERE, type=click.Path(path_type=Path))
def main(replicates: int, processes: int, output: Path):
    found = {world.name: {} for world in WORLDS}
    tasks = [
        (i, block) for block in range(replicates // PART) for i in range(len(WORLDS))
    ]
    with ProcessPoolExecutor(processes) as pool:
        for done, (name, tally) in enumerate(pool.map(_part, tasks), start=1):
            old = found[name]
            found[name] = {
                k: tuple(map(add, x, old.get(k, (0, 0)))) for k, x in tally.items()
            }
            if done % len(WORLDS) == 0:
                (output / "decisions.md").write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
