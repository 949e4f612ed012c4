"""Several models on the same rows: a record that every table and figure reads."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isnan
from typing import Any, Self

import numpy as np

from acumen.arrays import check_choice
from acumen.encoding import Frame, to_frame
from acumen.results import Estimate, Evaluation, Record

TRIVIAL_SHARE = 0.99
"""From this share of rows at one confidence on, calibration is no achievement."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A column of a table: what it is called, and which end of it is good.

    `calibration` marks a calibration error, which a trivial model can win.
    """

    key: str
    label: str
    higher_is_better: bool = False
    calibration: bool = False

    def of(self, ev: Evaluation) -> Estimate:
        """The number of this column for one model."""
        if self.key in ("total", "calibration", "sharpness_gap"):
            return getattr(ev.decomposition, self.key)
        return ev.metrics[self.key]


MEASURES = {
    measure.key: measure
    for measure in (
        Measure("accuracy", "Accuracy", higher_is_better=True),
        Measure("ece", "ECE", calibration=True),
        Measure("ace", "ACE", calibration=True),
        Measure("smooth_ece", "SmoothECE", calibration=True),
        Measure("nll", "NLL"),
        Measure("brier", "Brier"),
        Measure("calibration", "d_CAL", calibration=True),
        Measure("sharpness_gap", "Sharpness gap"),
        Measure("total", "d_TOT"),
        Measure("mce", "MCE", calibration=True),
        Measure("ece_mass", "ECE (equal mass)", calibration=True),
        Measure("ece_debiased", "ECE (debiased)", calibration=True),
        Measure("ks_error", "KS error", calibration=True),
        Measure("top_label_ece", "Top-label ECE", calibration=True),
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
    return ev.rows > 1 and ev.largest_share >= TRIVIAL_SHARE


@dataclass(frozen=True, slots=True)
class Effect(Record):
    """What a recalibration did besides changing scores.

    Attributes
    ----------
    method : str
        The class of the recalibrator.
    fit_seconds, apply_seconds : float
        Time taken, summed over folds.
    accuracy_change : float
        Accuracy after less accuracy before.
    changed : float
        Weight of rows whose predicted class is another than before.
    tied : float
        Weight of rows whose largest probability is shared by several classes, so that
        the order of the columns decides what is predicted.
    impossible : float
        Weight of rows that gave their label probability 0: infinite log loss.
    notes : tuple of str
        What the fit had to say.
    """

    method: str
    fit_seconds: float
    apply_seconds: float
    accuracy_change: float
    changed: float
    tied: float
    impossible: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison(Record):
    """Evaluations of several models on the same rows, in order.

    It is a sequence of evaluations that can also be asked by name.

    Attributes
    ----------
    evaluations : tuple of Evaluation
        One per model, of distinct names.
    protocol : str
        How the rows to fit on and to test on were chosen, in words.
    effects : dict of str to Effect
        By name, for models that a study recalibrated.
    """

    evaluations: tuple[Evaluation, ...]
    protocol: str = ""
    effects: Mapping[str, Effect] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.evaluations)

    def __iter__(self) -> Iterator[Evaluation]:
        return iter(self.evaluations)

    def __contains__(self, item: object) -> bool:
        return item in self.names or item in self.evaluations

    def __getitem__(self, key: int | str) -> Evaluation:
        if isinstance(key, str):
            check_choice(key, "model", self.names)
            return self.evaluations[self.names.index(key)]
        return self.evaluations[key]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the models, in order."""
        return tuple(ev.name for ev in self.evaluations)

    def best(self, by: str = "brier") -> Evaluation:
        """The best model by one column; the first of several that are equal.

        A calibration error alone is won by models that say the same of every row. Such a
        model is passed over in a calibration column, and a warning says so.
        """
        check_choice(by, "by", tuple(MEASURES))
        measure = MEASURES[by]
        ranked = self._ranked(measure)
        if not measure.calibration:
            return ranked[0]
        honest = [ev for ev in ranked if not is_trivial(ev)]
        if not honest:
            raise ValueError(
                f"no model can be best by {by!r}: each has the same confidence in every "
                "row, and such a model is calibrated by matching one number. Use "
                "by='brier' or by='nll'."
            )
        if honest[0] is not ranked[0]:
            warnings.warn(
                f"{ranked[0].name!r} has the least {measure.label}, but gives (nearly) "
                f"every row the same confidence: that is trivially calibrated and says "
                f"nothing of single rows. {honest[0].name!r} is the best of the others; "
                "by='brier' weighs calibration and sharpness together.",
                UserWarning,
                stacklevel=2,
            )
        return honest[0]

    def _ranked(self, measure: Measure) -> list[Evaluation]:
        """Models from best to worst; NaN last."""
        sign = -1 if measure.higher_is_better else 1

        def place(ev: Evaluation) -> tuple[bool, float]:
            value = float(measure.of(ev))
            return isnan(value), sign * value

        return sorted(self.evaluations, key=place)

    def frame(self) -> Frame:
        """One row per model: the columns of the table, and effects where there are any.

        A Polars or pandas frame, whichever is loaded or installed, else a dict of arrays.
        """
        columns: dict[str, Any] = {"model": np.array(self.names)}
        for key, measure in MEASURES.items():
            if all(key not in ev.metrics for ev in self) and key in self[0].metrics:
                continue
            columns[key] = np.array([_value(measure, ev) for ev in self])
        for name in ("accuracy_change", "changed", "tied", "impossible", "fit_seconds"):
            if self.effects:
                columns[name] = np.array(
                    [getattr(self.effects.get(n), name, np.nan) for n in self.names],
                    float,
                )
        return to_frame(columns)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Restore what ``to_dict`` gave."""
        effects = {
            name: Effect(**{**effect, "notes": tuple(effect["notes"])})
            for name, effect in given["effects"].items()
        }
        evaluations = tuple(Evaluation.from_dict(ev) for ev in given["evaluations"])
        return cls(evaluations, given["protocol"], effects)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.names)})"

    def __str__(self) -> str:
        from acumen.words import describe_comparison

        return describe_comparison(self)


def _value(measure: Measure, ev: Evaluation) -> float:
    try:
        return float(measure.of(ev))
    except KeyError:  # not every target has every metric
        return float("nan")
