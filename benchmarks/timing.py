"""Clocks: race ways of getting an answer; time code in fresh interpreters."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

ONCE = bool(os.environ.get("CALIBRANT_BENCH_ONCE"))
"""Whether each task is done once, to see that it works."""


@dataclass
class Timing:
    """Best wall and best CPU seconds over the repeats, and the last answer."""

    wall: float = float("inf")
    cpu: float = float("inf")
    spent: float = 0.0
    answer: Any = None

    def add(self, work: Callable[[], Any]) -> None:
        cpu, wall = time.process_time(), time.perf_counter()
        self.answer = work()
        took = time.perf_counter() - wall
        self.wall = min(self.wall, took)
        self.cpu = min(self.cpu, time.process_time() - cpu)
        self.spent += took


def race(
    least: float = 2.0,
    most: float = 45.0,
    together: float = 25.0,
    once: tuple[str, ...] = (),
    **contestants: Callable[[], Any],
) -> dict[str, Timing]:
    """Time contestants by turns, so that all meet the same load on the machine.

    Rounds go on until everyone has had three turns and `least` seconds, or all of them
    `together` so many; but who has used up `most` seconds, or is named in `once`, sits
    out the rest. A first turn that warms a cache loses to a later one and does not count.
    """
    timings = {name: Timing() for name in contestants}
    rounds = 0

    def go_on() -> bool:
        spent = [timing.spent for timing in timings.values()]
        return rounds < 3 or (min(spent) < least and sum(spent) < together)

    while go_on() and not (rounds and ONCE):
        for name, work in contestants.items():
            if timings[name].spent < (0 if name in once and rounds else most):
                timings[name].add(work)
        rounds += 1
    return timings


def seconds_of(repeats: int = 7, **commands: list[str]) -> dict[str, Timing]:
    """Best CPU and wall seconds of fresh interpreters with these words, by turns."""
    timings = {name: Timing() for name in commands}
    for _ in range(1 if ONCE else repeats):
        for name, words in commands.items():
            _run_once(words, timings[name])
    return timings


def _run_once(words: list[str], timing: Timing) -> None:
    wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, *words]
    subprocess.run(command, capture_output=True, check=True, env=with_bytecode())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    timing.cpu = min(timing.cpu, cpu)
    timing.wall = min(timing.wall, time.perf_counter() - wall)


def with_bytecode() -> dict[str, str]:
    """The environment, in which modules are compiled once, as they are for users."""
    hidden = "PYTHONDONTWRITEBYTECODE"
    return {name: x for name, x in os.environ.items() if name != hidden}
