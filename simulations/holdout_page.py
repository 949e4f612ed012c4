"""Records of how estimates did where the truth is known, and the page they make."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import laws
import numpy as np
from laws import Column

SIZES = (1_000, 10_000, 50_000)

LEAST_TRUTH = 2e-4
"""Cases with less to find are left out of ratios and relative biases."""


@dataclass(frozen=True)
class Errors:
    """How one estimator did over the replicates of a case."""

    bias: float
    rmse: float
    count: int
    coverage: float = np.nan
    widened: float = 0.0
    """Share of the intervals that were widened for a narrow defect."""

    @classmethod
    def of(
        cls,
        values: Column,
        truth: float,
        intervals: Column | None = None,
        widened: Sequence[bool] = (False,),
    ):
        """Summarise estimates and, if there are any, (low, high) rows of intervals."""
        error = np.asarray(values) - truth
        spread = float(np.sqrt(np.mean(error**2)))
        if intervals is None:
            return cls(float(error.mean()), spread, len(error))
        low, high = np.asarray(intervals).T
        shares = ((low <= truth) & (truth <= high)).mean(), np.mean(widened)
        return cls(float(error.mean()), spread, len(error), *map(float, shares))


@dataclass(frozen=True)
class Comparison:
    """calibrant's estimate of one divergence beside others', in one case."""

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


def by_kind(cases: Sequence[Case]) -> str:
    """RMSE relative to the paper's, Brier and log, over some of the same cases."""
    kinds = {
        "networks": [c for c in cases if c.law not in laws.NO_NETWORKS],
        "other laws": [c for c in cases if c.law in laws.NO_NETWORKS],
        "fits of real outcomes": [c for c in cases if c.accuracy in laws.FITS],
        "wrong temperatures": [c for c in cases if c.accuracy not in laws.FITS],
    }
    head = ["RMSE / paper: Brier, log", *(f"n = {n:,}" for n in SIZES)]
    rows = [
        [kind, *(_ratios(smooth_cases(some, n)) for n in SIZES)]
        for kind, some in kinds.items()
    ]
    return table(head, rows)


def _ratios(cases: Sequence[Case]) -> str:
    brier, log = [case.brier for case in cases], [case.log for case in cases]
    return f"{mean_ratio(brier):.3f}, {mean_ratio(log):.3f} ({len(cases)})"


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
        "widened",
    ]
    return table(head, [_special_row(n, cases, accuracy) for n in SIZES])


def _special_row(n: int, cases: Sequence[Case], accuracy: str) -> list[str]:
    row = [f"{n:,}"]
    here = [case for case in cases if case.n == n and case.accuracy == accuracy]
    for found in ([case.brier for case in here], [case.log for case in here]):
        row += [
            _mean_bias([c.ours for c in found]),
            f"{np.mean([c.paper.bias for c in found]):+.1e}",
            f"{mean_ratio(found):.3f}",
            _coverages(found),
        ]
    widened = np.mean([case.log.ours.widened for case in here])
    return [*row, f"{100 * widened:.0f} %"]


def _mean_bias(errors: Sequence[Errors]) -> str:
    """Mean over cases, and the standard error that replicates leave."""
    se = np.sqrt(np.sum([e.rmse**2 / e.count for e in errors])) / len(errors)
    return f"{np.mean([e.bias for e in errors]):+.1e} ± {se:.0e}"


def each_case(cases: Iterable[Case]) -> str:
    """All there is to know: one row per case."""
    head = [
        *("law", "accuracy", "n"),
        *("d", "bias", "RMSE", "paper's", "bins'", "coverage"),
        *("log d", "bias", "RMSE", "paper's", "coverage", "widened"),
    ]
    return table(head, [case_row(case) for case in cases])


def case_row(case: Case) -> list[str]:
    """Numbers of one case, as they are printed."""
    row = [case.law, case.accuracy, f"{case.n:,}"]
    for found in (case.brier, case.log):
        ours = found.ours
        row += [f"{found.truth:.2e}", f"{ours.bias:+.1e}", f"{ours.rmse:.2e}"]
        row += [f"{found.paper.rmse:.2e}"]
        row += [] if found.bins is None else [f"{found.bins.rmse:.2e}"]
        row += [f"{ours.coverage:.3f}"]
    return [*row, f"{100 * case.log.ours.widened:.0f} %"]


PAGE = """\
# {title}

Written by

    python simulations/holdout.py --laws {laws} --replicates {replicates} \
--log-replicates {log_replicates} --seed {seed}

See `README.md` for what is simulated.

The calibration error d is that of the Brier score, (m - h)² on average; "log" is the
Kullback-Leibler one. Estimates are calibrant's (`bandwidth="auto"`), unclipped; "paper" is
the direct estimate at bandwidth 0.05; "bins" are debiased equal-mass bins, n^(1/3) of
them. Intervals are nominally 95 %. Their coverage is known within a standard error of
{brier_se:.3f} (log: {log_se:.3f}), so the least over cases looks worse than it is.
"Widened" is the share of log intervals that say they include a narrow defect.

## Smooth miscalibration

Beta-calibration and flexible fits of the real outcomes, and temperatures 1.5 and 0.8,
where d ≥ {least:g}. Ratios of RMSE are geometric means over cases.

{summary}
{by_kind}
## Calibrated models

d = 0, {count} laws for each n.

{calibrated}
## A narrow defect

Accuracy 0.12 below confidence between 0.7 and 0.8, and calibrated elsewhere.

{defect}
## Every case

{cases}"""


def page(cases: Sequence[Case], title: str, **options: Any) -> str:
    """The whole of `holdout.md` or `bench.md`."""
    return PAGE.format(
        title=title,
        **options,
        count=len({case.law for case in cases}),
        brier_se=np.sqrt(0.95 * 0.05 / options["replicates"]),
        log_se=np.sqrt(0.95 * 0.05 / options["log_replicates"]),
        least=LEAST_TRUTH,
        summary=summary(cases),
        by_kind=by_kind(cases),
        calibrated=special(cases, "calibrated"),
        defect=special(cases, "narrow defect"),
        cases=each_case(cases),
    )
