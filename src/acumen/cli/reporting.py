"""``acumen report``: files of predictions in, numbers and a page out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from acumen.cli.gates import gate_options, gates_of, judge
from acumen.cli.loading import evaluate_file
from acumen.cli.options import (
    clean_errors,
    evaluation_of,
    evaluation_options,
    names_of,
    output_options,
    refuse_to_replace,
    role_options,
    steps,
)
from acumen.cli.printing import print_models


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
      acumen report predictions.npz --output report.html
      acumen report a.npz b.parquet --fail-if "brier>0.2" --max-ece-upper 0.05
    """
    from acumen.comparison import as_comparison

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
        from acumen.report import report as write_report

        write_report(found, output, title=title, force=force)
    print_models(found, as_json=as_json, quiet=quiet, written=output)
    judge(gates, models)
