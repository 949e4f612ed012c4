"""Which column of a frame plays which part."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from acumen.arrays import check_choice
from acumen.bregman import BUILT_IN
from acumen.files.roles import in_order, split_pattern
from acumen.predictions import TARGETS
from acumen.sketches.contents import Kind
from acumen.sketches.rows import known_losses


@dataclass(frozen=True, slots=True)
class Roles:
    """Names of columns, resolved: either `probs` and `label`, or a pair.

    `probs` are columns of one class each, one column of the positive class, or one
    column of lists; `losses` are columns of full losses by score.
    """

    probs: tuple[str, ...] = ()
    label: str | None = None
    confidence: str | None = None
    correct: str | None = None
    losses: Mapping[str, str] = field(default_factory=dict)
    weight: str | None = None
    group: str | None = None
    target: str | None = None
    classes: tuple[Hashable, ...] | None = None

    @property
    def pairs(self) -> bool:
        """Whether rows are pairs of confidence and correctness."""
        return self.confidence is not None

    @property
    def kind(self) -> Kind:
        """What the rows are, to a sketch."""
        if self.losses:
            return Kind("top-label", (False, True), known_losses(self.losses))
        if self.pairs:
            return Kind("pairs", (False, True), dict(BUILT_IN))
        k, one = len(self.probs), len(self.probs) == 1
        target = self.target or ("positive" if one else "top-label")
        return Kind(target, self.classes or tuple(range(max(k, 2))), dict(BUILT_IN))

    @property
    def names(self) -> list[str]:
        """Every column that is read, once."""
        one = (self.label, self.confidence, self.correct, self.weight, self.group)
        given = [*self.probs, *self.losses.values(), *one]
        return list(dict.fromkeys(name for name in given if name is not None))


def read_roles(
    columns: Sequence[str],
    *,
    label: str | None,
    probs: str | Sequence[str] | None,
    confidence: str | None,
    correct: str | None,
    loss: str | Mapping[str, str] | None,
    weight: str | None,
    group: str | None,
    target: str | None,
    classes: Sequence[Hashable] | None,
) -> Roles:
    """Check what was asked for against the columns there are."""
    if target is not None:
        check_choice(target, "target", TARGETS)
    _check_combination(
        of_probs={"probs": probs, "label": label},
        of_pairs={"confidence": confidence, "correct": correct},
        only_probs={"target": target, "classes": classes},
        loss=loss,
    )
    losses = {"brier": loss} if isinstance(loss, str) else dict(loss or {})
    if losses:
        known_losses(losses)
    found = Roles(
        _columns_of(probs, columns),
        label,
        confidence,
        correct,
        losses,
        weight,
        group,
        target,
        None if classes is None else tuple(classes),
    )
    for name in found.names:
        if name not in columns:
            raise ValueError(
                f"the frame has no column {name!r}; it has {_listed(columns)}."
            )
    return found


def _check_combination(
    *,
    of_probs: Mapping[str, object],
    of_pairs: Mapping[str, object],
    only_probs: Mapping[str, object],
    loss: object,
) -> None:
    given = {*_given(of_probs), *_given(of_pairs)}
    if given not in ({*of_probs}, {*of_pairs}):
        got = ", ".join(f"{name}=" for name in sorted(given)) or "neither"
        raise TypeError(
            "name the columns of probs= and label=, or of confidence= and correct=; "
            f"got {got}."
        )
    if given == {*of_pairs} and (extra := _given(only_probs)):
        raise ValueError(f"{extra[0]} does not apply to confidence pairs.")
    if given == {*of_probs} and loss is not None:
        raise ValueError(
            "loss= goes with confidence= and correct=; the losses of probs are computed."
        )


def _given(named: Mapping[str, object]) -> list[str]:
    return [name for name, value in named.items() if value is not None]


def _columns_of(
    probs: str | Sequence[str] | None, columns: Sequence[str]
) -> tuple[str, ...]:
    """One column, those of a pattern in the order of their numbers, or those listed."""
    if probs is None:
        return ()
    if not isinstance(probs, str):
        return tuple(probs)
    if "*" not in probs or probs in columns:
        return (probs,)
    found = in_order(split_pattern(probs, columns))
    if not found:
        raise ValueError(f"no column fits {probs!r}; there are {_listed(columns)}.")
    return tuple(found)


def _listed(columns: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(map(repr, columns[:most]))
    return shown + (f" and {len(columns) - most} more" if len(columns) > most else "")
