"""Rows of the table on figures: drawn from an evaluation that is already there."""

import functools

import matplotlib as mpl
import numpy as np
import peers
from registry import Ratio, agree, benchmark
from timing import race

import calibrant as cal
from calibrant import plot

mpl.use("agg")


@functools.cache
def pairs(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    h = rng.beta(4, 1, n)
    return h, (rng.random(n) < h**1.3).astype(float)


@functools.cache
def evaluated(n: int) -> cal.Evaluation:
    h, correct = pairs(n)
    return cal.evaluate_pairs(correct, h)


def drawn(n: int) -> float:
    """Draw the diagram to pixels; its largest accuracy tells that it is the right one."""
    ax = plot.calibration_sharpness(evaluated(n))
    ax.figure.canvas.draw()
    return float(np.nanmax(evaluated(n).curve.accuracy))


@benchmark(
    "relplot `rel_diagram`, 100,000 pairs / `plot.calibration_sharpness`",
    at_least=20,
    needs=("relplot",),
)
def diagram_against_relplot() -> Ratio:
    evaluated(100_000)
    timings = race(
        ours=functools.partial(drawn, 100_000),
        relplot=functools.partial(peers.relplot_diagram, *pairs(100_000)),
    )
    check = agree("largest accuracy", timings["ours"].answer, 1.0, 0.1)
    return Ratio.of("relplot", "ours", timings, check)


@benchmark(
    "`plot.calibration_sharpness` of 1,000,000 rows / of 10,000 rows", at_most=1.5
)
def diagram_of_many_rows() -> Ratio:
    for n in (10_000, 1_000_000):
        evaluated(n)
    timings = race(
        many=functools.partial(drawn, 1_000_000), few=functools.partial(drawn, 10_000)
    )
    check = agree("largest accuracy", timings["many"].answer, 1.0, 0.1)
    return Ratio.of("many", "few", timings, check)
