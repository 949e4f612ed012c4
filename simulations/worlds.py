"""Worlds: a law of confidences, the accuracy at each, and how rows are weighted and tied.

A world is told as functions of uniform numbers, so that one description gives both data
sets (random numbers) and population values (evenly spaced ones).
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import (
    betaincinv,
    expit,
    logit,
    ndtr,
    ndtri,
    rel_entr,
    xlog1py,
    xlogy,
)

import calibrant as cal

Column = NDArray[np.float64]
Map = Callable[[Column], Column]

PLACES = 200_003
"""Evenly spaced places of the population; a prime, so that they miss every period."""

ROUND_OFF = 1e-14


@dataclass(frozen=True)
class Hidden:
    """Rows that look like the others and have another accuracy and weight."""

    share: float
    weight: float
    accuracy: Map


@dataclass(frozen=True)
class Weights:
    """Importance weights: mean(h), times log-normal noise of mean 1, times a unit."""

    mean: Map = np.ones_like
    spread: float = 0.0
    unit: float = 1.0
    hidden: Hidden | None = None


@dataclass(frozen=True)
class Clusters:
    """Rows that hang together.

    Confidences of a cluster are the same, near (ranks within `near`), or free. Hits agree
    by a Gaussian copula: the numbers compared with the accuracies have correlation `rho`
    before they are made uniform, so each row alone has exactly the accuracy of the world.
    """

    size: float
    rho: float
    near: float | None = 0.0
    spread: float = 0.0
    """Of the logarithm of the sizes."""

    def numbers(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """The cluster of each of n rows."""
        sizes = np.ceil(self.size * np.exp(self.spread * rng.standard_normal(n)))
        return np.searchsorted(np.cumsum(sizes), np.arange(n), side="right")

    def uniforms(
        self, number: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[Column, Column]:
        """Numbers that choose the confidence and the hit of each row."""
        n = len(number)
        own = rng.random(n)
        if self.near is None:
            place = own
        else:
            place = (rng.random(n)[number] + self.near * own) % 1
        shared, noise = rng.standard_normal(n)[number], rng.standard_normal(n)
        return place, ndtr(np.sqrt(self.rho) * shared + np.sqrt(1 - self.rho) * noise)


@dataclass(frozen=True, eq=False)
class Rows:
    """A data set as `evaluate_pairs` takes it."""

    hit: NDArray[np.bool_]
    confidence: Column
    weight: Column | None
    cluster: NDArray[np.int64] | None

    @property
    def given(self) -> dict[str, NDArray]:
        """Weights and clusters, where there are any."""
        named = {"sample_weight": self.weight, "cluster": self.cluster}
        return {name: x for name, x in named.items() if x is not None}


@dataclass(frozen=True, eq=False)
class World:
    """Confidence of a uniform number, accuracy of a confidence; weights and clusters."""

    name: str
    words: str
    confidence: Map
    accuracy: Map
    weights: Weights | None = None
    clusters: Clusters | None = None
    saturated: bool = False
    rare: bool = False
    narrow: bool = False
    """Whether the defect is finer than the rows of a small data set can show."""

    def draw(self, n: int, replicate: int, seed: int) -> Rows:
        """Data set number `replicate`: always the same."""
        name = zlib.crc32(self.name.encode())
        rng = np.random.default_rng([seed, name, n, replicate])
        number = self.clusters and self.clusters.numbers(n, rng)
        if self.clusters:
            place, chance = self.clusters.uniforms(number, rng)
        else:
            place, chance = rng.random((2, n))
        h = self.confidence(place)
        m, weight = self._accuracy_and_weight(h, rng)
        return Rows(chance < m, h, weight, number)

    def _accuracy_and_weight(
        self, h: Column, rng: np.random.Generator
    ) -> tuple[Column, Column | None]:
        if self.weights is None:
            return self.at(h), None
        given = self.weights
        noise = given.spread * (rng.standard_normal(len(h)) - given.spread / 2)
        weight = given.unit * given.mean(h) * np.exp(noise)
        if given.hidden is None:
            return self.at(h), weight
        inside = rng.random(len(h)) < given.hidden.share
        m = np.where(inside, given.hidden.accuracy(h), self.at(h))
        return m, weight * np.where(inside, given.hidden.weight, 1.0)

    def at(self, h: Column) -> Column:
        """Accuracy at a confidence, in [0, 1]."""
        return np.clip(self.accuracy(h), 0, 1)

    def truth_at(self, h: Column) -> Column:
        """Weighted accuracy at a confidence: what weights are there to estimate."""
        hidden = self.weights and self.weights.hidden
        if not hidden:
            return self.at(h)
        mass = hidden.share * hidden.weight
        mixed = mass * hidden.accuracy(h) + (1 - hidden.share) * self.at(h)
        return mixed / (mass + 1 - hidden.share)


def rival(h: Column) -> Column:
    """Another model's confidences of the same rows, for paired differences."""
    return expit(0.7 * logit(np.clip(h, 1e-12, 1 - 1e-12)))


# -- population values -------------------------------------------------------------


@cache
def truths(world: World) -> dict[str, float]:
    """The population value of everything that is estimated."""
    h = world.confidence((np.arange(PLACES) + 0.5) / PLACES)
    m = world.truth_at(h)
    mass = np.ones_like(h) if world.weights is None else world.weights.mean(h)
    mass = mass / mass.sum()
    own, other = _values(h, m, mass), _values(rival(h), m, mass)
    names = ("brier", "log", "d_brier", "ece")
    return own | {f"paired_{x}": other[x] - own[x] for x in names}


def _values(h: Column, m: Column, mass: Column) -> dict[str, float]:
    """Exact means; plain calibration errors are those of rows whose hits are m."""
    d_brier, d_log = _zero(mass @ (m - h) ** 2), _zero(mass @ kl(m, h))
    brier = float(mass @ (m * (1 - h) ** 2 + (1 - m) * h**2))
    log = float(-mass @ (xlogy(m, h) + xlog1py(1 - m, -h)))
    soft = {"confidence": h, "sample_weight": mass * len(h)}
    return {
        "d_brier": d_brier,
        "d_log": d_log,
        "brier": brier,
        "log": log,
        "gap_brier": brier - d_brier,
        "gap_log": log - d_log,
        "accuracy": float(mass @ m),
        "auroc": auroc(h, m, mass),
        "ece": float(cal.ece(m, **soft)),
        "ace": float(cal.ace(m, **soft)),
        "mce": float(cal.mce(m, **soft)),
        "smooth_ece": float(cal.smooth_ece(m, **soft)),
    }


def _zero(value: float) -> float:
    """What round-off leaves of nothing is nothing."""
    return float(value) if value > ROUND_OFF else 0.0


def kl(m: Column, h: Column) -> Column:
    """Kullback-Leibler divergence of Bernoulli laws."""
    return rel_entr(m, h) + rel_entr(1 - m, 1 - h)


def auroc(h: Column, m: Column, mass: Column) -> float:
    """Share of pairs in order, ties counting half."""
    value = np.unique(h, return_inverse=True)[1]
    hits, misses = np.bincount(value, mass * m), np.bincount(value, mass * (1 - m))
    below = np.cumsum(misses) - misses / 2
    return float(hits @ below / (hits.sum() * misses.sum()))


# -- laws of confidences, as functions of a uniform number ---------------------------


def normal(mean: float, sd: float) -> Map:
    """Log-odds of a normal law."""
    return lambda u: expit(mean + sd * ndtri(u))


def beta(a: float, b: float) -> Map:
    """A Beta law, kept from 0 and 1 by 1e-9; read from a table, which is faster."""
    grid = ndtr(np.linspace(-8, 8, 20_001))
    table = np.clip(betaincinv(a, b, grid), 1e-9, 1 - 1e-9)
    return lambda u: np.interp(u, grid, table)


def mixture(*parts: tuple[float, Map]) -> Map:
    """Laws with shares that add up to 1."""
    ends = np.cumsum([share for share, _ in parts])

    def confidence(u: Column) -> Column:
        h, start = np.empty_like(u), 0.0
        for (share, law), end in zip(parts, ends, strict=True):
            here = (u >= start) & (u < end)
            h[here] = law((u[here] - start) / share)
            start = end
        return h

    return confidence


def atoms(values: Sequence[float], mass: Sequence[float] | None = None) -> Map:
    """A law of few values, equally likely unless said."""
    values = np.asarray(values, float)
    even = np.full(len(values), 1 / len(values))
    ends = np.cumsum(even if mass is None else mass)[:-1]
    return lambda u: values[np.searchsorted(ends, u, side="right")]


def tempered(temperature: float, shift: float = 0.0) -> Map:
    """Accuracy sigmoid(logit h / temperature + shift)."""
    return lambda h: expit(logit(h) / temperature + shift)


def same(h: Column) -> Column:
    """Accuracy of a calibrated model."""
    return h
