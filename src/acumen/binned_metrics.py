"""Binned metrics as functions of labels and scores.

All take ``y`` and exactly one of ``probs=``, ``logits=`` and ``confidence=``, as the
functions of `acumen.metrics` do.
"""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import check_choice
from acumen.blocks import log_probabilities
from acumen.estimators import bins as binning
from acumen.grid import cell_of
from acumen.inputs import Scores, read, read_given, takes_scores, with_target
from acumen.targets import each_class, reduce_to_columns, spell_out


@takes_scores
def ece(
    y: Any,
    *,
    bins: int | str = 15,
    strategy: str = "width",
    norm: float | str = 1,
    debias: bool = False,
    closed: str = "right",
    **given: Unpack[Scores],
) -> float:
    r"""Expected calibration error over bins.

    Parameters
    ----------
    y : array_like
        Labels, or correctness if ``confidence=`` is given.
    bins : int, "cube-root" or "sweep"
        Number of bins; the cube root of n; or the most equal-mass bins whose
        accuracies increase (Roelofs et al. 2022).
    strategy : {"width", "mass"}
        Bins of equal width or of equal weight. Ties are never split.
    norm : float or "max"
        q of the L^q mean, whose q-th root is returned.
    debias : bool
        Subtract the sampling variance of each bin (``norm=2`` only; Kumar et al. 2019).
    closed : {"right", "left"}
        Which end of an equal-width bin belongs to it; 0 and 1 are always inside.
    **given
        One of ``probs=``, ``logits=`` and ``confidence=``, and optionally ``target=``,
        ``classes=`` and ``sample_weight=``, as in `acumen.evaluate`.

    Examples
    --------
    >>> import acumen as ac
    >>> round(ac.ece([0, 0, 1, 1], probs=[0.25, 0.25, 0.75, 0.75], bins=2), 4)
    0.25
    """
    columns = read(y, given)[1]
    found = binning.find_bins(columns, bins, strategy, closed)
    return binning.binned_error(found, norm, debias=debias)


@takes_scores
def ace(
    y: Any, *, bins: int = 15, closed: str = "right", **given: Unpack[Scores]
) -> float:
    """Average calibration error: the plain mean over equal-width bins that hold rows.

    This is netcal's and the paper's ACE. The "adaptive" error of other authors is
    ``ece(strategy="mass")``.

    Examples
    --------
    >>> import acumen as ac
    >>> p = [[0.9, 0.05, 0.05]] * 3 + [[0.3, 0.4, 0.3]]
    >>> round(ac.ace([0, 0, 1, 2], probs=p, bins=4), 5)
    0.31667
    """
    columns = read(y, given)[1]
    return binning.average_error(binning.find_bins(columns, bins, "width", closed))


@takes_scores
def mce(
    y: Any,
    *,
    bins: int | str = 15,
    strategy: str = "width",
    closed: str = "right",
    **given: Unpack[Scores],
) -> float:
    """Maximum calibration error: the largest over bins.

    Examples
    --------
    >>> import acumen as ac
    >>> p = [[0.9, 0.05, 0.05]] * 3 + [[0.3, 0.4, 0.3]]
    >>> round(ac.mce([0, 0, 1, 2], probs=p, bins=4), 4)
    0.4
    """
    return ece(y, bins=bins, strategy=strategy, norm="max", closed=closed, **given)


@takes_scores
def classwise_ece(
    y: Any,
    *,
    bins: int = 15,
    strategy: str = "width",
    norm: float | str = 1,
    closed: str = "right",
    reduce: str = "mean",
    **given: Unpack[Scores],
) -> Any:
    """ECE of each class's probability against that class, averaged over classes.

    ``reduce="none"`` returns one number per class, as an array.

    Examples
    --------
    >>> import acumen as ac
    >>> p = [[0.8, 0.2], [0.8, 0.2], [0.3, 0.7]]
    >>> ac.classwise_ece([0, 1, 1], probs=p, bins=2, reduce="none").round(3)
    array([0.3, 0.3])
    """
    check_choice(reduce, "reduce", ("mean", "none"))
    given = with_target(given, "class-wise", "classwise_ece")
    predictions = read_given(y, given)
    errors = [
        binning.binned_error(binning.find_bins(columns, bins, strategy, closed), norm)
        for columns in each_class(predictions)
    ]
    return np.array(errors) if reduce == "none" else float(np.mean(errors))


@takes_scores
def top_label_ece(
    y: Any,
    *,
    bins: int = 15,
    norm: float | str = 1,
    closed: str = "right",
    reduce: str = "weighted",
    **given: Unpack[Scores],
) -> float:
    """ECE within each predicted class (Gupta and Ramdas 2022).

    ``reduce="weighted"`` weighs classes by how often they are predicted;
    ``reduce="mean"`` takes the plain mean over predicted classes, as MAPIE does.

    Examples
    --------
    >>> import acumen as ac
    >>> p = [[0.8, 0.1, 0.1], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1]]
    >>> round(ac.top_label_ece([0, 1, 1], probs=p), 4)
    0.2667
    """
    check_choice(reduce, "reduce", ("weighted", "mean"))
    given = with_target(given, "top-label", "top_label_ece")
    predictions, columns = read(y, given)
    assert columns.predicted is not None
    errors, weight = binning.errors_within(
        columns, columns.predicted, predictions.k, bins, norm, closed
    )
    if reduce == "mean":
        return float(errors[weight > 0].mean())
    return float((errors * weight).sum() / weight.sum())


@takes_scores
def full_vector_ece(y: Any, *, bins: int = 10, **given: Unpack[Scores]) -> float:
    """Binned calibration error of the whole probability vector (Widmann et al. 2019).

    Rows are grouped by the bins of all their coordinates; the error is the weighted
    mean over groups of half the L1 distance between mean probabilities and labels.
    With many classes nearly every row is a group of its own.

    Examples
    --------
    >>> import acumen as ac
    >>> p = [[0.8, 0.1, 0.1], [0.8, 0.1, 0.1]]
    >>> round(ac.full_vector_ece([0, 1], probs=p), 4)
    0.4
    """
    given = with_target(given, "top-label", "full_vector_ece")
    bins = binning.count_bins(bins, 1)
    predictions = read_given(y, given)
    if predictions.scores.ndim == 1:
        predictions = spell_out(predictions)
    reduce_to_columns(predictions)  # checks every row that counts
    weight = np.ones(len(predictions.scores))
    if predictions.weight is not None:
        weight = predictions.weight
    counts = weight > 0
    scores, labels = predictions.scores[counts], predictions.labels[counts]
    with np.errstate(divide="ignore"):
        p = np.exp(log_probabilities(predictions.kind, scores))
    if not predictions.soft:
        labels = np.eye(predictions.k)[labels]
    return _grouped_distance(cell_of(p, bins), labels - p, weight[counts])


def _grouped_distance(
    place: NDArray[Any], residual: NDArray[np.float64], weight: NDArray[np.float64]
) -> float:
    _, group = np.unique(place, axis=0, return_inverse=True)
    sums = np.zeros((group.max() + 1, residual.shape[1]))
    np.add.at(sums, group.ravel(), weight[:, None] * residual)
    return float(0.5 * np.abs(sums).sum() / weight.sum())
