"""Cosine transforms by NumPy's FFT: importing SciPy's takes longer than an evaluation."""

from __future__ import annotations

from functools import lru_cache
from math import pi

import numpy as np
from numpy.typing import NDArray

from calibrant._inputs.arrays import Column


def coefficients(x: Column) -> Column:
    """Sums of x_j cos(pi k (j + 1/2) / n): half of SciPy's DCT of type 2.

    Examples
    --------
    >>> coefficients(np.array([1.0, 2.0, 6.0])).round(6)
    array([ 9.      , -4.330127,  1.5     ])
    """
    n = len(x)
    folded = np.concatenate([x[::2], x[1::2][::-1]])
    half = np.fft.rfft(folded) * _turns(n).conj()
    found = np.empty(n)
    found[: n // 2 + 1] = half.real
    found[n // 2 + 1 :] = -half.imag[1 : (n + 1) // 2][::-1]
    return found


def series(c: Column, n: int) -> Column:
    """The sum of c_0 + 2 c_k cos(pi k (j + 1/2) / n) at all j < n.

    As SciPy's DCT of type 3 of c, filled up with zeros to n.

    Examples
    --------
    >>> series(np.array([9.0, -4.330127, 1.5]) / 3, 4).round(4)
    array([0.5072, 1.8098, 4.1902, 5.4928])
    """
    half, few = np.zeros(n // 2 + 1, complex), min(len(c), n // 2 + 1)
    half[:few] = c[:few]
    rest = c[n // 2 + 1 :]  # beyond the middle: the imaginary parts, mirrored
    half.imag[(n - 1) // 2 - len(rest) + 1 : (n - 1) // 2 + 1] -= rest[::-1]
    if n % 2 == 0 and len(c) > n // 2:
        half.imag[n // 2] = -half.real[n // 2]
    folded = np.fft.irfft(half * _turns(n), n) * n
    found = np.empty(n)
    found[::2], found[1::2] = folded[: (n + 1) // 2], folded[(n + 1) // 2 :][::-1]
    return found


@lru_cache(maxsize=16)
def _turns(n: int) -> NDArray[np.complex128]:
    return np.exp(0.5j * pi / n * np.arange(n // 2 + 1))
