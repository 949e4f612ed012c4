"""What is allowed: a result that can be, or an error of ours that names what is wrong.

Anything else is a finding: another exception, an error from inside NumPy, a warning, a
hang, memory beyond the ceiling, a file that was changed, something accepted that must be
refused.
"""

from __future__ import annotations

import ast
import hashlib
import linecache
import re
import resource
import signal
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from .cases import Case, Refused
from .commands import refused

SECONDS = 10
"""An input that computes for longer hangs, and so does one that sleeps for longer. Time in
which it could have run, but the machine did something else, is neither."""

TICK = 1.0
"""Seconds after which a process asks itself whether it sleeps."""

CEILING = 512
"""Megabytes by which one input may raise the peak of resident memory."""

OURS = f"{Path('src', 'calibrant')}"
ALLOWED = ("FitWarning", "ResourceWarning")
"""Warnings meant for users, and one that Python shows to nobody."""


@dataclass(frozen=True)
class Verdict:
    """What became of an input: fine, refused, or the kind of a finding, and where."""

    outcome: str
    where: str = ""
    said: str = ""

    @property
    def is_finding(self) -> bool:
        """Whether this is not allowed."""
        return self.outcome not in ("fine", "refused")


class Hang(BaseException):
    """An input took too long."""


def judge(case: Case) -> Verdict:
    """Run a case, and say what became of it."""
    before = {path: _digest(path) for path in case.keep}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    verdict = _tried(case)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) / 1024
    if grown > CEILING:
        return Verdict("memory", case.about, f"{grown:.0f} MB")
    changed = [path.name for path, digest in before.items() if _digest(path) != digest]
    if changed and not verdict.is_finding:
        return Verdict("input changed", case.about, changed[0])
    return verdict


def _tried(case: Case) -> Verdict:
    with warnings.catch_warnings(record=True) as caught, _limited():
        warnings.simplefilter("always")
        try:
            verdict = _called(case)
        except Hang as error:
            return Verdict("hang", _place(error.__traceback__), "too long")
    leaked = [w for w in caught if w.category.__name__ not in ALLOWED]
    if leaked and not verdict.is_finding:
        first = leaked[0]
        where = f"{Path(first.filename).name}:{first.lineno}"
        return Verdict("warning", where, f"{first.category.__name__}: {first.message}")
    return verdict


def _called(case: Case) -> Verdict:
    try:
        result = case.call()
        if isinstance(result, Refused) or refused(result):
            said = case.check(result)
            return (
                Verdict("bad output", case.about, said) if said else Verdict("refused")
            )
        said = case.check(result)
    except (MemoryError, RecursionError, AssertionError, KeyboardInterrupt) as error:
        return Verdict("traceback", _place(error.__traceback__), _line(error))
    except Exception as error:  # noqa: BLE001
        return _judged(error, case)
    if said:
        return Verdict("bad result", case.about, said)
    if case.wrong not in ("", "?"):
        return Verdict("accepted", case.about, case.wrong)
    return Verdict("fine")


def _judged(error: Exception, case: Case) -> Verdict:
    """Whether an error is one of ours, and says what it is about."""
    if isinstance(error, OSError) and error.filename and not case.is_command:
        return Verdict("refused")  # the system's own, which names the file
    where, text = _place(error.__traceback__), str(error)
    ours = isinstance(
        error, ValueError | TypeError | OSError | ImportError | AttributeError
    )
    if not ours or case.is_command or not _is_raised_by_us(error.__traceback__):
        return Verdict("traceback", where, _line(error))
    if case.names and not _named(text, case.names):
        return Verdict("names nothing", where, _line(error))
    if case.wrong == "":
        return Verdict("refused though right", where, _line(error))
    return Verdict("refused")


def _named(text: str, names: tuple[str, ...]) -> bool:
    """Whether a message has one of the words; they may go on, as in labels."""
    return any(name in text and _begins(text, name) for name in names)


def _begins(text: str, name: str) -> bool:
    """Whether a word begins so; one letter is a word of its own."""
    end = r"\b" if len(name) == 1 else ""
    return re.search(rf"(?<!\w){re.escape(name)}{end}", text) is not None


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


def _frames(trace: TracebackType | None) -> list[tuple[str, int, str]]:
    codes = [(f.f_code, line) for f, line in traceback.walk_tb(trace)]
    return [(code.co_filename, line or 0, code.co_name) for code, line in codes]


def _place(trace: TracebackType | None) -> str:
    """The innermost place of ours, by file and function: what findings are told apart by."""
    ours = [(file, name) for file, _, name in _frames(trace) if OURS in file]
    file, name = ours[-1] if ours else ("outside", "")
    return f"{file.rpartition(OURS)[2].lstrip('/')}:{name}"


def _is_raised_by_us(trace: TracebackType | None) -> bool:
    """Whether the innermost line is a ``raise`` of ours, and not a call into a library."""
    file, line, _ = _frames(trace)[-1]
    return OURS in file and line in _raises(file)


@cache
def _raises(file: str) -> frozenset[int]:
    tree = ast.parse("".join(linecache.getlines(file)))
    return frozenset(
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    )


@contextmanager
def _limited() -> Iterator[None]:
    """Raise `Hang` after too long; calls into C that never return the parent ends."""
    raised, sleep = False, Sleep()

    def stop(*_: Any) -> None:
        nonlocal raised
        if not raised:  # both timers may end while a call into C lasts
            raised = True
            raise Hang

    def tick(*_: Any) -> None:
        if sleep.seconds() > SECONDS:
            stop()

    old = [signal.signal(signal.SIGPROF, stop), signal.signal(signal.SIGALRM, tick)]
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGPROF, old[0])
        signal.signal(signal.SIGALRM, old[1])


class Sleep:
    """Seconds in which this process neither computed nor waited for a core to do so."""

    def __init__(self) -> None:
        self._total, self._last = 0.0, (0.0, 0.0, 0.0)

    def seconds(self) -> float:
        """So far, from the first time it is asked; a process that was stopped asks late."""
        now = time.monotonic(), time.process_time(), _queued()
        if any(self._last):
            wall, computed, queued = (
                x - y for x, y in zip(now, self._last, strict=True)
            )
            self._total += max(0.0, min(wall, 2 * TICK) - computed - queued)
        self._last = now
        return self._total


def _queued() -> float:
    """Seconds that the threads of this process waited for a core, where the system says."""
    total = 0
    for path in Path("/proc/self/task").glob("*/schedstat"):
        with suppress(OSError):  # the thread has ended
            total += int(path.read_text("ascii").split()[1])
    return total / 1e9


def _digest(path: Path) -> str:
    """What a regular file holds."""
    if not path.is_file() or path.is_symlink():
        return ""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def limit_memory(gigabytes: float) -> None:
    """Let this process and no other have no more address space than that."""
    size = int(gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
