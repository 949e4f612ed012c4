"""CORP: isotonic recalibration and the decomposition of the score it gives.

Score = miscalibration - discrimination + uncertainty (Dimitriadis, Gneiting and Jordan
2021), each term a difference of mean scores: of the forecast, of its isotonic
recalibration, and of the constant base rate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from acumen.arrays import Column
from acumen.bregman import find_divergence
from acumen.ordered import Ordered
from acumen.results import Corp


def isotonic(ordered: Ordered) -> Column:
    """Increasing accuracy closest to the hits, at each distinct confidence."""
    return _regression(ordered).x


def _regression(ordered: Ordered) -> Any:
    from scipy.optimize import isotonic_regression

    return isotonic_regression(ordered.hits / ordered.weight, weights=ordered.weight)


def decompose(ordered: Ordered, score: float, divergence: str, hit_phi: float) -> Corp:
    """CORP decomposition of a mean one-dimensional score.

    Parameters
    ----------
    ordered : Ordered
        The rows, by distinct confidence.
    score : float
        Mean of d(a, h), computed from the rows; may be infinite.
    divergence : str
        ``"brier"`` or ``"log"``.
    hit_phi : float
        Mean of phi(a): 1-D Brier needs the mean of a^2, log that of a log a + ....
    """
    phi, total = find_divergence(divergence).phi_1d, ordered.total
    fit = _regression(ordered)
    levels = np.clip(fit.x[fit.blocks[:-1]], 0.0, 1.0)
    # A recalibrated forecast m has mean score mean phi(a) - mean phi(m), since hits
    # average to m on every level of m.
    recalibrated = hit_phi - float((fit.weights * phi(levels)).sum() / total)
    base = np.full(1, ordered.hits.sum() / total)
    uncertainty = hit_phi - float(phi(base)[0])
    return Corp(
        divergence=divergence,
        score=score,
        miscalibration=score - recalibrated,
        discrimination=uncertainty - recalibrated,
        uncertainty=uncertainty,
    )
