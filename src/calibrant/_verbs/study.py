"""`study`: the paper's table for one's own model."""

from __future__ import annotations

import heapq
import re
import time
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import as_number, check_functions, read_names, shown
from calibrant._base.comparison import Comparison, Effect
from calibrant._base.evaluation import Evaluation
from calibrant._base.later import Named
from calibrant._base.measures import is_trivial
from calibrant._inputs.arrays import (
    Column,
    Index,
    Mask,
    Matrix,
    as_scores,
    check_indices,
    check_logits,
    to_numpy,
)
from calibrant._inputs.divergences import LOG
from calibrant._inputs.options import Estimation, Settings, check_rng, takes_options
from calibrant._inputs.predictions import (
    MULTI_LABEL,
    Kind,
    named_classes,
    needs_names,
    read_predictions,
    read_weights,
)
from calibrant._rows.reduce import reduce_to_columns
from calibrant._verbs.compare import SAME_AS_FIT, SAME_LABELS, sameness
from calibrant._verbs.evaluate import evaluate
from calibrant._verbs.selection import FOLDS, Selection, select_method
from calibrant.recalibration import _affine, _mixture, _temperature
from calibrant.recalibration._estimator import (
    FitWarning,
    Progress,
    Recalibrator,
    silent,
)
from calibrant.recalibration._histogram import HistogramBinning
from calibrant.recalibration._isotonic import IsotonicCalibration
from calibrant.recalibration._logistic import BetaCalibration, PlattScaling
from calibrant.recalibration._prior import OffsetScaling
from calibrant.recalibration._rows import class_names
from calibrant.recalibration._top_label_binning import TopLabelBinning
from calibrant.recalibration._trivial import Identity, MeanReplacement
from calibrant.recalibration._venn_abers import VennAbers

Methods: TypeAlias = (
    str | Sequence[str | Recalibrator] | Mapping[str, str | Recalibrator]
)

PAPER = ("temperature", "histogram", "isotonic", "mean-replacement")
OF_ONE_EVENT = ("temperature", "platt", "histogram", "isotonic", "mean-replacement")
"""The paper has no forecasts of one event, for which Platt scaling is the usual method."""

TOP = {"mode": "top-label"}

METHODS: dict[str, tuple[str, Callable[..., Recalibrator], dict[str, Any]]] = {
    "identity": ("Uncalibrated", Identity, {}),
    "temperature": ("Temperature", _temperature.TemperatureScaling, {}),
    "ensemble-temperature": (
        "Ensemble temperature",
        _temperature.EnsembleTemperatureScaling,
        {},
    ),
    "vector": ("Vector", _affine.VectorScaling, {}),
    "matrix": ("Matrix", _affine.MatrixScaling, {}),
    "dirichlet": ("Dirichlet", _affine.DirichletCalibration, {}),
    "platt": ("Platt", PlattScaling, {}),
    "beta": ("Beta", BetaCalibration, {}),
    "histogram": ("Histogram binning", HistogramBinning, {}),
    "histogram-top-label": ("Histogram binning (top label)", HistogramBinning, TOP),
    "isotonic": ("Isotonic", IsotonicCalibration, {}),
    "isotonic-top-label": ("Isotonic (top label)", IsotonicCalibration, TOP),
    "mean-replacement": ("Mean replacement", MeanReplacement, {}),
    "offset": ("Offset", OffsetScaling, {}),
    "venn-abers": ("Venn-Abers", VennAbers, {}),
    "venn-abers-top-label": ("Venn-Abers (top label)", VennAbers, TOP),
    "top-label-binning": ("Top-label binning", TopLabelBinning, {}),
    "adaptive-temperature": (
        "Adaptive temperature",
        _mixture.AdaptiveTemperatureScaling,
        {},
    ),
    "mixture": ("Mixture", _mixture.MixtureScaling, {}),
}
"""Name of a model in tables, its class, and options, by the name of the method."""

BY_NAME = (
    "offset",
    "venn-abers",
    "venn-abers-top-label",
    "top-label-binning",
    "adaptive-temperature",
    "mixture",
)
"""Methods that run only if they are asked for by name; ``"all"`` are the others."""

LIKE_NETCAL = ("histogram", "isotonic")
PAPER_SPLIT = 0.2
COLUMNS_OF_A_ROW = 16
BLOCK = 1 << 12

FEW = 20
"""Rows, or clusters, below which nothing is said of what recalibration is worth."""

FITTING = 0.8
"""Share of a method's work that fitting and applying it is taken to be."""


def recalibrators_for(
    methods: Methods, kind: str, classes: Any, preset: str | None
) -> dict[str, Recalibrator]:
    """Recalibrators by the name of their model.

    The uncalibrated model comes first, and mean replacement last if it is not among
    them: it is the yardstick of every calibration error.
    """
    named = _named(methods)
    chosen: dict[str, Recalibrator] = {}
    for name, method in [("", "identity"), *named, ("", "mean-replacement")]:
        title, recalibrator = _make(method, kind, classes, preset)
        there = type(recalibrator) in map(type, chosen.values())
        if there and method in ("identity", "mean-replacement"):
            continue
        title = name or title
        if title in chosen:
            raise ValueError(
                f"methods has two models called {title!r}; pass a mapping from names of "
                "your choice to methods."
            )
        chosen[title] = recalibrator
    return chosen


def recalibrator_named(
    method: str, kind: str, classes: Any = None, preset: str | None = None
) -> Recalibrator:
    """A recalibrator that is not fitted, by the name of its method."""
    return _make(method, kind, classes, preset)[1]


def _named(methods: Methods) -> list[tuple[str, str | Recalibrator]]:
    if isinstance(methods, str):
        every = [name for name in METHODS if name not in BY_NAME]
        groups: dict[str, Iterable[str]] = {"paper": PAPER, "all": every}
        return [("", name) for name in groups.get(methods, (methods,))]
    if isinstance(methods, Mapping):
        return [(str(name), method) for name, method in methods.items()]
    if isinstance(methods, Recalibrator):
        return [("", methods)]
    if not isinstance(methods, list | tuple):
        raise TypeError(f"methods must be a list or a mapping, got {shown(methods)}.")
    return [("", method) for method in methods]


def _make(
    method: Any, kind: str, classes: Any, preset: str | None
) -> tuple[str, Recalibrator]:
    """A title and a recalibrator that is not fitted."""
    if isinstance(method, Recalibrator):
        if method.scores != kind:
            raise ValueError(
                f"{method!r} takes {method.scores}, but the study was given {kind}: make "
                f"it with scores={kind!r}."
            )
        copy = type(method)(**method.get_params())
        if copy.classes is None:
            copy.set_params(classes=classes)
        return _title(method), copy
    if not (isinstance(method, str) and method in METHODS):
        raise _no_method(method)
    title, make, options_of = METHODS[method]
    like_netcal = preset == "paper" and method in LIKE_NETCAL
    compat = {"compat": "netcal"} if like_netcal else {}
    return title, make(scores=kind, classes=classes, **options_of, **compat)


def _no_method(method: Any) -> ValueError:
    """The error of a name that no method has, with what was perhaps meant."""
    if (near := near_method(method, "paper", "all")) is not None:
        hint = f"got {shown(method)}; did you mean {near!r}?"
        return ValueError(f"methods must be names of methods, {hint}")
    options = ", ".join(repr(name) for name in METHODS)
    return ValueError(
        f"methods must be 'paper', 'all', recalibrators, or among {options}; got "
        f"{shown(method)}."
    )


def near_method(said: Any, *others: str) -> str | None:
    """The method, or one of other names, that a name is nearly; or is in tables.

    >>> near_method("Isotonic (top label)"), near_method("plat"), near_method("boosting")
    ('isotonic-top-label', 'platt', None)
    """
    from difflib import get_close_matches

    meant = {title.lower(): name for name, (title, *_) in METHODS.items()}
    meant |= {name: name for name in (*METHODS, *others)}
    near = get_close_matches(str(said).lower(), meant, 1, cutoff=0.6)
    return meant[near[0]] if isinstance(said, str) and near else None


def _title(recalibrator: Recalibrator) -> str:
    """The usual name of a method, or its class in words for one's own."""
    mode = getattr(recalibrator, "mode", "one-vs-rest")
    for title, make, options in METHODS.values():
        same_mode = mode == options.get("mode", "one-vs-rest")
        if type(recalibrator) is make and same_mode:
            return title
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(recalibrator).__name__).capitalize()


class ScoredRows(NamedTuple):
    """Scores, labels, weights, counts and clusters of some rows."""

    scores: Matrix
    y: NDArray[Any]
    weight: NDArray[Any] | None = None
    frequency: NDArray[Any] | None = None
    cluster: NDArray[Any] | None = None

    def select(self, rows: Any) -> ScoredRows:
        """Some of the rows."""
        return ScoredRows._make(None if x is None else x[rows] for x in self)

    @property
    def counts(self) -> Column:
        """How many rows each stands for; none if its weight is 0."""
        mass, _ = read_weights(self.weight, self.frequency, len(self.y))
        counts = np.ones(len(self.y)) if self.frequency is None else self.frequency
        return counts if mass is None else np.where(mass > 0, counts, 0.0)

    @property
    def beside(self) -> dict[str, Any]:
        """What `evaluate` is given beside labels and scores."""
        given = {"sample_weight": self.weight, "frequency": self.frequency}
        return {**given, "cluster": self.cluster}


@dataclass(frozen=True, slots=True, eq=False)
class StudyRows:
    """Rows to test on and, for each part of them, rows to fit on.

    `parts` are pairs of rows to fit on and places in `test` that they are for. `whole`
    are the rows that the recalibrators to keep are fitted on. `shared` counts rows of two
    given sets that are in both. Of `pairs`, scores are stated confidences, and the event
    is that an answer is correct.
    """

    kind: Kind
    test: ScoredRows
    parts: tuple[tuple[ScoredRows, Any], ...]
    whole: ScoredRows
    protocol: str
    shared: int = 0
    pairs: bool = False


def read_study_rows(
    y: Any,
    y_test: Any,
    *,
    logits: Any,
    probs: Any,
    confidence: Any = None,
    split: float | None,
    folds: int | None,
    rng: Any,
    **beside: Any,
) -> StudyRows:
    """Read scores and labels, and decide who is fitted on what.

    Beside them are `sample_weight`, `frequency` and `cluster`, if they are given.
    """
    if sum(given is not None for given in (logits, probs, confidence)) != 1:
        raise TypeError(
            "pass exactly one of logits=, probs= and confidence=, as in "
            "study(y, probs=p), study(y, logits=z) or study(correct, confidence=c); they "
            "are never told apart by looking at the numbers."
        )
    if rng is not None:
        check_rng(rng)
    if confidence is not None:
        _check_confidences(y, y_test, confidence)
        rows = read_study_rows(
            _correct(y),
            None if y_test is None else _correct(y_test),
            logits=None,
            probs=confidence,
            split=split,
            folds=folds,
            rng=rng,
            **beside,
        )
        return replace(rows, pairs=True)
    kind: Kind = "probs" if logits is None else "logits"
    given = probs if logits is None else logits
    if y_test is not None:
        if split is not None or folds is not None:
            said = "split and folds divide one set of rows; y_test is a second."
            raise ValueError(said)
        return _two_sets(kind, given, y, y_test, beside)
    if split is not None and folds is not None:
        raise ValueError("split and folds exclude each other; pass one of them.")
    sample = _sample(given, y, kind, beside)
    if folds is not None:
        return _cross_fitted(kind, sample, folds, rng)
    return _split(kind, sample, PAPER_SPLIT if split is None else split, rng)


def _check_confidences(y: Any, y_test: Any, confidence: Any) -> None:
    """Refuse what `evaluate` would, in its words: these are confidences, not `probs`."""
    both = (confidence,) if y_test is None else _pair(confidence, "confidence")
    for labels, stated in zip((y, y_test), both, strict=False):
        reduce_to_columns(read_predictions(labels, confidence=stated))


def _correct(y: Any) -> NDArray[Any]:
    """Whether answers are correct, as the labels of that event: 0 and 1."""
    found = to_numpy(y, "y")
    if (
        found.ndim != 1
        or found.dtype.kind not in "biuf"
        or not np.isin(found, (0, 1)).all()
    ):
        raise ValueError(
            "with confidence, y must say whether each answer is correct: 0 or 1."
        )
    return found.astype(np.int64)


def _two_sets(
    kind: Kind, given: Any, y: Any, y_test: Any, beside: Mapping[str, Any]
) -> StudyRows:
    scores = _pair(given, kind)
    pairs = {name: _pair(x, name) for name, x in beside.items() if x is not None}
    first, second = ({n: x[at] for n, x in pairs.items()} for at in (0, 1))
    fit = _sample(scores[0], y, kind, first)
    test = _sample(scores[1], y_test, kind, second)
    _check_no_cluster_is_in_both(fit, test)
    if fit.y.ndim != test.y.ndim:
        said = f"{fit.y.shape} and {test.y.shape}"
        raise ValueError(f"y and y_test must have labels of one kind, got {said}.")
    if fit.scores.shape[1:] != test.scores.shape[1:]:
        raise ValueError(
            f"{kind} must have the same columns in both sets: {fit.scores.shape} to fit "
            f"on, {test.scores.shape} to test on."
        )
    some = slice(COLUMNS_OF_A_ROW)  # enough to know a row again
    known = [x if x.ndim == 1 else x[:, some] for x in (fit.scores, test.scores)]
    shared = shared_rows(known[0], fit.y, known[1], test.y)
    known_by = f"{shared:,} of these {SAME_AS_FIT}" if shared else ""
    if not shared and same_labels(fit.y, test.y):
        known_by = f"these {SAME_LABELS}"
    words = f"fitted on {_examples(len(fit.y))}, tested on "
    words += (
        f"{len(test.y):,}; {known_by}" if known_by else _examples(len(test.y), "other")
    )
    return StudyRows(kind, test, ((fit, slice(None)),), fit, words, shared)


MOSTLY = 0.5
"""Scores must tell rows apart at least this often, or equal rows mean nothing."""

SURE, MANY, DIGITS = 1e-3, 10, 6
"""Equal rows count if chance has so many with this probability at most. Sets are the same if
they are so in their order, with so many distinct rows; scores of more digits are not rounded."""

LEAST_SHARED, NO_CHANCE = 3, 1e-6
"""So many equal rows are no chance, if scores are not rounded and none repeats in its set; equal
labels are none if draws of their frequencies are equal with this probability at most."""


def shared_rows(fit_scores: Any, fit_y: Any, test_scores: Any, test_y: Any) -> int:
    """Rows to test on that also occur among the rows to fit on, scores and label alike.

    Only rows that occur once in their set count: scores of few distinct values agree by
    chance. If most rows are not of that kind, nothing can be said, and 0 is returned, unless
    both sets are the same in their order. It is 0, too, where chance may be the reason:
    rounded scores also repeat within the sets.
    """
    given = (fit_scores, fit_y), (test_scores, test_y)
    n, m = len(fit_y), len(test_y)
    rows = np.concatenate([_as_bytes(*part) for part in given])
    known, place = np.unique(rows, return_inverse=True)
    sets = place[:n], place[n:]
    if len(known) >= MANY and np.array_equal(*sets):
        return m
    fit, test = (np.bincount(x, minlength=len(known)) for x in sets)
    if (fit == 1).sum() < MOSTLY * n or (test == 1).sum() < MOSTLY * m:
        return 0
    shared, twice = (int(x.sum()) for x in ((fit == 1) & (test == 1), fit + test == 2))
    apart = len(known) == n + m - shared  # no row repeats in its set
    fine = shared >= LEAST_SHARED and apart and not _rounded(fit_scores, test_scores)
    across = 2 * n * m / ((n + m) * (n + m - 1))
    return shared if fine or most_chance(shared, twice, across) < SURE else 0


def same_labels(y: Any, y_test: Any) -> bool:
    """Whether labels are equal, row by row, and too many and varied to be so by chance.

    Labels sorted by class are equal as soon as there are as many of each: that is a design.

    >>> same_labels([0, 1] * 15, [0, 1] * 15), same_labels([0] * 30, [0] * 30)
    (True, False)
    """
    if np.shape(y) != np.shape(y_test) or len(y) < FEW:
        return False
    fit, test = (_as_bytes(np.empty((len(x), 0)), x) for x in (y, y_test))
    if not np.array_equal(fit, test):
        return False
    counts = np.unique(fit, return_counts=True)[1]
    varied = counts @ np.log(len(fit) / counts) > -np.log(NO_CHANCE)
    blocks = 1 + np.count_nonzero(fit[1:] != fit[:-1])
    return bool(varied and blocks > len(counts))


def most_chance(count: int, of: int, share: float) -> float:
    """A bound (Chernoff's) of the chance that so many or more of some events happen.

    Of two equal rows of independent sets, one is in each as often as in any random split.

    >>> round(most_chance(10, 10, 0.5), 6), most_chance(6, 10, 0.6)
    (0.000977, 1.0)
    """
    if count <= share * of:
        return 1.0
    log_chance = count * np.log(share * of / count)
    if count < of:
        log_chance += (of - count) * np.log((1 - share) * of / (of - count))
    return float(np.exp(log_chance))


def _rounded(*scores: Any) -> bool:
    return all(np.array_equal(np.round(x, DIGITS), x) for x in scores)


def _as_bytes(scores: Any, y: Any) -> NDArray[Any]:
    """Rows as strings of bytes that can be compared."""
    codes = np.asarray(y)
    if codes.dtype.kind not in "biuf":
        codes = np.array([hash(label) for label in codes.tolist()], np.float64)
    parts = [np.asarray(x, np.float64).reshape(len(codes), -1) for x in (scores, codes)]
    table = np.ascontiguousarray(np.concatenate(parts, axis=1) + 0.0)
    return table.view(np.dtype((np.void, table.itemsize * table.shape[1])))[:, 0]


def _examples(count: int, what: str = "example") -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _pair(given: Any, name: str) -> tuple[Any, Any]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        both = f"{name} of y, {name} of y_test"
        raise TypeError(f"with y_test, {name} must be a pair ({both}).")
    return given[0], given[1]


def _check_no_cluster_is_in_both(fit: ScoredRows, test: ScoredRows) -> None:
    if fit.cluster is None or test.cluster is None:
        return
    first, second = comparable(fit.cluster), comparable(test.cluster)
    both = np.intersect1d(first, second).tolist()
    if both:
        raise ValueError(
            f"cluster must not be in both sets, to fit on and to test on; {len(both)} "
            f"are, the first of them {both[0]!r}. Divide the rows by cluster, or pass one "
            "set and split= or folds=."
        )


def _sample(scores: Any, y: Any, kind: str, beside: Mapping[str, Any]) -> ScoredRows:
    if isinstance(scores, tuple) and len(scores) == 2 and np.ndim(scores[0]) == 2:
        said = f"{kind} is a pair, which needs y_test, the labels of the second."
        raise TypeError(said)
    check_indices(**{"y": y, kind: scores, **beside})
    matrix, labels = np.atleast_1d(as_scores(scores, kind)), to_numpy(y, "y")
    if kind == "logits":
        check_logits(matrix)
    given = {n: to_numpy(x, n) for n, x in beside.items() if x is not None}
    for name, column in given.items():
        if column.ndim == 0 or column.shape[1:] not in ((), (1,)):
            said = f"{name} must have one entry per row, got shape {column.shape}."
            raise ValueError(said)
        given[name] = column.reshape(len(column))
    for name, column in {"y": labels, **given}.items():
        if column.ndim == 0 or column[:1].size not in (1, *matrix.shape[1:]):
            said = f"{name} must have one entry per row, got shape {column.shape}."
            raise ValueError(said)
        if len(column) != len(matrix):
            raise ValueError(
                f"{name} must have one entry per row of {kind}: {len(column)} against "
                f"{len(matrix)} rows."
            )
    if labels.dtype == object:
        read_names(labels, "y", len(labels))
    columns = (given.get(name) for name in ("sample_weight", "frequency", "cluster"))
    return ScoredRows(matrix, labels, *columns)


def _split(kind: Kind, sample: ScoredRows, split: float, rng: Any) -> StudyRows:
    n = len(sample.y)
    share = as_number(split)
    count = round(share * n) if 0 < share < 1 else 0
    if not 0 < count < n:
        raise ValueError(
            f"split must be the share of rows to fit on, and leave rows on both sides; "
            f"got {shown(split)} for {n} rows."
        )
    unit = _units(sample)
    place = np.argsort(_order(unit.max() + 1, rng))[unit]
    order = np.argsort(place, kind="stable")
    count = _nearest_cut(place[order], count)
    fit, test = sample.select(order[:count]), sample.select(order[count:])
    drawn = "the first ones" if rng is None else "drawn at random"
    how = f"{100 * count / n:.3g} %, {drawn}{_in_clusters(sample)}"
    words = f"fitted on {_examples(count)} ({how}), tested on the other {n - count:,}"
    return StudyRows(kind, test, ((fit, slice(None)),), fit, words)


def _nearest_cut(unit: Index, count: int) -> int:
    """Where to cut ordered rows so that about so many come first and no unit is cut.

    >>> _nearest_cut(np.array([0, 0, 0, 1, 1, 2]), 4), _nearest_cut(np.arange(6), 4)
    (3, 4)
    """
    cuts = np.flatnonzero(np.diff(unit)) + 1
    if not cuts.size:
        raise ValueError("cluster must have two distinct values or more for a split.")
    return int(cuts[np.argmin(np.abs(cuts - count))])


def _units(sample: ScoredRows) -> Index:
    """What must stay together, numbered as it comes: the cluster of each row, or the row."""
    if sample.cluster is None:
        return np.arange(len(sample.y))
    names = comparable(sample.cluster)
    if names.shape != (len(sample.y),):
        raise ValueError(
            f"cluster must have one entry per row, got shape {names.shape}."
        )
    _, first, number = np.unique(names, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number]


def comparable(cluster: Any) -> NDArray[Any]:
    """Names of clusters that can be sorted: text, if they are of several kinds."""
    return cluster.astype(str) if cluster.dtype == object else np.asarray(cluster)


def _in_clusters(sample: ScoredRows) -> str:
    return "" if sample.cluster is None else ", in whole clusters"


def _cross_fitted(kind: Kind, sample: ScoredRows, folds: Any, rng: Any) -> StudyRows:
    unit = _units(sample)
    n, units = len(sample.y), int(unit.max()) + 1
    if isinstance(folds, bool) or not isinstance(folds, int) or not 2 <= folds <= units:
        what = "" if sample.cluster is None else ", the number of clusters"
        if units < 2:
            raise ValueError("one row, or one cluster, cannot be divided into folds.")
        raise ValueError(
            f"folds must be a whole number from 2 to {units}{what}; got {shown(folds)}."
        )
    y = sample.y if sample.y.ndim == 1 else sample.y.argmax(axis=1)
    fold = assign_folds(unit, y, folds, _order(units, rng))
    parts = tuple(
        (sample.select(fold != number), np.flatnonzero(fold == number))
        for number in range(folds)
    )
    how = f"{folds} folds{_in_clusters(sample)}"
    words = f"cross-fitted on {n:,} examples in {how}: each is tested unseen"
    return StudyRows(kind, sample, parts, sample, words)


def assign_folds(unit: Index, y: NDArray[Any], folds: int, order: Index) -> Index:
    """The fold of each row: units stay whole, folds are as equal as that allows.

    Large units come first, each to the fold of fewest rows. Among units of one size, every
    class (of the first row) is spread over the folds as evenly as it goes.

    >>> assign_folds(np.array([0, 1, 1, 1, 2, 0]), np.zeros(6), 2, np.arange(3)).tolist()
    [1, 0, 0, 0, 1, 1]
    """
    _, first, size = np.unique(unit, return_index=True, return_counts=True)
    _, code = np.unique(y[first], return_inverse=True)
    order = order[np.lexsort((code[order], -size[order]))]
    fold = np.empty(len(size), np.intp)
    filled = [(0, number) for number in range(folds)]
    for at in order.tolist() if size.max() > 1 else ():
        rows, number = filled[0]
        fold[at] = number
        heapq.heapreplace(filled, (rows + int(size[at]), number))
    if size.max() == 1:
        fold[order] = np.arange(len(size)) % folds
    return fold[unit]


def _order(n: int, rng: Any) -> Index:
    """A random order of the rows, or of clusters, or the order they are in."""
    return np.arange(n) if rng is None else np.random.default_rng(rng).permutation(n)


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One method, fitted, applied and evaluated."""

    evaluation: Evaluation
    recalibrator: Recalibrator
    predicted: Index
    tied: Mask
    count: Column
    fit_seconds: float
    apply_seconds: float

    def effect(self, before: Trial) -> Effect:
        """What it did to another model, the uncalibrated one."""
        now, then = (trial.evaluation.metrics["accuracy"] for trial in (self, before))
        return Effect(
            method=type(self.recalibrator).__name__,
            fit_seconds=self.fit_seconds,
            apply_seconds=self.apply_seconds,
            accuracy_change=float(now) - float(then),
            changed=float(self.count @ (self.predicted != before.predicted)),
            tied=float(self.count @ self.tied),
            impossible=_impossible(self.evaluation),
            notes=self.recalibrator.notes_,
        )


def _impossible(ev: Evaluation) -> float:
    """How many rows have an infinite log loss."""
    assert ev.columns is not None
    return float(ev.columns.counts @ np.isinf(ev.columns.loss(LOG)))


def attempt(
    name: str,
    recalibrator: Recalibrator,
    rows: StudyRows,
    options: Mapping[str, Any],
    progress: Progress,
) -> Trial:
    """Fit, apply and evaluate one method."""
    begun = time.perf_counter()
    kind, result, fit_seconds = _recalibrate(recalibrator, rows, progress)
    apply_seconds = time.perf_counter() - begun - fit_seconds
    progress(FITTING, "evaluate")
    if rows.pairs:
        given: dict[str, Any] = {"confidence": _chance(kind, result)}
    else:
        given = {kind: result}
    more = {**given, **rows.test.beside, **options}
    evaluation = replace(
        evaluate(rows.test.y, **more, name=name),
        mean_replaced=isinstance(recalibrator, MeanReplacement),
    )
    if len(rows.parts) > 1:  # cross-fitted: the one to keep learns from all rows
        _fit(recalibrator, rows.whole, silent)
    shown = (
        np.ones((len(result), 1)) if rows.pairs else result
    )  # answers stay as they are
    made = evaluation, recalibrator, *_predictions(shown), rows.test.counts
    return Trial(*made, fit_seconds, apply_seconds)


def _chance(kind: str, result: Matrix) -> Column:
    """The probability of the second of two classes, that an answer is correct."""
    if kind == "probs":
        return np.asarray(result[:, 1], np.float64)
    odds = result[:, 1].astype(np.float64) - result[:, 0]
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-odds)))


def _recalibrate(
    recalibrator: Recalibrator, rows: StudyRows, progress: Progress
) -> tuple[str, Matrix, float]:
    """Recalibrated scores of all test rows, what they are, and the time to fit."""
    fit_seconds = 0.0
    pieces: list[tuple[Any, Matrix]] = []
    for number, (sample, places) in enumerate(rows.parts):

        def report(share: float, what: str, at: int = number) -> None:
            progress(FITTING * (at + share) / len(rows.parts), what)

        begun = time.perf_counter()
        _fit(recalibrator, sample, report)
        fit_seconds += time.perf_counter() - begun
        kind, piece = recalibrator.recalibrate(rows.test.scores[places])
        pieces.append((places, piece))
    if len(pieces) == 1:
        return kind, pieces[0][1], fit_seconds
    whole = np.empty((len(rows.test.y), piece.shape[1]), piece.dtype)
    for places, piece in pieces:
        whole[places] = piece
    return kind, whole, fit_seconds


def _fit(recalibrator: Recalibrator, sample: ScoredRows, progress: Progress) -> None:
    """Fit; what it warns of is kept in its notes, which the study shows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        counts = {} if sample.frequency is None else {"frequency": sample.frequency}
        recalibrator.fit(*sample[:3], **counts, progress=progress)


def _predictions(result: Matrix) -> tuple[Index, Mask]:
    """The likeliest class of each row, and whether another one is as likely."""
    predicted, tied = np.empty(len(result), np.intp), np.empty(len(result), bool)
    for first in range(0, len(result), BLOCK):
        block = result[first : first + BLOCK]
        part = slice(first, first + len(block))
        predicted[part] = block.argmax(axis=1)
        tied[part] = (block == block.max(axis=1, keepdims=True)).sum(axis=1) > 1
    return predicted, tied


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Study(Comparison):
    """A comparison of recalibration methods, with the fitted recalibrators.

    The first model is the uncalibrated one. Mean replacement is always there: a method
    that does not beat it on a proper score has learned nothing worth having.

    Attributes
    ----------
    recalibrators : dict of str to Recalibrator
        Fitted, by name; not part of `to_dict` and JSON: keep each by its own
        ``save(path)``. After cross-fitting they are fitted on all rows.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> z = 3 * rng.normal(size=(2000, 3))
    >>> y = (z / 3 + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> found = cal.study(y, logits=z, split=0.5, rng=0)
    >>> found.best("nll").name
    'Temperature'
    >>> round(found.recalibrators["Temperature"].temperature_, 1)
    2.8
    >>> "recalibrators" in found.to_dict()
    False
    >>> found.select("nll").chosen, len(found.worth)
    ('Temperature', 1)
    """

    recalibrators: Mapping[str, Recalibrator] = field(
        default_factory=dict, metadata={"plain": False}
    )

    def select(
        self,
        by: str = "brier",
        *,
        folds: int = FOLDS,
        rng: Any = 0,
        level: float = 0.95,
    ) -> Selection:
        """Choose a method by a proper score, and tell what the choice is worth.

        Parameters
        ----------
        by : {"brier", "nll"}
            The score.
        folds : int
            Parts of the test rows (whole clusters). For each, the choice is made on the
            others and tested on it.
        rng : int or numpy.random.Generator
            Seed of the folds.
        level : float
            Coverage of the intervals.

        Returns
        -------
        Selection
            The choice, its score as it seems and on rows that had no say in it, and the
            gain over the uncalibrated model with an interval.
        """
        return select_method(self, by, folds, rng, level)

    @property
    def worth(self) -> tuple[str, ...]:
        """Whether recalibration is worth it, in a sentence; none where rows are gone."""
        first = self[0]
        few = min(first.rows, first.n_clusters or FEW) < FEW
        if few or any(ev.columns is None for ev in self):
            return ()
        found = self.select()
        said, best = found.worth, self[found.chosen]
        if is_trivial(best):
            aside = ": a yardstick, not a method to use" if best.mean_replaced else ""
            said += f" But {best.name} {sameness(best)}{aside}."
        same = f"the examples to test on {SAME_LABELS}"
        if self.shared_rows:
            same = f"{self.shared_rows:,} of {first.rows:,} examples to test on {SAME_AS_FIT}"
        if self.shared_rows or SAME_LABELS in self.protocol:
            said += (
                f" But {same}, where any method seems to help: this is no evidence for new "
                "ones."
            )
        return (said,)


@takes_options
def study(
    y: Any,
    y_test: Any = None,
    *,
    logits: Any = None,
    probs: Any = None,
    confidence: Any = None,
    methods: Methods | None = None,
    split: float | None = None,
    folds: int | None = None,
    rng: Any = 0,
    sample_weight: Any = None,
    frequency: Any = None,
    cluster: Any = None,
    classes: Any = None,
    target: str | None = None,
    progress: Progress | None = None,
    **options: Unpack[Estimation],
) -> Study:
    """Recalibrate a model in several ways and evaluate each on rows not used to fit.

    Parameters
    ----------
    y, y_test : array_like
        Labels of the rows to fit on and to test on. With `y_test`, scores (and weights,
        counts, clusters) are pairs ``(calibration, test)``. Without, `y` is one set of
        rows, of which `split` or `folds` says how it is used.
    logits, probs, confidence : array_like or pair of array_like
        Scores; exactly one of the three. Stated confidences go with whether each answer
        is correct, and every method learns how often answers of a confidence are; the
        answers stay as they are.
    methods : str, sequence or mapping
        ``"paper"`` (temperature, histogram binning, isotonic, mean replacement: the
        default, with ``"platt"`` where one event is forecast), ``"all"``, names such as
        ``"temperature"`` or ``"vector"``, recalibrators, or a mapping from names of your
        choice to either. The uncalibrated model and mean replacement are always added.
    split : float, optional
        Share of rows to fit on; 0.2, as in the paper, if neither this nor `folds` nor
        `y_test` is given.
    folds : int, optional
        Cross-fitting: every row is tested by a recalibrator fitted on the other folds,
        so small sets are used well.
    rng : int, Generator or None
        How rows are drawn. None takes the first rows, in order, as the authors did.
    sample_weight, frequency : array_like or pair of array_like, optional
        Importance of each row, in any unit, and how many rows it stands for; as in
        `evaluate`, to fit and to test.
    cluster : array_like or pair of array_like, optional
        The cluster of each row (a patient, a game). All rows of a cluster are fitted on,
        or all are tested on: a method that knows a game by some of its rows would seem to
        gain on the others. Intervals are as wide as clusters ask for.
    classes, target
        As in `evaluate`, but for ``"multi-label"``.
    progress : callable, optional
        Called as ``progress(share_done, what)``.
    **options
        Those of `evaluate` that say how to estimate. ``preset="paper"`` also lets
        histogram binning and isotonic regression follow netcal, the tool of the paper.

    Returns
    -------
    Study
        A comparison whose first model is ``"Uncalibrated"``. Print it for the table.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> z = 3 * rng.normal(size=(2000, 3))
    >>> y = (z / 3 + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> found = cal.study(y[:500], y[500:], logits=(z[:500], z[500:]))
    >>> found.names
    ('Uncalibrated', 'Temperature', 'Histogram binning', 'Isotonic', 'Mean replacement')
    >>> found.best("brier").name
    'Temperature'
    """
    preset = Settings.of(options, study).preset
    divided = {"split": split, "folds": folds, "rng": rng}
    beside = {
        "sample_weight": sample_weight,
        "frequency": frequency,
        "cluster": cluster,
    }
    check_functions(progress=progress)
    if isinstance(target, str) and target == MULTI_LABEL:
        raise ValueError(
            "study does not take target='multi-label': study each label as a binary problem "
            "of its own, from its column of scores and of labels."
        )
    scores = {"logits": logits, "probs": probs, "confidence": confidence}
    rows = read_study_rows(y, y_test, **scores, **divided, **beside)
    if rows.pairs:
        _check_pairs(classes, target)
        methods = PAPER if methods is None else methods
        chosen = recalibrators_for(methods, "probs", None, preset)
        for mean in chosen.values():
            if isinstance(mean, MeanReplacement):
                mean.set_params(pairs=True)
        return _run(rows, chosen, options, progress or silent)
    given = probs if logits is None else logits
    sets = ((given, y),) if y_test is None else zip(given, (y, y_test), strict=True)
    classes = _names_in_order(rows, sets, classes)
    if target is None and rows.test.scores.ndim == 1:
        target = "positive"
    if methods is None:
        one_event = isinstance(target, str) and target == "positive"
        methods = OF_ONE_EVENT if one_event and preset != "paper" else PAPER
    chosen = recalibrators_for(methods, rows.kind, classes, preset)
    asked = {"classes": classes, "target": target, **options}
    return _run(rows, chosen, asked, progress or silent)


def _names_in_order(
    rows: StudyRows, sets: Iterable[tuple[Any, Any]], classes: Any
) -> Sequence[Hashable] | None:
    """Names of the columns as given, or as frames have them; sorted order is no answer."""
    k = 2 if rows.test.scores.ndim == 1 else rows.test.scores.shape[1]
    for scores, labels in sets:
        classes = named_classes(scores, labels, classes, rows.kind, k)
    if class_names(rows.whole.y, k, classes) is not classes:
        raise needs_names(rows.whole.y, k)
    return classes


def _check_pairs(classes: Any, target: Any) -> None:
    """Refuse what stated confidences do not have: classes, and a target."""
    if classes is not None or target is not None:
        word = "classes" if target is None else "target"
        raise ValueError(f"{word} does not apply to confidence; leave it out.")


def _run(
    rows: StudyRows,
    chosen: Mapping[str, Recalibrator],
    options: Mapping[str, Any],
    progress: Progress,
) -> Study:
    trials: dict[str, Trial] = {}
    for number, (name, recalibrator) in enumerate(chosen.items()):

        def report(share: float, what: str, name: str = name, at: int = number) -> None:
            progress((at + share) / len(chosen), f"{name}: {what}")

        try:
            trials[name] = attempt(name, recalibrator, rows, options, report)
        except (ValueError, TypeError) as error:
            kind = ValueError if isinstance(error, ValueError) else TypeError
            raise kind(f"{name}: {error}") from error
        report(1.0, "done")
    first = next(iter(trials.values()))
    return Study(
        evaluations=tuple(trial.evaluation for trial in trials.values()),
        protocol=rows.protocol,
        effects={name: trial.effect(first) for name, trial in trials.items()},
        shared_rows=rows.shared,
        recalibrators=Named(
            {name: trial.recalibrator for name, trial in trials.items()}
        ),
    )
