"""One call per model: evaluate predictions, or pairs of correctness and confidence."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from acumen.assembly import evaluate_columns
from acumen.classwise import evaluate_each_class
from acumen.clusters import read_clusters
from acumen.groups import keep_rows
from acumen.predictions import read_predictions
from acumen.results import Evaluation
from acumen.settings import Settings
from acumen.sketches.evaluating import check_alone, evaluate_sketch
from acumen.sketches.sketch import Sketch
from acumen.targets import reduce_to_columns


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
    interval: str | None = "auto",
    resamples: int = 1000,
    rng: int | np.random.Generator = 0,
    cluster: Any = None,
    group: Any = None,
    engine: str = "auto",
) -> Evaluation:
    r"""Evaluate how well calibrated and how sharp a classifier's probabilities are.

    Parameters
    ----------
    y : array_like or Sketch
        Labels: column numbers, names from `classes`, or an n x k matrix of soft labels.
        A `Sketch` stands for all rows added to it, with nothing but options beside it.
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
        kind should be scaled to mean 1, since n enters the width and the intervals;
        these, and the noise taken out of d_CAL, are then right only if weights vary little.
    bins, closed
        Number of equal-width bins, and which end belongs to a bin.
    name : str
        The model's name, for printing.
    preset : {"paper"}, optional
        All choices as published: bandwidth 0.05, left-closed bins, relplot's SmoothECE.
    level : float
        Coverage of the intervals.
    interval : {"auto", None}
        Whether every metric gets an interval, or only those that cost nothing: accuracy,
        mean losses and d_CAL.
    resamples, rng : int, int or numpy.random.Generator
        Number of resamples behind the intervals of calibration errors, and the seed;
        the same seed gives the same intervals.
    cluster : array_like, optional
        The cluster of each row (a patient, a game), if rows depend on each other.
        Values stay the same, intervals are as wide as clusters ask for.
    group : array_like, optional
        The group of each row; each is also evaluated on its own, in ``per_group``.
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
        divergence=divergence,
        bandwidth=bandwidth,
        kernel=kernel,
        boundary=boundary,
        estimator=estimator,
        counterpart=counterpart,
        bins=bins,
        closed=closed,
        level=level,
        interval=interval,
        resamples=resamples,
        rng=rng,
        engine=engine,
        preset=preset,
    ).checked()
    if isinstance(y, Sketch):
        rows = (probs, logits, classes, target, sample_weight, cluster, group)
        check_alone(rows)
        return evaluate_sketch(y, settings, name)
    predictions = read_predictions(
        y,
        probs=probs,
        logits=logits,
        classes=classes,
        target=target,
        sample_weight=sample_weight,
    )
    if predictions.target == "class-wise":
        if cluster is not None or group is not None:
            raise ValueError(
                "cluster= and group= are not for target='class-wise'. Evaluate one class "
                "at a time with target='positive'."
            )
        return evaluate_each_class(predictions, settings, name)
    if counterpart == "tight" and predictions.target != "top-label":
        raise ValueError("counterpart='tight' applies to target='top-label' only.")
    clusters = read_clusters(cluster, predictions)
    columns = reduce_to_columns(predictions, settings.extra, engine)
    target, k = str(predictions.target), predictions.k
    ev = evaluate_columns(columns, settings, name, target, k, clusters=clusters)
    return keep_rows(ev, columns, clusters, predictions, group, settings)


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
    interval: str | None = "auto",
    resamples: int = 1000,
    rng: int | np.random.Generator = 0,
    cluster: Any = None,
    group: Any = None,
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
name, preset, level, interval, resamples, rng, cluster, group
        As in `evaluate`.

    Examples
    --------
    >>> import acumen as ac
    >>> ev = ac.evaluate_pairs([1, 1, 0, 1], [0.9, 0.8, 0.7, 0.8])
    >>> round(ev.metrics["brier"], 4), round(ev.metrics["accuracy"], 2)
    (0.145, 0.75)
    """
    settings = Settings(
        divergence=divergence,
        bandwidth=bandwidth,
        kernel=kernel,
        boundary=boundary,
        estimator=estimator,
        bins=bins,
        closed=closed,
        level=level,
        interval=interval,
        resamples=resamples,
        rng=rng,
        preset=preset,
    ).checked()
    predictions = read_predictions(
        correct, confidence=confidence, sample_weight=sample_weight
    )
    clusters = read_clusters(cluster, predictions)
    columns = reduce_to_columns(predictions, settings.extra)
    ev = evaluate_columns(columns, settings, name, "pairs", 2, clusters=clusters)
    return keep_rows(ev, columns, clusters, predictions, group, settings)
