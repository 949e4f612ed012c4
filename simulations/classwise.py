"""How often the intervals of a class-wise headline hold.

    python -m simulations.classwise [DATA_SETS]

Forecasts p are Dirichlet and labels come from M p, M a matrix of confusions, so that the
share of a class at a forecast is a line in it: the truth is known. Nothing was chosen by
`confused` and `tilted`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click
import numpy as np

import calibrant as cal

ROWS, MANY = 1000, 400_000
LAWS = ("shrunk", "calibrated", "confused", "tilted")
HEAD = "law | k | data sets | d_CAL | covered | truth below | above | d_TOT covered"


def law(name: str, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Concentrations of the forecasts, and the confusions."""
    one = np.eye(k)
    if name == "shrunk":
        return np.ones(k), 0.8 * one + 0.2 / k
    if name == "calibrated":
        return np.full(k, 0.5), one
    if name == "confused":
        return np.full(k, 0.3), 0.8 * one + 0.2 * np.roll(one, 1, axis=0)
    rates = np.linspace(3, 1, k) / np.linspace(3, 1, k).sum()
    return np.linspace(0.2, 0.8, k) * 6 / k, 0.88 * one + 0.12 * rates[:, None]


def forecasts(name: str, k: int, n: int, rng: np.random.Generator) -> np.ndarray:
    p = np.maximum(rng.dirichlet(law(name, k)[0], n), 1e-12)
    return p / p.sum(axis=1, keepdims=True)


def truth(name: str, k: int) -> tuple[float, float]:
    """The Brier score and d_CAL, over classes."""
    p, (a, M) = forecasts(name, k, MANY, np.random.default_rng(1)), law(name, k)
    others = a / (a.sum() - a[:, None])  # of 1 - p_j, what class l has on average
    np.fill_diagonal(others, 0)
    level = np.diag(M) * p + (M * others).sum(axis=1) * (1 - p)
    brier = (p**2).sum(axis=1) - 2 * (p * (p @ M.T)).sum(axis=1) + 1
    return float(brier.mean()), float(((level - p) ** 2).sum(axis=1).mean())


def intervals(name: str, k: int, sets: int) -> Iterator[tuple[float, ...]]:
    for number in range(sets):
        rng = np.random.default_rng([number, k, ROWS, sum(map(ord, name))])
        p = forecasts(name, k, ROWS, rng)
        drawn = (p @ law(name, k)[1].T).cumsum(axis=1) < rng.random(ROWS)[:, None]
        y = drawn.sum(axis=1).clip(0, k - 1)
        found = cal.evaluate(y, probs=p, target="class-wise").decomposition
        assert found.calibration.interval is not None
        assert found.total.interval is not None
        yield *found.calibration.interval, *found.total.interval


def main() -> None:
    sets = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    click.echo(HEAD)
    for name in LAWS:
        for k in (3, 10):
            brier, error = truth(name, k)
            low, high, least, most = np.array([*intervals(name, k, sets)]).T
            inside = np.mean((low <= error) & (error <= high))
            total = np.mean((least <= brier) & (brier <= most))
            out = f"{np.mean(error < low):.3f} | {np.mean(error > high):.3f}"
            told = f"{name} | {k} | {sets} | {error:.5f} | {inside:.3f} | {out} | {total:.3f}"
            click.echo(told)


if __name__ == "__main__":
    main()
