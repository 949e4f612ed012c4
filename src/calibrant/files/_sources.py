"""What every reader gives, and the one kind of error that all files have."""

from __future__ import annotations

import importlib
import io
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

LONGEST_MESSAGE, LONGEST_NAME = 500, 60


class FileError(ValueError):
    """A file that cannot be read as predictions; the message is one line."""

    of_no_harness = False
    """Whether it may lie in a folder of a harness: one of other content, not damaged."""

    def __init__(self, path: Path | str, problem: str) -> None:
        super().__init__(one_line(f"{shorten(str(path), 300)}: {problem}"))


def one_line(text: str) -> str:
    r"""Text from a file or a library, on one line, printable and not endless.

    >>> one_line("CSV Error\n  on line 2\x1b[31m")
    'CSV Error on line 2 [31m'
    """
    start = text[: 4 * LONGEST_MESSAGE]
    words = "".join(c if c.isprintable() else " " for c in start).split()
    return shorten(" ".join(words), LONGEST_MESSAGE)


def shorten(text: str, length: int = LONGEST_NAME) -> str:
    """The text, or its beginning with dots."""
    return text if len(text) <= length else text[: length - 1] + "…"


def quoted(names: list[str] | tuple[str, ...], most: int = 12) -> str:
    """Names as a list to print, at most a dozen of them.

    >>> quoted(["y", "p"])
    "'y', 'p'"
    """
    shown = [repr(shorten(name)) for name in names[:most]]
    more = len(names) - len(shown)
    return (", ".join(shown) or "nothing") + (f" and {more} more" if more else "")


SHORT = re.compile(
    r"(?s)CSV Error on Line: (\d+).*Expected Number of Columns: (\d+) Found: (\d+)"
)
"""What DuckDB says of a line with another number of cells."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever a parser raises on hostile bytes into one clear error."""
    try:
        yield
    except FileError:
        raise
    except MemoryError as error:
        large = "asks for more memory than there is; it is damaged, or too large."
        raise FileError(path, large) from error
    except OSError as error:
        reason = one_line(error.strerror or str(error)).rstrip(".")
        raise FileError(path, f"cannot be read: {reason}.") from error
    except UnicodeDecodeError as error:
        byte = f"byte 0x{error.object[error.start]:02x}"
        raise FileError(path, f"is not in UTF-8 ({byte}); save it as UTF-8.") from error
    except Exception as error:
        short = SHORT.search(str(error))
        if short is not None:
            line, wanted, found = short.groups()
            has = f"has {found} cells in line {line}, and {wanted} columns"
            raise FileError(path, f"{has}; complete the line.") from error
        reason = str(error).split("\nPossible ")[0].split("\n\n")[0]
        said = f"{type(error).__name__}: {one_line(reason)}".rstrip(".: ")
        raise FileError(path, f"cannot be read ({said}).") from error


@contextmanager
def naming(stored: Path, path: Path) -> Iterator[None]:
    """Name the file that a user gave in errors about one that it was unpacked into."""
    try:
        yield
    except FileError as error:
        if stored == path or not str(error).startswith(f"{stored}: "):
            raise
        raise FileError(path, str(error).removeprefix(f"{stored}: ")) from error


class Held(io.FileIO):
    """A regular file, held open while it is read, so that it stays the same one.

    Who reads its bytes here sees one version of it, even if another takes its place.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._named = path, path.stat()
        check_regular(path, self._named)  # opening a device may do something
        super().__init__(path, opener=_open_at_once)
        self._opened = os.fstat(self.fileno())
        check_regular(path, self._opened)

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._opened.st_size

    def check(self, *, by_path: bool) -> None:
        """Refuse it if its bytes, or with `by_path` the file of its name, are others now."""
        if by_path:
            same = _version(self.path.stat()) == _version(self._named)
        else:  # its name may be another's by now, which is a change too
            same = _version(os.fstat(self.fileno()))[:-1] == _version(self._opened)[:-1]
        if not same:
            raise FileError(self.path, "was changed while it was read; read it again.")


def _version(found: os.stat_result) -> tuple[int, ...]:
    where, size = (found.st_dev, found.st_ino), found.st_size
    return *where, size, found.st_mtime_ns, found.st_ctime_ns


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a FIFO would wait


SPECIAL = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
}


def check_regular(path: Path, found: os.stat_result) -> None:
    """Refuse what may have no end, or never begin."""
    if not stat.S_ISREG(found.st_mode):
        what = SPECIAL.get(stat.S_IFMT(found.st_mode), "no regular file")
        raise FileError(
            path, f"is {what}; only regular files are read, so save it as one."
        )


class Place(io.RawIOBase):
    """A held file, read from a place of one's own."""

    def __init__(self, held: Held, at: int = 0) -> None:
        self._held, self._at = held, at

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go somewhere else."""
        start = self._at if whence == os.SEEK_CUR else 0
        if whence == os.SEEK_END:
            start = self._held.size
        self._at = start + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read from here, and go on."""
        self._held.seek(self._at)
        got = self._held.readinto(buffer)
        self._at += got
        return got


Numbered: TypeAlias = tuple[int, dict[str, Any]]
"""An object of a file, and the number of its line or item."""

TASK = "task"
"""The column of the task that a harness made a row of."""

OPTIONS = "options"
"""The type of an entry of objects that have a score for each option: {"A": -0.2, ...}."""

Block: TypeAlias = dict[str, NDArray[Any]]
"""Some rows of some entries; a missing number is NaN, a missing text None."""

Kind = Literal["number", "text", "other"]

TOLD_APART = 2**53
"""Whole numbers below this are all different as float64."""

MOST_EXPANSION, SMALL = 64, 1 << 30
"""A file may unpack to 64 times its size, and to 1 GB in any case."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An array or a column: its name, type, and shape (None where not yet counted)."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    kind: Kind = "number"


@dataclass(frozen=True, slots=True)
class Request:
    """Which entries to read, and how many rows at a time.

    Those in `text` come as text even if they look like numbers, and whole numbers of those
    in `exact` digit by digit, as integers or text where a float64 would round them. `most`
    is how many rows are wanted at all, for readers that would do work in advance. With
    `missing`, a row may lack any of them. `options` are those of all questions, if these
    differ in theirs: a list of scores has a place for each, which is -inf where a question
    has no such option.
    """

    names: tuple[str, ...]
    rows: int
    text: frozenset[str] = frozenset()
    most: int | None = None
    exact: frozenset[str] = frozenset()
    missing: bool = False
    options: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """An open file as a record: what is in it, and a function that gives its rows.

    A file of a harness says which entry plays which role (`roles`), and its questions may
    differ in their number of options (`ragged`). `options_in` looks through an entry of
    lists or objects for the options that there are.
    """

    path: Path
    format: str
    rows: int | None
    entries: tuple[Entry, ...]
    blocks: Callable[[Request], Iterator[Block]]
    is_table: bool = True
    stored: Path | None = None  # where its bytes lie, if not under that name
    roles: Mapping[str, str] = field(default_factory=dict)
    ragged: bool = False
    sure: bool = False  # an option without a score has probability 0
    options_in: Callable[[str], tuple[Any, ...]] | None = None
    named: Mapping[str, Entry] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "named", {entry.name: entry for entry in self.entries})

    def __getitem__(self, name: str) -> Entry:
        return self.named[name]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the entries, in the order of the file."""
        return tuple(self.named)


def source_of_arrays(
    path: Path,
    given: str,
    entries: Iterable[Entry],
    pieces: Callable[[str, int], Iterator[NDArray[Any]]],
) -> Source:
    """Arrays side by side; ``pieces(name, rows)`` gives one, so many rows at a time."""
    known = tuple(entries)

    def blocks(request: Request) -> Iterator[Block]:
        _check_rows(path, [e for e in known if e.name in request.names])
        with reading(path):
            columns = [pieces(name, request.rows) for name in request.names]
            for piece in zip(*columns, strict=True):
                yield dict(zip(request.names, piece, strict=True))

    return Source(path, given, None, known, blocks, is_table=False)


def _check_rows(path: Path, entries: list[Entry]) -> None:
    """Refuse arrays that are not one entry, or one row, per prediction."""
    for entry in entries:
        if not entry.shape:
            raise FileError(path, f"{entry.name!r} is a single number, not an array.")
        if entry.shape[0] != entries[0].shape[0]:
            raise FileError(
                path,
                f"{entries[0].name!r} has {entries[0].shape[0]} rows but "
                f"{entry.name!r} has {entry.shape[0]}; they must be of equal length.",
            )


def ranges(n: int, rows: int) -> Iterator[slice]:
    """Slices of n rows, so many at a time."""
    for start in range(0, n, rows):
        yield slice(start, min(start + rows, n))


def optional(path: Path, name: str, way_out: str) -> Any:
    """A package that one format needs, or an error that says what to do without it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.split(".")[0]
        raise FileError(path, f"needs {package} to be read ({way_out}).") from error


def check_expansion(path: Path, what: str, size: int, on_disk: int) -> None:
    """Refuse what would unpack to far more than the file: nobody meant that."""
    if size > SMALL and size > MOST_EXPANSION * on_disk:
        raise FileError(
            path,
            f"{what} would unpack to {size / 1e9:.3g} GB from {on_disk / 1e9:.2g} GB "
            f"on disk, more than {MOST_EXPANSION} times as much; if that is meant, "
            "save it uncompressed.",
        )


def check_names(path: Path, names: tuple[str, ...]) -> None:
    """Refuse a file in which a name says nothing or says two things."""
    if twins := [name for name, times in Counter(names).items() if times > 1]:
        twin = shorten(twins[0])
        raise FileError(path, f"has two columns named {twin!r}; rename one of them.")


def same_width(path: Path, name: str, lengths: NDArray[Any], start: int) -> int:
    """The length all lists of a column have, or an error that names the one that differs."""
    differs = lengths != lengths[0]
    if differs.any() or np.isnan(lengths[0]):
        row = int(np.argmax(differs))
        raise FileError(
            path,
            f"lists of {shorten(name)!r} must be of one length; row {start + row} has "
            f"{lengths[row]:g} numbers, row {start} has {lengths[0]:g} (nan: missing).",
        )
    return int(lengths[0])


def kind_of(dtype: np.dtype[Any]) -> Kind:
    """What a NumPy type holds."""
    if dtype.kind in "biuf":
        return "number"
    return "text" if dtype.kind in "US" else "other"


def text_of(values: NDArray[Any]) -> NDArray[Any]:
    """Values as text; whole numbers without a decimal point."""
    if values.dtype.kind == "S":
        return np.char.decode(values, "utf-8")
    return whole(values).astype(str) if values.dtype.kind in "biuf" else values


def exactly(values: Sequence[int | float | None]) -> NDArray[Any]:
    """Numbers as float64 or, where that would round integers, as integers or text.

    >>> exactly([1, 0.5]), exactly([2**53 + 1, 1.0])
    (array([1. , 0.5]), array([9007199254740993,                1]))
    """
    floats = np.array(values, dtype=np.float64)
    wide = np.flatnonzero(np.abs(floats) >= TOLD_APART).tolist()
    if not len(wide) or any(isinstance(values[i], float) for i in wide):
        return floats
    known = [int(v) if isinstance(v, float) and v.is_integer() else v for v in values]
    ints = [v for v in known if isinstance(v, int)]
    for dtype in (np.int64, np.uint64) if len(ints) == len(known) else ():
        if np.iinfo(dtype).min <= min(ints) and max(ints) <= np.iinfo(dtype).max:
            return np.array(ints, dtype)
    missing = np.isnan(floats).tolist()
    texts = [None if no else str(v) for v, no in zip(known, missing, strict=True)]
    return np.array(texts, dtype=object)


def with_digits(numbers: NDArray[Any], texts: NDArray[Any]) -> NDArray[Any]:
    """Numbers that were rounded, and the texts of those that may have been (else None)."""
    values = numbers.tolist()
    given = [i for i, text in enumerate(texts.tolist()) if text is not None]
    for i in given:
        with suppress(ArithmeticError):
            written = Decimal(texts[i])
            values[i] = int(written) if written == int(written) else values[i]
    return exactly(values) if given else numbers


def whole(values: NDArray[Any]) -> NDArray[Any]:
    """Floats that are whole numbers as integers; anything else as it is.

    >>> whole(np.array([1.0, 2.0])), whole(np.array([0.5, 2.0]))
    (array([1, 2]), array([0.5, 2. ]))
    """
    if values.dtype.kind != "f" or not values.size:
        return values
    with np.errstate(invalid="ignore", over="ignore"):  # as float16, 2^53 is infinite
        fits = np.all(np.abs(values) < TOLD_APART) and np.all(
            values == np.floor(values)
        )
    return values.astype(np.int64) if fits else values
