"""Files that exist whole or not at all, held by one process at a time, known by digest."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

import numpy as np

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

OURS = ".calibrant-"
LEFT = re.compile(r"\.calibrant-\w+\.(tmp|lock)")
"""Files of a run: short, so that any legal name of an output works; locked while in use."""

SKETCHES = ("calibrant_sketch", "acumen_sketch")
"""Arrays by which a file is known as a sketch; until 0.1.0 the project was called acumen."""


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

    The folder must exist. Links are followed: what they lead to is replaced, with its
    permissions and, where the system allows, its owner. With `force` a file that is
    already there is replaced; else it is an error, also if it appears while this one is
    being written.
    """
    with _writing(path):
        target = target_of(path, force=force)
        sweep(target.parent)
        handle, name = _temporary(target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                _make_like(target, Path(name))
                os.fsync(handle)
                if sys.platform == "win32":
                    file.close()  # an open file has to keep its name there
                _put(Path(name), target, force=force)
        finally:
            Path(name).unlink(missing_ok=True)
        _sync(target.parent)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Name the file in errors of the system, which know a number or a temporary name."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # one of ours, which says it all
            raise
        reason = error.strerror or str(error)
        raise type(error)(f"cannot write {path}: {reason}.") from error


def target_of(path: Path, *, force: bool = True) -> Path:
    """The file that writing to `path` makes or replaces; all but a regular one is refused."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        folder = path.parent if not path.is_symlink() else target.parent
        raise FileNotFoundError(f"cannot write {path}: there is no folder {folder}.")
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        return target
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        shown = f"{path.name[:40]}…"
        raise OSError(f"cannot write {shown}: its name is too long.") from error
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(
            f"cannot write {path}: it is a folder; name a file in it."
        )
    if not stat.S_ISREG(mode):
        raise OSError(
            f"cannot write {path}: it is a device, a pipe or the like, and only regular "
            "files are replaced; name another file."
        )
    if not force:
        raise _exists(path)
    return target


def _exists(path: Path) -> FileExistsError:
    return FileExistsError(f"{path} exists; pass force=True to replace it.")


def _make_like(target: Path, written: Path) -> None:
    """Give a file the permissions and owner of the one it replaces, or those of a new one."""
    try:
        old, new = target.stat(), written.stat()
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        written.chmod(0o666 & ~mask)
        return
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
        _give(written, old.st_uid, old.st_gid)
    shutil.copystat(target, written)
    os.utime(written)


def _give(path: Path, user: int, group: int) -> None:
    """Change the owner, or the group at least, which others than root may do at times."""
    for owner in (user, -1):
        with suppress(PermissionError):
            os.chown(path, owner, group)
            return


def _put(written: Path, target: Path, *, force: bool) -> None:
    """Rename, or link, which fails where a rename would replace."""
    if force:
        written.replace(target)
        return
    try:
        target.hardlink_to(written)
    except FileExistsError:
        raise _exists(target) from None
    except OSError:  # a file system without links: look once more, then rename
        if target.exists():
            raise _exists(target) from None
        written.replace(target)


def _sync(folder: Path) -> None:
    """Have the new name on the disk too, where a folder can be opened and synced."""
    if sys.platform == "win32":
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EINVAL, errno.ENOTSUP):
            raise


# -- one process at a time, and what a killed one leaves -------------------------------


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a file against other processes that do the same; the system ends it in a crash.

    Where the file system knows no locks, there is none.
    """
    with _writing(path):
        target = target_of(path)
        key = hashlib.sha256(os.fsencode(os.path.normcase(target.name))).hexdigest()
        lock = target.parent / f"{OURS}{key[:16]}.lock"
        handle = _hold(lock, path)
    try:
        yield
    finally:
        _let_go(lock, handle)


def _hold(lock: Path, path: Path) -> int:
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | NEVER_FOLLOW, 0o666)
        try:
            _lock(handle)
        except BlockingIOError:
            os.close(handle)
            raise BlockingIOError(
                f"another process is writing {path}; wait until it has ended, or write to "
                "another file."
            ) from None
        except OSError:
            return handle
        if _is_at(handle, lock):
            return handle
        os.close(handle)  # who held it took it away


def _let_go(path: Path, handle: int) -> None:
    """Remove a file that is locked; Windows has to close it first."""
    if sys.platform == "win32":
        os.close(handle)
        with suppress(OSError):  # the next one has it open
            path.unlink()
        return
    try:
        path.unlink(missing_ok=True)
    finally:
        os.close(handle)


def _temporary(folder: Path) -> tuple[int, str]:
    """A new file, locked while it is open, so that nobody takes it for a left one."""
    while True:
        handle, name = tempfile.mkstemp(prefix=OURS, suffix=".tmp", dir=folder)
        try:
            _lock(handle)
        except BlockingIOError:  # somebody sweeps, and was faster
            os.close(handle)
            continue
        except OSError:  # no locks here, so nobody sweeps either
            return handle, name
        if _is_at(handle, Path(name)):
            return handle, name
        os.close(handle)


@cache
def sweep(folder: Path) -> None:
    """Remove, once in a process, what runs that were killed left in a folder."""
    with suppress(OSError):
        for entry in folder.iterdir():
            if LEFT.fullmatch(entry.name):
                _remove_left(entry)


def _remove_left(path: Path) -> None:
    """Remove a file unless somebody holds it, or may hold it for all that we can see."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDWR | NEVER_FOLLOW)
        try:
            _lock(handle)
        except OSError:
            os.close(handle)
            return
        _let_go(path, handle)


NEVER_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""Neither a link nor a pipe of such a name leads us astray."""


def _lock(handle: int) -> None:
    """Lock an open file, at once or not at all (BlockingIOError)."""
    if sys.platform == "win32":
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError from error
    else:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_at(handle: int, path: Path) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


# -- which file, and which content -----------------------------------------------------

Stamp = tuple[int, int, int, int]


def stamp_of(path: str | Path) -> Stamp | None:
    """Which file there is and when it last changed, as the system tells; None if none."""
    try:
        found = Path(path).stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def digest_of(path: str | Path) -> str:
    """SHA-256 of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
