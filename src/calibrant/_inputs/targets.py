"""What is asked of each row: any event c with any confidence h, as in the paper."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._base.checks import RowError, check_functions, check_text, shown
from calibrant._inputs.arrays import Column, Table

TOP = re.compile(r"top-([1-9]\d{0,5})")


@dataclass(frozen=True, slots=True)
class Target:
    """A question about every forecast: the event c(p), and the confidence h(p) in it.

    d_CAL is that of h against whether c came true; the score stays that of all classes.

    Attributes
    ----------
    name : str
        How it is called in results: ``"event: name"``.
    event : callable
        From probabilities (n x k) to a class per row, or to n x k booleans, the classes any
        of which makes it come true.
    confidence : callable
        From probabilities to the stated probability of that event.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> of = lambda p: np.broadcast_to([True, True, False], p.shape)
    >>> animal = cal.Target("animal", event=of, confidence=lambda p: p[:, :2].sum(axis=1))
    >>> p = [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]] * 10
    >>> round(cal.ece([0, 2] * 10, probs=p, target=animal), 3)
    0.2
    """

    name: str
    event: Callable[[Table], Any]
    confidence: Callable[[Table], Any]

    def __post_init__(self) -> None:
        check_text(self.name, "name")
        check_functions(event=self.event, confidence=self.confidence)

    @property
    def label(self) -> str:
        """Its name in a record."""
        own = getattr(self.event, "__module__", "") == __name__  # of `top` below
        return self.name if own else f"event: {self.name}"

    def ask(self, p: Table, labels: Any, first: int) -> tuple[Column, Column]:
        """Confidence of some rows, from row `first` on, and whether the event came true."""
        h, c = np.asarray(self.confidence(p), float), np.asarray(self.event(p))
        if h.shape != (len(p),) or c.shape not in ((len(p),), p.shape):
            raise ValueError(
                f"target {shown(self.name)} must give one confidence per row and an event "
                f"per row, or row and class; got shapes {h.shape} and {c.shape}."
            )
        soft = labels if labels.ndim == 2 else np.eye(p.shape[1])[labels]
        among = c if c.ndim == 2 else np.eye(p.shape[1])[c.astype(np.intp)]
        known = np.isfinite(p).all(axis=1)  # rows of weight 0 may hold anything
        off = known & ~((h >= -1e-9) & (h <= 1 + 1e-6))
        if off.any():
            rule = f"the confidence of target {shown(self.name)} must be in [0, 1];"
            raise RowError(rule, first + int(off.argmax()), f"is {h[off.argmax()]:.6g}")
        return np.clip(h, 0.0, 1.0), np.minimum((soft * among).sum(axis=1), 1.0)


def top(count: int) -> Target:
    """The question whether the label is among the likeliest classes."""

    def event(p: Table) -> Any:
        place = np.argsort(np.argsort(-p, axis=1, kind="stable"), axis=1)
        return place < count

    return Target(f"top-{count}", event, lambda p: p.sum(axis=1, where=event(p)))


def read_target(target: Any, k: int) -> Target | None:
    """The event of a `Target`, ``"top-3"`` or ``("top", 3)``; None for other targets."""
    if isinstance(target, Target) or target is None:
        return target
    if isinstance(target, tuple) and len(target) == 2:
        target = "-".join(map(str, target))
    found = TOP.fullmatch(target) if isinstance(target, str) else None
    if found is None:
        return None
    if not int(found[1]) < k:
        raise ValueError(
            f"target={target!r} needs more than {found[1]} classes, got {k}: the label is "
            "always among them."
        )
    return top(int(found[1]))
