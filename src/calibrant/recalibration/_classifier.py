"""A scikit-learn classifier and its recalibration as one classifier."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import (
    StratifiedGroupKFold,
    check_cv,
    cross_val_predict,
)
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter

from calibrant._base.checks import check_choice, check_flags, check_number
from calibrant._inputs.arrays import Matrix, as_scores, to_numpy
from calibrant._inputs.predictions import read_weights
from calibrant.recalibration._estimator import FitWarning, Recalibrator
from calibrant.recalibration._temperature import TemperatureScaling

RESPONSES = {"probs": "predict_proba", "logits": "decision_function"}
"""What gives the scores of either kind."""


class RecalibratedClassifier(
    ClassifierMixin,  # type: ignore[misc]
    MetaEstimatorMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """A classifier whose probabilities are recalibrated.

    Without `cv` the classifier must be fitted, and `fit` takes examples that it has not
    seen; it is used as it is and never fitted again. With `cv` the recalibrator learns
    from predictions for held-out folds, and the classifier is then fitted on all examples.

    No class is impossible. A probability of the classifier below `floor_`, which is
    rounding error or the leaf of a tree without the class, counts as that; and a class to
    which the recalibrator gives 0 keeps `least_`. So the log loss is finite.

    Parameters
    ----------
    estimator : classifier
        With ``predict_proba`` or ``decision_function``.
    recalibrator : Recalibrator, optional
        By default ``TemperatureScaling(scores="probs")``.
    cv : int or cross-validation splitter, optional
        As in scikit-learn; with groups, a number stands for `StratifiedGroupKFold`.
    scores : {"auto", "probs", "logits"}
        ``"probs"`` reads ``predict_proba``, ``"logits"`` reads ``decision_function``;
        ``"auto"`` the one that the recalibrator's own `scores` names, or the other if the
        classifier has only that.
    ensemble : bool
        Whether to average over folds, each with a classifier and a recalibrator of its own,
        as scikit-learn's ``CalibratedClassifierCV(ensemble=True)`` does. It needs `cv`, takes
        as many predictions as there are folds, and its log loss is often a little lower.

    Attributes
    ----------
    estimator_, recalibrator_
        The fitted parts; with `ensemble`, there are `members_` in their place.
    members_ : list of RecalibratedClassifier
        With `ensemble`, one for each fold.
    classes_ : ndarray
        Names of the classes.
    n_features_in_, feature_names_in_
        Number and names of the columns of X, if the classifier has them.
    floor_ : float
        What a probability of 0 counts as: half of the least positive one of the fit if
        there were zeros, at least the rounding error. 0 with ``"logits"``.
    least_ : float
        What a class gets to which the recalibrator gives 0: an even share of half an
        example in n + 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from calibrant.recalibration import RecalibratedClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RecalibratedClassifier(GaussianNB().fit(X[::2], y[::2]))
    >>> model.fit(X[1::4], y[1::4]).predict_proba(X[3:4]).shape
    (1, 3)
    >>> RecalibratedClassifier(GaussianNB(), cv=5).fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        estimator: Any,
        recalibrator: Recalibrator | None = None,
        cv: Any = None,
        *,
        scores: str = "auto",
        ensemble: bool = False,
    ) -> None:
        self.estimator = estimator
        self.recalibrator = recalibrator
        self.cv = cv
        self.scores = scores
        self.ensemble = ensemble

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        frequency: Any = None,
        cluster: Any = None,
        **params: Any,
    ) -> Self:
        """Fit the recalibrator, and with `cv` the classifier too.

        Parameters
        ----------
        X, y : array_like
            Features and labels.
        sample_weight, frequency : array_like, optional
            Weights and counts as in `Recalibrator.fit`; with `cv` the classifier gets
            their product as ``sample_weight`` if it takes weights.
        cluster : array_like, optional
            The cluster of each example: no fold cuts one.
        **params
            ``groups``, scikit-learn's word for `cluster`; all others are for the
            classifier's ``fit``. With metadata routing enabled, requests decide.
        """
        self._check_parameters()
        check_classification_targets(y)
        X, y = indexable(X, column_or_1d(y, warn=True))
        if self.ensemble:
            return self._fit_members(X, y, (sample_weight, frequency), cluster, params)
        self.recalibrator_ = clone(
            self.recalibrator or TemperatureScaling(scores="probs")
        )
        self.recalibrator_.set_params(scores=self._chosen())
        weights = sample_weight, frequency
        given = (
            self._held_out(X, params)
            if self.cv is None
            else self._cross_fitted(X, y, weights, cluster, params)
        )
        self._take_names()
        self._learn_limits(given)
        self.recalibrator_.fit(
            self._scores(given), y, sample_weight, frequency=frequency
        )
        return self

    def _check_parameters(self) -> None:
        check_choice(self.scores, "scores", ("auto", *RESPONSES))
        check_flags(ensemble=self.ensemble)
        made: Any = self.recalibrator
        if made is not None and not isinstance(made, Recalibrator):
            way_out = "such as TemperatureScaling()"
            raise TypeError(
                f"recalibrator must be a recalibrator {way_out}; got {made!r}."
            )
        if self.ensemble and self.cv is None:
            raise ValueError(
                "ensemble=True averages over folds, so it needs cv, such as 5."
            )
        known = isinstance(self.cv, Iterable) or hasattr(self.cv, "split")
        if isinstance(self.cv, int | np.integer):
            check_number(self.cv, "cv", 2, kind="a whole number")
        elif self.cv is not None and (isinstance(self.cv, str | bytes) or not known):
            raise TypeError(
                "cv must be a number of folds, a splitter of scikit-learn, or pairs of rows "
                f"to fit and to test on; got {self.cv!r}."
            )

    def predict_proba(self, X: Any) -> Matrix:
        """Recalibrated probabilities: an array, whatever kind of frame X is."""
        if self.ensemble:
            check_is_fitted(self, "members_")
            return np.mean([one.predict_proba(X) for one in self.members_], axis=0)
        p = self._fitted().predict_proba(self._scores(self._respond(X)))
        zero = p == 0
        if zero.any():
            p[zero] = self.least_
            p /= p.sum(axis=1, keepdims=True)
        return p

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class after recalibration."""
        if self.ensemble:
            best = self.predict_proba(X).argmax(axis=1)
            return self.classes_[best]
        return self._fitted().predict(self._scores(self._respond(X)))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of `predict`."""
        return float(super().score(X, y, sample_weight))

    def get_metadata_routing(self) -> MetadataRouter:
        """Who gets what of ``fit``: the classifier weights, the splitter groups.

        Examples
        --------
        >>> from sklearn.naive_bayes import GaussianNB
        >>> model = RecalibratedClassifier(GaussianNB(), cv=5)
        >>> [name for name, _ in model.get_metadata_routing()]
        ['$self_request', 'estimator', 'splitter']
        """
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        to_split = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(estimator=self.estimator, method_mapping=to_fit)
        return router.add(splitter=self.cv, method_mapping=to_split)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags

    def _chosen(self) -> str:
        """The kind of scores to read, of those that the classifier has."""
        name = type(self.estimator).__name__
        has = [x for x, method in RESPONSES.items() if hasattr(self.estimator, method)]
        asked = self.recalibrator_.scores if self.scores == "auto" else self.scores
        if asked in has:
            return asked
        if not has:
            raise ValueError(
                f"estimator must have predict_proba or decision_function; {name} has "
                "neither."
            )
        if self.scores != "auto":
            raise ValueError(
                f"scores={asked!r} needs {RESPONSES[asked]}, which {name} does not have: "
                f"use scores={has[0]!r}."
            )
        return has[0]

    def _held_out(self, X: Any, params: Mapping[str, Any]) -> Any:
        """Scores of a classifier that is fitted already."""
        if params:
            raise TypeError(
                f"fit got {next(iter(params))!r}, for which there is no use without cv."
            )
        try:
            check_is_fitted(self.estimator)
        except NotFittedError as error:
            raise NotFittedError(
                f"estimator must be fitted on other examples where cv is None, and this "
                f"{type(self.estimator).__name__} is not. Pass cv=5 to have it fitted "
                "here, on these."
            ) from error
        self.estimator_ = self.estimator
        return self._respond(X)

    def _fit_members(
        self,
        X: Any,
        y: Any,
        weights: tuple[Any, Any],
        cluster: Any,
        params: Mapping[str, Any],
    ) -> Self:
        """One classifier and one recalibrator for each fold."""
        groups, fit_params = self._routed(len(y), weights, params)
        known = [x if x is None else to_numpy(x, "sample_weight") for x in weights]
        self.classes_, self.members_ = np.unique(y), []
        for fit, test in self._folds(X, y, groups if cluster is None else cluster):
            given = {name: rows_of(x, fit, len(y)) for name, x in fit_params.items()}
            base = clone(self.estimator).fit(rows_of(X, fit), rows_of(y, fit), **given)
            if len(base.classes_) < len(self.classes_):
                raise ValueError(
                    "cv leaves a class out of the examples that a fold is fitted on; use "
                    "fewer folds, or ensemble=False."
                )
            own = type(self)(base, self.recalibrator, scores=self.scores)
            weight, count = (x if x is None else rows_of(x, test) for x in known)
            own.fit(rows_of(X, test), rows_of(y, test), weight, frequency=count)
            self.members_.append(own)
        self._take_features(self.members_[0])
        return self

    def _folds(self, X: Any, y: Any, groups: Any) -> Iterable[tuple[Any, Any]]:
        if groups is not None:
            return whole_clusters(self.cv, X, y, groups)
        return list(check_cv(self.cv, y, classifier=True).split(X, y))

    def _cross_fitted(
        self,
        X: Any,
        y: Any,
        weights: tuple[Any, Any],
        cluster: Any,
        params: Mapping[str, Any],
    ) -> Any:
        """Scores of each fold by a classifier that has not seen it."""
        groups, fit_params = self._routed(len(y), weights, params)
        folds = self._folds(X, y, groups if cluster is None else cluster)
        method = RESPONSES[self.recalibrator_.scores]
        given = cross_val_predict(
            self.estimator, X, y, cv=folds, method=method, params=fit_params
        )
        self.estimator_ = clone(self.estimator).fit(X, y, **fit_params)
        return given

    def _routed(
        self, n: int, weights: tuple[Any, Any], params: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Groups for the splitter, and what the classifier's fit is given."""
        if get_config()["enable_metadata_routing"]:
            known = {"sample_weight": weights[0], **params}
            routed = process_routing(self, "fit", **known)
            return routed.splitter.split.get("groups"), dict(routed.estimator.fit)
        others = {name: value for name, value in params.items() if name != "groups"}
        weight, _ = read_weights(*weights, n, part=True)
        if weight is None:
            return params.get("groups"), others
        if has_fit_parameter(self.estimator, "sample_weight"):
            return params.get("groups"), {**others, "sample_weight": weight}
        warnings.warn(
            f"{type(self.estimator).__name__} takes no sample_weight: weights are used "
            "for the recalibration alone.",
            FitWarning,
            stacklevel=4,
        )
        return params.get("groups"), others

    def _take_names(self) -> None:
        """Names of classes and features, as the classifier has them."""
        self.classes_ = self.estimator_.classes_
        if self.recalibrator_.classes is None:
            self.recalibrator_.set_params(classes=self.classes_.tolist())
        self._take_features(self.estimator_)

    def _take_features(self, fitted: Any) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))

    def _learn_limits(self, given: Any) -> None:
        p = as_scores(given, "scores")
        self.least_ = 0.5 / (len(p) + 1) / len(self.classes_)
        self.floor_ = 0.0
        if self.recalibrator_.scores == "probs":
            least = p.min(where=p > 0, initial=1.0) if (p == 0).any() else 0.0
            self.floor_ = float(max(least / 2, np.finfo(p.dtype).eps))

    def _respond(self, X: Any) -> Any:
        check_is_fitted(self, "estimator_")
        return getattr(self.estimator_, RESPONSES[self.recalibrator_.scores])(X)

    def _scores(self, given: Any) -> Matrix:
        """Scores with no probability below the floor; what a row sums to is kept."""
        p = as_scores(given, "scores")
        if self.floor_ == 0 or not (p < self.floor_).any():
            return p
        raised = np.where((p >= 0) & (p < self.floor_), p.dtype.type(self.floor_), p)
        raised *= p.sum(axis=1, keepdims=True) / raised.sum(axis=1, keepdims=True)
        return raised

    def _fitted(self) -> Recalibrator:
        check_is_fitted(self, "least_")
        return self.recalibrator_


def rows_of(x: Any, rows: NDArray[Any], n: int | None = None) -> Any:
    """Some rows of an array or frame; with n, of what has so many, and others as they are."""
    if n is not None and (not hasattr(x, "__len__") or len(x) != n):
        return x
    return _safe_indexing(x, rows)


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
