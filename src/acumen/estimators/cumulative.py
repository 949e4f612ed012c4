"""What cumulative sums over ordered confidences tell: KS calibration error, AUROC."""

from __future__ import annotations

from math import nan

import numpy as np

from acumen.ordered import Ordered


def ks_error(ordered: Ordered) -> float:
    """Largest absolute cumulative sum of a - h, from the origin on, divided by n."""
    walk = ordered.residual
    np.cumsum(walk, out=walk)
    return float(max(walk.max(), -walk.min(), 0.0) / ordered.total)


def auroc(ordered: Ordered) -> float:
    """Chance that a hit has the higher confidence than a miss, ties counting half.

    NaN if there are only hits, or none.
    """
    misses = ordered.weight - ordered.hits
    all_hits, all_misses = ordered.hits.sum(), misses.sum()
    if not (all_hits > 0 and all_misses > 0):
        return nan
    tied = float(np.einsum("i,i->", ordered.hits, misses))
    np.cumsum(misses, out=misses)
    below = float(np.einsum("i,i->", ordered.hits, misses))
    return float((below - 0.5 * tied) / (all_hits * all_misses))
