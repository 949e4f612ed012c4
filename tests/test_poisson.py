"""Poisson counts: the law itself, by either engine with the same bits."""

import numpy as np
import pytest
from scipy import stats

from calibrant._stats.poisson import FEW, poisson, uniform

SMALL = (1e-300, 1e-3, 0.3, 1.0, 7.9, 40.5, 255.0, FEW)
LARGE = (FEW + 0.5, 900.0, 2e4, 3e6)


def p_value(counts, mean):
    """Of a chi-square test against the exact law, in up to 60 bins of counts."""
    ends = stats.poisson.ppf([1e-4, 1 - 1e-4], mean)
    edges = np.unique(np.linspace(*ends, 60).astype(int))
    expected = np.diff(np.r_[0, stats.poisson.cdf(edges, mean), 1]) * len(counts)
    observed = np.bincount(np.searchsorted(edges, counts), minlength=len(expected))
    some = expected >= 5
    distance = ((observed - expected) ** 2 / np.maximum(expected, 1e-300))[some].sum()
    return stats.chi2.sf(distance, max(some.sum() - 1, 1))


@pytest.mark.parametrize("mean", SMALL + LARGE)
def test_counts_have_the_poisson_law(mean):
    counts = poisson(np.full(20, mean), 10_000, np.random.default_rng(1)).ravel()
    assert (counts == np.floor(counts)).all()
    assert counts.min() >= 0
    assert p_value(counts, mean) > 1e-3


def test_a_wrong_law_is_seen():
    """A normal law with the mean, variance and skewness, as until 0.1.0, is not it."""
    z = np.random.default_rng(0).standard_normal(200_000)
    counts = np.maximum(np.rint(8 + np.sqrt(8) * z + (z * z - 1) / 6), 0)
    assert p_value(counts, 8.0) < 1e-6


def test_either_engine_draws_the_same_bits(built):
    means = np.r_[
        0.0, np.geomspace(1e-9, 1e7, 120), np.random.default_rng(0).random(40)
    ]
    one, two = (
        poisson(means, 3000, np.random.default_rng(7), engine)
        for engine in ("numpy", "compiled")
    )
    np.testing.assert_array_equal(one, two)
    assert one.shape == (3000, len(means))
    assert not one[:, 0].any()


def test_counts_of_different_means_and_seeds_are_independent():
    first, second = (
        poisson(np.full(30, 5.0), 4000, np.random.default_rng(s)) for s in (0, 1)
    )
    both = np.corrcoef(np.concatenate([first, second], axis=1).T)
    np.fill_diagonal(both, 0)
    assert np.abs(both).max() < 5 / np.sqrt(4000)


def test_uniform_numbers_are_those_of_splitmix64():
    """The first two of seed 0, as the author of the generator gives them."""
    first, second = 0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4
    found = uniform(0, np.arange(2, dtype=np.uint64))
    np.testing.assert_array_equal(
        found, [((x >> 12) + 0.5) / 2**52 for x in (first, second)]
    )
    many = uniform(3, np.arange(100_000, dtype=np.uint64))
    assert stats.kstest(many, "uniform").pvalue > 1e-3


def test_no_means_and_no_draws():
    rng = np.random.default_rng(0)
    assert poisson(np.empty(0), 5, rng).shape == (5, 0)
    assert poisson(np.ones(3), 0, rng).shape == (0, 3)
