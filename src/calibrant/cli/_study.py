"""``calibrant study``: the paper's table for one's own model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from calibrant.cli._flags import (
    clean_errors,
    evaluation_of,
    evaluation_options,
    output_options,
    paths_of,
    refuse_to_replace,
    role_options,
    roles_of,
    steps,
)
from calibrant.cli._output import gate_options, gates_of, judge, print_models


@click.command()
@click.argument("fit", metavar="FILE")
@click.argument("test", metavar="[TEST]", required=False)
@click.option(
    "--split", type=float, help="Share of FILE to fit on, without TEST. [0.2]"
)
@click.option("--folds", type=int, help="Cross-fit FILE in so many folds instead.")
@click.option(
    "--methods",
    default="paper",
    show_default=True,
    help="'paper', 'all', or names with commas, such as temperature,vector.",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write an HTML report here."
)
@role_options
@evaluation_options
@gate_options
@output_options
@clean_errors
def study(
    fit: str,
    test: str | None,
    split: float | None,
    folds: int | None,
    methods: str,
    output: Path | None,
    conditions: tuple[str, ...],
    max_ece_upper: float | None,
    *,
    as_json: bool,
    quiet: bool,
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

    gates = gates_of(conditions, max_ece_upper)
    refuse_to_replace(output, force=force)
    arguments = _arguments(fit, test, said)
    chosen = methods if methods in ("paper", "all") else methods.split(",")
    with steps("study", quiet=quiet) as progress:
        found = run_study(
            **arguments,
            methods=chosen,
            split=split,
            folds=folds,
            progress=progress,
            **evaluation_of(said),
        )
    if output is not None:
        from calibrant.report._report import report as write_report

        write_report(found, output, force=force)
    print_models(found, as_json=as_json, quiet=quiet, written=output)
    judge(gates, [found.best()])


def _arguments(fit: str, test: str | None, said: dict[str, Any]) -> dict[str, Any]:
    """Labels and scores as `calibrant.study` takes them."""
    first = _read(fit, said)
    if test is None:
        return {
            "y": first.y,
            first.kind: first.scores,
            "sample_weight": first.sample_weight,
            "classes": first.classes,
        }
    second = _read(test, said)
    if first.kind != second.kind:
        raise ValueError(f"{fit} holds {first.kind} and {test} holds {second.kind}.")
    weights = (first.sample_weight, second.sample_weight)
    if (weights[0] is None) != (weights[1] is None):
        raise ValueError("one of the two files has weights and the other has none.")
    return {
        "y": first.y,
        "y_test": second.y,
        first.kind: (first.scores, second.scores),
        "sample_weight": None if weights[0] is None else weights,
        "classes": first.classes,
    }


def _read(file: str, said: dict[str, Any]) -> Any:
    from calibrant.files._read import read

    found = read(paths_of(file), roles_of(said))
    if found.pairs:
        raise ValueError(
            f"{file} holds confidences of one class only; a study needs logits or "
            "probabilities of all classes."
        )
    return found
