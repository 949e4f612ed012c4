"""``calibrant sketch`` and ``calibrant merge``: any number of rows in a few megabytes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from calibrant.cli import _flags as flags

HERE = "Write the sketch here, as .npz."
output_option = flags.path_option("-o", "--output", required=True, help=HERE)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@output_option
@click.option("--resume", is_flag=True, help="Go on with the sketch that is there.")
@flags.target
@flags.role_options
@flags.quiet
@flags.force
@flags.clean_errors
def sketch(
    files: tuple[str, ...],
    output: Path,
    target: str | None,
    *,
    resume: bool,
    quiet: bool,
    force: bool,
    **said: str | None,
) -> None:
    """Add up the rows of FILEs in a sketch, which stands for them from then on.

    It is saved after every file and every 5 million rows; --resume goes on where a run
    was stopped, and counts no row twice.

    \b
    Example:
      calibrant sketch 'shards/*.parquet' --output all.npz
      calibrant report all.npz
    """
    from calibrant._sketch.sketch import Sketch
    from calibrant._verbs.stream import sketch_files

    if not resume:
        flags.refuse_to_replace(output, force=force)
    there = resume and output.exists()
    found = Sketch.load(output) if there else Sketch(target=target)
    with flags.about(*files), flags.steps("sketch", quiet=quiet) as progress:

        def show(rows: int, name: str) -> None:
            progress(0.0, f"{name}: {rows:,} rows")

        def save(made: Sketch) -> None:
            if made.rows:
                made.save(output, force=True)

        roles = flags.roles_of(said)
        sketch_files(units_of(files), roles, found, save=save, progress=show)
    if not found.rows:
        raise ValueError("the files hold no row of positive weight; nothing is left.")
    _say(found, output, quiet=quiet)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="SKETCH...")
@output_option
@flags.quiet
@flags.force
@flags.clean_errors
def merge(files: tuple[str, ...], output: Path, *, quiet: bool, force: bool) -> None:
    """Add up SKETCHes of different rows.

    \b
    Example:
      calibrant merge monday.npz tuesday.npz --output week.npz
    """
    from calibrant._sketch.sketch import Sketch

    flags.refuse_to_replace(output, force=force)
    found = Sketch()
    for file in files:
        found = found + Sketch.load(file)
    found.save(output, force=force)
    _say(found, output, quiet=quiet)


def units_of(files: Iterable[str]) -> list[list[str]]:
    """Sets of rows: every file alone, but arrays that make up one set together."""
    from calibrant.files._open import find_files

    units: list[list[str]] = []
    for file in files:
        paths = flags.paths_of(file)
        if len(paths) > 1:
            units.append(paths)
        else:
            units += [[str(path)] for path in find_files(paths)]
    return units


def _say(sketch: Any, output: Path, *, quiet: bool) -> None:
    if not quiet:
        click.echo(str(sketch))
        click.echo(f"\nsketch: {output}\nread it: calibrant report {output}")
