"""Inputs that go further are kept and changed again, in processes that may die.

A *slice* is one process, one kind of input and some time. It begins with what slices
before it found: the corpus, and the arcs that were seen. A process that hangs in C, or is
ended by the system, leaves behind the input it was working on.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import random
import resource
import shutil
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .api import api_case
from .arcs import Arcs
from .cases import Builder, Case
from .choices import Choices, drawn, mutated, simpler
from .commands import command_case
from .engines import engine_case
from .harness import harness_case
from .judge import SECONDS, Verdict, judge, limit_memory
from .readers import reader_case
from .records import record_case

KINDS: dict[str, Builder] = {
    "readers": reader_case,
    "harness": harness_case,
    "records": record_case,
    "api": api_case,
    "command": command_case,
    "engines": engine_case,
}

GIGABYTES = 4.0
"""Address space of a process; databases and Arrow map much that they never touch."""

FRESH = 8
"""One input in so many is new; the others are changes of what was kept."""

WATCHED = 16
"""One input in so many is followed step by step, which takes as long as the input itself;
all are judged."""

DEAR = 0.003
"""Seconds: inputs of a sort that takes longer are tried so much less often."""


@dataclass
class Found:
    """What a slice has seen, to be added to what others saw."""

    kind: str
    inputs: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    about: dict[str, Counter[str]] = field(default_factory=dict)
    corpus: list[bytes] = field(default_factory=list)
    costs: dict[bytes, float] = field(default_factory=dict)
    means: dict[str, float] = field(default_factory=dict)
    findings: dict[str, dict[str, Any]] = field(default_factory=dict)
    arcs: set[int] = field(default_factory=set)
    seconds: float = 0.0
    slowest: float = 0.0
    megabytes: float = 0.0

    def note(self, case: Case, verdict: Verdict, data: bytes, seconds: float) -> None:
        """Count one input, and keep the simplest of each finding."""
        self.inputs += 1
        self.outcomes[verdict.outcome] += 1
        self.about.setdefault(case.about, Counter())[verdict.outcome] += 1
        self.slowest = max(self.slowest, seconds)
        if verdict.is_finding:
            known = self.findings.setdefault(
                signature(self.kind, verdict), {"count": 0}
            )
            known["count"] += 1
            if "input" not in known or len(data) < len(known["input"]) // 2:
                told = {"input": data.hex(), "said": verdict.said, "shown": case.shown}
                known.update(told, about=case.about)


def signature(kind: str, verdict: Verdict) -> str:
    """What findings are told apart by."""
    said = (
        verdict.said
        if verdict.outcome in ("bad result", "accepted", "bad output")
        else ""
    )
    return " | ".join(filter(None, (kind, verdict.outcome, verdict.where, said)))[:200]


class Bench:
    """A folder to work in, and one way to try an input there."""

    def __init__(self, kind: str) -> None:
        self.kind, self.arcs = kind, Arcs()
        self.home = Path(tempfile.mkdtemp(prefix="calibrant-fuzz-", dir=SHARED))
        self.folder = self.home / "in"
        self.folder.mkdir()

    def build(self, data: bytes) -> Case:
        """The case of an input, in an empty folder."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is built, not of what is tried
            return KINDS[self.kind](Choices(data), self.folder)

    def run(self, case: Case, *, watch: bool = False) -> Verdict:
        """What becomes of a case."""
        if not watch:
            return judge(case)
        with self.arcs.watched():
            return judge(case)

    def clean(self) -> None:
        """Make the folder empty again."""
        if self.folder.exists() and not any(self.folder.iterdir()):
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()

    def try_out(self, data: bytes, *, watch: bool = False) -> tuple[Case, Verdict]:
        """Build the case of an input in an empty folder, and run it."""
        try:
            case = self.build(data)
            return case, self.run(case, watch=watch)
        finally:
            self.clean()

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.home, ignore_errors=True)


SHARED = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Files of inputs are in memory where that is possible."""


@dataclass
class Search:
    """One kind, the inputs to begin with, and what was seen."""

    found: Found
    rng: random.Random
    bench: Bench
    mark: Callable[[bytes], object]
    replay: list[bytes]

    def next(self) -> tuple[bytes, bool]:
        """An input, and whether it is one of the old ones."""
        corpus, rng = self.found.corpus, self.rng
        if self.replay:
            return self.replay.pop(), True
        if not corpus or rng.randrange(FRESH) == 0:
            return drawn(rng), False
        return mutated(_cheap(corpus, self.found.costs, rng), corpus, rng), False

    def step(self) -> None:
        """Try one input, unless its like is dear and was tried often enough."""
        (data, old), found = self.next(), self.found
        self.mark(data)
        begun = time.process_time()
        try:
            case = self.bench.build(data)
            if not old and self.rng.random() * found.means.get(case.alike, 0) > DEAR:
                return
            watch = old or self.rng.randrange(WATCHED) == 0
            verdict = self.bench.run(case, watch=watch)
        finally:
            self.bench.clean()
        seconds = time.process_time() - begun
        found.note(case, verdict, data, seconds)
        if watch:
            self._learn(data, seconds)
        else:
            mean = found.means.get(case.alike, seconds)
            found.means[case.alike] = mean + (seconds - mean) / 8

    def _learn(self, data: bytes, seconds: float) -> None:
        """Keep an input that went where none before it did."""
        if self.bench.arcs.new and data not in self.found.costs:
            self.found.corpus.append(data)
            self.found.costs[data] = seconds


def search(
    found: Found,
    corpus: list[bytes],
    seed: str,
    number: int,
    until: float,
    mark: Any,
    seconds: float = math.inf,
) -> Found:
    """Try inputs until there were enough, it is late, or it has computed for so long.

    `mark` is told of each input before it is tried.

    The first slice of a run begins with the corpus of runs before, and keeps of it what
    leads somewhere.
    """
    first = not found.arcs
    found.corpus = [] if first else list(corpus)
    replay = list(reversed(corpus)) if first else []
    bench = Bench(found.kind)
    bench.arcs.seen = found.arcs
    work = Search(found, random.Random(seed), bench, mark, replay)
    start = time.process_time()
    while found.inputs < number and time.monotonic() < until:
        if time.process_time() - start > seconds:
            break
        work.step()
    found.corpus += work.replay
    found.seconds = time.process_time() - start
    found.megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    bench.close()
    return found


def _cheap(corpus: list[bytes], costs: dict[bytes, float], rng: random.Random) -> bytes:
    """One of the corpus, sooner one that takes little time: more of them are tried."""
    some = rng.sample(corpus, min(8, len(corpus)))
    weights = [1 / (0.001 + costs.get(data, 0.1)) for data in some]
    return rng.choices(some, weights)[0]


def minimised(kind: str, data: bytes, wanted: str, tries: int = 150) -> bytes:
    """A simpler input that leads to the same finding."""
    bench = Bench(kind)
    better = True
    while better and tries > 0:
        better = False
        for smaller in simpler(data):
            tries -= 1
            _, verdict = bench.try_out(smaller)
            if verdict.is_finding and signature(kind, verdict) == wanted:
                data, better = smaller.rstrip(b"\0"), True
                break
            if tries <= 0:
                break
    bench.close()
    return data


# -- processes ------------------------------------------------------------------------


@dataclass
class Slice:
    """A process at work on one kind."""

    kind: str
    process: Any
    pipe: Any
    mark: Path
    begun: float
    last: tuple[float, float, float] = (0.0, 0.0, 0.0)
    asleep: float = 0.0

    @property
    def stuck(self) -> bool:
        """Whether it has been at one input for far too long, so that no alarm helps.

        It computes, or all of its threads sleep: one that waits for a core, or was
        stopped, is not stuck.
        """
        marked, now = self.mark.stat().st_mtime, time.monotonic()
        state, computed = _threads(self.process.pid)
        if marked != self.last[0]:
            self.last, self.asleep = (marked, computed, now), 0.0
        if state == "asleep":
            self.asleep += min(now - self.last[2], 1.0)
        self.last = (*self.last[:2], now)
        return max(computed - self.last[1], self.asleep) > 3 * SECONDS


def _threads(pid: int) -> tuple[str, float]:
    """Whether a process is asleep, and the seconds it has computed, where that is told."""
    states, ticks = set(), 0
    for path in Path(f"/proc/{pid}/task").glob("*/stat"):
        with suppress(OSError):  # the thread has ended
            fields = path.read_text("utf-8").rpartition(")")[2].split()
            states.add(fields[0])
            ticks += int(fields[11]) + int(fields[12])
    asleep = bool(states) and states <= {"S", "D"}
    return "asleep" if asleep else "", ticks / os.sysconf("SC_CLK_TCK")


def start(
    found: Found,
    corpus: list[bytes],
    seed: str,
    number: int,
    limits: tuple[float, float],
    place: Path,
) -> Slice:
    """Start a process that computes for so many seconds, but not after some time."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    path = place / f"{found.kind}-{time.monotonic_ns()}.now"
    path.write_bytes(b"")

    def work() -> None:
        limit_memory(GIGABYTES)
        (seconds, until), marked = limits, os.open(path, os.O_WRONLY)

        def mark(data: bytes) -> None:
            os.pwrite(marked, len(data).to_bytes(4, "big") + data, 0)

        try:
            there.send(search(found, corpus, seed, number, until, mark, seconds))
        except Exception:  # noqa: BLE001
            there.send(traceback.format_exc())

    process = context.Process(target=work, daemon=True)
    process.start()
    there.close()
    return Slice(found.kind, process, here, path, time.monotonic())


def finish(slices: Iterable[Slice]) -> Iterable[tuple[Slice, Found]]:
    """Those that have ended, and what they saw; one that died tells what it died of."""
    for one in slices:
        if one.pipe.poll():
            try:
                found = one.pipe.recv()
            except EOFError:
                found = _died(one, "death")
            one.process.join()
            if isinstance(found, str):
                raise RuntimeError(f"the fuzzer itself failed.\n{found}")
            yield one, found
        elif one.stuck:
            one.process.kill()
            one.process.join()
            yield one, _died(one, "hang")


def _died(one: Slice, outcome: str) -> Found:
    """What is known of a process that did not end by itself."""
    found, marked = Found(one.kind), one.mark.read_bytes()
    if marked:
        data = marked[4 : 4 + int.from_bytes(marked[:4], "big")]
        case = Case("unknown", lambda: None, (), "")
        where = f"exit code {one.process.exitcode}"
        found.note(
            case, Verdict(outcome, where, "the process did not survive"), data, 0
        )
    return found
