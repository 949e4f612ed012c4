"""From columns to an evaluation: sketch, analyses, metrics, one record."""

from __future__ import annotations

from dataclasses import replace

from acumen.analysis import Analysis, analyse, analyse_as_paper, sketch_for
from acumen.columns import Columns
from acumen.estimators import pooling
from acumen.estimators.smooth_curve import smooth_curve
from acumen.results import Decomposition, Evaluation
from acumen.scores import all_metrics, sample_of
from acumen.settings import Settings
from acumen.sums import Sums
from acumen.uncertainty.decomposition_intervals import gap_interval, with_clusters
from acumen.uncertainty.standard_errors import Index


def evaluate_columns(
    columns: Columns,
    settings: Settings,
    name: str,
    target: str,
    k: int,
    sketch: Sums | None = None,
    clusters: Index | None = None,
    *,
    exact: bool = True,
    keep: bool = True,
) -> Evaluation:
    """Evaluate rows already reduced to columns.

    If `sketch` is given, it is used and the columns may stand for more rows than they
    have: the gap, which needs the loss of every row, then has no interval. `exact` says
    whether they hold every distinct confidence, `keep` whether the sums stay with the
    record; those of each class would be too much.
    """
    gap = sketch is None and settings.interval is not None
    sketch = sketch_for(columns, settings) if sketch is None else sketch
    sample = sample_of(columns, sketch, settings, clusters)
    metrics = all_metrics(sample, settings, target, k)
    bins, mass_bins, values = sample.width_bins, sample.mass_bins, sample.values.ordered
    atoms, blocks = pooling.atoms(values), pooling.isotonic_blocks(values)
    distinct = len(values.confidence)
    largest_share = float(values.weight.max() / values.total)
    del sample, values  # as large as the columns, and no longer needed
    factor = k / (k - 1) if settings.counterpart == "tight" else 1.0
    headline = analyse(columns if exact else None, sketch, settings, factor)
    paper = analyse_as_paper(sketch, settings.level)
    return Evaluation(
        name=name,
        n=sketch.weight,
        rows=sketch.rows,
        k=k,
        target=target,
        divergence=settings.main.name,
        decompositions=_with_intervals(
            headline, columns, sketch, settings.level, clusters, gap=gap
        ),
        curves=headline.curves,
        paper_decompositions=paper.decompositions,
        paper_curves=paper.curves,
        metrics=metrics,
        bins=bins,
        mass_bins=mass_bins,
        atoms=atoms,
        isotonic=blocks,
        smooth=smooth_curve(sketch),
        histogram=pooling.histogram(sketch),
        log_odds_histogram=pooling.log_odds_histogram(sketch),
        infinite_rows=float(sketch.infinite.sum(axis=1).max()),
        distinct=distinct,
        largest_share=largest_share,
        settings=settings.to_dict(),
        sketch=sketch if keep else None,
    )


def _with_intervals(
    found: Analysis,
    columns: Columns,
    sketch: Sums,
    level: float,
    clusters: Index | None,
    *,
    gap: bool,
) -> dict[str, Decomposition]:
    """The decompositions, with what clusters and the sharpness gap ask for."""
    decompositions = {}
    for name, plain in found.decompositions.items():
        rest = found.curves[name], columns, sketch.divergences[name], level
        parts = plain if clusters is None else with_clusters(plain, *rest, clusters)
        ends = gap_interval(parts, *rest, clusters) if gap else None
        decompositions[name] = replace(parts, gap=ends)
    return decompositions
