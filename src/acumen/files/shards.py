"""Which files are meant: single ones, glob patterns, folders of shards."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from acumen.files.errors import FileError
from acumen.files.formats import FORMAT_OF, format_of

Paths: TypeAlias = str | Path | Sequence[str | Path]
"""One path, glob pattern or folder, or several."""


def find_files(paths: Paths) -> tuple[Path, ...]:
    """All files meant by `paths`, each of the same format, in sorted order each."""
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    if not given:
        raise FileError("no file", "at least one path is needed.")
    found = [file for path in given for file in _expand(path)]
    formats = {format_of(file): file for file in reversed(found)}
    if len(formats) > 1:
        one, other = list(formats.values())[:2]
        raise FileError(
            one, f"and {other.name} have different formats; read them one at a time."
        )
    return tuple(found)


def _expand(given: str | Path) -> list[Path]:
    path, text = Path(given), str(given)
    if "\0" in text:
        raise FileError(text, "is not a file name.")
    try:
        if path.is_dir():
            return _shards_of(path)
        if path.exists():
            return [path]
    except OSError as error:  # a name too long for the system
        raise FileError(path, f"cannot be read: {error.strerror}.") from error
    if not glob.has_magic(text):
        raise FileError(path, "there is no such file.")
    matches = [Path(name) for name in sorted(glob.glob(text, recursive=True))]  # noqa: PTH207
    if files := [match for match in matches if match.is_file()]:
        return files
    raise FileError(path, "no file matches this pattern.")


def _shards_of(folder: Path) -> list[Path]:
    """Files of a folder that can be read; marks like _SUCCESS and .crc are passed by."""
    shards = [
        path
        for path in sorted(folder.iterdir())
        if path.suffix.lower() in FORMAT_OF
        and not path.name.startswith((".", "_"))
        and path.is_file()
    ]
    if not shards:
        raise FileError(folder, f"has no file ending in {', '.join(FORMAT_OF)}.")
    return shards
