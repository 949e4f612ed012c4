"""Shares of classes among rows without labels: the likeliest ones, and their intervals."""

from __future__ import annotations

import numpy as np

from calibrant._inputs.arrays import Column, Index, Table

EM_STEPS, EM_CLOSE = 10_000, 1e-12
HALVINGS = 40
RIDGE = 1e-13
"""Of the information, relative: a share that rows say nothing of is then anything."""


def shares_by_em(
    density: Table, start: Column, weight: Column | None
) -> tuple[Column, int]:
    """Shares of classes that make rows likeliest, given their densities up to a factor.

    >>> shares_by_em(np.array([[1.0, 0], [0, 1], [0, 1]]), np.array([0.5, 0.5]), None)[0]
    array([0.33333333, 0.66666667])
    """
    share = np.full(len(density), 1.0) if weight is None else weight
    share, found = share / share.sum(), start
    for step in range(1, EM_STEPS + 1):
        mixed = density * found
        before = found
        found = (share / mixed.sum(axis=1)) @ mixed
        found = np.maximum(found, EM_CLOSE)
        found /= found.sum()
        if np.abs(found - before).max() <= EM_CLOSE:
            return found, step
    return found, EM_STEPS


def share_intervals(
    density: Table,
    shares: Column,
    weight: Column | None,
    cluster: Index | None,
    quantile: float,
) -> tuple[Column, Column]:
    """Both ends of the likeliest share of each class, by likelihood ratios.

    A share moves along the line on which the other classes are as likely as they can be, to
    first order (with two classes there is only one), until the likelihood has fallen by
    half the squared quantile; by more, if weights or clusters make it vary more.
    """
    mass = np.ones(len(density)) if weight is None else weight
    scores = density / (density @ shares)[:, None]
    lines = least_informative(scores, mass)
    ends = []
    for j, share in enumerate(shares):
        slope = scores @ lines[j]
        limit = 0.5 * quantile**2 * _inflation(slope, mass, cluster)
        low = _furthest(slope, mass, -share, limit)
        ends.append((share + low, share + _furthest(slope, mass, 1 - share, limit)))
    low, high = np.clip(ends, 0.0, 1.0).T
    return low, high


def least_informative(scores: Table, mass: Column) -> Table:
    """For each class the change of all shares, by 1 in its own and 0 in all, of least
    information.
    """
    k = scores.shape[1]
    information = (scores * mass[:, None]).T @ scores
    within = np.eye(k) - 1 / k
    scale = np.trace(information)
    whole = (
        within @ information @ within + scale / k
    )  # whatever adds to all shares is out
    covariance = within @ np.linalg.inv(whole + RIDGE * scale * np.eye(k)) @ within
    return covariance / np.diag(covariance)[:, None]


def _inflation(slope: Column, mass: Column, cluster: Index | None) -> float:
    """How much more the score varies than it would for rows that only count."""
    score = mass * slope
    each = score if cluster is None else np.bincount(cluster, score)
    usual = float(score @ slope)
    return float(each @ each) / usual if usual > 0 else 1.0


def _furthest(slope: Column, mass: Column, most: float, limit: float) -> float:
    """How far a share can move, at most so far, before the log-likelihood falls by `limit`."""

    def possible(by: float) -> bool:
        with np.errstate(divide="ignore", invalid="ignore"):
            return bool(-(mass @ np.log1p(by * slope)) <= limit)  # NaN: not possible

    if possible(most):
        return most
    near, far = 0.0, most
    for _ in range(HALVINGS):
        middle = 0.5 * (near + far)
        near, far = (middle, far) if possible(middle) else (near, middle)
    return near
