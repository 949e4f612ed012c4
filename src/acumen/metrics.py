"""Each metric as a function of labels and scores.

All take ``y`` and exactly one of ``probs=``, ``logits=`` and ``confidence=`` (with
which ``y`` is the correctness), and optionally ``target=``, ``classes=`` and
``sample_weight=``, as `acumen.evaluate` does.
"""

from __future__ import annotations

from typing import Any, Unpack

from acumen import analysis, scores
from acumen.arrays import as_number, check_choice
from acumen.bregman import find_divergence
from acumen.estimators import cumulative, smoothing
from acumen.inputs import Scores, read, takes_scores, target_of
from acumen.ordered import order
from acumen.results import Corp, Estimate
from acumen.settings import Settings
from acumen.sums import Sums


@takes_scores
def accuracy(y: Any, **given: Unpack[Scores]) -> float:
    """Share of rows whose predicted class came true.

    Ties go to the lower class for the top label; for ``target="positive"`` a probability
    of one half predicts the positive class.

    Examples
    --------
    >>> import acumen as ac
    >>> ac.accuracy([0, 1, 1], probs=[[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]],
    ...             target="top-label")
    0.6666666666666666
    """
    predictions, columns = read(y, given)
    return float(scores.accuracy(columns, target_of(predictions), 0.95))


@takes_scores
def brier(y: Any, **given: Unpack[Scores]) -> float:
    """Mean squared distance to the label, summed over classes (0..2).

    For ``target="positive"`` and confidences it is one-dimensional (0..1), half of the
    two-class sum.

    Examples
    --------
    >>> import acumen as ac
    >>> round(ac.brier([1, 0], probs=[0.75, 0.25]), 4)
    0.0625
    """
    return _mean_loss(y, "brier", given)


@takes_scores
def nll(y: Any, **given: Unpack[Scores]) -> float:
    """Mean negative log-likelihood, natural log; infinite if a label had probability 0.

    Examples
    --------
    >>> import acumen as ac
    >>> round(ac.nll([1, 0], probs=[0.75, 0.25]), 4)
    0.2877
    >>> ac.nll([1, 0], probs=[0.0, 0.25])
    inf
    """
    return _mean_loss(y, "log", given)


def _mean_loss(y: Any, name: str, given: Scores) -> float:
    columns = read(y, given)[1]
    return columns.mean(columns.loss(find_divergence(name)))


@takes_scores
def smooth_ece(
    y: Any,
    *,
    bandwidth: float | None = None,
    compat: str | None = None,
    **given: Unpack[Scores],
) -> float:
    """SmoothECE (Błasiok and Nakkiran 2024): ECE of the smoothed residual.

    Parameters
    ----------
    y : array_like
        Labels, or correctness if ``confidence=`` is given.
    bandwidth : float, optional
        By default the one that equals its own error, which has no knob to turn.
    compat : {"relplot"}, optional
        Reproduce relplot 1.0, which counts confidences of exactly 0 and 1 half.
    **given
        One of ``probs=``, ``logits=`` and ``confidence=``, and optionally ``target=``,
        ``classes=`` and ``sample_weight=``, as in `acumen.evaluate`.

    Examples
    --------
    >>> import acumen as ac
    >>> round(ac.smooth_ece([1, 1, 0, 0], confidence=[1.0, 1.0, 0.5, 0.5]), 3)
    0.25
    """
    check_choice(compat, "compat", (None, "relplot"))
    if bandwidth is not None:
        _check_width(bandwidth, 1e-4, 10.0)
    columns = read(y, given)[1]
    if compat == "relplot":
        return smoothing.relplot_error(columns, bandwidth)[0]
    return smoothing.smooth_error(columns, bandwidth)


@takes_scores
def logit_smoothed_ece(
    y: Any, *, bandwidth: float = 1 / 15, **given: Unpack[Scores]
) -> float:
    """ECE after Gaussian noise on the log-odds (Chidambaram et al. 2024).

    Continuous in the scores, unlike ECE; `bandwidth` is the noise's standard deviation
    in units of log-odds.

    Examples
    --------
    >>> import acumen as ac
    >>> round(ac.logit_smoothed_ece([1, 1, 1, 0], confidence=[0.9] * 4), 3)
    0.15
    """
    _check_width(bandwidth, 1e-3, 100.0)
    return smoothing.logit_smoothed_error(read(y, given)[1], bandwidth)


def _check_width(bandwidth: Any, least: float, most: float) -> None:
    if not least <= as_number(bandwidth) <= most:
        raise ValueError(
            f"bandwidth must be a number from {least:g} to {most:g}, got {bandwidth!r}."
        )


@takes_scores
def ks_error(y: Any, **given: Unpack[Scores]) -> float:
    """KS calibration error: the largest cumulative difference of hits and confidence.

    Rows are taken in order of confidence, from the origin on; ties are one step.

    Examples
    --------
    >>> import acumen as ac
    >>> round(ac.ks_error([0, 1, 1], confidence=[0.2, 0.5, 0.9]), 4)
    0.1333
    """
    return cumulative.ks_error(order(read(y, given)[1]))


@takes_scores
def confidence_gap(y: Any, **given: Unpack[Scores]) -> float:
    """Mean confidence minus share of hits: positive if over-confident.

    Examples
    --------
    >>> import acumen as ac
    >>> round(ac.confidence_gap([1, 0], confidence=[0.9, 0.9]), 4)
    0.4
    """
    columns = read(y, given)[1]
    return columns.mean(columns.confidence - columns.hit)


@takes_scores
def auroc(y: Any, **given: Unpack[Scores]) -> float:
    """Area under the ROC curve of confidence against hits; NaN if all or none hit.

    For the top label it says how well confidence tells right from wrong predictions; it
    is not the one-against-rest AUC of the classes.

    Examples
    --------
    >>> import acumen as ac
    >>> ac.auroc([0, 1, 1], confidence=[0.2, 0.5, 0.9])
    1.0
    """
    return cumulative.auroc(order(read(y, given)[1]))


@takes_scores
def corp(y: Any, *, divergence: str = "brier", **given: Unpack[Scores]) -> Corp:
    """CORP decomposition: score = miscalibration - discrimination + uncertainty.

    The score is the one-dimensional one of the confidence problem, recalibrated by
    isotonic regression on the same rows (Dimitriadis et al. 2021).

    Examples
    --------
    >>> import acumen as ac
    >>> parts = ac.corp([0, 0, 0, 1, 1, 1], confidence=[0.4, 0.3, 0.2, 0.1, 0.5, 0.9])
    >>> round(parts.miscalibration, 4), round(parts.discrimination, 4)
    (0.1017, 0.125)
    """
    check_choice(divergence, "divergence", ("brier", "log"))
    columns = read(y, given)[1]
    sketch = Sums({divergence: find_divergence(divergence)}).update(columns)
    return scores.corp(sketch, order(columns), divergence)


@takes_scores
def calibration_error(
    y: Any,
    *,
    divergence: Any = "brier",
    bandwidth: float | str = "auto",
    kernel: str = "gaussian",
    boundary: str = "none",
    estimator: str = "direct",
    level: float = 0.95,
    **given: Unpack[Scores],
) -> Estimate:
    """d_CAL, the calibration error that belongs to a divergence.

    Options are those of `acumen.evaluate`. With ``bandwidth="auto"`` every distinct
    confidence is a neighbour of its own, where `evaluate` rounds to a grid from 2000 of
    them on (a change far smaller than the interval); the cost grows like n^1.5.

    Examples
    --------
    >>> import acumen as ac
    >>> d = ac.calibration_error([1, 0, 1, 0], confidence=[0.9, 0.9, 0.1, 0.1],
    ...                          bandwidth=0.05)
    >>> round(d, 4)
    0.16
    """
    settings = Settings(
        divergence=divergence,
        bandwidth=bandwidth,
        kernel=kernel,
        boundary=boundary,
        estimator=estimator,
        level=level,
    ).checked()
    columns = read(y, given, settings.extra)[1]
    return analysis.calibration_of_rows(columns, settings)
