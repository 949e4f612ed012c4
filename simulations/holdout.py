"""Check acumen's calibration errors and their intervals on laws not used to choose them.

    python simulations/holdout.py

draws data sets from real laws of confidence on which no choice in the estimators was
based, with a known accuracy, and compares acumen's estimates with the truth, with the
paper's estimate (bandwidth 0.05) and with debiased bins. Writes `holdout.md`.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import click
import laws
import numpy as np
from laws import Column, Law, Load

from acumen.bregman import LOG
from acumen.estimators.adaptive import brier_error
from acumen.estimators.bins import count_bins, debiased_square, mass_bins
from acumen.estimators.local_error import local_error
from acumen.kernels import GAUSSIAN
from acumen.ordered import Ordered
from acumen.settings import PAPER_BANDWIDTH

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("ACUMEN_DATA", HERE.parent.parent / "shared" / "data"))
SIZES = (1_000, 10_000, 50_000)

LEAST_TRUTH = 2e-4
"""Cases with less to find are left out of ratios and relative biases."""


@dataclass(frozen=True)
class Errors:
    """How one estimator did over the replicates of a case."""

    bias: float
    rmse: float
    coverage: float = np.nan

    @classmethod
    def of(cls, values: Column, truth: float, intervals: Column | None = None):
        """Summarise estimates and, if there are any, (low, high) rows of intervals."""
        error = np.asarray(values) - truth
        spread = float(np.sqrt(np.mean(error**2)))
        if intervals is None:
            return cls(float(error.mean()), spread)
        low, high = np.asarray(intervals).T
        covered = (low <= truth) & (truth <= high)
        return cls(float(error.mean()), spread, float(covered.mean()))


@dataclass(frozen=True)
class Comparison:
    """acumen's estimate of one divergence beside others', in one case."""

    truth: float
    ours: Errors
    paper: Errors
    bins: Errors | None = None


@dataclass(frozen=True)
class Case:
    """One law, one true accuracy, one n."""

    law: str
    accuracy: str
    n: int
    brier: Comparison
    log: Comparison


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
            [local_error(one, LOG) for one in cells[:log_replicates]],
            paper_log,
        ),
    )


def _compare(truth, ours, paper, bins=None) -> Comparison:
    values, intervals = [x.value for x in ours], [x.interval for x in ours]
    return Comparison(
        truth,
        Errors.of(values, truth, intervals),
        Errors.of(paper[: len(ours)], truth),
        None if bins is None else Errors.of(bins[: len(ours)], truth),
    )


def simulate_all(
    load: Load, replicates: int, log_replicates: int, seed: int
) -> Iterable[Case]:
    """Every law, truth and n; each case has its own seed, whatever else is run."""
    for i, (name, read) in enumerate(laws.HOLD_OUT.items()):
        rows = read(load)
        law = laws.reduce_to_atoms(rows)
        for j, (truth, accuracy) in enumerate(laws.truths(law, rows).items()):
            for n in SIZES:
                rng = np.random.default_rng([seed, i, j, n])
                found = simulate(law, accuracy, n, replicates, log_replicates, rng)
                yield Case(name, truth, n, *found)


# -- tables ------------------------------------------------------------------------


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def summary(cases: Sequence[Case]) -> str:
    """One row per n, over the smooth truths with something to find."""
    head = [
        *("n", "cases"),
        *("RMSE / paper", "RMSE / bins", "bias %, median / 90 %", "coverage (least)"),
        *("log: RMSE / paper", "bias %, median / 90 %", "coverage (least)"),
    ]
    return table(head, [_summary_row(n, smooth_cases(cases, n)) for n in SIZES])


def smooth_cases(cases: Iterable[Case], n: int) -> list[Case]:
    """Cases of size n whose accuracy is smooth and not too close to calibrated."""
    return [
        case
        for case in cases
        if case.n == n
        and case.accuracy in laws.SMOOTH
        and case.brier.truth >= LEAST_TRUTH
    ]


def _summary_row(n: int, cases: Sequence[Case]) -> list[str]:
    brier, log = [case.brier for case in cases], [case.log for case in cases]
    bins = [c.ours.rmse / c.bins.rmse for c in brier]
    return [
        f"{n:,}",
        str(len(cases)),
        f"{mean_ratio(brier):.3f}",
        f"{geometric_mean(bins):.3f}",
        *(_biases(brier), _coverages(brier)),
        f"{mean_ratio(log):.3f}",
        *(_biases(log), _coverages(log)),
    ]


def mean_ratio(comparisons: Iterable[Comparison]) -> float:
    """Geometric mean over cases of our RMSE relative to the paper's."""
    return geometric_mean([c.ours.rmse / c.paper.rmse for c in comparisons])


def geometric_mean(values: Sequence[float]) -> float:
    """The exponential of the mean log."""
    return float(np.exp(np.mean(np.log(values))))


def _biases(comparisons: Iterable[Comparison]) -> str:
    sizes = [100 * abs(c.ours.bias) / c.truth for c in comparisons]
    return f"{np.median(sizes):.1f} / {np.quantile(sizes, 0.9):.1f}"


def _coverages(comparisons: Iterable[Comparison]) -> str:
    coverage = [c.ours.coverage for c in comparisons]
    return f"{np.mean(coverage):.3f} ({np.min(coverage):.3f})"


def special(cases: Sequence[Case], accuracy: str) -> str:
    """One row per n for the calibrated models, or those with a narrow defect."""
    head = [
        *("n", "mean bias", "paper's", "RMSE / paper", "coverage (least)"),
        *("log: mean bias", "paper's", "RMSE / paper", "coverage (least)"),
    ]
    return table(head, [_special_row(n, cases, accuracy) for n in SIZES])


def _special_row(n: int, cases: Sequence[Case], accuracy: str) -> list[str]:
    row = [f"{n:,}"]
    here = [case for case in cases if case.n == n and case.accuracy == accuracy]
    for found in ([case.brier for case in here], [case.log for case in here]):
        row += [
            f"{np.mean([c.ours.bias for c in found]):+.1e}",
            f"{np.mean([c.paper.bias for c in found]):+.1e}",
            f"{mean_ratio(found):.3f}",
            _coverages(found),
        ]
    return row


def each_case(cases: Iterable[Case]) -> str:
    """All there is to know: one row per case."""
    head = [
        *("law", "accuracy", "n"),
        *("d", "bias", "RMSE", "paper's", "bins'", "coverage"),
        *("log d", "bias", "RMSE", "paper's", "coverage"),
    ]
    return table(head, [_case_row(case) for case in cases])


def _case_row(case: Case) -> list[str]:
    row = [case.law, case.accuracy, f"{case.n:,}"]
    for found in (case.brier, case.log):
        ours = found.ours
        row += [f"{found.truth:.2e}", f"{ours.bias:+.1e}", f"{ours.rmse:.2e}"]
        row += [f"{found.paper.rmse:.2e}"]
        row += [] if found.bins is None else [f"{found.bins.rmse:.2e}"]
        row += [f"{ours.coverage:.3f}"]
    return row


PAGE = """\
# Hold-out simulation

Written by

    python simulations/holdout.py --replicates {replicates} --log-replicates \
{log_replicates} --seed {seed}

See `README.md` for what is simulated.

The calibration error d is that of the Brier score, (m - h)² on average; "log" is the
Kullback-Leibler one. Estimates are acumen's (`bandwidth="auto"`), unclipped; "paper" is
the direct estimate at bandwidth 0.05; "bins" are debiased equal-mass bins, n^(1/3) of
them. Intervals are nominally 95 %. Their coverage is known within a standard error of
{brier_se:.3f} (log: {log_se:.3f}), so the least over cases looks worse than it is.

## Smooth miscalibration

Beta-calibration and flexible fits of the real outcomes, and temperatures 1.5 and 0.8,
where d ≥ {least:g}. Ratios of RMSE are geometric means over cases.

{summary}
## Calibrated models

d = 0, nine laws for each n.

{calibrated}
## A narrow defect

Accuracy 0.12 below confidence between 0.7 and 0.8, and calibrated elsewhere.

{defect}
## Every case

{cases}"""


def page(cases: Sequence[Case], **options: int) -> str:
    """The whole of `holdout.md`."""
    return PAGE.format(
        **options,
        brier_se=np.sqrt(0.95 * 0.05 / options["replicates"]),
        log_se=np.sqrt(0.95 * 0.05 / options["log_replicates"]),
        least=LEAST_TRUTH,
        summary=summary(cases),
        calibrated=special(cases, "calibrated"),
        defect=special(cases, "narrow defect"),
        cases=each_case(cases),
    )


@click.command(help=__doc__.split("\n")[0])
@click.option("--replicates", default=1000, show_default=True)
@click.option("--log-replicates", default=400, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=DATA,
    help="Folder of real model outputs [default: $ACUMEN_DATA].",
)
@click.option("--output", type=click.Path(path_type=Path), default=HERE / "holdout.md")
def main(replicates: int, log_replicates: int, seed: int, data: Path, output: Path):
    load = cache(lambda name: np.load(data / f"{name}.npz", allow_pickle=False))
    cases = []
    for case in simulate_all(load, replicates, log_replicates, seed):
        click.echo(" ".join(_case_row(case)), err=True)
        cases.append(case)
    options = {"replicates": replicates, "log_replicates": log_replicates, "seed": seed}
    output.write_text(page(cases, **options), encoding="utf-8")


if __name__ == "__main__":
    main()
