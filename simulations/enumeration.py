"""One confidence for all rows: coverage is a finite sum over the number of hits."""

from functools import cache

import numpy as np
from scipy.special import gammaln, xlog1py, xlogy

import calibrant as cal

from .worlds import kl

CASES = (
    *((0.9, 0.97, 100), (0.9, 0.98, 100), (0.9, 0.99, 100), (0.9, 0.99, 199)),
    *((0.9, 0.99, 300), (0.8, 0.995, 200), (0.95, 0.999, 1000), (0.95, 0.999, 3000)),
    *((0.8, 0.8, 300), (0.8, 0.79, 300), (0.8, 0.77, 300), (0.8, 0.75, 300)),
    *((0.8, 0.77, 1000), (0.8, 0.8, 1000), (0.5, 0.47, 300), (0.5, 0.5, 300)),
    *((0.99, 0.95, 50), (0.99, 0.99, 50), (0.7, 0.7, 50), (0.7, 0.6, 50)),
    *((0.9, 0.9, 30), (0.9, 1.0, 100), (0.001, 0.001, 1000), (0.001, 0.004, 1000)),
)
"""Confidence, accuracy and rows. The last four are the hold-out of this page."""

NEGLIGIBLE = 1e-6
"""Numbers of hits less likely than this in all are left out."""


@cache
def intervals(h: float, hits: int, n: int) -> dict[str, tuple[float, float] | None]:
    """Intervals of d_CAL by divergence, for so many hits in n rows of confidence h."""
    right = np.arange(n) < hits
    ev = cal.evaluate_pairs(right, np.full(n, h), interval=None)
    parts = ev.decompositions
    return {name: parts[name].calibration.interval for name in ("brier", "log")}


def likely(m: float, n: int) -> list[tuple[int, float]]:
    """Numbers of hits of n rows with accuracy m, and their probabilities."""
    k = np.arange(n + 1)
    ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    chance = np.exp(ways + xlogy(k, m) + xlog1py(n - k, -m))
    order = np.argsort(-chance)
    kept = order[: 1 + np.searchsorted(np.cumsum(chance[order]), 1 - NEGLIGIBLE)]
    return [(int(i), float(chance[i])) for i in sorted(kept)]


Shares = tuple[float | None, float | None]


def coverage(h: float, m: float, n: int, divergence: str) -> Shares:
    """Probability that the interval holds the truth, and that it begins above.

    None where there is no interval, as for few rows.
    """
    truth = (m - h) ** 2 if divergence == "brier" else float(kl(m, h))
    truth = truth if truth > 1e-14 else 0.0
    slack = 1e-9 * truth + 1e-13
    held = above = given = 0.0
    for hits, chance in likely(m, n):
        ends = intervals(h, hits, n)[divergence]
        if ends is None:
            continue
        given += chance
        held += chance * (ends[0] <= truth + slack and truth <= ends[1] + slack)
        above += chance * (ends[0] > truth + slack)
    return (held / given, above / given) if given else (None, None)


def enumerate_cases() -> list[list[float | None]]:
    """Case, coverage and false lower ends of Brier, and of log."""
    return [
        [h, m, n, *coverage(h, m, n, "brier"), *coverage(h, m, n, "log")]
        for h, m, n in CASES
    ]
