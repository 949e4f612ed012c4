"""``calibrant report``: files of predictions in, numbers and a page out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from calibrant.cli._flags import (
    clean_errors,
    evaluation_of,
    evaluation_options,
    names_of,
    output_options,
    refuse_to_replace,
    role_options,
    steps,
)
from calibrant.cli._output import (
    evaluate_file,
    gate_options,
    gates_of,
    judge,
    print_models,
)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write an HTML report here."
)
@click.option("--names", help="Names of the models, with commas; else the files'.")
@click.option("--title", help="Heading of the report.")
@role_options
@evaluation_options
@gate_options
@output_options
@clean_errors
def report(
    files: tuple[str, ...],
    output: Path | None,
    names: str | None,
    title: str | None,
    conditions: tuple[str, ...],
    max_ece_upper: float | None,
    *,
    as_json: bool,
    quiet: bool,
    force: bool,
    **said: Any,
) -> None:
    """Evaluate one model per FILE; print the table and write an HTML report.

    \b
    Example:
      calibrant report predictions.npz --output report.html
      calibrant report a.npz b.parquet --fail-if "brier>0.2" --max-ece-upper 0.05
    """
    from calibrant._base.comparison import as_comparison

    gates = gates_of(conditions, max_ece_upper)
    refuse_to_replace(output, force=force)
    called = names_of(files, names)
    models: list[Any] = []
    with steps("evaluate", quiet=quiet) as progress:
        for number, (file, name) in enumerate(zip(files, called, strict=True)):
            share = progress.part(number, len(files))
            models.append(evaluate_file(file, said, evaluation_of(said), name, share))
    found = as_comparison(models)
    if output is not None:
        from calibrant.report._report import report as write_report

        write_report(found, output, title=title, force=force)
    print_models(found, as_json=as_json, quiet=quiet, written=output)
    judge(gates, models)
