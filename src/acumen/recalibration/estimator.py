"""What every recalibrator shares: the scikit-learn contract, without scikit-learn.

An estimator is fitted on scores and labels, and turns scores into probabilities. The
contract is a matter of names, so scikit-learn is needed neither to fit nor to apply.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Matrix, check_choice
from acumen.predictions import read_predictions
from acumen.recalibration import storage
from acumen.recalibration.labels import class_names, read_labels
from acumen.recalibration.reading import (
    check_column_names,
    column_names,
    flat_if_single,
    look_like_probs,
    names_as_array,
    read_scores,
    width,
)
from acumen.recalibration.rows import Kind, Rows, softmax

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
            Weight 2 is a row twice, weight 0 is no row.
        progress : callable, optional
            Called as ``progress(share_done, what)`` while fitting.
        """
        self.__dict__.pop("feature_names_in_", None)
        self.notes_ = ()
        self._check_options()
        names = column_names(scores)
        rows, self.classes_, self.n_features_in_ = self._read_to_fit(
            scores, y, sample_weight
        )
        if names is not None:
            self.feature_names_in_ = names
        self._learn(rows, progress or silent)
        return self

    def predict_proba(self, scores: Any) -> Matrix:
        """Recalibrated probabilities, n x k; every row sums to 1."""
        kind, result = self.recalibrate(scores)
        if kind == "logits":
            Rows(result, "logits").each(lambda part: _softmax_of(result, part))
        return result

    def predict(self, scores: Any) -> NDArray[Any]:
        """The likeliest class of each row; the first one if several are."""
        _, result = self.recalibrate(scores)
        return self.classes_[result.argmax(axis=1)]

    def score(self, scores: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of `predict`, which is what scikit-learn expects of this name."""
        right = self.predict(scores) == np.asarray(y)
        return float(np.average(right, weights=sample_weight))

    def recalibrate(self, scores: Any) -> tuple[Kind, Matrix]:
        """Recalibrated logits where the method gives them, else probabilities.

        Logits say more than their softmax, which rounds to 0 and 1.

        Returns
        -------
        kind : {"logits", "probs"}
        scores : ndarray of shape (n, k)
        """
        return self._apply(self._read_to_apply(scores))

    # -- reading -----------------------------------------------------------------

    def _check_options(self) -> None:
        """Check the parameters; what a subclass adds to them it checks itself."""
        check_choice(self.scores, "scores", ("logits", "probs"))

    def _read_to_fit(
        self, scores: Any, y: Any, sample_weight: Any
    ) -> tuple[Rows, NDArray[Any], int]:
        given = flat_if_single(read_scores(scores))
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is "
                "None: one label per row."
            )
        k = 2 if given.ndim == 1 else given.shape[1]
        labels = y if self.classes is not None else read_labels(y)
        predictions = read_predictions(
            labels,
            **{self.scores: given},
            classes=class_names(labels, k, self.classes),
            target="top-label",
            sample_weight=sample_weight,
        )
        if predictions.soft:
            raise ValueError("y must hold one class per row for fitting.")
        rows = self._rows(given, predictions.labels, predictions.weight)
        return rows, names_as_array(predictions.classes), width(given)

    def _read_to_apply(self, scores: Any) -> Rows:
        self._check_fitted()
        names = column_names(scores)
        given = read_scores(scores)
        check_column_names(names, self.__dict__.get("feature_names_in_"))
        if given.ndim == 1 and self.n_features_in_ > 1:
            raise ValueError(
                f"scores is 1-D, and {self.n_features_in_} columns are expected. Reshape "
                "your data: a single row is [[...]]."
            )
        if width(given) != self.n_features_in_:
            raise ValueError(
                f"X has {width(given)} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input: one score per class, as in fit."
            )
        if len(given) == 0:
            raise ValueError("scores has no rows; a minimum of 1 is required.")
        return self._rows(flat_if_single(given), None, None)

    def _rows(self, given: Matrix, labels: Any, weight: Any) -> Rows:
        kind: Kind = "probs" if self.scores == "probs" else "logits"
        if given.ndim == 1:
            other = 1 - given if kind == "probs" else np.zeros_like(given)
            given = np.stack([other, given], axis=1)
        if kind == "logits" and look_like_probs(given):
            raise ValueError(
                "these logits are rows of probabilities: none is negative and every row "
                f"sums to 1. Use {type(self).__name__}(scores='probs')."
            )
        rows = Rows(given, kind, labels, weight)
        if weight is not None and not weight.all():
            rows = rows.select(weight > 0)
        return rows

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise _not_fitted_error()(
                f"this {type(self).__name__} is not fitted yet: call fit(scores, y), or "
                "load a saved one."
            )

    def _note(self, text: str) -> None:
        """Keep a note on the fit, and warn of it."""
        self.notes_ = (*self.notes_, text)
        warnings.warn(f"{type(self).__name__}: {text}", FitWarning, stacklevel=4)

    # -- files -------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write parameters and what was learned as JSON, all or nothing."""
        self._check_fitted()
        storage.save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote; `acumen.recalibration.load` reads any method."""
        return storage.load(path, expected=cls)

    # -- scikit-learn's names ----------------------------------------------------

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
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(),
        )

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


def _softmax_of(matrix: Matrix, part: slice) -> None:
    softmax(matrix[part])


def _not_fitted_error() -> type[Exception]:
    """scikit-learn's own error where it is in use, so that its users can catch it."""
    if "sklearn" in sys.modules:
        from sklearn.exceptions import NotFittedError

        return NotFittedError
    return AttributeError


def load(path: str | Path) -> Recalibrator:
    """Read a recalibrator that was saved, whatever its method.

    Examples
    --------
    >>> import tempfile
    >>> from acumen.recalibration import MeanReplacement, load
    >>> file = Path(tempfile.mkdtemp()) / "mean.json"
    >>> MeanReplacement().fit([[2.0, 0.0], [0.0, 1.0]], [0, 1]).save(file)
    >>> load(file).accuracy_
    1.0
    """
    return Recalibrator.load(path)
