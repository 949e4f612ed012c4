"""A database for one file: it reads the file's folder, and writes to one of its own.

It is in memory, loads no extension, reaches no network and keeps to a third of a
gigabyte. Whatever goes into SQL is quoted here.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from acumen.files.errors import reading

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MEMORY, THREADS = "320MB", "1"
"""Threads would add memory, not speed: the rows are reduced on every core anyway."""


@contextmanager
def database(path: Path) -> Iterator[tuple[DuckDBPyConnection, Path]]:
    """A database that can read one folder, and a folder of its own to write to."""
    import duckdb

    with (
        reading(path),
        tempfile.TemporaryDirectory(
            prefix="acumen-", ignore_cleanup_errors=True
        ) as own,
    ):
        settings: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
            "preserve_insertion_order": "true",
            "memory_limit": MEMORY,
            "threads": THREADS,
            "temp_directory": own,
        }
        connection = duckdb.connect(":memory:", config=settings)
        try:
            folders = [text(f"{path.resolve().parent}/"), text(f"{own}/")]
            connection.execute(f"SET allowed_directories = [{', '.join(folders)}]")
            connection.execute("SET disable_parquet_prefetching = true")
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            yield connection, Path(own)
        finally:
            connection.close()


def text(value: str) -> str:
    """Text as SQL.

    Examples
    --------
    >>> text("it's; DROP TABLE x")
    "'it''s; DROP TABLE x'"
    """
    return "'" + value.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A name as SQL.

    Examples
    --------
    >>> identifier('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def file_name(path: Path) -> str:
    """A path as SQL; marks of a glob pattern stand for themselves."""
    return text(re.sub(r"([\[*?])", r"[\1]", str(path.resolve())))
