"""Clocks: race ways of getting an answer; time code in fresh interpreters."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


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
    least: float = 2.0, most: float = 45.0, **contestants: Callable[[], Any]
) -> dict[str, Timing]:
    """Time contestants by turns, so that all meet the same load on the machine.

    Rounds go on until everyone has had three turns and `least` seconds, but who has used
    up `most` seconds sits out the rest. A first turn that compiles or warms a cache
    loses to a later one and does not count.
    """
    timings = {name: Timing() for name in contestants}
    rounds = 0
    while rounds < 3 or min(timing.spent for timing in timings.values()) < least:
        for name, work in contestants.items():
            if timings[name].spent < most:
                timings[name].add(work)
        rounds += 1
    return timings


def seconds_to_run(codes: Iterable[str], repeats: int = 31) -> dict[str, float]:
    """Median seconds each line of code takes in a fresh interpreter, by turns."""
    took: dict[str, list[float]] = {code: [] for code in codes}
    for _ in range(repeats):
        for code, seconds in took.items():
            seconds.append(_run_once(code))
    return {code: statistics.median(seconds) for code, seconds in took.items()}


def _run_once(code: str) -> float:
    timed = (
        "import time; start = time.perf_counter()\n"
        f"{code}; print(time.perf_counter() - start)"
    )
    command = [sys.executable, "-c", timed]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)
