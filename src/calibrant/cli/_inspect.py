"""``calibrant inspect``: what is in a file, and how it would be read."""

from __future__ import annotations

import click

from calibrant.cli import _flags as flags
from calibrant.cli._output import sketch_in


@click.command()
@click.argument("file")
@flags.role_options
@flags.as_json
@flags.clean_errors
def inspect(file: str, *, as_json: bool, **said: str | None) -> None:
    """Say what is in a FILE and how it would be read.

    \b
    Example:
      calibrant inspect predictions.npz
    """
    import json
    from dataclasses import asdict

    from calibrant.files._inspect import inspect as look

    paths = flags.paths_of(file)
    if (sketch := sketch_in(paths)) is not None:
        click.echo(json.dumps(sketch.facts()) if as_json else str(sketch))
        return
    contents = look(paths, flags.roles_of(said))
    click.echo(json.dumps(asdict(contents), default=str) if as_json else str(contents))
