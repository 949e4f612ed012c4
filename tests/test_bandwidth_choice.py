"""Leave-one-out bandwidth: slow twins, closed forms, invariances, real data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import kernel_matrix
from strategies import pairs

from calibrant._rows.columns import Columns
from calibrant._verbs.choose_bandwidth import (
    CANDIDATES,
    BandwidthChoice,
    LeaveOneOut,
    choose_bandwidth,
)
from calibrant._verbs.evaluate import evaluate_pairs

PRIOR = np.exp(-4.5)
WIDTHS = [0.008, 0.02, 0.05, 0.3]


def slow_losses(h, a, bandwidth):
    """Squared error of each row's prediction by all the others, one row at a time."""
    losses = []
    for i in range(len(h)):
        others = np.arange(len(h)) != i
        K = kernel_matrix(h[i : i + 1], h[others], bandwidth)[0]
        top = K @ a[others] + PRIOR * a[others].mean()
        losses.append((a[i] - top / (K.sum() + PRIOR)) ** 2)
    return np.array(losses)


def rows(n, seed):
    rng = np.random.default_rng(seed)
    h = rng.beta(3, 1, n)
    return h, (rng.random(n) < h**2).astype(float)


# -- slow twins -------------------------------------------------------------------


@settings(max_examples=25)
@given(pairs(least=2, most=25, weighted=False), st.sampled_from(WIDTHS))
def test_criterion_is_the_mean_loss_of_rows_left_out(given_rows, bandwidth):
    h, a, _ = given_rows
    found = choose_bandwidth(a, confidence=h, candidates=[bandwidth, 0.4])
    slow = slow_losses(h, a, bandwidth)
    # Where a row is all but alone its prediction turns sharply, and the grid shows.
    assert found.criterion[0] == pytest.approx(slow.mean(), abs=1e-4)


def test_standard_error_is_that_of_the_difference_of_losses():
    h, a = rows(300, seed=0)
    found = choose_bandwidth(a, confidence=h, candidates=WIDTHS)
    losses = np.stack([slow_losses(h, a, b) for b in WIDTHS])
    best = losses.mean(axis=1).argmin()
    spread = (losses - losses[best]).std(axis=1) / np.sqrt(300)
    np.testing.assert_allclose(found.criterion, losses.mean(axis=1), atol=1e-9)
    np.testing.assert_allclose(found.standard_error, spread, atol=1e-7)
    assert found.bandwidth == WIDTHS[best]


def test_soft_hits_have_their_own_powers():
    rng = np.random.default_rng(1)
    h, a = rng.random((2, 80))
    found = choose_bandwidth(a, confidence=h, candidates=WIDTHS)
    losses = np.stack([slow_losses(h, a, b) for b in WIDTHS])
    spread = (losses - losses[found.criterion.argmin()]).std(axis=1) / np.sqrt(80)
    np.testing.assert_allclose(found.criterion, losses.mean(axis=1), atol=1e-5)
    np.testing.assert_allclose(found.standard_error, spread, atol=1e-5)


# -- closed forms -----------------------------------------------------------------


def test_of_two_rows_each_predicts_the_other():
    # Hits 0 and 1 at one confidence: each is predicted as the other, an error of 1.
    found = choose_bandwidth([0, 1], confidence=[0.7, 0.7])
    np.testing.assert_allclose(found.criterion, 1.0, atol=1e-9)
    assert (found.flat_from, found.flat_to) == (CANDIDATES[0], CANDIDATES[-1])


def test_one_confidence_leaves_one_out_of_its_mean():
    # k hits in n rows: ((n - 1) a - (k - a)) / (n - 1) = n (a - k/n) / (n - 1).
    a = np.repeat([1.0, 0.0], [3, 7])
    found = choose_bandwidth(a, confidence=np.full(10, 0.4))
    np.testing.assert_allclose(found.criterion, 0.21 * (10 / 9) ** 2, atol=1e-9)


def test_a_step_wants_a_narrow_kernel_and_a_constant_a_wide_one():
    rng = np.random.default_rng(2)
    h = rng.random(3000)
    step = choose_bandwidth((h > 0.5) * 1.0, confidence=h)
    constant = choose_bandwidth(rng.random(3000) < 0.5, confidence=h)
    assert step.bandwidth < 0.01
    assert constant.flat_to > 0.1
    assert step.flat_to < constant.flat_to


# -- invariances ------------------------------------------------------------------


def test_weighted_rows_are_left_out_with_their_own_weight():
    h, a = rows(80, seed=6)
    w = np.random.default_rng(7).lognormal(0, 1, 80)
    w /= w.mean()
    found = choose_bandwidth(a, confidence=h, sample_weight=5 * w, candidates=WIDTHS)
    losses = np.empty((len(WIDTHS), 80))
    for number, bandwidth in enumerate(WIDTHS):
        for i in range(80):
            others = np.arange(80) != i
            K = w[others] * kernel_matrix(h[i : i + 1], h[others], bandwidth)[0]
            top = K @ a[others] + PRIOR * np.average(a[others], weights=w[others])
            losses[number, i] = (a[i] - top / (K.sum() + PRIOR)) ** 2
    means = losses @ w / 80
    apart = losses - losses[means.argmin()]
    spread = np.sqrt((apart - apart @ w[:, None] / 80) ** 2 @ w**2) / 80
    np.testing.assert_allclose(found.criterion, means, atol=1e-5)
    np.testing.assert_allclose(found.standard_error, spread, atol=1e-5)


def test_frequency_two_is_two_rows():
    h, a = rows(100, seed=3)
    w = np.random.default_rng(4).integers(1, 4, 100)
    once = choose_bandwidth(a, confidence=h, frequency=w)
    often = choose_bandwidth(np.repeat(a, w), confidence=np.repeat(h, w))
    np.testing.assert_allclose(once.criterion, often.criterion, rtol=1e-10)
    np.testing.assert_allclose(once.standard_error, often.standard_error, atol=1e-9)
    assert once.n == often.n


@given(pairs(least=9, most=30))
def test_order_of_rows_and_small_weights_do_no_harm(given_rows):
    h, a, w = given_rows
    first, again = (
        choose_bandwidth(a[i], confidence=h[i], sample_weight=w[i], candidates=WIDTHS)
        for i in (slice(None), slice(None, None, -1))
    )
    np.testing.assert_allclose(first.criterion, again.criterion, rtol=1e-9, atol=1e-12)
    assert np.isfinite(first.criterion).all()
    assert first.flat_from <= first.bandwidth <= first.flat_to


def test_sums_of_shards_add_up():
    h, a = rows(200, seed=5)
    whole = LeaveOneOut.of(Columns(h, None, a), 9600).weights
    parts = [
        LeaveOneOut.of(Columns(h[i], None, a[i]), 9600).weights
        for i in (slice(0, 90), slice(90, None))
    ]
    np.testing.assert_allclose(whole, sum(parts), atol=1e-12)


# -- the record -------------------------------------------------------------------


@pytest.mark.parametrize(
    "candidates", [[0.05], [0.05, 11], [0.0, 0.1], [np.nan, 0.1], [0.1, 0.1]]
)
def test_candidates_are_checked(candidates):
    with pytest.raises(
        ValueError, match=r"candidates must be two or more numbers from"
    ):
        choose_bandwidth([0, 1], confidence=[0.5, 0.6], candidates=candidates)


def test_one_row_is_refused():
    with pytest.raises(ValueError, match="needs two rows or more"):
        choose_bandwidth([1], confidence=[0.5])


def test_record_survives_json_and_prints():
    h, a = rows(400, seed=6)
    found = choose_bandwidth(a, confidence=h)
    again = BandwidthChoice.from_json(found.to_json())
    np.testing.assert_array_equal(again.criterion, found.criterion)
    assert str(again) == str(found)
    assert f"bandwidth {found.bandwidth:.3g} by leave-one-out (400 examples)" in str(
        found
    )
    assert repr(again) == repr(found)
    assert list(found.frame()["criterion"]) == found.criterion.tolist()
    ends = choose_bandwidth(h > 0.5, confidence=h, candidates=[0.02, 0.3])
    assert ends.at_an_end
    assert str(ends).endswith("the best is at an end of the grid.")


# -- real data --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("cifar10_akamaster_resnet32", 0.003, 0.01),
        ("cifar10_peterson_wrn_28_10_humantuned_UNDERCONFIDENT", 0.03, 0.1),
    ],
)
def test_saturated_networks_want_far_less_than_the_papers_bandwidth(
    data, name, low, high
):
    file = data(name)
    kind = "logits" if "logits" in file else "probs"
    found = choose_bandwidth(file["labels"], **{kind: file[kind]})
    assert low < found.flat_from <= found.bandwidth <= found.flat_to < high
    paper = np.flatnonzero(found.candidates == 0.05)[0]
    excess = found.criterion[paper] - found.criterion.min()
    assert (excess > 4 * found.standard_error[paper]) == (high < 0.05)


def test_chosen_bandwidth_is_one_that_evaluate_takes():
    h, a = rows(300, seed=7)
    found = choose_bandwidth(a, confidence=h)
    ev = evaluate_pairs(a, h, bandwidth=found.bandwidth, interval=None)
    assert ev.decomposition.bandwidth == found.bandwidth
