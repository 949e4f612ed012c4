"""``calibrant study``: the paper's table for one's own model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from calibrant.cli import _flags as flags
from calibrant.cli import _output as out


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
