"""CORP: isotonic recalibration and the decomposition of the score it gives.

Score = miscalibration - discrimination + uncertainty (Dimitriadis, Gneiting and Jordan
2021), each term a difference of mean scores: of the forecast, of its isotonic
recalibration, and of the constant base rate.
"""

from __future__ import annotations

import numpy as np

from acumen.arrays import Column
from acumen.ordered import Ordered
from acumen.results import Corp


def isotonic(ordered: Ordered) -> Column:
    """Increasing accuracy closest to the hits, at each distinct confidence."""
    from scipy.optimize import isotonic_regression

    accuracy = ordered.hits / ordered.weight
    return isotonic_regression(accuracy, weights=ordered.weight).x


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
    total = ordered.weight.sum()
    base = np.full(1, ordered.hits.sum() / total)
    entropy = _square if divergence == "brier" else _negative_entropy
    # A recalibrated forecast m has mean score mean phi(a) - mean phi(m), since hits
    # average to m wherever m is constant.
    recalibrated = hit_phi - float(
        (ordered.weight * entropy(isotonic(ordered))).sum() / total
    )
    uncertainty = hit_phi - float(entropy(base)[0])
    return Corp(
        divergence=divergence,
        score=score,
        miscalibration=score - recalibrated,
        discrimination=uncertainty - recalibrated,
        uncertainty=uncertainty,
    )


def _square(p: Column) -> Column:
    return p * p


def _negative_entropy(p: Column) -> Column:
    q = 1 - p
    return p * np.log(np.where(p > 0, p, 1)) + q * np.log(np.where(q > 0, q, 1))
