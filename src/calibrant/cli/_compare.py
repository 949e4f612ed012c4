"""``calibrant compare``: whether a model is really better than another on the same rows."""

from __future__ import annotations

from typing import Any

import click

from calibrant.cli._flags import (
    clean_errors,
    evaluation_of,
    evaluation_options,
    names_of,
    role_options,
    steps,
)
from calibrant.cli._output import evaluate_file, print_models


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE FILE...")
@click.option("--names", help="Names of the models, with commas; else the files'.")
@click.option("--baseline", help="Name of the model to compare with. [the first]")
@click.option("--unpaired", is_flag=True, help="The files hold different rows.")
@role_options
@evaluation_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
@clean_errors
def compare(
    files: tuple[str, ...],
    names: str | None,
    baseline: str | None,
    *,
    unpaired: bool,
    as_json: bool,
    quiet: bool,
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
    called = names_of(files, names)
    options = evaluation_of(said)
    with steps("compare", quiet=quiet) as progress:
        models = [
            evaluate_file(file, said, options, name, progress.part(number, len(files)))
            for number, (file, name) in enumerate(zip(files, called, strict=True))
        ]
        found = contrast(
            *models, baseline=baseline, paired=not unpaired, level=options["level"]
        )
    words = "\n".join(found.sentences)
    print_models(found, as_json=as_json, quiet=quiet, more=words)
