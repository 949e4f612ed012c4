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
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import (
    as_path,
    check_choice,
    check_flags,
    check_functions,
    check_length,
    check_number,
)
from calibrant._base.records import as_plain
from calibrant._base.write import write_text
from calibrant._inputs.arrays import Matrix
from calibrant._inputs.predictions import read_predictions, read_weights
from calibrant._rows.engines import ENGINES
from calibrant.recalibration import _rows as reading
from calibrant.recalibration._rows import Kind, Rows, softmax

FORMAT, VERSION = "calibrant recalibrator", 1
FORMATS = (FORMAT, "acumen recalibrator")  # until 0.1.0 the project was called acumen
RENAMED = {"objective": "divergence"}  # parameters, since 0.1.0
ALWAYS_LEARNED = ("classes_", "n_features_in_", "notes_")

CHOICES: dict[str, tuple[Any, ...]] = {
    "scores": ("logits", "probs"),
    "divergence": ("log", "brier"),
    "strategy": ("width", "mass"),
    "mode": ("one-vs-rest", "top-label"),
    "compat": (None, "netcal"),
    "engine": ENGINES,
}
"""What parameters of these names may be, in every method that has them."""

MOST_STRENGTH = 1e12
"""Most of what a prior may weigh: beyond it numbers are lost in it."""

Progress = Callable[[float, str], None]
"""Called with the share of the work that is done, and what is being done."""


class FitWarning(UserWarning):
    """A fit has a result, but not one to trust without a look."""


class Recalibrator(ABC):
    """Learns on held-out rows how to turn a classifier's scores into probabilities.

    `fit` takes one row of scores per forecast and one column per class: logits, or
    probabilities with ``scores="probs"``. One column, or a 1-D array, is the positive
    class of a binary problem. `predict_proba` gives n x k probabilities in the precision
    of the scores, but float32 for float16.

    A method is a dataclass of its parameters; what it learns has names that end in ``_``.

    Parameters
    ----------
    scores : {"logits", "probs"}
        What the scores are.
    classes : sequence, optional
        Names of the classes in column order, if labels are neither column numbers nor
        names in sorted order.
    engine : {"auto", "numpy", "numba"}
        In methods that have a use for it: ``"auto"`` uses numba for large matrices if it
        is installed.

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

    learned: ClassVar[tuple[str, ...]] = ()
    """Names of the attributes that `fit` learns, which are what is saved."""

    choices: ClassVar[Mapping[str, tuple[Any, ...]]] = CHOICES
    """What parameters of these names may be."""

    @abstractmethod
    def _learn(self, rows: Rows, progress: Progress) -> None:
        """Fit on checked rows."""

    @abstractmethod
    def _apply(self, rows: Rows) -> tuple[Kind, Matrix]:
        """Recalibrated scores in a new matrix: logits or probabilities."""

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
        names = reading.column_names(scores)
        rows = self._read_to_fit(scores, y, sample_weight, frequency)
        if names is not None:
            self.feature_names_in_ = names
        self._learn(rows, progress or silent)
        return self

    def predict_proba(self, scores: Any) -> Matrix:
        """Recalibrated probabilities, n x k; every row sums to 1."""
        kind, result = self.recalibrate(scores)
        if kind == "logits":
            Rows(result, "logits").each(lambda part: softmax(result[part]))
        return result

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

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write parameters and what was learned as JSON, all or nothing.

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
        text = json.dumps(content, allow_nan=False) + "\n"
        write_text(target, text, force=force)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote; `calibrant.recalibration.load` reads any method."""
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
        given = reading.flat_if_single(reading.read_scores(scores))
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is "
                "None: one label per row."
            )
        k = 2 if given.ndim == 1 else given.shape[1]
        labels = y if self.classes is not None else reading.read_labels(y)
        predictions = read_predictions(
            labels,
            **{self.scores: given},
            classes=reading.class_names(labels, k, self.classes),
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
        return self._rows(reading.flat_if_single(given), None, None)

    def _rows(self, given: Matrix, labels: Any, weight: Any) -> Rows:
        kind: Kind = "probs" if self.scores == "probs" else "logits"
        if given.ndim == 1:
            other = 1 - given if kind == "probs" else np.zeros_like(given)
            given = np.stack([other, given], axis=1)
        if kind == "logits" and reading.look_like_probs(given):
            raise ValueError(
                "these logits are rows of probabilities: none is negative and every row "
                f"sums to 1. Use {type(self).__name__}(scores='probs')."
            )
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
            if value is not defaults[name].default and value != defaults[name].default
        ]
        return f"{type(self).__name__}({', '.join(given)})"


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
    given = _read(path)
    name, package = given["method"], sys.modules[__name__.rpartition(".")[0]]
    getattr(package, name, None)  # methods are loaded when they are asked for
    method = {method.__name__: method for method in _methods(expected)}.get(name)
    if method is None:
        raise ValueError(
            f"{path} holds a {name!r}, which is no {expected.__name__} known here; "
            "calibrant.recalibration.load reads any method."
        )
    try:
        stored = given["parameters"].items()
        recalibrator = method(**{RENAMED.get(k, k): _decode(v) for k, v in stored})
        for key, value in given["learned"].items():
            setattr(recalibrator, key, _decode(value))
        for key in (*ALWAYS_LEARNED, *method.learned):
            getattr(recalibrator, key)
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise ValueError(f"{path} is not a whole {name}: {error}.") from error
    return recalibrator


def _read(path: Path) -> dict[str, Any]:
    """What a file says, known to be a recalibrator of this version."""
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not JSON: {error}.") from error
    if not isinstance(given, dict) or given.get("format") not in FORMATS:
        raise ValueError(f"{path} is not a saved recalibrator of calibrant.")
    if given.get("version") != VERSION:
        raise ValueError(
            f"{path} has version {given.get('version')!r} of the format; this calibrant "
            f"reads version {VERSION}."
        )
    parts = {"method": str, "parameters": dict, "learned": dict}
    missing = [n for n, kind in parts.items() if not isinstance(given.get(n), kind)]
    if missing:
        raise ValueError(f"{path} is not whole: {missing[0]!r} is missing.")
    return given


def _methods(base: type[Recalibrator]) -> list[type[Recalibrator]]:
    """A class and all that derive from it."""
    return [base, *(m for derived in base.__subclasses__() for m in _methods(derived))]


def _decode(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"array", "dtype"}:
        values, dtype = value["array"], np.dtype(value["dtype"])
        if dtype != object:
            return np.array(values, dtype)  # NumPy reads "inf" and "nan" as numbers
        array = np.empty(len(values), object)
        array[:] = values
        return array
    if isinstance(value, dict) and set(value) == {"tuple"}:
        return tuple(_decode(item) for item in value["tuple"])
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if isinstance(value, dict):
        raise KeyError(*sorted(value))
    return value
