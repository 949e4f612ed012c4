"""Which engine does the work, NumPy or numba, and in how many threads."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import TypeVar

from calibrant._base.checks import check_choice, missing
from calibrant._inputs.arrays import Matrix

# -- when to use the numba twins of the NumPy code, from ``calibrant[fast]`` -------
#
# numba is imported only here and in the modules named after it, and only once it pays:
# loading it takes half a second.

ENGINES = ("auto", "numpy", "numba")

WORTH_CALLING = 1 << 22
"""Numbers in a matrix from which the compiled reduction pays, once it is loaded."""

WORTH_CALLING_ROWS = 200_000
"""Rows added to a sketch from which the compiled sums pay."""

LOADING = 8
"""Before that, a matrix or a sketch must be this many times larger."""


def wanted(engine: str, scores: Matrix, *, plain: bool) -> bool:
    """Whether to reduce rows by numba; `plain` says whether it can."""
    return _chosen(engine, scores.size if plain else 0, WORTH_CALLING) and plain


def wanted_for_rows(engine: str, rows: int) -> bool:
    """Whether to add up this many rows by numba."""
    return _chosen(engine, rows, WORTH_CALLING_ROWS)


def wanted_if_loaded(engine: str) -> bool:
    """Whether to use numba for what does not make up for loading it."""
    return _chosen(engine, 1, 1)


def installed() -> bool:
    """Whether numba is there, loaded or not."""
    return find_spec("numba") is not None


def loaded() -> bool:
    """Whether some kernel was already needed in this process."""
    return "calibrant._rows.numba_math" in sys.modules


def _chosen(engine: str, size: int, enough: int) -> bool:
    """Whether numba is asked for, or installed and worth it for this size."""
    check_choice(engine, "engine", ENGINES)
    worthwhile = size >= (enough if loaded() else LOADING * enough)
    if engine == "numpy" or (engine == "auto" and not worthwhile):
        return False
    try:
        import numba  # noqa: F401
    except ImportError as error:  # also what numba raises if NumPy is too new for it
        if engine == "auto":
            return False
        cause = error if error.name else ImportError(str(error), name="numba")
        raise missing(cause, "engine='numba'") from error
    return True


# -- work on ranges of rows, in as many threads as there are cores -----------------

Result = TypeVar("Result")

SMALL = 1 << 18
"""Below this many numbers a second thread costs more than it saves."""


def cores() -> int:
    """Cores this process may use; ``CALIBRANT_THREADS`` overrides."""
    if chosen := os.environ.get("CALIBRANT_THREADS"):
        if not (chosen.isascii() and chosen.isdigit() and int(chosen[:9]) > 0):
            raise ValueError(
                f"CALIBRANT_THREADS must be a whole number from 1 on, got {chosen!r}."
            )
        return int(chosen[:9])
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def over_ranges(
    work: Callable[[int, int], Result], n: int, size: int | None = None
) -> list[Result]:
    """Call ``work(start, stop)`` on consecutive parts of range(n), results in order."""
    parts = 1 if (n if size is None else size) < SMALL else min(cores(), n)
    if parts == 1:
        return [work(0, n)]
    from concurrent.futures import ThreadPoolExecutor

    cuts = [n * part // parts for part in range(parts + 1)]
    with ThreadPoolExecutor(parts) as pool:
        return list(pool.map(work, cuts[:-1], cuts[1:]))
