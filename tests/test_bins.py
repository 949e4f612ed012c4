"""Binned errors: edges, ties, options, and a loop as the oracle."""

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import pairs

import calibrant as cal
from calibrant._inputs.divergences import BUILT_IN
from calibrant._inputs.predictions import read_predictions
from calibrant._rows.reduce import reduce_to_columns
from calibrant._sketch.cells import Cells
from calibrant._sketch.ordered import order
from calibrant._stats.bins import debiased_square, mass_bins, sweep_bins, width_bins


def columns_of(h, a, w=None):
    return reduce_to_columns(read_predictions(a, confidence=h, sample_weight=w))


@given(
    pairs(), st.sampled_from([1, 2, 5, 13, 15, 100]), st.sampled_from(["left", "right"])
)
@pytest.mark.parametrize("norm", [1, 2, 3])
def test_equal_width_error_equals_a_loop_over_bins(norm, rows, bins, closed):
    h, a, w = rows
    edges = np.array([i / bins for i in range(bins + 1)])
    got = cal.ece(a, confidence=h, sample_weight=w, bins=bins, closed=closed, norm=norm)
    want = oracles.ece(h, a, w, edges, norm, closed)
    assert got == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize("bins", [5, 10, 15, 20, 25, 30, 50, 100])
def test_a_sketch_gives_the_same_bins_when_they_divide_its_cells(bins):
    rng = np.random.default_rng(0)
    h = np.r_[rng.random(500), np.arange(bins + 1) / bins]
    a = (rng.random(len(h)) < h).astype(float)
    sketch = Cells(BUILT_IN).update(columns_of(h, a))
    weight, hits = sketch.moments[:2, 0].reshape(2, bins, -1).sum(axis=2)
    ev = cal.evaluate_pairs(a, h, bins=bins)
    np.testing.assert_array_equal(ev.bins.count, weight)
    np.testing.assert_allclose(ev.bins.accuracy * weight, hits)


def test_every_edge_falls_in_the_bin_it_closes():
    for bins in (3, 7, 10, 15, 49):
        edges = np.arange(bins + 1) / bins
        right = cal.evaluate_pairs(np.ones(bins + 1), edges, bins=bins).bins
        assert right.count.tolist() == [2, *[1] * (bins - 1)]
        left = cal.evaluate_pairs(
            np.ones(bins + 1), edges, bins=bins, closed="left"
        ).bins
        assert left.count.tolist() == [*[1] * (bins - 1), 2]


def test_certain_and_always_wrong_is_an_error_of_one():
    assert cal.ece([0, 0, 0], confidence=[1.0, 1.0, 1.0]) == 1
    assert cal.ece([1, 1], confidence=[0.0, 0.0]) == 1


@given(pairs(weighted=False, soft=False), st.integers(1, 12))
def test_equal_mass_bins_never_split_ties_and_hold_every_row(rows, bins):
    h, a, _ = rows
    found = mass_bins(order(columns_of(h, a)).without_twins(), bins)
    assert found.count.sum() == len(h)
    assert (found.lower[1:] > found.upper[:-1]).all()
    assert len(found.count) <= bins


def test_equal_mass_bins_are_equal_without_ties():
    h = np.random.default_rng(0).permutation(np.arange(1, 91) / 100)
    found = mass_bins(order(columns_of(h, h > 0.5)), 9)
    assert found.count.tolist() == [10] * 9


def test_constant_confidence_is_one_bin_under_every_strategy():
    a, h = np.r_[np.ones(7), np.zeros(3)], np.full(10, 0.9)
    for options in ({}, {"strategy": "mass"}, {"bins": "sweep"}, {"bins": "cube-root"}):
        assert cal.ece(a, confidence=h, **options) == pytest.approx(0.2)
    assert cal.ace(a, confidence=h) == cal.mce(a, confidence=h) == pytest.approx(0.2)


def test_debiased_error_subtracts_the_variance_of_each_bin():
    # One bin, 10 rows, accuracy 0.7: 0.2^2 - 0.7 * 0.3 / 9.
    a, h = np.r_[np.ones(7), np.zeros(3)], np.full(10, 0.9)
    want = np.sqrt(0.04 - 0.21 / 9)
    assert cal.ece(a, confidence=h, norm=2, debias=True) == pytest.approx(want)
    with pytest.raises(ValueError, match="norm=2"):
        cal.ece(a, confidence=h, debias=True)


@pytest.mark.simulation
def test_debiased_square_averages_to_zero_for_a_calibrated_model():
    rng = np.random.default_rng(1)
    values = []
    for _ in range(300):
        h = rng.random(300)
        rows = order(columns_of(h, rng.random(300) < h))
        values.append(debiased_square(width_bins(rows), rows))
    # Within a bin confidences differ, so the variance taken off is a little too large.
    assert abs(np.mean(values)) < 3 * np.std(values) / np.sqrt(300) + 1e-4


def test_sweep_stops_where_accuracies_stop_increasing():
    h = np.array([0.1, 0.2, 0.3, 0.4])
    # Bins of two rows: 0, 1. Bins of one row would be 0, 0, 1, 1: still increasing.
    assert cal.ece([0, 0, 1, 1], confidence=h, bins="sweep") == pytest.approx(0.4)
    # Two bins: .5, .5 (increasing, not strictly); three or four break the order.
    two = cal.ece([1, 0, 0, 1], confidence=h, bins=2, strategy="mass")
    assert cal.ece([1, 0, 0, 1], confidence=h, bins="sweep") == pytest.approx(two)


def test_empty_bins_are_nan_and_counted_as_empty():
    ev = cal.evaluate_pairs([1, 0], [0.95, 0.97])
    assert ev.bins.count.tolist() == [0] * 14 + [2]
    assert np.isnan(ev.bins.accuracy[:14]).all()


def test_ace_is_the_plain_mean_over_filled_bins():
    h, a = np.array([0.05, 0.95, 0.95, 0.95]), np.array([1, 1, 1, 1])
    assert cal.ace(a, confidence=h, bins=10) == pytest.approx((0.95 + 0.05) / 2)
    assert cal.ece(a, confidence=h, bins=10) == pytest.approx((0.95 + 3 * 0.05) / 4)


def test_bad_options_are_named():
    for options, words in (
        ({"bins": 2.5}, "bins must be"),
        ({"bins": True}, "bins must be"),
        ({"norm": 0.5}, "norm must be"),
        ({"norm": "l1"}, "norm must be"),
        ({"strategy": "equal"}, "strategy must be one of 'width', 'mass'"),
        ({"closed": "both"}, "closed must be one of"),
    ):
        with pytest.raises(ValueError, match=words):
            cal.ece([1, 0], confidence=[0.5, 0.6], **options)


def test_top_label_error_is_ece_within_predicted_classes():
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(400, 3)), rng.integers(0, 3, 400)
    predicted = z.argmax(axis=1)
    parts = [
        ((predicted == c).mean(), cal.ece(y[predicted == c], logits=z[predicted == c]))
        for c in range(3)
    ]
    got = cal.top_label_ece(y, logits=z)
    assert got == pytest.approx(sum(share * error for share, error in parts))
    mean = cal.top_label_ece(y, logits=z, reduce="mean")
    assert mean == pytest.approx(np.mean([error for _, error in parts]))
    assert cal.evaluate(y, logits=z).metrics["top_label_ece"] == pytest.approx(got)


def test_soft_hits_have_their_own_variance():
    # Hits of exactly one half carry no noise: nothing is subtracted from 0.1^2.
    error = cal.ece(np.full(20, 0.5), confidence=np.full(20, 0.6), norm=2, debias=True)
    assert error == pytest.approx(0.1)


def test_sweep_over_rows_that_are_all_right_does_not_try_every_count():
    h = np.linspace(0.5, 1, 200_000)
    assert cal.ece(np.ones(len(h)), confidence=h, bins="sweep") == pytest.approx(0.25)


def test_negative_zero_is_zero_with_weights_too():
    h, a = np.array([-0.0, -0.0, 0.3, 0.7, 0.7]), np.array([1, 0, 1, 1, 0])
    plain = cal.ece(a, confidence=h, strategy="mass", bins=2)
    weighted = cal.ece(
        a, confidence=h, strategy="mass", bins=2, sample_weight=np.ones(5)
    )
    assert plain == pytest.approx(weighted)


@pytest.mark.parametrize("bins", [7, 10, 15, 49, 98])
@pytest.mark.parametrize("closed", ["right", "left"])
@pytest.mark.parametrize("norm", [1, 2])
def test_bins_within_classes_have_the_same_edges(norm, closed, bins):
    edges = np.arange(bins // 2 + 1, bins) / bins
    h = np.r_[edges, np.nextafter(edges, 0), np.nextafter(edges, 1), edges + 0.5 / bins]
    y = np.repeat([0, 0, 0, 1], len(edges))
    given = {"probs": np.stack([h, 1 - h], axis=1), "target": "top-label"}
    given |= {"bins": bins, "closed": closed, "norm": norm}
    assert cal.top_label_ece(y, **given) == pytest.approx(
        cal.ece(y, **given), abs=1e-12
    )


@pytest.mark.parametrize("norm", [1, 2, 3, "max"])
def test_one_predicted_class_has_the_error_of_all_rows(norm):
    h = np.linspace(0.5, 1, 50)
    given = {"probs": np.stack([h, 1 - h], axis=1), "target": "top-label"}
    y = np.arange(50) % 3 == 0
    want = cal.ece(y, norm=norm, **given)
    assert cal.top_label_ece(y, norm=norm, **given) == pytest.approx(want)


def test_plain_mean_leaves_out_classes_never_predicted():
    p = [[0.8, 0.1, 0.1], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1]]
    assert cal.top_label_ece([0, 1, 1], probs=p, reduce="mean") == pytest.approx(0.25)


def test_values_that_no_equal_mass_tells_apart_do_not_end_the_sweep():
    """The two that fall share a bin however many there are: nine tenths are elsewhere."""
    h = np.array([0.1, 0.2, 0.9])
    columns = columns_of(h, [1, 0, 1], [1.0, 1.0, 100.0])
    found = sweep_bins(order(columns))
    assert found.count == pytest.approx([2 * 3 / 102, 100 * 3 / 102])
    assert found.accuracy.tolist() == [0.5, 1.0]
