"""``calibrant inspect``: what is in a file, and how it would be read."""

from __future__ import annotations

import json
from dataclasses import asdict

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
        click.echo(json.dumps(sketch.facts()) if as_json else str(sketch))
        return
    contents = look(paths, flags.roles_of(said))
    click.echo(json.dumps(asdict(contents), default=str) if as_json else str(contents))
