"""Seeded data for the benchmarks: an over-confident model, made a chunk at a time."""

import numpy as np

CHUNK = 2000
OVERCONFIDENCE = 1.6


def logits(n: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Float32 logits (n, k) of a model 1.6 times too sure, and labels (n,).

    Labels are drawn from softmax(z); the model reports 1.6 z. One class per row stands
    out by a random margin, so rows range from hopeless to certain.
    """
    rng = np.random.default_rng(seed)
    reported = np.empty((n, k), dtype=np.float32)
    labels = np.empty(n, dtype=np.int64)
    for start in range(0, n, CHUNK):
        rows = slice(start, min(start + CHUNK, n))
        z = rng.standard_normal(reported[rows].shape, dtype=np.float32)
        favourite = rng.integers(0, k, len(z))
        margin = np.log(k) + rng.normal(2.5, 2.0, len(z))
        z[np.arange(len(z)), favourite] += margin.astype(np.float32)
        labels[rows] = _draw(z, rng)
        reported[rows] = OVERCONFIDENCE * z
    return reported, labels


def _draw(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One label per row from softmax(z): the earliest of k exponential clocks."""
    clocks = rng.standard_exponential(z.shape, dtype=np.float32)
    return (clocks * np.exp(-z)).argmin(axis=1)


def pairs(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Confidence and correctness (n,), over-confident, confidence in [0.02, 0.98].

    Well inside (0, 1) on purpose: relplot counts pairs at 0 and 1 half, and we want to
    time the same number.
    """
    rng = np.random.default_rng(seed)
    confidence = 0.02 + 0.96 * rng.beta(3.0, 0.8, n)
    log_odds = np.log(confidence / (1 - confidence)) / OVERCONFIDENCE
    accuracy = 1 / (1 + np.exp(-log_odds))
    return confidence, (rng.random(n) < accuracy).astype(np.float64)


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities in the precision of the logits, made a chunk at a time."""
    probs = np.empty_like(logits)
    for start in range(0, len(logits), CHUNK):
        part = logits[start : start + CHUNK]
        e = np.exp(part - part.max(axis=1, keepdims=True))
        probs[start : start + CHUNK] = e / e.sum(axis=1, keepdims=True)
    return probs
