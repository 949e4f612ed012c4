"""Rows that pass by in batches: files of any size, in constant memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Unpack

from calibrant._base.checks import RowError
from calibrant._base.evaluation import Evaluation
from calibrant._inputs.options import Options, Settings, takes_options
from calibrant._sketch.sketch import Sketch
from calibrant._verbs.evaluate import evaluate_sketch
from calibrant.files._plan import Roles
from calibrant.files._read import PER_ROW, Found, batches
from calibrant.files._sources import FileError


@takes_options
def evaluate_batches(
    batches: Iterable[Found],
    *,
    name: str = "model",
    target: str | None = None,
    progress: Callable[[int], object] | None = None,
    **options: Unpack[Options],
) -> Evaluation:
    """Evaluate predictions batch by batch, in constant memory.

    Parameters
    ----------
    batches : iterable of Found
        What `calibrant.files.batches` gives.
    name, target
        As in `calibrant.evaluate`; ``"class-wise"`` needs all rows in memory.
    progress : callable, optional
        Called after each batch with the number of rows read so far.
    **options
        Those of `calibrant.evaluate` that say how to estimate, from `divergence` to `rng`.

    Returns
    -------
    Evaluation
        As `calibrant.evaluate` or `calibrant.evaluate_pairs` give it for all rows at once,
        but without intervals of the top-label ECE and, under soft labels, of ``unc``.

    Notes
    -----
    Neither the order nor the size of the batches matters, round-off apart. See
    `calibrant.Sketch`, which the rows go into, for what is exact and what nearly so.

    Examples
    --------
    >>> import tempfile, numpy as np, calibrant as cal
    >>> from calibrant.files import batches
    >>> folder = tempfile.TemporaryDirectory()
    >>> p = np.random.default_rng(0).random((2, 1000))
    >>> for shard, rows in enumerate(p):
    ...     np.savez(f"{folder.name}/{shard}.npz", prob=rows, outcome=rows > 0.4)
    >>> ev = evaluate_batches(batches(folder.name, rows=300))
    >>> whole = cal.evaluate(p.ravel() > 0.4, probs=p.ravel())
    >>> ev.rows, bool(abs(ev.metrics["ks_error"] - whole.metrics["ks_error"]) < 1e-12)
    (2000, True)
    >>> folder.cleanup()
    """
    settings = Settings.of(options, evaluate_batches)
    if target == "class-wise":
        raise ValueError(
            "target='class-wise' needs all rows in memory: pass what "
            "calibrant.files.read gives to evaluate."
        )
    sketch, rows = Sketch(target=target, divergence=settings.main), 0
    for found in batches:
        if len(found):
            add_batch(sketch, found)
        rows += len(found)
        if progress is not None:
            progress(rows)
    return evaluate_sketch(sketch, settings, name)


def add_batch(sketch: Sketch, found: Found, part: str | None = None) -> None:
    """Add one batch, under a name if it has one; errors name the row of the file."""
    names = ("sample_weight", "frequency", "cluster", "group")
    rest: dict[str, Any] = {name: getattr(found, name) for name in names}
    try:
        if found.pairs:
            sketch.update_pairs(found.y, found.scores, part=part, **rest)
        else:
            rest |= {found.kind: found.scores, "classes": found.classes}
            sketch.update(found.y, part=part, **rest)
    except RowError as error:
        raise FileError(found.path, str(error.shifted(found.start))) from error


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

    A run that was stopped goes on, and no row is counted twice. A unit is the files of
    one set of rows. Its name goes into `parts` when all its rows are in, and before
    that with the number of rows that are.
    """
    for unit in units:
        name = ",".join(map(str, unit))
        if name not in sketch.parts:
            _add_unit(batches(list(unit), roles), name, sketch, save, progress, every)
            _rename(sketch, _underway(sketch, name)[0], name)
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
    marker, done = _underway(sketch, name)
    read, saved = 0, done
    for batch in found:
        start, read = read, read + len(batch)
        if read > done:
            add_batch(sketch, _without_first(batch, max(done - start, 0)))
            marker, done = _rename(sketch, marker, f"{name} [first {read} rows]"), read
        if done - saved >= every:
            save(sketch)
            saved = done
        progress(sketch.rows, name)


def _without_first(batch: Found, count: int) -> Found:
    given = {name: x for name in PER_ROW if (x := getattr(batch, name)) is not None}
    cut: dict[str, Any] = {name: x[count:] for name, x in given.items()}
    return replace(batch, **cut, start=batch.start + count) if count else batch


def _underway(sketch: Sketch, name: str) -> tuple[str | None, int]:
    """The entry of a unit of which not all rows are in, and how many are."""
    before, after = f"{name} [first ", " rows]"
    for part in sketch.parts:
        rows = part.removeprefix(before).removesuffix(after)
        if part == f"{before}{rows}{after}" and rows.isdecimal():
            return part, int(rows)
    return None, 0


def _rename(sketch: Sketch, old: str | None, new: str) -> str:
    if sketch.checked() is not None:  # None: no row of positive weight so far
        sketch.rename_part(old, new)
    return new
