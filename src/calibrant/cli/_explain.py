"""``calibrant explain``: how much of the sharpness gap a better model could remove."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from calibrant.cli import _flags as flags
from calibrant.cli import _output as out
from calibrant.cli._groups import as_evaluated, columns_beside


@click.command()
@click.argument("file", metavar="FILE")
@click.option(
    "--by",
    required=True,
    metavar="NAMES",
    help="Columns of features or embeddings, as 'x_*' or a,b,c.",
)
@flags.valued(
    "--method",
    default="auto",
    type=click.Choice(["auto", "tree", "ridge"]),
    help="How regions of the features are found.",
)
@flags.valued("--regions", default=8, help="Number of regions.")
@flags.page
@flags.target
@flags.valued("--divergence", default="brier", type=flags.SCORES, help="Which score.")
@flags.valued("--level", default=0.95, help="Confidence level of the intervals.")
@flags.valued("--seed", default=0, help="Random seed.")
@flags.roles("group")
@flags.output_options
@flags.clean_errors
def explain(
    file: str,
    by: str,
    output: Path | None,
    *,
    force: bool,
    **said: Any,
) -> None:
    """Split the score: calibration error, grouping loss, rest.

    The grouping loss is what a model lumps together though features tell it apart. It is
    a lower bound, with regions learned on other examples than they are measured on.

    \b
    Example:
      calibrant explain predictions.csv --by 'x_*' --output parts.html
    """
    from calibrant._verbs.grouping_loss import loss_parts

    out.check_outputs(output, reads=[file], force=force)
    out.check_suffix(output, ".html", ".htm")
    names = ("target", "divergence", "level", "method", "regions")
    options = {**{name: said[name] for name in names}, "rng": said["seed"]}
    with flags.about(file), flags.steps("explain", quiet=said["quiet"]):
        roles = flags.roles_of({**said, "group": ""})
        rows = out.read_file(file, roles, quiet=said["quiet"])
        features = columns_beside(file, said, by.split(","), rows.y)
        found = loss_parts(**as_evaluated(rows, options), explain=features)
    written = "" if output is None else f"report: {found.report(output, force=force)}"
    out.print_result(found, written, said)
