"""Columns of numbers as text: base64 of little-endian values."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray


def base64_of(values: NDArray[Any], kind: str = "<f4") -> str:
    """The values in this type, as ASCII text.

    Examples
    --------
    >>> base64_of(np.array([1.0, 2.0]))
    'AACAPwAAAEA='
    """
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode()
