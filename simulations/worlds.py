"""Laws of scores with a known accuracy, and the population value of every metric."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from calibrant._stats.smooth_ece import SmoothedResidual

BINS, CELLS, PLACES = 15, 9600, 960_000

Column = NDArray[np.float64]


def uniform(u: Column) -> Column:
    """Scores spread evenly."""
    return u


def arcsine(u: Column) -> Column:
    """Quantile function of Beta(1/2, 1/2): most scores near 0 and 1."""
    return np.sin(np.pi * u / 2) ** 2


@dataclass(frozen=True)
class World:
    """Scores p = score(u), u uniform, and the accuracy at each score."""

    name: str
    score: Callable[[Column], Column]
    accuracy: Callable[[Column], Column]

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Column, Column]:
        """Hits and scores of n rows."""
        p = self.score(rng.random(n))
        return (rng.random(n) < self.accuracy(p)).astype(float), p


ACCURACIES: dict[str, Callable[[Column], Column]] = {
    "calibrated": lambda p: p,
    "p²": lambda p: p**2,
    "over-confident": lambda p: expit(0.4 * logit(p) + 0.3),
    "under-confident": lambda p: expit(4 * logit(p) + 1),
    "p + 0.02": lambda p: np.minimum(p + 0.02, 1),
}
WORLDS = [
    World(f"{law}, {name}", score, accuracy)
    for law, score in (("uniform", uniform), ("Beta(½,½)", arcsine))
    for name, accuracy in ACCURACIES.items()
]


def rival(p: Column) -> Column:
    """Another model's scores of the same rows, for the paired difference."""
    return expit(0.7 * logit(np.clip(p, 1e-12, 1 - 1e-12)))


@cache
def truths(world: World) -> dict[str, float]:
    """Population values of every metric, as means over many evenly spaced places."""
    u = (np.arange(PLACES) + 0.5) / PLACES
    p = world.score(u)
    m = world.accuracy(p)
    r, hit_rate = m - p, m.mean()
    brier, d = (m * (1 - p) ** 2 + (1 - m) * p**2).mean(), (r**2).mean()
    other = rival(p)
    return {
        "total": brier,
        "calibration": d,
        "sharpness_gap": brier - d,
        "paired": (m * (1 - other) ** 2 + (1 - m) * other**2).mean() - brier,
        "ece_debiased": np.sqrt(d),
        "accuracy": np.where(p >= 0.5, m, 1 - m).mean(),
        "nll": -(m * np.log(p) + (1 - m) * np.log1p(-p)).mean(),
        "confidence_gap": -r.mean(),
        "auroc": _auroc(m),
        "mcb": d,
        "dsc": m.var(),
        "unc": hit_rate * (1 - hit_rate),
        **_norms(p, r, u),
    }


def _auroc(m: Column) -> float:
    below = np.cumsum(1 - m) - 0.5 * (1 - m)
    return float((m * below).sum() / (m.sum() * (1 - m).sum()))


def _norms(p: Column, r: Column, u: Column) -> dict[str, float]:
    place = np.minimum((p * BINS).astype(int), BINS - 1)
    residual = np.bincount(place, r, BINS) / len(p)
    gap = np.abs(residual) / (np.bincount(place, minlength=BINS) / len(p))
    in_mass_bins = np.bincount((u * BINS).astype(int), r, BINS) / len(p)
    nodes = np.bincount(np.minimum((p * CELLS).astype(int), CELLS - 1), r, CELLS)
    smoothed = SmoothedResidual(nodes, len(p))
    return {
        "ece": np.abs(residual).sum(),
        "ace": gap.mean(),
        "mce": gap.max(),
        "ece_mass": np.abs(in_mass_bins).sum(),
        "ks_error": np.abs(np.cumsum(r)).max() / len(p),
        "smooth_ece": smoothed.error(smoothed.fixed_point()),
    }
