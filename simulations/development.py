"""Worlds on which the estimators were developed: their constants were chosen here.

Each set of confidences asks for something of its own: rare events, saturated networks,
ties, narrow and oscillating defects, importance weights, clusters.
"""

import numpy as np

from .worlds import (
    Clusters,
    Column,
    Map,
    Weights,
    World,
    atoms,
    beta,
    mixture,
    normal,
    same,
    tempered,
)


def wave(cycles: int) -> Map:
    """Eight points too high and too low in turn."""
    return lambda h: h + 0.08 * np.sin(2 * np.pi * cycles * h)


def spike(h: Column) -> Column:
    """Thirty points too sure between 0.95 and 0.97."""
    return np.where((h > 0.95) & (h < 0.97), h - 0.3, h)


def step(h: Column) -> Column:
    """Eight points too sure in the middle, five too unsure elsewhere."""
    return np.where((h > 0.35) & (h < 0.8), h - 0.08, h + 0.05)


def power(h: Column) -> Column:
    """Too sure, most of all in the middle."""
    return h**1.5


def even(u: Column) -> Column:
    """Confidences spread evenly from 0.1 to 0.9."""
    return 0.1 + 0.8 * u


def falling(h: Column) -> Column:
    """Weights that are large where confidences are rare."""
    return np.exp(3 * (1 - h))


RARE, VIT = normal(-8, 1.5), normal(7, 3.5)
TWO_SIDED = mixture((0.5, normal(-6, 2)), (0.5, normal(6, 2)))
TIED = mixture((0.4, atoms([0.5, 0.9, 0.99])), (0.6, beta(3, 1)))
SLANTED, GAMES = beta(4, 1), normal(1, 1)

PLAIN = (
    World("rare_cal", "0.1 % events, calibrated", RARE, same, rare=True),
    World(
        "rare_half", "0.1 % events, half as likely", RARE, lambda h: h / 2, rare=True
    ),
    World("vit_cal", "saturated, calibrated", VIT, same, saturated=True),
    World("vit_T2", "saturated, temperature 2", VIT, tempered(2), saturated=True),
    World("bim_cal", "sure of 0 or 1, calibrated", TWO_SIDED, same, saturated=True),
    World(
        *("bim_T15", "sure of 0 or 1, temperature 1.5", TWO_SIDED, tempered(1.5)),
        saturated=True,
    ),
    World("noise30", "30 % label noise", beta(8, 1), lambda h: 0.7 * h + 0.03),
    World("mixatoms", "40 % of rows on three values, h^1.5", TIED, power),
    World("spike", "30 points off in 0.95-0.97", beta(6, 0.8), spike, narrow=True),
    World("step", "jumps at 0.35 and 0.8", lambda u: u, step),
    World("sin2", "2 waves of 8 points", even, wave(2)),
    World("sin8", "8 waves of 8 points", even, wave(8), narrow=True),
    World("sin32", "32 waves of 8 points", even, wave(32), narrow=True),
    World("const", "one confidence, 3 points off", atoms([0.8]), lambda h: h - 0.03),
)

WEIGHTS = {
    "3": ("all weights 3", Weights(unit=3.0)),
    "1.0": ("log-normal weights, sigma 1", Weights(spread=1.0)),
    "1.5": ("log-normal weights, sigma 1.5", Weights(spread=1.5)),
    "h": ("weights e^(3 (1 - h))", Weights(falling)),
}
WEIGHTED = (
    *(
        World(f"weights_{key}_cal", f"{words}, calibrated", SLANTED, same, given)
        for key, (words, given) in WEIGHTS.items()
    ),
    *(
        World(f"weights_{key}_off", f"{words}, h^1.5", SLANTED, power, given)
        for key, (words, given) in WEIGHTS.items()
        if key != "3"
    ),
)

CLUSTERS = {
    "copies_8": ("8 copies of each row", Clusters(8, 1.0)),
    "same_10": ("10 rows of one confidence", Clusters(10, 0.25)),
    "near_10": ("10 rows of near confidence", Clusters(10, 0.25, near=0.02)),
    "near_100": ("100 rows of near confidence", Clusters(100, 0.1, near=0.02)),
    "free_30": ("30 rows of any confidence", Clusters(30, 0.25, near=None)),
    "free_3": ("3 rows of any confidence", Clusters(3, 0.25, near=None)),
}
CLUSTERED = (
    *(
        World(f"{key}_cal", f"{words}, calibrated", GAMES, same, None, given)
        for key, (words, given) in CLUSTERS.items()
    ),
    *(
        World(f"{key}_off", f"{words}, temperature 1.5", GAMES, tempered(1.5), None, x)
        for key, (words, x) in CLUSTERS.items()
        if key in ("same_10", "near_10", "free_3")
    ),
)


def target(h: Column) -> Column:
    """From Beta(5, 1.5) towards middling confidences."""
    return 1 / (0.1 + h**4)


SEEN = (
    World(
        *("shift_cal", "covariate shift, calibrated", beta(5, 1.5), same),
        Weights(target),
    ),
    World(
        *("frames", "frames of 20, saturated, calibrated", normal(3, 2), same, None),
        Clusters(20, 0.5, near=0.01),
    ),
    World(
        *("unequal", "clusters of unequal size, temperature 1.3"),
        *(normal(0.5, 1.2), tempered(1.3), None),
        Clusters(3, 0.3, near=None, spread=1.2),
    ),
)
"""Held out at first: errors of means and shares were made the jackknife's, with Student's
law, after intervals of these worlds, among others, had been too short."""

DEVELOPMENT = (*PLAIN, *WEIGHTED, *CLUSTERED, *SEEN)
