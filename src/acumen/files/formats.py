"""Which format a file has: said by its suffix, checked against its first bytes."""

from __future__ import annotations

from pathlib import Path

from acumen.files.errors import FileError

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
    acumen.files.errors.FileError: model.pkl: pickle files are never opened, ...
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
