"""Files into a sketch, with checkpoints: a run that was stopped goes on, none twice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from acumen.files import Found, Roles, batches
from acumen.sketches.sketch import Sketch
from acumen.sketches.streaming import add_batch, rows_of_the_file

EVERY = 5_000_000
"""Rows after which the sketch is saved."""

Progress = Callable[[int, str], object]


def sketch_files(
    units: Iterable[Sequence[str]],
    roles: Roles,
    sketch: Sketch,
    *,
    save: Callable[[Sketch], object],
    progress: Progress,
    every: int = EVERY,
) -> Sketch:
    """Add the rows of files that are not yet in the sketch, and save it now and then.

    A unit is the files of one set of rows. Its name goes into `parts` when all its rows
    are in, and before that with the number of rows that are.
    """
    for unit in units:
        name = ",".join(map(str, unit))
        if name not in sketch.parts:
            _add_unit(batches(list(unit), roles), name, sketch, save, progress, every)
            _rename(sketch, _underway(sketch, name), name)
            save(sketch)
    return sketch


def _add_unit(
    found: Iterable[Found],
    name: str,
    sketch: Sketch,
    save: Callable[[Sketch], object],
    progress: Progress,
    every: int,
) -> None:
    marker = _underway(sketch, name)
    done = _rows_in(marker)
    read, saved = 0, done
    for batch in found:
        start, read = read, read + len(batch)
        if read > done:
            rest = _without_first(batch, max(done - start, 0))
            with rows_of_the_file(rest):
                add_batch(sketch, rest)
            marker, done = _rename(sketch, marker, f"{name} [first {read} rows]"), read
        if done - saved >= every:
            save(sketch)
            saved = done
        progress(sketch.rows, name)


def _without_first(batch: Found, count: int) -> Found:
    if count == 0:
        return batch
    fields = ("scores", "y", "sample_weight", "group")
    cut: dict[str, Any] = {
        name: None if getattr(batch, name) is None else getattr(batch, name)[count:]
        for name in fields
    }
    return replace(batch, **cut, start=batch.start + count)


def _underway(sketch: Sketch, name: str) -> str | None:
    """The entry of a unit of which not all rows are in, if there is one."""
    pattern = re.compile(re.escape(name) + r" \[first \d+ rows\]")
    return next((part for part in sketch.parts if pattern.fullmatch(part)), None)


def _rows_in(marker: str | None) -> int:
    found = None if marker is None else re.search(r"\[first (\d+) rows\]$", marker)
    return 0 if found is None else int(found[1])


def _rename(sketch: Sketch, old: str | None, new: str) -> str:
    contents = sketch.checked()
    if contents is not None:  # None: no row of positive weight so far
        contents.parts.discard(old or "")
        contents.parts.add(new)
    return new
