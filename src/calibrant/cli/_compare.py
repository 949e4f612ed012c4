"""``calibrant compare``: whether a model is really better than another on the same rows."""

from __future__ import annotations

from typing import Any

import click

from calibrant.cli import _flags as flags
from calibrant.cli import _output as out


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE FILE...")
@flags.model_names
@click.option("--baseline", help="Name of the model to compare with. [the first]")
@click.option("--unpaired", is_flag=True, help="The files hold different rows.")
@flags.role_options
@flags.evaluation_options
@flags.as_json
@flags.quiet
@flags.clean_errors
def compare(
    files: tuple[str, ...],
    names: str | None,
    baseline: str | None,
    *,
    unpaired: bool,
    **said: Any,
) -> None:
    """Compare models on the same rows: differences with intervals, in words.

    \b
    Example:
      calibrant compare before.npz after.npz
    """
    from calibrant._verbs.compare import compare as contrast

    if len(files) < 2:
        raise click.UsageError("compare needs two files or more.")
    with flags.steps("compare", quiet=said["quiet"]) as progress:
        models = out.evaluate_files(files, names, said, progress)
        options = {"baseline": baseline, "paired": not unpaired, "level": said["level"]}
        found = contrast(*models, **options)
    out.print_models(found, said, "\n".join(found.sentences))
