"""Every class against the rest: one evaluation each, and what they add up to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import Any

import numpy as np

from acumen.analysis import Analysis, analyse, analyse_as_paper, sketch_for
from acumen.assembly import evaluate_columns
from acumen.columns import Columns
from acumen.estimators import pooling
from acumen.estimators.bins import mass_bins
from acumen.estimators.neighbours import cells_of_sketch
from acumen.estimators.smooth_curve import smooth_curve
from acumen.fingerprints import fingerprint
from acumen.ordered import Ordered, gather, starts_of_values
from acumen.predictions import Predictions
from acumen.reduction import fill
from acumen.results import Bins, Curve, Decomposition, Estimate, Evaluation
from acumen.scores import share_of
from acumen.settings import Settings
from acumen.sums import Sums
from acumen.targets import each_class, spell_out


def evaluate_each_class(
    predictions: Predictions, settings: Settings, name: str
) -> Evaluation:
    """Evaluate every class against the rest; the headline adds them up."""
    if settings.counterpart == "tight":
        raise ValueError("counterpart='tight' applies to target='top-label' only.")
    if predictions.scores.ndim == 1:
        predictions = spell_out(predictions)
    out = fill(predictions, settings.extra, settings.engine)
    top = out.columns(predictions.weight)
    plain = replace(settings, interval=None)  # resamples for each class are too much
    per_class: list[Evaluation] = []
    pooled: Sums | None = None
    classes = each_class(predictions, out.columns(None))
    for label, columns in zip(predictions.classes, classes, strict=True):
        sums = sketch_for(columns, settings)
        own = columns, plain, str(label), "positive", predictions.k, sums
        per_class.append(evaluate_columns(*own, keep=False))
        pooled = sums if pooled is None else pooled + sums
    assert pooled is not None
    whole = Whole(
        n=top.total_weight,
        rows=len(top),
        hits=top.mean(top.hit),
        brier=top.mean(top.losses["brier"]),
        nll=top.mean(top.losses["log"]),
        infinite=infinite_weight(top),
    )
    print_of_rows = fingerprint(predictions.labels, predictions.weight)
    found = add_up(per_class, pooled, whole, settings, name)
    return replace(found, fingerprint=print_of_rows, columns=top)


@dataclass(frozen=True, slots=True)
class Whole:
    """Sums over rows that no class has on its own: means of hits and of full losses."""

    n: float
    rows: int
    hits: float
    brier: float
    nll: float
    infinite: float


def add_up(
    per_class: list[Evaluation],
    pooled: Sums,
    whole: Whole,
    settings: Settings,
    name: str,
) -> Evaluation:
    """One record of all classes; `pooled` are the sums of all of them together."""
    cells = cells_of_sketch(pooled)  # the rows of all classes, to 0.02 in log-odds
    values = Ordered.of(cells.h, cells.weight, cells.hits, cells.hits2)
    headline = _added(analyse(None, pooled, settings, 1.0), per_class, paper=False)
    paper = _added(analyse_as_paper(pooled, settings.level), per_class, paper=True)
    return Evaluation(
        name=name,
        n=whole.n,
        rows=whole.rows,
        k=len(per_class),
        target="class-wise",
        divergence=settings.main.name,
        decompositions=headline.decompositions,
        curves=headline.curves,
        paper_decompositions=paper.decompositions,
        paper_curves=paper.curves,
        metrics=_class_metrics(whole, per_class, settings.level),
        bins=_pooled_bins([ev.bins for ev in per_class]),
        mass_bins=mass_bins(values, settings.bins),
        atoms=_pooled_atoms([ev.atoms for ev in per_class]),
        isotonic=pooling.isotonic_blocks(values),
        smooth=smooth_curve(pooled),
        histogram=pooling.histogram(pooled),
        log_odds_histogram=pooling.log_odds_histogram(pooled),
        infinite_rows=whole.infinite,
        distinct=max(ev.distinct for ev in per_class),
        largest_share=min(ev.largest_share for ev in per_class),
        settings=settings.to_dict(),
        per_class=tuple(per_class),
    )


def infinite_weight(top: Columns) -> float:
    """Weight of rows whose log loss is infinite."""
    infinite = np.isposinf(top.losses["log"])
    weighted = infinite if top.weight is None else top.weight * infinite
    return float(weighted.sum())


def _added(pooled: Analysis, per_class: list[Evaluation], *, paper: bool) -> Analysis:
    """Sum the decompositions over classes; keep the curve of all classes together."""
    decompositions = {}
    for name in pooled.decompositions:
        parts = [
            (ev.paper_decompositions if paper else ev.decompositions)[name]
            for ev in per_class
        ]
        decompositions[name] = Decomposition(
            name,
            Estimate(sum(float(part.total) for part in parts)),
            Estimate(sum(float(part.calibration) for part in parts)),
            parts[0].estimator,
            parts[0].kernel,
            parts[0].boundary,
            parts[0].bandwidth,
        )
    # The classes share their rows, so a band of all of them together would be too narrow.
    curves = {name: replace(c, **_no_band(c)) for name, c in pooled.curves.items()}
    return Analysis(decompositions, curves)


def _no_band(curve: Curve) -> dict[str, Any]:
    nothing = np.full_like(curve.confidence, np.nan)
    return {"low": nothing, "high": nothing}


def _class_metrics(
    whole: Whole, per_class: list[Evaluation], level: float
) -> dict[str, Estimate]:
    """Full losses and accuracy of the model; means over classes of everything else."""
    means = {
        name: Estimate(_mean([ev.metrics[name] for ev in per_class]))
        for name in ("ece", "ace", "smooth_ece", "ece_mass", "ks_error", "auroc")
    }
    return {
        "accuracy": share_of(whole.hits, whole.n, level),
        "nll": Estimate(whole.nll),
        "brier": Estimate(whole.brier),
        **means,
        "mce": Estimate(max(ev.metrics["mce"] for ev in per_class)),
    }


def _mean(values: Sequence[float]) -> float:
    """Mean over classes where the number is defined (a class may never occur)."""
    defined = [value for value in values if not isnan(value)]
    return sum(defined) / len(defined) if defined else nan


def _pooled_bins(bins: list[Bins]) -> Bins:
    count = np.stack([b.count for b in bins])
    total = count.sum(axis=0)
    whole = np.where(total > 0, total, np.nan)
    accuracy = np.stack([b.accuracy for b in bins])
    squares = np.stack([b.variance for b in bins]) + accuracy**2
    h, a, a2 = (
        np.nansum(count * x, axis=0) / whole
        for x in (np.stack([b.confidence for b in bins]), accuracy, squares)
    )
    spread = np.maximum(a2 - a**2, 0.0)
    return Bins(bins[0].lower, bins[0].upper, total, h, a, spread)


def _pooled_atoms(atoms: list[Bins]) -> Bins:
    """Distinct confidences of all classes together, if each class has few."""
    if any(len(a.count) == 0 for a in atoms):
        return Bins(*np.empty((6, 0)))
    h, n, m, v = (
        np.concatenate([getattr(a, name) for a in atoms])
        for name in ("confidence", "count", "accuracy", "variance")
    )
    index = np.argsort(h, kind="stable")
    h, n, m, v = h[index], n[index], m[index], v[index]
    starts = starts_of_values(h)
    gathered = gather(starts, n, n * m, n * (v + m * m))
    return pooling.atoms(Ordered.of(h[starts], *gathered))
