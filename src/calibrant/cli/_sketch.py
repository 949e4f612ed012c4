"""``calibrant sketch`` and ``calibrant merge``: any number of examples in a few megabytes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from calibrant._base.checks import one_line
from calibrant._base.write import locked, stamp_of
from calibrant.cli import _flags as flags
from calibrant.cli._output import Taken, check_outputs, check_suffix
from calibrant.files._sources import FileError, quoted

HERE = "Write the sketch to this .npz file."
output_option = flags.path_option("-o", "--output", required=True, help=HERE)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@output_option
@click.option("--resume", is_flag=True, help="Add to the sketch that is there.")
@flags.target
@flags.role_options
@flags.quiet
@flags.force
@flags.clean_errors
def sketch(
    files: tuple[str, ...],
    output: Path,
    target: str | None,
    *,
    resume: bool,
    quiet: bool,
    force: bool,
    **said: Any,
) -> None:
    """Summarise FILEs in a small sketch.

    report, compare, groups, curves and inspect read a sketch like the files themselves, and
    merge adds sketches up; other commands need the examples. It is saved after every file and
    every 5 million examples; --resume continues a run that was stopped, and counts no file
    twice, whatever its name. A file that has changed since is refused, and so is a copy of
    another file.

    \b
    Example:
      calibrant sketch 'shards/*.parquet' --output all.npz
      calibrant report all.npz
    """
    from calibrant._sketch.sketch import Sketch

    check_outputs(output, reads=files, force=force or resume)
    check_suffix(output, ".npz")
    with locked(output):
        there = resume and output.exists()
        found = Sketch.load(output) if there else Sketch(target=target)
        check_target(found, target)
        skipped = gather(
            files,
            flags.roles_of(said),
            found,
            save=Saves(output, replace=there or force),
            since=output.stat().st_mtime if there else math.inf,
            quiet=quiet,
        )
    if not found.rows:
        raise ValueError("no example is left: there are none, or all have weight 0.")
    _say(found, output, skipped, quiet=quiet)


def gather(
    files: Sequence[str],
    roles: Any,
    sketch: Any,
    *,
    save: Callable[[Any], object],
    quiet: bool,
    since: float = math.inf,
    watch: Callable[[Any], Any] = lambda found: found,
) -> dict[str, list[str]]:
    """Add files to a sketch, each once; what was skipped, by reason.

    What is read passes through `watch` on its way.
    """
    from calibrant._verbs.stream import sketch_files

    skipped, weights = defaultdict[str, list[str]](list), _Weights(sketch)
    what = files[0] if len(files) == 1 else f"{len(files):,} files"
    with (
        flags.about(*files),
        flags.steps("sketch", quiet=quiet) as progress,
        Taken(what, roles, quiet=quiet) as taken,
    ):
        sketch_files(
            units_of(files),
            roles,
            sketch,
            save=save,
            progress=lambda rows, name: progress(0.0, f"{name}: {rows:,} examples"),
            skipped=lambda name, why: skipped[why].append(name),
            since=since,
            watch=lambda found: taken.add(watch(weights.add(found)), of=len(found)),
            copies=roles.count_copies,
        )
    return skipped


class _Weights:
    """Refuses examples with weights beside others without, as is done with clusters.

    A sketch knows of weights unless all are 1: those add up with none.
    """

    def __init__(self, sketch: Any) -> None:
        self.there = _is_weighted(sketch) if sketch.rows else None

    def add(self, found: Any) -> Any:
        """See some rows, and pass them on."""
        own = found.sample_weight is not None
        if own and self.there is False:
            own = bool((found.sample_weight != 1).any())
        if not len(found) or self.there in (None, own):
            self.there = own if len(found) else self.there
            return found
        has = "has weights, and examples before it have none"
        lacks = "has no weights, and examples before it have them"
        ways = (
            "Give --weight with all of them, or --weight '' with all, and begin anew."
        )
        raise FileError(found.path, f"{has if own else lacks}. {ways}")


def _is_weighted(sketch: Any) -> bool:
    return sketch.cells.squares is not None


def _check_weights(file: str, more: Any, before: Any) -> None:
    """Refuse a sketch with weights beside others without, or the reverse."""
    if before.rows and more.rows and _is_weighted(more) != _is_weighted(before):
        has, had = ("weights", "none") if _is_weighted(more) else ("none", "weights")
        raise ValueError(
            f"some examples have weights and others have none: those of {file} have {has}, "
            f"those before it {had}. Make all sketches with --weight, or all with "
            "--weight ''; in Python, a + b adds them with weights of 1."
        )


def check_target(found: Any, target: str | None) -> None:
    """Examples that are in were summed for one target, and stay so."""
    if found.kind is not None and target not in (None, found.kind.target):
        raise ValueError(
            f"the sketch was made with --target {found.kind.target}, not {target}; drop "
            "--target, or start a new sketch with --force."
        )


class Saves:
    """Saves to a file as long as nobody else writes to it, with a lock or without."""

    def __init__(self, output: Path, *, replace: bool) -> None:
        self.output, self.stamp = output, stamp_of(output) if replace else None

    def __call__(self, made: Any) -> None:
        """Replace what this run found or wrote, and nothing else."""
        if not made.rows:
            return
        if self.stamp is not None and stamp_of(self.output) != self.stamp:
            raise FileExistsError(
                f"{self.output} was written by another process meanwhile, and is left as "
                "it is; continue from it with --resume."
            )
        made.save(self.output, force=self.stamp is not None)
        self.stamp = stamp_of(self.output)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="SKETCH...")
@output_option
@flags.count_copies
@flags.quiet
@flags.force
@flags.clean_errors
def merge(
    files: tuple[str, ...],
    output: Path,
    *,
    count_copies: bool,
    quiet: bool,
    force: bool,
) -> None:
    """Merge SKETCHes of different examples into one.

    Sketches that hold the same file, or copies of it, are refused.

    \b
    Example:
      calibrant merge monday.npz tuesday.npz --output week.npz
    """
    from calibrant._sketch.sketch import Sketch
    from calibrant._verbs.stream import check_no_copies

    check_outputs(output, reads=files, force=force)
    check_suffix(output, ".npz")
    found = Sketch()
    for file in files:
        if not Path(file).exists():
            raise FileError(file, "there is no such file.")
        more = Sketch.load(file)
        _check_weights(file, more, found)
        if not count_copies:
            check_no_copies(more, file, found)
        found = found + more
    with locked(output):
        found.save(output, force=force)
    _say(found, output, {}, quiet=quiet)


def units_of(files: Iterable[str]) -> list[list[str]]:
    """Sets of examples: every file alone, but arrays that make up one set together."""
    from calibrant.files._open import find_files

    units: list[list[str]] = []
    for file in files:
        paths = flags.paths_of(file)
        if len(paths) > 1:
            units.append(paths)
        else:
            units += [[str(path)] for path in find_files(paths)]
    return units


def _say(
    sketch: Any, output: Path, skipped: Mapping[str, list[str]], *, quiet: bool
) -> None:
    if quiet:
        return
    say_skipped(skipped)
    click.echo(str(sketch))
    written = one_line(str(output))
    click.echo(f"\nsketch: {written}\nnext: calibrant report {written}")


def say_skipped(skipped: Mapping[str, list[str]]) -> None:
    """Say on stderr which files were not read, and why."""
    for why, names in skipped.items():
        what = f"skipped {len(names):,} of the files, whose examples are {why}"
        click.echo(f"{what}: {quoted(names, most=3)}", err=True)
    if skipped:
        click.echo(
            "They were not read, so options about columns and reading were neither applied "
            "to them nor checked.",
            err=True,
        )
