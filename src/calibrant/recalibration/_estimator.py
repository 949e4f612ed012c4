"""What every recalibrator shares: the scikit-learn contract, and files.

The contract is a matter of names, so scikit-learn is needed neither to fit nor to apply.
"""

from __future__ import annotations

import inspect
import json
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import (
    STRATEGIES,
    RowError,
    as_path,
    check_choice,
    check_flags,
    check_functions,
    check_length,
    check_number,
    shown,
)
from calibrant._base.records import (
    Range,
    RecordError,
    Whole,
    as_plain,
    decode,
    demand,
    read_file,
    read_json,
    told,
    with_digest,
    without_digest,
)
from calibrant._base.write import write_text
from calibrant._inputs.arrays import (
    ROW_SUM_TOLERANCE,
    TOO_LARGE,
    Matrix,
    check_indices,
    check_logits,
    largest,
    too_large,
)
from calibrant._inputs.predictions import (
    named_classes,
    read_predictions,
    read_weights,
)
from calibrant._rows.engines import ENGINES
from calibrant.recalibration import _rows as reading
from calibrant.recalibration._inverse import least_scores
from calibrant.recalibration._rows import Kind, Rows, softmax

Numbers = Annotated[NDArray[np.float64], Range()]
Places = Annotated[NDArray[np.int64], Range(0)]

FORMAT, VERSION = "calibrant recalibrator", 1
FORMATS = (FORMAT, "acumen recalibrator")  # until 0.1.0 the project was called acumen
RENAMED = {"objective": "divergence"}  # parameters, since 0.1.0
ADDED = ("pairs",)  # parameters, since 0.1.0: files without them have the default
ALWAYS_LEARNED: dict[str, Any] = {
    "classes_": NDArray[Any],
    "n_features_in_": Whole,
    "notes_": tuple[str, ...],
}
OPTIONAL: dict[str, Any] = {"feature_names_in_": NDArray[Any]}

CHOICES: dict[str, tuple[Any, ...]] = {
    "scores": ("logits", "probs"),
    "divergence": ("log", "brier"),
    "strategy": tuple(STRATEGIES),
    "mode": ("one-vs-rest", "top-label"),
    "compat": (None, "netcal"),
    "engine": ENGINES,
}
"""What parameters of these names may be, in every method that has them."""

TOLD = {
    "T": "temperature_",
    "accuracy": "accuracy_",
    "slope": "slope_",
    "intercept": "intercept_",
    "a": "a_",
    "b": "b_",
    "c": "c_",
}
"""What is shown of a fit, where it is a single number."""

MOST_STRENGTH = 1e12
"""Most of what a prior may weigh: beyond it numbers are lost in it."""

Progress = Callable[[float, str], None]
"""Called with the share of the work that is done, and what is being done."""


def _probabilities(given: NDArray[Any]) -> NDArray[Any]:
    """One column of probabilities, those above 1 by round-off as 1, as `evaluate` reads them."""
    if 1 < given.max() <= 1 + ROW_SUM_TOLERANCE.get(given.dtype.name, 0.0):
        given = np.minimum(given, 1)
    if (outside := (given < 0) | (given > 1)).any():
        raise RowError.at_first("probs must be in [0, 1];", outside, given, "outside")
    return given


class FitWarning(UserWarning):
    """A fit has a result, but not one to trust without a look."""


class Recalibrator(ABC):
    """Learns on held-out rows how to turn a classifier's scores into probabilities.

    `fit` takes one row of scores per forecast and one column per class: logits, or
    probabilities with ``scores="probs"``. One column, or a 1-D array, is the positive
    class of a binary problem. `predict_proba` gives n x k probabilities in the precision
    of the scores, but float32 for float16, and in the kind of array they came in.

    A method is a dataclass of its parameters; what it learns has names that end in ``_``.

    Parameters
    ----------
    scores : {"logits", "probs"}
        What the scores are.
    classes : sequence, optional
        Names of the classes in column order, if labels are neither column numbers nor
        names in sorted order.
    engine : {"auto", "numpy", "compiled"}
        In methods that have a use for it: ``"auto"`` is the compiled loops where they
        were built.

    Attributes
    ----------
    classes_ : ndarray
        Names of the classes, in column order.
    n_features_in_ : int
        Columns of the scores it was fitted on.
    notes_ : tuple of str
        What one should know about the fit; each was also given as a `FitWarning`.
    """

    scores: str
    classes: Sequence[Hashable] | None
    classes_: NDArray[Any]
    n_features_in_: int
    notes_: tuple[str, ...]

    learned: ClassVar[Mapping[str, Any] | tuple[str, ...]] = {}
    """The attributes that `fit` learns, which are what is saved, and what each may be."""

    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = CHOICES
    """What parameters of these names may be."""

    @abstractmethod
    def _learn(self, rows: Rows, progress: Progress) -> None:
        """Fit on checked rows."""

    @abstractmethod
    def _apply(self, rows: Rows) -> tuple[Kind, Matrix]:
        """Recalibrated scores in a new matrix: logits or probabilities."""

    def _disagreement(self, k: int) -> str | None:
        """What is wrong with learned attributes of k classes that are right one by one."""
        return None

    def fit(
        self,
        scores: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        frequency: Any = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit on held-out rows, never on those the classifier was trained on.

        Parameters
        ----------
        scores : array_like
            Logits or probabilities, as the parameter `scores` says.
        y : array_like
            Labels: column numbers, or names of the classes.
        sample_weight : array_like, optional
            Importance of each row, in any unit; 0 is no row. Together rows count as
            many as their effective number, (sum w)^2 / sum w^2, where that matters: in
            penalties, pseudo-rows and Platt's targets.
        frequency : array_like of int, optional
            How many rows each stands for: the same as repeating it.
        progress : callable, optional
            Called as ``progress(share_done, what)`` while fitting.
        """
        self.__dict__.pop("feature_names_in_", None)
        self.notes_ = ()
        self._check_options()
        check_functions(progress=progress)
        reading.check_order(scores, y)
        names = reading.column_names(scores)
        rows = self._read_to_fit(scores, y, sample_weight, frequency)
        if names is not None:
            self.feature_names_in_ = names
        self._learn(rows, progress or silent)
        return self

    def predict_proba(self, scores: Any) -> Any:
        """Recalibrated probabilities, n x k; every row sums to 1.

        A tensor or a frame is answered by one, with the names of its columns, or those of
        the classes for a single column; anything else by a NumPy array. Scorers of
        scikit-learn index arrays: give them those, or a `RecalibratedClassifier`.
        """
        kind, result = self.recalibrate(scores)
        if kind == "logits":
            Rows(result, "logits").each(lambda part: softmax(result[part]))
        return reading.as_given(result, scores, self.classes_)

    def predict(self, scores: Any) -> NDArray[Any]:
        """The likeliest class of each row; the first one if several are."""
        _, result = self.recalibrate(scores)
        return self.classes_[result.argmax(axis=1)]

    def score(self, scores: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of `predict`, which is what scikit-learn expects of this name."""
        predicted, labels = self.predict(scores), np.ravel(reading.read_labels(y))
        check_length(labels, len(predicted), "y")
        weight, _ = read_weights(sample_weight, None, len(predicted))
        return float(np.average(predicted == labels, weights=weight))

    def recalibrate(self, scores: Any) -> tuple[Kind, Matrix]:
        """Recalibrated logits where the method gives them, else probabilities.

        Logits say more than their softmax, which rounds to 0 and 1.

        Returns
        -------
        kind : {"logits", "probs"}
        scores : ndarray of shape (n, k)
        """
        return self._apply(self._read_to_apply(scores))

    def inverse(self, probability: Any) -> Any:
        """The raw score from which on the positive class has at least a probability.

        The inverse of the map of a binary problem: "which raw score means 2 %?". In the
        units of the scores: a probability, or log-odds (the logit of the positive class less
        the other). Where no score means so much it is infinite, where all do it is 0, or minus
        infinity. A map that falls somewhere has no inverse and is refused.

        Examples
        --------
        >>> import numpy as np
        >>> from calibrant.recalibration import TemperatureScaling
        >>> rng = np.random.default_rng(0)
        >>> p = rng.random(1000)
        >>> y = rng.random(1000) < p**2 / (p**2 + (1 - p) ** 2)
        >>> recalibrator = TemperatureScaling(scores="probs").fit(p, y)
        >>> raw = recalibrator.inverse(0.8)
        >>> round(raw, 2), round(float(recalibrator.predict_proba([raw])[0, 1]), 6)
        (0.68, 0.8)
        """
        self._check_fitted()
        if len(self.classes_) != 2:
            raise ValueError(
                "inverse needs a binary problem: the map of several classes is not one of "
                f"a single score, and there are {len(self.classes_)} classes."
            )
        wanted = np.asarray(probability, dtype=np.float64)
        if not ((wanted >= 0) & (wanted <= 1)).all():
            raise ValueError(
                f"probability must be in [0, 1], got {shown(probability)}."
            )

        def positive(score: NDArray[np.float64]) -> NDArray[np.float64]:
            kind, out = self._apply(self._rows(score.ravel(), None, None))
            out = softmax(out) if kind == "logits" else out
            return np.reshape(out[:, 1], score.shape).astype(np.float64)

        found = least_scores(positive, wanted, probabilities=self.scores == "probs")
        return float(found) if found.ndim == 0 else found

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write parameters and what was learned as JSON, all or nothing, with a digest.

        A file that is there is replaced only with ``force=True``.
        """
        self._check_fitted()
        target = as_path(path)
        check_flags(force=force)
        names = [*ALWAYS_LEARNED, *self.learned]
        names += ["feature_names_in_"] if hasattr(self, "feature_names_in_") else []
        content = {
            "format": FORMAT,
            "version": VERSION,
            "method": type(self).__name__,
            "parameters": {k: _encode(v) for k, v in self.get_params().items()},
            "learned": {name: _encode(getattr(self, name)) for name in names},
        }
        with told(f"this {type(self).__name__} cannot be saved"):
            _restored(json.loads(json.dumps(content)), type(self))
        text = json.dumps(with_digest(content), allow_nan=False) + "\n"
        write_text(target, text, force=force)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote; `calibrant.recalibration.load` reads any method.

        A file that was damaged or changed is refused, and so is what no fit can learn.
        Files of 0.1.0 have no digest: there only the latter is noticed.
        """
        return _read_file(as_path(path), expected=cls)

    def _check_options(self) -> None:
        """Check the parameters; what a subclass adds to them it checks itself."""
        for name, choices in self.choices.items():
            if hasattr(self, name):
                check_choice(getattr(self, name), name, choices)

    def _check_not_negative(self, *names: str) -> None:
        """Check that the parameters of these names are numbers, 0 or more."""
        for name in names:
            value = getattr(self, name)
            check_number(value, name, 0, MOST_STRENGTH)

    def _read_to_fit(
        self, scores: Any, y: Any, sample_weight: Any, frequency: Any
    ) -> Rows:
        check_indices(
            scores=scores, y=y, sample_weight=sample_weight, frequency=frequency
        )
        given = reading.flat_if_single(reading.read_scores(scores))
        self._check_kind(given)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is "
                "None: one label per row."
            )
        k = 2 if given.ndim == 1 else given.shape[1]
        classes = named_classes(scores, y, self.classes, "scores", k)
        labels = y if classes is not None else reading.read_labels(y)
        predictions = read_predictions(
            labels,
            **{self.scores: given},
            classes=reading.class_names(labels, k, classes),
            target="top-label",
            sample_weight=sample_weight,
            frequency=frequency,
        )
        if predictions.soft:
            raise ValueError("y must hold one class per row for fitting.")
        weight = reading.effective_weight(predictions)
        rows = self._rows(given, predictions.labels, weight)
        self.classes_ = reading.names_as_array(predictions.classes)
        self.n_features_in_ = reading.width(given)
        return rows

    def _read_to_apply(self, scores: Any) -> Rows:
        self._check_fitted()
        names, given = reading.column_names(scores), reading.read_scores(scores)
        fitted, width = self.__dict__.get("feature_names_in_"), reading.width(given)
        if not (names is None or fitted is None or np.array_equal(names, fitted)):
            raise ValueError(
                "The feature names should match those that were passed during fit: "
                f"columns were {fitted.tolist()[:5]}, and now are {names.tolist()[:5]}."
            )
        if given.ndim == 1 and self.n_features_in_ > 1:
            raise ValueError(
                f"scores is 1-D, and {self.n_features_in_} columns are expected. Reshape "
                "your data: a single row is [[...]]."
            )
        if width != self.n_features_in_:
            raise ValueError(
                f"X has {width} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input: one score per class, as in fit."
            )
        if len(given) == 0:
            raise ValueError("scores has no rows; a minimum of 1 is required.")
        given = reading.flat_if_single(given)
        self._check_kind(given, fitted=True)
        return self._rows(given, None, None)

    def _check_kind(self, given: Matrix, *, fitted: bool = False) -> None:
        """Refuse what is no logit; once fitted to log-odds, they may all be in [0, 1]."""
        if self.scores != "probs":
            if given.ndim == 2 or not fitted:
                check_logits(given, f"Use {type(self).__name__}(scores='probs').")
            if (far := too_large(given)).any():
                raise RowError.at_first(f"{TOO_LARGE};", far, largest(given))

    def _rows(self, given: Matrix, labels: Any, weight: Any) -> Rows:
        kind: Kind = "probs" if self.scores == "probs" else "logits"
        if given.ndim == 1:
            given = _probabilities(given) if kind == "probs" else given
            other = 1 - given if kind == "probs" else np.zeros_like(given)
            given = np.stack([other, given], axis=1)
        rows = Rows(given, kind, labels, weight)
        return rows if weight is None or weight.all() else rows.select(weight > 0)

    def _check_fitted(self) -> None:
        """Raise scikit-learn's own error where it is in use: its users can catch it."""
        if self.__sklearn_is_fitted__():
            return
        error: type[Exception] = AttributeError
        if "sklearn" in sys.modules:
            from sklearn.exceptions import NotFittedError

            error = NotFittedError
        raise error(
            f"this {type(self).__name__} is not fitted yet: call fit(scores, y), or "
            "load a saved one."
        )

    def _note(self, text: str) -> None:
        """Keep a note on the fit, and warn of it."""
        self.notes_ = (*self.notes_, text)
        warnings.warn(f"{type(self).__name__}: {text}", FitWarning, stacklevel=4)

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return sorted(inspect.signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002
        """The parameters by name."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name."""
        for name, value in params.items():
            check_choice(name, "parameter", tuple(self._parameter_names()))
            setattr(self, name, value)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, Tags, TargetTags

        target = TargetTags(required=True)
        return Tags("classifier", target, classifier_tags=ClassifierTags())

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self)).parameters
        given = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if not np.array_equal(
                value, defaults[name].default
            )  # as it may be an array
        ]
        learned = {x: np.ravel(self.__dict__.get(name, ())) for x, name in TOLD.items()}
        told = [
            f"{x}={value[0]:.4g}" for x, value in learned.items() if value.size == 1
        ]
        fitted = f"{'; ' * bool(given)}fitted: {', '.join(told)}" if told else ""
        return f"{type(self).__name__}({', '.join(given)}{fitted})"


def silent(share: float, what: str) -> None:
    """Report nothing."""


def load(path: str | Path) -> Recalibrator:
    """Read a recalibrator that was saved, whatever its method.

    Examples
    --------
    >>> import tempfile
    >>> from calibrant.recalibration import MeanReplacement, load
    >>> file = Path(tempfile.mkdtemp()) / "mean.json"
    >>> MeanReplacement().fit([[2.0, 0.0], [0.0, 1.0]] * 2, [0, 1, 1, 1]).save(file)
    >>> load(file).accuracy_
    0.75
    """
    return Recalibrator.load(path)


def wrong_shape(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> str | None:
    """What is wrong with a learned array that is not of this shape."""
    if array.shape == shape:
        return None
    return f"must have {name} of shape {shape}, got {array.shape}"


# -- files -----------------------------------------------------------------------------


def _encode(value: Any) -> Any:
    """Plain data; an array says so, with its type, to come back as it was."""
    if isinstance(value, np.ndarray):
        for name in value.tolist() if value.dtype == object else ():
            if not isinstance(name, str | int | float | bool):
                rule = "JSON holds names that are text or numbers"
                raise TypeError(f"cannot save class {name!r}: {rule}.")
        return {"array": as_plain(value), "dtype": value.dtype.str}
    if isinstance(value, tuple):
        return {"tuple": [_encode(item) for item in value]}
    if isinstance(value, list):
        return [_encode(item) for item in value]
    if value is None or isinstance(value, str | int | float | bool | np.generic):
        return as_plain(value)
    raise TypeError(f"cannot save {value!r}: only numbers, text and arrays of them.")


def _read_file(path: Path, expected: type[Recalibrator]) -> Any:
    """Read a recalibrator of the expected class or one of its subclasses."""
    with told(str(path)):
        given = without_digest(_read(path))
        return _restored(given, _method(given["method"], expected))


def _read(path: Path) -> dict[str, Any]:
    """What a file says, known to be a recalibrator of this version."""
    given = read_json(read_file(path))
    if not isinstance(given, dict) or given.get("format") not in FORMATS:
        raise RecordError("", "is not a saved recalibrator of calibrant")
    if given.get("version") != VERSION:
        said = f"has version {given.get('version')!r} of the format; this calibrant"
        raise RecordError("", f"{said} reads version {VERSION}")
    strange = [name for name in given if name not in (*PARTS, "digest")]
    if strange:
        raise RecordError("", f"has no field {strange[0]!r}")
    for name, kind in PARTS.items():
        if not isinstance(given.get(name), kind):
            raise RecordError(name, "is missing")
    return given


PARTS = {
    "format": str,
    "version": int,
    "method": str,
    "parameters": dict,
    "learned": dict,
}
"""What a file consists of, and a digest if it is of 0.2.0 or later."""


def _restored(given: Mapping[str, Any], method: type[Recalibrator]) -> Recalibrator:
    """The recalibrator that a file tells of, checked as a whole."""
    known, rules = method._parameter_names(), _rules(method)
    parameters = dict(given["parameters"])
    for old, new in RENAMED.items():
        if old in parameters and new not in parameters:
            parameters[new] = parameters.pop(old)
    for part, names, declared in (
        ("parameters", parameters, known),
        ("learned", given["learned"], rules),
    ):
        if strange := [name for name in names if name not in declared]:
            raise RecordError(part, f"has no field {strange[0]!r} in {method.__name__}")
    if missing := [name for name in known if name not in (*parameters, *ADDED)]:
        raise RecordError(f"parameters.{missing[0]}", "is missing")
    for name in rules:
        if name not in (*given["learned"], *OPTIONAL) and not hasattr(method, name):
            raise RecordError(f"learned.{name}", "is missing")
    made = method(**{k: _decode(v, f"parameters.{k}") for k, v in parameters.items()})
    for name, value in given["learned"].items():
        path = f"learned.{name}"
        setattr(made, name, decode(rules[name], _decode(value, path), path))
    _check(made)
    return made


def _method(name: str, expected: type[Recalibrator]) -> type[Recalibrator]:
    """The class of this name, which must be an expected one."""
    package = sys.modules[__name__.rpartition(".")[0]]
    getattr(package, name, None)  # methods are loaded when they are asked for
    method = {method.__name__: method for method in _methods(expected)}.get(name)
    if method is None or inspect.isabstract(method):
        others = "calibrant.recalibration.load reads any method"
        said = f"holds a {name!r}, which is no {expected.__name__} known here; {others}"
        raise RecordError("", said)
    return method


def _methods(base: type[Recalibrator]) -> list[type[Recalibrator]]:
    """A class and all that derive from it."""
    return [base, *(m for derived in base.__subclasses__() for m in _methods(derived))]


def _rules(method: type[Recalibrator]) -> dict[str, Any]:
    """What each learned attribute may be; a method may only give their names."""
    own = method.learned
    kinds = dict(own) if isinstance(own, Mapping) else dict.fromkeys(own, object)
    return {**ALWAYS_LEARNED, **kinds, **OPTIONAL}


def _check(made: Recalibrator) -> None:
    """Raise an error about what is wrong with parameters, or what does not go together."""
    try:
        made._check_options()
        fits = made.classes is None or np.iterable(made.classes)
        demand(fits, "parameters.classes", "a list of names", made.classes)
    except (TypeError, ValueError) as error:
        if isinstance(error, RecordError):
            raise
        raise RecordError("parameters", f"are off: {str(error).rstrip('.')}") from None
    if said := _misnamed(made) or made._disagreement(len(made.classes_)):
        raise RecordError("learned", said)


def _misnamed(made: Recalibrator) -> str | None:
    """What is wrong with the names of classes and columns."""
    names, columns = made.classes_.tolist(), made.n_features_in_
    given: Any = made.classes
    given = given.tolist() if isinstance(given, np.ndarray) else given
    if made.classes_.ndim != 1 or (given is not None and names != list(given)):
        return "must have classes_ in one row, those of the parameter if there are any"
    if len(names) < 2 or len({*names}) < len(names):
        return "must have two classes_ or more, of distinct names"
    if columns != len(names) and (columns, len(names)) != (1, 2):
        return f"has n_features_in_ {columns} for {len(names)} classes_"
    fitted = made.__dict__.get("feature_names_in_")
    if fitted is not None and [*map(type, fitted)] != [str] * columns:
        return f"must have {columns} feature_names_in_, all of them text"
    return None


def _decode(given: Any, path: str) -> Any:
    """What `_encode` made plain."""
    if isinstance(given, dict) and set(given) == {"array", "dtype"}:
        demand(isinstance(given["array"], list), path, "an array", given["array"])
        return _array(given["array"], given["dtype"], path)
    if isinstance(given, dict) and set(given) == {"tuple"}:
        demand(isinstance(given["tuple"], list), path, "a list", given["tuple"])
        return tuple(_decode(given["tuple"], path))
    if isinstance(given, list):
        return [_decode(x, f"{path}[{i}]") for i, x in enumerate(given)]
    return decode(Any, given, path)


NUMBERS = {"<f8": NDArray[np.float64], "<i8": tuple[int, ...]}
"""How arrays of these types are read; others hold names."""


def _array(rows: list[Any], dtype: Any, path: str) -> NDArray[Any]:
    """An array of numbers, whose size is that of the list, or of names."""
    if dtype not in ("<f8", "<i8"):
        return _names(tuple(rows), dtype, path)
    table = bool(rows) and isinstance(rows[0], list)
    paths = [f"{path}[{place}]" for place in range(len(rows))] if table else [path]
    parts = rows if table else [rows]
    read = [decode(NUMBERS[dtype], x, at) for x, at in zip(parts, paths, strict=True)]
    if len({len(x) for x in read}) > 1:
        raise RecordError(path, "must have rows of one length")
    try:
        return np.array(read if table else read[0], dtype)
    except OverflowError:
        raise RecordError(path, "must have whole numbers of 64 bits") from None


def _names(names: tuple[Any, ...], dtype: Any, path: str) -> NDArray[Any]:
    """Names as `fit` keeps them: of a type that follows from them, or objects."""
    for place, name in enumerate(names):
        fits = isinstance(name, str | int | float)
        demand(fits, f"{path}[{place}]", "text or a number", name)
    array = reading.names_as_array(names)
    if dtype == "|O" and array.dtype != object:
        array = np.empty(len(names), object)
        array[:] = names
    demand(array.dtype.str == dtype, path, f"an array of {array.dtype.str}", dtype)
    return array
