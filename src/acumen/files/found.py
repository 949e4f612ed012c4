"""Rows of a file as predictions: labels and scores as `evaluate` wants them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acumen.files.errors import FileError, shorten
from acumen.files.plans import Plan, ScoreKind
from acumen.files.sources import Block, text_of, whole


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
        """Keywords for `acumen.evaluate`, or for `acumen.evaluate_pairs`."""
        given: dict[str, Any] = {"sample_weight": self.sample_weight}
        if self.pairs:
            return {"correct": self.y, "confidence": self.scores, **given}
        return {"y": self.y, self.kind: self.scores, "classes": self.classes, **given}


def found_in(
    path: Path,
    plan: Plan,
    block: Block,
    classes: tuple[Any, ...] | None,
    start: int,
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
    return text_of(said).astype(str) == text_of(true).astype(str)


def _labels(path: Path, block: Block, name: str | None, start: int) -> NDArray[Any]:
    assert name is not None
    values = whole(block[name])
    missing = _missing(values)
    if missing.any():
        row = int(np.argmax(missing.reshape(len(values), -1).any(axis=1)))
        raise FileError(path, _off(name, start + row))
    return text_of(values) if values.dtype.kind == "S" else values


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    if values.dtype.kind in "biuf":
        return np.isnan(values)
    return np.array([value is None for value in values], dtype=bool)


def _off(name: str, row: int) -> str:
    return (
        f"row {row} of {shorten(name)!r} is NaN, missing or not a number; drop such "
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
            f"labels are text ({shorten(str(y[0]))!r}); name the classes, in the order "
            "of the columns, with --classes A,B,...",
        )
    if classes is None or y.ndim != 1:
        return y, None
    if is_text or not _all_digits(classes):
        return text_of(y), tuple(str(name) for name in classes)
    numbers = tuple(int(name) for name in classes)
    return y, None if numbers == tuple(range(len(numbers))) else numbers


def _all_digits(names: tuple[Any, ...]) -> bool:
    words = [str(name) for name in names]
    return all(word.isascii() and word.isdigit() and len(word) < 10 for word in words)
