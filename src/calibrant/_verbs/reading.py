"""The sample behind what a verb was given: rows, a sketch, or an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant._base.checks import check_text
from calibrant._base.evaluation import Evaluation
from calibrant._inputs.options import Scores, Settings, read_given, target_of
from calibrant._inputs.predictions import groups_of_clusters, read_clusters
from calibrant._rows.reduce import reduce_to_columns
from calibrant._sketch.sketch import Sketch
from calibrant._stats.sample import Sample
from calibrant._verbs.compare import check_level, rows_of
from calibrant._verbs.evaluate import check_alone, sample_of_cells
from calibrant._verbs.features import check_rows


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """A sample, the name of its model, and how many examples it stands for."""

    sample: Sample
    name: str
    n: float

    @property
    def size(self) -> dict[str, Any]:
        """What a record says of its size; groups of a sketch may hold several clusters."""
        own, sums = self.sample.clusters, self.sample.cells.clusters
        return {
            "n": self.n,
            "n_clusters": None if own is None else int(own.max()) + 1,
            "folded": sums is not None and sums.folded,
        }


def examples_of(found: Any) -> str:
    """How many examples a record is of, and in how many clusters, as `evaluate` says it."""
    said = f"{found.n:,.10g} example{'' if found.n == 1 else 's'}"
    if found.n_clusters is None:
        return said
    return f"{said} in {found.n_clusters:,}{' or more' * found.folded} clusters"


def read_sample(
    y: Any, given: Scores, cluster: Any, name: str | None, level: float
) -> Given:
    """Read labels and scores, or take what a sketch or an evaluation holds."""
    check_level(level)
    check_text("model" if name is None else name, "name")
    settings = Settings(level=level)
    if isinstance(y, Evaluation | Sketch):
        if isinstance(y, Evaluation):
            check_holds({**given, "cluster": cluster})
        check_alone((*given.values(), cluster))
        of = _of_evaluation if isinstance(y, Evaluation) else _of_sketch
        found = of(y, settings)
        return found if name is None else replace(found, name=name)
    predictions = read_given(y, given)
    check_rows(y, given, cluster=cluster)
    numbers, groups = read_clusters(cluster, predictions)
    columns = reduce_to_columns(predictions)
    about = settings, target_of(predictions), predictions.k, numbers, groups
    sample = Sample.of_rows(columns, *about)
    return Given(sample, name or "model", columns.count)


def check_holds(beside: Mapping[str, Any]) -> None:
    """Raise if rows, or what belongs to rows, are given beside an evaluation."""
    for name, given in beside.items():
        if given is not None:
            raise TypeError(
                f"an Evaluation already holds its rows: leave {name}= out, or give labels "
                "in its place."
            )


def _of_evaluation(ev: Any, settings: Settings) -> Given:
    if ev.columns is None:
        raise ValueError(
            f"the rows of {ev.name!r} are gone: it was read from JSON, made of a sketch, or "
            "is one class of a class-wise evaluation. Give the rows (of a class, its own "
            "column of probs), or the sketch itself."
        )
    return Given(sample_behind(ev, settings), ev.name, ev.n)


def sample_behind(ev: Evaluation, settings: Settings) -> Sample:
    """The examples of an evaluation, or else its sums, with other settings."""
    if ev.columns is None:
        return sample_of_cells(ev.sketch, settings, ev.target, ev.k)
    sample = replace(rows_of(ev).sample, settings=settings)
    if (own := sample.clusters) is not None:
        every = np.arange(int(own.max()) + 1, dtype=np.uint64)
        sample = replace(sample, cluster_groups=groups_of_clusters(every)[own])
    return sample


def _of_sketch(sketch: Any, settings: Settings) -> Given:
    kind, cells = sketch.checked(), sketch.cells
    if kind is None:
        raise ValueError("the sketch holds no row of positive weight; nothing is left.")
    sample = sample_of_cells(cells, settings, kind.target, len(kind.classes) or None)
    return Given(sample, "model", sample.cells.count)
