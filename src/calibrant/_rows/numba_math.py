"""exp and log that compile to SIMD instructions, and how kernels are compiled.

numba calls libm for every single exp, which is most of the time of a row reduction.
Written out as polynomials, without branches, they run on whole vectors.

numba's cache watches only the file of the cached function: after a change here, touch
the files that import this one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload

_INNER: dict[str, Any] = {
    "error_model": "numpy",
    "no_cpython_wrapper": True,  # never called from Python: half the time to compile
    "no_cfunc_wrapper": True,
}

exact = njit(**_INNER)
"""For what kernels call, computed as written."""

inlined = njit(fastmath={"contract"}, **_INNER)
"""The same, but a product and a sum may become one instruction."""

reordered = njit(fastmath={"contract", "reassoc", "nsz"}, **_INNER)
"""The same, and sums may be taken in any order, as vectors do."""


def kernel(function: Callable[..., Any]) -> Any:
    """Compile without the GIL and keep the machine code, if there is where to."""
    try:
        return njit(nogil=True, cache=True, error_model="numpy")(function)
    except RuntimeError:  # no writable cache folder
        return njit(nogil=True, error_model="numpy")(function)


def _reinterpret(source: Any, to: Any, llvm_type: Any) -> Any:
    """Read the bits of one number as another type."""

    @intrinsic
    def bits(typing_context, x):
        def generate(context, builder, signature, arguments):
            return builder.bitcast(arguments[0], llvm_type)

        return to(source), generate

    return bits


_as_int32 = _reinterpret(types.float32, types.int32, ir.IntType(32))
_as_int64 = _reinterpret(types.float64, types.int64, ir.IntType(64))
_as_float32 = _reinterpret(types.int32, types.float32, ir.FloatType())
_as_float64 = _reinterpret(types.int64, types.float64, ir.DoubleType())


@intrinsic
def where(typing_context, condition, x, y):
    """Choose x or y without a branch, which could keep loops from using vectors."""

    def generate(context, builder, signature, arguments):
        return builder.select(*arguments)

    return x(types.boolean, x, x), generate


@intrinsic
def larger(typing_context, x, y):
    """The larger number; any of the two if one is NaN. Maxima of rows use vectors."""

    def generate(context, builder, signature, arguments):
        flags = ["nnan", "nsz"]
        above = builder.fcmp_ordered(">", *arguments, flags=flags)
        return builder.select(above, *arguments, flags=flags)

    return x(x, x), generate


# exp(x) = 2^n exp(r), n the whole number nearest to x / log 2. Adding 1.5 * 2^23 (2^52)
# rounds to that number and leaves it in the lowest bits, to be shifted into the
# exponent. log 2 is split in two so that n times its first part is exact.
_ROUND32, _ROUND64 = np.float32(1.5 * 2**23), 1.5 * 2.0**52
_LOG2E32, _LOG2E64 = np.float32(1.4426950408889634), 1.4426950408889634
_LN2_32 = np.float32(0.693145751953125), np.float32(1.4286068203094173e-06)
_LN2_64 = 0.6931471803691238, 1.9082149292705877e-10
_SMALLEST32, _SMALLEST64 = np.float32(-87.3), -708.0


def exp(x: Any) -> Any:
    """e^x for x <= 0 to 2 units in the last place; 0 where it underflows, or is NaN."""
    return np.exp(x)  # compiled code gets the overload below


@overload(exp, jit_options={"fastmath": {"contract"}})
def _exp(x):
    return _exp32 if x == types.float32 else _exp64


def _exp32(x):
    t = x * _LOG2E32 + _ROUND32
    n = t - _ROUND32
    r = (x - n * _LN2_32[0]) - n * _LN2_32[1]
    p = np.float32(0.008290229365229607)
    p = p * r + np.float32(0.04189838841557503)
    p = p * r + np.float32(0.16667640209197998)
    p = p * r + np.float32(0.49999144673347473)
    p = p * r + np.float32(0.9999997019767761)
    p = p * r + np.float32(1.0)
    e = _as_float32(_as_int32(p) + (_as_int32(t) << np.int32(23)))
    return where(x > _SMALLEST32, e, np.float32(0))


def _exp64(x):
    t = x * _LOG2E64 + _ROUND64
    n = t - _ROUND64
    r = (x - n * _LN2_64[0]) - n * _LN2_64[1]
    p = 1 / 479001600
    p = p * r + 1 / 39916800
    p = p * r + 1 / 3628800
    p = p * r + 1 / 362880
    p = p * r + 1 / 40320
    p = p * r + 1 / 5040
    p = p * r + 1 / 720
    p = p * r + 1 / 120
    p = p * r + 1 / 24
    p = p * r + 1 / 6
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    e = _as_float64(_as_int64(p) + (_as_int64(t) << 52))
    return where(x > _SMALLEST64, e, 0.0)


_HALF_ROOT = np.array(0.5**0.5).view(np.int64)[()]


@inlined
def log_sum(one, x):
    """The log of one + x, normal numbers, one being 0 or 1; as exact as log1p."""
    power = (_as_int64(one + x) - _HALF_ROOT) >> 52
    scale = _as_float64((1023 - power) << 52)
    f = x * scale + (one * scale - 1.0)  # (one + x) / 2^power - 1, in [-0.3, 0.42]
    s = f / (2.0 + f)
    q = s * s
    p = 1 / 19  # log(1 + f) = 2 artanh(s) = 2s (1 + q/3 + q^2/5 + ...)
    p = p * q + 1 / 17
    p = p * q + 1 / 15
    p = p * q + 1 / 13
    p = p * q + 1 / 11
    p = p * q + 1 / 9
    p = p * q + 1 / 7
    p = p * q + 1 / 5
    p = p * q + 1 / 3
    return 2 * s + 2 * s * q * p + power * 0.6931471805599453
