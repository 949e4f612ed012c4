"""Check the p-values of calibrant's tests of calibration.

    python simulations/null_tests.py

draws data sets of calibrated rows, where p-values must be uniform, and of rows whose
accuracy is another than their confidence, to see how often each test finds out.
Writes `null_tests.md`.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import kstest

from calibrant._rows.columns import Columns
from calibrant._verbs.calibration_test import METHODS, run_test

HERE = Path(__file__).resolve().parent
LEVEL = 0.05
RESAMPLES = 199
Column = NDArray[np.float64]

LAWS: dict[str, Callable[[np.random.Generator, int], Column]] = {
    "uniform": lambda rng, n: rng.random(n),
    "saturated (mean 0.95)": lambda rng, n: 1 - 0.5 * rng.beta(0.2, 1.8, n),
    "nine values": lambda rng, n: rng.integers(1, 10, n) / 10,
}
"""Confidences: spread out, of a network that is mostly sure, and stated in tenths."""

TRUTHS: dict[str, Callable[[Column], Column]] = {
    "too sure: sigmoid(logit h / 1.25)": lambda h: expit(logit(h) / 1.25),
    "not sure enough: sigmoid(1.25 logit h)": lambda h: expit(1.25 * logit(h)),
    "2 points more": lambda h: np.minimum(h + 0.02, 1.0),
    "12 points fewer where 0.7 <= h <= 0.8": lambda h: np.where(
        (h >= 0.7) & (h <= 0.8), h - 0.12, h
    ),
}
"""Accuracies that differ from the confidence h."""

NULL_CASES = [(law, n) for law in LAWS for n in (200, 2_000)] + [("uniform", 40_000)]
POWER_CASES = [(law, n) for law in LAWS for n in (1_000, 4_000)]


def p_values(
    law: str,
    truth: Callable[[Column], Column],
    n: int,
    replicates: int,
    rng: np.random.Generator,
) -> dict[str, tuple[Column, str]]:
    """p-values of each test over data sets of one case, and the law they are from."""
    found: dict[str, list[float]] = {name: [] for name in METHODS}
    used = {}
    for _ in range(replicates):
        h = LAWS[law](rng, n)
        hit = (rng.random(n) < truth(h)).astype(float)
        for name in METHODS:
            test = run_test(Columns(h, None, hit), name, "auto", RESAMPLES, rng)
            found[name].append(test.p_value)
            used[name] = test.law
    return {name: (np.array(found[name]), used[name]) for name in METHODS}


def null_rows(replicates: int, seed: int) -> Iterable[list[str]]:
    """One row per law, n and test: distance from uniform, its p-value, size at 5 %."""
    for i, (law, n) in enumerate(NULL_CASES):
        rng = np.random.default_rng([seed, 0, i])
        for name, (p, used) in p_values(law, lambda h: h, n, replicates, rng).items():
            step = 1 / (RESAMPLES + 1) if used == "simulated" else 0.0
            distance = kstest(p - step * rng.random(replicates), "uniform")
            numbers = [f"{distance.statistic:.3f}", f"{distance.pvalue:.3f}"]
            sizes = [f"{np.mean(p <= level):.3f}" for level in (0.01, 0.05, 0.1)]
            yield [law, f"{n:,}", name, used, *numbers, *sizes]


def power_rows(replicates: int, seed: int) -> Iterable[list[str]]:
    """One row per law, truth and n: how often each test finds out."""
    for i, (law, n) in enumerate(POWER_CASES):
        for j, (words, truth) in enumerate(TRUTHS.items()):
            rng = np.random.default_rng([seed, 1, i, j])
            found = p_values(law, truth, n, replicates, rng)
            powers = [f"{np.mean(found[name][0] <= LEVEL):.2f}" for name in METHODS]
            yield [law, words, f"{n:,}", *powers]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; rows are shown as they come."""
    lines = [list(head), ["---"] * len(head)]
    for row in rows:
        click.echo(" | ".join(row), err=True)
        lines.append(list(row))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


PAGE = """\
# Tests of calibration under the null, and their power

Written by

    python simulations/null_tests.py --replicates {replicates} --power-replicates \
{power_replicates} --seed {seed}

## Calibrated rows

Each row summarises the p-values of {replicates:,} data sets. "Distance" is their largest
distance from the uniform law, and "p" what a Kolmogorov-Smirnov test says of it: with
{cases} rows, some p below 0.05 are expected, none below 0.001. Simulated p-values use
{resamples} resamples here, and are spread evenly over their step for this comparison. The
last columns are shares of data sets with a p-value of at most 0.01, 0.05 and 0.1.

Of confidences in tenths Spiegelhalter's statistic takes few values: about 5 of {resamples}
resamples equal the data's own and count as extreme, so that p-values are a little too
large in the middle. That is most of its distance, and the tails do not feel it.

{null}
## Other accuracies

Share of {power_replicates:,} data sets in which a test finds p <= 0.05.

{power}"""


@click.command(help=__doc__.split("\n")[0])
@click.option("--replicates", default=2000, show_default=True)
@click.option("--power-replicates", default=200, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option(
    "--output", type=click.Path(path_type=Path), default=HERE / "null_tests.md"
)
def main(replicates: int, power_replicates: int, seed: int, output: Path):
    head = ["confidence", "n", "test", "law", "distance", "p", "0.01", "0.05", "0.1"]
    null = table(head, null_rows(replicates, seed))
    head = ["confidence", "accuracy", "n", *METHODS]
    power = table(head, power_rows(power_replicates, seed))
    text = PAGE.format(
        replicates=replicates,
        power_replicates=power_replicates,
        seed=seed,
        cases=len(NULL_CASES) * len(METHODS),
        resamples=RESAMPLES,
        null=null,
        power=power,
    )
    output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
