"""The numbers that models are compared by, and which end of each is good."""

from __future__ import annotations

from dataclasses import dataclass
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
    """A column of a table: what it is called, and which end of it is good.

    `short` is the label where room is scarce. `calibration` marks a calibration error,
    which a trivial model can win.
    """

    key: str
    label: str
    short: str = ""
    higher_is_better: bool = False
    calibration: bool = False

    def of(self, ev: Evaluation) -> Estimate:
        """The number of this column for one model; NaN if its target has none."""
        if self.key in ("total", "calibration", "sharpness_gap"):
            return getattr(ev.decomposition, self.key)
        return ev.metrics.get(self.key, Estimate(nan))

    def place(self, value: float) -> float:
        """Where a value ranks: less is better, and infinity cannot be best.

        An estimated calibration error below 0 says that none was found, as 0 does.

        Examples
        --------
        >>> MEASURES["accuracy"].place(0.9), MEASURES["calibration"].place(-0.001)
        (-0.9, 0.0)
        """
        if not isfinite(value):
            return inf
        if self.calibration:
            return max(value, 0.0)
        return -value if self.higher_is_better else value


MEASURES = {
    measure.key: measure
    for measure in (
        Measure("accuracy", "Accuracy", "Acc", higher_is_better=True),
        Measure("ece", "ECE", calibration=True),
        Measure("ace", "ACE", calibration=True),
        Measure("smooth_ece", "SmoothECE", "smECE", calibration=True),
        Measure("nll", "NLL"),
        Measure("brier", "Brier"),
        Measure("calibration", "d_CAL", calibration=True),
        Measure("sharpness_gap", "Sharpness gap", "gap"),
        Measure("total", "d_TOT"),
        Measure("mce", "MCE", calibration=True),
        Measure("ece_mass", "ECE (equal mass)", "ECE-mass", calibration=True),
        Measure("ece_debiased", "ECE (debiased)", "ECE-deb", calibration=True),
        Measure("ks_error", "KS error", "KS", calibration=True),
        Measure("top_label_ece", "Top-label ECE", "tlECE", calibration=True),
        Measure("mcb", "MCB", calibration=True),
        Measure("dsc", "DSC", higher_is_better=True),
        Measure("auroc", "AUROC", higher_is_better=True),
    )
}
"""Columns by name. The first six are those of the paper's tables."""


def is_trivial(ev: Evaluation) -> bool:
    """Whether (nearly) all rows have the same confidence.

    Such a model is calibrated by matching one number, and says nothing of single rows.
    """
    if ev.rows < 2:
        return False
    return ev.largest_share >= TRIVIAL_SHARE or _is_one_in_effect(ev)


def _is_one_in_effect(ev: Evaluation) -> bool:
    """Whether few confidences are nearly equal, as cross-fitted means are."""
    if ev.distinct > FEW_VALUES or ev.rows < 10 * ev.distinct:
        return False
    bins = ev.mass_bins
    h, n = bins.confidence[bins.count > 0], bins.count[bins.count > 0]
    middle = (n * h).sum() / n.sum()
    spread = sqrt((n * (h - middle) ** 2).sum() / n.sum())
    low, high = TRIVIAL_SPREAD
    return spread < min(max(0.5 / sqrt(ev.n), low), high)
