"""One call per model: evaluate predictions, or pairs of correctness and confidence."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from acumen import bins as binning
from acumen.analysis import Analysis, analyse, analyse_as_paper, sketch_for
from acumen.columns import Columns
from acumen.ordered import order
from acumen.predictions import Predictions, read_predictions
from acumen.reduction import reduce_rows
from acumen.results import Bins, Decomposition, Estimate, Evaluation
from acumen.scores import accuracy, all_metrics
from acumen.settings import Settings
from acumen.sketch import Sketch
from acumen.targets import each_class, reduce_to_columns, spell_out


def evaluate(
    y: Any,
    *,
    probs: Any = None,
    logits: Any = None,
    classes: Sequence[Hashable] | None = None,
    target: str | None = None,
    divergence: Any = "brier",
    bandwidth: float | str = "auto",
    kernel: str = "gaussian",
    boundary: str = "none",
    estimator: str = "direct",
    counterpart: str = "paper",
    sample_weight: Any = None,
    bins: int = 15,
    closed: str = "right",
    name: str = "model",
    preset: str | None = None,
    level: float = 0.95,
    engine: str = "auto",
) -> Evaluation:
    r"""Evaluate how well calibrated and how sharp a classifier's probabilities are.

    Parameters
    ----------
    y : array_like
        Labels: column numbers, names from `classes`, or an n x k matrix of soft labels.
    probs, logits : array_like
        Exactly one of them: n x k, or 1-D for the positive class of a binary problem.
    classes : sequence, optional
        Names of the classes in column order, if `y` holds names.
    target : {"top-label", "positive", "class-wise"}, optional
        What is asked of each row: is the predicted class as likely as claimed, is the
        positive class, is each class. Two columns need it said; 1-D scores are
        ``"positive"``, three columns or more ``"top-label"``.
    divergence : str or Divergence
        The headline's divergence: ``"brier"`` (summed over classes, 0..2), ``"log"``,
        or your own.
    bandwidth : "auto" or float
        ``"auto"`` gives the debiased adaptive estimate with its interval; a number the
        paper's Nadaraya-Watson estimate, with `kernel` (``"gaussian"`` or
        ``"epanechnikov"``), `boundary` (``"none"`` or ``"reflect"``) and `estimator`
        (``"direct"``, the authors' code, or ``"plugin"``, their Theorem).
    counterpart : {"paper", "tight"}
        ``"tight"`` scales the Brier calibration error of the top label by k / (k - 1),
        the largest factor for which it stays below the full calibration error.
    sample_weight : array_like, optional
        Frequency weights: a row of weight 2 counts as two rows. Weights of another
        kind should be scaled to mean 1, since n enters the width and the intervals.
    bins, closed
        Number of equal-width bins, and which end belongs to a bin.
    name : str
        The model's name, for printing.
    preset : {"paper"}, optional
        All choices as published: bandwidth 0.05, left-closed bins, relplot's SmoothECE.
    level : float
        Coverage of the intervals.
    engine : {"auto", "numpy", "numba"}
        What reduces the rows; results agree to the precision of the input.

    Returns
    -------
    Evaluation
        Decomposition, curve, bins and metrics; print it to read it.

    Examples
    --------
    >>> import numpy as np, acumen as ac
    >>> rng = np.random.default_rng(0)
    >>> z = 3 * rng.normal(size=(2000, 4))
    >>> y = (z / 3 + rng.gumbel(size=z.shape)).argmax(axis=1)    # over-confident by 3
    >>> ev = ac.evaluate(y, logits=z)
    >>> d = ev.decomposition
    >>> bool(abs(d.total - (d.calibration + d.sharpness_gap)) < 1e-12)
    True
    >>> ev.metrics["confidence_gap"] > 0.2
    True
    """
    settings = Settings(
        divergence,
        bandwidth,
        kernel,
        boundary,
        estimator,
        counterpart,
        bins,
        closed,
        level,
        engine,
        preset,
    ).checked()
    predictions = read_predictions(
        y,
        probs=probs,
        logits=logits,
        classes=classes,
        target=target,
        sample_weight=sample_weight,
    )
    if predictions.target == "class-wise":
        return _evaluate_each_class(predictions, settings, name)
    if counterpart == "tight" and predictions.target != "top-label":
        raise ValueError("counterpart='tight' applies to target='top-label' only.")
    columns = reduce_to_columns(predictions, settings.extra, engine)
    target = str(predictions.target)
    return evaluate_columns(columns, settings, name, target, predictions.k)


def evaluate_pairs(
    correct: Any,
    confidence: Any,
    *,
    divergence: Any = "brier",
    bandwidth: float | str = "auto",
    kernel: str = "gaussian",
    boundary: str = "none",
    estimator: str = "direct",
    sample_weight: Any = None,
    bins: int = 15,
    closed: str = "right",
    name: str = "model",
    preset: str | None = None,
    level: float = 0.95,
) -> Evaluation:
    """Evaluate stated confidences against whether they were right.

    This is what language models and forecasters give. The loss is one-dimensional, so
    it says less than the full loss of `evaluate`: a model that is always wrong at
    confidence 0 scores perfectly.

    Parameters
    ----------
    correct : array_like
        Booleans, 0/1, or shares in [0, 1].
    confidence : array_like
        Numbers in [0, 1].
    divergence, bandwidth, kernel, boundary, estimator, sample_weight, bins, closed, \
name, preset, level
        As in `evaluate`.

    Examples
    --------
    >>> import acumen as ac
    >>> ev = ac.evaluate_pairs([1, 1, 0, 1], [0.9, 0.8, 0.7, 0.8])
    >>> round(ev.metrics["brier"], 4), round(ev.metrics["accuracy"], 2)
    (0.145, 0.75)
    """
    settings = Settings(
        divergence,
        bandwidth,
        kernel,
        boundary,
        estimator,
        "paper",
        bins,
        closed,
        level,
        "auto",
        preset,
    ).checked()
    predictions = read_predictions(
        correct, confidence=confidence, sample_weight=sample_weight
    )
    columns = reduce_to_columns(predictions, settings.extra)
    return evaluate_columns(columns, settings, name, "pairs", 2)


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


def _evaluate_each_class(
    predictions: Predictions, settings: Settings, name: str
) -> Evaluation:
    """Evaluate every class against the rest; the headline adds them up."""
    if settings.counterpart == "tight":
        raise ValueError("counterpart='tight' applies to target='top-label' only.")
    if predictions.scores.ndim == 1:
        predictions = spell_out(predictions)
    top = reduce_rows(predictions, settings.extra, settings.engine)
    pooled, per_class = Sketch(settings.divergences), []
    one = replace(settings, engine="auto")
    for label, columns in zip(
        predictions.classes, each_class(predictions, settings.extra), strict=True
    ):
        pooled += sketch_for(columns, replace(settings, bandwidth="auto"))
        per_class.append(
            evaluate_columns(columns, one, str(label), "positive", predictions.k)
        )
    whole = replace(settings, bandwidth="auto")
    headline = _added(analyse(None, pooled, whole, 1.0), per_class, paper=False)
    paper = _added(analyse_as_paper(pooled, settings.level), per_class, paper=True)
    return Evaluation(
        name=name,
        n=top.total_weight,
        rows=len(top),
        k=predictions.k,
        target="class-wise",
        divergence=settings.main.name,
        decompositions=headline.decompositions,
        curves=headline.curves,
        paper_decompositions=paper.decompositions,
        paper_curves=paper.curves,
        metrics=_class_metrics(top, per_class, settings.level),
        bins=_pooled_bins([ev.bins for ev in per_class]),
        infinite_rows=sum(
            top.weight[np.isinf(top.losses["log"])]
            if top.weight is not None
            else np.isinf(top.losses["log"])
        ),
        distinct=max(ev.distinct for ev in per_class),
        settings=settings.to_dict(),
        per_class=tuple(per_class),
    )


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
    return Analysis(decompositions, pooled.curves)


def _class_metrics(
    top: Columns, per_class: list[Evaluation], level: float
) -> dict[str, Estimate]:
    """Full losses and accuracy of the model; means over classes of everything else."""
    means = {
        name: Estimate(float(np.mean([ev.metrics[name] for ev in per_class])))
        for name in ("ece", "ace", "smooth_ece", "ece_mass", "ks_error", "auroc")
    }
    return {
        "accuracy": accuracy(top, "top-label", level),
        "nll": Estimate(top.mean(top.losses["log"])),
        "brier": Estimate(top.mean(top.losses["brier"])),
        **means,
        "mce": Estimate(max(ev.metrics["mce"] for ev in per_class)),
    }


def _pooled_bins(bins: list[Bins]) -> Bins:
    count = np.stack([b.count for b in bins])
    whole = count.sum(axis=0)
    means = [
        np.nansum(count * np.stack(values), axis=0) / np.where(whole > 0, whole, np.nan)
        for values in ([b.confidence for b in bins], [b.accuracy for b in bins])
    ]
    return Bins(bins[0].lower, bins[0].upper, whole, *means)
