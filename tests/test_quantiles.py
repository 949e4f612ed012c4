"""Quantiles, cosine transforms and isotonic levels of our own against SciPy's."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.fft import dct
from scipy.optimize import isotonic_regression
from scipy.special import chdtr, chndtrinc, gammaincinv, ndtri, stdtrit

import calibrant as cal
from calibrant._sketch import ordered
from calibrant._stats import quantiles
from calibrant._stats.smooth_ece import coefficients, series

CHANCE = st.floats(5e-4, 1 - 5e-4)


@given(st.floats(1e-12, 1 - 1e-12))
def test_normal_quantile(p):
    assert quantiles.normal_quantile(p) == pytest.approx(ndtri(p), rel=1e-12, abs=1e-15)


@given(st.floats(0, 8), st.floats(0.501, 1 - 1e-5))
def test_student_quantile(digits, p):
    freedom = 10**digits
    wanted = stdtrit(freedom, p)
    assert quantiles.student_quantile(freedom, p) == pytest.approx(wanted, rel=1e-10)


@given(st.floats(-1.5, 7), CHANCE)
def test_gamma_quantile(digits, p):
    shape = 10**digits
    wanted = gammaincinv(shape, p)
    assert quantiles.gamma_quantile(shape, p) == pytest.approx(wanted, rel=1e-10)


@given(st.floats(0, 3.3), st.floats(-3, 12), CHANCE)
def test_noncentrality(digits, off, p):
    freedom = 10**digits
    value = max(freedom + off * np.sqrt(2 * freedom), 0.1)
    found = quantiles.noncentrality_at(value, freedom, p)
    if chdtr(freedom, value) <= p:
        assert found == pytest.approx(0, abs=1e-9)
    else:
        assert found == pytest.approx(chndtrinc(value, freedom, p), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("n", [2, 3, 4, 7, 64, 9600])
def test_cosines(n):
    rng = np.random.default_rng(n)
    x = rng.normal(size=n)
    np.testing.assert_allclose(coefficients(x), dct(x) / 2, atol=1e-10)
    for few in {1, n // 2, n // 2 + 1, n}:
        filled = np.where(np.arange(n) < few, x, 0.0)
        np.testing.assert_allclose(series(x[:few], n), dct(filled, type=3), atol=1e-10)


def levels(sums, weight):
    first, sums, weight = ordered.pooled(sums, weight)
    size = np.diff(first, append=first[-1] + 1)
    return first, sums / weight, size


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4)), min_size=1))
def test_levels(rows):
    hits, weight = np.array(rows, float).T
    wanted = isotonic_regression(hits / weight, weights=weight)
    first, level, _ = levels(hits, weight)
    rows = np.diff(first, append=len(hits))
    np.testing.assert_allclose(np.repeat(level, rows), wanted.x, atol=1e-13)
    assert np.all(np.diff(level) > 0)


def test_levels_of_several_parts(monkeypatch):
    rng = np.random.default_rng(0)
    hits, weight = rng.random(5000) + np.linspace(0, 1, 5000), rng.random(5000) + 0.1
    whole = ordered.pooled(hits, weight)
    monkeypatch.setattr(ordered, "PART", 64)
    for ours, theirs in zip(ordered.pooled(hits, weight), whole, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_levels_that_take_many_rounds():
    """Each round pools only the last of these with the one before."""
    share = np.append(np.linspace(0.5, 0.9, 400), 0.0)
    weight = np.append(np.ones(400), 1e6)
    wanted = isotonic_regression(share, weights=weight)
    first, level, _ = levels(share * weight, weight)
    np.testing.assert_array_equal(first, wanted.blocks[:-1])
    np.testing.assert_allclose(level, wanted.x[first], rtol=1e-12)


def test_no_scipy_where_it_is_not_needed():
    """Loading it takes longer than an evaluation."""
    code = (
        "import sys, numpy as np, calibrant as cal\n"
        "z = np.random.default_rng(0).normal(size=(500, 4))\n"
        "cal.evaluate(z.argmax(axis=1), logits=z)\n"
        "cal.evaluate(z.argmax(axis=1), logits=z, target='class-wise')\n"
        "cal.smooth_ece(z.argmax(axis=1), logits=z)\n"
        "sys.exit(int(any(x in sys.modules for x in ('scipy', 'numba'))))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_quantiles_of_no_law_are_those_of_scipy():
    assert quantiles.gamma_quantile(3.0, 0.0) == gammaincinv(3.0, 0.0) == 0
    assert quantiles.gamma_quantile(3.0, 1.0) == np.inf
    assert np.isnan(quantiles.gamma_quantile(-1.0, 0.5))


@pytest.mark.parametrize("shape", [2e-3, 1e-3, 9.5e-4, 9e-4, 1e-4, 1e-9])
@pytest.mark.parametrize("p", [0.05, 0.5, 0.975])
def test_a_gamma_quantile_below_every_double_is_0(shape, p):
    wanted = float(gammaincinv(shape, p))
    assert quantiles.gamma_quantile(shape, p) == pytest.approx(wanted, 1e-9, 1e-290)


def test_an_event_of_next_to_no_weight_has_an_interval():
    y, w = np.zeros(20, int), np.ones(20)
    y[0], w[0] = 1, 1e-5
    p = np.linspace(0.1, 0.3, 20)
    low, high = cal.evaluate(y, probs=p, sample_weight=w).metrics["accuracy"].interval
    assert 0.8 < low < high == 1
