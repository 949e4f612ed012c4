"""What is tried: one case from one string of choices, and what may become of it.

A case is a call, the words of which an error must name one, what is wrong with the input
(it must be refused), and a look at what came out where it was accepted.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .choices import Choices
from .formats import WRITERS, bytes_off, hostile_npy, npy
from .rows import Rows, edge, rows, spoil


def nothing_wrong(_: Any) -> str:
    """No objection."""
    return ""


@dataclass
class Case:
    """One input: `about` is the row it is counted in, `show` what a reader may try.

    `names` are words of which the message of an error must have one; `wrong` says what
    must be refused, and is "?" where both answers are allowed.
    """

    about: str
    call: Callable[[], Any]
    names: tuple[str, ...]
    show: str | Callable[[], str]
    wrong: str = "?"
    check: Callable[[Any], str] = nothing_wrong
    keep: tuple[Path, ...] = ()
    is_command: bool = False
    like: str = ""

    @property
    def shown(self) -> str:
        """What a reader may try, put into words only when it is asked for."""
        return self.show if isinstance(self.show, str) else self.show()

    @property
    def alike(self) -> str:
        """Cases that cost about the same."""
        return f"{self.about} {self.like}"


class Refused:
    """What a call gives back that was refused in a way of its own."""


Builder = Callable[[Choices, Path], Case]

FOLDERS = (
    "", "label=2", "prob=0.9", "correct=1", "date=2020-01-01", "c0=1", "[a]*?", "it's",
    "a b", "\u202ex", "a,b", "x" * 200, "=", "%2e", "#1;",
)  # fmt: skip
"""Folders whose names mean something to a database, a shell or a pattern."""

STEMS = (
    "a",
    "label=1",
    "it's",
    "[x]",
    "a,b",
    "-o",
    " a ",
    "\u202ea",
    "\x1b[31ma",
    "a\nb",
    "é",
)


SUFFIXES = (
    "npz", "npy", "safetensors", "jsonl", "csv", "npz", "parquet", "arrow", "safetensors",
    "jsonl", "tsv", "feather", "npy", "npz", "npy", "safetensors", "jsonl", "arrow",
)  # fmt: skip
"""Formats that need no database, which takes its time, come more than once."""


def place(c: Choices, home: Path) -> Path:
    """A folder to write to, with a name that may be odd."""
    folder = home / c.one(FOLDERS) if c.chance(90) else home
    folder.mkdir(exist_ok=True)
    return folder


def predictions(c: Choices) -> Rows:
    """Rows: as they should be, at the edge, or spoilt."""
    made = rows(c)
    what = c.below(12)
    if what == 11:
        spoil(c, made)
    elif what == 10:
        edge(c, made)
    return made


def write(c: Choices, folder: Path, made: Rows, stem: str = "a") -> list[Path]:
    """Predictions in files of some format; the attacks are noted in ``made.wrong``."""
    suffix = c.one(SUFFIXES)
    if suffix == "npy":
        return _write_npy(c, folder, made)
    writer, attacks = WRITERS[suffix]
    attack = c.below(attacks) if not made.wrong and c.chance(100) else 0
    content = writer(c, made, attack)
    if c.chance(30):
        content, made.wrong = bytes_off(c, content), "?"
    return [put(folder / f"{stem}.{suffix}", content)]


def put(path: Path, content: bytes) -> Path:
    """Write a file in the place of whatever an earlier one of this input became."""
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)  # a pipe, or a link to an endless device
    path.write_bytes(content)
    return path


def _write_npy(c: Choices, folder: Path, made: Rows) -> list[Path]:
    paths = []
    hostile = c.below(len(made.arrays)) if not made.wrong and c.chance(100) else -1
    for number, (name, array) in enumerate(made.arrays.items()):
        content = npy(array)
        if number == hostile:
            content, made.wrong = hostile_npy(c, array)
        if c.chance(10):
            content, made.wrong = bytes_off(c, content), "?"
        paths.append(put(folder / f"{name}.npy", content))
    return paths


def special(c: Choices, home: Path, paths: list[Path]) -> str:
    """Put something in the place of a file that is none; what is wrong is said."""
    path = c.one(paths)
    what = c.below(6)
    path.unlink()
    if what == 0:
        return "a file missing"
    if what == 1:
        os.mkfifo(path)
        return "a pipe"
    if what == 2:
        path.symlink_to("/dev/zero")
        return "an endless device"
    if what == 3:
        path.symlink_to(path)
        return "a link to itself"
    if what == 4:
        path.mkdir()
        return "a folder"
    path.write_bytes(b"")
    return "an empty file"


def spelled(paths: list[Path]) -> tuple[str, ...]:
    """Words of which an error about these files must have one."""
    stems = {path.name for path in paths} | {path.parent.name for path in paths}
    return tuple(word for stem in stems for word in (stem, stem[:80]) if stem)
