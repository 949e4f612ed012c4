"""Open files of any format: which are meant, what they are, who reads them."""

from __future__ import annotations

import glob
import gzip
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from calibrant._base.checks import check_kind, read_names
from calibrant._base.write import digest_of
from calibrant.files._arrow import open_arrow
from calibrant.files._duckdb import open_delimited, open_parquet
from calibrant.files._inspect_archive import open_eval
from calibrant.files._jsonl import open_json, open_jsonl
from calibrant.files._numpy import open_npy, open_npz
from calibrant.files._sources import (
    Block,
    FileError,
    Held,
    Request,
    Source,
    check_expansion,
    check_regular,
    naming,
    optional,
    reading,
)
from calibrant.files._tensors import open_pt, open_safetensors


@dataclass(frozen=True, slots=True)
class Format:
    """A file format: how its files end, who opens them, and how they begin.

    Of a format without `magic` nothing is known but that it begins like no other.
    """

    name: str
    suffixes: tuple[str, ...]
    open: Callable[..., Source]
    magic: tuple[bytes, ...] = ()
    is_text: bool = False
    together: bool = False  # the opener takes all files at once
    by_path: bool = False  # a library opens the file again, by its name
    mark: str = ""  # what is between columns, unless said otherwise


ZIP = (b"PK\x03\x04", b"PK\x05\x06")

READERS = (
    Format("npz", (".npz",), open_npz, ZIP),
    Format("npy", (".npy",), open_npy, (b"\x93NUMPY",), together=True),
    Format("safetensors", (".safetensors",), open_safetensors),
    Format("pt", (".pt", ".pth"), open_pt, (*ZIP, b"\x80\x02")),
    Format("csv", (".csv",), open_delimited, is_text=True, by_path=True, mark=","),
    Format("tsv", (".tsv",), open_delimited, is_text=True, by_path=True, mark="\t"),
    Format("parquet", (".parquet",), open_parquet, (b"PAR1",), by_path=True),
    Format(
        "arrow",
        (".arrow", ".feather"),
        open_arrow,
        (b"ARROW1", b"\xff" * 4),
        by_path=True,
    ),
    Format("jsonl", (".jsonl", ".ndjson"), open_jsonl, is_text=True),
    Format("json", (".json",), open_json, is_text=True),
    Format("eval", (".eval",), open_eval, ZIP),
)
"""All that can be read; a new format is a file of its own and a line here."""

FORMAT_OF = {suffix: reader for reader in READERS for suffix in reader.suffixes}

FOREIGN = {
    **dict.fromkeys(ZIP, "zip"),
    b"\x80\x02": "pickle",
    b"FEA1": "feather version 1",
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstandard",
    b"BZh": "bzip2",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}
"""How other files begin that one meets under our names."""

PICKLES = (".pkl", ".pickle", ".joblib", ".dill")
PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip", ".tar", ".7z")
UNPACKED = (".gz", ".zst")
"""What text may be packed in: it is unpacked into a file of our own."""


def suffix_of(path: Path) -> str:
    """The end of a name that tells its format: that of the text, where it is packed."""
    suffix = path.suffix.lower()
    inner = Path(path.stem).suffix.lower()
    known = suffix in UNPACKED and inner in FORMAT_OF and FORMAT_OF[inner].is_text
    return inner if known else suffix


def format_of_bytes(start: bytes) -> Format:
    """The format of bytes without a name, which begin like this."""
    named = {reader.name: reader for reader in READERS}
    for reader in READERS:
        if reader.magic and start.startswith(reader.magic) and reader.name != "pt":
            return reader
    for magic, what in FOREIGN.items():
        if start.startswith(magic):
            raise FileError("standard input", f"holds {what}; unpack or convert it.")
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{"):
        return named["jsonl"]
    if text.startswith(b"["):
        return named["json"]
    first = text.split(b"\n")[0]
    return named["tsv" if b"\t" in first and b"," not in first else "csv"]


def format_of(path: Path) -> Format:
    """The format of a file, or an error that says what to do instead."""
    suffix = suffix_of(path)
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
        known = ", ".join(FORMAT_OF)
        raise FileError(path, f"has the unknown suffix {suffix!r}; known are {known}.")
    return FORMAT_OF[suffix]


def check_content(held: Held, given: Format) -> None:
    """Refuse an empty file, and one whose first bytes are those of another format."""
    path = held.path
    with reading(path):
        start = held.read(4096)
    if not start:
        raise FileError(path, "is empty.")
    if start.startswith(given.magic):
        return
    ours = {magic: reader.name for reader in READERS for magic in reader.magic}
    for magic, name in (ours | FOREIGN).items():
        if start.startswith(magic):
            what = f"is named {path.suffix} but holds {name}"
            raise FileError(path, f"{what}; rename or convert it.")
    if given.is_text and b"\0" in start:
        raise FileError(path, f"is not text in UTF-8, as a .{given.name} file must be.")
    if given.magic:
        known = f"does not begin as {given.name} files do"
        raise FileError(path, f"{known}; it is damaged.")


Paths: TypeAlias = str | Path | Sequence[str | Path]
"""One path, glob pattern or folder, or several."""


def find_files(paths: Paths) -> tuple[Path, ...]:
    """All files meant by `paths`, each of the same format, in sorted order each."""
    single = isinstance(paths, str | PathLike)
    given: Any = [paths] if single else read_names(paths, "paths")
    for path in given:
        check_kind(path, (str, PathLike), "paths")
    if not given:
        raise FileError("no file", "at least one path is needed.")
    found = [file for path in given for file in files_meant(path)]
    _check_each_once(found)
    formats = {format_of(file).name: file for file in reversed(found)}
    if len(formats) > 1:
        one, other = list(formats.values())[:2]
        what = f"and {other.name} have different formats"
        raise FileError(one, f"{what}; read them one at a time.")
    return tuple(found)


def files_meant(given: str | Path) -> list[Path]:
    """The files that a path, a folder or a pattern means, of whatever formats."""
    path, text = Path(given), str(given)
    if not text or "\0" in text:
        hint = "; is there a comma too many?" if not text else "."
        raise FileError(repr(text), f"is not the name of a file{hint}")
    with reading(path):  # a name may be too long for the system
        if path.is_dir():
            return _shards_of(path)
        if path.exists():
            check_regular(path, path.stat())
            return [path]
    if not glob.has_magic(text):
        raise FileError(path, "there is no such file.")
    matches = [Path(name) for name in sorted(glob.glob(text, recursive=True))]  # noqa: PTH207
    if files := [match for match in matches if match.is_file()]:
        return files
    raise FileError(path, "no file matches this pattern.")


def _check_each_once(files: list[Path]) -> None:
    """Refuse a file that is named twice, in whatever spelling: its rows would be too."""
    seen: dict[tuple[int, int] | Path, Path] = {}
    for file in files:
        with reading(file):
            found = file.stat()
        key = (found.st_dev, found.st_ino) if found.st_ino else file.resolve()
        if (first := seen.setdefault(key, file)) is not file:
            again = f"is the same file as {first}"
            raise FileError(
                file, f"{again}; its rows would count twice, so name it once."
            )


def check_no_copies(files: Sequence[Path]) -> None:
    """Refuse a file of the same bytes as another: its rows would count twice.

    Only files of one size are looked into, and only those that begin alike are read. Arrays
    of one set of rows may be equal.
    """
    if format_of(files[0]).together:
        return
    for of_one_size in _alike(files, lambda file: file.stat().st_size):
        for begun_alike in _alike(of_one_size, _start_of):
            for first, copy, *_ in _alike(begun_alike, digest_of):
                raise FileError(
                    copy,
                    f"is a copy of {first}, so its rows would count twice; "
                    "leave it out, or pass --count-copies to count them again.",
                )


def _alike(files: Iterable[Path], look: Callable[[Path], Hashable]) -> list[list[Path]]:
    """Files in which something is the same, where there is more than one."""
    found: dict[Hashable, list[Path]] = {}
    for file in files:
        with reading(file):
            found.setdefault(look(file), []).append(file)
    return [some for some in found.values() if len(some) > 1]


def _start_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(1 << 16)


MANIFEST = "manifest.json"


def _shards_of(folder: Path) -> list[Path]:
    """Files of a folder that can be read; marks like _SUCCESS and .crc are passed by.

    So is the manifest that `infer` writes beside its shards.
    """
    named = [path for path in sorted(folder.iterdir()) if path.name[0] not in "._"]
    named = [path for path in named if path.name != MANIFEST]
    known = [path for path in named if suffix_of(path) in FORMAT_OF]
    if shards := [path for path in known if path.is_file()]:
        return shards
    raise FileError(folder, f"has no file ending in {', '.join(FORMAT_OF)}.")


def open_all(paths: Paths, mark: str | None = None) -> Generator[Source, None, None]:
    """Open each file when its turn comes, until the next; single arrays belong together.

    `mark` is what text tables have between columns, if not what their suffix says.
    """
    files = find_files(paths)
    reader = format_of(files[0])
    if mark is not None and not reader.mark:
        only = f"is no .csv or .tsv file, so --sep {mark!r} does not apply"
        raise FileError(files[0], f"{only}; leave it out.")
    for some in [files] if reader.together else [(file,) for file in files]:
        with ExitStack() as open_files:
            plain = [open_files.enter_context(_unpacked(file)) for file in some]
            held = tuple(open_files.enter_context(_hold(file)) for file in plain)
            with naming(held[0].path, some[0]):
                for file in held:
                    check_content(file, reader)
                yield _checked(reader, held, some[0], mark)


def _hold(path: Path) -> Held:
    with reading(path):
        return Held(path)


@contextmanager
def _unpacked(path: Path) -> Iterator[Path]:
    """The file itself or, of a packed one, its text in a folder that goes away."""
    if suffix_of(path) == path.suffix.lower():
        yield path
        return
    with TemporaryDirectory(prefix="calibrant-", ignore_cleanup_errors=True) as folder:
        plain = Path(folder, path.stem)
        with reading(path), _packed_text(path) as packed, plain.open("wb") as file:
            most, size = path.stat().st_size, 0
            while piece := packed.read(1 << 20):
                size += file.write(piece)
                check_expansion(path, "it", size, most)
        yield plain


def _packed_text(path: Path) -> Any:
    if path.suffix.lower() == ".gz":
        return gzip.open(path)
    arrow = optional(path, "pyarrow", "pip install 'calibrant[arrow]', or unpack it")
    return arrow.input_stream(str(path), compression="zstd")


def _checked(
    reader: Format, held: tuple[Held, ...], path: Path, mark: str | None
) -> Source:
    """The source; what it gives is held back if a file was changed meanwhile."""

    def check() -> None:
        for file in held:
            with reading(file.path):
                file.check(by_path=reader.by_path)

    def blocks(request: Request) -> Iterator[Block]:
        with naming(held[0].path, path):
            for block in source.blocks(request):
                check()
                yield block

    given: dict[str, Any] = {"mark": mark or reader.mark} if reader.mark else {}
    source = reader.open(held if reader.together else held[0], **given)
    check()
    named = source.path if held[0].path == path else path
    return replace(source, path=named, blocks=blocks, stored=held[0].path)
