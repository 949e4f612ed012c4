"""Open files of any format: which are meant, what they are, who reads them."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from calibrant.files._arrow import open_arrow
from calibrant.files._duckdb import open_delimited, open_parquet
from calibrant.files._jsonl import open_jsonl
from calibrant.files._numpy import open_npy, open_npz
from calibrant.files._sources import FileError, Source, reading
from calibrant.files._tensors import open_pt, open_safetensors

# ----------------------------------------------------------------------------
# Which format a file has: said by its suffix, checked against its first bytes.


FORMAT_OF = {
    ".npz": "npz",
    ".npy": "npy",
    ".safetensors": "safetensors",
    ".pt": "pt",
    ".pth": "pt",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}

PICKLES = (".pkl", ".pickle", ".joblib", ".dill")
PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip", ".tar", ".7z")

MAGIC = {
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    b"\x93NUMPY": "npy",
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",  # the stream form has a marker instead of a name
    b"FEA1": "feather version 1",
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstandard",
    b"BZh": "bzip2",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}

EXPECTED = {
    "npz": ("zip",),
    "npy": ("npy",),
    "pt": ("zip", ""),
    "parquet": ("parquet",),
    "arrow": ("arrow",),
}
"""What the first bytes must be; the formats not named have no such bytes."""


def format_of(path: Path) -> str:
    """The format of a file, or an error that says what to do instead.

    Examples
    --------
    >>> format_of(Path("model.pkl"))
    Traceback (most recent call last):
    calibrant.files._sources.FileError: model.pkl: pickle files are never opened, ...
    """
    suffix = path.suffix.lower()
    if suffix in PICKLES:
        raise FileError(
            path,
            "pickle files are never opened, for reading one can run any code. Load it "
            "where you trust it and save the arrays: numpy.savez('predictions.npz', "
            "logits=..., labels=...).",
        )
    if suffix in PACKED:
        raise FileError(path, f"is packed ({suffix}); unpack it first.")
    if suffix not in FORMAT_OF:
        raise FileError(
            path,
            f"has the unknown suffix {suffix!r}; known are {', '.join(FORMAT_OF)}.",
        )
    return FORMAT_OF[suffix]


def check_content(path: Path, given: str) -> None:
    """Refuse an empty file, and one whose first bytes are those of another format."""
    with path.open("rb") as file:
        start = file.read(4096)
    if not start:
        raise FileError(path, "is empty.")
    found = next((name for magic, name in MAGIC.items() if start.startswith(magic)), "")
    if found in EXPECTED.get(given, ("",)):
        if given in ("csv", "tsv", "jsonl") and b"\0" in start:
            raise FileError(path, f"is not text in UTF-8, as a .{given} file must be.")
        return
    if found:
        raise FileError(
            path, f"is named {path.suffix} but holds {found}; rename or convert it."
        )
    raise FileError(path, f"does not begin as {given} files do; it is damaged.")


# ----------------------------------------------------------------------------
# Which files are meant: single ones, glob patterns, folders of shards.


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


# ----------------------------------------------------------------------------
# Open files of any format: the one place that knows all readers.


READERS: dict[str, Callable[[Path], Source]] = {
    "npz": open_npz,
    "safetensors": open_safetensors,
    "pt": open_pt,
    "csv": partial(open_delimited, mark=","),
    "tsv": partial(open_delimited, mark="\t"),
    "parquet": open_parquet,
    "arrow": open_arrow,
    "jsonl": open_jsonl,
}


def open_all(paths: Paths) -> Iterator[Source]:
    """Open each file when its turn comes; single arrays belong together."""
    files = find_files(paths)
    given = format_of(files[0])
    for file in files:
        with reading(file):
            check_content(file, given)
        if given != "npy":
            yield READERS[given](file)
    if given == "npy":
        yield open_npy(files)
