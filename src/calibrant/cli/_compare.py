"""``calibrant compare``: whether a model is really better than another, example by example."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from calibrant._base.checks import MOST_NAME, one_line
from calibrant.cli import _flags as flags
from calibrant.cli import _output as out
from calibrant.cli._harness import models_in
from calibrant.files._sources import text_of


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE FILE...")
@flags.page
@flags.model_names
@click.option("--title", help="Heading of the report.")
@click.option("--baseline", help="Model to compare with. [default: the first]")
@click.option("--unpaired", is_flag=True, help="The files hold different examples.")
@click.option(
    "--id",
    "id_column",
    metavar="NAME",
    help="Column that identifies each example, to pair them. [default: id]",
)
@flags.role_options
@flags.evaluation_options
@out.fail_if_different
@flags.output_options
@flags.clean_errors
def compare(
    files: tuple[str, ...],
    output: Path | None,
    names: str | None,
    title: str | None,
    baseline: str | None,
    id_column: str | None,
    *,
    unpaired: bool,
    force: bool,
    **said: Any,
) -> None:
    """Compare models on the same examples, with intervals.

    Examples are paired by their ids if all files have a column of them, else by their
    order. Conditions of --fail-if are on differences, model minus baseline. Models that are
    columns of one file are named by them: --probs a --probs b.

    \b
    Example:
      calibrant compare before.npz after.npz --output page.html
      calibrant compare before.npz after.npz --fail-if "brier.upper > 0.01"
    """
    from calibrant._verbs.compare import compare as contrast

    files = tuple(models_in(files, quiet=said["quiet"]))
    models = flags.models_of(files, names, said)
    if len(models) < 2:
        raise click.UsageError(
            "compare needs two models: two files, or --probs A --probs B of one file."
        )
    gates = out.gates_of(said, difference=True)
    out.check_outputs(output, reads=files, force=force)
    out.check_suffix(output, ".html", ".htm")
    options = {"baseline": baseline, "paired": not unpaired, "level": said["level"]}
    with flags.steps("compare", quiet=said["quiet"]) as progress:
        rows = None if unpaired else _paired_rows(models, said, id_column)
        if rows is None:
            evaluated = out.evaluate_models(models, progress)
        else:
            evaluated = _evaluate(models, rows, progress)
        found = contrast(*evaluated, **options)
        verdicts = out.differences_failing(gates, found)
        for group, parts in _groups(rows if gates else None):
            apart = contrast(*_evaluate(models, parts, progress), **options)
            verdicts += out.differences_failing(gates, apart, group)
    written = out.write_page(found, output, title=title, force=force)
    checked = rows is not None and all(one.ids is not None for one in rows)
    out.print_models(found, said, _in_words(found, written, checked=checked))
    out.trip(verdicts)


def _in_words(found: Any, written: str, *, checked: bool) -> str:
    """Differences in words, and where the page is; ids leave nothing on trust."""
    from calibrant.table._layout import Note
    from calibrant.table._text import note_lines

    told = [x for x in found.sentences if not (checked and x.startswith("Pairs carry"))]
    head = f"Compared with {one_line(found.baseline, MOST_NAME)}:"
    lines = [head, *note_lines([Note(text) for text in told])]
    return "\n".join([*lines, *(["", written] if written else [])])


def _evaluate(
    models: Sequence[flags.Model], rows: Sequence[Any], progress: Any
) -> list[Any]:
    evaluated = []
    for number, (model, one) in enumerate(zip(models, rows, strict=True)):
        progress(number / len(models), f"evaluate {model.name}")
        with flags.about(model.file):
            evaluated.append(out.evaluate_found(one, model.name, model.said))
    return evaluated


def _groups(rows: Sequence[Any] | None) -> Iterator[tuple[str, list[Any]]]:
    """The rows of each group, if there are groups."""
    if not rows or any(one.group is None for one in rows):
        return
    for group in sorted(set(rows[0].group.tolist()), key=str):
        yield str(group), [_of_group(one, group) for one in rows]


def _of_group(found: Any, group: Any) -> Any:
    """The rows of a group, those that are left out too."""
    lost, apart = found.dropped_groups, found.unpaired
    return replace(
        _only(found, found.group == group),
        group=None,
        dropped=0 if lost is None else int((lost == group).sum()),
        dropped_groups=None,
        unpaired=apart and _of_group(apart, group),
    )


# -- pairs of examples ------------------------------------------------------------------


def _paired_rows(
    models: Sequence[flags.Model], said: dict[str, Any], id_column: str | None
) -> list[Any] | None:
    """The rows of all models in one order; None if they cannot all be held in memory."""
    files = [model.file for model in models]
    roles = [flags.roles_of(x.said, with_id=True, id=id_column) for x in models]
    if any(map(_only_summed, files, roles)):
        return None
    found = []
    for file, own in zip(files, roles, strict=True):
        with flags.about(file):
            found.append(out.read_file(file, own, quiet=said["quiet"]))
    if all(one.ids is not None for one in found):
        return _by_id(files, found, said)
    if any(one.dropped for one in found):
        sizes = {file: len(x) + x.dropped for file, x in zip(files, found, strict=True)}
        if len(set(sizes.values())) > 1:
            told = ", ".join(f"{file}: {size:,}" for file, size in sizes.items())
            raise ValueError(f"the files differ in their numbers of examples ({told}).")
        return _in_all(found, [one.rows for one in found], said)
    return found


def _only_summed(file: str, roles: Any) -> bool:
    """Whether a file is a sketch, or so large that its rows are summed, not kept."""
    paths = flags.paths_of(file)
    with flags.about(file):
        return out.sketch_in(paths) is not None or out.too_large(paths, roles)


def _by_id(files: Sequence[str], found: list[Any], said: dict[str, Any]) -> list[Any]:
    """The rows of each file in the order of the first, by what identifies them."""
    ids = [text_of(one.ids).astype(str) for one in found]
    name = found[0].plan.id
    if all(np.array_equal(column, ids[0]) for column in ids):
        return found
    for file, column in zip(files, ids, strict=True):
        if len(np.unique(column)) < len(column):
            raise ValueError(
                f"{file}: {name!r} repeats, and is not the same in every file, so examples "
                "cannot be paired by it. Put the files into the same order, or pass "
                "--id '' to pair by order."
            )
    if not said["drop_missing"]:
        _check_same_ids(files, ids, name)
    if not said["quiet"]:
        told = f"examples are paired by column {name!r}"
        order = "; their order differs between the files" if _reordered(ids) else ""
        click.echo(f"note: {told}{order}", err=True)
        if absent := _not_in_all(found, ids):
            are = f"{absent:,} ids are" if absent > 1 else "1 id is"
            click.echo(f"note: {are} not in every file, and left out", err=True)
    return _in_all(found, ids, said)


def _reordered(ids: list[Any]) -> bool:
    """Whether the ids that all files have are not in one order."""
    common = set.intersection(*(set(column.tolist()) for column in ids))
    first, *others = ([x for x in column.tolist() if x in common] for column in ids)
    return any(other != first for other in others)


def _not_in_all(found: list[Any], ids: list[Any]) -> int:
    """How many ids are not in every file, where incomplete examples count as there."""
    there = []
    for one, column in zip(found, ids, strict=True):
        there.append({*column.tolist(), *text_of(one.dropped_ids).astype(str).tolist()})
    return len(set.union(*there) - set.intersection(*there))


def _check_same_ids(files: Sequence[str], ids: list[Any], name: str) -> None:
    here = set(ids[0].tolist())
    for file, column in zip(files[1:], ids[1:], strict=True):
        if apart := sorted(here ^ set(column.tolist())):
            lacks, has = (file, files[0]) if apart[0] in here else (files[0], file)
            raise ValueError(
                f"{lacks} has no example with the {name} {apart[0]!r}, which {has} has "
                f"({len(apart)} ids are in one file only). Compare the same examples, "
                "leave out the others (--drop-missing), or pass --unpaired."
            )


def _in_all(found: list[Any], keys: list[Any], said: dict[str, Any]) -> list[Any]:
    """Rows whose key is in every file, in the order of the first."""
    places = [{key: i for i, key in enumerate(column.tolist())} for column in keys]
    common = [key for key in places[0] if all(key in place for place in places)]
    if not common:
        raise ValueError("the files have no example in common; pass --unpaired.")
    if len(common) < max(map(len, found)) and not said["quiet"]:
        told = (
            f"compared on the {len(common):,} examples that are complete in every file"
        )
        click.echo(f"note: {told}", err=True)
    return [
        _divided(one, np.array([place[key] for key in common], int))
        for one, place in zip(found, places, strict=True)
    ]


def _divided(found: Any, chosen: Any) -> Any:
    """The rows to compare, which know of the others."""
    others = np.setdiff1d(np.arange(len(found)), chosen)
    return replace(_only(found, chosen), unpaired=_only(found, others))


def _only(found: Any, chosen: Any) -> Any:
    """Some rows of what was found in a file, in this order."""
    from calibrant.files._read import PER_ROW

    given = {name: getattr(found, name) for name in PER_ROW}
    rows = np.arange(len(found)) + found.start
    given["rows"] = rows if found.rows is None else found.rows
    cut = {name: x[chosen] for name, x in given.items() if x is not None}
    return replace(found, **cut)
