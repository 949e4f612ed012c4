"""`dirichlet_ece`: the error of whole vectors by a kernel that lives on the simplex."""

from __future__ import annotations

from math import inf
from typing import Any, Unpack

import numpy as np

from calibrant._base.checks import check_number
from calibrant._inputs.arrays import Column, Index, Table
from calibrant._inputs.options import Scores, takes_scores
from calibrant._verbs.canonical_calibration_error import read_vectors

BANDWIDTHS = (*np.logspace(-5, -1, 15).tolist(), 0.2, 0.4, 0.6, 0.8, 1.0)
"""Those that the authors try."""

MOST_ROWS, CHOSEN_BY, AT_ONCE = 20_000, 1000, 4_000_000
LEAST_LOG = -744.0  # of the least positive double: 0 times it is 0


def log_kernel(at: Table, centre: Table, bandwidth: float) -> Table:
    """Logarithm of Dirichlet densities around each centre, at each of some vectors.

    The density around f has the parameters f / bandwidth + 1, so its mode is f.
    """
    from scipy.special import gammaln

    alpha = centre / bandwidth + 1
    scale = gammaln(alpha.sum(axis=1)) - gammaln(alpha).sum(axis=1)
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(at), LEAST_LOG)
    found: Table = logs @ (alpha - 1).T + scale
    return found


def choose_bandwidth(p: Table, rows: Index) -> float:
    """The bandwidth under which these rows are likeliest, each left out in its turn."""
    some = p[rows[:: max(1, len(rows) // CHOSEN_BY)]]
    best, most = BANDWIDTHS[-1], -inf
    for bandwidth in BANDWIDTHS if len(some) > 1 else ():
        logs = log_kernel(some, some, bandwidth)
        np.fill_diagonal(logs, -inf)
        top = logs.max(axis=1)
        value = float(np.sum(np.log(np.exp(logs - top[:, None]).sum(axis=1)) + top))
        if value > most:
            best, most = bandwidth, value
    return best


def recalibrated(
    p: Table, labels: Table, weight: Column, count: Column, bandwidth: float
) -> Table:
    """Mean label around each row, itself left out; a row may be a `count` of equal ones."""
    out, step = np.empty_like(p), max(1, AT_ONCE // len(p))
    for first in range(0, len(p), step):
        part = slice(first, min(first + step, len(p)))
        logs = log_kernel(p[part], p, bandwidth)
        rows = np.arange(part.stop - part.start)
        with np.errstate(divide="ignore"):
            logs[rows, rows + first] += np.log1p(-1 / count[part])
        kernel = np.exp(logs - logs.max(axis=1, keepdims=True)) * weight
        out[part] = kernel @ labels / kernel.sum(axis=1, keepdims=True)
    return out


@takes_scores
def dirichlet_ece(
    y: Any,
    *,
    power: float = 1,
    bandwidth: float | str = "auto",
    **given: Unpack[Scores],
) -> float:
    r"""Calibration error of whole vectors, by Dirichlet kernels (Popordanoska et al.).

    The mean of :math:`\|\hat E[y \mid p_i] - p_i\|_q^q` over rows, where the mean label around
    a row weighs the others by a Dirichlet density, which has no mass outside the simplex.
    Noise inflates it; `canonical_calibration_error` is debiased and has an interval.

    Parameters
    ----------
    power : float
        q: 1, the default, is the L1 error of whole vectors, 2 the squared one.
    bandwidth : float or "auto"
        Of the kernel; by default the likeliest of the authors' twenty.

    References
    ----------
    T. Popordanoska, R. Sayer, M. Blaschko, *A consistent and differentiable Lp canonical
    calibration error estimator*, NeurIPS 2022.

    Examples
    --------
    >>> import calibrant as cal
    >>> p, y = [[0.9, 0.1]] * 4, [0, 0, 1, 0]
    >>> round(cal.dirichlet_ece(y, probs=p, bandwidth=0.1), 3)  # others are 2/3 or 1
    0.4
    """
    check_number(power, "power", 1, 10)
    if not (isinstance(bandwidth, str) and bandwidth == "auto"):
        check_number(bandwidth, "bandwidth", 1e-6, 10, kind="'auto' or a number")
    vectors = read_vectors(y, given, "dirichlet_ece")
    count = np.rint(vectors.weight / vectors.worth)
    if len(vectors) > MOST_ROWS or not count.sum() > 1:
        raise ValueError(
            f"dirichlet_ece compares all pairs of 2 to {MOST_ROWS:,} rows, got "
            f"{len(vectors):,}; draw some of them."
        )
    p, weight = vectors.probs, vectors.weight
    every = np.repeat(np.arange(len(p)), count.astype(np.intp))
    width = choose_bandwidth(p, every) if bandwidth == "auto" else float(bandwidth)
    mean = recalibrated(p, vectors.labels, weight, count, width)
    off = np.abs(mean - p) ** power
    return float(weight @ off.sum(axis=1) / weight.sum())
