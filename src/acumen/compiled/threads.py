"""Work on ranges of rows, in as many threads as there are cores."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

SMALL = 1 << 18
"""Below this many numbers a second thread costs more than it saves."""


def cores() -> int:
    """Cores this process may use; ``ACUMEN_THREADS`` overrides."""
    if chosen := os.environ.get("ACUMEN_THREADS"):
        return max(1, int(chosen))
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
