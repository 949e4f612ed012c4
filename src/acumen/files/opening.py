"""Open files of any format: the one place that knows all readers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from acumen.files.arrays import open_npy, open_npz
from acumen.files.arrow import open_arrow
from acumen.files.delimited import open_delimited
from acumen.files.errors import reading
from acumen.files.formats import check_content, format_of
from acumen.files.json_lines import open_jsonl
from acumen.files.parquet import open_parquet
from acumen.files.shards import Paths, find_files
from acumen.files.sources import Source
from acumen.files.tensors import open_pt, open_safetensors

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
