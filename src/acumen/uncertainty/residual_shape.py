"""The residual with its noise taken out, as far as the data allow.

An interval for the size of the residual needs to know its shape, in which noise would
count twice. A few cosines of rank carry what is smooth; of the rest, the share that is
more than noise is kept.
"""

from __future__ import annotations

import numpy as np

from acumen.arrays import Column
from acumen.uncertainty.resampling import Pieces, Table

COSINES = 12


def denoised(pieces: Pieces, observed: Column, noise: Table) -> Column:
    """Residual of each cell, with as many cosines as reduce its expected error.

    `observed` is what `noise` is about: residuals as shares of all rows. If there is
    no residual at all, the shape is that of accuracy above confidence everywhere.
    """
    rank = (np.cumsum(pieces.weight) - 0.5 * pieces.weight) / pieces.total
    waves = np.cos(np.pi * rank[:, None] * np.arange(COSINES))
    waves[:, 1:] *= np.sqrt(2)
    coefficients, variance = observed @ waves, (noise @ waves).var(axis=0)
    gain = np.cumsum(coefficients**2 - 2 * variance)  # Mallows
    used = 1 + int(gain.argmax())
    share = pieces.weight / pieces.total
    smooth = share * (waves[:, :used] @ coefficients[:used])
    shape = smooth + shrunk(observed - smooth, noise, share)
    return shape if shape.any() else share


def shrunk(rest: Column, noise: Table, share: Column) -> Column:
    """The rest, times the share of its squared size that is not noise."""
    size = float((rest**2 / share).sum())
    expected = float((noise.var(axis=0) / share).sum())
    return rest * max(1 - expected / size, 0.0) if size > 0 else rest
