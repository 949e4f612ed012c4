"""Files that exist whole or not at all: write beside them, then rename."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np


def write_text(path: Path, text: str, *, force: bool = True) -> None:
    """Write text to a file, replacing it only once everything is on the disk."""
    write_bytes(path, text.encode("utf-8"), force=force)


def write_bytes(path: Path, content: bytes, *, force: bool = True) -> None:
    """Write bytes to a file, replacing it only once everything is on the disk."""
    with whole_file(path, force=force) as file:
        file.write(content)


def write_npz(path: Path, arrays: Mapping[str, Any], *, force: bool = True) -> None:
    """Write named arrays of numbers or text; equal arrays give equal bytes."""
    plain = {name: _without_objects(name, array) for name, array in arrays.items()}
    with whole_file(path, force=force) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in plain.items():
            # A ZipInfo of its own has no clock time in it.
            member = zipfile.ZipInfo(f"{name}.npy")
            with archive.open(member, "w", force_zip64=True) as part:
                np.lib.format.write_array(part, array, allow_pickle=False)


def _without_objects(name: str, array: Any) -> Any:
    """The array as numbers or text: what only pickle could hold is refused."""
    array = np.asarray(array)
    if array.dtype != object:
        return array
    if all(isinstance(value, str) for value in array.flat):
        return array.astype(str)
    raise TypeError(
        f"{name} holds Python objects; only numbers and text can be written. Convert it "
        "first, for example with .astype(float)."
    )


@contextmanager
def whole_file(path: Path, *, force: bool = True) -> Iterator[IO[bytes]]:
    """Open a new file beside `path` that takes its place when all went well.

    The folder must exist. With `force` a file that is already there is replaced; else it
    is an error, also if it appears while this one is being written.
    """
    if not (folder := path.parent).is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {folder}.")
    if path.exists() and not force:
        raise _exists(path)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(_mode(path))
        _put(Path(name), path, force=force)
    finally:
        Path(name).unlink(missing_ok=True)


def _put(written: Path, path: Path, *, force: bool) -> None:
    """Rename, or link, which fails where a rename would replace."""
    if force:
        written.replace(path)
        return
    try:
        path.hardlink_to(written)
    except FileExistsError:
        raise _exists(path) from None
    except OSError:  # a file system without links: look once more, then rename
        if path.exists():
            raise _exists(path) from None
        written.replace(path)


def _exists(path: Path) -> FileExistsError:
    return FileExistsError(f"{path} exists; pass force=True (--force) to replace it.")


def _mode(path: Path) -> int:
    """Permissions of the file to be replaced, or of a new one."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
