"""Check calibrant's calibration errors and their intervals where the truth is known.

    python simulations/holdout.py [--laws bench]

draws data sets from real laws of confidence with a known accuracy, and compares calibrant's
estimates with the truth, with the paper's estimate (bandwidth 0.05) and with debiased
bins. By default the laws are those on which no choice in the estimators was based; the
others are the bench, on which they were made. Writes `holdout.md` or `bench.md`.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import click
import laws
import numpy as np
from holdout_page import SIZES, Case, Comparison, Errors, case_row, page
from laws import Column, Law, Laws, Load

from calibrant._inputs.divergences import LOG
from calibrant._inputs.options import PAPER_BANDWIDTH
from calibrant._sketch.kernels import GAUSSIAN
from calibrant._sketch.ordered import Ordered
from calibrant._stats.bins import count_bins, debiased_square, mass_bins
from calibrant._stats.close_pairs import brier_error
from calibrant._stats.platt_error import local_error

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("CALIBRANT_DATA", HERE.parent.parent / "shared" / "data"))


@dataclass(frozen=True)
class Study:
    """Laws, the names of the accuracies to draw from, and where the page goes."""

    title: str
    laws: Laws
    truths: tuple[str, ...]
    page: str


STUDIES = {
    "hold-out": Study(
        "Hold-out simulation",
        laws.HOLD_OUT,
        laws.SMOOTH + laws.OTHERS,
        "holdout.md",
    ),
    "bench": Study(
        "Bench simulation",
        laws.BENCH,
        laws.SMOOTH + laws.OTHERS + laws.BENCH_ONLY,
        "bench.md",
    ),
}


# -- estimates ---------------------------------------------------------------------


def paper_errors(law: Law, count: Column, hits: Column) -> tuple[Column, Column]:
    """The paper's direct estimate, Brier and log, of each replicate (a column)."""
    K = GAUSSIAN.profile((law.h[:, None] - law.h) / PAPER_BANDWIDTH)
    accuracy = (K @ hits) / np.maximum(K @ count, 1e-300)
    n = count.sum(axis=0)
    squares = (accuracy - law.h[:, None]) ** 2
    return (
        (count * squares).sum(axis=0) / n,
        (count * law.divergence(accuracy.T).T).sum(axis=0) / n,
    )


def binned_error(law: Law, count: Column, hits: Column) -> float:
    """Debiased equal-mass bins, as many as the cube root of n."""
    some = count > 0
    ordered = Ordered.of(law.h[some], count[some], hits[some], hits[some])
    return debiased_square(mass_bins(ordered, count_bins("cube-root", count.sum())))


def simulate(
    law: Law,
    accuracy: Column,
    n: int,
    replicates: int,
    log_replicates: int,
    rng: np.random.Generator,
) -> tuple[Comparison, Comparison]:
    """Brier and log calibration errors over data sets of one case."""
    count, hits = laws.draw(law, accuracy, n, max(replicates, log_replicates), rng)
    cells = [
        laws.gather(law, *columns) for columns in zip(count.T, hits.T, strict=True)
    ]
    paper_brier, paper_log = paper_errors(law, count, hits)
    binned = [
        binned_error(law, *columns) for columns in zip(count.T, hits.T, strict=True)
    ]
    return (
        _compare(
            law.brier(accuracy),
            [brier_error(one) for one in cells[:replicates]],
            paper_brier,
            binned,
        ),
        _compare(
            law.log(accuracy),
            [local_error(one, LOG, engine="numba") for one in cells[:log_replicates]],
            paper_log,
        ),
    )


def _compare(truth, ours, paper, bins=None) -> Comparison:
    values, intervals = [x.value for x in ours], [x.interval for x in ours]
    return Comparison(
        truth,
        Errors.of(values, truth, intervals, [x.widened for x in ours]),
        Errors.of(paper[: len(ours)], truth),
        None if bins is None else Errors.of(bins[: len(ours)], truth),
    )


def simulate_all(
    study: Study, load: Load, replicates: int, log_replicates: int, seed: int
) -> Iterable[Case]:
    """Every law, truth and n; each case has its own seed, whatever else is run."""
    for i, (name, read) in enumerate(study.laws.items()):
        rows = read(load)
        law = laws.reduce_to_atoms(rows)
        for j, (truth, accuracy) in enumerate(laws.truths(law, rows).items()):
            for n in SIZES if truth in study.truths else ():
                rng = np.random.default_rng([seed, i, j, n])
                found = simulate(law, accuracy, n, replicates, log_replicates, rng)
                yield Case(name, truth, n, *found)


@click.command(help=__doc__.split("\n")[0])
@click.option("--laws", "chosen", type=click.Choice([*STUDIES]), default="hold-out")
@click.option("--replicates", default=1000, show_default=True)
@click.option("--log-replicates", default=400, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=DATA,
    help="Folder of real model outputs [default: $CALIBRANT_DATA].",
)
@click.option("--output", type=click.Path(path_type=Path), default=HERE)
def main(
    chosen: str,
    replicates: int,
    log_replicates: int,
    seed: int,
    data: Path,
    output: Path,
):
    load = cache(lambda name: np.load(data / f"{name}.npz", allow_pickle=False))
    study, cases = STUDIES[chosen], []
    for case in simulate_all(study, load, replicates, log_replicates, seed):
        click.echo(" ".join(case_row(case)), err=True)
        cases.append(case)
    options = {"replicates": replicates, "log_replicates": log_replicates, "seed": seed}
    text = page(cases, study.title, laws=chosen, **options)
    (output / study.page).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
