"""Worlds of real confidences: nine models that chose nothing, outcomes from known curves."""

from collections.abc import Iterable

import numpy as np

from . import laws
from .worlds import World, atoms

TRUTHS = {"calibrated": "cal", "flexible fit": "fit"}
"""Accuracies of `laws.truths`: none is better calibrated, or as real as a curve can be."""


def real_worlds(load: laws.Load) -> Iterable[World]:
    """Each hold-out model, calibrated and with the curve fitted to its outcomes."""
    for name, read in laws.HOLD_OUT.items():
        rows = read(load)
        law = laws.reduce_to_atoms(rows)
        for truth, short in TRUTHS.items():
            yield _world(law, f"{name}, {short}", truth, laws.truths(law, rows)[truth])


def _world(law: laws.Law, name: str, words: str, accuracy: laws.Column) -> World:
    return World(
        *(name, words, atoms(law.h, law.mass)),
        lambda h: np.interp(h, law.h, accuracy),
        saturated=not name.startswith(laws.NO_NETWORKS),
    )
