"""Check that tests of calibration keep their level where rows are in clusters or weighted.

    python -m simulations.clustered_tests

Draws data sets that are calibrated row by row, whose hits agree within clusters, and counts how
often each test rejects. Goes on where `clustered_tests.json` ends; writes
`clustered_tests.md`.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
import numpy as np

import calibrant as cal
from calibrant._verbs.calibration_test import METHODS
from simulations import tallies
from simulations.tallies import Case
from simulations.worlds import Clusters

HERE = Path(__file__).resolve().parent
SEED, RESAMPLES, LEVELS = 1, 199, (0.01, 0.05, 0.1)


@dataclass(frozen=True)
class Law:
    """Calibrated rows: how many, how they hang together, and the spread of log-weights."""

    name: str
    words: str
    n: int
    clusters: Clusters | None = None
    weights: float = 0.0

    def draw(self, replicate: int) -> dict:
        """The arguments of a test, but for its method."""
        rng = np.random.default_rng([SEED, self.n, sum(map(ord, self.name)), replicate])
        place, chance = rng.random((2, self.n))
        given = {}
        if self.clusters is not None:
            given["cluster"] = number = self.clusters.numbers(self.n, rng)
            place, chance = self.clusters.uniforms(number, rng)
        if self.weights:
            spread = self.weights * rng.standard_normal(self.n)
            given["sample_weight"] = np.exp(spread)
        h = 1 - 0.7 * place**2  # from 0.3 to 1, most of them large
        return {"y": chance < h, "confidence": h, **given}


LAWS = (
    Law("plain", "independent rows", 800),
    Law("heavy", "independent rows, log-normal weights of 1", 800, weights=1.0),
    Law("c30", "30 clusters of 8, near confidences", 240, Clusters(8, 0.5, 0.1)),
    Law("c100", "100 clusters of 8, near confidences", 800, Clusters(8, 0.5, 0.1)),
    Law("c200", "200 clusters of 4, near confidences", 800, Clusters(4, 0.5, 0.1)),
    Law("c500", "500 clusters of 4, free confidences", 2000, Clusters(4, 0.5, None)),
    Law(
        "uneven", "about 300 clusters of uneven size", 2000, Clusters(4, 0.5, 0.1, 1.0)
    ),
    Law(
        "both", "200 clusters of 4 and weights of 0.5", 800, Clusters(4, 0.5, 0.1), 0.5
    ),
)


def measure(law: Law, replicate: int) -> tallies.Found:
    """Whether each test rejects at each level: an interval that holds 1 if it does."""
    given = law.draw(replicate)
    for method in METHODS:
        rest = {"method": method, "resamples": RESAMPLES, "rng": replicate}
        p = cal.calibration_test(**given, **rest).p_value
        for level in LEVELS:
            rejects = float(p <= level)
            yield f"{method} {level}", cal.Estimate(rejects, (rejects, rejects)), 1.0


CASES = [Case(law.name, law.words, law.n, partial(measure, law)) for law in LAWS]

PAGE = """\
# Tests of calibration with clusters and weights

Written by

    python -m simulations.clustered_tests

Each row of these data sets is calibrated; hits of a cluster agree (a Gaussian copula of
correlation 0.5), and beyond 128 clusters the tests put clusters together. Given is the
share of data sets in which a test rejects, in per cent with its binomial standard error: it is to be
1, 5 and 10, or less. P-values use {resamples} resamples.

{legend}
{table}"""


def page(known) -> str:
    """The whole of `clustered_tests.md`."""
    head = ["test", "level", *(f"`{case.name}`" for case in CASES)]
    lines = [
        [
            method,
            f"{100 * level:.0f} %",
            *(_share(known, c, method, level) for c in CASES),
        ]
        for method in METHODS
        for level in LEVELS
    ]
    legend = tallies.legend(CASES, known)
    table = tallies.table(head, lines)
    return PAGE.format(resamples=RESAMPLES, legend=legend, table=table)


def _share(known, case: Case, method: str, level: float) -> str:
    return tallies.share(known[case.name]["of"].get(f"{method} {level}")).strip("*")


@click.command(help=__doc__.split("\n")[0])
@click.option("--replicates", default=1000, show_default=True)
@click.option("--minutes", default=60.0, show_default=True)
def main(replicates: int, minutes: float):
    tallies.run(CASES, HERE / "clustered_tests.json", page, replicates, minutes)


if __name__ == "__main__":
    main()
