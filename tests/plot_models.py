"""Models whose figures are looked at: ordinary ones, and those that break drawings."""

from functools import cache

import numpy as np

import calibrant as cal

LONG = "a name that is really quite long for a figure: 60 characters"


@cache
def ordinary(name="network", divergence="brier"):
    """Over-confident by a factor of two, with 2,000 rows of five classes."""
    z, y = _logits()
    return cal.evaluate(y, logits=2 * z, name=name, divergence=divergence)


@cache
def study():
    """Five ways to state the confidence of the same predictions."""
    z, y = _logits()
    sharp = _softmax(2 * z)
    accuracy = (sharp.argmax(1) == y).mean()
    return (
        ordinary(),
        cal.evaluate(y, logits=z, name="temperature"),
        cal.evaluate(
            y, probs=_with_confidence(sharp, _binned(sharp, y)), name="binned"
        ),
        cal.evaluate(y, logits=0.5 * z, name="too flat"),
        cal.evaluate(
            y, probs=_with_confidence(sharp, accuracy), name="mean replacement"
        ),
    )


def _logits():
    rng = np.random.default_rng(7)
    z = 1.5 * rng.normal(size=(2000, 5))
    return z, (z + rng.gumbel(size=z.shape)).argmax(axis=1)


def _softmax(z):
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def _binned(probs, y):
    """Accuracy in 15 bins of the confidence, as histogram binning gives it."""
    bins = np.minimum((15 * probs.max(axis=1)).astype(int), 14)
    rows = np.maximum(np.bincount(bins, minlength=15), 1)
    return (np.bincount(bins, probs.argmax(axis=1) == y, 15) / rows)[bins]


def _with_confidence(probs, confidence):
    k = probs.shape[1]
    q = np.maximum(np.broadcast_to(confidence, len(probs)), 1.001 / k)
    changed = np.repeat(((1 - q) / (k - 1))[:, None], k, axis=1)
    changed[np.arange(len(probs)), probs.argmax(axis=1)] = q
    return changed


@cache
def edge_cases():
    """By name: what has broken reliability diagrams before."""
    rng = np.random.default_rng(0)
    u = rng.random(1500)
    apart = np.where(rng.random(1500) < 0.5, 0.25 * u, 1 - 0.25 * u)
    p = rng.dirichlet([0.3] * 5, 1000)
    p = np.where(p < 0.02, 0, p)
    p /= p.sum(axis=1, keepdims=True)
    y = rng.integers(0, 5, 1000)
    return {
        "five rows": cal.evaluate_pairs([0, 0, 1, 1, 1], [0.2, 0.4, 0.6, 0.8, 0.9]),
        "one row": cal.evaluate_pairs([1], [0.7]),
        "always wrong": cal.evaluate_pairs(np.zeros(1500), 0.4 + 0.5 * u),
        "all ones": cal.evaluate_pairs(rng.random(400) < 0.7, np.ones(400)),
        "all zeros": cal.evaluate_pairs(rng.random(400) < 0.1, np.zeros(400)),
        "empty middle": cal.evaluate_pairs(rng.random(1500) < apart, apart, name=LONG),
        "infinite loss": cal.evaluate(y, probs=p, divergence="log"),
        "dollars": cal.evaluate_pairs(u < 0.5, u, name="costs $1 and $2 _{x}"),
        "fixed bandwidth": cal.evaluate_pairs(rng.random(1500) < u, u, bandwidth=0.1),
        "class-wise": cal.evaluate(y, probs=p, target="class-wise"),
    }


@cache
def hundred_classes():
    rng = np.random.default_rng(1)
    z = 2 * rng.normal(size=(1500, 100))
    y = (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
    options = {"target": "class-wise", "name": "hundred classes", "resamples": 100}
    return cal.evaluate(y, logits=z, **options)


@cache
def twelve():
    rng = np.random.default_rng(2)
    u = rng.random(600)
    return [
        cal.evaluate_pairs(
            rng.random(600) < u, u ** (0.3 + 0.1 * i), name=f"{i} {LONG}"
        )
        for i in range(12)
    ]
