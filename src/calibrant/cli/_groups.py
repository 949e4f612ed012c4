"""``calibrant groups``: one model on groups of examples, given or found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from calibrant._base.checks import one_line
from calibrant.cli import _flags as flags
from calibrant.cli import _output as out
from calibrant.cli._harness import model_in
from calibrant.files._sources import quoted


@click.command()
@click.argument("file", metavar="FILE")
@click.option(
    "--slices",
    metavar="NAMES",
    help="Find groups in these columns, as 'x_*' or a,b,c; each is measured on examples "
    "that had no part in finding it.",
)
@flags.valued("--most", default=4, help="Number of slices to find at most.")
@click.option("--baseline", help="Group to compare with. [default: the largest]")
@flags.page
@click.option("--name", "called", help="Name of the model. [default: the file name]")
@flags.role_options
@flags.evaluation_options
@out.gate_options("a group")
@flags.output_options
@flags.clean_errors
def groups(
    file: str,
    slices: str | None,
    most: int,
    baseline: str | None,
    output: Path | None,
    called: str | None,
    *,
    force: bool,
    **said: Any,
) -> None:
    """Compare groups of examples: sizes, differences, the worst, a test of equality.

    Groups are the values of --group, or slices found in the columns of --slices.
    Conditions of --fail-if apply to every group.

    \b
    Example:
      calibrant groups predictions.csv --group region --fail-if 'ece.upper > 5%'
      calibrant groups predictions.csv --slices age,sex --output groups.html
    """
    _check_of_kind(slices, baseline, said)
    gates = out.gates_of(said)
    file = model_in(file, **flags.said_of_files(said))
    out.check_outputs(output, reads=[file], force=force)
    out.check_suffix(output, ".html", ".htm")
    out.check_coverage_known(gates, [file])
    called = called or flags.names_of([file], None)[0]
    options = {**flags.evaluation_of(said), "name": called}
    lost: list[str] = []
    with flags.about(file), flags.steps("groups", quiet=said["quiet"]):
        if slices is None:
            found, lost = _compared(file, said, {**options, "baseline": baseline})
        else:
            found = _sliced(file, said, {**options, "slices": most}, slices.split(","))
    verdicts = [*out.judge(gates, found), *out.judge_left_out(gates, lost)]
    written = out.write_page(
        found, output, verdicts, title=f"Groups: {called}", force=force
    )
    out.print_result(found, written, said, **out.failed(verdicts))
    out.trip(verdicts)


def _check_of_kind(
    slices: str | None, baseline: str | None, said: dict[str, Any]
) -> None:
    """Refuse what is of groups that are given where they are found, and the other way round."""
    if slices is None:
        if flags.is_said("most"):
            told = "--most is how many slices to find; say in which columns: --slices"
            raise click.UsageError(f"{told} NAMES.")
        return
    if said["group"]:
        told = "--group names the groups, and --slices finds them; give one of the two"
        raise click.UsageError(f"{told}.")
    if baseline is not None:
        told = "--baseline is one of the groups of --group; leave it out with --slices"
        raise click.UsageError(f"{told}.")


def _compared(
    file: str, said: dict[str, Any], options: dict[str, Any]
) -> tuple[Any, list[str]]:
    """The groups, and the names of those of which no example is left."""
    from calibrant._verbs.compare_groups import compare_groups

    paths = flags.paths_of(file)
    if (sketch := out.sketch_in(paths)) is not None:
        _check_sketch(file, sketch, said)
        del options["target"]
        return compare_groups(sketch, **options), []
    rows = out.read_file(file, flags.roles_of(said), quiet=said["quiet"])
    found = compare_groups(**as_evaluated(rows, options), group=rows.group)
    if (lost := out.groups_left_out(found, rows)) and not said["quiet"]:
        told = f"all examples of {quoted(lost, most=3)} were left out, so no line is of them"
        click.echo(f"note: {one_line(f'{file}: {told}')}", err=True)
    return out.groups_with_left_out(found, rows), lost


def _check_sketch(file: str, sketch: Any, said: dict[str, Any]) -> None:
    """Refuse a sketch without groups, and what is to be said when one is made."""
    group, there = said["group"], [*sketch.groups]
    if group or len(there) < 2:
        has = f"made with groups ({quoted(there)})" if there else "made without groups"
        drop = "drop --group, or " if len(there) > 1 else ""
        way = f"calibrant sketch FILE --group {group or 'NAME'} --output groups.npz"
        others = "with others" if there else "with them"
        raise ValueError(f"{file} is a sketch {has}; {drop}make one {others}: {way}")
    out.check_of_sketch(file, flags.roles_of(said))


def _sliced(
    file: str, said: dict[str, Any], options: dict[str, Any], wanted: list[str]
) -> Any:
    from calibrant._verbs.find_slices import find_slices

    rows = out.read_file(file, flags.roles_of(said), quiet=said["quiet"])
    features = columns_beside(file, said, wanted, rows.y)
    return find_slices(**as_evaluated(rows, options), features=features)


def as_evaluated(rows: Any, options: dict[str, Any]) -> dict[str, Any]:
    """What was read and asked for, as verbs take it, pairs included."""
    given = rows.arguments
    rows.target(options.get("target"))
    if rows.pairs:
        given["y"] = given.pop("correct")
        options = {key: x for key, x in options.items() if key != "target"}
    return {**given, **options}


def columns_beside(
    file: str, said: dict[str, Any], wanted: list[str], labels: Any
) -> Any:
    """Columns of features, which must have all the rows of the predictions."""
    from calibrant.files._read import read_columns

    if said["drop_missing"]:
        raise click.UsageError("--drop-missing leaves features without their examples.")
    found = read_columns(flags.paths_of(file), wanted, said["sep"])
    for name, column in found.items():
        if column.shape == labels.shape and (column == labels).all():
            raise ValueError(
                f"{name!r} holds the labels, which no model knows; leave it out."
            )
    return found
