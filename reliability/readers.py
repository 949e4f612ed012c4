"""Readers: a file in, the rows that are in it out, or one error that names the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .api import WORDS
from .cases import Case, place, predictions, special, spelled, write
from .choices import Choices
from .rows import Rows


def reader_case(c: Choices, home: Path) -> Case:
    """Read a file, all at once or in batches, and count what is right in it."""
    made = predictions(c)
    paths = write(c, place(c, home), made)
    if c.chance(8):
        made.wrong = special(c, home, paths)
    how = c.one(("read", "batches", "inspect", "evaluate", "read", "batches"))
    about = paths[0].suffix[1:]
    # One says what is there, and judges nothing; the other has no batch to give.
    free = how == "inspect" or (how == "batches" and made.wrong == "no rows")
    wrong = "?" if free else made.wrong
    given = [str(path) for path in paths]
    return Case(
        about,
        lambda: _use(given, how),
        (*spelled(paths), *WORDS),
        f"calibrant.files.{how}({[Path(x).name for x in given]})",
        wrong,
        lambda found: _differs(found, made) if not made.wrong and found else "",
        like=how,
    )


def _use(paths: list[str], how: str) -> Any:
    from calibrant import files

    if how == "inspect":
        return str(files.inspect(paths)) and None
    found = (
        list(files.batches(paths, rows=3)) if how == "batches" else [files.read(paths)]
    )
    for part in found:
        _count(part, whole=how == "evaluate")
    return found


def _count(part: Any, *, whole: bool) -> None:
    """Evaluate some rows, or only count what is right, which checks them as strictly."""
    from calibrant import accuracy, evaluate, evaluate_pairs

    given = {name: x for name, x in part.arguments.items() if x is not None}
    if whole and part.pairs:
        evaluate_pairs(**given, interval=None)
    elif whole:
        evaluate(**given, interval=None, target="top-label", group=part.group)
    else:
        given.pop("cluster", None)
        y = given.pop("correct") if part.pairs else given.pop("y")
        accuracy(y, **given, **({} if part.pairs else {"target": "top-label"}))


def _differs(found: list[Any], made: Rows) -> str:
    """Whether other rows were read than were written: every format must give the same."""
    if {part.kind for part in found} != {made.kind}:
        return f"read as {found[0].kind}, written as {made.kind}"
    scores = np.concatenate([part.scores for part in found])
    y = np.concatenate([np.asarray(part.y, float) for part in found])
    if not np.array_equal(scores, made.scores):
        return "other scores read than were written"
    return (
        ""
        if np.array_equal(y, made.y.astype(float))
        else "other labels read than written"
    )
