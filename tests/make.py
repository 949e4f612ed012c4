"""Data for tests: rows of a known law, each made by a generator of its own."""

import numpy as np


def softmax(z):
    """Probabilities of logits."""
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def over_confident(n, k, factor=3.0, seed=0, spread=1.0):
    """Labels and logits of a model that is too sure by a factor.

    The larger the spread of the true logits, the more accurate the model.
    """
    rng = np.random.default_rng(seed)
    z = spread * rng.normal(size=(n, k))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    return y, factor * z


def forecasts(n, accuracy=lambda p: p**2, digits=None, seed=0):
    """Hits and uniform confidences p, perhaps rounded, that come true by a law of p."""
    rng = np.random.default_rng([seed, n])
    p = rng.random(n)
    p = p if digits is None else p.round(digits)
    return (rng.random(n) < accuracy(p)).astype(float), p


def balanced(n):
    """Hits and confidences that agree in every range: calibrated beyond chance."""
    h = np.linspace(0.02, 0.98, n)
    return np.diff(np.floor(np.cumsum(h) + 0.5), prepend=0.0), h


def unrelated(n, k, seed=0):
    """Labels that have nothing to do with the logits."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, k, n), rng.normal(size=(n, k))


def every_fifth(arrays):
    """Scores and labels of a file, every fifth row to fit: rows of some are sorted by class."""
    kind = "logits" if "logits" in arrays else "probs"
    scores, y = arrays[kind], arrays["labels"].astype(int)
    fit = np.arange(len(y)) % 5 == 0
    return kind, scores[fit], y[fit], scores[~fit], y[~fit]
