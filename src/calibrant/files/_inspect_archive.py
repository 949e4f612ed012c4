"""Archives of Inspect (.eval): a member for each sample, read when its turn comes."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

from calibrant.files import _sources as sources
from calibrant.files._harness_base import as_written_by, need
from calibrant.files._inspect_logs import INSPECT_LOG, NAME, rows_of_samples
from calibrant.files._jsonl import LENIENT, decoded, source_of_records
from calibrant.files._sources import FileError, Held, Numbered, Place, Source

ZSTANDARD = 93
MOST_SAMPLE = 1 << 28
"""Bytes of the largest sample that is read."""


def open_eval(held: Held) -> Source:
    """Read the header of an archive, and find its samples."""
    path = held.path
    with as_written_by(NAME, path, "the archive"):
        archive = zipfile.ZipFile(held)
    members = {member.filename: member for member in archive.infolist()}
    if "header.json" not in members:
        raise FileError(path, "has no header.json: the run of Inspect did not finish.")
    header = _json(held, archive, members["header.json"])
    named = [x for name, x in members.items() if name.startswith("samples/")]

    def read() -> Iterator[Numbered]:
        samples = (_json(held, archive, member) for member in named)
        yield from rows_of_samples(path, header, enumerate(samples, 1))

    return source_of_records(path, INSPECT_LOG.name, read, INSPECT_LOG)


def _json(
    held: Held, archive: zipfile.ZipFile, member: zipfile.ZipInfo
) -> dict[str, Any]:
    path, name = held.path, repr(sources.shorten(member.filename))
    if member.file_size > MOST_SAMPLE:
        raise FileError(path, f"{name} is larger than {MOST_SAMPLE >> 20} MB.")
    with as_written_by(NAME, path, name):
        packed = member.compress_type == ZSTANDARD
        content = _unpacked(held, member) if packed else archive.read(member)
        found = decoded(path, content, name, LENIENT)
        need(isinstance(found, dict), "it is no object")
    return dict(found)


def _unpacked(held: Held, member: zipfile.ZipInfo) -> bytes:
    """A member in Zstandard, which Python cannot unpack before 3.14."""
    way_out = "pip install 'calibrant[arrow]', or inspect log convert --to json"
    arrow = sources.optional(held.path, "pyarrow", way_out)
    file = io.BufferedReader(Place(held, member.header_offset))
    start = file.read(30)
    file.read(sum(int.from_bytes(start[i : i + 2], "little") for i in (26, 28)))
    packed = arrow.py_buffer(file.read(member.compress_size))
    with arrow.input_stream(packed, compression="zstd") as stream:
        content = bytes(stream.read(member.file_size + 1))
    need(zlib.crc32(content) == member.CRC, "the sum of a member is wrong")
    return content
