"""Arrays stored one after the other (.npz, .npy): headers first, then rows in order.

Nothing is unpickled, and nothing is allocated before the size a header claims has been
held against the size of the file.
"""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from calibrant._base.write import SKETCHES
from calibrant.files import _sources as sources
from calibrant.files._sources import Entry, FileError, Held, Place, Source

MOST_MEMBERS = 10_000
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


@dataclass(frozen=True, slots=True)
class Stored:
    """An array on disk: what its header says, and how to get to its bytes."""

    path: Path
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran: bool
    start: int  # where the header ends
    open: Callable[[], Any]
    is_bfloat16: bool = False

    @property
    def type(self) -> str:
        """The name of its type."""
        return "bfloat16" if self.is_bfloat16 else self.dtype.name

    @property
    def size(self) -> int:
        """Bytes of the data."""
        return math.prod(self.shape) * self.dtype.itemsize

    def pieces(self, rows: int) -> Iterator[NDArray[Any]]:
        """The array, so many rows at a time."""
        with self.open() as file:
            file.read(self.start)  # after a seek, a zip checks no sums
            if self.fortran:
                whole = self._read(file, self.shape[::-1]).T
            for part in sources.ranges(self.shape[0], rows):
                if self.fortran:
                    yield whole[part]
                else:
                    yield self._read(file, (part.stop - part.start, *self.shape[1:]))

    def _read(self, file: Any, shape: tuple[int, ...]) -> NDArray[Any]:
        is_bool = self.dtype == bool  # any byte but 0 is true, and only 1 a valid bool
        array = np.empty(shape, np.uint8 if is_bool else self.dtype)
        left = memoryview(array.reshape(-1).view(np.uint8).data)
        while left:
            got = file.readinto(left)
            if not got:
                raise FileError(self.path, f"{self.name!r} ends before its last row.")
            left = left[got:]
        if self.is_bfloat16:  # NumPy lacks it: it is the upper half of a float32
            return (array.astype(np.uint32) << 16).view(np.float32)
        return array != 0 if is_bool else array


def check_stored(stored: Stored, space: int) -> None:
    """Refuse an array that cannot be data, or is not as long as its place in the file."""
    path, name = stored.path, sources.shorten(stored.name)
    if stored.dtype.hasobject:
        raise FileError(
            path,
            f"{name!r} holds Python objects, which only pickle can read; save it as "
            "numbers or text: array.astype(float) or array.astype(str).",
        )
    if stored.dtype.itemsize == 0 or any(side < 0 for side in stored.shape):
        raise FileError(path, f"{name!r} has the impossible shape {stored.shape}.")
    if stored.size != space:
        raise FileError(
            path,
            f"{name!r} claims {stored.size} bytes of data but has {space}; the file is "
            "damaged or cut short.",
        )


def source_of_stored(path: Path, given: str, arrays: list[Stored]) -> Source:
    """Arrays on disk as a source."""
    stored, kind_of = {array.name: array for array in arrays}, sources.kind_of
    entries = [Entry(a.name, a.type, a.shape, kind_of(a.dtype)) for a in arrays]
    return sources.source_of_arrays(
        path, given, entries, lambda name, rows: stored[name].pieces(rows)
    )


def open_npz(held: Held) -> Source:
    """Read the headers of a NumPy archive."""
    path = held.path
    with sources.reading(path):
        archive = zipfile.ZipFile(held)
        members = archive.infolist()
        if len(members) > MOST_MEMBERS:
            raise FileError(path, f"has more than {MOST_MEMBERS} members.")
        names = [member.filename for member in members]
        if any(f"{header}.npy" in names for header in SKETCHES):
            merged = "of several sketches calibrant merge makes one"
            raise FileError(
                path, f"is a sketch, which has sums, and this needs the rows; {merged}."
            )
        if len(set(names)) < len(names):
            raise FileError(path, "has two members of the same name.")
        if odd := [name for name in names if not name.endswith(".npy")]:
            odd_ones = sources.quoted(odd)
            raise FileError(path, f"has members that are no arrays: {odd_ones}.")
        arrays = [_member(held, archive, member) for member in members]
    return source_of_stored(path, "npz", arrays)


def _member(held: Held, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Stored:
    name, opener = member.filename.removesuffix(".npy"), partial(archive.open, member)
    with opener() as file:
        stored = _header(held.path, name, file, member.file_size, opener)
    size = max(stored.size, 8 * math.prod(stored.shape))  # a byte becomes a float64
    sources.check_expansion(held.path, repr(sources.shorten(name)), size, held.size)
    return stored


def open_npy(held: tuple[Held, ...]) -> Source:
    """Read the headers of single arrays that belong together, named by their files.

    What all names have in common before the last of ``_-.`` is left out, so that
    ``resnet_logits.npy`` and ``resnet_labels.npy`` are ``logits`` and ``labels``.
    """
    names = without_common_start([one.path.stem for one in held])
    if len(set(names)) < len(names):
        raise FileError(held[0].path, "two of the .npy files have the same name.")
    arrays = []
    for one, name in zip(held, names, strict=True):
        opener = partial(Place, one)
        with sources.reading(one.path), opener() as file:
            arrays.append(_header(one.path, name, file, one.size, opener))
    return source_of_stored(held[0].path, "npy", arrays)


def without_common_start(names: list[str]) -> list[str]:
    """Names without what they share.

    >>> without_common_start(["net_logits", "net_labels"])
    ['logits', 'labels']
    """
    if len(names) < 2:
        return names
    first, last = min(names), max(names)
    same = next((i for i, c in enumerate(first) if c != last[i : i + 1]), len(first))
    cut = max(first.rfind(mark, 0, same) for mark in "_-.") + 1
    return [name[cut:] for name in names]


def _header(
    path: Path, name: str, file: Any, size: int, opener: Callable[[], Any]
) -> Stored:
    """What the header of one array says, held against the size of the file."""
    version = npy.read_magic(file)
    if version not in HEADERS:
        shown = repr(sources.shorten(name))
        raise FileError(path, f"{shown} has the unknown version {version}.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of headers written by Python 2
        shape, fortran, dtype = HEADERS[version](file)
    stored = Stored(path, name, dtype, shape, fortran, file.tell(), opener)
    check_stored(stored, size - stored.start)
    return stored
