"""Data for tests: rows of a known law, each made by a generator of its own."""

import numpy as np


def over_confident(n, k, factor=3.0, seed=0):
    """Labels and logits of a model that is too sure by a factor."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    return y, factor * z
