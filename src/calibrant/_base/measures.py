"""What every number of a model is called, and which end of it is good."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from math import inf, isfinite, nan, sqrt

import numpy as np

from calibrant._base.checks import MOST_NAME, one_line
from calibrant._base.evaluation import Evaluation
from calibrant._base.records import Estimate

TRIVIAL_SHARE = 0.99
"""From this share of rows at one confidence on, calibration is no achievement."""

EXPLAINED, APART, EQUAL = 1e-3, 0.25, 1e-3
"""Confidences are narrow if their variance is below this share of the outcome's, m (1 - m),
and their standard deviation below this share of m and 1 - m; they are equal to three digits
if it is below the last share of these."""

LEAST_GAIN = 3.0
"""Log-likelihood (nats) that confidences must gain over their mean to be informative. Noise
reaches it in less than 1 % of all data sets, and never in more than exp(-3) = 5 %."""

CLEARLY = 3.0
"""Standard errors by which an AUROC above one half is no chance."""

LEAST_ROWS, LEAST_BINS = 50, 5
"""Fewer rows, or fewer bins, do not show whether confidences say anything."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of a model: what it is called where, and which end of it is good.

    Attributes
    ----------
    key : str
        Its name in ``metrics``, in ``columns=``, in JSON and in gates.
    label, short : str
        Heading of its column, and where room is scarce.
    line, phrase : str
        What it is called in print, if printed, and in a sentence, if not by its label.
    column, aside, compared : bool
        Whether it can be a column of a table, whether it must then be asked for though it
        is printed, and whether models are compared by it.
    higher_is_better, calibration : bool
        Which end is good, and whether it is a calibration error, which a trivial model
        can win.
    mean, inflated : bool
        Whether it is a mean over rows, and whether noise can only make it larger. Both
        matter to differences of models.
    watched : bool
        Whether the metric of a training loop gives it.
    told : int
        Its place among the differences that `compare` puts into words; 0 is none.
    """

    key: str
    label: str
    short: str = ""
    line: str = ""
    phrase: str = ""
    column: bool = True
    aside: bool = False
    compared: bool = True
    higher_is_better: bool = False
    calibration: bool = False
    mean: bool = False
    inflated: bool = False
    watched: bool = False
    told: int = 0

    def of(self, ev: Evaluation) -> Estimate:
        """The number of this column for one model; NaN if its target has none."""
        if self.key in HEADLINE:
            return getattr(ev.decomposition, self.key)
        return ev.metrics.get(self.key, Estimate(nan))

    def place(self, value: float) -> float:
        """Where a value ranks: less is better, and infinity cannot be best.

        An estimated calibration error below 0 says that none was found, as 0 does.
        """
        if not isfinite(value):
            return inf
        if self.calibration:
            return max(value, 0.0)
        return -value if self.higher_is_better else value


HEADLINE = ("total", "calibration", "sharpness_gap")
"""Measures of the decomposition, not among the metrics."""

_error = partial(Measure, calibration=True)
_inflated = partial(_error, inflated=True)
_watched_mean = partial(Measure, mean=True, watched=True)

MEASURES = {
    measure.key: measure
    for measure in (
        _watched_mean(
            "accuracy",
            "Accuracy",
            "Acc",
            line="accuracy",
            phrase="accuracy",
            higher_is_better=True,
            told=3,
        ),
        _inflated("ece", "ECE", line="ECE", watched=True, told=6),
        _inflated("ace", "ACE", line="ACE (average)"),
        _inflated(
            "smooth_ece", "SmoothECE", "smECE", line="SmoothECE", watched=True, told=7
        ),
        _watched_mean("nll", "NLL", line="NLL", told=2),
        _watched_mean("brier", "Brier", line="Brier", phrase="Brier score", told=1),
        _error("calibration", "d_CAL", phrase="calibration error d_CAL", told=4),
        Measure(
            "sharpness_gap", "Sharpness gap", "gap", phrase="sharpness gap", told=5
        ),
        Measure("total", "d_TOT", mean=True),
        _inflated("mce", "MCE"),
        _inflated("ece_mass", "ECE (equal mass)", "ECE-mass"),
        _error("ece_debiased", "ECE (debiased)", "ECE-deb"),
        _inflated("ks_error", "KS error", "KS"),
        _error("top_label_ece", "Top-label ECE", "tlECE"),
        _inflated("mcb", "MCB"),
        Measure("dsc", "DSC", higher_is_better=True),
        Measure("auroc", "AUROC", higher_is_better=True),
        Measure("aurc", "AURC", line="AURC", aside=True),
        Measure("excess_aurc", "E-AURC"),
        Measure("augrc", "AUGRC"),
        _watched_mean("confidence_gap", "Confidence gap", column=False),
        Measure("unc", "UNC", column=False, compared=False),
    )
}
"""Measures by key. The first six are the metrics of the paper's tables."""

BUILT_IN = tuple(MEASURES)
"""Numbers of our own, whatever others a user adds."""


def columns() -> dict[str, Measure]:
    """Measures that can be columns of a table, in order."""
    return {key: measure for key, measure in MEASURES.items() if measure.column}


def plain(name: str) -> str:
    """A name without case and marks: ``d_CAL`` is ``dcal``."""
    return re.sub(r"[\W_]", "", name).lower()


def keys_as_said() -> dict[str, str]:
    """Keys by all that their measures are called, without case and marks."""
    return {
        plain(word): key
        for key, x in reversed(MEASURES.items())
        for word in (x.phrase, x.line, x.short, x.label, key)
        if word
    }


def key_of(name: str) -> str | None:
    """The key of a measure by its name in tables, in print or in JSON.

    Examples
    --------
    >>> key_of("d_CAL"), key_of("gap"), key_of("no such")
    ('calibration', 'sharpness_gap', None)
    """
    return keys_as_said().get(plain(name))


def score_column(ev: Evaluation) -> str:
    """The column that holds the score asked for: that of the divergence.

    Examples
    --------
    >>> import calibrant as cal
    >>> pairs = [1, 0, 1, 1], [0.9, 0.4, 0.8, 0.7]
    >>> score_column(cal.evaluate_pairs(*pairs, divergence="log"))
    'nll'
    """
    known = {"brier": "brier", "log": "total" if ev.per_class else "nll"}
    return known.get(ev.divergence, "total")


def is_trivial(ev: Evaluation) -> bool:
    """Whether the spread of the confidences explains (almost) nothing.

    Such a model needs only the right average to be calibrated, and cannot tell one example
    from another: (nearly) all confidences are equal, or they lie close together and explain
    the outcomes no better than their mean does. Rare events are no such case: confidences
    of 0.0001 and 0.001 are close together, but one is ten times the other. Nor is a model
    without any loss. Of all classes, a model is trivial if the predicted class has one
    probability; and whatever mean replacement made in a study is.
    """
    if ev.mean_replaced:
        return True
    if ev.rows < 2 or not ev.decomposition.total:
        return False
    if ev.per_class:
        each = (is_trivial(one) for one in ev.per_class if one.decomposition.total)
        return is_mirrored(ev) or all(each)
    if ev.largest_share >= TRIVIAL_SHARE:
        return True
    seen = int((ev.mass_bins.count > 0).sum()) >= min(LEAST_BINS, ev.distinct)
    if not seen or ev.rows < min(LEAST_ROWS, 10 * ev.distinct):
        return False
    middle, spread, gain = spread_of(ev)
    rarer = min(middle, 1 - middle)
    narrow = spread**2 < EXPLAINED * middle * (1 - middle) and spread < APART * rarer
    if not narrow or gain >= LEAST_GAIN:
        return False
    return spread < EQUAL * rarer or not _discriminates(ev)


def is_mirrored(ev: Evaluation) -> bool:
    """Whether the predicted class has the same probability everywhere, which is not all.

    Known of mean replacement in a study, and else of all classes: each is given one of two
    probabilities, the same for every class, and the larger is not 1: that is a model which
    is right or wrong, not one that is vague. Forecasts of p and 1 - p alone are no such
    case: they may be sharp, and tell much of what there is to know.
    """
    if ev.mean_replaced:
        return ev.distinct > 1 and ev.target not in ("top-label", "pairs")
    values = [one.atoms.confidence for one in ev.per_class]
    two = np.array([x[[0, -1]] for x in values if x.size == 2])
    if not len(two) or len(two) < len(ev.per_class):
        return False
    return bool(np.ptp(two, axis=0).max() < 1e-6 and two[0, 1] < 1)


def spread_of(ev: Evaluation) -> tuple[float, float, float]:
    """Mean and standard deviation of the confidences, and what they gain over the mean.

    The gain is in log-likelihood, to second order: the sum over rows of
    (h - m) (a - m - (h - m) / 2) / (m (1 - m)), by bins of equal weight. Of noise that is
    independent of the outcomes it is below 0 on average.

    Examples
    --------
    >>> import calibrant as cal
    >>> ev = cal.evaluate_pairs([1, 0] * 50, [0.75, 0.25] * 50)
    >>> spread_of(ev)
    (0.5, 0.25, 37.5)
    """
    bins = ev.mass_bins
    n, h, a = (x[bins.count > 0] for x in (bins.count, bins.confidence, bins.accuracy))
    middle = float(n @ h / n.sum())
    apart, unit = h - middle, max(middle * (1 - middle), 1e-300)
    gain = n @ (apart * (a - middle - apart / 2)) / unit
    gain *= effective(ev) / n.sum()
    return middle, sqrt(n @ apart**2 / n.sum()), float(gain)


def effective(ev: Evaluation) -> float:
    """Effective number of examples: fewer than there are if weights differ."""
    return ev.n if ev.n_effective is None else ev.n_effective


ENOUGH = 0.95
"""Share of n from which on the effective n is not worth a word."""


def sample_size(ev: Evaluation, *, in_sentence: bool = False) -> str:
    """How many examples there are, what weights leave of them, and in how many clusters.

    Examples
    --------
    >>> import calibrant as cal
    >>> pairs, weight = ([1, 0, 1, 1], [0.9, 0.4, 0.8, 0.7]), [9, 1, 1, 1]
    >>> sample_size(cal.evaluate_pairs(*pairs)), sample_size(
    ...     cal.evaluate_pairs(*pairs, sample_weight=weight)
    ... )
    ('4 examples', '4 examples (weights sum to 12, effective n 1.7)')
    """
    said, about = f"{ev.n:,.10g} example{'' if ev.n == 1 else 's'}", []
    if ev.sum_of_weights is not None and not in_sentence:
        about.append(f"weights sum to {ev.sum_of_weights:,.6g}")
    if (left := effective(ev)) < ENOUGH * ev.n:
        digits = ",.0f" if left >= 100 else ".2g"
        about.append(f"effective n {left:{digits}}")
    if about:
        said += f" ({', '.join(about)})"
    if ev.n_clusters is not None:
        said += f" in {ev.n_clusters:,}{' or more' * ev.folded} clusters"
    if ev.left_out:
        said += f" (coverage {100 * ev.coverage:.3g} %: {ev.left_out:,.10g} left out)"
    return said


def is_weighted(ev: Evaluation) -> bool:
    """Whether some examples count more than others."""
    return effective(ev) < ev.n * (1 - 1e-9)


def some_of(ev: Evaluation, weight: float, *, out_of: bool = False) -> str:
    """How many examples these are; where weights differ, what share of the weight.

    Examples
    --------
    >>> import calibrant as cal
    >>> pairs, weight = ([1, 0, 1, 1], [0.9, 0.4, 0.8, 0.7]), [9, 1, 1, 1]
    >>> some_of(cal.evaluate_pairs(*pairs), 1)
    '1 example'
    >>> some_of(cal.evaluate_pairs(*pairs, sample_weight=weight), 0.5, out_of=True)
    '12.5 % of 4 examples by weight'
    """
    whole = f"{ev.n:,.10g} examples"
    if is_weighted(ev):
        of = whole if out_of else "the examples"
        return f"{100 * weight / ev.n:.3g} % of {of} by weight"
    one = f"example{'' if weight == 1 else 's'}"
    return f"{weight:,.10g} {f'of {whole}' if out_of else one}"


def positive_class(ev: Evaluation) -> str:
    """What the positive class is called in a sentence.

    Examples
    --------
    >>> import calibrant as cal
    >>> p, names = [0.9, 0.4, 0.8, 0.7], ["dry", "wet"]
    >>> positive_class(cal.evaluate([1, 0, 1, 1], probs=p))
    'class 1'
    >>> positive_class(cal.evaluate(["wet", "dry", "wet", "dry"], probs=p, classes=names))
    "class 'wet'"
    """
    if ev.positive is None:
        return "the positive class"
    name = one_line(ev.positive, MOST_NAME)
    return f"class {name}" if name.isdecimal() else f"class {name!r}"


def _discriminates(ev: Evaluation) -> bool:
    """Whether hits clearly have higher confidences than misses."""
    found = float(ev.metrics.get("auroc", nan))
    return found - CLEARLY * auroc_error(ev) > 0.5


def auroc_error(ev: Evaluation) -> float:
    """Largest standard error an AUROC near one half can have."""
    bins, n = ev.bins, effective(ev)
    filled = bins.count > 0
    share = float(bins.count[filled] @ bins.accuracy[filled] / bins.count.sum())
    return sqrt((n + 1) / (12 * max(n * n * share * (1 - share), 1e-300)))
