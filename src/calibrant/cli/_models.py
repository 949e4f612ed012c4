"""Commands that read models: ``calibrant report``, ``study``, ``compare``, ``inspect``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from calibrant.cli import _flags as flags
from calibrant.cli import _output as out


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@flags.page
@flags.model_names
@click.option("--title", help="Heading of the report.")
@flags.role_options
@flags.evaluation_options
@out.gate_options
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
    """Evaluate one model per FILE; print the table and write an HTML report.

    \b
    Example:
      calibrant report predictions.npz --output report.html
      calibrant report a.npz b.parquet --fail-if "brier>0.2" --max-ece-upper 0.05
    """
    from calibrant._base.comparison import as_comparison

    gates = out.gates_of(said)
    flags.refuse_to_replace(output, force=force)
    with flags.steps("evaluate", quiet=said["quiet"]) as progress:
        models = out.evaluate_files(files, names, said, progress)
    found = as_comparison(models)
    written = out.write_page(found, output, title=title, force=force)
    out.print_models(found, said, written)
    out.judge(gates, models)


@click.command()
@click.argument("fit", metavar="FILE")
@click.argument("test", metavar="[TEST]", required=False)
@click.option(
    "--split", type=float, help="Share of FILE to fit on, without TEST. [0.2]"
)
@click.option("--folds", type=int, help="Cross-fit FILE in so many folds instead.")
@flags.valued(
    "--methods",
    default="paper",
    help="'paper', 'all', or names with commas, such as temperature,vector.",
)
@flags.page
@flags.role_options
@flags.evaluation_options
@out.gate_options
@flags.output_options
@flags.clean_errors
def study(
    fit: str,
    test: str | None,
    split: float | None,
    folds: int | None,
    methods: str,
    output: Path | None,
    *,
    force: bool,
    **said: Any,
) -> None:
    """Recalibrate in several ways on FILE and evaluate each on TEST.

    Gates apply to the best method by Brier score.

    \b
    Example:
      calibrant study calibration.npz test.npz --output study.html
      calibrant study predictions.npz --folds 5 --methods temperature,vector
    """
    from calibrant._verbs.study import study as run_study

    gates = out.gates_of(said)
    flags.refuse_to_replace(output, force=force)
    arguments = _arguments(fit, test, said)
    chosen = methods if methods in ("paper", "all") else methods.split(",")
    options: dict[str, Any] = {"methods": chosen, "split": split, "folds": folds}
    with flags.steps("study", quiet=said["quiet"]) as progress:
        options |= flags.evaluation_of(said)
        found = run_study(**arguments, **options, progress=progress)
    out.print_models(found, said, out.write_page(found, output, force=force))
    out.judge(gates, [found.best()])


def _arguments(fit: str, test: str | None, said: dict[str, Any]) -> dict[str, Any]:
    """Labels and scores as `calibrant.study` takes them."""
    first = out.read_vectors(fit, flags.roles_of(said), "a study")
    scores, weights = first.scores, first.sample_weight
    given = {"y": first.y, "classes": first.classes}
    if test is not None:
        second = out.read_vectors(test, flags.roles_of(said), "a study")
        if first.kind != second.kind:
            raise ValueError(
                f"{fit} holds {first.kind} and {test} holds {second.kind}."
            )
        if (weights is None) != (second.sample_weight is None):
            raise ValueError("one of the two files has weights and the other has none.")
        given["y_test"], scores = second.y, (scores, second.scores)
        weights = None if weights is None else (weights, second.sample_weight)
    return {**given, first.kind: scores, "sample_weight": weights}


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
    from calibrant.files._inspect import inspect as look

    paths = flags.paths_of(file)
    if (sketch := out.sketch_in(paths)) is not None:
        click.echo(json.dumps(sketch.facts()) if as_json else str(sketch))
        return
    contents = look(paths, flags.roles_of(said))
    click.echo(json.dumps(asdict(contents), default=str) if as_json else str(contents))
