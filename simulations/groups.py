"""Check intervals and tests of groups: differences, the worst, equality, overlap.

    python simulations/groups.py

draws data sets of three groups, plain, with weights and with clusters. Writes `groups.md`.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import click
import numpy as np
from null_tests import table
from scipy.special import expit, logit

import calibrant as cal

HERE = Path(__file__).resolve().parent
N, SHIFTS = 1800, (0.0, 0.3, 0.6)
NAMES = ("a", "b", "c")
BESIDE = ("-", "weights", "clusters")


def draw(rng, beside: str, shifts=SHIFTS):
    """Rows of three groups, whose log-odds are off by these shifts."""
    group, h = rng.integers(0, 3, N), rng.beta(1.5, 2, N)
    h = np.clip(h, 0.01, 0.99)
    more = {}
    if beside == "weights":
        more["sample_weight"] = rng.lognormal(0, 0.5, N)
    luck = rng.random(N)
    if beside == "clusters":  # four rows, three in ten of which share their luck
        first = np.repeat(np.arange(0, N, 4), 4)
        group, more["cluster"] = group[first], first
        luck = np.where(rng.random(N) < 0.3, rng.random(N)[first], luck)
    q = expit(logit(h) + np.array(shifts)[group])
    return (luck < q).astype(int), h, np.array(NAMES)[group], more


def truths() -> dict[str, np.ndarray]:
    """Brier score, calibration error and gap of each group, by numerical integration."""
    h = np.clip(np.random.default_rng(3).beta(1.5, 2, 2_000_000), 0.01, 0.99)
    q = [expit(logit(h) + s) for s in SHIFTS]
    brier = [np.mean(x * (1 - h) ** 2 + (1 - x) * h**2) for x in q]
    error = [np.mean((x - h) ** 2) for x in q]
    gap = [np.mean(x - h) for x in q]
    return {
        "brier": np.array(brier),
        "calibration": np.array(error),
        "gap": np.array(gap),
    }


def compared_rows(replicates: int, seed: int) -> Iterator[list[str]]:
    """Coverage of differences and of the worst group."""
    known = truths()
    for i, beside in enumerate(BESIDE if replicates else ()):
        rng = np.random.default_rng([seed, i])
        held: dict[str, list[bool]] = {}
        for _ in range(replicates):
            y, h, group, more = draw(rng, beside)
            how = {"group": group, "baseline": "a", "interval": None}
            found = cal.compare_groups(y, probs=h, **how, **more)
            for key in ("brier", "calibration"):
                truth = known[key]
                difference = found.differences["c"][key]
                _add(held, f"difference, {key}", difference, truth[2] - truth[0])
                _add(held, f"worst, {key}", found.worst[key], truth.max())
        for what, each in held.items():
            yield [beside, what, f"{np.mean(each):.3f}"]


def gap_rows(replicates: int, seed: int) -> Iterator[list[str]]:
    """Coverage of the gaps of overlapping groups, all at once."""
    known = truths()["gap"]
    both = [*known, known[1:].mean()]
    for i, beside in enumerate(BESIDE):
        rng = np.random.default_rng([seed, 5, i])
        held = []
        for _ in range(replicates):
            y, h, group, more = draw(rng, beside)
            masks = {name: group == name for name in NAMES} | {"not a": group != "a"}
            many = cal.multicalibration_error(y, probs=h, groups=masks, **more)
            pairs = zip(many.gaps, both, strict=True)
            held.append(all(_holds(x, truth) for x, truth in pairs))
        yield [beside, "all gaps at once", f"{np.mean(held):.3f}"]


def _holds(value, truth: float) -> bool:
    return bool(value.interval[0] <= truth <= value.interval[1])


def _add(held: dict, what: str, value, truth: float) -> None:
    held.setdefault(what, []).append(_holds(value, truth))


def test_rows(replicates: int, seed: int) -> Iterator[list[str]]:
    """How often groups that are off alike are called unlike, and others are found."""
    from calibrant._inputs.options import Settings
    from calibrant._inputs.predictions import read_predictions
    from calibrant._verbs.compare_groups import _test_of_rows

    cases = {
        "all calibrated": (0, 0, 0),
        "off alike": (0.6,) * 3,
        "unlike": (0, 0, 0.6),
    }
    for i, beside in enumerate(BESIDE):
        for j, (words, shifts) in enumerate(cases.items()):
            rng = np.random.default_rng([seed, 9, i, j])
            p = []
            for _ in range(replicates):
                y, h, group, more = draw(rng, beside, shifts)
                rows = read_predictions(y, probs=h, group=group, **more)
                p.append(_test_of_rows(rows, Settings()).p_value)
            shares = [f"{np.mean(np.array(p) <= x):.3f}" for x in (0.01, 0.05, 0.1)]
            yield [beside, words, *shares]


PAGE = """\
# Groups: intervals and tests

Written by

    python simulations/groups.py --replicates {replicates} --compared {compared} \
--seed {seed}

Three groups in {n:,} examples, whose odds are as forecast, 1.35 times and 1.82 times that.
Clusters are four examples of one group, three in ten of which share their luck.

## Coverage of 95 % intervals

Of {replicates:,} data sets, so that the standard error is {se:.3f}; differences and worst
groups, which are slow, of {compared:,}. Intervals of the worst group and of all gaps hold for
all groups at once and may cover more.

{intervals}
## The test that groups are calibrated alike

Shares of {replicates:,} data sets with a p-value of at most 0.01, 0.05 and 0.1.

{tests}"""


@click.command(help=__doc__.split("\n")[0])
@click.option("--replicates", default=500, show_default=True)
@click.option("--compared", default=300, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--output", type=click.Path(path_type=Path), default=HERE / "groups.md")
def main(replicates: int, compared: int, seed: int, output: Path):
    rows = chain(gap_rows(replicates, seed), compared_rows(compared, seed))
    intervals = table(["beside", "interval", "coverage"], rows)
    tests = table(
        ["beside", "truth", "0.01", "0.05", "0.1"], test_rows(replicates, seed)
    )
    told = {"replicates": replicates, "compared": compared, "seed": seed, "n": N}
    told["se"] = (0.05 * 0.95 / replicates) ** 0.5
    output.write_text(
        PAGE.format(intervals=intervals, tests=tests, **told), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
