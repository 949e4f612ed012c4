"""Check the alarm of `calibrant.monitor`: its false alarms, and how late it is.

    python simulations/monitoring.py

draws streams of periods, looks at the evidence after every one of them, and compares with
tests that are meant to be looked at once. Writes `monitoring.md`.
"""

from collections.abc import Callable, Iterator
from math import log
from pathlib import Path

import click
import numpy as np
from null_tests import table
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import chi2

from calibrant._rows.columns import Columns
from calibrant._verbs.alarm import Line, gains, log_evidence, onset, rows_within

HERE = Path(__file__).resolve().parent
ALPHA, PERIODS, ROWS = 0.05, 60, 100
STRICT = 0.01
Column = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Column]

LAWS: dict[str, Draw] = {
    "risks (mean 0.25)": lambda rng, n: rng.beta(1, 3, n),
    "saturated (mean 0.92)": lambda rng, n: 1 - 0.5 * rng.beta(0.3, 1.5, n),
    "nine values": lambda rng, n: rng.integers(1, 10, n) / 10,
    "rare events (mean 0.01)": lambda rng, n: rng.beta(0.5, 50, n),
}

TRUTHS: dict[str, Callable[[Column], Column]] = {
    "odds times 1.5": lambda z: z + log(1.5),
    "odds halved": lambda z: z - log(2),
    "too sure by 1.4": lambda z: z / 1.4,
}


def clipped(h: Column) -> Column:
    return np.clip(h, 1e-9, 1 - 1e-9)


def draw(law: str, truth: Callable[[Column], Column] | None, n: int, rng) -> Columns:
    """Rows of one period."""
    h = clipped(LAWS[law](rng, n))
    q = h if truth is None else expit(truth(logit(h)))
    return Columns(h, None, (rng.random(n) < q).astype(float))


def likelihood_ratio(rows: list[Columns]) -> float:
    """p-value of the test of intercept 0 and slope 1, which is to be looked at once."""
    h, hit = (
        np.concatenate([getattr(x, k) for x in rows]) for k in ("confidence", "hit")
    )
    theta = Line.fit(Columns(h, None, hit)).theta
    m = clipped(expit(theta[0] + theta[1] * logit(h)))
    gain = np.log(np.where(hit == 1, m / h, (1 - m) / (1 - h))).sum()
    return float(chi2.sf(2 * max(gain, 0.0), 2))


def null_rows(streams: int, seed: int) -> Iterator[list[str]]:
    """Share of streams with an alarm at any of the periods."""
    for i, law in enumerate(LAWS):
        rng = np.random.default_rng([seed, 0, i])
        most, often, wide, changed = [], [], [], []
        for number in range(streams):
            rows = [draw(law, None, ROWS, rng) for _ in range(PERIODS)]
            gain = np.array([gains(rows_within(x)) for x in rows])
            most.append(log_evidence(gain).max())
            if number < streams // 10:  # these are slow, and far from their level
                ends = range(2, PERIODS, 3)
                often.append(min(likelihood_ratio(rows[:end]) for end in ends))
                changed.append(_since_reference(rows))
                wide.append(_within_tolerance(law, rng))
        share = [np.mean(np.array(most) >= log(1 / a)) for a in (0.1, ALPHA, STRICT)]
        others = np.mean(changed), np.mean(wide), np.mean(np.array(often) <= ALPHA)
        yield [law, *(f"{x:.4f}" for x in share), *(f"{x:.3f}" for x in others)]


def _since_reference(rows: list[Columns]) -> bool:
    """Whether there is an alarm against ten periods that are the reference."""
    first = [
        np.concatenate([getattr(x, k) for x in rows[:10]])
        for k in ("confidence", "hit")
    ]
    line = Line.fit(Columns(first[0], None, first[1]))
    gain = [gains(line.rows(x, ALPHA / 2, 0.0)) for x in rows[10:]]
    return bool(log_evidence(np.array(gain)).max() >= log(2 / ALPHA))


def _within_tolerance(law: str, rng) -> bool:
    """Whether there is an alarm where accuracy is off by just the tolerance."""
    gain = []
    for _ in range(PERIODS):
        h = LAWS[law](rng, ROWS)
        hit = (rng.random(ROWS) < np.minimum(h + 0.02, 1)).astype(float)
        gain.append(gains(rows_within(Columns(h, None, hit), 0.02)))
    return bool(log_evidence(np.array(gain)).max() >= log(1 / ALPHA))


def delay_rows(streams: int, seed: int) -> Iterator[list[str]]:
    """Median number of examples from the change to the alarm, and of a single test."""
    for i, law in enumerate(LAWS):
        for j, (words, truth) in enumerate(TRUTHS.items()):
            rng = np.random.default_rng([seed, 1, i, j])
            cells = []
            for start in (0, 20):
                late, off = _delays(law, truth, start, streams, rng)
                cells += [_told(late), f"{np.median(np.abs(off)):.0f}" if off else "-"]
            once = _single(law, truth, streams, rng)
            yield [law, words, *cells, once]


def _delays(law, truth, start: int, streams: int, rng) -> tuple[list[float], list[int]]:
    late, off = [], []
    for _ in range(streams):
        changes = (None if t < start else truth for t in range(start + PERIODS))
        rows = [draw(law, change, ROWS, rng) for change in changes]
        gain = np.array([gains(rows_within(x)) for x in rows])
        over = np.flatnonzero(log_evidence(gain)[start:] >= log(1 / STRICT))
        late.append(ROWS * (over[0] + 1) if over.size else np.inf)
        if over.size:
            off.append(onset(gain[: start + over[0] + 1]) - start)
    return late, off


def _told(late: list[float]) -> str:
    middle = np.median(late)
    return f"{middle:,.0f}" if np.isfinite(middle) else f"> {PERIODS * ROWS:,}"


def _single(law, truth, streams: int, rng) -> str:
    """Fewest examples with which a test made once finds the change in half of all cases."""
    for periods in (1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 30, 40, 50, 60):
        n = periods * ROWS
        found = [
            likelihood_ratio([draw(law, truth, n, rng)]) <= STRICT
            for _ in range(min(streams, 100))
        ]
        if np.mean(found) >= 0.5:
            return f"{n:,}"
    return f"> {PERIODS * ROWS:,}"


PAGE = """\
# The alarm of `monitor`

Written by

    python simulations/monitoring.py --streams {streams} --delays {delays} --seed {seed}

## False alarms

Shares of {streams:,} calibrated streams of {periods} periods of {rows} examples in which the
evidence, looked at after every period, ever passes 1 / alpha. They must not exceed alpha.
The last three columns, of {tenth} streams each at alpha = {alpha:g}: an alarm against a
reference of ten periods; an alarm of rows that are off by just the tolerance of 0.02; and
what happens to a likelihood-ratio test of intercept and slope at p <= {alpha:g} that is
repeated after every third period, though it is meant to be made once.

{null}
## How late it is

Median number of examples from the change to the alarm at alpha = {strict:g}, of {delays}
streams, if the model is off from the beginning and if it is from period 21 on; and by how
many periods "since" is off, in the median. Beside it, the number of examples with which a
likelihood-ratio test at the same level, told when the change was and made once, finds it
in half of all cases: what looking at any time costs.

{delay}"""


@click.command(help=__doc__.split("\n")[0])
@click.option("--streams", default=2000, show_default=True)
@click.option("--delays", default=100, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option(
    "--output", type=click.Path(path_type=Path), default=HERE / "monitoring.md"
)
def main(streams: int, delays: int, seed: int, output: Path):
    head = [
        "confidence",
        "0.1",
        "0.05",
        "0.01",
        "reference",
        "tolerance",
        "repeated test",
    ]
    null = table(head, null_rows(streams, seed))
    head = ["confidence", "truth", "from the start", "since off by", "from period 21"]
    delay = table([*head, "since off by", "one test"], delay_rows(delays, seed))
    told = {"streams": streams, "tenth": streams // 10, "delays": delays, "seed": seed}
    told |= {"periods": PERIODS, "rows": ROWS, "alpha": ALPHA, "strict": STRICT}
    output.write_text(PAGE.format(null=null, delay=delay, **told), encoding="utf-8")


if __name__ == "__main__":
    main()
