"""Which entry of a file plays which role: said by the user, or known by its name.

Logits and probabilities are told apart by name only, never by looking at the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TypeAlias

Names: TypeAlias = str | Sequence[str]
"""A name, a pattern with one ``*``, names with commas between them, or a list of names."""

KNOWN = {
    "label": ("labels", "label", "y", "y_true", "target", "targets", "outcome"),
    "logits": ("logits", "logit"),
    "probs": ("probs", "probabilities", "prob", "probability", "y_prob", "y_proba"),
    "confidence": ("confidence", "confidences", "conf"),
    "correct": ("correct", "is_correct"),
    "pred": ("pred", "preds", "prediction", "predicted", "y_pred"),
    "weight": ("weight", "weights", "sample_weight"),
    "group": ("group", "groups"),
    "classes": ("classes", "class_names"),
}
"""Names that are read without being asked for, in upper or lower case."""

KNOWN_PATTERNS = {
    "logits": ("logits_*", "logit_*"),
    "probs": ("probs_*", "prob_*", "p_*"),
}
"""Columns that are read together if what stands for ``*`` are numbers."""


@dataclass(frozen=True, slots=True)
class Roles:
    """What to read; what is not said is found by the names in `KNOWN`.

    Attributes
    ----------
    label : str, optional
        The true class of each row.
    probs, logits : str or sequence of str, optional
        An n x k array, a column of lists, or one column per class: a pattern such as
        ``"p_*"`` or a list of names. One column alone is the positive class.
    confidence, correct : str, optional
        Stated confidence and whether it was right. Without `correct`, right is where
        `pred` equals `label`.
    pred : str, optional
        The predicted class, for confidences without `correct`.
    weight, group : str, optional
        Frequency weight and subgroup of each row.
    classes : sequence of str, optional
        Names of the classes in the order of the columns.
    unlabelled : bool
        Whether rows may be without labels, as when a recalibrator is applied to them.

    Examples
    --------
    >>> Roles(label="truth", probs="p_*").given
    ('label', 'probs')
    """

    label: str | None = None
    probs: Names | None = None
    logits: Names | None = None
    confidence: str | None = None
    correct: str | None = None
    pred: str | None = None
    weight: str | None = None
    group: str | None = None
    classes: Sequence[str] | None = None
    unlabelled: bool = False

    @property
    def given(self) -> tuple[str, ...]:
        """The roles that were said."""
        names = (f.name for f in fields(self) if f.name != "unlabelled")
        return tuple(name for name in names if getattr(self, name) is not None)


def split_pattern(pattern: str, names: Sequence[str]) -> dict[str, str]:
    """Names that fit a pattern, and what stands for its star in each.

    Examples
    --------
    >>> split_pattern("p_*", ["y", "p_cat", "p_dog"])
    {'p_cat': 'cat', 'p_dog': 'dog'}
    """
    start, _, end = pattern.partition("*")
    return {
        name: name[len(start) : len(name) - len(end)]
        for name in names
        if name.startswith(start)
        and name.endswith(end)
        and len(name) > len(start) + len(end)
    }


def in_order(parts: dict[str, str]) -> dict[str, str]:
    """Names sorted by number if all stars are numbers, so that p_10 follows p_9.

    Examples
    --------
    >>> list(in_order({"p_1": "1", "p_10": "10", "p_2": "2"}))
    ['p_1', 'p_2', 'p_10']
    """
    if not are_numbers(parts):
        return parts
    return dict(sorted(parts.items(), key=lambda item: int(item[1])))


def are_numbers(parts: dict[str, str]) -> bool:
    """Whether every star stands for a number, each another one."""
    stars = list(parts.values())
    plain = all(s.isascii() and s.isdigit() and len(s) < 10 for s in stars)
    return plain and len({int(star) for star in stars}) == len(stars)
