"""``calibrant report``: files of predictions in, numbers and a page out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from calibrant.cli import _flags as flags
from calibrant.cli import _output as out
from calibrant.cli._compare import InOneOrder
from calibrant.cli._harness import models_in


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@flags.page
@flags.model_names
@click.option("--title", help="Heading of the report.")
@flags.role_options
@flags.evaluation_options
@out.gate_options("a model or a group")
@flags.output_options
@flags.clean_errors
def report(
    files: tuple[str, ...],
    output: Path | None,
    names: str | None,
    title: str | None,
    *,
    force: bool,
    **said: Any,
) -> None:
    """Evaluate one model per FILE; print a table, write a page.

    Several models in one file are told by their columns: --probs a --probs b. Files that a
    harness for language models wrote for one model are one model, each task a group of it.
    The page pairs examples as compare does: by their ids, if all files have the same.

    \b
    Example:
      calibrant report predictions.npz --output report.html
      calibrant report a.npz b.parquet --fail-if "brier > 0.2" --max-ece-upper 5%
      calibrant report out/*/samples_*.jsonl --output page.html
    """
    from calibrant._base.comparison import as_comparison

    gates = out.gates_of(said)
    files = tuple(models_in(files, **flags.said_of_files(said)))
    out.check_outputs(output, reads=files, force=force)
    out.check_suffix(output, ".html", ".htm")
    out.check_title(title, output)
    out.check_coverage_known(gates, files)
    named = flags.models_of(files, names, said)
    order = InOneOrder(quiet=said["quiet"])
    with flags.steps("evaluate", quiet=said["quiet"]) as progress:
        with_id = len(named) > 1
        models = out.evaluate_models(named, progress, order, with_id=with_id)
    found = as_comparison(models)
    verdicts = out.judge(gates, models)
    written = out.write_page(found, output, verdicts, title=title, force=force)
    out.print_models(found, said, written, **out.failed(verdicts))
    out.trip(verdicts)
