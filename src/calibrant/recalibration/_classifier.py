"""A scikit-learn classifier and its recalibration as one classifier."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import (
    StratifiedGroupKFold,
    check_cv,
    cross_val_predict,
)
from sklearn.utils.validation import check_is_fitted

from calibrant._inputs.arrays import Matrix, to_numpy
from calibrant.recalibration._estimator import Recalibrator
from calibrant.recalibration._temperature import TemperatureScaling


class RecalibratedClassifier(
    ClassifierMixin,  # type: ignore[misc]
    MetaEstimatorMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """A classifier whose probabilities are recalibrated.

    Without `cv` the classifier must be fitted, and `fit` takes rows that it has not
    seen; it is used as it is and never fitted again. With `cv` the recalibrator learns
    from predictions for held-out folds, and the classifier is then fitted on all rows.

    Parameters
    ----------
    estimator : classifier
        With ``predict_proba`` if the recalibrator takes probabilities, or else with
        ``decision_function``.
    recalibrator : Recalibrator, optional
        By default ``TemperatureScaling(scores="probs")``.
    cv : int or cross-validation splitter, optional
        As in scikit-learn; with clusters, a number stands for `StratifiedGroupKFold`.

    Attributes
    ----------
    estimator_, recalibrator_
        The fitted parts.
    classes_ : ndarray
        Names of the classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from calibrant.recalibration import RecalibratedClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RecalibratedClassifier(GaussianNB().fit(X[::2], y[::2]))
    >>> model.fit(X[1::4], y[1::4]).predict_proba(X[3:4]).shape
    (1, 3)
    """

    def __init__(
        self, estimator: Any, recalibrator: Recalibrator | None = None, cv: Any = None
    ) -> None:
        self.estimator = estimator
        self.recalibrator = recalibrator
        self.cv = cv

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        frequency: Any = None,
        cluster: Any = None,
    ) -> Self:
        """Fit the recalibrator, and with `cv` the classifier too.

        Weights and counts are for the recalibrator, as in `Recalibrator.fit`. With
        `cluster`, the cluster of each row, no fold cuts a cluster.
        """
        recalibrator = self.recalibrator or TemperatureScaling(scores="probs")
        self.recalibrator_ = clone(recalibrator)
        if self.cv is None:
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
            scores = self._scores(X)
        else:
            folds = (
                self.cv if cluster is None else whole_clusters(self.cv, X, y, cluster)
            )
            scores = cross_val_predict(
                self.estimator, X, y, cv=folds, method=self._method
            )
            self.estimator_ = clone(self.estimator).fit(X, y)
        self.classes_ = self.estimator_.classes_
        if self.recalibrator_.classes is None:
            self.recalibrator_.set_params(classes=self.classes_.tolist())
        self.recalibrator_.fit(scores, y, sample_weight, frequency=frequency)
        return self

    def predict_proba(self, X: Any) -> Matrix:
        """Recalibrated probabilities."""
        return self._fitted().predict_proba(self._scores(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class after recalibration."""
        return self._fitted().predict(self._scores(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of `predict`."""
        return float(super().score(X, y, sample_weight))

    @property
    def _method(self) -> str:
        takes_probs = self.recalibrator_.scores == "probs"
        return "predict_proba" if takes_probs else "decision_function"

    def _scores(self, X: Any) -> Any:
        return getattr(self.estimator_, self._method)(X)

    def _fitted(self) -> Recalibrator:
        check_is_fitted(self, "recalibrator_")
        return self.recalibrator_


def whole_clusters(cv: Any, X: Any, y: Any, cluster: Any) -> list[tuple[Any, Any]]:
    """The folds of a splitter, none of which may cut a cluster."""
    names = to_numpy(cluster, "cluster")
    names = names.astype(str) if names.dtype == object else names
    count = len(np.unique(names))
    if isinstance(cv, int) and cv > count:
        raise ValueError(
            f"cv must be at most {count}, the number of clusters; got {cv}."
        )
    splitter = StratifiedGroupKFold(cv) if isinstance(cv, int) else check_cv(cv, y)
    with warnings.catch_warnings():  # of clusters that are ignored: that is seen below
        warnings.simplefilter("ignore", UserWarning)
        folds = list(splitter.split(X, y, names))
    for fit, test in folds:
        if cut := np.intersect1d(names[fit], names[test]).tolist():
            raise ValueError(
                f"cv must not cut a cluster; it cuts {len(cut)}, the first of them "
                f"{cut[0]!r}. Use a splitter by groups, such as GroupKFold."
            )
    return folds
