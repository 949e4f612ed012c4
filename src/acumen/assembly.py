"""From columns to an evaluation: sketch, analyses, metrics, one record."""

from __future__ import annotations

import numpy as np

from acumen import bins as binning
from acumen.analysis import Analysis, analyse, analyse_as_paper, sketch_for
from acumen.columns import Columns
from acumen.ordered import order
from acumen.results import Bins, Estimate, Evaluation
from acumen.scores import all_metrics
from acumen.settings import Settings
from acumen.sketch import Sketch


def evaluate_columns(
    columns: Columns, settings: Settings, name: str, target: str, k: int
) -> Evaluation:
    """Evaluate rows already reduced to columns."""
    sketch = sketch_for(columns, settings)
    ordered = order(columns)
    bins = binning.width_bins(columns, settings.bins, settings.closed)
    factor = k / (k - 1) if settings.counterpart == "tight" else 1.0
    headline = analyse(columns, sketch, settings, factor)
    metrics = all_metrics(columns, sketch, ordered, bins, settings, target, k)
    return _record(
        name,
        columns,
        sketch,
        settings,
        target,
        k,
        headline,
        bins,
        metrics,
        distinct=len(ordered.confidence),
    )


def _record(
    name: str,
    columns: Columns,
    sketch: Sketch,
    settings: Settings,
    target: str,
    k: int,
    headline: Analysis,
    bins: Bins,
    metrics: dict[str, Estimate],
    distinct: int,
) -> Evaluation:
    paper = analyse_as_paper(sketch, settings.level)
    infinite = columns.losses["log"] == np.inf
    weight = infinite if columns.weight is None else columns.weight * infinite
    return Evaluation(
        name=name,
        n=sketch.weight,
        rows=sketch.rows,
        k=k,
        target=target,
        divergence=settings.main.name,
        decompositions=headline.decompositions,
        curves=headline.curves,
        paper_decompositions=paper.decompositions,
        paper_curves=paper.curves,
        metrics=metrics,
        bins=bins,
        infinite_rows=float(weight.sum()),
        distinct=distinct,
        settings=settings.to_dict(),
    )
