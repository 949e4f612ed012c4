"""Venn-Abers: against two isotonic fits per row, against other libraries, and its promise."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import softmax
from scipy.optimize import isotonic_regression

import calibrant as cal
from calibrant.recalibration import IsotonicCalibration, VennAbers

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.recalibration.FitWarning")
PEER = json.loads((Path(__file__).parent / "peer_venn_abers.json").read_text())


def with_one_more(p, y, weight, s, label):
    """The definition: isotonic regression with one more row, read off at that row."""
    x, hit = np.append(p, s), np.append(y, label)
    values, at = np.unique(x, return_inverse=True)
    mass = np.bincount(at, np.append(weight, 1.0))
    hits = np.bincount(at, np.append(weight, 1.0) * hit)
    levels = isotonic_regression(hits / mass, weights=mass).x
    return levels[np.searchsorted(values, s)]


rows = st.lists(
    st.tuples(st.integers(0, 12), st.booleans(), st.integers(1, 4)),
    min_size=1,
    max_size=25,
)


@given(rows, st.lists(st.integers(-1, 25), min_size=1, max_size=5))
def test_both_ends_are_those_of_two_isotonic_fits(rows, asked):
    place, y, count = (np.array(x) for x in zip(*rows, strict=True))
    p, s = place / 12, np.clip(np.array(asked) / 24, 0, 1)
    found = VennAbers(scores="probs").fit(p, y.astype(int), frequency=count)
    low, high = found.predict_interval(s)
    for label, ends in ((0, low[:, 1]), (1, high[:, 1])):
        expected = [with_one_more(p, y, count, one, label) for one in s]
        np.testing.assert_allclose(ends, expected, atol=1e-12)
    np.testing.assert_allclose(low[:, 0], 1 - high[:, 1], atol=1e-15)


@pytest.mark.parametrize("file", ["adult_random_forest", "imdb_cleanlab_cv"])
@pytest.mark.parametrize("peer", ["venn-abers", "mapie"])
def test_other_libraries_answer_the_same(data, file, peer):
    arrays = data(file)
    if "prob" in arrays:
        p, y = arrays["prob"], arrays["outcome"].astype(int)
    else:
        both, y = arrays["probs"].astype(float), arrays["labels"].astype(int)
        p = both[:, 1] / both.sum(axis=1)
    found = VennAbers(scores="probs").fit(p[::20], y[::20])
    low, high = found.predict_interval(p[1:15_001:50])
    merged = found.predict_proba(p[1:15_001:50])
    for name, ours in (("low", low), ("high", high), ("merged", merged)):
        np.testing.assert_allclose(ours[:, 1], PEER[file][peer][name], atol=2e-12)


def test_the_end_that_comes_true_is_calibrated_for_any_number_of_rows():
    """E[(y - p_y) g(p_y)] = 0 for every g, however few rows there are and whatever the law."""
    rng = np.random.default_rng(0)
    terms = []
    for _ in range(1500):
        p = rng.beta(0.6, 0.6, 13)
        y = (rng.random(13) < 0.9 - 0.8 * np.abs(p - 0.4)).astype(int)
        found = VennAbers(scores="probs").fit(p[:12], y[:12])
        low, high = (end[0, 1] for end in found.predict_interval(p[12:]))
        own = high if y[12] else low
        terms.append([(y[12] - own) * g for g in (1, own, own**2, own > 0.5)])
    z = np.mean(terms, axis=0) / (np.std(terms, axis=0) / np.sqrt(len(terms)))
    assert np.abs(z).max() < 3.5
    assert np.std(terms) > 0.1


def test_isotonic_regression_lies_between_the_ends():
    rng = np.random.default_rng(1)
    p = rng.random(500)
    y = (rng.random(500) < p**2).astype(int)
    low, high = VennAbers(scores="probs").fit(p, y).predict_interval(p)
    curve = IsotonicCalibration(scores="probs").fit(p, y).predict_proba(p)
    assert (low <= curve + 1e-12).all()
    assert (curve <= high + 1e-12).all()
    assert (low < high).all()


def test_more_rows_bring_the_ends_together():
    rng = np.random.default_rng(2)
    p = rng.random(20_000)
    y = (rng.random(20_000) < p).astype(int)
    width = []
    for n in (100, 1000, 20_000):
        low, high = VennAbers(scores="probs").fit(p[:n], y[:n]).predict_interval(p)
        width.append(np.mean(high - low))
    assert width[0] > 2 * width[1] > 4 * width[2]


def test_never_certain_and_classes_without_a_row_stay_possible():
    z = np.random.default_rng(3).normal(size=(60, 5)) * 4
    y = z[:, :4].argmax(axis=1)  # class 4 never comes true
    found = VennAbers().fit(z, y)
    p = found.predict_proba(z)
    assert p.min() > 0
    assert p.max() < 1
    low, high = found.predict_interval(z)
    assert low.shape == high.shape == z.shape
    assert (low[:, 4] == 0).all()
    assert (high[:, 4] > 0).all()


def test_top_label_keeps_the_prediction_and_gives_its_ends():
    rng = np.random.default_rng(4)
    z = 3 * rng.normal(size=(900, 4))
    y = (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
    found = VennAbers(mode="top-label").fit(z[:300], y[:300])
    low, high = found.predict_interval(z[300:])
    p = found.predict_proba(z[300:])
    best = z[300:].argmax(axis=1)
    merged = p[np.arange(600), best]
    np.testing.assert_allclose(merged, high / (1 - low + high), atol=1e-12)
    sure = merged > 1 / 4  # below, others are as likely
    assert (p.argmax(axis=1) == best)[sure].all()
    assert sure.mean() > 0.9
    before = cal.ece(y[300:], probs=softmax(z[300:]))
    assert cal.ece(y[300:], probs=p) < before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"low_": [0.9, 0.9]}, "low_ that are not above high_"),
        ({"starts_": [0, 1]}, "starts_ that go from 0 to 2"),
        ({"knots_": [0.9, 0.1]}, "curves that do not fall"),
        ({"high_": [0.9]}, "high_ of shape"),
    ],
)
def test_files_that_no_fit_writes_are_refused(change, message):
    found = VennAbers(scores="probs").fit([0.2, 0.8], [0, 1])
    for name, values in change.items():
        setattr(found, name, np.array(values, getattr(found, name).dtype))
    with pytest.raises(ValueError, match=message):
        found.save("never.json")
