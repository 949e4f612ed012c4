"""Mixtures, temperatures by row, and bins by predicted class."""

import numpy as np
import pytest
from oracles import softmax

from calibrant.recalibration import (
    AdaptiveTemperatureScaling,
    EnsembleTemperatureScaling,
    HistogramBinning,
    MixtureScaling,
    TemperatureScaling,
    TopLabelBinning,
    VectorScaling,
)
from calibrant.recalibration._mixture import MixtureLoss

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.recalibration.FitWarning")


def text_like(n, seed):
    """Twenty classes of a model that is sure, and in 8 % of rows sure of the wrong one.

    The optimum is known: it is the law itself, of temperatures 2 and 30.
    """
    rng = np.random.default_rng(seed)
    z = 8 * rng.normal(size=(n, 20))
    z[np.arange(n), rng.integers(0, 20, n)] += rng.gamma(4, 12, n)
    true = 0.92 * softmax(z / 2) + 0.08 * softmax(z / 30)
    y = (true.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return z, y, true


NEW = text_like(20_000, 0)
BEST = -np.mean(np.log(NEW[2][np.arange(20_000), NEW[1]]))


def log_loss(model, z, y):
    return -np.mean(np.log(model.predict_proba(z)[np.arange(len(y)), y]))


def loss_of(method, rows, seed):
    z, y, _ = text_like(rows, seed)
    return log_loss(method().fit(z, y), NEW[0], NEW[1])


def test_the_law_is_found():
    z, y, _ = text_like(4000, 1)
    found = MixtureScaling().fit(z, y)
    assert found.temperatures_[0] == pytest.approx(2, rel=0.2)
    assert found.temperatures_[1] == pytest.approx(30, rel=0.5)
    assert found.weights_[0] == pytest.approx(0.92, abs=0.03)
    assert log_loss(found, NEW[0], NEW[1]) < 1.01 * BEST


def test_few_rows_are_enough_where_one_temperature_is_not():
    losses = {
        method: np.mean([loss_of(method, 50, seed) for seed in range(2, 10)])
        for method in (
            MixtureScaling, TemperatureScaling, EnsembleTemperatureScaling, VectorScaling
        )
    }  # fmt: skip
    assert min(losses, key=losses.get) is MixtureScaling
    assert losses[MixtureScaling] < 1.15 * BEST
    assert losses[TemperatureScaling] > 1.15 * BEST


def test_the_gradient_is_that_of_the_value():
    z, y, _ = text_like(30, 3)
    d = z - z.max(axis=1, keepdims=True)
    loss = MixtureLoss(d, d[np.arange(30), y], np.random.default_rng(0).random(30), 1.0)
    at, step = np.array([2.0, 1.0, 0.5, 0.2, -0.4]), 1e-6 * np.eye(5)
    slopes = [(loss(at + e)[0] - loss(at - e)[0]) / 2e-6 for e in step]
    np.testing.assert_allclose(loss(at)[1], slopes, atol=1e-7)


@pytest.mark.parametrize("method", [MixtureScaling, AdaptiveTemperatureScaling])
def test_classes_of_a_row_keep_their_order(method):
    z, y, _ = text_like(200, 4)
    z = z / 10  # no underflow, no ties
    p = method().fit(z, y).predict_proba(z)
    np.testing.assert_array_equal(np.argsort(p, axis=1), np.argsort(z, axis=1))


def test_temperatures_that_depend_on_the_row_are_found():
    rng = np.random.default_rng(5)
    z = rng.normal(size=(6000, 5)) * rng.uniform(1, 8, (6000, 1))
    p = softmax(z / 2)
    entropy = -(p * np.log(p)).sum(axis=1) / np.log(5)
    heat = 2 * np.exp(-0.5 * (np.log(entropy) - np.log(entropy).mean()))[:, None]
    y = (z / heat + rng.gumbel(size=z.shape)).argmax(axis=1)
    fit, new = slice(0, 3000), slice(3000, None)
    found = AdaptiveTemperatureScaling().fit(z[fit], y[fit])
    plain = TemperatureScaling().fit(z[fit], y[fit])
    best = -np.mean(np.log(softmax(z[new] / heat[new])[np.arange(3000), y[new]]))
    adaptive, single = (log_loss(m, z[new], y[new]) for m in (found, plain))
    assert found.slope_ < -0.2  # the less unsure, the hotter
    # One temperature finds some labels next to impossible and mixes in the uniform
    # distribution, which would hide the scores of sure rows.
    assert (plain.lapse_ > 0, found.lapse_) == (True, 0)
    assert adaptive - best < 0.3 * (single - best)  # 70 % of what is to be had


def test_adaptive_is_never_worse_on_the_rows_of_the_fit():
    for seed in range(5):
        z, y, _ = text_like(40, seed)
        found, plain = (
            AdaptiveTemperatureScaling().fit(z, y),
            TemperatureScaling().fit(z, y),
        )
        assert log_loss(found, z, y) <= log_loss(plain, z, y) + 1e-9


# -- top-label binning ---------------------------------------------------------------------------


def test_bins_of_each_predicted_class_by_hand():
    rng = np.random.default_rng(6)
    p = rng.dirichlet(np.ones(3), 400)
    y = rng.integers(0, 3, 400)
    found = TopLabelBinning("probs", rows_per_bin=40, smoothing=0).fit(p, y)
    q, best, h = found.predict_proba(p), p.argmax(axis=1), p.max(axis=1)
    for c in range(3):
        own = np.flatnonzero(best == c)
        own = own[np.argsort(h[own])]
        bins = max(1, len(own) // 40)
        given = q[own, c]
        values = list(dict.fromkeys(given.round(12)))
        assert len(values) <= bins
        assert given.mean() == pytest.approx(np.mean(y[own] == c))
        for value in values:  # each bin gives its own share of hits
            rows = own[np.isclose(given, value)]
            assert np.mean(y[rows] == c) == pytest.approx(value)
            assert (
                len(rows) == pytest.approx(len(own) / bins, abs=1.01)
                or len(values) < bins
            )


def test_classes_that_are_off_in_different_ways_need_bins_of_their_own():
    rng = np.random.default_rng(7)
    p = np.full((8000, 2), 0.2)
    p[np.arange(8000), np.arange(8000) % 2] = 0.8
    right = rng.random(8000) < np.where(np.arange(8000) % 2, 0.95, 0.6)
    y = np.where(right, np.arange(8000) % 2, 1 - np.arange(8000) % 2)
    own = TopLabelBinning("probs").fit(p, y).predict_proba(p[:2]).max(axis=1)
    np.testing.assert_allclose(own, [0.6, 0.95], atol=0.02)
    pooled = HistogramBinning("probs", mode="top-label").fit(p, y).predict_proba(p[:2])
    np.testing.assert_allclose(pooled.max(axis=1), 0.775, atol=0.02)


def test_a_class_that_was_never_predicted_keeps_its_confidence():
    p = np.array([[0.7, 0.2, 0.1], [0.2, 0.7, 0.1]] * 30)
    found = TopLabelBinning("probs").fit(p, [0, 1] * 30)
    new = [[0.1, 0.2, 0.7]]
    np.testing.assert_allclose(found.predict_proba(new), new)
    assert "1 of 3 classes were never predicted" in found.notes_[0]
