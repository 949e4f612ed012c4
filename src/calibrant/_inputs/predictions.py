"""The boundary: labels, scores, weights, clusters and groups are read here, once.

What needs only shapes, labels and weights is checked here. What needs the numbers in
the matrix (NaN, rows that do not sum to 1) is checked by the pass that reduces the
rows, so that checking costs no pass of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import isnan
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import (
    RowError,
    check_choice,
    check_length,
    out_of_order,
    read_names,
    shown,
)
from calibrant._inputs.arrays import (
    ABSENT,
    Column,
    Index,
    Matrix,
    as_scores,
    check_indices,
    check_logits,
    in_unit_interval,
    leave_out,
    plain_numbers,
    to_numpy,
)
from calibrant._inputs.targets import Target, read_target

Kind = Literal["probs", "logits", "confidence"]
TARGETS = ("top-label", "positive", "class-wise")
MULTI_LABEL = "multi-label"
MOST_FREQUENCY = float(1 << 53)
LEAST_CLUSTERS, MOST_GROUPS = 10, 200
MOST_CLUSTER_GROUPS = 128
DIGEST = 16


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """Scores with their labels, of agreeing shapes; nothing converted or copied.

    `labels` are column numbers, or a matrix of soft labels. Scores are one number
    per row (the positive class, or a confidence) or one per row and class. `weight` and
    `squared` are as in `Columns`. `clusters` (numbers) and `groups` (names) are those of the
    rows of positive weight; `cluster_groups` puts clusters together (`groups_of_clusters`).
    `event` is what a `Target` asks about. Of a multi-label problem each label of each row is
    a row here, and the labels of one row are a cluster.
    """

    scores: Matrix
    kind: Kind
    labels: NDArray[Any]
    weight: Column | None
    target: str | None
    classes: tuple[Hashable, ...]
    clusters: Index | None = None
    groups: NDArray[np.str_] | None = None
    squared: Column | None = None
    cluster_groups: Index | None = None
    event: Target | None = None

    @property
    def k(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def rows_given(self) -> int:
        """Number of rows as they were given, of which each may have several labels."""
        return len(self.scores) // (self.k if self.target == MULTI_LABEL else 1)

    @property
    def soft(self) -> bool:
        """Whether labels are distributions over the classes, not classes."""
        return self.labels.dtype.kind == "f"


def read_predictions(
    y: Any,
    *,
    probs: Any = None,
    logits: Any = None,
    confidence: Any = None,
    classes: Sequence[Hashable] | None = None,
    target: Any = None,
    sample_weight: Any = None,
    frequency: Any = None,
    cluster: Any = None,
    group: Any = None,
) -> Predictions:
    """Read one set of predictions; every rule of shape is enforced here."""
    kind, given = _one_of(probs=probs, logits=logits, confidence=confidence)
    beside = {"frequency": frequency, "cluster": cluster, "group": group}
    check_indices(**{"y": y, kind: given, "sample_weight": sample_weight, **beside})
    scores = as_scores(given, kind)
    if isinstance(target, str) and target == MULTI_LABEL:
        beside["sample_weight"] = sample_weight
        return _read_each_label(y, scores, kind, classes, beside)
    event: Target | None = None
    if scores.ndim not in (1, 2) or (kind == "confidence" and scores.ndim != 1):
        raise ValueError(
            f"{kind} must be {'1-D' if kind == 'confidence' else '1-D or 2-D'}, "
            f"got shape {scores.shape}."
        )
    if len(scores) == 0:
        raise ValueError(f"{kind} has no rows; at least one is needed.")
    if kind == "confidence":
        if target is not None or classes is not None:
            raise ValueError("target and classes do not apply to confidence pairs.")
        names: tuple[Hashable, ...] = (False, True)
        labels = _read_hits(y, len(scores), "correct")
        chosen = None
    else:
        event = read_target(target, 2 if scores.ndim == 1 else scores.shape[1])
        named = "top-label" if event is not None else target
        chosen = event.label if event else _choose_target(scores, kind, named)
        if kind == "logits":
            check_logits(scores)
        names = _class_names(scores, kind, classes)
        known = None if classes is None else names
        classes = named_classes(given, y, known, kind, len(names))
        names = names if classes is None else tuple(classes)
        labels = _read_labels(y, scores, kind, names, given_classes=classes is not None)
    if _look_swapped(scores, labels):
        raise ValueError(
            f"{kind} are all 0 or 1, and the labels are not: are the two swapped? "
            "Labels, or correctness, come first."
        )
    weight, squared = read_weights(sample_weight, frequency, len(scores))
    found = Predictions(
        scores, kind, labels, weight, chosen, names, squared=squared, event=event
    )
    if cluster is None and group is None:
        return found
    return _with_names(found, cluster, group)


def _read_each_label(
    y: Any, scores: Matrix, kind: Kind, classes: Any, beside: Mapping[str, Any]
) -> Predictions:
    """Read the labels of rows that may have several: each is a row, of its row's cluster."""
    labels = to_numpy(y, "y")
    if kind == "confidence" or scores.ndim != 2 or labels.shape != scores.shape:
        raise ValueError(
            "target='multi-label' needs probs or logits and y of one shape, a column per "
            f"label; got {kind} of shape {scores.shape} and y of shape {labels.shape}."
        )
    names, (n, k) = _class_names(scores, kind, classes), scores.shape
    _check_entries(scores, kind, "not finite" if kind == "logits" else "outside [0, 1]")
    labels = as_scores(labels * 1.0 if labels.dtype == bool else labels, "y")
    _check_entries(labels, "y", "outside [0, 1]")
    if beside["cluster"] is None and k > 1 and n >= LEAST_CLUSTERS:
        beside = {**beside, "cluster": np.arange(n)}
    repeated = {
        name: None if x is None else np.repeat(to_numpy(x, name), k)
        for name, x in beside.items()
    }
    given: dict[str, Any] = {kind: scores.ravel(), **repeated}
    found = read_predictions(labels.ravel().astype(np.float64), **given)
    return replace(found, target=MULTI_LABEL, classes=names)


def _check_entries(matrix: Matrix, name: str, what: str) -> None:
    """Raise at the first entry of a matrix that is no probability, or no logit."""
    rule = "finite" if what == "not finite" else "in [0, 1]"
    bad = ~(matrix < np.inf if rule == "finite" else (matrix >= 0) & (matrix <= 1))
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        said = f"is {matrix[row, column]:.6g} for label {column}"
        many = int(bad.any(axis=1).sum()), len(bad), what
        raise RowError(f"{name} must be {rule};", row, said, *many)


def _look_swapped(scores: Matrix, labels: NDArray[Any]) -> bool:
    """Whether all scores are 0 or 1 while most labels are not, in more than a few rows."""
    if scores.ndim > 1 or labels.dtype.kind != "f" or len(labels) < 20:
        return False
    for some in (scores[:100], scores):  # the first tell most
        if not np.all((some == 0) | (some == 1)):
            return False
    return bool(np.mean((labels > 0) & (labels < 1)) > 0.5)


def _one_of(**scores: Any) -> tuple[Kind, Any]:
    given = [name for name, value in scores.items() if value is not None]
    if len(given) != 1:
        got = " and ".join(f"{name}=" for name in given) or "none of them"
        raise TypeError(
            f"pass exactly one of probs=, logits= and confidence=; got {got}. "
            "Probabilities and logits are never told apart by looking at the numbers."
        )
    return given[0], scores[given[0]]  # type: ignore[return-value]


def _choose_target(scores: Matrix, kind: Kind, target: str | None) -> str:
    if target is not None:
        check_choice(target, "target", (*TARGETS, MULTI_LABEL, "top-2", "top-3"))
    if scores.ndim == 1:
        return target or "positive"
    k = scores.shape[1]
    if k < 2:
        raise ValueError(
            f"{kind} has {'one column' if k else 'no column'}, but needs one per class. For a binary problem "
            "pass the scores of the positive class as a 1-D array."
        )
    if k == 2 and target is None:
        raise ValueError(
            f"{kind} has two columns, which can be read in two ways: say "
            "target='positive' to ask about the second column (is the event as likely "
            "as forecast?) or target='top-label' to ask about the larger one (is the "
            "predicted class as likely as claimed?)."
        )
    if k > 2 and target == "positive":
        raise ValueError(
            f"target='positive' needs a binary problem, got {k} classes. Use "
            "'top-label' or 'class-wise', or pass the column of one class as 1-D."
        )
    return target or "top-label"


def _class_names(
    scores: Matrix, kind: Kind, classes: Sequence[Hashable] | None
) -> tuple[Hashable, ...]:
    k = 2 if scores.ndim == 1 else scores.shape[1]
    if classes is None:
        return tuple(range(k))
    names = read_names(classes, "classes", k + 1)
    if len(names) != k or len(set(names)) != k:
        more = " or more" if len(names) > k else ""
        raise ValueError(
            f"classes must name each of the {k} classes of {kind} once, in column "
            f"order; got {len(names)}{more} names, {len(set(names))} of them distinct."
        )
    return names


def named_classes(
    scores: Any, y: Any, classes: Any, kind: str, k: int
) -> Sequence[Hashable] | None:
    """Names of the classes in column order: those given, or those a data frame has.

    A frame's names are the classes if the labels are among them. Whole numbers other
    than 0, 1, ... (True is 1) must be, and none of the labels a column number as well; names such as
    p_1, p_0 are refused beside them. A series that is named after one of two labels is its probability.

    Examples
    --------
    >>> import pandas as pd
    >>> p = pd.DataFrame({"dog": [0.9, 0.3], "cat": [0.1, 0.7]})
    >>> named_classes(p, ["dog", "cat"], None, "probs", 2)
    ('dog', 'cat')
    >>> named_classes(p, ["dog", "cat"], ["cat", "dog"], "probs", 2)
    Traceback (most recent call last):
    ValueError: the columns of probs are 'dog', 'cat', and classes= says 'cat', 'dog'. ...
    """
    columns = _columns_of(scores, k)
    if (soft := _columns_of(y, k)) is not None:
        _check_agree(soft, "y", f"those of {kind} are", columns)
        _check_agree(soft, "y", "classes= says", classes)
    if columns is None:
        return _named_by_event(scores, y, classes, kind)
    if classes is not None:
        _check_agree(columns, kind, "classes= says", classes)
        return classes
    labels = _distinct(y)
    if labels is not None and not labels <= set(range(k)):
        named = {x for x in labels if not _is_missing(x)}
        if named <= set(columns):
            return columns
        if named & set(columns):
            strange = min(map(shown, named - set(columns)))
            raise ValueError(
                f"y holds {strange}, which is no column of {kind} ({_listed(columns)}). "
                "Rename the column, or pass classes=[...], the names in column order."
            )
    numbers = _as_numbers(columns)
    moved = numbers != _counted(k) and all(x.lstrip("-").isdecimal() for x in numbers)
    if moved or (labels is not None and out_of_order(columns)):
        raise ValueError(
            f"the columns of {kind} are {_listed(columns)}: which of them is class 0? Pass "
            "classes=[...], the names of the classes in column order, or .to_numpy() if "
            "labels are the numbers of columns."
        )
    return None


def _named_by_event(
    scores: Any, y: Any, classes: Any, kind: str
) -> Sequence[Hashable] | None:
    """The classes given, or the two labels there are if a series is named after one."""
    event, shape = getattr(scores, "name", None), getattr(scores, "shape", ())
    if not isinstance(event, str) or len(shape) != 1:
        return classes
    if classes is None:
        if to_numpy(y, "y").dtype.kind in "biuf":
            return None
        labels = _distinct(y) or set()
        other = labels - {event}
        return (*other, event) if len(labels) == 2 and len(other) == 1 else None
    if event in classes and event != classes[-1]:
        raise ValueError(
            f"{kind} is named {shown(event)}, and classes= says {_listed(classes)}, the "
            f"positive class last. Pass {shown(event)} last, or .to_numpy() if {kind} is "
            "misnamed."
        )
    return classes


def _is_missing(label: Any) -> bool:
    return label is None or (isinstance(label, float) and isnan(label))


def _columns_of(frame: Any, k: int) -> tuple[Hashable, ...] | None:
    """What a data frame calls its k columns; None for 0, 1, ..., which says nothing."""
    listed = getattr(frame, "column_names", getattr(frame, "columns", ()))
    names = tuple(listed) if isinstance(listed, Iterable) else ()
    kinds = str | int | np.integer | np.bool_
    if len(names) != k or not all(isinstance(x, kinds) for x in names):
        return None
    alike = len(set(_as_numbers(names))) < k
    return None if alike or [str(x) for x in names] == _counted(k) else names


def _counted(k: int) -> list[str]:
    return [str(i) for i in range(k)]


def _as_numbers(names: Iterable[Any]) -> list[str]:
    """Names as text, in which false and true are 0 and 1, which they are equal to."""
    return [{"false": "0", "true": "1"}.get(str(x).lower(), str(x)) for x in names]


def _check_agree(columns: Sequence[Any], of: str, who: str, names: Any) -> None:
    """Raise if columns have some of the names, but not each in its place."""
    if names is None:
        return
    mine, theirs = _as_numbers(columns), _as_numbers(names)
    if mine != theirs and set(mine) & set(theirs):
        raise ValueError(
            f"the columns of {of} are {_listed(columns)}, and {who} {_listed(names)}. "
            "Bring them into one order, or pass .to_numpy() if the columns are misnamed."
        )


def _listed(names: Sequence[Any]) -> str:
    plain = (x.item() if isinstance(x, np.generic) else x for x in names[:5])
    return ", ".join(map(shown, plain)) + ", …" * (len(names) > 5)


def _distinct(y: Any) -> set[Any] | None:
    """The labels there are; None if they are no names of classes."""
    labels = to_numpy(y, "y")
    try:
        return set(labels.tolist()) if labels.ndim == 1 else None
    except TypeError:  # some cannot be told apart
        return None


def _read_labels(
    y: Any,
    scores: Matrix,
    kind: Kind,
    names: tuple[Hashable, ...],
    *,
    given_classes: bool,
) -> NDArray[Any]:
    """Read labels as column numbers, hits, or a matrix of soft labels."""
    if given_classes and isinstance(y, list | tuple):
        labels = np.fromiter(y, object, len(y))  # names of any kind, one by one
    else:
        labels = _flat(to_numpy(y, "y"), "y")
    if len(labels) != len(scores):
        raise ValueError(
            f"y must have one entry per row of {kind}: {len(labels)} against "
            f"{len(scores)} rows."
        )
    if labels.ndim == 2:
        if labels.shape != scores.shape:
            raise ValueError(
                f"y, a matrix of soft labels, must have the shape of {kind}: "
                f"{labels.shape} against {scores.shape}."
                + " Are the two swapped? Labels come first."
                * (scores.ndim == 1)
            )
        return as_scores(labels * 1.0 if labels.dtype == bool else labels, "y")
    if given_classes:
        if not _are_numbers(labels, names):
            return _codes_by_name(labels, names)
        labels = labels.astype(np.intp)
    labels = plain_numbers(labels)
    if scores.ndim == 1 and labels.dtype.kind == "f":
        return _read_hits(labels, len(scores), "y")
    return _codes_by_number(labels, len(names))


def _flat(values: NDArray[Any], name: str) -> NDArray[Any]:
    if values.ndim == 2 and values.shape[1] == 1:
        return values[:, 0]
    if values.ndim not in (1, 2):
        soft = ", or n x k for soft labels" if name == "y" else ""
        raise ValueError(f"{name} must be 1-D{soft}; got {values.ndim}-D.")
    return values


def _codes_by_number(labels: NDArray[Any], k: int) -> NDArray[Any]:
    if labels.dtype.kind == "f":
        broken = labels != np.floor(labels)
        if broken.any():
            rest = "not whole", "Soft labels are given as an n x k matrix."
            raise RowError.at_first("y must hold class numbers;", broken, labels, *rest)
    elif labels.dtype.kind not in "iub":
        raise needs_names(labels, k)
    outside = (labels < 0) | (labels >= k)
    if outside.any():
        rule = f"y must be in 0..{k - 1}, the column numbers;"
        remedy = "If labels have other names, pass classes=[...] in column order."
        raise RowError.at_first(rule, outside, labels, "outside", remedy)
    return labels.astype(np.intp)


NO_LABEL = leave_out("y", "[x is not None and x == x for x in y]")


def needs_names(labels: NDArray[Any], k: int) -> Exception:
    """The error for labels that do not say which column is theirs."""
    lacks = np.array([str(x) in ABSENT and x != str(x) for x in labels.flat])
    if lacks.any():
        rule = "y must hold a label for each row;"
        return RowError.at_first(rule, lacks, labels, "missing", NO_LABEL)
    two = ", the positive class last" if k == 2 else ""
    return TypeError(
        f"y holds names, such as {_listed([labels.flat[0]])}; pass classes=[...], the "
        f"names of the classes in column order{two}."
    )


def _are_numbers(labels: NDArray[Any], names: Sequence[Hashable]) -> bool:
    """Whether labels are whole numbers, and classes are words: then they are columns."""
    if not all(isinstance(x, str) and not x.strip().isdecimal() for x in names):
        return False
    if labels.dtype == object:
        numbers = set(range(len(names)))
        return all(type(x) is int and x in numbers for x in labels)
    return labels.dtype.kind in "iu"


def _codes_by_name(labels: NDArray[Any], names: tuple[Hashable, ...]) -> NDArray[Any]:
    code_of = {name: code for code, name in enumerate(names)}
    if labels.dtype == object:
        found = [_code(label, code_of) for label in labels.tolist()]
        codes = np.array(found, dtype=np.intp)
    else:
        distinct, inverse = np.unique(labels, return_inverse=True)
        lookup = [code_of.get(label, -1) for label in distinct.tolist()]
        codes = np.array(lookup, dtype=np.intp)[inverse]
    if codes.min() < 0:
        row, count = int(np.argmin(codes)), int((codes < 0).sum())
        rule, what = "y must hold only names in classes;", labels.tolist()[row]
        some = f"is {shown(what)}", count, len(labels), "unknown"
        raise RowError(rule, row, *some, NO_LABEL if str(what) in ABSENT else "")
    return codes


def _code(label: Any, code_of: Mapping[Hashable, int]) -> int:
    """The column of a label; -1 for one that is no class, or can be none."""
    try:
        return code_of.get(label, -1)
    except Exception:  # noqa: BLE001 - an object of the user may raise anything
        return -1


def _read_hits(y: Any, n: int, name: str) -> NDArray[Any]:
    """Read correctness: booleans, 0/1, or shares in [0, 1]."""
    hits = plain_numbers(_flat(to_numpy(y, name), name), bool)
    check_length(hits, n, name)
    if hits.dtype.kind not in "biuf":
        raise _no_hits(hits, name)
    hits = hits.astype(np.float64, copy=False)
    if not in_unit_interval(hits):
        outside = ~((hits >= 0) & (hits <= 1))
        remedy = leave_out(name) if np.isnan(hits[outside.argmax()]) else ""
        rule = f"{name} must be in [0, 1];"
        raise RowError.at_first(rule, outside, hits, "outside", remedy)
    return hits


YES = ("yes", "y", "true", "t", "1", "correct", "right")
"""Words for what is correct, in upper or lower case."""


def _no_hits(given: NDArray[Any], name: str) -> TypeError:
    """The error of correctness that is not in numbers, with how to convert words."""
    rule, words = f"{name} must hold 0/1, booleans or shares", given.tolist()
    off = (i for i, x in enumerate(words) if x is None or isinstance(x, str))
    if (row := next(off, None)) is None:
        return TypeError(f"{rule}; got {given.dtype}.")
    remedy = leave_out(name)
    if words[row] is not None:
        correct = next((x for x in words if str(x).lower() in YES), words[row])
        remedy = f"Convert words: np.asarray({name}) == {shown(correct)}."
    return TypeError(f"{rule}; row {row} is {shown(words[row])}. {remedy}")


Weights = tuple[Column | None, Column | None]
"""Mass f w of each row and f w^2; None for all 1, and where f w^2 is f w."""


def sum_of_weights(sample_weight: Any, frequency: Any, n: int) -> float | None:
    """What importance weights add up to as they were given, if that is a number."""
    weight = _read_weight(sample_weight, "sample_weight", n)
    count = _read_weight(frequency, "frequency", n)
    if weight is None:
        return None
    with np.errstate(over="ignore"):
        total = float(weight.sum() if count is None else weight @ count)
    return total if np.isfinite(total) else None


def read_weights(
    sample_weight: Any, frequency: Any, n: int, *, part: bool = False
) -> Weights:
    """Read importance weights and counts of rows.

    Weights are scaled to mean 1, so their unit does not matter; where they only tell
    which rows count, they are 1. Those of a part of the rows are left as they are.
    """
    weight = _read_weight(sample_weight, "sample_weight", n)
    count = _read_weight(frequency, "frequency", n)
    if count is not None and (broken := count != np.floor(count)).any():
        rule, remedy = "frequency must hold whole numbers;", "Is it a sample_weight?"
        raise RowError.at_first(rule, broken, count, "not whole", remedy)
    with np.errstate(over="ignore"):
        mass = count if weight is None else weight if count is None else weight * count
        total = 0.0 if mass is None else mass.sum()
        rows = 0.0 if count is None else count.sum()
    if rows > MOST_FREQUENCY or (part and not np.isfinite(total)):
        named = "sample_weight" if frequency is None else "frequency"
        raise ValueError(f"{named} adds up to more than numbers can hold exactly.")
    if mass is None or part:
        return _unscaled(weight, count, mass)
    if not mass.any():
        named = "sample_weight" if frequency is None else "frequency"
        raise ValueError(f"{named} is zero for every row; nothing is left.")
    if weight is None:
        return mass, None
    counts = (mass > 0).astype(np.float64) if count is None else count * (mass > 0)
    largest = float(weight[mass > 0].max())
    scaled = np.where(mass > 0, weight / largest, 0.0)  # no sum overflows
    if np.all((scaled == 0) | (scaled == 1)):
        return counts, None
    if (tiny := (mass > 0) & (scaled < LEAST_WEIGHT)).any():
        rule = (
            f"sample_weight must be 0 or at least {LEAST_WEIGHT:g} times the largest;"
        )
        remedy = "Such a row counts for nothing: give it a weight of 0."
        raise RowError.at_first(rule, tiny, weight, "smaller", remedy)
    scaled *= counts.sum() / (counts * scaled).sum()
    return counts * scaled, counts * scaled * scaled


LEAST_WEIGHT = 1e-70
"""Relative to the largest one: its fourth power is a number."""

PART_WEIGHTS = 1e-70, 1e70
"""Weights that are not scaled: their fourth powers, and sums of these, are numbers."""


def _unscaled(
    weight: Column | None, count: Column | None, mass: Column | None
) -> Weights:
    if weight is None or mass is None or np.all((weight == 0) | (weight == 1)):
        return mass, None
    least, most = PART_WEIGHTS
    if (off := (weight > 0) & ((weight < least) | (weight > most))).any():
        rule = f"sample_weight must be 0 or from {least:g} to {most:g};"
        remedy = "Divide the weights of all parts by the same number."
        raise RowError.at_first(rule, off, weight, "outside", remedy)
    return mass, mass * weight


def _read_weight(given: Any, name: str, n: int) -> Column | None:
    if given is None:
        return None
    weight = _flat(to_numpy(given, name), name)
    if weight.dtype != bool:  # a mask is a weight of 0 or 1
        weight = as_scores(weight, name)
    weight = weight.astype(np.float64)
    check_length(weight, n, name)
    bad = ~((weight >= 0) & np.isfinite(weight))
    if bad.any():
        rule = f"{name} must be finite and not negative;"
        raise RowError.at_first(rule, bad, weight)
    return weight


def read_clusters(
    cluster: Any, predictions: Predictions
) -> tuple[Index, Index] | tuple[None, None]:
    """Number the clusters of the rows that count, and the groups of clusters.

    Rows of a cluster belong together: of one patient, say, or one game. There are none
    if each row is a cluster of its own, and stands for no other.
    """
    if cluster is None:
        return None, None
    hashed = hash_clusters(cluster, predictions)
    found, number = np.unique(hashed, return_inverse=True)
    check_clusters(len(found))
    if len(found) == len(hashed) and not _repeated(predictions):
        return None, None
    return number, groups_of_clusters(found)[number]


def _repeated(predictions: Predictions) -> bool:
    """Whether a row stands for several: they are of one cluster then."""
    mass, squared = predictions.weight, predictions.squared
    if mass is None:
        return False
    mass, squared = (x[mass > 0] for x in (mass, mass if squared is None else squared))
    return bool((np.rint(mass**2 / squared) > 1).any())


ALIKE = (
    "without cluster= intervals are too short, as far as rows of a cluster are alike."
)


def check_clusters(count: int) -> None:
    """Raise unless there are enough clusters to learn from."""
    if count < LEAST_CLUSTERS:
        raise ValueError(
            f"cluster has {count} distinct values; fewer than {LEAST_CLUSTERS} say "
            f"nothing of how clusters differ. Use smaller ones; {ALIKE}"
        )


def hash_clusters(cluster: Any, predictions: Predictions) -> NDArray[np.uint64]:
    """A number for the cluster of each row that counts, the same on every machine.

    It is a hash of its name, in which 5, 5.0, "5" and "5.0" are one cluster.
    """
    return hash_names(_names(cluster, "cluster", predictions))


def hash_names(names: NDArray[Any]) -> NDArray[np.uint64]:
    """A number for each name, the same for the same name on every machine."""
    if names.dtype == object:
        names = np.array([_as_text(x) for x in names.tolist()])
    elif names.dtype.kind == "M":  # dates, in whatever unit
        names = names.astype("M8[us]").astype(str)
    found, number = np.unique(names, return_inverse=True)
    digests = (blake2b(_as_text(x).encode(), digest_size=8) for x in found.tolist())
    joined = b"".join(digest.digest() for digest in digests)
    return np.frombuffer(joined, "<u8").astype(np.uint64)[number]


def _as_text(name: Any) -> str:
    if isinstance(name, bytes):
        return name.decode()
    text = str(int(name) if isinstance(name, float) and name.is_integer() else name)
    whole = text.removesuffix(".0")
    return whole if whole.removeprefix("-").isdecimal() else text


def groups_of_clusters(clusters: NDArray[np.uint64]) -> Index:
    """The group of each of these distinct clusters: itself, or one of 128 if more.

    Products between groups are then products between clusters, but for few.
    """
    if len(clusters) <= MOST_CLUSTER_GROUPS:
        return np.argsort(np.argsort(clusters))
    return (clusters % np.uint64(MOST_CLUSTER_GROUPS)).astype(np.intp)


def read_groups(group: Any, predictions: Predictions) -> NDArray[np.str_] | None:
    """Names of the groups of the rows that count, as text; None if none are given."""
    if group is None:
        return None
    text = _names(group, "group", predictions).astype(str)
    if (count := len(np.unique(text))) > MOST_GROUPS:
        raise ValueError(
            f"group has {count} distinct values, more than {MOST_GROUPS}; is it a number "
            "of the row? Put similar ones together."
        )
    return text


def _names(given: Any, what: str, predictions: Predictions) -> NDArray[Any]:
    """The name of a cluster or group for each row that counts."""
    names = to_numpy(given, what)
    check_length(names, len(predictions.scores), what)
    listed = given.to_list() if hasattr(given, "to_list") else given
    text = names.dtype.kind in "US" and names.ndim == 1
    if text and isinstance(listed, list | tuple):
        names = np.empty(len(names), object)
        names[:] = listed  # as text of NumPy, NaN would be "nan", and "a\0" be "a"
    check_names(names, what)
    return names if predictions.weight is None else names[predictions.weight > 0]


OWN_NAME = {
    "cluster": "Give rows that belong to no other a cluster of their own.",
    "group": "Give such rows a group of their own.",
}


def check_names(names: NDArray[Any], what: str) -> None:
    """Raise unless each row has a name, and one that stays apart from others as text."""
    last: list[str | bytes] = []
    if names.dtype == object:
        no_name = [str(x) in ABSENT and not isinstance(x, str) for x in names]
        missing = np.array(no_name, bool)
        last = [x[-1:] if isinstance(x, str | bytes) else "" for x in names]
    else:
        missing = names != names  # noqa: PLR0124
    if missing.any():
        rule, row = f"{what} must name a {what} for each row;", int(missing.argmax())
        raise RowError(rule, row, "has none", remedy=OWN_NAME[what])
    if cut := [row for row, end in enumerate(last) if end in ("\0", b"\0")]:
        rule = f"{what} must not end in a NUL character, which NumPy drops;"
        raise RowError(rule, cut[0], f"is {names[cut[0]]!r}", remedy="Rename it.")


def _with_names(found: Predictions, cluster: Any, group: Any) -> Predictions:
    """The same with the clusters and groups of the rows."""
    clusters, together = read_clusters(cluster, found)
    groups = read_groups(group, found)
    named = replace(found, clusters=clusters, groups=groups, cluster_groups=together)
    if clusters is None or groups is None:
        return named
    for name in np.unique(groups).tolist():
        count = len(np.unique(clusters[groups == name]))
        if count < LEAST_CLUSTERS:
            raise ValueError(
                f"group {name!r} has {count} clusters; fewer than {LEAST_CLUSTERS} say "
                "nothing of how clusters differ. Put groups together, or leave group= "
                f"out; {ALIKE}"
            )
    return named


def fingerprint(labels: Any, weight: Any = None) -> str:
    """Hash of labels and weights in their order: the same for equal values.

    Types do not matter, nor do rows of weight 0, nor whether weights of 1 are spelt out.
    Weights count to single precision: in another unit they differ in their last digits.

    Examples
    --------
    >>> fingerprint([0, 1, 1])
    '42a84923c908a9d6ec107c8e67e58ad0'
    """
    y, w = np.asarray(labels), None if weight is None else np.asarray(weight)
    if w is not None and not w.all():
        y, w = y[w > 0], w[w > 0]
    state = blake2b(str(y.shape).encode(), digest_size=DIGEST)
    state.update(np.ascontiguousarray(y + 0.0, "<f8").data)  # -0.0 is 0
    if w is not None and not np.all(w == 1):
        state.update(np.ascontiguousarray(w, "<f4").data)
    return state.hexdigest()


@np.errstate(over="ignore", invalid="ignore")  # rows are checked later
def largest_class(predictions: Predictions) -> float | None:
    """Share of the commonest class among the labels, if they are classes."""
    labels, weight = predictions.labels, predictions.weight
    if predictions.kind == "confidence":
        return None
    if labels.dtype.kind == "f":  # shares, of each class or of one
        share = np.average(labels, axis=0, weights=weight)
        return float(share.max() if labels.ndim == 2 else max(share, 1 - share))
    count = np.bincount(labels.astype(np.intp), weight)
    return float(count.max() / count.sum())


def soft_weight(predictions: Predictions) -> float:
    """Weight of rows whose label is a share, not a class."""
    labels = predictions.labels
    if labels.dtype.kind != "f":
        return 0.0
    between = (labels > 0) & (labels < 1)
    soft = between.any(axis=1) if labels.ndim == 2 else between
    weight = predictions.weight
    return float(soft.sum() if weight is None else weight @ soft)
