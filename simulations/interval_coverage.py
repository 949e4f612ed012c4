"""Check how often calibrant's intervals hold the truth.

    python simulations/interval_coverage.py

draws data sets from laws of scores with a known accuracy, computes every interval of
`calibrant.evaluate_pairs`, and counts those that hold the population value. Writes
`coverage.md`, and keeps the counts of each finished case in `coverage.json`, so that a
run that was stopped goes on where it was. Delete that file once an interval has changed.
"""

import json
from collections.abc import Iterable
from itertools import product
from pathlib import Path

import click
import numpy as np
from coverage_page import GAP_EVERY, KINDS, page
from worlds import WORLDS, Column, World, rival, truths

from calibrant._inputs.divergences import BRIER
from calibrant._inputs.options import RESAMPLES, Settings
from calibrant._rows.columns import Columns
from calibrant._stats import closed_forms as intervals
from calibrant._stats.close_pairs import brier_error
from calibrant._stats.decomposition import analyse, cells_of_columns
from calibrant._stats.intervals import gap_interval
from calibrant._stats.metrics import estimates
from calibrant._stats.neighbours import cells_of_sketch
from calibrant._stats.sample import Sample

HERE = Path(__file__).resolve().parent
SIZES = (1_000, 10_000, 100_000)


# -- intervals ---------------------------------------------------------------------


def find_intervals(a: Column, p: Column, kind: str) -> dict[str, tuple]:
    """Intervals that `evaluate_pairs` gives, and that of a paired difference.

    Closed forms are the same however few resamples there are, so these are few then.
    """
    few = RESAMPLES[0] if kind == "closed" else Settings().resamples
    settings = Settings(resamples=few).checked()
    sample = Sample.of_rows(Columns(p, None, a), settings, "positive", 2)
    found = {name: value.interval for name, value in estimates(sample).items()}
    found["total"] = found["brier"]
    found["calibration"] = brier_error(cells_of_sketch(sample.cells)).interval
    found["paired"] = paired((a - rival(p)) ** 2 - (a - p) ** 2)
    return {name: found[name] for name in KINDS[kind] if name in found}


def gap_of(a: Column, p: Column) -> tuple:
    """Interval of the sharpness gap, which needs the curve."""
    settings, columns = Settings().checked(), Columns(p, None, a)
    seen = analyse(columns, cells_of_columns(columns, settings), settings, 1.0)
    parts, curve = seen.decompositions["brier"], seen.curves["brier"]
    return gap_interval(parts, curve, columns, BRIER, settings.level).interval


def paired(difference: Column) -> tuple[float, float]:
    """Normal interval of a mean difference of losses."""
    se = difference.std() / np.sqrt(len(difference))
    return intervals.normal(difference.mean(), se, 0.95)


def simulate(
    world: World, n: int, kind: str, replicates: int, seed: int
) -> dict[str, dict[str, float]]:
    """Coverage, share of intervals above the truth, and mean length, by metric."""
    truth = truths(world)
    judged: dict[str, list] = {name: [] for name in KINDS[kind]}
    for replicate in range(replicates):
        rng = np.random.default_rng([seed, WORLDS.index(world), n, replicate])
        a, p = world.draw(n, rng)
        found = find_intervals(a, p, kind)
        if kind == "resampled" and replicate % GAP_EVERY == 0:
            found["sharpness_gap"] = gap_of(a, p)
        for name, ends in found.items():
            judged[name].append(_judge(*ends, truth[name]))
    return {name: _summary(np.array(rows)) for name, rows in judged.items()}


def _judge(low: float, high: float, truth: float) -> tuple[bool, bool, float]:
    slack = 1e-12  # the truth itself is a sum
    return low <= truth + slack and truth <= high + slack, truth < low, high - low


def _summary(rows: Column) -> dict[str, float]:
    covered, above, length = rows.mean(axis=0)
    return {"covered": covered, "above": above, "length": length, "count": len(rows)}


# -- cases -------------------------------------------------------------------------


def finished(path: Path, seed: int) -> list[dict]:
    """Cases that an earlier run with the same seed left."""
    if not path.exists():
        return []
    kept = json.loads(path.read_text("utf-8"))
    return kept["cases"] if kept["seed"] == seed else []


def missing(
    cases: Iterable[dict], kinds: Iterable[str], sizes: Iterable[int], replicates: int
) -> Iterable[tuple[str, int, World]]:
    """Kinds, sizes and worlds that have too few replicates, small ones first."""
    done = {key_of(case) for case in cases if case["replicates"] >= replicates}
    for n, kind, world in product(sizes, kinds, WORLDS):
        if (world.name, n, kind) not in done:
            yield kind, n, world


def key_of(case: dict) -> tuple[str, int, str]:
    """What tells cases apart."""
    return case["world"], case["n"], case["kind"]


def in_order(cases: Iterable[dict]) -> list[dict]:
    """The last run of each case, by world, n and kind."""
    names = [world.name for world in WORLDS]
    last = {key_of(case): case for case in cases}
    return sorted(
        last.values(), key=lambda c: (names.index(c["world"]), c["n"], c["kind"])
    )


@click.command(help=__doc__.split("\n")[0])
@click.option("--kind", "kinds", multiple=True, type=click.Choice([*KINDS]))
@click.option("--replicates", default=1000, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--least", default=SIZES[0], show_default=True, help="Smallest n to run.")
@click.option("--most", default=SIZES[-1], show_default=True, help="Largest n to run.")
@click.option("--output", default=HERE, type=click.Path(path_type=Path))
def main(
    kinds: tuple[str, ...],
    replicates: int,
    seed: int,
    least: int,
    most: int,
    output: Path,
):
    """Simulate every case and write the table."""
    kept = output / "coverage.json"
    cases = finished(kept, seed)
    sizes = [n for n in SIZES if least <= n <= most]
    for kind, n, world in missing(cases, kinds or KINDS, sizes, replicates):
        found = simulate(world, n, kind, replicates, seed)
        names = {"world": world.name, "n": n, "kind": kind, "replicates": replicates}
        cases = in_order([*cases, names | {"found": found}])
        kept.write_text(json.dumps({"seed": seed, "cases": cases}, indent=1), "utf-8")
        click.echo(f"{world.name}, n = {n:,}, {kind}")
    (output / "coverage.md").write_text(page(cases, seed), encoding="utf-8")


if __name__ == "__main__":
    main()
