"""``calibrant study``: the paper's table for your own model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant._base.checks import one_line
from calibrant.cli import _flags as flags
from calibrant.cli import _output as out
from calibrant.cli._harness import model_in

if TYPE_CHECKING:
    from calibrant._base.comparison import Comparison
    from calibrant._base.evaluation import Evaluation


@click.command()
@click.argument("fit", metavar="FILE")
@click.argument("test", metavar="[TEST]", required=False)
@click.option(
    "--split",
    type=float,
    help="Without TEST: fraction of FILE to fit on; the rest is tested on. [default: 0.2]",
)
@click.option(
    "--folds", type=int, help="Without TEST: number of folds for cross-fitting."
)
@click.option(
    "--methods",
    help="'paper', 'all', or names separated by commas, such as temperature,vector. "
    "[default: paper, and platt where one event is forecast]",
)
@flags.page
@flags.roles("group")
@flags.evaluation_options
@out.gate_options("the method with the best Brier score")
@flags.output_options
@flags.clean_errors
def study(
    fit: str,
    test: str | None,
    split: float | None,
    folds: int | None,
    methods: str | None,
    output: Path | None,
    *,
    force: bool,
    **said: Any,
) -> None:
    """Fit recalibration methods on FILE, evaluate each on TEST.

    Conditions of --fail-if apply to the method with the best Brier score, other than one
    that gives (nearly) every example the same confidence.

    \b
    Example:
      calibrant study calibration.npz test.npz --output study.html
      calibrant study predictions.npz --folds 5 --methods temperature,vector
      calibrant study out/model --folds 5 --methods temperature
    """
    from calibrant._verbs.study import study as run_study

    gates = out.gates_of(said)
    looking = flags.said_of_files(said)
    fit, test = model_in(fit, **looking), test and model_in(test, **looking)
    if test is not None and not said["count_copies"]:
        _check_no_copy(fit, test)
    out.check_outputs(output, reads=(fit, test), force=force)
    out.check_suffix(output, ".html", ".htm")
    arguments = _arguments(fit, test, said)
    left_out = float(arguments.pop("left_out"))
    groups = None, "paper", "all"
    chosen = methods if methods is None or methods in groups else methods.split(",")
    options: dict[str, Any] = {"methods": chosen, "split": split, "folds": folds}
    if test is not None and not said["count_copies"]:
        _check_other_examples(fit, test, arguments)
    with flags.steps("study", quiet=said["quiet"]) as progress:
        options |= flags.evaluation_of(said)
        options |= {"target": arguments.pop("target", options["target"])}
        with flags.about(fit, test):
            found = run_study(**arguments, **options, progress=progress)
    if left_out and (test or folds):
        parts = (replace(ev, left_out=left_out) for ev in found)
        found = replace(found, evaluations=tuple(parts))
    gated = [_best_of_use(found)] if gates else []
    verdicts = out.judge(gates, gated)
    written = out.write_page(found, output, verdicts, force=force)
    about = [f"Conditions are tested on {one_line(best.name)}." for best in gated]
    more = "\n".join(filter(None, [*about, written]))
    out.print_models(found, said, more, **out.failed(verdicts))
    out.trip(verdicts)


def _check_no_copy(fit: str, test: str) -> None:
    """Refuse to test on the file that is fitted on, if under another name."""
    from calibrant._base.write import digest_of

    pair = [Path(x) for x in (fit, test)]
    if all(path.is_file() for path in pair) and len({*map(digest_of, pair)}) == 1:
        raise ValueError(
            f"{test} holds the same bytes as {fit}: methods would be tested on the examples "
            "they were fitted on. Leave it out and pass --folds 5, or pass --count-copies."
        )


def _check_other_examples(fit: str, test: str, given: dict[str, Any]) -> None:
    """Refuse to test on the examples that are fitted on, as of two models."""
    from calibrant._verbs.study import same_labels

    if same_labels(given["y"], given["y_test"]):
        raise ValueError(
            f"{fit} and {test} have the same labels, row by row, so methods would be tested on "
            f"the examples they were fitted on. To compare two models call calibrant compare "
            f"{fit} {test}; to recalibrate one pass --folds 5 in place of TEST. If these are "
            "different examples, pass --count-copies."
        )


def _best_of_use(found: Comparison) -> Evaluation:
    """The best by Brier score; a constant is no method that one would use."""
    from calibrant._base.measures import is_trivial

    useful = [ev for ev in found if not is_trivial(ev)]
    return min(useful or found, key=lambda ev: float(ev.metrics["brier"]))


def _arguments(fit: str, test: str | None, said: dict[str, Any]) -> dict[str, Any]:
    """Labels and scores as `calibrant.study` takes them."""
    quiet, roles = said["quiet"], flags.roles_of(said, group="")
    files = [fit] if test is None else [fit, test]
    with out.sharing_scale([roles] * len(files)) as each:
        both = zip(files, each, strict=True)
        first, *more = [out.read_file(*one, quiet=quiet) for one in both]
    given = {"y": first.y, "classes": first.classes}
    if said["target"] is None:
        given["target"] = first.target(None)
    if test is None:
        given["left_out"] = first.silent
        return {**given, first.kind: first.scores, **_of_rows(first)}
    (second,) = more
    if first.kind != second.kind:
        raise ValueError(f"{fit} holds {first.kind} and {test} holds {second.kind}.")
    mine, theirs = _of_rows(first), _of_rows(second)
    for what, word in OF_ROWS.items():
        if (what in mine) != (what in theirs):
            has, lacks = (fit, test) if what in mine else (test, fit)
            raise ValueError(f"{has} has {word}, and {lacks} has none.")
    pairs = {what: (column, theirs[what]) for what, column in mine.items()}
    scores = first.scores, second.scores
    given["left_out"] = second.silent
    return {**given, "y_test": second.y, first.kind: scores, **pairs}


OF_ROWS = {
    "sample_weight": "sample weights",
    "frequency": "frequencies",
    "cluster": "clusters",
}


def _of_rows(found: Any) -> dict[str, Any]:
    """What the file holds of weights, counts and clusters."""
    given = {what: getattr(found, what) for what in OF_ROWS}
    return {what: column for what, column in given.items() if column is not None}
