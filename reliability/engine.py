"""Inputs that go further are kept and changed again, in processes that may die.

A *slice* is one process, one kind of input and some time. It begins with what slices
before it found: the corpus, and the arcs that were seen. A process that hangs in C, or is
ended by the system, leaves behind the input it was working on.
"""

from __future__ import annotations

import multiprocessing
import random
import resource
import shutil
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .api import api_case
from .arcs import Arcs
from .cases import Builder, Case
from .choices import Choices, drawn, mutated, simpler
from .commands import command_case
from .judge import ASLEEP, Verdict, judge, limit_memory
from .readers import reader_case
from .records import record_case

KINDS: dict[str, Builder] = {
    "readers": reader_case,
    "records": record_case,
    "api": api_case,
    "command": command_case,
}

GIGABYTES = 4.0
"""Address space of a process; databases and Arrow map much that they never touch."""

FRESH = 8
"""One input in so many is new; the others are changes of what was kept."""


@dataclass
class Found:
    """What a slice has seen, to be added to what others saw."""

    kind: str
    inputs: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    about: dict[str, Counter[str]] = field(default_factory=dict)
    kept: list[bytes] = field(default_factory=list)
    costs: dict[bytes, float] = field(default_factory=dict)
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
        base = "/dev/shm" if Path("/dev/shm").is_dir() else None
        self.home = Path(tempfile.mkdtemp(prefix="calibrant-fuzz-", dir=base))

    def try_out(self, data: bytes, *, watch: bool = False) -> tuple[Case, Verdict]:
        """Build the case of an input in an empty folder, and run it."""
        folder = self.home / "in"
        folder.mkdir()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # of what is built, not of what is tried
                case = KINDS[self.kind](Choices(data), folder)
            if not watch:
                return case, judge(case)
            with self.arcs.watched():
                return case, judge(case)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.home, ignore_errors=True)


def search(
    found: Found, corpus: list[bytes], seed: str, number: int, until: float, mark: Any
) -> Found:
    """Try inputs until there were enough, or it is late; `mark` is told of each before."""
    rng, bench = random.Random(seed), Bench(found.kind)
    bench.arcs.seen = found.arcs
    start, first = time.process_time(), len(found.arcs)
    replay, known = (list(corpus) if not first else []), set(corpus)
    while found.inputs < number and time.monotonic() < until:
        if replay:
            data = replay.pop()
        elif not corpus or rng.randrange(FRESH) == 0:
            data = drawn(rng)
        else:
            data = mutated(_cheap(corpus, found.costs, rng), corpus, rng)
        mark(data)
        begun = time.process_time()
        case, verdict = bench.try_out(data, watch=True)
        seconds = time.process_time() - begun
        found.note(case, verdict, data, seconds)
        if data in found.costs or bench.arcs.new:
            found.costs[data] = seconds
        if bench.arcs.new and data not in known:
            known.add(data)
            corpus.append(data)
            found.kept.append(data)
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

    @property
    def stuck(self) -> bool:
        """Whether it has been at one input for far too long, so that no alarm helps."""
        with suppress(FileNotFoundError):
            return time.time() - self.mark.stat().st_mtime > 3 * ASLEEP
        return time.monotonic() - self.begun > 4 * ASLEEP  # it has not begun yet


def start(
    found: Found,
    corpus: list[bytes],
    seed: str,
    number: int,
    seconds: float,
    place: Path,
) -> Slice:
    """Start a process that searches for so many seconds."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    mark = place / f"{found.kind}-{time.monotonic_ns()}.now"

    def work() -> None:
        limit_memory(GIGABYTES)
        until = time.monotonic() + seconds
        try:
            there.send(search(found, corpus, seed, number, until, mark.write_bytes))
        except Exception:  # noqa: BLE001
            there.send(traceback.format_exc())

    process = context.Process(target=work, daemon=True)
    process.start()
    there.close()
    return Slice(found.kind, process, here, mark, time.monotonic())


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
    found = Found(one.kind)
    with suppress(FileNotFoundError):
        data = one.mark.read_bytes()
        case = Case("unknown", lambda: None, (), "")
        where = f"exit code {one.process.exitcode}"
        found.note(
            case, Verdict(outcome, where, "the process did not survive"), data, 0
        )
    return found
