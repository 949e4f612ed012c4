"""Check intervals and tests of groups: differences, the worst, equality, overlap.

    python -m simulations.groups

Data sets have groups whose accuracy at a confidence is known, with weights and with clusters.
Goes on where `groups.json` ends; writes `groups.md`.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import click
import numpy as np
from scipy.special import xlog1py, xlogy

import calibrant as cal
from calibrant._inputs.options import Settings
from calibrant._inputs.predictions import read_predictions
from calibrant._verbs import compare_groups
from simulations import tallies
from simulations.tallies import Case
from simulations.worlds import Clusters, Map, atoms, beta, normal, same, tempered

HERE = Path(__file__).resolve().parent
SEED, PLACES = 1, 20_011
KEYS = ("brier", "nll", "accuracy", "calibration")
BANDS = (
    *(f"worst {key}" for key in KEYS),
    "all gaps at once",
    "multicalibration error",
)
"""Intervals that hold for all groups at once, and may cover more."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups by their share, law of confidences and accuracy; weights and clusters."""

    name: str
    words: str
    n: int
    groups: tuple[tuple[float, Map, Map], ...]
    spread: float = 0.0
    clusters: Clusters | None = None
    crossed: bool = False

    @property
    def names(self) -> list[str]:
        """One letter each."""
        return list("abcdefgh"[: len(self.groups)])

    def draw(self, replicate: int):
        """Labels, confidences, groups, and weights or clusters."""
        rng = np.random.default_rng([SEED, zlib.crc32(self.name.encode()), replicate])
        n, more = self.n, {}
        number = (
            np.arange(n) if self.clusters is None else self.clusters.numbers(n, rng)
        )
        shares = np.cumsum([share for share, _, _ in self.groups])[:-1]
        pick = rng.random(n) if self.crossed else rng.random(n)[number]
        group = np.searchsorted(shares, pick, side="right")
        place, luck = rng.random((2, n))
        if self.clusters is not None:
            place, luck = self.clusters.uniforms(number, rng)
            more["cluster"] = number
        h, m = np.empty(n), np.empty(n)
        for i, (_, law, accuracy) in enumerate(self.groups):
            own = group == i
            h[own] = law(place[own])
            m[own] = accuracy(h[own])
        if self.spread:
            more["sample_weight"] = rng.lognormal(0, self.spread, n)
        return (luck < m).astype(int), h, np.array(self.names)[group], more


def shifted(by: float) -> Map:
    """Accuracy of log-odds that are more by this."""
    return tempered(1.0, by)


def seen() -> Iterator[Groups]:
    """Groups that intervals were looked at on while they were mended."""
    law = lambda u: np.clip(beta(1.5, 2)(u), 0.01, 0.99)
    three = tuple((1 / 3, law, shifted(x)) for x in (0.0, 0.3, 0.6))
    words = "three groups whose odds are as forecast, 1.35 and 1.82 times that"
    yield Groups("plain", words, 1800, three)
    yield Groups("weights", "the same, log-normal weights of 0.5", 1800, three, 0.5)
    fours = Clusters(4, 0.4, near=None)
    yield Groups("clusters", "the same, clusters of 4", 1800, three, 0.0, fours)


def unseen() -> Iterator[Groups]:
    """Groups that nothing was chosen by: made before the mending, and looked at after it."""
    words = "groups of 70, 20 and 10 % with unlike confidences, two of them off"
    laws = (0.7, beta(2, 2), same), (0.2, beta(1, 3), tempered(1.4))
    laws = (*laws, (0.1, beta(3, 1.5), shifted(-0.5)))
    yield Groups("unequal", words, 1000, laws)
    words = "3 % events; odds as forecast and 1.5 times that"
    rare = beta(0.6, 19)
    yield Groups("rare", words, 3000, ((0.5, rare, same), (0.5, rare, shifted(0.4))))
    words = "five values; two groups, one off by 0.1"
    five = atoms((0.1, 0.3, 0.5, 0.7, 0.9))
    off = (0.4, five, lambda h: 0.1 + 0.75 * h)
    yield Groups("ties", words, 600, ((0.6, five, same), off))
    words = "three groups of about 50, not sure enough"
    law = normal(0.5, 1.0)
    few = tuple((1 / 3, law, tempered(t)) for t in (0.8, 1.0, 1.3))
    yield Groups("few", words, 150, few)
    words = "50, 30 and 20 %, log-normal weights of 1"
    laws = (0.5, beta(2, 3), same), (0.3, beta(2, 3), shifted(0.3))
    laws = (*laws, (0.2, beta(2, 3), tempered(1.5)))
    yield Groups("heavy", words, 1500, laws, 1.0)
    words = "clusters of 6 with rows in every group"
    six = Clusters(6, 0.3, near=None)
    yield Groups("crossed", words, 1200, laws, 0.0, six, crossed=True)
    words = "25 clusters of about 8 in each of two groups, sizes uneven"
    laws = (0.5, beta(2, 2), same), (0.5, beta(2, 2), tempered(1.4))
    own = Clusters(8, 0.25, near=0.2, spread=0.4)
    yield Groups("few_clusters", words, 400, laws, 0.0, own)
    words = "three groups calibrated alike: temperature 1.5 in each"
    alike = tuple((s, beta(a, 2), tempered(1.5)) for s, a in ((0.5, 2), (0.5, 1)))
    yield Groups("alike", words, 1000, alike)


# -- what is true ------------------------------------------------------------------------


@cache
def population(world: Groups):
    """Confidence and accuracy at evenly spaced places of each group."""
    u = (np.arange(PLACES) + 0.5) / PLACES
    h = [law(u) for _, law, _ in world.groups]
    return h, [accuracy(x) for x, (_, _, accuracy) in zip(h, world.groups, strict=True)]


@cache
def truths(world: Groups) -> dict[str, np.ndarray]:
    """By metric, the value of each group."""
    found: dict[str, list[float]] = {key: [] for key in (*KEYS, "gap")}
    for h, m in zip(*population(world), strict=True):
        found["brier"].append(np.mean(m * (1 - h) ** 2 + (1 - m) * h**2))
        found["nll"].append(-np.mean(xlogy(m, h) + xlog1py(1 - m, -h)))
        found["accuracy"].append(np.mean(np.where(h > 0.5, m, 1 - m)))
        found["calibration"].append(np.mean((m - h) ** 2))
        found["gap"].append(np.mean(m - h))
    return {key: np.array(x) for key, x in found.items()}


def masks_of(world: Groups, group) -> dict[str, np.ndarray]:
    """The groups, and all but the first, which overlaps the others."""
    return {x: group == x for x in world.names} | {"not a": group != "a"}


def largest_deviation(world: Groups, y, h, given) -> float:
    """The multicalibration error of the population, in the bins of these rows."""
    from calibrant._inputs.options import read_given
    from calibrant._rows.reduce import reduce_to_columns
    from calibrant._verbs.multicalibration_error import ROWS_A_BIN, bins_of_rows

    scores = {"probs": h, "sample_weight": given.get("sample_weight")}
    columns = reduce_to_columns(read_given(y, scores))
    place = bins_of_rows(columns, ROWS_A_BIN, 10)
    tops = np.sort([columns.confidence[place == b].max() for b in np.unique(place)])
    sums = []
    for (share, _, _), x, m in zip(world.groups, *population(world), strict=True):
        own = np.minimum(np.searchsorted(tops, x), len(tops) - 1)
        sums.append(share * np.bincount(own, m - x, len(tops)) / PLACES)
    table = np.array([*sums, np.sum(sums[1:], axis=0)])
    return float(np.abs(table).max())


# -- what is found -------------------------------------------------------------------------


def compared(y, h, group, more):
    """What `compare_groups` gives, without evaluating all groups as one beside each."""
    rows = read_predictions(y, probs=h, group=group, **more)
    test = compare_groups._test_of_rows(rows, Settings())

    def evaluated(level: float):
        each = {}
        for name in np.unique(group):
            own = group == name
            some = {key: x[own] for key, x in more.items()}
            how = {"interval": None, "level": level, **some}
            each[str(name)] = cal.evaluate(y[own], probs=h[own], **how)
        return SimpleNamespace(per_group=each)

    crosses = compare_groups._crosses(rows)
    return compare_groups._compare(evaluated, 0.95, "a", "model", test, shared=crosses)


def measure(world: Groups, replicate: int) -> tallies.Found:
    """Everything of one data set, beside the truth."""
    y, h, group, more = world.draw(replicate)
    known, last = truths(world), world.names[-1]
    found = compared(y, h, group, more)
    for key in KEYS:
        apart = known[key][-1] - known[key][0]
        yield f"{key} difference", found.differences[last][key], apart
    for key in KEYS:
        worst = known[key].min() if key == "accuracy" else known[key].max()
        yield f"worst {key}", found.worst[key], worst
    many = cal.multicalibration_error(y, probs=h, groups=masks_of(world, group), **more)
    yield "all gaps at once", _at_once(many.gaps, world), 1.0
    true = largest_deviation(world, y, h, more)
    yield "multicalibration error", many.error, true
    yield from _tests(found.equality, many.p_value)


def _at_once(gaps, world: Groups) -> cal.Estimate:
    """1 if all intervals hold: an interval of nothing else."""
    gap, share = truths(world)["gap"], np.array([x for x, _, _ in world.groups])
    both = [*gap, gap[1:] @ share[1:] / share[1:].sum()]
    pairs = zip(gaps, both, strict=True)
    held = all(x.interval[0] <= true <= x.interval[1] for x, true in pairs)
    return cal.Estimate(float(held), (float(held), float(held)))


def _tests(equality, overlap: float) -> tallies.Found:
    """How often the tests do not reject at 5 %, as the share of intervals that hold 1.

    Too few rows or clusters to test equality leave no interval.
    """
    alike = None if equality is None else equality.p_value
    for key, p in (("alike", alike), ("calibrated", overlap)):
        kept = float(p is not None and p > 0.05)
        ends = None if p is None else (kept, kept)
        yield f"{TEST} {key}", cal.Estimate(kept, ends), 1.0


TEST = "kept at 5 %:"


def cases(worlds) -> list[Case]:
    """Groups as cases."""
    return [Case(w.name, w.words, w.n, partial(measure, w)) for w in worlds]


PAGE = """\
# Groups: intervals and tests

Written by

    python -m simulations.groups

The share of 95 % intervals, in per cent, that hold the truth, with its binomial standard
error; **bold** where it is outside 93 to 97. A true coverage of 95 % is outside, by chance, in
one of 14 numbers from 400 data sets. Differences are those of the last group and the first.
Numbers in *italics* hold for all groups at once and may cover more; they are bold below 93.
Groups of the multicalibration error are these and one that overlaps: all but the first.

The last two lines are no coverage: how often, in per cent, the tests that groups are
calibrated alike, and that all are calibrated, do not reject at 5 %. That is to be 95 where it
is true, in `{alike}` and nowhere else for the first, nowhere for the second, and low elsewhere.

## Groups that nothing was chosen by

They were written down before anything was mended, and looked at once.

{unseen_words}
{unseen_outside}

{unseen}
## Groups that intervals were looked at on

{seen_words}
{seen_outside}

{seen}"""


def page(known: Mapping[str, dict]) -> str:
    """The whole of `groups.md`."""
    told, tests = {"alike": "alike"}, [f"{TEST} {x}" for x in ("alike", "calibrated")]
    for name, worlds in (("unseen", unseen), ("seen", seen)):
        some = [case for case in cases(worlds()) if known[case.name]["sets"]]
        told[f"{name}_words"] = tallies.legend(some, known)
        told[f"{name}_outside"] = tallies.outside(some, known, (*BANDS, *tests))
        told[name] = tallies.coverage_table(some, known, BANDS, plain=tests)
    return PAGE.format(**told)


@click.command(help=__doc__.split("\n")[0])
@click.option("--replicates", default=tallies.REPLICATES, show_default=True)
@click.option("--minutes", default=60.0, show_default=True)
@click.option("--only", default="seen,unseen", show_default=True)
def main(replicates: int, minutes: float, only: str):
    every = [*cases(unseen()), *cases(seen())]
    own = tallies.chosen(only, {"seen": cases(seen()), "unseen": cases(unseen())})
    tallies.run(every, HERE / "groups.json", page, replicates, minutes, own)


if __name__ == "__main__":
    main()
