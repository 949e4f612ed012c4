"""``calibrant inspect``: what is in a file, and how it would be read."""

from __future__ import annotations

import click

from calibrant.cli._flags import clean_errors, paths_of, role_options, roles_of


@click.command()
@click.argument("file")
@role_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
@clean_errors
def inspect(file: str, *, as_json: bool, **said: str | None) -> None:
    """Say what is in a FILE and how it would be read.

    \b
    Example:
      calibrant inspect predictions.npz
    """
    import json
    from dataclasses import asdict

    from calibrant.cli._output import sketch_in
    from calibrant.files._inspect import inspect as look

    if (sketch := sketch_in(paths_of(file))) is not None:
        click.echo(json.dumps(sketch.facts()) if as_json else str(sketch))
        return
    contents = look(paths_of(file), roles_of(said))
    click.echo(json.dumps(asdict(contents), default=str) if as_json else str(contents))
