"""Which way a call went through our code: pairs of lines, one after the other."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from .judge import OURS

Trace = Callable[[FrameType, str, Any], Any]

WATCHED = 32
"""Calls of a function that are watched though nothing is new; then one in so many is."""


class Arcs:
    """Every step from line to line that was ever taken, as numbers."""

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self.new = 0
        self._is_ours: dict[CodeType, int] = {}
        self._calls: Counter[int] = Counter()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Count in `new` the steps that no input before has taken."""
        self.new = 0
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(None)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Trace | None:
        code = frame.f_code
        number = self._is_ours.get(code)
        if number is None:
            number = self._is_ours[code] = _number_of(code)
        if not number:
            return None
        self._calls[number] += 1
        calls = self._calls[number]  # since a call of it was last new
        return self._steps(number) if calls < WATCHED or calls % WATCHED == 0 else None

    def _steps(self, number: int) -> Trace:
        """A function that sees the lines of one call, and knows the one before."""
        seen, calls, last = self.seen, self._calls, 0

        def step(frame: FrameType, event: str, argument: Any) -> Trace:
            nonlocal last
            if event == "line":
                line = frame.f_lineno
                arc = (number << 32) | (last << 16) | line
                if arc not in seen:
                    seen.add(arc)
                    self.new += 1
                    calls[number] = 0
                last = line
            return step

        return step


def _number_of(code: CodeType) -> int:
    """A number for a function of ours that every process gives it, and 0 for others."""
    place = code.co_filename.rpartition(OURS + os.sep)[2]
    if OURS not in code.co_filename or code.co_name == "<module>":
        return 0
    total = 0
    for letter in f"{place}:{code.co_qualname}".encode():
        total = (total * 257 + letter) % ((1 << 61) - 1)
    return total or 1
