"""From sums to an evaluation: the same record as from the rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from operator import add

import numpy as np

from acumen.analysis import total_loss
from acumen.assembly import evaluate_columns
from acumen.classwise import Whole, add_up
from acumen.predictions import check_weight_scale
from acumen.results import Bins, Estimate, Evaluation
from acumen.settings import Settings
from acumen.sketches.contents import Contents
from acumen.sketches.sketch import Sketch
from acumen.sketches.state import CLASS_BINS, State
from acumen.sketches.values import MOST_VALUES
from acumen.sums import Sums


def evaluate_sketch(sketch: Sketch, settings: Settings, name: str) -> Evaluation:
    """The record of all rows in a sketch."""
    contents = sketch.checked()
    if contents is None:
        raise ValueError("the sketch holds no row of positive weight; nothing is left.")
    kind = contents.kind
    if settings.main.name not in kind.divergences:
        raise ValueError(
            f"the sketch holds {', '.join(kind.divergences)}, not "
            f"{settings.main.name!r}. Give it to Sketch(divergence=...) before any rows."
        )
    if settings.counterpart == "tight" and kind.target != "top-label":
        raise ValueError("counterpart='tight' applies to target='top-label' only.")
    cells = contents.state.cells
    check_weight_scale(float(cells["weight_0"].sum()), cells.rows)
    if kind.target == "class-wise":
        return _each_class(contents, settings, name)
    found = _evaluate(contents.state, contents, settings, name)
    groups = {
        group: _evaluate(state, contents, settings, name)
        for group, state in sorted(contents.groups.items())
    }
    return replace(found, per_group=groups, soft_rows=contents.soft_rows)


def check_alone(rows: Iterable[object]) -> None:
    """Raise if rows, or what belongs to rows, are given beside a sketch."""
    if any(given is not None for given in rows):
        raise TypeError(
            "a sketch already holds its rows: give probs, logits, classes, target, "
            "sample_weight and group to Sketch and its update; cluster= needs the rows."
        )


def _evaluate(
    state: State, contents: Contents, settings: Settings, name: str
) -> Evaluation:
    target, k = contents.kind.target, len(contents.kind.classes)
    columns, exact = state.columns(cut=settings.adaptive), state.exact
    own = columns, settings, name, target, k, state.cells.sums()
    found = evaluate_columns(*own, exact=exact)
    metrics = dict(found.metrics)
    if not columns.hard and settings.interval is not None:
        metrics["unc"] = Estimate(metrics["unc"])  # it needs fourth powers of the hits
    if (error := _top_label_error(state, settings)) is not None:
        metrics["top_label_ece"] = Estimate(error)
    found = replace(found, metrics=metrics)
    if exact:
        return found
    return replace(
        found, distinct=min(MOST_VALUES + 1, found.rows), atoms=Bins(*np.empty((6, 0)))
    )


def _top_label_error(state: State, settings: Settings) -> float | None:
    """The error within bins of each predicted class, if bins are whole ones of ours."""
    if state.within is None or CLASS_BINS % settings.bins or settings.closed != "right":
        return None
    each = state.within.reshape(len(state.within), settings.bins, -1).sum(axis=2)
    return float(np.abs(each).sum() / state.cells["weight_0"].sum())


def _each_class(contents: Contents, settings: Settings, name: str) -> Evaluation:
    classes, plain = contents.kind.classes, replace(settings, interval=None)
    per_class, sums = [], []
    for label, state in zip(classes, contents.per_class, strict=True):
        columns = state.columns(cut=settings.adaptive)
        sums.append(state.cells.sums())
        own = columns, plain, str(label), "positive", len(classes), sums[-1]
        per_class.append(evaluate_columns(*own, exact=state.exact, keep=False))
    whole = _whole(contents.state.cells.sums())
    found = add_up(per_class, reduce(add, sums), whole, settings, name)
    return replace(found, soft_rows=contents.soft_rows)


def _whole(sums: Sums) -> Whole:
    n = sums.weight
    return Whole(
        n=n,
        rows=sums.rows,
        hits=float(sums.moments[1, 0].sum()) / n,
        brier=float(total_loss(sums, "brier", 0.95)),
        nll=float(total_loss(sums, "log", 0.95)),
        infinite=sums.infinite_weight("log"),
    )
