"""From columns to an evaluation: sketch, analyses, metrics, one record."""

from __future__ import annotations

from acumen import bins as binning
from acumen.analysis import analyse, analyse_as_paper, sketch_for
from acumen.columns import Columns
from acumen.ordered import order
from acumen.results import Evaluation
from acumen.scores import all_metrics
from acumen.settings import Settings
from acumen.sketch import Sketch


def evaluate_columns(
    columns: Columns,
    settings: Settings,
    name: str,
    target: str,
    k: int,
    sketch: Sketch | None = None,
) -> Evaluation:
    """Evaluate rows already reduced to columns, and sketched if a sketch is given."""
    sketch = sketch_for(columns, settings) if sketch is None else sketch
    ordered = order(columns)
    bins = binning.width_bins(ordered, settings.bins, settings.closed)
    factor = k / (k - 1) if settings.counterpart == "tight" else 1.0
    metrics = all_metrics(columns, sketch, ordered, bins, settings, target, k)
    distinct = len(ordered.confidence)
    largest_share = float(ordered.weight.max() / ordered.total)
    del ordered  # as large as the columns, and no longer needed
    headline = analyse(columns, sketch, settings, factor)
    paper = analyse_as_paper(sketch, settings.level)
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
        infinite_rows=sketch.infinite_weight("log"),
        distinct=distinct,
        largest_share=largest_share,
        settings=settings.to_dict(),
    )
