"""What needs the rows in order: KS error, AUROC, isotonic decomposition."""

import numpy as np
import oracles
import pytest
from hypothesis import given
from strategies import pairs

import calibrant as cal
from calibrant._inputs.predictions import read_predictions
from calibrant._rows.reduce import reduce_to_columns
from calibrant._sketch.ordered import order
from calibrant._stats.bins import Isotonic


def ordered_of(h, a, w=None):
    read = read_predictions(a, confidence=h, sample_weight=w)
    return order(reduce_to_columns(read))


@given(pairs())
def test_ks_error_equals_its_definition(rows):
    h, a, w = rows
    got = cal.ks_error(a, confidence=h, sample_weight=w)
    assert got == pytest.approx(oracles.ks(h, a, w), abs=1e-12)


@given(pairs())
def test_auroc_equals_the_share_of_pairs_in_order(rows):
    h, a, w = rows
    got = cal.auroc(a, confidence=h, sample_weight=w)
    assert got == pytest.approx(oracles.auroc(h, a, w), abs=1e-12, nan_ok=True)


@given(pairs(most=20))
def test_isotonic_equals_the_max_min_formula(rows):
    h, a, w = rows
    ordered = ordered_of(h, a, w)
    fit = Isotonic.of(ordered).level
    want = oracles.pav(h, a, w)
    np.testing.assert_allclose(
        fit[np.searchsorted(ordered.confidence, h)], want, atol=1e-9
    )


@given(pairs(most=30))
@pytest.mark.parametrize("divergence", ["brier", "log"])
def test_corp_terms_add_up_and_are_not_negative(divergence, rows):
    h, a, w = rows
    parts = cal.corp(a, confidence=h, sample_weight=w, divergence=divergence)
    if np.isfinite(parts.score):
        added = parts.miscalibration - parts.discrimination + parts.uncertainty
        assert added == pytest.approx(parts.score, abs=1e-12)
        assert parts.miscalibration > -1e-12
    assert parts.discrimination > -1e-12
    fit = oracles.pav(h, a, w)
    recalibrated = (w * oracles.unit(divergence, a, np.clip(fit, 0, 1))).sum() / w.sum()
    assert parts.uncertainty - parts.discrimination == pytest.approx(
        recalibrated, abs=1e-9
    )


@given(pairs(weighted=False, soft=False))
def test_packed_sort_equals_the_plain_one(rows):
    h, a, _ = rows
    packed, general = ordered_of(h, a), ordered_of(h, a, np.ones(len(h)))
    np.testing.assert_array_equal(packed.confidence, general.confidence)
    np.testing.assert_array_equal(packed.weight, general.weight)
    np.testing.assert_allclose(packed.hits, general.hits, atol=1e-12)


def test_negative_zero_is_zero():
    ordered = ordered_of(np.array([-0.0, 0.0, 0.5]), np.array([0, 1, 1]))
    assert ordered.weight.tolist() == [2, 1]


def test_auroc_is_undefined_when_all_hit():
    assert np.isnan(cal.auroc([1, 1], confidence=[0.2, 0.9]))
