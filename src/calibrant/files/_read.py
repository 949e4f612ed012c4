"""Predictions out of files: all at once, or in batches for what is larger than memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.files import _sources as sources
from calibrant.files._open import Paths, open_all
from calibrant.files._plan import Plan, Roles, ScoreKind, make_plan
from calibrant.files._sources import Block, FileError, Request, Source

# -- Rows of a file as predictions: labels and scores as `evaluate` wants them.


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Predictions as they were found, by the names `evaluate` gives them.

    Attributes
    ----------
    kind : {"probs", "logits", "confidence"}
        What the scores are.
    scores, y : array
        Scores, and the labels (or, for confidences, whether they were right; or None if
        rows may be without labels, and are).
    sample_weight, group : array or None
        Weight and subgroup of each row.
    classes : tuple or None
        Names of the classes, if labels are names.
    path, start
        The file and the number of the first row in it.
    """

    kind: ScoreKind
    scores: NDArray[Any]
    y: Any
    sample_weight: NDArray[Any] | None
    group: NDArray[Any] | None
    classes: tuple[Any, ...] | None
    path: Path
    start: int = 0

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def pairs(self) -> bool:
        """Whether these are confidences, for `evaluate_pairs`."""
        return self.kind == "confidence"

    @property
    def arguments(self) -> dict[str, Any]:
        """Keywords for `calibrant.evaluate`, or for `calibrant.evaluate_pairs`."""
        given: dict[str, Any] = {"sample_weight": self.sample_weight}
        if self.pairs:
            return {"correct": self.y, "confidence": self.scores, **given}
        return {"y": self.y, self.kind: self.scores, "classes": self.classes, **given}


def found_in(
    path: Path, plan: Plan, block: Block, classes: tuple[Any, ...] | None, start: int
) -> Found:
    """One block of a file, checked for what is missing."""
    columns = [block[name] for name in plan.scores]
    scores = columns[0] if len(columns) == 1 else np.stack(columns, axis=1)
    weight = None if plan.weight is None else block[plan.weight]
    _check_missing(path, plan, scores, weight, start)
    y: Any = None
    if plan.kind != "confidence":
        if plan.label is not None:
            y = _labels(path, block, plan.label, start)
            y, classes = _named(path, y, classes, plan.stars)
    elif plan.correct is not None:
        y = _labels(path, block, plan.correct, start)
    else:
        y = _right(path, plan, block, start)
    group = None if plan.group is None else block[plan.group]
    return Found(plan.kind, scores, y, weight, group, classes, path, start)


def _right(path: Path, plan: Plan, block: Block, start: int) -> NDArray[Any]:
    """Whether the predicted class is the true one."""
    said = _labels(path, block, plan.pred, start)
    true = _labels(path, block, plan.label, start)
    if said.dtype.kind in "biuf" and true.dtype.kind in "biuf":
        return said == true
    return sources.text_of(said).astype(str) == sources.text_of(true).astype(str)


def _labels(path: Path, block: Block, name: str | None, start: int) -> NDArray[Any]:
    assert name is not None
    values = sources.whole(block[name])
    missing = _missing(values)
    if missing.any():
        row = int(np.argmax(missing.reshape(len(values), -1).any(axis=1)))
        raise FileError(path, _off(name, start + row))
    return sources.text_of(values) if values.dtype.kind == "S" else values


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind in "biuf":
        return np.isnan(values)
    return np.array([value is None for value in values], dtype=bool)


def _off(name: str, row: int) -> str:
    return (
        f"row {row} of {sources.shorten(name)!r} is NaN, missing or not a number; drop such "
        "rows, or give them weight 0."
    )


def _check_missing(
    path: Path,
    plan: Plan,
    scores: NDArray[Any],
    weight: NDArray[Any] | None,
    start: int,
) -> None:
    """NaN in a row that counts; rows of weight 0 may hold anything."""
    if weight is not None and np.isnan(weight).any():
        row = int(np.argmax(np.isnan(weight)))
        raise FileError(path, _off(str(plan.weight), start + row))
    missing = np.isnan(scores)
    if not missing.any():
        return
    if weight is not None:
        missing[weight == 0] = False
    if missing.any():
        row, *at = (int(i) for i in np.argwhere(missing)[0])
        name = plan.scores[at[0] if at and len(plan.scores) > 1 else 0]
        raise FileError(path, _off(name, start + row))


def _named(
    path: Path,
    y: NDArray[Any],
    classes: tuple[Any, ...] | None,
    stars: tuple[str, ...] | None,
) -> tuple[NDArray[Any], tuple[Any, ...] | None]:
    """Labels and names that can be held against each other, as numbers or as text.

    Numbers among columns named by words are column numbers; among columns named by
    numbers they are names.
    """
    is_text = y.dtype.kind not in "biuf"
    if classes is None and stars is not None and (is_text or _all_digits(stars)):
        classes = stars
    if classes is None and is_text:
        raise FileError(
            path,
            f"labels are text ({sources.shorten(str(y[0]))!r}); name the classes, in the order "
            "of the columns, with --classes A,B,...",
        )
    if classes is None or y.ndim != 1:
        return y, None
    if is_text or not _all_digits(classes):
        return sources.text_of(y), tuple(str(name) for name in classes)
    numbers = tuple(int(name) for name in classes)
    return y, None if numbers == tuple(range(len(numbers))) else numbers


def _all_digits(names: tuple[Any, ...]) -> bool:
    words = [str(name) for name in names]
    return all(word.isascii() and word.isdigit() and len(word) < 10 for word in words)


BATCH_BYTES = 1 << 25
MOST_ROWS = 1 << 18
EVERYTHING = 1 << 62


def read(paths: Paths, roles: Roles | None = None) -> Found:
    """Read predictions that fit in memory.

    Parameters
    ----------
    paths : path or sequence of paths
        A file, a glob pattern, a folder of shards, or several of them.
    roles : Roles, optional
        Which array or column is what; else well-known names decide.

    Returns
    -------
    Found
        Pass its ``arguments`` to `calibrant.evaluate` or `calibrant.evaluate_pairs`.

    Examples
    --------
    >>> import tempfile, numpy as np, calibrant as cal
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = f"{folder.name}/model.npz"
    >>> np.savez(path, prob=[0.9, 0.2, 0.7], outcome=[1, 0, 1])
    >>> found = read(path)
    >>> found.kind, found.scores, found.y
    ('probs', array([0.9, 0.2, 0.7]), array([1, 0, 1]))
    >>> round(cal.brier(found.y, probs=found.scores), 4)
    0.0467
    >>> folder.cleanup()
    """
    found = list(_batches(paths, roles or Roles(), None, in_memory=True))
    if not found:
        raise FileError(str(paths), "has no rows.")
    return found[0] if len(found) == 1 else _join(found)


def batches(
    paths: Paths, roles: Roles | None = None, rows: int | None = None
) -> Iterator[Found]:
    """Read predictions a batch at a time, in the order of files and rows.

    Parameters
    ----------
    paths, roles
        As in `read`.
    rows : int, optional
        Most rows of a batch; by default about 32 MB of scores.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = f"{folder.name}/model.npz"
    >>> np.savez(path, prob=[0.9, 0.2, 0.7], outcome=[1, 0, 1])
    >>> [batch.y.tolist() for batch in batches(path, rows=2)]
    [[1, 0], [1]]
    >>> folder.cleanup()
    """
    if rows is not None and rows < 1:
        raise ValueError(f"rows must be a positive integer, got {rows!r}.")
    return _batches(paths, roles or Roles(), rows, in_memory=False)


def _batches(
    paths: Paths, roles: Roles, rows: int | None, *, in_memory: bool
) -> Iterator[Found]:
    like: Found | None = None
    for source in open_all(paths):
        plan = make_plan(source, roles)
        if in_memory:
            _check_size(source, plan)
        classes = _class_names(source, plan, roles)
        text = frozenset(filter(None, [plan.group if source.is_table else None]))
        size = rows or _rows_each(source, plan, in_memory=in_memory)
        start = 0
        for block in source.blocks(Request(plan.names, size, text)):
            found = found_in(source.path, plan, block, classes, start)
            start += len(found)
            like = like or found
            _check_alike(like, found)
            yield found


def _check_size(source: Source, plan: Plan) -> None:
    """Columns may be packed as tightly as archives: a constant costs no space."""
    if source.is_table and source.rows is not None:
        widths = [source[name].shape[1:] or (1,) for name in plan.names]
        size = 8 * source.rows * sum(width[0] or 1 for width in widths)
        sources.check_expansion(source.path, "it", size, source.path.stat().st_size)


def _rows_each(source: Source, plan: Plan, *, in_memory: bool) -> int:
    if in_memory and not source.is_table:
        return EVERYTHING  # one piece needs no joining
    width = sum((source[name].shape[1:] or (1,))[0] or 1 for name in plan.scores)
    return max(1, min(MOST_ROWS, BATCH_BYTES // (8 * width)))


def _class_names(source: Source, plan: Plan, roles: Roles) -> tuple[Any, ...] | None:
    """Names said by the user, or in an array beside the scores."""
    if roles.classes is not None:
        if plan.kind == "confidence":
            raise FileError(source.path, "classes do not apply to confidences.")
        return tuple(roles.classes)
    if plan.classes is None:
        return None
    (block,) = source.blocks(Request((plan.classes,), EVERYTHING))
    return tuple(sources.text_of(block[plan.classes]).tolist())


def _check_alike(first: Found, other: Found) -> None:
    """Shards must hold the same kind of predictions, of the same classes."""
    for what, a, b in (
        ("kind of scores", first.kind, other.kind),
        ("number of classes", first.scores.shape[1:], other.scores.shape[1:]),
        ("class names", first.classes, other.classes),
        ("weight", first.sample_weight is None, other.sample_weight is None),
        ("group", first.group is None, other.group is None),
    ):
        if a != b:
            raise FileError(
                other.path,
                f"differs from {sources.quoted([first.path.name])} in its {what}; shards must "
                "be alike.",
            )


def _join(found: list[Found]) -> Found:
    def joined(name: str) -> Any:
        parts = [getattr(one, name) for one in found]
        return None if parts[0] is None else np.concatenate(parts)

    first = found[0]
    scores, y = joined("scores"), joined("y")
    weight, group = joined("sample_weight"), joined("group")
    return Found(first.kind, scores, y, weight, group, first.classes, first.path)
