"""Worlds that no choice in the estimators was based on. Keep it so.

Nothing here may be used to choose a constant, a rule or a method: what is changed because
of a result on this page moves the world to `development.py`, and another takes its place.
"""

import numpy as np

from .worlds import (
    Clusters,
    Column,
    Hidden,
    Weights,
    World,
    atoms,
    beta,
    mixture,
    normal,
    same,
    tempered,
)

SURE = mixture((0.8, normal(6, 2)), (0.2, normal(1.5, 1)))
FRAUD = mixture((0.99, normal(-7, 1)), (0.01, normal(1, 1.5)))
SLOPE = beta(5, 1.5)


def percent(u: Column) -> Column:
    """Stated in whole per cent, from 1 to 99."""
    return np.clip(np.round(100 * beta(3, 1.2)(u)), 1, 99) / 100


BINNED = np.array(
    [0.04, 0.11, 0.19, 0.28, 0.41, 0.52, 0.63, 0.71, 0.78, 0.86, 0.93, 0.97]
)
OFF = np.where(np.isin(BINNED, (0.41, 0.86)), -0.09, 0.0)


def binned(h: Column) -> Column:
    """Two of twelve values nine points too high."""
    return h + np.interp(h, BINNED, OFF)


def tenth(h: Column) -> Column:
    """Fifteen points too sure where a tenth of the rows lie."""
    low, high = SLOPE(np.array([0.55, 0.65]))
    return np.where((h > low) & (h < high), h - 0.15, h)


def inverse_propensity(h: Column) -> Column:
    """One over the chance of being sampled, from 1 to 20."""
    return 1 / np.clip(h**2, 0.05, 1)


HOLDOUT = (
    World(
        *("propensity", "1/propensity weights, temperature 1.4"),
        *(beta(2, 1.3), tempered(1.4), Weights(inverse_propensity, spread=0.3)),
    ),
    World(
        *("hidden", "weights by a group that is off", beta(3, 2), same),
        Weights(unit=0.2, hidden=Hidden(0.2, 4.0, lambda h: h**1.6)),
    ),
    World(
        *("survey", "weights and clusters, calibrated", beta(2, 2), same),
        *(Weights(spread=0.7), Clusters(6, 0.2, near=None)),
    ),
    World(
        *("near_copies", "4 copies with jitter, calibrated", beta(3, 1), same, None),
        Clusters(4, 1.0, near=0.003),
    ),
    World("rare_2000", "0.05 % events, calibrated", normal(-8.3, 1.1), same, rare=True),
    World("fraud_cal", "fraud, 1 % flagged, calibrated", FRAUD, same, rare=True),
    World("fraud_off", "fraud, too sure", FRAUD, tempered(1.3, -0.4), rare=True),
    World("tenth", "15 points off on a tenth of the rows", SLOPE, tenth, narrow=True),
    World("percent", "whole per cents, h^1.3", percent, lambda h: h**1.3),
    World("binned", "twelve values, two off", atoms(BINNED), binned),
    World("sure_cal", "saturated network, calibrated", SURE, same, saturated=True),
    World(
        *("sure_T17", "saturated network, temperature 1.7", SURE, tempered(1.7)),
        saturated=True,
    ),
    World("smoothed", "label smoothing, too unsure", normal(2.5, 0.5), tempered(0.5)),
)
