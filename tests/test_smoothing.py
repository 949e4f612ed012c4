"""SmoothECE and logit-smoothed ECE, against direct sums."""

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import pairs

import calibrant as cal
from calibrant._inputs.divergences import BUILT_IN
from calibrant._inputs.predictions import read_predictions
from calibrant._rows.reduce import reduce_to_columns
from calibrant._sketch.cells import Cells
from calibrant._stats import smooth_ece
from calibrant._stats.smooth_ece import (
    _absolute_integral,
    _root,
    smooth_error_of_sketch,
)


@settings(max_examples=25)
@given(pairs(most=25), st.sampled_from([0.01, 0.05, 0.3]))
def test_smooth_ece_equals_the_reflected_integral(rows, bandwidth):
    h, a, w = rows
    got = cal.smooth_ece(a, confidence=h, sample_weight=w, bandwidth=bandwidth)
    want = oracles.smooth_ece_at(h, a, w, bandwidth)
    assert got == pytest.approx(want, abs=2e-5)


@settings(max_examples=25)
@given(pairs(most=25))
def test_smooth_ece_is_its_own_bandwidth(rows):
    h, a, w = rows
    value = cal.smooth_ece(a, confidence=h, sample_weight=w)
    again = cal.smooth_ece(a, confidence=h, sample_weight=w, bandwidth=max(value, 1e-4))
    assert again == pytest.approx(value, abs=1e-8)


def test_rows_and_sketch_agree():
    rng = np.random.default_rng(0)
    h = rng.beta(3, 0.6, 5000)
    a = (rng.random(5000) < h**1.3).astype(float)
    ev = cal.evaluate_pairs(a, h)
    assert ev.metrics["smooth_ece"] == pytest.approx(
        cal.smooth_ece(a, confidence=h), abs=1e-10
    )


def test_half_right_at_one_half_and_all_right_at_one():
    # Residual 0 at 1.0, -0.5 at 0.5 on half of the rows: the mass of |r| is 0.25.
    value = cal.smooth_ece([1, 1, 0, 0], confidence=[1.0, 1.0, 0.5, 0.5])
    assert value == pytest.approx(0.25, abs=1e-3)


def test_a_constant_gap_is_found_exactly():
    # All at 0.8 and right 60 % of the time: |smoothed residual| integrates to 0.2.
    a = np.r_[np.ones(60), np.zeros(40)]
    assert cal.smooth_ece(a, confidence=np.full(100, 0.8)) == pytest.approx(
        0.2, abs=1e-8
    )


def test_perfectly_calibrated_rows_have_no_error():
    h = np.linspace(0, 1, 101)
    assert cal.smooth_ece(h, confidence=h) == pytest.approx(0, abs=1e-4)


@settings(max_examples=25)
@given(pairs(most=25, edges=(0.5, 0.2, 0.6, 1 / 3)), st.sampled_from([1 / 15, 0.5]))
def test_logit_smoothed_ece_equals_its_integral(rows, bandwidth):
    h, a, w = rows
    got = cal.logit_smoothed_ece(a, confidence=h, sample_weight=w, bandwidth=bandwidth)
    want = oracles.logit_smoothed_ece(h, a, w, bandwidth)
    assert got == pytest.approx(want, abs=3e-4)


def test_logit_noise_does_not_move_certainty():
    assert cal.logit_smoothed_ece(
        [0, 1, 1], confidence=[1.0, 1.0, 0.0]
    ) == pytest.approx(2 / 3)


def test_smooth_errors_are_continuous_where_ece_is_not():
    # Two rows on either side of 0.5 pair up in one bin or do not.
    for eps in (1e-9, 1e-6):
        near = cal.smooth_ece([0, 1], confidence=[0.5 - eps, 0.5 + eps])
        at = cal.smooth_ece([0, 1], confidence=[0.5, 0.5])
        assert near == pytest.approx(at, abs=1e-3)  # about the root of eps
        logit = cal.logit_smoothed_ece([0, 1], confidence=[0.5 - eps, 0.5 + eps])
        assert logit == pytest.approx(
            cal.logit_smoothed_ece([0, 1], confidence=[0.5, 0.5]), abs=1e-3
        )
    jump = cal.ece([0, 1], confidence=[0.5 - 1e-6, 0.5 + 1e-6], bins=2)
    assert jump == pytest.approx(0.5, abs=1e-5)


@pytest.mark.parametrize("metric", [cal.smooth_ece, cal.logit_smoothed_ece])
def test_bad_bandwidth_is_named(metric):
    with pytest.raises(ValueError, match="bandwidth must be a number from"):
        metric([1], confidence=[0.5], bandwidth=0.0)


@pytest.mark.parametrize("bandwidth", [0.02, 0.1])
def test_relplot_at_a_given_bandwidth_is_ours_where_nobody_is_certain(bandwidth):
    given = {"confidence": [0.4, 0.6, 0.45, 0.7], "bandwidth": bandwidth}
    want = cal.smooth_ece([1, 0, 1, 0], **given)
    got = cal.smooth_ece([1, 0, 1, 0], compat="relplot", **given)
    assert got == pytest.approx(want, rel=0.01)


@pytest.mark.parametrize("bandwidth", [5e-4, 0.005, 0.05])
def test_rows_and_sketch_agree_at_every_bandwidth(bandwidth):
    rng = np.random.default_rng(0)
    h = 0.02 + 0.97 * rng.beta(3, 0.6, 200)
    a = (rng.random(200) < h**1.5).astype(float)
    rows = reduce_to_columns(read_predictions(a, confidence=h))
    sketch = Cells(BUILT_IN).update(rows)
    got = cal.smooth_ece(a, confidence=h, bandwidth=bandwidth)
    assert got == pytest.approx(smooth_error_of_sketch(sketch, bandwidth), abs=1e-8)


def test_integral_of_a_line_through_zero_is_exact():
    # Midpoints at 1/4 and 3/4: two triangles between them, two squares outside.
    assert _absolute_integral(np.array([1.0, -1.0])) == 0.75


def test_a_root_outside_its_two_places_is_looked_for_between_them():
    calls = []

    def cliff(x):
        calls.append(x)
        return 1.0 if x < 1.3 else -1e300

    found = _root(cliff, (1.0, 1.0), (2.0, -1e300))
    assert found == pytest.approx(1.3, abs=1e-9)
    assert calls[0] == 1.5  # the line through both is 0 at one of them, by round-off


def test_where_relplot_finds_more_than_1_its_bandwidth_is_1(monkeypatch):
    monkeypatch.setattr(smooth_ece, "_relplot_at", lambda columns, width: 1.5 * width)
    assert smooth_ece.relplot_error(None) == (1.5, 1.0)
    monkeypatch.setattr(smooth_ece, "_relplot_at", lambda columns, width: 0.25)
    assert smooth_ece.relplot_error(None) == (0.25, 0.25)
