"""What every number of a model is called, and which end of it is good."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import inf, isfinite, nan, sqrt

from calibrant._base.evaluation import Evaluation
from calibrant._base.records import Estimate

TRIVIAL_SHARE = 0.99
"""From this share of rows at one confidence on, calibration is no achievement."""

FEW_VALUES, TRIVIAL_SPREAD = 20, (0.005, 0.02)
"""So few confidences are as good as one if their standard deviation is smaller than that
of a share of all rows, within these limits."""


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
    column, compared : bool
        Whether it can be a column of a table, and whether models are compared by it.
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
        _watched_mean("confidence_gap", "Confidence gap", column=False),
        Measure("unc", "UNC", column=False, compared=False),
    )
}
"""Measures by key. The first six are the metrics of the paper's tables."""


def columns() -> dict[str, Measure]:
    """Measures that can be columns of a table, in order."""
    return {key: measure for key, measure in MEASURES.items() if measure.column}


def is_trivial(ev: Evaluation) -> bool:
    """Whether (nearly) all rows have the same confidence.

    Such a model is calibrated by matching one number, and says nothing of single rows.
    """
    if ev.rows < 2:
        return False
    if ev.largest_share >= TRIVIAL_SHARE:
        return True
    if ev.distinct > FEW_VALUES or ev.rows < 10 * ev.distinct:
        return False
    # Few confidences may be nearly equal, as cross-fitted means are.
    bins = ev.mass_bins
    h, n = bins.confidence[bins.count > 0], bins.count[bins.count > 0]
    middle = (n * h).sum() / n.sum()
    spread = sqrt((n * (h - middle) ** 2).sum() / n.sum())
    low, high = TRIVIAL_SPREAD
    return spread < min(max(0.5 / sqrt(ev.n), low), high)
