"""From files to evaluations: in memory where they fit, in batches where they do not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acumen.cli.options import paths_of, roles_of
from acumen.evaluation import evaluate, evaluate_pairs
from acumen.results import Evaluation

if TYPE_CHECKING:
    from acumen.sketches.sketch import Sketch

IN_MEMORY = 1 << 28
"""Bytes of files up to which everything is read at once."""


def evaluate_file(
    file: str,
    said: Mapping[str, Any],
    options: Mapping[str, Any],
    name: str,
    progress: Any,
) -> Evaluation:
    """Evaluate the predictions in a file, or in files joined by commas."""
    from acumen.files import batches, read

    paths, roles = paths_of(file), roles_of(said)
    progress(0.0, f"read {name}")
    if (sketch := sketch_in(paths)) is not None:
        if roles.given:
            raise ValueError(
                f"{file} is a sketch, whose rows are read; drop --{roles.given[0]}."
            )
        return evaluate(sketch, **options, name=name)
    if size_of(paths) > IN_MEMORY:
        from acumen.sketches.streaming import evaluate_batches

        def report(rows: int) -> None:
            progress(0.5, f"{name}: {rows:,} rows")

        return evaluate_batches(
            batches(paths, roles), name=name, progress=report, **options
        )
    found = read(paths, roles)
    progress(0.5, f"evaluate {name}")
    if found.pairs:
        pairs = {key: value for key, value in options.items() if key != "target"}
        return evaluate_pairs(**found.arguments, **pairs, group=found.group, name=name)
    return evaluate(**found.arguments, **options, group=found.group, name=name)


def sketch_in(paths: list[str]) -> Sketch | None:
    """The sketch in a file, if that is what is in it."""
    from acumen.sketches.storage import is_sketch

    if len(paths) != 1 or not is_sketch(Path(paths[0])):
        return None
    from acumen.sketches.sketch import Sketch

    return Sketch.load(paths[0])


def size_of(paths: list[str]) -> int:
    """Bytes of all files that are named, matched by a pattern, or in a folder."""
    from acumen.files.shards import find_files

    return sum(path.stat().st_size for path in find_files(paths))
