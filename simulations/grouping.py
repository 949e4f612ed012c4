"""Check the lower bound of the grouping loss where the truth is known.

    python -m simulations.grouping

draws data sets of laws whose grouping loss is known, with regions given and regions that
are learned, with weights and with clusters. Goes on where `grouping.json` ends; writes
`grouping.md`.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy

import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from math import sqrt
from pathlib import Path

import click
import numpy as np
from scipy.special import expit, logit, xlogy

import calibrant as cal
from simulations import tallies
from simulations.tallies import Case, table

HERE = Path(__file__).resolve().parent
SEED = 1


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


SEEN: dict[str, tuple[Callable, int]] = {
    "two kinds": (two_kinds, 4000),
    "four regions": (regions, 4000),
    "an unseen feature": (unseen, 4000),
    "nothing to find": (nothing, 4000),
}
"""Laws that constants were chosen on, and rows of a data set."""


def three_kinds(rng, n):
    """Kinds of 50, 30 and 20 %, off by -0.08, 0.02 and 0.17; calibrated over all."""
    kind = np.searchsorted([0.5, 0.8], rng.random(n), side="right")
    h = np.clip(rng.beta(2, 2, n), 0.1, 0.8)
    return h, h + np.array([-0.08, 0.02, 0.17])[kind], kind, kind[:, None] + 0.0


def waves(rng, n):
    """A feature whose sine moves what is likely by up to 0.2; eight regions of it."""
    x, h = rng.random((n, 2)), rng.uniform(0.25, 0.75, n)
    return h, h + 0.2 * np.sin(2 * np.pi * x[:, 0]), (8 * x[:, 0]).astype(int), x


def rare_kinds(rng, n):
    """About 8 % events, odds 2.2 times and a third as high in two kinds; not calibrated."""
    kind, h = rng.integers(0, 2, n), np.clip(rng.beta(1, 9, n), 0.01, 0.6)
    q = expit(logit(h) + np.where(kind == 1, 0.8, -1.1))
    return h, q, kind, np.column_stack([kind, rng.random(n)])


def few_regions(rng, n):
    """Three regions of a feature, of four stated confidences, in few rows."""
    x = rng.random((n, 2))
    h, kind = rng.choice([0.3, 0.45, 0.6, 0.75], n), (3 * x[:, 1]).astype(int)
    return h, h + np.array([-0.2, 0.0, 0.2])[kind], kind, x


UNSEEN: dict[str, tuple[Callable, int]] = {
    "three kinds": (three_kinds, 3000),
    "waves": (waves, 5000),
    "rare kinds": (rare_kinds, 5000),
    "few rows": (few_regions, 1000),
}
"""Laws that nothing was chosen by: made before the mending, and looked at after it."""

LAWS = SEEN | UNSEEN


@cache
def truth(law: str, divergence: str, *, given: bool) -> float:
    """The grouping loss, or the part that the regions explain, of 400,000 rows."""
    h, q, kind, _ = LAWS[law][0](np.random.default_rng(99), 400_000)
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
    make, n = LAWS[law]
    h, q, kind, x = make(rng, n)
    more = {}
    if beside == "weights":
        more["sample_weight"] = rng.lognormal(0, 0.6, n)
    if beside == "clusters":  # rows of a cluster share features, confidence and luck
        first = np.repeat(np.arange(0, n, 4), 4)
        h, q, kind, x = h[first], q[first], kind[first], x[first]
        more["cluster"] = first
        luck = np.where(rng.random(n) < 0.3, rng.random(n)[first], rng.random(n))
        return (luck < q).astype(int), h, kind, x, more
    return (rng.random(n) < q).astype(int), h, kind, x, more


CASES = (
    ("brier", "-"),
    ("log", "-"),
    ("brier", "weights"),
    ("brier", "clusters"),
)
LEARNED = tuple((m, d) for m in ("tree", "ridge") for d in ("brier", "log"))
GIVEN_HEAD = ("law", "divergence", "beside")
LEARNED_HEAD = ("law", "regions", "divergence")


def given(law: str, divergence: str, beside: str, replicate: int) -> tallies.Found:
    """Regions given: the truth is what they explain, and intervals are to hold it."""
    rng = np.random.default_rng([SEED, 0, *map(_number, (law, beside)), replicate])
    y, h, kind, _, more = drawn(law, beside, rng)
    how = {"explain": kind, "divergence": divergence}
    found = cal.grouping_loss(y, probs=h, **how, **more)
    yield "bound", found, truth(law, divergence, given=True)


def learned(law: str, method: str, divergence: str, replicate: int) -> tallies.Found:
    """Regions learned from features: the bound is to be below the truth."""
    rng = np.random.default_rng([SEED, 1, _number(law), replicate])
    y, h, _, x, more = drawn(law, "-", rng)
    how = {"explain": x, "divergence": divergence, "method": method}
    found = cal.grouping_loss(y, probs=h, **how, **more)
    yield "bound", found, truth(law, divergence, given=False)


def _number(word: str) -> int:
    return zlib.crc32(word.encode())


def cases(laws, measure) -> list[Case]:
    """Laws as cases, of regions given or learned."""
    ways = CASES if measure is given else LEARNED
    return [
        Case("/".join((law, *way)), "", n, partial(measure, law, *way))
        for law, (_, n) in laws.items()
        for way in ways
    ]


def lines(some, known: Mapping[str, dict], *, whole: bool) -> Iterator[list[str]]:
    """A line per case; coverage only where regions are given."""
    for case in some:
        own = known[case.name]
        if not own["sets"]:
            continue
        tally = own["of"]["bound"]
        sets, _, _, above, value, true, square = tally
        none = true / sets < 1e-5
        error = sqrt(max(square - (value - true) ** 2 / sets, 0.0)) / max(true, 1e-300)
        ratio = "-" if none else f"{value / true:.3f} ± {error:.3f}"
        told = [f"{true / sets:.5f}", f"{value / sets:.5f}", ratio]
        held = [tallies.share(tally, band=none)] if whole else []
        yield [
            *case.name.split("/"),
            *told,
            *held,
            f"{above / sets:.3f}",
            f"{sets:.0f}",
        ]


PAGE = """\
# The lower bound of the grouping loss

Written by

    python -m simulations.grouping

"Mean / truth" is to be at most 1, and at least 0.8 where the regions are good. Coverage of
95 % intervals is in per cent, with its binomial standard error; **bold** where it is outside
93 to 97, which a true coverage of 95 % is, by chance, in one of 14 numbers from 400 data sets.
Where there is nothing to find, intervals begin at 0 and hold the truth more often. Clusters are
four rows of the same features and confidence, three in ten of which share their luck. Of regions
given "truth" is what these regions explain; of regions learned from features it is the whole
grouping loss, and "above", how often the interval begins above it, is to be at most 0.025.

# Laws that nothing was chosen by

They were written down before they were first run: {unseen_sizes}.

## Regions as given

{unseen_given}
## Regions learned from features

{unseen_learned}
# Laws that constants were chosen on

{seen_sizes}.

## Regions as given, in laws seen before

{seen_given}
## Regions learned from features, in laws seen before

{seen_learned}"""


def sizes(laws) -> str:
    """Rows of a data set of each law."""
    return ", ".join(f"{law} ({n:,} examples)" for law, (_, n) in laws.items())


def page(known: Mapping[str, dict]) -> str:
    """The whole of `grouping.md`."""
    told = {}
    for name, laws in (("unseen", UNSEEN), ("seen", SEEN)):
        told[f"{name}_sizes"] = sizes(laws)
        own = "truth", "mean", "mean / truth"
        head = [*GIVEN_HEAD, *own, "coverage", "above", "data sets"]
        rows = lines(cases(laws, given), known, whole=True)
        told[f"{name}_given"] = table(head, rows)
        head = [*LEARNED_HEAD, *own, "above", "data sets"]
        rows = lines(cases(laws, learned), known, whole=False)
        told[f"{name}_learned"] = table(head, rows)
    return PAGE.format(**told)


@click.command(help=__doc__.split("\n")[0])
@click.option("--replicates", default=tallies.REPLICATES, show_default=True)
@click.option("--minutes", default=60.0, show_default=True)
@click.option("--only", default="given,learned,seen", show_default=True)
def main(replicates: int, minutes: float, only: str):
    kinds = {"given": cases(UNSEEN, given), "learned": cases(UNSEEN, learned)}
    kinds["seen"] = [*cases(SEEN, given), *cases(SEEN, learned)]
    every = [case for some in kinds.values() for case in some]
    own = tallies.chosen(only, kinds)
    tallies.run(every, HERE / "grouping.json", page, replicates, minutes, own)


if __name__ == "__main__":
    main()
