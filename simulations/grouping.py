"""Check the lower bound of the grouping loss where the truth is known.

    python simulations/grouping.py

draws data sets of laws whose grouping loss is known, with regions given and regions that
are learned, with weights and with clusters. Writes `grouping.md`.
"""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import click
import numpy as np
from null_tests import table
from scipy.special import expit, logit, xlogy

import calibrant as cal

HERE = Path(__file__).resolve().parent
N = 4000


def two_kinds(rng, n):
    """Two kinds of rows, unlike in what is likely by 0.3, at every confidence."""
    kind, h = rng.integers(0, 2, n), rng.uniform(0.2, 0.8, n)
    return h, h + np.where(kind == 1, 0.15, -0.15), kind, kind[:, None] + 0.0


def regions(rng, n):
    """Four regions of two features, with other confidences, off in log-odds by 0.5."""
    x = rng.random((n, 2))
    kind = 2 * (x[:, 0] > 0.5) + (x[:, 1] > 0.5)
    h = np.clip(rng.beta(2 + kind, 3), 0.02, 0.98)
    return h, expit(logit(h) + np.array([-0.5, 0.5, -0.5, 0.5])[kind]), kind, x


def unseen(rng, n):
    """A logistic law of two features, of which the model sees one, calibrated."""
    x = rng.normal(size=(n, 2))
    q = expit(x[:, 0] + 1.2 * x[:, 1])
    grid = np.polynomial.hermite_e.hermegauss(60)
    nodes, weights = grid[0], grid[1] / grid[1].sum()
    h = expit(x[:, :1] + 1.2 * nodes) @ weights
    kind = np.digitize(x[:, 1], (-1.2, -0.6, -0.2, 0.2, 0.6, 1.2))
    return h, q, kind, x


def nothing(rng, n):
    """Features that tell nothing which the confidence does not."""
    h = rng.uniform(0.05, 0.95, n)
    return h, h, rng.integers(0, 4, n), rng.normal(size=(n, 3))


LAWS: dict[str, Callable] = {
    "two kinds": two_kinds,
    "four regions": regions,
    "an unseen feature": unseen,
    "nothing to find": nothing,
}


@cache
def truth(law: str, divergence: str, *, given: bool) -> float:
    """The grouping loss, or the part that the regions explain, of 400,000 rows."""
    h, q, kind, _ = LAWS[law](np.random.default_rng(99), 400_000)
    fine = np.minimum((h * 500).astype(int), 499)
    level = _mean(fine, q)
    best = _mean(fine * 10 + kind, q) if given else q
    if divergence == "brier":
        return float(((best - level) ** 2).mean())
    each = xlogy(best, best / level) + xlogy(1 - best, (1 - best) / (1 - level))
    return float(each.mean())


def _mean(place, q):
    count = np.bincount(place)
    return (np.bincount(place, q) / np.maximum(count, 1))[place]


def drawn(law: str, beside: str, rng):
    """A data set, with weights that do not depend on the outcome, or clusters."""
    h, q, kind, x = LAWS[law](rng, N)
    more = {}
    if beside == "weights":
        more["sample_weight"] = rng.lognormal(0, 0.6, N)
    if beside == "clusters":  # rows of a cluster share features, confidence and luck
        first = np.repeat(np.arange(0, N, 4), 4)
        h, q, kind, x = h[first], q[first], kind[first], x[first]
        more["cluster"] = first
        luck = np.where(rng.random(N) < 0.3, rng.random(N)[first], rng.random(N))
        return (luck < q).astype(int), h, kind, x, more
    return (rng.random(N) < q).astype(int), h, kind, x, more


def given_rows(replicates: int, seed: int) -> Iterator[list[str]]:
    """Regions given: the truth is what they explain, and intervals are to hold it."""
    for i, law in enumerate(LAWS):
        for j, (divergence, beside) in enumerate(CASES):
            rng = np.random.default_rng([seed, 0, i, j])
            known = truth(law, divergence, given=True)
            found = []
            for _ in range(replicates):
                y, h, kind, _, more = drawn(law, beside, rng)
                how = {"explain": kind, "divergence": divergence}
                found.append(cal.grouping_loss(y, probs=h, **how, **more))
            yield [law, divergence, beside, f"{known:.5f}", *_summary(found, known)]


CASES = (
    ("brier", "-"),
    ("log", "-"),
    ("brier", "weights"),
    ("brier", "clusters"),
)


def _summary(found, known: float) -> list[str]:
    values = np.array([float(x) for x in found])
    held = np.mean([x.interval[0] <= known <= x.interval[1] for x in found])
    above = np.mean([x.interval[0] > known for x in found])
    ratio = f"{values.mean() / known:.2f}" if known > 1e-5 else "-"
    spread = f"{values.mean():.5f}", f"{values.std():.5f}"
    return [*spread, ratio, f"{held:.3f}", f"{above:.3f}"]


def learned_rows(replicates: int, seed: int) -> Iterator[list[str]]:
    """Regions learned from features: the bound is to be below the truth."""
    for i, law in enumerate(LAWS):
        for j, method in enumerate(("tree", "ridge")):
            for divergence in ("brier", "log"):
                rng = np.random.default_rng([seed, 1, i, j])
                known = truth(law, divergence, given=False)
                found = []
                for _ in range(replicates):
                    y, h, _, x, more = drawn(law, "-", rng)
                    how = {"explain": x, "divergence": divergence, "method": method}
                    found.append(cal.grouping_loss(y, probs=h, **how, **more))
                *numbers, _, above = _summary(found, known)
                yield [law, method, divergence, f"{known:.5f}", *numbers, above]


PAGE = """\
# The lower bound of the grouping loss

Written by

    python simulations/grouping.py --replicates {replicates} --seed {seed}

Data sets have {n:,} examples. "Mean / truth" is to be at most 1, and at least 0.8 where the
regions are good.

## Regions as given

"Truth" is what these regions explain. Coverage of 95 % intervals over {replicates}
data sets has a standard error of {se:.3f}. Where there is nothing to find, intervals begin
at 0 and hold the truth more often. Clusters are four rows of the same features and
confidence, three in ten of which share their luck.

{given}
## Regions learned from features

"Truth" is the whole grouping loss. The last column is how often the interval begins above
it, which is to be at most 0.025.

{learned}"""


@click.command(help=__doc__.split("\n")[0])
@click.option("--replicates", default=300, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--output", type=click.Path(path_type=Path), default=HERE / "grouping.md")
def main(replicates: int, seed: int, output: Path):
    head = ["law", "divergence", "beside", "truth", "mean", "sd", "mean / truth"]
    given = table([*head, "coverage", "begins above"], given_rows(replicates, seed))
    head = ["law", "regions", "divergence", "truth", "mean", "sd", "mean / truth"]
    learned = table([*head, "begins above"], learned_rows(replicates // 2, seed))
    told = {"replicates": replicates, "seed": seed, "n": N}
    told["se"] = (0.05 * 0.95 / replicates) ** 0.5
    output.write_text(
        PAGE.format(given=given, learned=learned, **told), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
