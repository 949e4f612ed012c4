"""The paper's protocol: a fifth to calibrate on, 15 bins, a Gaussian of width 0.05."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

import calibrant as cal
from calibrant import recalibration
from experiments.models import Outputs, read

SPLIT, SEED = 0.2, 0
BASELINE, TS, HB, IR, MRR = "Uncalibrated", "TS", "HB", "IR", "MRR"
METHODS = {
    TS: "temperature",
    HB: "histogram",
    IR: "isotonic",
    MRR: "mean-replacement",
}
"""The paper's names of what it compares with the uncalibrated model."""

Kernel = tuple[str, float]
PAPER_KERNEL: Kernel = ("gaussian", 0.05)
KERNELS: tuple[Kernel, ...] = (
    *(("gaussian", width) for width in (0.01, 0.03, 0.05, 0.1, 0.25)),
    *(("epanechnikov", width) for width in (0.03, 0.05)),
)
"""Kernels and bandwidths of the paper's figures."""

POINTS = 5000
"""Rows of each of the estimates that the paper averages."""


class Subsampled(NamedTuple):
    """Mean and standard deviation (the paper's ±) of ten estimates."""

    mean: float
    spread: float

    def agrees_with(self, value: float) -> bool:
        """Whether a value is within two of these standard deviations."""
        return abs(self.mean - value) <= 2 * self.spread + 1e-12


class Experiment:
    """One model put through the paper's protocol; what follows is computed once."""

    def __init__(self, outputs: Outputs) -> None:
        self.name, self.title = outputs.name, outputs.title
        self.dataset, self.kind = outputs.dataset, outputs.kind
        self.study = run(outputs)

    @property
    def n(self) -> int:
        """Rows of the test."""
        return self.study[0].rows

    @cached_property
    def errors(self) -> dict[Kernel, dict[str, float]]:
        """d_CAL of each method by kernel and bandwidth."""
        return {
            kernel: {ev.name: _d_cal(ev, kernel) for ev in self.study}
            for kernel in KERNELS
        }

    def ranking(self, kernel: Kernel) -> tuple[str, ...]:
        """Names of the methods, from the least calibration error to the largest."""
        errors = self.errors[kernel]
        return tuple(sorted(errors, key=errors.__getitem__))

    def evaluated(self, kernel: Kernel, names: Iterable[str]) -> list[cal.Evaluation]:
        """Confidences of some methods evaluated with another kernel."""
        return [
            cal.evaluate_pairs(
                self.study[name].columns.hit,
                self.study[name].columns.confidence,
                name=name,
                kernel=kernel[0],
                bandwidth=kernel[1],
                interval=None,
            )
            for name in names
        ]

    @cached_property
    def by_rows(self) -> dict[str, Subsampled]:
        """As the paper says: each estimate sees 5,000 rows and no other."""
        return {ev.name: _subsampled(ev, "rows") for ev in self.study}

    @cached_property
    def by_points(self) -> dict[str, Subsampled]:
        """As the authors' code does: a curve from all rows, averaged at 5,000."""
        return {ev.name: _subsampled(ev, "points") for ev in self.study}

    @property
    def can_be_subsampled(self) -> bool:
        """Whether 5,000 rows are less than all."""
        return self.n > POINTS


@cache
def experiment(name: str) -> Experiment:
    """The experiment with a recorded model."""
    return Experiment(read(name))


# -- recalibration ---------------------------------------------------------------------


def run(outputs: Outputs) -> cal.Comparison:
    """Recalibrate in the paper's four ways and evaluate as published.

    The authors take the first fifth of the rows. Recorded files may be in order of
    class, so here the fifth is drawn at random.
    """
    if outputs.kind == "confidence":
        return _run_confidences(outputs)
    return cal.study(
        outputs.y,
        logits=outputs.scores if outputs.kind == "logits" else None,
        probs=outputs.scores if outputs.kind == "probs" else None,
        methods=METHODS,
        split=SPLIT,
        rng=SEED,
        target="top-label",
        preset="paper",
        interval=None,
    )


def _run_confidences(outputs: Outputs) -> cal.Comparison:
    """The same for models of which only the confidence was recorded.

    Each method then learns a single curve, and the losses are those of the confidence.
    """
    n = len(outputs.y)
    count = round(SPLIT * n)
    order = np.random.default_rng(SEED).permutation(n)
    fit, test = order[:count], order[count:]
    h, hit = outputs.scores.astype(float), outputs.y.astype(int)
    said = {BASELINE: h[test]}
    for name, learner in _learners().items():
        said[name] = learner.fit(h[fit], hit[fit]).predict_proba(h[test])[:, 1]
    said[MRR] = np.full(n - count, hit[fit].mean())
    evaluations = tuple(
        cal.evaluate_pairs(hit[test], one, name=name, preset="paper", interval=None)
        for name, one in said.items()
    )
    words = (
        f"fitted on {count:,} examples ({SPLIT:.0%}, drawn at random), tested on the other "
        f"{n - count:,}; only the confidence of the predicted class is known"
    )
    return cal.Comparison(evaluations, protocol=words)


def _learners() -> dict[str, recalibration.Recalibrator]:
    return {
        TS: recalibration.TemperatureScaling(scores="probs"),
        HB: recalibration.HistogramBinning(scores="probs", compat="netcal"),
        IR: recalibration.IsotonicCalibration(scores="probs", compat="netcal"),
    }


# -- calibration errors ----------------------------------------------------------------


def _d_cal(ev: cal.Evaluation, kernel: Kernel) -> float:
    if kernel == PAPER_KERNEL:
        return float(ev.paper.calibration)
    h, hit = ev.columns.confidence, ev.columns.hit
    name, width = kernel
    return float(cal.calibration_error(hit, confidence=h, kernel=name, bandwidth=width))


def _subsampled(ev: cal.Evaluation, of: str) -> Subsampled:
    return Subsampled(*cal.paper_spread(ev, of=of, size=POINTS, rng=SEED))
