"""Predictions out of files: all at once, or in batches for what is larger than memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from acumen.files.errors import FileError, quoted
from acumen.files.found import Found, found_in
from acumen.files.opening import open_all
from acumen.files.plans import Plan, make_plan
from acumen.files.roles import Roles
from acumen.files.shards import Paths
from acumen.files.sources import Request, Source, check_expansion, text_of

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
        Pass its ``arguments`` to `acumen.evaluate` or `acumen.evaluate_pairs`.

    Examples
    --------
    >>> import tempfile, numpy as np, acumen as ac
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = f"{folder.name}/model.npz"
    >>> np.savez(path, prob=[0.9, 0.2, 0.7], outcome=[1, 0, 1])
    >>> found = read(path)
    >>> found.kind, found.scores, found.y
    ('probs', array([0.9, 0.2, 0.7]), array([1, 0, 1]))
    >>> round(ac.brier(found.y, probs=found.scores), 4)
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
        check_expansion(source.path, "it", size, source.path.stat().st_size)


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
    return tuple(text_of(block[plan.classes]).tolist())


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
                f"differs from {quoted([first.path.name])} in its {what}; shards must "
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
