"""Several models on the same rows: a record that every table and figure reads."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from math import inf, nan
from typing import Annotated, Any, ClassVar, overload

import numpy as np

from calibrant._base.checks import MOST_NAME, check_choice, check_kind, one_line
from calibrant._base.evaluation import Evaluation, group_name, targets_apart
from calibrant._base.measures import columns as columns_of_tables
from calibrant._base.measures import is_trivial
from calibrant._base.records import CLOSE, Amount, Frame, Range, Record, Whole, to_frame
from calibrant._base.views import Views

PRINTED_EFFECTS = ("accuracy_change", "changed", "tied", "impossible")
EFFECTS = (*PRINTED_EFFECTS, "fit_seconds")
"""Numbers of an `Effect` that can be columns too; seconds differ from run to run."""


@dataclass(frozen=True, slots=True)
class Effect(Record):
    """What a recalibration did besides changing scores.

    Attributes
    ----------
    method : str
        The class of the recalibrator.
    fit_seconds, apply_seconds : float
        Time taken, summed over folds.
    accuracy_change, changed : float
        Accuracy after less before, and how many rows have another predicted class.
    tied : float
        Rows whose largest probability is shared by several classes, so that the order of
        the columns decides what is predicted.
    impossible : float
        Rows that gave their label probability 0: infinite log loss. Importance weights
        do not matter to these counts.
    notes : tuple of str
        What the fit had to say.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.study([0, 1, 1, 0] * 9, probs=[[0.8, 0.2]] * 36, target="top-label")
    >>> found.effects["Temperature"].changed
    0.0
    """

    method: str
    fit_seconds: Amount
    apply_seconds: Amount
    accuracy_change: Annotated[float, Range(-1, 1)]
    changed: Amount
    tied: Amount
    impossible: Amount
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison(Views, Record):
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
    shared_rows : int
        Rows of the test set that seem to be among the rows fitted on.

    Examples
    --------
    >>> import calibrant as cal
    >>> sure = cal.evaluate_pairs([1, 0, 1, 1] * 20, [0.9, 0.8, 0.9, 1.0] * 20, name="sure")
    >>> fair = cal.evaluate_pairs([1, 0, 1, 1] * 20, [0.8, 0.6, 0.8, 0.9] * 20, name="fair")
    >>> found = cal.Comparison((sure, fair))
    >>> found.best("brier").name, found["fair"] is fair, found.effect("fair", "changed")
    ('fair', True, nan)
    >>> print(found.table("csv", columns=["accuracy", "brier"]).splitlines()[0])
    "model","accuracy","brier"
    >>> [*map(str, found.frame()["model"])], len(found.plot()), found.audit()[-1].severity
    (['sure', 'fair'], 2, 'note')
    >>> cal.Comparison.from_dict(found.to_dict()).names
    ('sure', 'fair')
    >>> cal.Comparison.from_json(found.to_json())["fair"].rows
    80
    """

    evaluations: tuple[Evaluation, ...]
    protocol: str = ""
    effects: Mapping[str, Effect] = field(default_factory=dict)
    shared_rows: Whole = 0
    _each: ClassVar = "model"  # what views call one of them
    _beside: ClassVar = ("findings", "failed", "macro_averages", "group_differences")

    def __post_init__(self) -> None:
        given = evaluations_in(self.evaluations, "evaluations")
        object.__setattr__(self, "evaluations", tuple(given))
        check_kind(self.effects, Mapping, "effects")
        names = self.names
        twice = [name for i, name in enumerate(names) if name in names[:i]]
        if twice:
            raise ValueError(
                f"models must have distinct names; {twice[0]!r} occurs more than once. "
                "Name them with evaluate(..., name=...), or show a dict of them: "
                "{'A': study_a, 'B': study_b}."
            )
        strange = [name for name in self.effects if name not in names]
        if strange:
            raise ValueError(f"effects must belong to models; {strange[0]!r} is none.")

    def _disagreement(self) -> str | None:
        for name, effect in self.effects.items():
            n = self[name].n
            for key in ("changed", "tied", "impossible"):
                if getattr(effect, key) > n * (1 + CLOSE):
                    return f"has an effect of {name!r} with {key} above its {n:g} rows"
        return None

    def __len__(self) -> int:
        return len(self.evaluations)

    def __iter__(self) -> Iterator[Evaluation]:
        return iter(self.evaluations)

    def __contains__(self, item: object) -> bool:
        return item in self.names or item in self.evaluations

    @overload
    def __getitem__(self, key: int | str) -> Evaluation: ...
    @overload
    def __getitem__(self, key: slice) -> Comparison: ...
    def __getitem__(self, key: int | str | slice) -> Evaluation | Comparison:
        if isinstance(key, str):
            check_choice(key, "model", self.names)
            return self.evaluations[self.names.index(key)]
        if isinstance(key, slice):
            kept, models = self.names[key], self.evaluations[key]
            effects = {name: e for name, e in self.effects.items() if name in kept}
            return Comparison(models, self.protocol, effects, self.shared_rows)
        return self.evaluations[key]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the models, in order."""
        return tuple(ev.name for ev in self.evaluations)

    def best(self, by: str = "brier") -> Evaluation:
        """The best model by one column; the first of several that are equal.

        A calibration error alone is won by models whose confidences are (nearly) all the
        same, or differ only by noise. Such a model is passed over in a calibration column,
        and a warning says so. Below 0 a calibration error counts as 0. NaN and infinity
        are never best.
        """
        check_choice(by, "by", tuple(columns_of_tables()))
        measure = columns_of_tables()[by]
        place = {ev.name: measure.place(measure.of(ev)) for ev in self}
        finite = (ev for ev in self if place[ev.name] < inf)
        ranked = sorted(finite, key=lambda ev: place[ev.name])
        if not ranked:
            raise ValueError(
                f"no model can be best by {by!r}: it is infinite or missing for each. "
                "Use by='brier'."
            )
        if not measure.calibration:
            return ranked[0]
        honest = [ev for ev in ranked if not is_trivial(ev)]
        if not honest:
            raise ValueError(
                f"no model can be best by {by!r}: each has (nearly) the same confidence "
                "for every example, and a constant needs only the right average to be "
                "calibrated. Use by='brier' or by='nll'."
            )
        if place[honest[0].name] > place[ranked[0].name]:
            warnings.warn(
                f"{ranked[0].name!r} has the least {measure.label}, but is trivially "
                "calibrated: the spread of its confidences explains (almost) nothing. "
                f"{honest[0].name!r} is the best of the others; by='brier' weighs "
                "calibration and sharpness together.",
                stacklevel=2,
            )
        return honest[0]

    def frame(self, kind: str | None = None) -> Frame:
        """One row per model: every column any model has, and effects if there are any.

        ``target`` is a column where some model is class-wise: its errors are of all classes.
        A pandas frame, else a Polars one, else a dict of arrays, as is installed; `kind`,
        ``"polars"`` or ``"pandas"``, says which.
        """
        columns = {"model": np.array(self.names)} | targets_apart(self)
        for key, measure in columns_of_tables().items():
            values = np.array([float(measure.of(ev)) for ev in self])
            if not np.isnan(values).all():
                columns[key] = values
        for key in EFFECTS if self.effects else ():
            columns[key] = np.array([self.effect(name, key) for name in self.names])
        return to_frame(columns, kind)

    def effect(self, name: str, key: str) -> float:
        """One number of a model's effect; NaN for a model that has none."""
        check_choice(name, "name", self.names)
        check_choice(key, "key", EFFECTS)
        return float(getattr(self.effects.get(name), key, nan))


def as_comparison(models: Any, name: str = "models") -> Comparison:
    """Read a comparison, one evaluation, several in a list, or any of them by name."""
    if isinstance(models, Comparison):
        return models
    if isinstance(models, Evaluation):
        return Comparison((models,))
    if isinstance(models, Mapping):
        return _by_name(models, name)
    return Comparison(tuple(evaluations_in(models, name)))


def _by_name(models: Mapping[str, Any], name: str) -> Comparison:
    """Models under the names of a dict; those of a comparison keep theirs behind it."""
    if not models:
        evaluations_in((), name)  # says what is wrong
    evaluations: list[Evaluation] = []
    effects: dict[str, Effect] = {}
    protocols, shared = set(), 0
    for key, part in models.items():
        check_kind(key, str, f"a name in {name}")
        found = as_comparison(part, f"{name}[{key!r}]")
        alone = isinstance(part, Evaluation)
        names = {x: key if alone else f"{key}: {x}" for x in found.names}
        evaluations += [renamed(ev, names[ev.name]) for ev in found]
        effects |= {names[x]: effect for x, effect in found.effects.items()}
        protocols.add(found.protocol)
        shared += found.shared_rows
    protocol = protocols.pop() if len(protocols) == 1 else ""
    return Comparison(tuple(evaluations), protocol, effects, shared)


def renamed(ev: Evaluation, name: str) -> Evaluation:
    """The same model under another name, which its groups have too."""
    parts = ev.per_group.items()
    groups = {x: replace(part, name=group_name(name, x)) for x, part in parts}
    return replace(ev, name=name, per_group=groups)


def as_shown(models: Any) -> Comparison:
    """The same under names that can be printed and drawn: each on one line, and short.

    Every view of models begins with it; names that are fine stay as they are.
    """
    found = as_comparison(models)
    names = shown_names(found.names)
    changes: dict[str, Any] = {}
    for field_ in fields(found):
        value = getattr(found, field_.name)
        if isinstance(value, str):
            changes[field_.name] = names.get(value, one_line(value))
        elif isinstance(value, Mapping):
            changes[field_.name] = {names.get(key, key): x for key, x in value.items()}
    changes["evaluations"] = tuple(shown_evaluation(ev, names) for ev in found)
    same = all(new == old for old, new in names.items())
    if same and all(map(operator.is_, changes["evaluations"], found)):
        return found
    return replace(found, **changes)


def shown_evaluation(ev: Evaluation, names: Mapping[str, str] | None = None) -> Any:
    """An evaluation under a name that can be shown; its classes and groups as well."""
    name = (names or shown_names([ev.name]))[ev.name]
    classes = shown_names(part.name for part in ev.per_class)
    groups = shown_names(ev.per_group)
    known = {ev.name: name, **classes, **groups}
    if all(new == old for old, new in known.items()):
        return ev
    parts = tuple(shown_evaluation(part, classes) for part in ev.per_class)
    of_groups = {groups[x]: part for x, part in ev.per_group.items()}
    return renamed(replace(ev, per_class=parts, per_group=of_groups), name)


def shown_names(names: Iterable[str]) -> dict[str, str]:
    r"""How to show each of these names; no two distinct ones look the same.

    Examples
    --------
    >>> shown_names(["a", "a\n", "b"])
    {'a': 'a', 'a\n': 'a (2)', 'b': 'b'}
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        plain = text = one_line(name, MOST_NAME)
        count = 1
        while text in taken and name not in found:
            count += 1
            text = f"{plain} ({count})"
        found.setdefault(name, text)
        taken.add(text)
    return found


def evaluations_in(models: Any, name: str = "models") -> list[Evaluation]:
    """Evaluations in a list or the like, of which there must be one."""
    rule = (
        f"{name} must be a Comparison, an Evaluation, a list of Evaluations, or a dict of "
        "any of these, {'A': study_a, 'B': study_b}"
    )
    found: list[Evaluation] = []
    if not isinstance(models, Iterable) or isinstance(models, str):
        raise TypeError(f"{rule}, got {type(models).__name__}.")
    listed = iter(models if getattr(models, "shape", None) != () else [models])
    for place, ev in enumerate(listed):
        if not isinstance(ev, Evaluation):
            raise TypeError(f"{rule}; item {place} is {type(ev).__name__}.")
        found.append(ev)
    if not found:
        raise ValueError(f"{rule}; it needs at least one evaluation, got none.")
    return found
