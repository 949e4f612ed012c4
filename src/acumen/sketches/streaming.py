"""Evaluation of rows that pass by in batches: files of any size, in constant memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from acumen.files import FileError, Found
from acumen.results import Evaluation
from acumen.settings import Settings
from acumen.sketches.evaluating import evaluate_sketch
from acumen.sketches.sketch import Sketch


def evaluate_batches(
    batches: Iterable[Found],
    *,
    name: str = "model",
    target: str | None = None,
    progress: Callable[[int], object] | None = None,
    **options: Any,
) -> Evaluation:
    """Evaluate predictions batch by batch, in constant memory.

    Parameters
    ----------
    batches : iterable of Found
        What `acumen.files.batches` gives.
    name, target
        As in `acumen.evaluate`; ``"class-wise"`` needs all rows in memory.
    progress : callable, optional
        Called after each batch with the number of rows read so far.
    **options
        Those of `acumen.evaluate` that say how to estimate, from `divergence` to `rng`.

    Returns
    -------
    Evaluation
        As `acumen.evaluate` or `acumen.evaluate_pairs` give it for all rows at once,
        but without intervals of the top-label ECE and, under soft labels, of ``unc``.

    Notes
    -----
    Neither the order nor the size of the batches matters, round-off apart. See
    `acumen.Sketch`, which the rows go into, for what is exact and what nearly so.

    Examples
    --------
    >>> import tempfile, numpy as np, acumen as ac
    >>> from acumen.files import batches
    >>> folder = tempfile.TemporaryDirectory()
    >>> p = np.random.default_rng(0).random((2, 1000))
    >>> for shard, rows in enumerate(p):
    ...     np.savez(f"{folder.name}/{shard}.npz", prob=rows, outcome=rows > 0.4)
    >>> ev = evaluate_batches(batches(folder.name, rows=300))
    >>> whole = ac.evaluate(p.ravel() > 0.4, probs=p.ravel())
    >>> ev.rows, bool(abs(ev.metrics["ks_error"] - whole.metrics["ks_error"]) < 1e-12)
    (2000, True)
    >>> folder.cleanup()
    """
    settings = _read_settings(options)
    if target == "class-wise":
        raise ValueError(
            "target='class-wise' needs all rows in memory: pass what "
            "acumen.files.read gives to evaluate."
        )
    sketch = sketch_batches(
        batches, Sketch(target=target, divergence=settings.main), progress
    )
    return evaluate_sketch(sketch, settings, name)


def sketch_batches(
    batches: Iterable[Found],
    sketch: Sketch,
    progress: Callable[[int], object] | None = None,
) -> Sketch:
    """Add batches of files to a sketch."""
    rows = 0
    for found in batches:
        if len(found):
            with rows_of_the_file(found):
                add_batch(sketch, found)
        rows += len(found)
        if progress is not None:
            progress(rows)
    return sketch


def add_batch(sketch: Sketch, found: Found, part: str | None = None) -> None:
    """Add one batch, under a name if it has one."""
    rest: dict[str, Any] = {
        "sample_weight": found.sample_weight,
        "group": found.group,
        "part": part,
    }
    if found.pairs:
        sketch.update_pairs(found.y, found.scores, **rest)
    else:
        rest |= {found.kind: found.scores, "classes": found.classes}
        sketch.update(found.y, **rest)


def _read_settings(options: dict[str, Any]) -> Settings:
    known = {field.name for field in fields(Settings)}
    for option in options:
        if option not in known:
            raise TypeError(
                f"evaluate_batches has no option {option!r}. Labels, weights and names "
                "of classes come with the batches; cluster= needs all rows in memory."
            )
    return Settings(**options).checked()


@contextmanager
def rows_of_the_file(found: Found) -> Iterator[None]:
    """Errors that name a row of the batch name the row of the file instead."""
    try:
        yield
    except ValueError as error:
        said, last = str(error), found.start + len(found) - 1
        number = re.search(r"\brow (\d+)", said)
        if number is None:
            raise
        row = f"row {found.start + int(number[1])}"
        said = said[: number.start()] + row + said[number.end() :]
        said = re.sub(r"of \d+ rows are", f"of rows {found.start} to {last} are", said)
        raise FileError(found.path, said) from error
