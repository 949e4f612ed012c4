"""Confidences of real models as laws whose every population value is a finite sum.

A law has at most about 600 atoms. A data set of n rows is then a multinomial draw of
counts and a binomial draw of hits on them, and the calibration error of a known
accuracy is an exact sum over atoms.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from calibrant._inputs.predictions import read_predictions
from calibrant._rows.reduce import reduce_to_columns
from calibrant._sketch.grid import LOG_ODDS_REACH
from calibrant._stats.neighbours import Neighbours as Cells

Column = NDArray[np.float64]
Load = Callable[[str], Mapping[str, Any]]
"""From the name of a file to its arrays."""

ATOMS = 600


@dataclass(frozen=True, eq=False)
class Rows:
    """Log-odds of the confidence and hits of real rows."""

    z: Column
    hit: Column


@dataclass(frozen=True, eq=False)
class Law:
    """Atoms of log-odds z, in increasing order, with their mass."""

    z: Column
    mass: Column

    @cached_property
    def h(self) -> Column:
        """Confidence at each atom."""
        return expit(self.z)

    @cached_property
    def rank(self) -> Column:
        """Mid-rank of each atom."""
        return np.cumsum(self.mass) - self.mass / 2


# -- laws --------------------------------------------------------------------------


def top_label(arrays: Mapping[str, Any]) -> Rows:
    """The likeliest class of a matrix of probabilities or logits."""
    scores = {kind: arrays[kind] for kind in ("probs", "logits") if kind in arrays}
    return _rows(arrays["labels"], target="top-label", **scores)


def pairs(correct: Any, confidence: Any) -> Rows:
    """Stated confidences."""
    return _rows(correct, confidence=np.asarray(confidence, np.float64))


def _rows(y: Any, **given: Any) -> Rows:
    columns = reduce_to_columns(read_predictions(y, **given))
    z = np.clip(columns.log_odds, -LOG_ODDS_REACH, LOG_ODDS_REACH)
    return Rows(z, columns.hit)


def _one_of_many(arrays: Mapping[str, Any], model: str) -> Rows:
    i = list(arrays["models"]).index(model)
    return pairs(arrays["pred"][i] == arrays["labels"], arrays["confidence"][i])


def _predicted(arrays: Mapping[str, Any]) -> Rows:
    return pairs(arrays["pred"] == arrays["labels"], arrays["confidence"])


def _forecasts(arrays: Mapping[str, Any]) -> Rows:
    return pairs(arrays["outcome"], arrays["prob"])


Laws = Mapping[str, Callable[[Load], Rows]]

HOLD_OUT: Laws = {
    "CIFAR-10 VGG-16": lambda load: top_label(load("cifar10_verified_vgg16")),
    "CIFAR-10 WRN-28-10, human-tuned": lambda load: top_label(
        load("cifar10_peterson_wrn_28_10_humantuned_UNDERCONFIDENT")
    ),
    "CIFAR-10 LeNet-5": lambda load: top_label(load("cifar10_netcal_lenet_5")),
    "MNIST": lambda load: top_label(load("mnist_cleanlab_cv")),
    "IMDB": lambda load: top_label(load("imdb_cleanlab_cv")),
    "CIFAR-10 ResNet-50": lambda load: top_label(load("cifar10_widmann_resnet50")),
    "CIFAR-100 DenseNet-40": lambda load: _predicted(
        load("top1_nncal_densenet40_c100")
    ),
    "ImageNet DenseNet-161": lambda load: _one_of_many(
        load("imagenet_val_top1_14models"), "torchvision_densenet161"
    ),
    "Recession forecasts": lambda load: _forecasts(load("forecast_spf_recession")),
}
"""Laws that no choice in the estimators was based on."""

NO_NETWORKS = ("Recession forecasts",)


def reduce_to_atoms(rows: Rows, most: int = ATOMS) -> Law:
    """Each distinct confidence an atom, or, if they are many, about `most` of them.

    Half of the edges between atoms are even in rank and half in log-odds, so that
    neither the bulk nor the tails are coarse.
    """
    distinct, group = np.unique(rows.z, return_inverse=True)
    if len(distinct) > most:
        even = np.linspace(0, 1, most // 2 + 1)
        in_rank = np.quantile(rows.z, even)
        in_log_odds = distinct[0] + even * (distinct[-1] - distinct[0])
        edges = np.unique(np.concatenate([in_rank, in_log_odds]))[1:-1]
        place = np.searchsorted(edges, rows.z, side="right")
        group = np.unique(place, return_inverse=True)[1]
    count = np.bincount(group)
    return Law(np.bincount(group, rows.z) / count, count / count.sum())


# -- truths ------------------------------------------------------------------------


def truths(law: Law, rows: Rows) -> dict[str, Column]:
    """Accuracies at the atoms: the confidence itself, and a fit to the real hits."""
    return {"calibrated": law.h, "flexible fit": _flexible_fit(law, rows)}


def _flexible_fit(law: Law, rows: Rows) -> Column:
    """A logistic regression on log-odds and six cosines of rank."""

    def features(z: Column, rank: Column) -> Column:
        waves = [np.cos(j * np.pi * rank) for j in range(1, 7)]
        return np.stack([np.ones_like(z), z / 5, *waves], axis=1)

    rank = np.interp(rows.z, law.z, law.rank)
    weights = _logistic_regression(features(rows.z, rank), rows.hit)
    return expit(features(law.z, law.rank) @ weights)


def _logistic_regression(X: NDArray[np.float64], hit: Column) -> Column:
    """Newton steps, damped, with a little ridge."""
    ridge = 1e-3 * np.eye(X.shape[1])
    weights = np.zeros(X.shape[1])
    for _ in range(60):
        p = expit(X @ weights)
        information = (X * (p * (1 - p))[:, None]).T @ X + ridge
        step = np.linalg.solve(information, X.T @ (hit - p) - ridge @ weights)
        length = np.abs(step).max()
        weights += step * min(1, 2 / length)
        if length < 1e-8:
            return weights
    raise RuntimeError("the logistic regression did not converge")


# -- data --------------------------------------------------------------------------


def draw(
    law: Law, accuracy: Column, n: int, replicates: int, rng: np.random.Generator
) -> tuple[Column, Column]:
    """Counts and hits, one column of atoms for each replicate."""
    count = rng.multinomial(n, law.mass, replicates).T
    return count.astype(float), rng.binomial(count, accuracy[:, None]).astype(float)


def gather(law: Law, count: Column, hits: Column) -> Cells:
    """Counts and hits of one data set as the cells that calibrant's estimators read."""
    some = count > 0
    count, hits, h = count[some], hits[some], law.h[some]
    powers = [hits * (1 - h) ** j + (count - hits) * (-h) ** j for j in range(1, 5)]
    unweighted = count, powers[0], powers[1], powers[1]
    return Cells(count, hits, hits, *powers, h, law.z[some], {}, *unweighted)
