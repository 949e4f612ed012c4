"""Kill writers at random moments: ``python -m reliability.kills --number 500 --seed 0``.

A round forks a process that writes a file, ends it by SIGKILL at a random moment (in every
other round, while a temporary file is there), and looks at what is left: the file must be
the old one or a new one, whole. Then the same call is made again. It must end in the bytes
of a run that was never killed, with nothing left beside them. Sketches are killed several
times in a row, and sometimes a second process wants the same file.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, NoReturn

import click
import numpy as np

import calibrant as cal
from calibrant._base import write
from calibrant._verbs import stream
from calibrant.cli import main as command
from calibrant.files import Roles
from calibrant.recalibration import TemperatureScaling
from calibrant.vision import _inference as inference

# -- the writers: each makes one file of a folder -----------------------------------------

SHARDS = [f"{i}.npz" for i in range(3)]
SHARD_ROWS = 300


def rows(seed: int = 0) -> tuple[Any, Any]:
    """Labels and logits of three classes."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(SHARD_ROWS, 3))
    return (z + rng.gumbel(size=z.shape)).argmax(axis=1), 2 * z


def write_inputs(folder: Path) -> None:
    """Files that commands read: shards, and sketches of two of them."""
    for i, name in enumerate(SHARDS):
        y, z = rows(i)
        np.savez(folder / name, logits=z, labels=y)
        if i < 2:
            cal.Sketch().update(y, logits=z).save(folder / f"s{i}.npz")


@cache
def sketch() -> cal.Sketch:
    """A sketch of a few rows."""
    y, z = rows()
    return cal.Sketch().update(y, logits=z)


@cache
def drawn() -> Any:
    """A small figure."""
    return cal.evaluate(sketch(), name="a").plot().figure


def save_fitted(folder: Path) -> None:
    """Write a recalibrator."""
    y, z = rows()
    TemperatureScaling().fit(z, y).save(folder / "fitted.json", force=True)


def write_manifest(folder: Path) -> None:
    """Write what a run over images writes after every shard."""
    shard = inference.Shard("shard-00000.npz", 3, "0")
    inference.write_manifest(folder, inference.Manifest({"model": "a"}, (shard,)))


def write_shard(folder: Path) -> None:
    """Write a shard of logits."""
    y, z = rows()
    inference.write_shard(folder, 1, {"logits": z, "labels": y})


def sketch_in_pieces(folder: Path) -> None:
    """Go on with a sketch that is saved every 100 rows."""
    path = folder / "pieces.npz"

    def save(made: cal.Sketch) -> None:
        made.save(path, force=True)

    real = stream.batches
    stream.batches = partial(real, rows=100)
    try:
        with write.locked(path):
            found = cal.Sketch.load(path) if path.exists() else cal.Sketch()
            units = [[str(folder / SHARDS[0])]]
            said = {"save": save, "progress": lambda *_: None, "every": 100}
            stream.sketch_files(units, Roles(), found, **said)
    finally:
        stream.batches = real


class CommandError(Exception):
    """The command ended with exit code 1, after a line on standard error."""


def run(*arguments: str) -> Callable[[Path], None]:
    """The command in a folder."""

    def in_folder(folder: Path) -> None:
        before = Path.cwd()
        os.chdir(folder)
        try:
            command([*arguments, "-q"])
        except SystemExit as ended:
            if ended.code not in (0, 1):
                raise
            if ended.code:
                raise CommandError from ended
        finally:
            os.chdir(before)

    return in_folder


WRITERS: dict[str, Callable[[Path], None]] = {
    "text.txt": lambda folder: write.write_text(folder / "text.txt", "new" * 99_999),
    "sketch.npz": lambda folder: sketch().save(folder / "sketch.npz", force=True),
    "fitted.json": save_fitted,
    "figure.png": lambda folder: drawn().savefig(folder / "figure.png", dpi=20),
    "manifest.json": write_manifest,
    "shard-00001.npz": write_shard,
    "both.npz": run("merge", "s0.npz", "s1.npz", "-o", "both.npz", "--force"),
    "page.html": run("report", "s0.npz", "-o", "page.html", "--force"),
    "saved.json": run(
        "recalibrate", "--fit", "0.npz", "--save", "saved.json", "--force"
    ),
    "out.npz": run(
        *("recalibrate", "--fit", "0.npz", "--apply", "1.npz"),
        *("-o", "out.npz", "--force"),
    ),
    "all.npz": run("sketch", *SHARDS, "-o", "all.npz", "--resume"),
    "pieces.npz": sketch_in_pieces,
}
"""By the file that each writes."""

RESUMED = ("all.npz", "pieces.npz")
"""Those that go on from what they find."""


# -- processes, and their ends ------------------------------------------------------------


def begin(writer: Callable[[Path], None], folder: Path) -> int:
    """Start a process that writes and ends; its number."""
    child = os.fork()
    if not child:
        _write_and_end(writer, folder)
    return child


def _write_and_end(writer: Callable[[Path], None], folder: Path) -> NoReturn:
    code = 2
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        write.sweep.cache_clear()
        writer(folder)
        code = 0
    except (CommandError, BlockingIOError):
        code = 1
    finally:
        os._exit(code)


def end(child: int) -> int:
    """Wait for a process; its exit code, negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def temporary(folder: Path) -> bool:
    """Whether a temporary file is there."""
    return any(name.endswith(".tmp") for name in os.listdir(folder))  # noqa: PTH208


def wait_for_writing(child: int, folder: Path) -> None:
    """Wait until a process has a temporary file, or has ended."""
    while not temporary(folder):
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        if os.waitid(os.P_PID, child, flags) is not None:
            return


def kill(child: int, folder: Path, rng: np.random.Generator, duration: float) -> bool:
    """Kill a process at a random moment; False if it had ended before."""
    if rng.random() < 0.5:
        wait_for_writing(child, folder)
        duration *= 0.05
    time.sleep(duration * 1.05 * rng.random())
    os.kill(child, signal.SIGKILL)
    return end(child) == -signal.SIGKILL


# -- rounds -------------------------------------------------------------------------------


@dataclass
class Bench:
    """A writer in a folder of its own, and what it makes when nobody kills it."""

    name: str
    folder: Path
    found: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.writer, self.path = WRITERS[self.name], self.folder / self.name
        write_inputs(self.folder)
        self.names = {path.name for path in self.folder.iterdir()} | {self.name}
        end(begin(self.writer, self.folder))  # imports
        self.path.unlink()
        start = time.perf_counter()
        assert end(begin(self.writer, self.folder)) == 0
        self.duration = time.perf_counter() - start
        self.whole = self.path.read_bytes()

    def round(self, rng: np.random.Generator) -> None:
        """Kill the writer, perhaps again and again; look, and let it finish."""
        old = self.begin_with(rng)
        for _ in range(1 + (self.name in RESUMED) * int(rng.integers(3))):
            child = begin(self.writer, self.folder)
            rival = self.name in RESUMED and rng.random() < 0.3
            other = begin(self.writer, self.folder) if rival else None
            killed = kill(child, self.folder, rng, self.duration)
            if other is not None and end(other) not in (0, 1):
                self.failures.append("the second process ended in an error")
            self.found["killed" if killed else "ended before"] += 1
            self.found[left := self.look(old)] += 1
            if left == "new file":
                break
        if (code := end(begin(self.writer, self.folder))) != 0:
            self.failures.append(f"the next run ended with {code}")
        elif self.path.read_bytes() != self.whole:
            self.failures.append("the next run made another file")
        if more := {path.name for path in self.folder.iterdir()} - self.names:
            self.failures.append(f"the next run left {sorted(more)}")

    def begin_with(self, rng: np.random.Generator) -> bytes | None:
        """No file, or an old one that is to be replaced."""
        self.path.unlink(missing_ok=True)
        old = b"old" if self.name not in RESUMED and rng.random() < 0.5 else None
        if old is not None:
            self.path.write_bytes(old)
        return old

    def look(self, old: bytes | None) -> str:
        """What a killed process left."""
        self.found["orphan"] += temporary(self.folder)
        content = self.path.read_bytes() if self.path.exists() else None
        if content in (old, self.whole):
            return "new file" if content == self.whole else "old file or none"
        try:
            assert self.name in RESUMED
            assert cal.Sketch.load(self.path).rows % 100 == 0
        except (AssertionError, ValueError) as error:
            self.failures.append(f"neither old nor new ({error})")
        return "sketch of some rows"


@contextmanager
def benches(names: Sequence[str]) -> Iterator[list[Bench]]:
    """A bench for each writer, in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        made = []
        for name in names:
            (own := Path(folder) / name.replace(".", "-")).mkdir()
            made.append(Bench(name, own.resolve()))
        yield made


def kills(number: int, seed: int, names: Sequence[str] = ()) -> dict[str, Any]:
    """Kill so many times, each writer in turn; what was found, by writer."""
    with benches(names or list(WRITERS)) as made:
        for i in range(number):
            while made[i % len(made)].found["killed"] <= i // len(made):
                made[i % len(made)].round(
                    np.random.default_rng([seed, i, _rounds(made)])
                )
        return {x.name: {**x.found, "failures": x.failures} for x in made}


def _rounds(made: list[Bench]) -> int:
    return sum(bench.found.total() for bench in made)


def show(found: dict[str, Any]) -> None:
    """Print a line for each writer."""
    for name, counts in found.items():
        told = ", ".join(
            f"{what} {n}" for what, n in counts.items() if what != "failures"
        )
        click.echo(f"{name:16} {told}")
        for failure in counts["failures"]:
            click.echo(f"{'':16} FAILURE: {failure}")
    click.echo(f"kills: {sum(counts['killed'] for counts in found.values())}")


def main() -> int:
    """Run as a command; exit code 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=500, help="kills [500]")
    parser.add_argument("--seed", type=int, default=0, help="of the moments [0]")
    parser.add_argument("--json", action="store_true", help="print JSON")
    said = parser.parse_args()
    found = kills(said.number, said.seed)
    if said.json:
        click.echo(json.dumps(found))
    else:
        show(found)
    return int(any(counts["failures"] for counts in found.values()))


if __name__ == "__main__":
    sys.exit(main())
