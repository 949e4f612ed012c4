"""Check how often acumen's intervals hold the truth.

    python simulations/coverage.py

draws data sets from laws of scores with a known accuracy, computes every interval of
`acumen.evaluate_pairs`, and counts those that hold the population value. Writes
`coverage.md`, and keeps the counts of each finished case in `coverage.json`, so that a
run that was stopped goes on where it was. Delete that file once an interval has changed.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from acumen import intervals
from acumen.analysis import analyse, sketch_for
from acumen.bregman import BRIER
from acumen.columns import Columns
from acumen.estimators.adaptive import brier_error
from acumen.estimators.bins import width_bins
from acumen.estimators.neighbours import cells_of_sketch
from acumen.estimators.smoothing import SmoothedResidual
from acumen.ordered import order
from acumen.scores import all_metrics
from acumen.settings import Settings
from acumen.uncertainty.decomposition_intervals import gap_interval

HERE = Path(__file__).resolve().parent
SIZES = (1_000, 10_000, 100_000)
BINS, CELLS, PLACES = 15, 9600, 960_000
GAP_EVERY = 5
"""The gap needs the curve, which takes most of the time: one replicate in five."""

HEADLINE = ("total", "ece_debiased", "calibration", "smooth_ece", "paired")
OTHERS = ("ece", "ace", "mce", "ece_mass", "ks_error", "confidence_gap", "auroc")
TERMS = ("accuracy", "nll", "mcb", "dsc", "unc", "sharpness_gap")
LEAST, MOST = 0.92, 0.97

Column = NDArray[np.float64]


# -- worlds ------------------------------------------------------------------------


def uniform(u: Column) -> Column:
    """Scores spread evenly."""
    return u


def arcsine(u: Column) -> Column:
    """Quantile function of Beta(1/2, 1/2): most scores near 0 and 1."""
    return np.sin(np.pi * u / 2) ** 2


@dataclass(frozen=True)
class World:
    """Scores p = score(u), u uniform, and the accuracy at each score."""

    name: str
    score: Callable[[Column], Column]
    accuracy: Callable[[Column], Column]

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Column, Column]:
        """Hits and scores of n rows."""
        p = self.score(rng.random(n))
        return (rng.random(n) < self.accuracy(p)).astype(float), p


ACCURACIES: dict[str, Callable[[Column], Column]] = {
    "calibrated": lambda p: p,
    "p²": lambda p: p**2,
    "over-confident": lambda p: expit(0.4 * logit(p) + 0.3),
    "under-confident": lambda p: expit(4 * logit(p) + 1),
    "p + 0.02": lambda p: np.minimum(p + 0.02, 1),
}
WORLDS = [
    World(f"{law}, {name}", score, accuracy)
    for law, score in (("uniform", uniform), ("Beta(½,½)", arcsine))
    for name, accuracy in ACCURACIES.items()
]


def rival(p: Column) -> Column:
    """Another model's scores of the same rows, for the paired difference."""
    return expit(0.7 * logit(np.clip(p, 1e-12, 1 - 1e-12)))


@cache
def truths(world: World) -> dict[str, float]:
    """Population values of every metric, as means over many evenly spaced places."""
    u = (np.arange(PLACES) + 0.5) / PLACES
    p = world.score(u)
    m = world.accuracy(p)
    r, hit_rate = m - p, m.mean()
    brier, d = (m * (1 - p) ** 2 + (1 - m) * p**2).mean(), (r**2).mean()
    other = rival(p)
    return {
        "total": brier,
        "calibration": d,
        "sharpness_gap": brier - d,
        "paired": (m * (1 - other) ** 2 + (1 - m) * other**2).mean() - brier,
        "ece_debiased": np.sqrt(d),
        "accuracy": np.where(p >= 0.5, m, 1 - m).mean(),
        "nll": -(m * np.log(p) + (1 - m) * np.log1p(-p)).mean(),
        "confidence_gap": -r.mean(),
        "auroc": _auroc(m),
        "mcb": d,
        "dsc": m.var(),
        "unc": hit_rate * (1 - hit_rate),
        **_norms(p, r, u),
    }


def _auroc(m: Column) -> float:
    below = np.cumsum(1 - m) - 0.5 * (1 - m)
    return float((m * below).sum() / (m.sum() * (1 - m).sum()))


def _norms(p: Column, r: Column, u: Column) -> dict[str, float]:
    place = np.minimum((p * BINS).astype(int), BINS - 1)
    residual = np.bincount(place, r, BINS) / len(p)
    gap = np.abs(residual) / (np.bincount(place, minlength=BINS) / len(p))
    in_mass_bins = np.bincount((u * BINS).astype(int), r, BINS) / len(p)
    nodes = np.bincount(np.minimum((p * CELLS).astype(int), CELLS - 1), r, CELLS)
    smoothed = SmoothedResidual(nodes, len(p))
    return {
        "ece": np.abs(residual).sum(),
        "ace": gap.mean(),
        "mce": gap.max(),
        "ece_mass": np.abs(in_mass_bins).sum(),
        "ks_error": np.abs(np.cumsum(r)).max() / len(p),
        "smooth_ece": smoothed.error(smoothed.fixed_point()),
    }


# -- intervals ---------------------------------------------------------------------


def find_intervals(a: Column, p: Column, *, gap: bool) -> dict[str, tuple]:
    """Every interval that `evaluate_pairs` gives, and that of a paired difference.

    Without the gap, the curve is left out and the rest is the same.
    """
    settings = Settings().checked()
    columns = Columns(p, None, a)
    sketch, ordered = sketch_for(columns, settings), order(columns)
    bins = width_bins(ordered, BINS)
    values = ordered.without_twins()
    rows = columns, sketch, ordered, values, bins
    metrics = all_metrics(*rows, settings, "positive", 2)
    found = {name: value.interval for name, value in metrics.items()}
    found["total"] = found["brier"]
    found["calibration"] = brier_error(cells_of_sketch(sketch)).interval
    found["paired"] = paired((a - rival(p)) ** 2 - (a - p) ** 2)
    if gap:
        seen = analyse(columns, sketch, settings, 1.0)
        parts, curve = seen.decompositions["brier"], seen.curves["brier"]
        estimate = gap_interval(parts, curve, columns, BRIER, settings.level)
        found["sharpness_gap"] = estimate.interval
    return found


def paired(difference: Column) -> tuple[float, float]:
    """Normal interval of a mean difference of losses."""
    se = difference.std() / np.sqrt(len(difference))
    return intervals.normal(difference.mean(), se, 0.95)


def simulate(
    world: World, n: int, replicates: int, seed: int
) -> dict[str, dict[str, float]]:
    """Coverage, share of intervals above the truth, and mean length, by metric."""
    truth = truths(world)
    counts: dict[str, list] = {name: [] for name in truth}
    for replicate in range(replicates):
        rng = np.random.default_rng([seed, WORLDS.index(world), n, replicate])
        a, p = world.draw(n, rng)
        found = find_intervals(a, p, gap=replicate % GAP_EVERY == 0)
        for name, ends in found.items():
            if name in truth:
                counts[name].append(_judge(*ends, truth[name]))
    return {name: _summary(np.array(rows)) for name, rows in counts.items()}


def _judge(low: float, high: float, truth: float) -> tuple[bool, bool, float]:
    slack = 1e-12  # the truth itself is a sum
    return low <= truth + slack and truth <= high + slack, truth < low, high - low


def _summary(rows: Column) -> dict[str, float]:
    covered, above, length = rows.mean(axis=0)
    return {"covered": covered, "above": above, "length": length, "count": len(rows)}


# -- table -------------------------------------------------------------------------


def table(cases: Sequence[dict], names: Sequence[str]) -> str:
    """One row for each world and n; coverages outside 92-97 % are marked."""
    lines = [["scores, accuracy", "n", *names], ["---"] * (len(names) + 2)]
    for case in cases:
        cells = [_shown(case["found"][name]) for name in names]
        lines.append([case["world"], f"{case['n']:,}", *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _shown(found: dict[str, float]) -> str:
    share = f"{100 * found['covered']:.1f}"
    return share if LEAST <= found["covered"] <= MOST else f"**{share}**"


def overview(cases: Sequence[dict]) -> str:
    """Least, mean and largest coverage of each metric, by n."""
    sizes = sorted({case["n"] for case in cases})
    lines = [["metric", *(f"n = {n:,}" for n in sizes)]]
    lines.append(["---"] * (len(sizes) + 1))
    for name in (*HEADLINE, *OTHERS, *TERMS):
        row = [name]
        for n in sizes:
            here = [c["found"][name]["covered"] for c in cases if c["n"] == n]
            share = 100 * np.array(here)
            row.append(f"{share.mean():.1f} ({share.min():.1f} to {share.max():.1f})")
        lines.append(row)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


PAGE = """\
# Coverage of the intervals

Written by

    python simulations/coverage.py --replicates {replicates} --seed {seed}

Share of nominal 95 % intervals that hold the population value, in per cent, over
{replicates} data sets of each case (sharpness_gap: {gaps}). The standard error of an
entry is {se:.1f} ({gap_se:.1f} for the gap). Shares outside 92 to 97 are bold. Scores
are uniform or Beta(½,½); the accuracy is the score itself (calibrated), its square,
σ(0.4 logit p + 0.3), σ(4 logit p + 1) or min(p + 0.02, 1). `total` is the Brier score,
`calibration` d_CAL, and `paired` the difference in Brier score to another model on the
same rows.

## Overview

Mean over the cases (least to largest).

{overview}
## Headline

{headline}
## Other calibration errors, and averages

{others}
## Terms of decompositions

{terms}"""


def page(cases: Sequence[dict], replicates: int, seed: int) -> str:
    """The whole of `coverage.md`."""
    gaps = -(-replicates // GAP_EVERY)
    return PAGE.format(
        replicates=replicates,
        seed=seed,
        gaps=gaps,
        se=100 * np.sqrt(0.95 * 0.05 / replicates),
        gap_se=100 * np.sqrt(0.95 * 0.05 / gaps),
        overview=overview(cases),
        headline=table(cases, HEADLINE),
        others=table(cases, OTHERS),
        terms=table(cases, TERMS),
    )


def finished(path: Path, replicates: int, seed: int) -> list[dict]:
    """Cases that an earlier run with the same options left."""
    if not path.exists():
        return []
    kept = json.loads(path.read_text("utf-8"))
    same = (kept["replicates"], kept["seed"]) == (replicates, seed)
    return kept["cases"] if same else []


def missing(cases: Sequence[dict], sizes: Iterable[int]) -> Iterable[tuple[World, int]]:
    """Worlds and sizes still to be simulated, small ones first."""
    done = {(case["world"], case["n"]) for case in cases}
    return ((w, n) for n in sizes for w in WORLDS if (w.name, n) not in done)


@click.command()
@click.option("--replicates", default=1000, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--most", default=SIZES[-1], show_default=True, help="Largest n to run.")
@click.option("--output", default=HERE, type=click.Path(path_type=Path))
def main(replicates: int, seed: int, most: int, output: Path) -> None:
    """Simulate every case and write the table."""
    kept = output / "coverage.json"
    cases = finished(kept, replicates, seed)
    for world, n in missing(cases, [n for n in SIZES if n <= most]):
        found = simulate(world, n, replicates, seed)
        cases.append({"world": world.name, "n": n, "found": found})
        state = {"replicates": replicates, "seed": seed, "cases": cases}
        kept.write_text(json.dumps(state, indent=1), encoding="utf-8")
        click.echo(f"{world.name}, n = {n:,}")
    names = [world.name for world in WORLDS]
    cases.sort(key=lambda case: (names.index(case["world"]), case["n"]))
    (output / "coverage.md").write_text(page(cases, replicates, seed), encoding="utf-8")


if __name__ == "__main__":
    main()
