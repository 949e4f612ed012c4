"""Predictions to put into files, with the truth known, and faults that must be refused."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .choices import Choices

Arrays = dict[str, NDArray[np.generic]]

EDGES = (0.0, -0.0, 1.0, 5e-324, 1e-308, 1e-16, 0.5, 1 - 2**-53, 1.5, -1e-9, 1e308)
"""Numbers at the edges of floats, some of them probabilities and some not."""

IDS = (0, 2**31, 2**53, 2**53 + 1, 2**53 + 2, 2**62, 2**63 - 2, 2**63 - 1)
"""Names of classes that doubles do not tell apart."""


@dataclass
class Rows:
    """Arrays by the names files give them, and what is known about them.

    `kind`, `scores` and `y` are what a reader must find; `wrong` says what is wrong with
    the rows, and is empty where nothing is.
    """

    kind: str
    arrays: Arrays
    scores: NDArray[np.generic]
    y: NDArray[np.generic]
    wrong: str = ""
    names: list[str] = field(default_factory=list)


def rows(c: Choices) -> Rows:
    """A few rows: probabilities, logits or confidences, as they should be."""
    rng = np.random.default_rng(c.below(1 << 16))
    n, k = c.between(1, 24), c.between(2, 4)
    shape = c.one(("probs", "logits", "prob", "correct", "ids", "words"))
    y = rng.integers(0, k, n)
    if shape == "probs":
        scores = rng.dirichlet(np.ones(k), n)
        made = Rows("probs", {"probs": scores, "labels": y}, scores, y)
    elif shape == "logits":
        scores = rng.normal(0, 3, (n, k))
        made = Rows("logits", {"logits": scores, "labels": y}, scores, y)
    elif shape == "prob":
        scores, y = rng.random(n), rng.integers(0, 2, n)
        made = Rows("probs", {"prob": scores, "label": y}, scores, y)
    elif shape == "correct":
        scores, y = rng.random(n), rng.integers(0, 2, n)
        made = Rows("confidence", {"confidence": scores, "correct": y}, scores, y)
    else:
        made = _answers(rng, n, words=shape == "words")
    _beside(c, rng, made, n)
    return made


def _answers(rng: np.random.Generator, n: int, *, words: bool) -> Rows:
    """Confidences beside answers, which are numbers of 64 bits, or words."""
    names = np.array(["a", "b", "A", "None"] if words else IDS)
    pred, label = rng.choice(names, n), rng.choice(names, n)
    arrays = {"confidence": rng.random(n), "pred": pred, "label": label}
    return Rows("confidence", arrays, arrays["confidence"], pred == label)


def _beside(c: Choices, rng: np.random.Generator, made: Rows, n: int) -> None:
    """Weights, counts, clusters and groups."""
    if c.chance(40):
        made.arrays["weight"] = rng.random(n) + 0.1
    elif c.chance(40):
        made.arrays["frequency"] = rng.integers(1, 4, n)
    if c.chance(40) and n >= 12:  # fewer than ten clusters are refused
        made.arrays["cluster"] = rng.permutation(n)
    if c.chance(40) and "cluster" not in made.arrays:  # in each group, too
        made.arrays["group"] = rng.choice(np.array(["x", "y", "None"]), n)


def spoil(c: Choices, made: Rows) -> None:
    """Break one rule that every reader and every verb must hold rows to."""
    fault = c.one(("nan", "infinite", "sum", "negative", "label", "length", "weight"))
    scores = made.arrays[_scores_name(made)] = made.scores.astype(float)
    row = c.below(len(scores))
    probabilities = made.kind != "logits"
    if fault == "nan":
        scores[row] = np.nan
    elif fault == "infinite":
        scores[row] = np.inf  # a row of infinite logits has no softmax
    elif fault == "sum" and scores.ndim == 2 and probabilities:
        scores[row] = 1.0
    elif fault == "negative" and probabilities:
        scores[row] = -c.one((0.1, 1e-3, 1e300))
    elif fault == "label" and "labels" in made.arrays:
        made.arrays["labels"] = made.arrays["labels"].copy()
        made.arrays["labels"][row] = c.one((-1, 99, 2**31, -(2**63)))
    elif fault == "weight":
        made.arrays.pop("frequency", None)
        made.arrays["weight"] = np.ones(len(scores))
        made.arrays["weight"][row] = c.one((-1.0, np.nan, np.inf, -1e-300))
    else:
        made.arrays = {name: array[:0] for name, array in made.arrays.items()}
        fault = "no rows"
    made.wrong = fault


def edge(c: Choices, made: Rows) -> None:
    """Numbers at the edges: what becomes of them is the reader's choice, if it is clear."""
    scores = made.arrays[_scores_name(made)] = made.scores.astype(float)
    for _ in range(c.between(1, 3)):
        scores[c.below(len(scores))] = c.one(EDGES)
    made.wrong = "?"


def _scores_name(made: Rows) -> str:
    return next(
        n for n in ("probs", "logits", "prob", "confidence") if n in made.arrays
    )
