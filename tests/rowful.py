"""Evaluations that keep their rows, for tests of differences and audits."""

from dataclasses import fields, replace

import calibrant as cal
from calibrant._base.evaluation import Evaluation
from calibrant._inputs.predictions import fingerprint, read_predictions
from calibrant._rows.reduce import reduce_to_columns


class Rowful(Evaluation):
    """A stand-in with `columns` and `fingerprint`, while the record has none."""


def keep(ev, **extra):
    """The same evaluation with these fields."""
    if {f.name for f in fields(ev)} >= set(extra):
        return replace(ev, **extra)
    kept = object.__new__(Rowful)
    for f in fields(ev):
        object.__setattr__(kept, f.name, getattr(ev, f.name))
    for name, value in {**getattr(ev, "__dict__", {}), **extra}.items():
        object.__setattr__(kept, name, value)
    return kept


def rowful(
    y, *, name="model", confidence=None, sample_weight=None, frequency=None, **given
):
    """Evaluate, and keep the rows."""
    shared = {"sample_weight": sample_weight, "frequency": frequency}
    scores = {k: given.pop(k) for k in ("probs", "logits", "target") if k in given}
    if confidence is not None:
        ev = cal.evaluate_pairs(y, confidence, name=name, **shared, **given)
        scores = {"confidence": confidence}
    else:
        ev = cal.evaluate(y, name=name, **scores, **shared, **given)
    predictions = read_predictions(y, **scores, **shared)
    asked = predictions
    if predictions.target == "class-wise":
        asked = replace(predictions, target="top-label")
    return keep(
        ev,
        columns=reduce_to_columns(asked),
        fingerprint=fingerprint(predictions.labels, predictions.weight),
    )
