"""Quantiles of Student's, gamma and noncentral chi-square laws, without SciPy.

Importing `scipy.special` takes longer than an evaluation. Each law is summed or
integrated to near the last digit, and Newton's steps find the place asked for. What is
too rare to be worth it (hardly a degree of freedom, tails beyond one in 2000) is SciPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import atan, erfc, exp, inf, isfinite, lgamma, log, log1p, pi, sqrt, tan
from typing import Any

import numpy as np

from calibrant._inputs.arrays import Column
from calibrant._rows import compiled, engines

FARTHEST, MOST_STEPS, CLOSE = 9.0, 100, 1e-9
"""Standard deviations beyond which nothing is left; a step of Newton so short is the last."""

LEAST_FREEDOM, LEAST_TAIL = 5.0, 5e-4
"""Of Student's law, below which SciPy is asked."""

NODES, STIRLING_FROM, TINY = 64, 20.0, 1e-290


@lru_cache
def normal_quantile(p: float) -> float:
    """Of the standard normal law.

    Examples
    --------
    >>> round(normal_quantile(0.975), 12)
    1.95996398454
    """
    tail = min(p, 1 - p)
    t = sqrt(-2 * log(tail))
    z = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (
        1 + t * (1.432788 + t * (0.189269 + t * 0.001308))
    )
    for _ in range(3):  # Halley's steps: the first guess is off by 4e-4 at most
        step = (
            (0.5 * erfc(z / sqrt(2)) / tail - 1) * tail * sqrt(2 * pi) * exp(z * z / 2)
        )
        z += step / (1 + 0.5 * z * step)
    return z if p > 0.5 else -z


def student_quantile(freedom: float, p: float) -> float:
    """Of Student's law; p is above one half.

    Examples
    --------
    >>> round(student_quantile(9, 0.975), 6), round(student_quantile(1e9, 0.975), 6)
    (2.262157, 1.959964)
    """
    if freedom < LEAST_FREEDOM or not LEAST_TAIL <= 1 - p < 0.5:
        from scipy.special import stdtrit

        return float(stdtrit(freedom, p))
    # With t = sqrt(freedom) tan(x) the density is a power of cos(x).
    scale = sqrt(freedom)
    whole = _power_of_cosine(freedom, min(FARTHEST / scale, pi / 2))
    x = atan(normal_quantile(p) / scale)
    for _ in range(MOST_STEPS):  # from below: the law is concave there
        left = (p - 0.5) * 2 * whole - _power_of_cosine(freedom, x)
        step = left / float(_density(freedom, np.float64(x)))
        x += step
        if abs(step) <= CLOSE * x:
            break
    return scale * tan(x)


def _power_of_cosine(freedom: float, end: float) -> float:
    """Integral of cos(x) to the power of freedom - 1, from 0 to the end."""
    place, weight = _gauss()
    return float(weight @ _density(freedom, end * place)) * end


def _density(freedom: float, x: Any) -> Any:
    return np.exp((freedom - 1) / 2 * np.log1p(-(np.sin(x) ** 2)))


@lru_cache(maxsize=1)
def _gauss() -> tuple[Column, Column]:
    """Gauss-Legendre places in [0, 1], and weights (Golub and Welsch 1969)."""
    j = np.arange(1.0, NODES)
    side = j / np.sqrt(4 * j * j - 1)
    place, vectors = np.linalg.eigh(np.diag(side, 1) + np.diag(side, -1))
    return (place + 1) / 2, vectors[0] ** 2


def gamma_quantile(shape: float, p: float) -> float:
    """Of the gamma law of this shape and scale 1.

    Examples
    --------
    >>> [round(gamma_quantile(shape, 0.975), 6) for shape in (0.5, 3.0, 1000.0)]
    [2.511943, 7.224688, 1062.921151]
    """
    if not (0 < p < 1 and shape > 0 and isfinite(shape)):
        from scipy.special import gammaincinv

        return float(gammaincinv(shape, p))
    z = normal_quantile(p)
    start = shape * max(1 - 1 / (9 * shape) + z / (3 * sqrt(shape)), 0.0) ** 3
    # Where nearly all mass lies above it; less than any double if the shape is tiny.
    start = max(start, exp((log(p) + lgamma(shape + 1)) / shape))
    if not start:
        return 0.0
    found = _compiled(shape, 0.0, p, start)
    return found or _solve(lambda x: _gamma(shape, x, p), start)


def _compiled(freedom: float, value: float, p: float, start: float) -> float | None:
    """What the compiled loops find, where they can; without a value, of the gamma law."""
    if not engines.wanted():
        return None
    found = compiled.loops.quantile(freedom, value, p, start)
    return None if np.isnan(found) else found


def _gamma(shape: float, x: float, p: float) -> tuple[float, float]:
    """How far the law at x is above p, and its density."""
    terms = gamma_terms(shape, x)
    below = float(terms.sum())
    return below - p, float(terms[0]) * shape / x


def gamma_terms(shape: float, x: float) -> Column:
    """Summands of the law at x: Poisson chances of shape, shape + 1, ... at mean x.

    Sums from the j-th on are the laws of shape + j.
    """
    few = max(x - shape, 0.0) + FARTHEST * sqrt(max(x, shape)) + 4 * FARTHEST
    j = shape + np.arange(int(few))
    most = max(int(x - shape), 0)  # the largest of them, from which ratios lead on
    terms = np.empty(len(j))
    terms[most] = _poisson(shape + most, x)
    terms[most + 1 :] = terms[most] * np.cumprod(x / j[most + 1 :])
    terms[:most] = terms[most] * np.cumprod(j[1 : most + 1][::-1] / x)[::-1]
    return terms


def _poisson(n: float, mean: float) -> float:
    """Chance of n, not whole perhaps, by Loader's (2000) formula."""
    if n < STIRLING_FROM:
        return exp(n * log(mean) - mean - lgamma(n + 1))
    off, r = (mean - n) / n, 1 / (n * n)
    stirling = (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r / 1680))) / n
    return exp(n * (log1p(off) - off) - stirling) / sqrt(2 * pi * n)


def _solve(f: Callable[[float], tuple[float, float]], x: float) -> float:
    """The positive place where a rising function is 0: Newton's steps, kept inside."""
    low, high = 0.0, inf
    for _ in range(MOST_STEPS):
        value, slope = f(x)
        low, high = (x, high) if value < 0 else (low, x)
        step = value / slope if slope > TINY else inf
        if low < x - step < high or abs(step) <= CLOSE * x:
            x -= step
            if abs(step) <= CLOSE * x:
                break
        else:
            x = 2 * x if high == inf else 0.5 * (low + high)
    return x


def noncentrality_at(value: float, freedom: float, p: float) -> float:
    """At which a noncentral chi-square is below a value with probability p; 0 if none.

    The law is a Poisson mixture of central ones.

    Examples
    --------
    >>> round(noncentrality_at(30.0, 10.0, 0.025), 6)
    44.774876
    """
    start = max(noncentrality_near(value, freedom, p), 1e-3)
    if (found := _compiled(freedom, value, p, start)) is not None:
        return found
    terms = gamma_terms(freedom / 2, value / 2)
    below = terms[::-1].cumsum()[::-1]
    if below[0] <= p:
        return 0.0

    def excess(x: float) -> tuple[float, float]:
        """Minus the law, above minus p; and its slope."""
        chances = gamma_terms(0.0, x / 2) if x > 0 else np.ones(1)
        n = min(len(chances), len(terms))
        law = float(chances[:n] @ below[:n])
        return p - law, 0.5 * float(chances[:n] @ terms[:n])

    return _solve(excess, start)


def noncentrality_near(value: float, freedom: float, p: float) -> float:
    """The same by a normal law: (value - freedom - x)^2 = z^2 (2 freedom + 4 x)."""
    z, off = normal_quantile(1 - p), value - freedom
    return off + 2 * z * z + z * sqrt(max(4 * z * z + 4 * off + 2 * freedom, 0.0))
