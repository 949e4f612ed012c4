"""What is in a sketch: the kind of its rows, and their sums, whole and by group."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from acumen.bregman import Divergence
from acumen.columns import Columns
from acumen.groups import MOST_GROUPS
from acumen.predictions import Predictions
from acumen.sketches.state import State
from acumen.targets import each_class

MOST_CLASSES = 200
"""Classes up to which a sketch of each may be kept."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What the rows of a sketch are: only rows of the same kind add up."""

    target: str
    classes: tuple[Hashable, ...]
    divergences: Mapping[str, Divergence]

    def check_fits(self, other: Kind) -> None:
        """Raise unless rows of the other kind may be added."""
        mine, theirs = list(self.divergences), list(other.divergences)
        for what, one, two in (
            ("targets", self.target, other.target),
            ("numbers of classes", len(self.classes), len(other.classes)),
            ("classes", self.classes, other.classes),
            ("scores", mine, theirs),
        ):
            if one != two:
                raise ValueError(
                    f"only rows of the same kind add up in a sketch, and these have "
                    f"different {what}: {one!r} and {two!r}."
                )

    def empty(self) -> State:
        """No rows of this kind yet."""
        predicts = self.target in ("top-label", "class-wise")
        return State.empty(self.divergences, len(self.classes) if predicts else 0)


@dataclass(slots=True, eq=False)
class Contents:
    """Additive sums of rows of one kind.

    `groups` and `per_class` are the same sums for each group, and for each class against
    the rest; `parts` are names of rows that are in, `soft_rows` the weight of rows with
    soft labels.
    """

    kind: Kind
    state: State
    groups: dict[str, State] = field(default_factory=dict)
    per_class: list[State] = field(default_factory=list)
    parts: set[str] = field(default_factory=set)
    soft_rows: float = 0.0

    @classmethod
    def empty(cls, kind: Kind) -> Contents:
        """No rows of this kind yet."""
        found = cls(kind, kind.empty())
        if kind.target == "class-wise":
            _check_classes(len(kind.classes))
            found.per_class = [State.empty(kind.divergences) for _ in kind.classes]
        return found

    def add(
        self, columns: Columns, names: NDArray[np.str_] | None, engine: str
    ) -> None:
        """Add rows; `names` are their groups."""
        new = [] if names is None else np.unique(names).tolist()
        check_groups({*self.groups, *new})
        self.state.add(columns, engine)
        for name in new:
            group = self.groups.setdefault(name, self.kind.empty())
            group.add(columns.take(names == name), engine)

    def add_classes(self, predictions: Predictions, engine: str) -> None:
        """Add the rows of every class against the rest, if these are kept."""
        if self.per_class:
            classes = each_class(predictions)
            for state, columns in zip(self.per_class, classes, strict=True):
                state.add(columns, engine)

    def __add__(self, other: Contents) -> Contents:
        self.kind.check_fits(other.kind)
        _check_parts(self.parts & other.parts)
        groups = {
            name: _sum(self.groups.get(name), other.groups.get(name))
            for name in sorted({*self.groups, *other.groups})
        }
        check_groups(groups)
        per_class = [
            one + two for one, two in zip(self.per_class, other.per_class, strict=True)
        ]
        return Contents(
            self.kind,
            self.state + other.state,
            groups,
            per_class,
            self.parts | other.parts,
            self.soft_rows + other.soft_rows,
        )


def _sum(one: State | None, two: State | None) -> State:
    if one is None or two is None:
        found = two if one is None else one
        assert found is not None
        return found
    return one + two


def _check_parts(both: set[str]) -> None:
    if both:
        first = min(both)
        raise ValueError(
            f"part {first!r} is in both sketches ({len(both)} parts are), and its rows "
            "would count twice. Merge sketches of different parts."
        )


def _check_classes(count: int) -> None:
    if count > MOST_CLASSES:
        raise ValueError(
            f"a sketch of every class takes 4 MB each, and {count} classes are more than "
            f"{MOST_CLASSES}. Use target='top-label', or some classes at a time with "
            "target='positive'."
        )


def check_groups(groups: Collection[str]) -> None:
    """Raise if there are so many groups that they must be something else."""
    if len(groups) > MOST_GROUPS:
        raise ValueError(
            f"group has {len(groups)} distinct values, more than {MOST_GROUPS}; is it a "
            "number of the row? Put similar ones together."
        )
