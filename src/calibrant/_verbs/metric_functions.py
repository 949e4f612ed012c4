"""Each metric as a function of labels and scores, and as a scorer of scikit-learn.

All take ``y`` and exactly one of ``probs=``, ``logits=`` and ``confidence=`` (with
which ``y`` is the correctness), and optionally ``target=``, ``classes=``,
``sample_weight=`` and ``frequency=``, as `calibrant.evaluate` does. Probabilities may come
second without a keyword, which is how scikit-learn calls a metric.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import wraps
from math import inf
from typing import (
    Any,
    Concatenate,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeVar,
    Unpack,
)

import numpy as np

from calibrant._base.checks import (
    check_choice,
    check_flags,
    check_kind,
    check_number,
    read_strategy,
    shown,
)
from calibrant._base.evaluation import Evaluation
from calibrant._base.later import Named
from calibrant._base.records import FORECASTS, Bins, Corp, Estimate
from calibrant._inputs.arrays import Column, Index, as_scores
from calibrant._inputs.divergences import BRIER, LOG, find_divergence
from calibrant._inputs.options import (
    PAPER_BANDWIDTH,
    Scores,
    Settings,
    check_rng,
    no_option,
    read_given,
    takes_scores,
    target_of,
    with_target,
)
from calibrant._inputs.predictions import Predictions, named_classes
from calibrant._rows.columns import Columns
from calibrant._rows.reduce import each_class, read
from calibrant._sketch.cells import Cells
from calibrant._sketch.grid import cell_of
from calibrant._sketch.ordered import order
from calibrant._stats import bins as binning
from calibrant._stats import decomposition
from calibrant._stats import smooth_ece as smoothing
from calibrant._stats.risk_coverage import Steps
from calibrant._stats.sample import columns_of_predictions
from calibrant._verbs.canonical_calibration_error import read_vectors
from calibrant._verbs.logit_noise import logit_smoothed_error
from calibrant.recalibration._rows import class_names, read_labels

POS_LABEL = """pos_label : hashable, optional
    The positive class of labels that are names, where probabilities are 1-D. Without
    it, probabilities by position have classes in sorted order, as in scikit-learn; those
    by keyword need `pos_label` or `classes`.
"""


P = ParamSpec("P")
Value_co = TypeVar("Value_co", covariant=True)


class Metric(Protocol[P, Value_co]):
    """A function of labels and, by position or keyword, probabilities."""

    __name__: str

    def __call__(
        self, y: Any, probs: Any = None, *args: P.args, **kwargs: P.kwargs
    ) -> Value_co:
        """The metric."""


def _metric(function: Callable[Concatenate[Any, P], Value_co]) -> Metric[P, Value_co]:
    """Let probabilities come second, with labels as scikit-learn has them."""
    taken = inspect.signature(takes_scores(function)).parameters
    if function.__doc__ is not None:
        end = "As in `calibrant.evaluate`.\n"
        more = f"{POS_LABEL}{_shared_options(function)}"
        function.__doc__ = function.__doc__.replace(end, f"{end}{more}", 1)

    @wraps(function)
    def called(y: Any, *probs: Any, pos_label: Any = None, **given: Any) -> Value_co:
        probs = () if probs and probs[0] is None else probs
        if len(probs) > 1 or (probs and "probs" in given):
            raise TypeError(
                f"{function.__name__} takes labels and probabilities by position, and "
                "all else by keyword."
            )
        if probs:
            given["probs"] = probs[0]
        for unknown in (x for x in given if x not in taken):
            raise no_option(unknown, called)
        if pos_label is not None:
            given["classes"] = _with_last(pos_label, y, given)
        elif probs and given.get("classes") is None:
            given["classes"] = _sorted_classes(y, probs[0])
        return function(y, **given)  # type: ignore[call-arg]

    second = taken["probs"].replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
    last = taken["classes"].replace(name="pos_label")
    parameters = [*{**taken, "probs": second, "pos_label": last}.values()]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return called


def _shared_options(function: Callable[..., Any]) -> str:
    """Where the options are described that a metric has in common with others."""
    said = set(re.findall(r"\w+", " ".join(DESCRIBED.findall(function.__doc__ or ""))))
    left = [x for x in inspect.signature(function).parameters if x not in said]
    return "".join(
        f"{', '.join(names)}\n    As in `calibrant.{where}`.\n"
        for where, known in OPTIONS.items()
        if (names := [x for x in left if x in known])
    )


DESCRIBED = re.compile(r"^ *([\w, ]+) : ", re.MULTILINE)
OPTIONS = {
    "ece": ("bins", "strategy", "norm", "debias", "closed"),
    "evaluate": ("divergence", "bandwidth", "kernel", "boundary", "estimator", "level"),
}


def _sorted_classes(y: Any, probs: Any) -> Sequence[Hashable] | None:
    """Names as a frame has them, or in sorted order, as in scikit-learn; or None."""
    labels, shape = read_labels(y), as_scores(probs, "probs").shape
    shares = labels.dtype.kind == "f" or (labels.ndim == 2 and labels.shape[1] > 1)
    if shares:
        return None
    k = 2 if len(shape) == 1 else shape[1]
    return class_names(labels, k, named_classes(probs, y, None, "probs", k))


def _with_last(pos_label: Any, y: Any, given: Mapping[str, Any]) -> list[Hashable]:
    """The two classes of labels, the positive one last."""
    probs, named = given.get("probs"), given.get("classes") is not None
    if probs is None or as_scores(probs, "probs").ndim != 1 or named:
        raise ValueError(
            "pos_label is for 1-D probs, those of the positive class, without classes; "
            "leave it out."
        )
    others = [x for x in np.unique(read_labels(y)).tolist() if x != pos_label]
    if len(others) > 1:
        raise ValueError(
            f"pos_label must be one of the two labels of y, got {shown(pos_label)}, and y "
            f"holds {shown(others[0])} and {shown(others[1])}."
        )
    return [*(others or [None]), pos_label]


@_metric
def accuracy(y: Any, **given: Unpack[Scores]) -> float:
    """Share of rows whose predicted class came true.

    Ties go to the lower class, as in NumPy's ``argmax``: a probability of exactly one half
    does not predict the positive class, nor does it in `predict` of recalibrators.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.accuracy([0, 1, 1], probs=[[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]],
    ...             target="top-label")
    0.6666666666666666
    """
    predictions, columns = read(y, given)
    return columns.mean(columns.correct(target_of(predictions)))


@_metric
def brier(y: Any, *, convention: str | None = None, **given: Unpack[Scores]) -> float:
    """Brier score: mean squared distance to the label, summed over classes (0..2).

    Parameters
    ----------
    convention : {"sum", "half", "mean"}, optional
        ``"sum"`` over the classes (0..2; Brier 1950, and calibrant everywhere),
        ``"half"`` of it (0..1), or the ``"mean"`` over the classes. By default ``"sum"``,
        but ``"half"`` for one probability per example (``target="positive"`` and
        confidences), where it is the squared distance to the outcome; scikit-learn's
        defaults are the same.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.brier([1, 0], probs=[0.75, 0.25]), cal.brier([1, 0], [0.75, 0.25], convention="sum")
    (0.0625, 0.125)
    """
    check_choice(convention, "convention", (None, "sum", "half", "mean"))
    predictions, columns = read(y, given)
    score = columns.mean(columns.loss(BRIER))
    half = target_of(predictions) in (*FORECASTS, "pairs")
    if convention is None or convention == ("half" if half else "sum"):
        return score
    parts = {"sum": 1, "half": 2, "mean": predictions.k}[convention]
    return (2 if half else 1) * score / parts


@_metric
def nll(y: Any, **given: Unpack[Scores]) -> float:
    """Mean negative log-likelihood, natural log; infinite if a label had probability 0.

    Of soft labels it is the divergence from them (Kullback-Leibler), which is the
    cross-entropy less the entropy of the labels: 0 for a forecast equal to them.

    Examples
    --------
    >>> import calibrant as cal
    >>> round(cal.nll([1, 0], probs=[0.75, 0.25]), 4)
    0.2877
    >>> cal.nll([1, 0], probs=[0.0, 0.25])
    inf
    """
    columns = read(y, given)[1]
    return columns.mean(columns.loss(LOG))


@_metric
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
    bandwidth : float, optional
        By default the one that equals its own error, which has no knob to turn.
    compat : {"relplot"}, optional
        Reproduce relplot 1.0, which counts confidences within about 0.001 of 0 and 1 for
        less, down to half at the ends.

    Examples
    --------
    >>> import calibrant as cal
    >>> round(cal.smooth_ece([1, 1, 0, 0], confidence=[1.0, 1.0, 0.5, 0.5]), 3)
    0.25
    """
    check_choice(compat, "compat", (None, "relplot"))
    if bandwidth is not None:
        check_number(bandwidth, "bandwidth", 1e-4, 10.0)
    columns = read(y, given)[1]
    if compat == "relplot":
        return smoothing.relplot_error(columns, bandwidth)[0]
    return smoothing.smooth_error(columns, bandwidth)


@_metric
def logit_smoothed_ece(
    y: Any, *, bandwidth: float = 1 / 15, **given: Unpack[Scores]
) -> float:
    """ECE after Gaussian noise on the log-odds (Chidambaram et al. 2024).

    Continuous in the scores, unlike ECE; `bandwidth` is the noise's standard deviation
    in units of log-odds.

    Examples
    --------
    >>> import calibrant as cal
    >>> round(cal.logit_smoothed_ece([1, 1, 1, 0], confidence=[0.9] * 4), 3)
    0.15
    """
    check_number(bandwidth, "bandwidth", 1e-3, 100.0)
    return logit_smoothed_error(read(y, given)[1], bandwidth)


@_metric
def ks_error(y: Any, **given: Unpack[Scores]) -> float:
    r"""KS calibration error: the largest cumulative difference of hits and confidence.

    Rows are taken in order of confidence, from the origin on; ties are one step.

    Notes
    -----
    With rows in order of their confidence :math:`h_i`, correct (:math:`a_i = 1`) or not,

    .. math:: \max_t \frac{1}{n} \left| \sum_{i:\, h_i \le t} (a_i - h_i) \right| .

    Examples
    --------
    >>> import calibrant as cal
    >>> round(cal.ks_error([0, 1, 1], confidence=[0.2, 0.5, 0.9]), 4)
    0.1333
    """
    return binning.ks_error(order(read(y, given)[1]))


@_metric
def confidence_gap(y: Any, **given: Unpack[Scores]) -> float:
    """Mean confidence minus share of hits: positive if over-confident.

    Examples
    --------
    >>> import calibrant as cal
    >>> round(cal.confidence_gap([1, 0], confidence=[0.9, 0.9]), 4)
    0.4
    """
    columns = read(y, given)[1]
    return columns.mean(columns.confidence - columns.hit)


@_metric
def auroc(y: Any, **given: Unpack[Scores]) -> float:
    """Area under the ROC curve of confidence against hits; NaN if all or none hit.

    For the top label it says how well confidence tells right from wrong predictions; it
    is not the one-against-rest AUC of the classes.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.auroc([0, 1, 1], confidence=[0.2, 0.5, 0.9])
    1.0
    """
    return binning.auroc(order(read(y, given)[1]))


@_metric
def aurc(y: Any, **given: Unpack[Scores]) -> float:
    """Area under the risk-coverage curve: mean risk over all numbers accepted.

    Examples are accepted in order of confidence, ties at random; the risk is the share of
    errors among them. It is the error rate if all confidences are equal, and smaller the
    better they tell errors apart. `calibrant.risk_coverage` has the curve and intervals.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.aurc([1, 1, 0, 1], confidence=[0.9, 0.8, 0.6, 0.7])
    0.0625
    >>> cal.aurc([1, 1, 0, 1], confidence=[0.75] * 4)  # the error rate
    0.25
    """
    predictions, columns = read(y, given)
    if target_of(predictions) == "positive":
        columns = columns_of_predictions(columns)
    return Steps.of(order(columns)).value("aurc")


@_metric
def corp(y: Any, *, divergence: Any = "brier", **given: Unpack[Scores]) -> Corp:
    """CORP decomposition: score = miscalibration - discrimination + uncertainty.

    The score is the one-dimensional one of the confidence problem, recalibrated by
    isotonic regression on the same rows (Dimitriadis et al. 2021).

    Examples
    --------
    >>> import calibrant as cal
    >>> parts = cal.corp([0, 0, 0, 1, 1, 1], confidence=[0.4, 0.3, 0.2, 0.1, 0.5, 0.9])
    >>> round(parts.miscalibration, 4), round(parts.discrimination, 4)
    (0.1017, 0.125)
    """
    main = find_divergence(divergence)
    columns = read(y, given)[1]
    sums = Cells({main.name: main}).update(columns)
    return binning.corp_of(binning.Isotonic.of(order(columns)), sums, main.name)


@_metric
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
    r"""d_CAL, the calibration error that belongs to a divergence.

    Options are those of `calibrant.evaluate`, and so is the result.

    Notes
    -----
    With :math:`h` the confidence and :math:`m(h)` the accuracy at that confidence,

    .. math:: d_\mathrm{CAL} = \mathbb{E}\, d_{\varphi_1}\bigl(m(h), h\bigr),

    which is :math:`\mathbb{E}\,(m(h) - h)^2` for the Brier score. The adaptive estimate is
    debiased: on average it is 0 for a calibrated model, and may be slightly negative.

    Examples
    --------
    >>> import calibrant as cal
    >>> d = cal.calibration_error([1, 0, 1, 0], confidence=[0.9, 0.9, 0.1, 0.1],
    ...                          bandwidth=0.05)
    >>> round(d, 4)
    0.16
    """
    options = divergence, bandwidth, kernel, boundary, estimator
    settings = Settings(*options, level=level).checked()
    columns = read(y, given, settings.extra)[1]
    return decomposition.calibration_of_rows(columns, settings)


@_metric
def ece(
    y: Any,
    *,
    bins: int | str = 15,
    strategy: str | None = None,
    norm: float | str = 1,
    debias: bool = False,
    closed: str = "right",
    compat: str | None = None,
    **given: Unpack[Scores],
) -> float:
    r"""Expected calibration error over bins.

    Parameters
    ----------
    bins : int, "cube-root" or "sweep"
        Number of bins; the cube root of n; or the most equal-mass bins whose
        accuracies increase (Roelofs et al. 2022).
    strategy : {"width", "mass"}, optional
        Bins of equal width, the default, or of equal weight, that of a sweep. Ties are
        never split. scikit-learn's words, ``"uniform"`` and ``"quantile"``, are understood.
    norm : float or "max"
        q of the L^q mean, whose q-th root is returned.
    debias : bool
        Subtract the sampling variance of each bin (``norm=2`` only; Kumar et al. 2019).
    closed : {"right", "left"}
        Which end of an equal-width bin belongs to it; 0 and 1 are always inside.
    compat : {"torchmetrics"}, optional
        Reproduce torchmetrics 1.9: equal-width bins closed on the left, one more for a
        confidence of exactly 1, in the precision that it works in, which is single for a
        matrix. It has the norms 1, 2 and "max", and no weights.

    Notes
    -----
    With :math:`n_b` of :math:`n` rows in bin :math:`b`, their accuracy :math:`a_b` and their
    mean confidence :math:`h_b`,

    .. math:: \mathrm{ECE} = \sum_b \frac{n_b}{n}\, |a_b - h_b| ,

    and for another norm :math:`\bigl(\sum_b \frac{n_b}{n} |a_b - h_b|^q\bigr)^{1/q}`.

    Examples
    --------
    >>> import calibrant as cal
    >>> round(cal.ece([0, 0, 1, 1], probs=[0.25, 0.25, 0.75, 0.75], bins=2), 4)
    0.25
    """
    check_flags(debias=debias)
    check_choice(compat, "compat", (None, "torchmetrics"))
    predictions, columns = read(y, given)
    if compat:
        _check_torchmetrics(columns, strategy, norm, debias=debias)
        return _torchmetrics_error(predictions, columns, bins, norm)
    found = _find_bins(columns, bins, strategy, closed)
    if not debias:
        return binning.binned_error(found, norm)
    _check_debias(norm)
    return binning.debiased_error(found, order(columns))


def _find_bins(columns: Columns, bins: Any, strategy: str | None, closed: str) -> Bins:
    """Bins as the options of `calibrant.ece` describe them."""
    sweep = isinstance(bins, str) and bins == "sweep"
    cut = (
        ("mass" if sweep else "width") if strategy is None else read_strategy(strategy)
    )
    if sweep and cut == "width":
        raise ValueError(
            f"strategy must be 'mass' where bins='sweep', got {shown(strategy)}: the "
            "sweep is over bins of equal weight. Leave strategy out."
        )
    ordered = order(columns)
    if cut == "width":
        return binning.width_bins(ordered, bins, closed)
    values = ordered.without_twins()
    if sweep:
        return binning.sweep_bins(values)
    return binning.mass_bins(values, binning.count_bins(bins, values.effective))


def _check_debias(norm: Any) -> None:
    if norm != 2:
        raise ValueError("debias=True is defined for norm=2 only.")


def _check_torchmetrics(
    columns: Columns, strategy: Any, norm: Any, *, debias: bool
) -> None:
    """Raise where torchmetrics has no such number."""
    width = strategy is None or read_strategy(strategy) == "width"
    known = norm in (1, 2, "max") and width and not debias
    if not known or columns.weight is not None or not columns.hard:
        raise ValueError(
            "compat='torchmetrics' has equal-width bins, norm 1, 2 or 'max', hard labels, "
            "and neither weights nor debias=True; leave compat or these out."
        )


def _torchmetrics_error(
    predictions: Predictions, columns: Columns, bins: Any, norm: Any
) -> float:
    """The error as torchmetrics adds it up: row by row, in single precision for a matrix."""
    count = binning.count_bins(bins, len(columns))
    single = predictions.scores.ndim == 2 or predictions.scores.dtype != np.float64
    dtype: Any = np.float32 if single else np.float64
    h, hit = columns.confidence.astype(dtype), columns.hit.astype(dtype)
    place = np.searchsorted(_torch_edges(count, dtype), h, side="right") - 1
    rows, claimed, hits = np.zeros((3, count + 1), dtype)
    for total, x in ((rows, np.ones_like(h)), (claimed, h), (hits, hit)):
        np.add.at(total, place, x)
    whole = np.where(rows > 0, rows, dtype(1))
    gap, share = np.abs(hits / whole - claimed / whole), rows / rows.sum()
    if norm == "max":
        return float(gap.max())
    return float(np.sum(gap * share) if norm == 1 else np.sqrt(np.sum(gap**2 * share)))


def _torch_edges(bins: int, dtype: Any) -> Any:
    """What ``torch.linspace(0, 1, bins + 1)`` gives: steps from either end to the middle.

    Those from the upper end are rounded once, as by a fused multiply and add.
    """
    step, half = dtype(1) / dtype(bins), (bins + 1) // 2
    exact = Fraction(float(step))
    upper = [float(1 - exact * (bins - i)) for i in range(half, bins + 1)]
    return np.concatenate([step * np.arange(half).astype(dtype), upper]).astype(dtype)


@_metric
def ace(
    y: Any, *, bins: int = 15, closed: str = "right", **given: Unpack[Scores]
) -> float:
    r"""Average calibration error: the plain mean over equal-width bins that hold rows.

    This is netcal's and the paper's ACE. The "adaptive" error of other authors is
    ``ece(strategy="mass")``.

    Notes
    -----
    Over the :math:`B` bins that are not empty, whatever their size,

    .. math:: \mathrm{ACE} = \frac{1}{B} \sum_b |a_b - h_b| .

    Examples
    --------
    >>> import calibrant as cal
    >>> p = [[0.9, 0.05, 0.05]] * 3 + [[0.3, 0.4, 0.3]]
    >>> round(cal.ace([0, 0, 1, 2], probs=p, bins=4), 5)
    0.31667
    """
    columns = read(y, given)[1]
    return binning.average_error(_find_bins(columns, bins, "width", closed))


@_metric
def mce(
    y: Any,
    *,
    bins: int | str = 15,
    strategy: str | None = None,
    closed: str = "right",
    **given: Unpack[Scores],
) -> float:
    r"""Maximum calibration error: the largest over bins.

    Notes
    -----
    .. math:: \mathrm{MCE} = \max_b |a_b - h_b|

    Examples
    --------
    >>> import calibrant as cal
    >>> p = [[0.9, 0.05, 0.05]] * 3 + [[0.3, 0.4, 0.3]]
    >>> round(cal.mce([0, 0, 1, 2], probs=p, bins=4), 4)
    0.4
    """
    return ece(y, bins=bins, strategy=strategy, norm="max", closed=closed, **given)


@_metric
def classwise_ece(
    y: Any,
    *,
    bins: int = 15,
    strategy: str | None = None,
    norm: float | str = 1,
    debias: bool = False,
    closed: str = "right",
    reduce: str = "mean",
    compat: str | None = None,
    **given: Unpack[Scores],
) -> Any:
    r"""ECE of each class's probability against that class, averaged over classes.

    Parameters
    ----------
    reduce : {"mean", "norm", "none"}
        The plain mean over classes; the q-th root of the mean of q-th powers, with the q of
        `norm`; or one number per class, as an array.
    compat : {"uncertainty-calibration"}, optional
        Reproduce ``get_calibration_error`` of uncertainty-calibration 0.1, its "marginal"
        error: `bins` of equal mass, cut as it cuts them, or one for each distinct value if
        these are few; debiased, with the norm 2, over classes too. Other options have no say.

    Notes
    -----
    With ``norm=2, debias=True, reduce="norm"`` it is the debiased class-wise L2 error of
    Kumar et al. (2019). With :math:`n_{bj}` rows in bin b of class j of k, their share of that
    class :math:`a_{bj}` and mean probability :math:`p_{bj}`,

    .. math:: \Bigl(\frac1k \sum_j \Bigl[\sum_b \frac{n_{bj}}{n} \Bigl((a_{bj} - p_{bj})^2 -
              \frac{a_{bj} (1 - a_{bj})}{n_{bj} - 1}\Bigr)\Bigr]_+\Bigr)^{1/2} .

    Examples
    --------
    >>> import calibrant as cal
    >>> p = [[0.8, 0.2], [0.8, 0.2], [0.3, 0.7]]
    >>> cal.classwise_ece([0, 1, 1], probs=p, bins=2, reduce="none").round(3)
    array([0.3, 0.3])
    >>> y, p = [0] * 6 + [1] * 4, [[0.9, 0.1]] * 10  # (.9 - .6)^2 less .6 * .4 / 9
    >>> squared = {"norm": 2, "debias": True, "reduce": "norm"}
    >>> round(cal.classwise_ece(y, probs=p, **squared) ** 2, 4)
    0.0633
    """
    check_choice(reduce, "reduce", ("mean", "norm", "none"))
    check_choice(compat, "compat", (None, "uncertainty-calibration"))
    check_flags(debias=debias)
    if debias:
        _check_debias(norm)
    predictions = read_given(y, with_target(given, "class-wise", "classwise_ece"))
    if compat:
        norm, reduce = 2, "norm" if reduce == "mean" else reduce
        errors = _kumar_errors(predictions, bins)
    else:
        options = bins, strategy, norm, closed
        each = each_class(predictions)
        errors = np.array([_error_of_class(x, *options, debias=debias) for x in each])
    return _over_classes(errors, reduce, binning.check_norm(norm))


def _error_of_class(
    columns: Columns, bins: Any, strategy: Any, norm: Any, closed: str, *, debias: bool
) -> float:
    found = _find_bins(columns, bins, strategy, closed)
    if debias:
        return binning.debiased_error(found, order(columns))
    return binning.binned_error(found, norm)


def _over_classes(errors: Column, reduce: str, q: float) -> Any:
    """The errors of classes as one number, unless all are asked for."""
    if reduce == "none":
        return errors
    if reduce == "mean":
        return float(errors.mean())
    return float(errors.max() if q == inf else np.mean(errors**q) ** (1 / q))


def _kumar_errors(predictions: Predictions, bins: Any) -> Column:
    """Debiased L2 errors of classes, in the bins of uncertainty-calibration."""
    if predictions.weight is not None:
        raise ValueError("compat='uncertainty-calibration' has no weights.")
    pairs = [(columns.confidence, columns.hit) for columns in each_class(predictions)]
    values = [np.unique(h) for h, _ in pairs]
    atoms = all(
        len(some) < len(h) / 4 for some, (h, _) in zip(values, pairs, strict=True)
    )
    count = binning.count_bins(bins, len(pairs[0][0]))
    edges = [
        (some[1:] + some[:-1]) / 2 if atoms else _split_edges(h, count)
        for some, (h, _) in zip(values, pairs, strict=True)
    ]
    squares = [
        _kumar_square(*pair, cut) for pair, cut in zip(pairs, edges, strict=True)
    ]
    return np.sqrt(np.maximum(squares, 0.0))


def _split_edges(h: Column, bins: int) -> Column:
    """Half way between the last row of each of `bins` even parts and the first of the next."""
    ranked = np.sort(h)
    first = np.cumsum([len(x) for x in np.array_split(ranked, min(bins, len(h)))])[:-1]
    return np.unique((ranked[first - 1] + ranked[first]) / 2)


def _kumar_square(h: Column, hit: Column, edges: Column) -> float:
    place = np.searchsorted(edges, h)
    n, hits, claimed = (np.bincount(place, x) for x in (None, hit, h))
    n, hits, claimed = n[n > 1], hits[n > 1], claimed[n > 1]
    rate = hits / n
    square = (rate - claimed / n) ** 2 - rate * (1 - rate) / (n - 1)
    return float(n @ square / len(h))


@_metric
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
    >>> import calibrant as cal
    >>> p = [[0.8, 0.1, 0.1], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1]]
    >>> round(cal.top_label_ece([0, 1, 1], probs=p), 4)
    0.2667
    """
    check_choice(reduce, "reduce", ("weighted", "mean"))
    predictions, columns = read(y, with_target(given, "top-label", "top_label_ece"))
    assert columns.predicted is not None
    errors, weight = binning.errors_within(
        columns, columns.predicted, predictions.k, bins, norm, closed
    )
    if reduce == "mean":
        return float(errors[weight > 0].mean())
    return float((errors * weight).sum() / weight.sum())


@_metric
def full_vector_ece(y: Any, *, bins: int = 10, **given: Unpack[Scores]) -> float:
    """Binned calibration error of the whole probability vector (Widmann et al. 2019).

    Rows are grouped by the bins of all their coordinates; the error is the weighted
    mean over groups of half the L1 distance between mean probabilities and labels.
    With many classes nearly every row is a group of its own.

    Examples
    --------
    >>> import calibrant as cal
    >>> p = [[0.8, 0.1, 0.1], [0.8, 0.1, 0.1]]
    >>> round(cal.full_vector_ece([0, 1], probs=p), 4)
    0.4
    """
    bins = binning.count_bins(bins, 1)
    vectors = read_vectors(y, given, "full_vector_ece")
    p, weight = vectors.probs, vectors.weight
    _, group = np.unique(cell_of(p, bins), axis=0, return_inverse=True)
    sums = np.zeros((group.max() + 1, vectors.k))
    np.add.at(sums, group.ravel(), weight[:, None] * (vectors.labels - p))
    return float(0.5 * np.abs(sums).sum() / weight.sum())


# -- scorers of scikit-learn ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scorer:
    """A metric as scikit-learn's ``scoring=``: minus the error, so that more is better.

    It reads ``predict_proba`` and ``classes_`` of a fitted classifier. Of two classes the
    second is the positive one, unless `using` says another ``pos_label``.

    Parameters
    ----------
    function : callable
        A metric of calibrant.
    options : mapping
        Its options.
    weighted : bool, str or None
        Whether it asks for weights, as `set_score_request` says.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.scorers["neg_ece"].using(bins=10)
    Scorer(ece, bins=10)
    """

    function: Any
    options: Mapping[str, Any] = field(default_factory=dict)
    weighted: bool | str | None = None

    def __call__(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any = None
    ) -> float:
        """Minus the metric of the classifier on these examples."""
        probs = as_scores(estimator.predict_proba(X), "probs")
        classes = list(estimator.classes_)
        options = dict(self.options)
        positive = options.pop("pos_label", classes[-1])
        if len(classes) == 2 and self.function not in WHOLE:
            check_choice(positive, "pos_label", tuple(classes))
            order = [1 - classes.index(positive), classes.index(positive)]
            probs, classes = probs[:, order], [classes[at] for at in order]
            options.setdefault("target", "positive")
        given = {"probs": probs, "classes": classes, "sample_weight": sample_weight}
        return -float(self.function(y, **given, **options))

    def using(self, **options: Any) -> Scorer:
        """The same with other options of the metric; one that it has not is refused."""
        for name in options:
            if name not in inspect.signature(self.function).parameters:
                raise no_option(name, self.function)
        return replace(self, options={**self.options, **options})

    def set_score_request(self, *, sample_weight: bool | str | None) -> Scorer:
        """The same, asking for weights or not where metadata routing is enabled."""
        return replace(self, weighted=sample_weight)

    def get_metadata_routing(self) -> Any:
        """What it asks of scikit-learn where metadata routing is enabled."""
        from sklearn.utils.metadata_routing import MetadataRequest

        asked = MetadataRequest(owner=self)
        asked.score.add_request(param="sample_weight", alias=self.weighted)
        return asked

    def __repr__(self) -> str:
        options = "".join(f", {name}={x!r}" for name, x in self.options.items())
        return f"Scorer({self.function.__name__}{options})"


WHOLE = (classwise_ece, top_label_ece, full_vector_ece)
"""Metrics of all columns, also where there are two."""

ERRORS = (ece, ace, mce, smooth_ece, logit_smoothed_ece, ks_error, calibration_error)
SCORES = (brier, aurc)


class Scorers(Named[Scorer]):
    """Scorers by name, for ``scoring=`` of scikit-learn: one of them, or all at once.

    ``neg_brier`` is summed over the classes, and one-dimensional for two; ``neg_log_loss``
    clips nothing, so it is ``-inf`` where a label had probability 0.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.scorers["neg_brier"]  # cross_validate(model, X, y, scoring=this)
    Scorer(brier)
    >>> sorted(cal.scorers)[:4]
    ['neg_ace', 'neg_aurc', 'neg_brier', 'neg_calibration_error']
    """


scorers = Scorers(
    {
        **{f"neg_{each.__name__}": Scorer(each) for each in (*ERRORS, *WHOLE, *SCORES)},
        "neg_log_loss": Scorer(nll),
    }
)


# -- as the paper reports it -------------------------------------------------------

DRAWS, SIZE = 10, 5000
"""The paper averages ten estimates, each from 5,000 rows."""


class PaperSpread(NamedTuple):
    """Mean and standard deviation of estimates from subsamples of the rows.

    The standard deviation is what the paper prints after its ±. It says how much was lost
    by not using all rows; it is no confidence interval.

    Attributes
    ----------
    mean, spread : float
        Of the calibration errors found in the subsamples.

    Examples
    --------
    >>> import calibrant as cal
    >>> ev = cal.evaluate_pairs([1, 0, 1, 1] * 100, [0.75] * 400)
    >>> cal.paper_spread(ev, size=400)  # every draw has all rows
    PaperSpread(mean=0.0, spread=0.0)
    """

    mean: float
    spread: float


def paper_spread(
    ev: Evaluation,
    *,
    draws: int = DRAWS,
    size: int = SIZE,
    of: str = "rows",
    rng: int | np.random.Generator = 0,
) -> PaperSpread:
    """The paper's d_CAL as its authors report it: ten subsamples of 5,000 rows.

    Parameters
    ----------
    ev : Evaluation
        Of rows that are still at hand; all of them are in ``ev.paper``.
    draws, size : int
        Number of subsamples, and rows in each.
    of : {"rows", "points"}
        ``"rows"``: each estimate sees its own rows and no other, as the paper says.
        ``"points"``: the curve of all rows is averaged at random rows, as the authors'
        code does.
    rng : int or numpy.random.Generator
        Seed of the subsamples.

    Returns
    -------
    PaperSpread
        Their mean and standard deviation. calibrant's own estimate and its interval are
        ``ev.decomposition.calibration``.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> h = rng.beta(4, 1, 20_000)
    >>> ev = cal.evaluate_pairs(rng.random(20_000) < h**2, h)
    >>> mean, spread = cal.paper_spread(ev)
    >>> abs(mean - ev.paper.calibration) < 3 * spread
    True
    """
    check_choice(of, "of", ("rows", "points"))
    check_number(draws, "draws", 2, 1_000_000, kind="a whole number")
    check_rng(rng)
    check_kind(ev, Evaluation, "ev")
    if ev.columns is None:
        raise ValueError(
            "ev holds no rows (it was read from a file, or comes from a sketch); "
            "evaluate them again."
        )
    check_number(size, "size", 2, len(ev.columns), kind="a whole number of rows")
    drawn = _draws(len(ev.columns), draws, size, rng, replace=of == "points")
    found = _of_rows(ev, drawn) if of == "rows" else _at_points(ev, drawn)
    values = np.array(list(found))
    return PaperSpread(float(values.mean()), float(values.std(ddof=1)))


def _draws(
    n: int, draws: int, size: int, rng: Any, *, replace: bool
) -> Iterator[Index]:
    source = np.random.default_rng(rng)
    return (source.choice(n, size, replace=replace) for _ in range(draws))


def _of_rows(ev: Evaluation, drawn: Iterator[Index]) -> Iterator[float]:
    settings = Settings(divergence=ev.divergence, bandwidth=PAPER_BANDWIDTH)
    for some in drawn:
        yield float(decomposition.calibration_of_rows(ev.columns.take(some), settings))


def _at_points(ev: Evaluation, drawn: Iterator[Index]) -> Iterator[float]:
    columns, curve = ev.columns, ev.paper_curve
    settings = Settings(divergence=ev.divergence)
    accuracy = np.interp(columns.confidence, curve.confidence, curve.accuracy)
    error = settings.main.on_unit(accuracy, columns.confidence)
    for some in drawn:
        yield columns.take(some).mean(error[some])
