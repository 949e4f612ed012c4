"""``calibrant inspect``: what is in a file, and how it would be read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import click

from calibrant.cli import _flags as flags
from calibrant.cli import _output as out
from calibrant.cli._harness import model_in


@click.command()
@click.argument("file")
@flags.role_options
@flags.as_json
@flags.clean_errors
def inspect(file: str, *, as_json: bool, **said: str | None) -> None:
    """Show what is in a FILE and how it would be read.

    \b
    Example:
      calibrant inspect predictions.npz
    """
    from calibrant.files._inspect import inspect as look

    paths = flags.paths_of(
        model_in(file, quiet=False, count_copies=bool(said["count_copies"]))
    )
    if (sketch := out.sketch_in(paths)) is not None:
        out.check_of_sketch(file, flags.roles_of(said))
        click.echo(_strict(sketch.facts()) if as_json else str(sketch))
        return
    contents = look(paths, flags.roles_of(said))
    click.echo(_strict(asdict(contents)) if as_json else str(contents))


def _strict(found: Mapping[str, Any]) -> str:
    """JSON, in which infinite ranges are words."""
    from calibrant._base.records import as_plain

    return json.dumps(as_plain(found), default=str, allow_nan=False)
