"""Evaluations whose numbers are chosen by hand, for tests of tables and views."""

from dataclasses import replace
from functools import cache

import numpy as np

import calibrant as cal
from calibrant._base.comparison import Comparison, Effect


@cache
def seeded():
    """A small evaluation of real shape: three classes, 400 rows."""
    rng = np.random.default_rng(0)
    z = 2 * rng.normal(size=(400, 3))
    y = (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
    return cal.evaluate(y, logits=z)


@cache
def constant():
    """The same confidence in every row."""
    rng = np.random.default_rng(1)
    probs = np.full((400, 3), 0.2)
    probs[np.arange(400), rng.integers(0, 3, 400)] = 0.6
    return cal.evaluate(rng.integers(0, 3, 400), probs=probs)


def model(name, *, trivial=False, calibration=None, total=None, infinite=0, **metrics):
    """An evaluation of this name with these numbers."""
    ev = constant() if trivial else seeded()
    parts = ev.decomposition
    if calibration is not None:
        parts = replace(parts, calibration=cal.Estimate(calibration), gap=None)
    if total is not None:
        parts = replace(parts, total=cal.Estimate(total), gap=None)
    estimates = {
        key: value if isinstance(value, cal.Estimate) else cal.Estimate(value)
        for key, value in metrics.items()
    }
    return replace(
        ev,
        name=name,
        decompositions={**ev.decompositions, ev.divergence: parts},
        metrics={**ev.metrics, **estimates},
        infinite_rows=float(infinite),
        fingerprint=None if trivial else ev.fingerprint,
    )


def row(name, numbers, **more):
    """A model from the eight numbers of a row of the paper's table."""
    acc, ece, ace, smooth, nll, brier, error, gap = numbers
    return model(
        name,
        accuracy=acc,
        ece=ece,
        ace=ace,
        smooth_ece=smooth,
        nll=nll,
        brier=brier,
        calibration=error,
        total=error + gap,
        **more,
    )


@cache
def small():
    """Three models: one plain, one of infinite loss, one trivial."""
    inf = float("inf")
    plain = (0.8514, 0.0259, 0.0546, 0.026, 0.5683, 0.2195, 0.0026, 0.2169)
    zeros = (0.8382, 0.0453, 0.0813, 0.0448, inf, 0.2413, 0.0064, 0.2349)
    trivial = (0.8514, 0.0018, 0.0018, 0.0018, 1.4466, 0.2751, 0.00001, 0.27509)
    return Comparison(
        (
            row("ViT + TS", plain),
            row("ViT + IR", zeros, infinite=3),
            row("ViT + MRR", trivial, trivial=True),
        ),
        "fitted on 100 examples, tested on 400 others",
    )


@cache
def studied():
    """The same with effects."""
    none = Effect("Uncalibrated", 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    effects = {
        "ViT + TS": none,
        "ViT + IR": Effect("Isotonic", 1.5, 0.1, -0.0132, 12.0, 5.0, 3.0, ("a note",)),
        "ViT + MRR": replace(none, method="MeanReplacement", fit_seconds=0.004),
    }
    return Comparison(small().evaluations, small().protocol, effects)
