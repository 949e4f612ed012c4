"""Frames in memory: their columns go to a sketch as arrays, a slice of rows at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from acumen.compiled import fast
from acumen.engines.columns import Arrays, arrays_of, side_by_side
from acumen.engines.filling import contents_of
from acumen.engines.roles import Roles
from acumen.engines.tally import (
    OF_TOP,
    WITH_BRIER,
    WITH_LOG,
    Tally,
    can_tally,
)
from acumen.predictions import read_predictions
from acumen.sketches import values
from acumen.sketches.sketch import Sketch
from acumen.targets import reduce_to_columns

PIECE, LISTS = 1 << 20, 1 << 14
"""Rows that are made arrays at a time: of numbers, and of lists of any length."""

ROWS, NUMBERS = 160_000, 1 << 21
"""Most rows of a slice, more than the distinct confidences that are kept, so that it soon
shows whether they are; and most numbers in its probabilities."""


class Slices:
    """Rows of frames in memory, added one frame after the other.

    `parts` is how many such frames there are in all, as far as is known.
    """

    def __init__(self, roles: Roles, parts: int = 1) -> None:
        self.roles, self.rows, self._parts = roles, 0, parts
        self._sketch = Sketch(target=roles.target, classes=roles.classes)
        self._tally: Tally | None = None
        self._first: list[nw.DataFrame[Any]] = []

    def add(self, frame: nw.DataFrame[Any]) -> None:
        """Add the rows of a frame; the first few wait until they fill a slice."""
        if self.rows:
            self._add_frame(frame)
            return
        self._first.append(frame)
        if sum(map(len, self._first)) >= ROWS:
            self._add_first()

    def _add_first(self) -> None:
        first, self._first = self._first, []
        if len(first) > 1 and all(x.schema == first[0].schema for x in first):
            first = [nw.concat(first)]
        for frame in first:
            self._add_frame(frame)

    def _add_frame(self, frame: nw.DataFrame[Any]) -> None:
        many = max(self.rows + len(frame), self._parts * len(frame))
        # Slices are small; whether numba pays is a matter of all rows.
        compiled = fast.wanted_for_rows("auto", many)
        self._sketch.engine = "numba" if compiled else "numpy"
        for part in _slices(frame, self.roles):
            rows = len(next(iter(part.values())))
            with _rows_of_all(self.rows, rows):
                self._add(part, compiled=compiled)
            self.rows += rows

    def sketch(self) -> Sketch:
        """The sketch of all rows so far."""
        self._add_first()
        contents = self._sketch.contents
        if self._tally is None:
            return self._sketch
        kind = self.roles.kind if contents is None else contents.kind
        return self._sketch + Sketch.of(contents_of(kind, self._tally.grouped()))

    def _add(self, part: Arrays, *, compiled: bool) -> None:
        roles = self.roles
        if compiled and self._is_for_tally(part) and self._tallied(part):
            return
        rest: dict[str, Any] = {
            "sample_weight": _get(part, roles.weight),
            "group": _get(part, roles.group),
        }
        if roles.pairs:
            losses = {name: part[column] for name, column in roles.losses.items()}
            pair = _get(part, roles.correct), _get(part, roles.confidence)
            self._sketch.update_pairs(*pair, loss=losses or None, **rest)
        else:
            probs = side_by_side(part, roles.probs)
            self._sketch.update(_get(part, roles.label), probs=probs, **rest)

    def _is_for_tally(self, part: Arrays) -> bool:
        """Whether rows are plain, and too many confidences distinct to be kept."""
        roles, contents = self.roles, self._sketch.contents
        if roles.weight is not None or roles.group is not None or "log" in roles.losses:
            return False
        if self._tally is not None:
            return True
        if not (
            roles.pairs or can_tally(roles.kind if contents is None else contents.kind)
        ):
            return False
        if contents is None:
            return _many_distinct(_confidence(part, roles))
        return contents.state.values is None

    def _tallied(self, part: Arrays) -> bool:
        """Add the rows to the tally, unless some are not plain, or wrong."""
        tallied = self._tallied_pairs if self.roles.pairs else self._tallied_top
        return tallied(part)

    def _tallied_pairs(self, part: Arrays) -> bool:
        roles = self.roles
        h, hit = part[str(roles.confidence)], part[str(roles.correct)]
        loss = _get(part, roles.losses.get("brier"))
        if self._tally is None:
            self._tally = Tally(WITH_LOG if loss is None else WITH_BRIER)
        return self._tally.add_pairs(h, hit, loss)

    def _tallied_top(self, part: Arrays) -> bool:
        roles, probs = self.roles, side_by_side(part, self.roles.probs)
        predictions = read_predictions(
            part[str(roles.label)],
            probs=probs,
            classes=roles.classes,
            target=roles.target,
        )
        if predictions.soft:
            return False
        if self._tally is None:
            self._tally = Tally(OF_TOP, predictions.k)
        if not self._tally.add_probs(predictions):
            reduce_to_columns(predictions, {}, "numba")  # raises, or they are fine
        return True


def _slices(frame: nw.DataFrame[Any], roles: Roles) -> Iterator[Arrays]:
    lists = any(isinstance(frame.schema[x], nw.List | nw.Array) for x in roles.probs)
    rows = LISTS if lists else PIECE
    step = min(ROWS, NUMBERS // max(len(roles.probs), 1))
    for first in range(0, len(frame), rows):
        piece = frame[first : first + rows] if len(frame) > rows else frame
        arrays = arrays_of(piece, roles.names)
        for start in range(0, len(piece), step):
            yield {name: x[start : start + step] for name, x in arrays.items()}


def _confidence(part: Arrays, roles: Roles) -> NDArray[Any]:
    """The confidence of each row, or the largest of its probabilities."""
    if roles.pairs:
        return part[str(roles.confidence)]
    return np.maximum.reduce([part[name] for name in roles.probs])


def _many_distinct(column: NDArray[Any]) -> bool:
    """Whether there are more distinct numbers than a sketch keeps."""
    most = values.MOST_VALUES
    return len(column) > most and len(np.unique(column)) > most


def _get(part: Arrays, name: str | None) -> NDArray[Any] | None:
    return None if name is None else part[name]


@contextmanager
def _rows_of_all(start: int, count: int) -> Iterator[None]:
    """Errors that name a row of a slice name its number among all rows instead."""
    try:
        yield
    except ValueError as error:
        said = str(error)
        if (number := re.search(r"\brow (\d+)", said)) is None:
            raise
        row = f"row {start + int(number[1])}"
        said = said[: number.start()] + row + said[number.end() :]
        said = re.sub(
            r"of \d+ rows are", f"of rows {start} to {start + count - 1} are", said
        )
        raise ValueError(said) from error
