"""Runs that go on where they were stopped: sums over data sets, by world, n and quantity."""

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, astuple, dataclass
from functools import cache
from pathlib import Path

import numpy as np

from .development import DEVELOPMENT
from .holdout import HOLDOUT
from .measure import Found, measure
from .real import real_worlds
from .worlds import World, truths

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
DATA = Path(os.environ.get("CALIBRANT_DATA", HERE.parent.parent / "shared" / "data"))
SIZES = (50, 300, 1_000, 10_000, 100_000)
SLACK = 1e-9

EARLY = 200
"""Data sets that release 0.1.0 has seen, for a comparison on the same ones."""


@cache
def worlds(kind: str) -> tuple[World, ...]:
    """The worlds of development, hold-out or real confidences."""
    if kind == "real":
        load = cache(lambda name: np.load(DATA / f"{name}.npz", allow_pickle=False))
        return tuple(real_worlds(load)) if DATA.is_dir() else ()
    return {"development": DEVELOPMENT, "holdout": HOLDOUT}[kind]


KINDS = ("development", "holdout", "real")


def find_worlds(names: Sequence[str]) -> list[World]:
    """Worlds by their own name or that of their kind, in order."""
    known = [(kind, world) for kind in KINDS for world in worlds(kind)]
    for name in names:
        if not any(name in (kind, world.name) for kind, world in known):
            choices = ", ".join([*KINDS, *(world.name for _, world in known)])
            raise ValueError(f"no world is called {name!r}; there are {choices}.")
    return [w for kind, w in known if kind in names or w.name in names]


def kind_of(world: World) -> str:
    """Development, hold-out or real."""
    return next(kind for kind in KINDS if world in worlds(kind))


@dataclass(frozen=True)
class About:
    """What a page says of a world, kept with the results."""

    name: str
    kind: str
    words: str
    d_brier: float
    d_log: float
    rare: bool
    saturated: bool
    narrow: bool

    @classmethod
    def of(cls, world: World) -> "About":
        """Description and calibration errors of a world."""
        known = truths(world)
        errors = known["d_brier"], known["d_log"]
        about = world.name, kind_of(world), world.words, *errors
        return cls(*about, world.rare, world.saturated, world.narrow)

    @property
    def calibrated(self) -> bool:
        """Whether accuracy is confidence."""
        return self.d_brier == 0


# -- sums --------------------------------------------------------------------------


@dataclass
class Tally:
    """Sums over the data sets of one world and size, for one quantity."""

    count: int = 0
    absent: int = 0
    """Data sets without a finite number, or without an interval for it."""

    covered: int = 0
    above: int = 0
    """Intervals that begin above the truth."""

    zero: int = 0
    """Intervals that begin at 0: they can miss on one side only."""

    values: int = 0
    error: float = 0.0
    square: float = 0.0
    length: float = 0.0

    def add(self, found: Found, truth: float) -> None:
        """One more data set."""
        value, ends = found
        self.count += 1
        if np.isfinite(value):
            self.values += 1
            self.error += value - truth
            self.square += (value - truth) ** 2
        if ends is None or not np.isfinite(value):
            self.absent += 1
            return
        slack = SLACK * abs(truth) + 1e-13
        self.above += ends[0] > truth + slack
        self.covered += ends[0] <= truth + slack and truth <= ends[1] + slack
        self.zero += ends[0] <= 0
        self.length += ends[1] - ends[0]

    @property
    def intervals(self) -> int:
        """Data sets with an interval."""
        return self.count - self.absent

    @property
    def coverage(self) -> float:
        """Share of the intervals that hold the truth."""
        return self.covered / self.intervals if self.intervals else np.nan

    @property
    def accused(self) -> float:
        """Share of the intervals that begin above the truth."""
        return self.above / self.intervals if self.intervals else np.nan

    @property
    def bias(self) -> float:
        """Mean error."""
        return self.error / self.values if self.values else np.nan

    @property
    def rmse(self) -> float:
        """Root of the mean squared error."""
        return float(np.sqrt(self.square / self.values)) if self.values else np.nan


Cell = dict[str, Tally]
Cells = dict[tuple[str, int], Cell]


def load(path: Path = RESULTS) -> tuple[Cells, dict]:
    """Tallies by world and n, and what else the file holds."""
    if not path.exists():
        return {}, {"seed": 1, "worlds": {}}
    kept = json.loads(path.read_text("utf-8"))
    cells = {
        (name, int(n)): {x: Tally(*numbers) for x, numbers in cell.items()}
        for name, sizes in kept.pop("cells").items()
        for n, cell in sizes.items()
    }
    return cells, kept


def save(cells: Cells, other: dict, path: Path = RESULTS) -> None:
    """Write one line per world, n and quantity, whole or not at all."""
    tree: dict[str, dict] = {}
    for (name, n), cell in sorted(cells.items()):
        plain = {x: _plain(tally) for x, tally in sorted(cell.items())}
        tree.setdefault(name, {})[str(n)] = plain
    text = json.dumps(other | {"cells": tree}, indent=1)
    text = _on_one_line(text)
    part = path.with_suffix(".part")
    part.write_text(text + "\n", "utf-8")
    part.replace(path)


def _plain(tally: Tally) -> list[float]:
    return [x if isinstance(x, int) else float(f"{x:.9g}") for x in astuple(tally)]


def _on_one_line(text: str) -> str:
    """Lists of numbers need no line for each."""
    return re.sub(r"\[[^][]*\]", lambda found: " ".join(found[0].split()), text)


# -- running -----------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """Data sets `first` to `last` of one world and size."""

    world: str
    n: int
    wanted: tuple[str, ...]
    first: int
    last: int
    seed: int


def tasks(
    chosen: Iterable[World],
    sizes: Iterable[int],
    wanted: Sequence[str],
    replicates: int,
    cells: Cells,
    seed: int,
) -> list[Task]:
    """What is missing, small data sets first."""
    found = []
    for n in sorted(sizes):
        for world in chosen:
            cell = cells.get((world.name, n), {})
            first = min(cell.get(x, Tally()).count for x in wanted)
            if first < replicates:
                found.append(
                    Task(world.name, n, tuple(wanted), first, replicates, seed)
                )
    return found


def perform(task: Task) -> list[dict[str, Found]]:
    """Measure each data set of a task."""
    (world,) = find_worlds([task.world])
    return [
        measure(world, world.draw(task.n, replicate, task.seed), task.wanted)
        for replicate in range(task.first, task.last)
    ]


def fold(cells: Cells, task: Task, found: Sequence[dict[str, Found]]) -> None:
    """Add what was found to the sums, each data set once."""
    (world,) = find_worlds([task.world])
    known = truths(world)
    cell = cells.setdefault((task.world, task.n), {})
    for replicate, numbers in enumerate(found, task.first):
        for name, number in numbers.items():
            for tallied in _names(name, replicate):
                tally = cell.setdefault(tallied, Tally())
                if tally.count == replicate:
                    tally.add(number, truth_of(name, known))


def _names(name: str, replicate: int) -> list[str]:
    """Where a data set is tallied: d_CAL of early ones also on its own."""
    early = name in ("d_brier", "d_log") and replicate < EARLY
    return [name, f"early_{name}"] if early else [name]


def truth_of(name: str, known: dict[str, float]) -> float:
    """What a quantity estimates; errors of the curve and shares are their own sums."""
    rivals = {"bins": "d_brier", "paper_brier": "d_brier", "paper_log": "d_log"}
    return known.get(rivals.get(name, name), 0.0)


def seconds_of(todo: Sequence[Task]) -> float:
    """What the tasks take on a free core, by a data set of each size."""
    cost: dict[int, float] = {}
    for task in todo:
        if task.n not in cost:
            trial = Task(**asdict(task) | {"first": 0, "last": 1})
            perform(trial)
            start = time.process_time()  # others may use the cores, too
            perform(trial)
            cost[task.n] = time.process_time() - start
    return sum(cost[task.n] * (task.last - task.first) for task in todo)


def run(
    todo: Sequence[Task],
    processes: int,
    minutes: float,
    done: Callable[[Task, Sequence[dict[str, Found]]], None],
) -> int:
    """Perform tasks until the time is over; return how many are left."""
    end, left = time.monotonic() + 60 * minutes, list(reversed(todo))
    with ProcessPoolExecutor(processes) as pool:
        running = {}
        while left or running:
            while left and len(running) < processes and time.monotonic() < end:
                task = left.pop()
                running[pool.submit(perform, task)] = task
            if not running:
                break
            finished = next(as_completed(running))
            done(running.pop(finished), finished.result())
    return len(left)
