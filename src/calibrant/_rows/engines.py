"""Which engine does the work, NumPy or the compiled loops, and in how many threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextvars import ContextVar
from itertools import pairwise
from typing import TypeVar

from calibrant._base.checks import check_choice
from calibrant._rows import compiled

ENGINES = ("auto", "numpy", "compiled")

ASKED_FOR = ContextVar("calibrant engine", default="auto")
"""The engine that the call under way was given; short loops are not told of it."""


def built() -> bool:
    """Whether the compiled loops are there."""
    return compiled.loops is not None


def wanted(engine: str = "auto", *, plain: bool = True) -> bool:
    """Whether the compiled loops do the work; `plain` says whether they can.

    ``"auto"`` is the engine of the call under way; if that is ``"auto"`` as well, what
    ``CALIBRANT_ENGINE`` says; else it is they, if they were built.
    """
    if engine == "auto":
        engine = ASKED_FOR.get()
    if engine == "auto":
        if not (chosen := os.environ.get("CALIBRANT_ENGINE")):
            return plain and built()
        engine = chosen
        check_choice(engine, "CALIBRANT_ENGINE", ENGINES)
    check_choice(engine, "engine", ENGINES)
    if engine == "compiled" and not built():
        raise ImportError(
            "engine='compiled' needs the compiled module, which was not built when "
            "calibrant was installed: install it again where there is a C compiler."
        )
    return plain and engine != "numpy" and built()


# -- work on ranges of rows, in as many threads as there are cores -----------------

Result = TypeVar("Result")

SMALL = 1 << 18
"""Below this many numbers a second thread costs more than it saves."""

PARTS = 4
"""Parts that are summed one by one where the sum must not depend on the threads."""


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
    work: Callable[[int, int], Result],
    n: int,
    size: int | None = None,
    parts: int | None = None,
) -> list[Result]:
    """Call ``work(start, stop)`` on consecutive parts of range(n), results in order.

    There are as many as threads, or `parts` of them whatever the number of threads, so
    that sums are the same: one if there is little to do.
    """
    few = (n if size is None else size) < SMALL
    threads = 1 if few else min(cores(), n)
    parts = 1 if few else min(parts or threads, n)
    cuts = [n * part // parts for part in range(parts + 1)]
    if threads == 1:
        return [work(*ends) for ends in pairwise(cuts)]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, cuts[:-1], cuts[1:]))
