"""``calibrant compare``: whether a model is really better than another, example by example."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from calibrant._base.checks import MOST_NAME, one_line
from calibrant._base.records import as_plain
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
    files = tuple(models_in(files, **flags.said_of_files(said)))
    models = flags.models_of(files, names, said)
    if len(models) < 2:
        raise click.UsageError(
            "compare needs two models: two files, or --probs A --probs B of one file."
        )
    if unpaired and id_column is not None:
        raise click.UsageError(
            "--id pairs examples, and --unpaired does not; give one of the two."
        )
    gates = out.gates_of(said, difference=True)
    out.check_outputs(output, reads=files, force=force)
    out.check_suffix(output, ".html", ".htm")
    out.check_title(title, output)
    options = {"baseline": baseline, "paired": not unpaired, "level": said["level"]}
    with flags.steps("compare", quiet=said["quiet"]) as progress:
        rows = None if unpaired else _paired_rows(models, said, id_column)
        found = _of_all(models, rows, options, progress)
        if unpaired:
            by_group = _of_other_groups(found, options)
        else:
            by_group = _of_groups(models, rows, options, progress, gated=bool(gates))
    verdicts = out.differences_failing(gates, found)
    for group, apart in by_group.items():
        verdicts += out.differences_failing(gates, apart, group)
    shown = {"title": title, "group_differences": by_group, "force": force}
    written = out.write_page(found, output, verdicts, **shown)
    told = [_in_words(found), *_groups_in_words(by_group), written]
    more: dict[str, Any] = {**out.failed(verdicts)}
    if by_group:
        more["group_differences"] = {
            group: as_plain(apart.differences) for group, apart in by_group.items()
        }
    out.print_models(found, said, "\n\n".join(filter(None, told)), **more)
    out.trip(verdicts)


def _of_all(
    models: Sequence[Any], rows: Any, options: Mapping[str, Any], progress: Any
) -> Any:
    """The models compared; `rows` are theirs, in the same order, if they were paired."""
    from calibrant._verbs.compare import compare as contrast

    if rows is None:
        evaluated = out.evaluate_models(models, progress)
        _check_options(evaluated)
        return contrast(*evaluated, **options)
    evaluated = _evaluate(models, rows, progress)
    _check_options(evaluated)
    try:
        return contrast(*evaluated, **options)
    except ValueError:
        _check_labels([model.file for model in models], rows)
        raise


def _check_options(evaluated: Sequence[Any]) -> None:
    """Refuse models of which one has more classes: other tasks have other options."""
    base = evaluated[0]
    for ev in evaluated:
        if ev.k != base.k and ev.target == base.target:
            raise ValueError(
                f"{base.name!r} has {base.k} classes and {ev.name!r} {ev.k}. If they are "
                "options of questions, tasks with other options are among them: compare the "
                "files of the same tasks, such as a/samples_arc*.jsonl b/samples_arc*.jsonl; "
                "or name all options of all files with --classes A,B,..."
            )


def _of_groups(
    models: Sequence[Any],
    rows: Any,
    options: Mapping[str, Any],
    progress: Any,
    *,
    gated: bool,
) -> dict[str, Any]:
    """The same in each group; one in which nothing can be compared is left out, if not gated."""
    found = {}
    for group, parts in _groups(rows):
        try:
            found[group] = _of_all(models, parts, options, progress)
        except ValueError:
            if gated:
                raise
    return found


def _of_other_groups(found: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """The same in each group that all models have, of other examples."""
    from calibrant._verbs.compare import compare as contrast

    if found[0].target == "multi-label":  # whose groups are labels
        return {}
    shared = set.intersection(*({*ev.per_group} for ev in found))
    return {
        group: contrast(
            *(replace(ev.per_group[group], name=ev.name) for ev in found), **options
        )
        for group in sorted(shared)
    }


def _in_words(found: Any) -> str:
    """Differences in words."""
    from calibrant.table._layout import Note
    from calibrant.table._text import note_lines

    head = f"Compared with {one_line(found.baseline, MOST_NAME)}:"
    return "\n".join([head, *note_lines([Note(text) for text in found.sentences])])


IN_GROUPS = ("brier", "accuracy", "calibration")
"""Differences that are printed of each group; JSON has all."""


def _groups_in_words(by_group: Mapping[str, Any]) -> Iterator[str]:
    """Differences in each group, one line for each group and model."""
    from calibrant._base.measures import MEASURES
    from calibrant._base.text import with_interval
    from calibrant._verbs.compare import is_clear
    from calibrant.table._layout import Note
    from calibrant.table._text import note_lines

    lines = []
    for group, found in by_group.items():
        for name, numbers in found.differences.items():
            told = [
                f"{MEASURES[key].label} {with_interval(numbers[key])}"
                f"{' *' if is_clear(numbers[key]) else ''}"
                for key in IN_GROUPS
                if key in numbers
            ]
            who = f"{one_line(group, MOST_NAME)}, {one_line(name, MOST_NAME)}"
            lines += note_lines([Note(f"{who}: {'; '.join(told)}.")])
    if lines:
        first = next(iter(by_group.values()))
        head = f"Differences from {one_line(first.baseline, MOST_NAME)} by group"
        yield "\n".join([f"{head} (* significant, each alone):", *lines])


def _check_labels(files: Sequence[str], rows: Sequence[Any]) -> None:
    """Name the first example whose label is not the same in two files, if there is one."""
    for file, one in zip(files, rows, strict=False):
        labels = [np.asarray(x.y) for x in (rows[0], one)]
        if one.pairs or labels[0].shape != labels[1].shape or labels[0].ndim != 1:
            continue
        if (apart := labels[0] != labels[1]).any():
            row = int(np.argmax(apart))
            known = one.ids is not None
            where = (
                f"{one.plan.id} {str(ids_of(one)[row])!r}" if known else f"row {row}"
            )
            first, other = (str(x[row]) for x in labels)
            raise ValueError(
                f"{file} and {files[0]} differ in {int(apart.sum()):,} of {len(apart):,} "
                f"labels, so examples cannot be paired: that of {where} is {other} and "
                f"{first}. Compare answers to the same questions, or pass --unpaired."
            )


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
    lost, silent = found.dropped_groups, found.dropped_silent
    own = np.zeros(0, bool) if lost is None else np.asarray(lost == group, bool)
    return replace(
        only(found, found.group == group),
        group=None,
        dropped=int(own.sum()),
        dropped_groups=None,
        dropped_silent=None if lost is None or silent is None else silent[own],
        unpaired=found.unpaired and _of_group(found.unpaired, group),
        absent=found.absent and _of_group(found.absent, group),
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
    with out.sharing_scale(roles) as each:
        for file, own in zip(files, each, strict=True):
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
    ids = [ids_of(one) for one in found]
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
    absent = _not_in_all(found, ids)
    if not said["quiet"]:
        _say_paired(name, reordered=_reordered(ids))
        if count := len(absent):
            are = f"{count:,} ids are" if count > 1 else "1 id is"
            click.echo(f"note: {are} not in every file, and left out", err=True)
    return _in_all(found, ids, said, absent)


def ids_of(found: Any) -> Any:
    """What identifies each row, as text."""
    return text_of(found.ids).astype(str)


def _say_paired(name: str, *, reordered: bool) -> None:
    order = "; their order differs between the files" if reordered else ""
    click.echo(f"note: examples are paired by column {name!r}{order}", err=True)


class InOneOrder:
    """Puts the rows of each file into the order of the first, if all ids are the same.

    Rows of other ids stay as they are, and their models are not paired.
    """

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.first: Any = None

    def __call__(self, found: Any) -> Any:
        """The same rows, in order."""
        if found.ids is None:
            return found
        ids = ids_of(found)
        if self.first is None:
            self.first = ids
        if np.array_equal(ids, self.first) or not _once(ids, self.first):
            return found
        if not self.quiet:
            _say_paired(found.plan.id, reordered=True)
            self.quiet = True  # said once
        place = np.argsort(np.argsort(self.first, kind="stable"), kind="stable")
        return only(found, np.argsort(ids, kind="stable")[place])


def _once(ids: Any, first: Any) -> bool:
    """Whether the same ids come in another order, each once."""
    ours, others = np.unique(ids), np.unique(first)
    return len(ours) == len(ids) == len(first) and np.array_equal(ours, others)


def _reordered(ids: list[Any]) -> bool:
    """Whether the ids that all files have are not in one order."""
    common = set.intersection(*(set(column.tolist()) for column in ids))
    first, *others = ([x for x in column.tolist() if x in common] for column in ids)
    return any(other != first for other in others)


def _not_in_all(found: list[Any], ids: list[Any]) -> set[str]:
    """Ids that are not in every file, where incomplete examples count as there."""
    there = []
    for one, column in zip(found, ids, strict=True):
        there.append({*column.tolist(), *text_of(one.dropped_ids).astype(str).tolist()})
    return set.union(*there) - set.intersection(*there)


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


def _in_all(
    found: list[Any],
    keys: list[Any],
    said: dict[str, Any],
    absent: Collection[str] = (),
) -> list[Any]:
    """Rows whose key is in every file, in the order of the first.

    Keys that are `absent` are not in every file, not even with a score missing.
    """
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
        _divided(
            one,
            np.array([place[key] for key in common], int),
            np.array([place[key] for key in place if key in absent], int),
        )
        for one, place in zip(found, places, strict=True)
    ]


def _divided(found: Any, chosen: Any, absent: Any) -> Any:
    """The rows to compare, which know of the others."""
    others = np.setdiff1d(np.arange(len(found)), [*chosen, *absent])
    apart = {"unpaired": only(found, others), "absent": only(found, absent)}
    return replace(only(found, chosen), **apart)


def only(found: Any, chosen: Any) -> Any:
    """Some rows of what was found in a file, in this order."""
    from calibrant.files._read import PER_ROW

    given = {name: getattr(found, name) for name in PER_ROW}
    rows = np.arange(len(found)) + found.start
    given["rows"] = rows if found.rows is None else found.rows
    cut = {name: x[chosen] for name, x in given.items() if x is not None}
    return replace(found, **cut)
