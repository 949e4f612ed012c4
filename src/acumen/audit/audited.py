"""A comparison under audit, and how far its models are apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

from acumen.comparison import Comparison
from acumen.contrasts.differences import (
    independent_difference,
    is_clear,
    paired_difference,
    rows_of,
    same_rows,
)
from acumen.contrasts.row_influence import ModelRows
from acumen.measures import MEASURES
from acumen.results import Estimate, Evaluation


@dataclass(frozen=True, eq=False)
class Audited:
    """A comparison, and the differences of its models, found once."""

    comparison: Comparison

    @cached_property
    def paired(self) -> bool:
        """Whether all models have the same rows, still at hand."""
        first = self.comparison[0]
        return all(same_rows(ev, first) for ev in self.comparison)

    @cached_property
    def rows(self) -> dict[str, ModelRows]:
        """Rows of each model, by name, if they are paired."""
        return {ev.name: rows_of(ev) for ev in self.comparison}

    def difference(self, ev: Evaluation, base: Evaluation, key: str) -> Estimate:
        """One model less another in one column."""
        if self.paired:
            mine, theirs = self.rows[ev.name], self.rows[base.name]
            return paired_difference(mine, theirs, MEASURES[key])
        return independent_difference(ev, base, MEASURES[key])

    def clearly_better(self, ev: Evaluation, base: Evaluation, key: str) -> bool:
        """Whether a column says so, with an interval to show for it."""
        found = self.difference(ev, base, key)
        better = found > 0 if MEASURES[key].higher_is_better else found < 0
        return better and is_clear(found)

    def pairs(self) -> Iterator[tuple[Evaluation, Evaluation]]:
        """Every ordered pair of models."""
        return permutations(self.comparison.evaluations, 2)
