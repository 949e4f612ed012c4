"""Resampled noise, inverted tests and standard errors against slow, obvious twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from make import forecasts

from calibrant._rows.columns import Columns
from calibrant._sketch.ordered import order
from calibrant._stats import bins as binning
from calibrant._stats import intervals as inversion
from calibrant._stats import resampling, standard_errors
from calibrant._stats.bins import auroc
from calibrant._stats.intervals import (
    Family,
    _reflected_kernel,
    between,
    denoised,
    grouped_interval,
    halved,
    largest_size,
    squared_error,
    total_size,
)
from calibrant._stats.resampling import NEIGHBOURHOODS, SHRINKAGE
from calibrant._stats.standard_errors import Rows

NORMS = (total_size, largest_size)


def sample(n, **options):
    a, p = forecasts(n, **options)
    columns = Columns(p, None, a)
    return columns, order(columns).without_twins()


def both_bins(values, count=15):
    return binning.width_bins(values, count), binning.mass_bins(values, count)


# -- cells -------------------------------------------------------------------------


@given(
    n=st.integers(2, 400),
    seed=st.integers(0, 99),
    digits=st.sampled_from([1, 2, 15]),
    count=st.integers(1, 40),
    width=st.floats(0.001, 0.5),
)
def test_cells_add_up_to_bins(n, seed, digits, count, width):
    values = sample(n, seed=seed, digits=digits)[1]
    bins = both_bins(values, count)
    pieces = resampling.cut(values, bins, width)
    assert pieces.total == n
    for edges, found in zip(pieces.edges, bins, strict=True):
        full = found.count > 0
        weight = np.add.reduceat(pieces.weight, edges)
        residual = np.add.reduceat(pieces.residual, edges)
        gap = (found.accuracy - found.confidence)[full]
        np.testing.assert_array_equal(weight, found.count[full])
        np.testing.assert_allclose(residual, gap * found.count[full], atol=1e-9)


def test_cells_are_narrow_in_confidence_and_in_rank():
    _, values = sample(20_000, accuracy=lambda p: p)
    pieces = resampling.cut(values, both_bins(values), 0.01)
    first = values.confidence[pieces.start]
    last = values.confidence[np.append(pieces.start[1:], len(values.confidence)) - 1]
    assert (last - first).max() <= 0.01
    assert pieces.weight.max() <= 20_000 / resampling.RANK_CELLS + 1


def test_chance_is_confidence_moved_as_its_neighbourhood():
    values = sample(50_000, accuracy=lambda p: 0.5 * p)[1]
    pieces = resampling.cut(values, both_bins(values), 0.01)
    np.testing.assert_allclose(pieces.chance, 0.5 * pieces.confidence, atol=0.03)


@given(n=st.integers(2, 300), seed=st.integers(0, 99), digits=st.sampled_from([1, 15]))
def test_chance_is_a_probability_whose_mean_in_a_bin_is_its_shrunken_accuracy(
    n, seed, digits
):
    values = sample(n, seed=seed, digits=digits)[1]
    mass, extra = binning.mass_bins(values, NEIGHBOURHOODS), SHRINKAGE
    pieces = resampling.cut(values, [mass], 0.02)
    assert np.all((pieces.chance >= 0) & (pieces.chance <= 1))
    found = np.add.reduceat(pieces.weight * pieces.chance, pieces.edges[0])
    hits, claimed = mass.count * mass.accuracy, mass.count * mass.confidence
    share = mass.count / (mass.count + extra)
    expected = claimed + share * (hits - claimed)
    # A row and a half in all may be moved so that no chance is 0 or 1.
    assert np.all(np.abs(found - expected) <= 1.5 * mass.count / n + 1e-9)


# -- noise -------------------------------------------------------------------------


def naive(columns, place, resamples, rng):
    """Draw rows again, one by one, and add up their residuals at each place."""
    n = len(columns)
    r = columns.hit - columns.confidence
    rows = rng.integers(0, n, (resamples, n))
    sums = [np.bincount(place[i], r[i], place.max() + 1) for i in rows]
    return np.array(sums) / n - np.bincount(place, r) / n


def test_noise_in_bins_is_that_of_naive_resampling():
    columns, values = sample(3000, accuracy=lambda p: 0.2 + 0.4 * p)
    bins = both_bins(values)
    pieces = resampling.cut(values, bins, 0.01)
    rng = np.random.default_rng(1)
    noise = resampling.resample(pieces, 4000, rng)
    fast = np.add.reduceat(noise, pieces.edges[0], axis=1)
    place = np.searchsorted(bins[0].upper[:-1], columns.confidence)
    slow = naive(columns, place, 2000, rng)
    np.testing.assert_allclose(fast.std(axis=0), slow.std(axis=0), rtol=0.1)
    np.testing.assert_allclose(fast.mean(axis=0), 0, atol=5 * fast.std() / 4000**0.5)
    # Sums of independent rows: bins are all but uncorrelated, and so is the whole.
    whole = np.var(columns.hit - columns.confidence) / 3000
    assert fast.sum(axis=1).var() == pytest.approx(whole, rel=0.1)


def test_clusters_of_one_row_are_rows():
    columns, values = sample(2000)
    pieces = resampling.cut(values, both_bins(values), 0.02)
    first = values.confidence[pieces.start]
    cell = np.searchsorted(first, columns.confidence, side="right") - 1
    rng = np.random.default_rng(2)
    by_cell = resampling.resample(pieces, 2000, rng)
    known = columns, cell, len(pieces.weight), np.arange(2000)
    by_row = resampling.resample_clusters(*known, 2000, rng)
    assert by_row.shape == by_cell.shape
    ratio = by_row.std(axis=0) / by_cell.std(axis=0)
    assert np.median(ratio) == pytest.approx(1, abs=0.05)
    assert by_row.sum(axis=1).std() == pytest.approx(
        by_cell.sum(axis=1).std(), rel=0.08
    )


def test_rows_written_four_times_have_twice_the_noise():
    columns, _ = sample(1000)
    copies = columns.take(np.tile(np.arange(1000), 4))
    cell, clusters = np.zeros(4000, np.intp), np.tile(np.arange(1000), 4)
    rng = np.random.default_rng(3)
    dependent = resampling.resample_clusters(copies, cell, 1, clusters, 4000, rng)
    blind = resampling.resample_clusters(copies, cell, 1, np.arange(4000), 4000, rng)
    assert dependent.std() / blind.std() == pytest.approx(2, rel=0.06)


def test_table_of_poisson_counts():
    table = resampling._QUANTILES
    assert table.mean() == pytest.approx(1, abs=1e-4)
    assert table.var() == pytest.approx(1, abs=2e-3)
    assert np.mean(table == 0) == pytest.approx(np.exp(-1), abs=1e-4)


def test_soft_labels_have_less_noise():
    _, hard = sample(4000, accuracy=lambda p: p)
    soft = type(hard).of(
        hard.confidence, hard.weight, 0.5 * hard.weight, 0.26 * hard.weight
    )
    noise = [
        resampling.resample(
            resampling.cut(x, both_bins(x), 0.1), 500, np.random.default_rng(0)
        )
        .sum(axis=1)
        .std()
        for x in (soft, hard)
    ]
    assert noise[0] < noise[1]


# -- shape -------------------------------------------------------------------------


def test_shape_is_closer_to_the_truth_than_what_was_observed():
    n = 5000
    values = sample(n, accuracy=lambda p: np.minimum(p + 0.03, 1))[1]
    pieces = resampling.cut(values, both_bins(values), 1 / 64)
    observed = pieces.residual / n
    noise = resampling.resample(pieces, 400, np.random.default_rng(0))
    truth = (np.minimum(pieces.confidence + 0.03, 1) - pieces.confidence) * (
        pieces.weight / n
    )
    shape = denoised(pieces, observed, noise)
    assert np.abs(shape - truth).sum() < 0.4 * np.abs(observed - truth).sum()
    assert shape.sum() == pytest.approx(observed.sum(), abs=1e-3)


def test_shape_keeps_what_is_rough_but_sure():
    def wavy(p):
        return p + np.where((40 * p).astype(int) % 2, 0.15, -0.15) * (p > 0.2)

    _, values = sample(200_000, accuracy=wavy)
    pieces = resampling.cut(values, both_bins(values), 1 / 40)
    observed = pieces.residual / pieces.total
    noise = resampling.resample(pieces, 200, np.random.default_rng(0))
    shape = denoised(pieces, observed, noise)
    assert np.abs(shape).sum() > 0.9 * np.abs(observed).sum()


# -- inverted tests ----------------------------------------------------------------


@pytest.mark.parametrize("norm", NORMS)
@given(seed=st.integers(0, 999), size=st.integers(1, 6))
def test_growth_is_the_derivative_of_size(norm, seed, size):
    rng = np.random.default_rng(seed)
    x, way = rng.normal(size=(3, size)), rng.normal(size=size)
    step = 1e-7
    grown, here = norm(x + step * way, way)[0], norm(x - step * way, way)[0]
    np.testing.assert_allclose(
        (grown - here) / (2 * step), norm(x, way)[1], atol=1e-5, rtol=1e-5
    )


@pytest.mark.parametrize("norm", NORMS)
@given(seed=st.integers(0, 999), size=st.integers(1, 30), sd=st.floats(1e-3, 10))
def test_crossings_are_those_of_bisection(norm, seed, size, sd):
    rng = np.random.default_rng(seed)
    family = Family(rng.normal(size=size), sd * rng.normal(size=(50, size)), norm)
    bound = family.size * rng.uniform(0.5, 2)
    null = family.null
    least, end = least_by_search(family, (bound + null) / family.size)
    low, high = least, end
    for _ in range(80):
        middle = (low + high) / 2
        above = sizes_at(family, middle) >= bound
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    lowest = sizes_at(family, least) / bound
    expected = np.where(lowest >= 1, 0.0, high)
    told = np.abs(lowest - 1) > 1e-4  # whether it just touches is round-off
    np.testing.assert_allclose(
        family.crossings(bound, null)[told], expected[told], rtol=1e-4, atol=1e-6
    )


def sizes_at(family, scale):
    """The norm of each resample at a factor of the shape."""
    return family.norm(scale[:, None] * family.shape + family.noise, family.shape)[0]


def least_by_search(family, end):
    """The factor from 0 to an end at which each norm, which is convex, is least; the end."""
    low, high = np.zeros_like(end), end
    for _ in range(120):
        one, two = low + (high - low) / 3, high - (high - low) / 3
        left = sizes_at(family, one) <= sizes_at(family, two)
        low, high = np.where(left, low, one), np.where(left, two, high)
    return (low + high) / 2, end


def test_one_residual_reaches_as_far_above_as_its_noise_does():
    """A mean off by half its standard error: noise that turns its sign counts, too."""
    noise = np.random.default_rng(0).normal(size=(20_000, 1))
    low, high = inversion.invert(Family(np.array([0.5]), noise, total_size), 0.5, 0.95)
    assert low == 0
    assert high == pytest.approx(0.5 + 1.96, abs=0.05)


@given(value=st.floats(0, 30), factor=st.floats(0.01, 100))
def test_intervals_scale_with_the_residual(value, factor):
    rng = np.random.default_rng(0)
    shape, noise = rng.normal(size=4), rng.normal(size=(200, 4))
    plain = inversion.invert(Family(shape, noise, total_size), value, 0.95)
    family = Family(7 * shape, factor * noise, total_size)
    scaled = inversion.invert(family, factor * value, 0.95)
    np.testing.assert_allclose(scaled, factor * np.array(plain), rtol=1e-6, atol=1e-9)
    assert 0 <= plain[0] <= plain[1]


def test_far_from_zero_the_interval_is_normal():
    noise = np.random.default_rng(0).normal(size=(20_000, 1))
    low, high = inversion.invert(Family(np.ones(1), noise, total_size), 20.0, 0.95)
    assert (low, high) == pytest.approx((18.04, 21.96), abs=0.06)


def test_near_zero_the_interval_ends_at_zero_and_keeps_its_length():
    noise = np.random.default_rng(0).normal(size=(20_000, 1))
    family = Family(np.ones(1), noise, total_size)
    ends = [inversion.invert(family, value, 0.95) for value in (0.0, 0.2, 2.1, 2.4)]
    assert [low == 0 for low, _ in ends] == [True, True, True, False]
    assert ends[0][1] == ends[1][1] == pytest.approx(2.24, abs=0.1)


@pytest.mark.simulation
@pytest.mark.parametrize("truth", [0.0, 0.3, 1.0, 4.0])
def test_interval_of_one_absolute_value_covers(truth):
    rng = np.random.default_rng(5)
    family = Family(np.ones(1), rng.normal(size=(2000, 1)), total_size)
    seen = np.abs(truth + rng.normal(size=2000))
    grid = np.linspace(0, 9, 400)
    ends = np.array([inversion.invert(family, value, 0.95) for value in grid])
    low, high = (np.interp(seen, grid, end) for end in ends.T)
    covered = np.mean((low <= truth + 1e-9) & (truth <= high + 1e-9))
    assert 0.925 < covered < 0.98 + 0.01 * (truth < 1)


@pytest.mark.simulation
def test_band_of_a_largest_value_covers_where_two_extremes_compete():
    rng = np.random.default_rng(6)
    noise, truth = rng.normal(size=(4000, 2)) * [1.0, 0.5], np.array([-8.0, 8.0])
    family = Family(truth, noise, largest_size)
    seen = np.abs(truth + rng.normal(size=(1000, 2)) * [1.0, 0.5]).max(axis=1)
    found = np.array([inversion.band(family, value, 0.95) for value in seen])
    assert np.mean((found[:, 0] <= 8) & (found[:, 1] >= 8)) >= 0.95
    reach = np.quantile(np.abs(noise).max(axis=1), 0.95)
    assert np.diff(found, axis=1) == pytest.approx(2 * reach)


def test_a_residual_of_no_shape_is_bounded_by_noise():
    noise = np.random.default_rng(0).normal(size=(500, 2))
    low, high = inversion.invert(Family(np.zeros(2), noise, total_size), 0.0, 0.95)
    assert low == 0
    assert high == pytest.approx(np.quantile(np.abs(noise).sum(axis=1), 0.975))


def test_many_small_groups_of_a_calibrated_model_are_not_accused():
    columns, values = sample(2000, accuracy=lambda p: p)
    group = np.random.default_rng(0).integers(0, 500, 2000)
    error = np.abs(np.bincount(group, columns.hit - columns.confidence)).sum() / 2000
    rng = np.random.default_rng(1)
    low, high = grouped_interval(Rows(columns, values), group, 0.95, 1000, rng)
    assert low == 0
    assert high < 0.6 * error


@pytest.mark.parametrize("bandwidth", [0.01, 0.1, 0.7])
def test_reflected_kernel_keeps_all_mass_inside(bandwidth):
    h = np.array([0.0, 0.02, 0.5, 0.97, 1.0])
    K = _reflected_kernel(h, bandwidth)
    np.testing.assert_allclose(K.sum(axis=1), 1, atol=2e-3)
    at = (np.arange(K.shape[1]) + 0.5) / K.shape[1]
    cosines = np.arange(len(at))[:4, None] * np.pi  # its eigenfunctions
    damped = np.exp(-0.5 * (cosines * bandwidth) ** 2) * np.cos(cosines * h)
    np.testing.assert_allclose(np.cos(cosines * at) @ K.T, damped, atol=2e-3)


# -- standard errors ---------------------------------------------------------------


def slow_auroc_error(a, p):
    """DeLong's variance from all pairs."""
    hit, miss = p[a == 1], p[a == 0]
    wins = (hit[:, None] > miss) + 0.5 * (hit[:, None] == miss)
    by_hit, by_miss = wins.mean(axis=1), wins.mean(axis=0)
    return np.sqrt(by_hit.var() / len(hit) + by_miss.var() / len(miss))


@pytest.mark.parametrize("digits", [1, 15])
def test_error_of_auroc_is_delongs(digits):
    columns, values = sample(500, digits=digits)
    influence = standard_errors.of_auroc(values, auroc(values))
    found = standard_errors.independent_error(influence, values)
    slow = slow_auroc_error(columns.hit, columns.confidence)
    assert found == pytest.approx(slow, rel=1e-9)


def test_clusters_of_one_row_give_the_error_of_independent_rows():
    columns, values = sample(300)
    one = Rows(columns, values, np.arange(300))
    influence = standard_errors.of_confidence_gap(values)
    expected = (columns.confidence - columns.hit).std(ddof=1) / 300**0.5
    assert one.standard_error(influence) == pytest.approx(expected)
    alone = Rows(columns, values).standard_error(influence)
    assert alone == pytest.approx(expected * (299 / 300) ** 0.5)


def test_error_of_discrimination_is_that_of_row_values():
    columns, values = sample(400, digits=2)
    gap = 0.1 * np.sin(9 * values.confidence)
    influence = standard_errors.of_discrimination(values, gap)
    m = columns.confidence + 0.1 * np.sin(9 * columns.confidence)
    rows = (columns.hit - columns.hit.mean()) ** 2 - (columns.hit - m) ** 2
    found = standard_errors.independent_error(influence, values)
    assert found == pytest.approx(rows.std() / 20, rel=1e-6)


def test_interval_of_the_squared_error_solves_its_equation():
    columns, values = sample(2000)
    bins = binning.mass_bins(values, 13)
    found = squared_error(Rows(columns, values), bins, 0.95)
    assert found.value == pytest.approx(binning.debiased_square(bins, values))
    gap = np.interp(columns.confidence, values.confidence, found.gap)
    r = columns.hit - columns.confidence
    se2 = np.var(2 * gap * r - gap**2) / 2000
    size = float((bins.count * (bins.accuracy - bins.confidence) ** 2).sum() / 2000)
    noise = bins.variance.sum() / 2000
    for end in found.interval:
        variance = se2 / size * (0.5 * noise + end)
        assert (found.value - end) ** 2 == pytest.approx(1.96**2 * variance, rel=1e-3)


@given(n=st.integers(2, 400), seed=st.integers(0, 99), digits=st.sampled_from([1, 15]))
def test_halved_bins_are_twice_as_many_where_values_allow(n, seed, digits):
    columns, values = sample(n, seed=seed, digits=digits)
    rows = Rows(columns, values)
    bins = binning.mass_bins(values, 5)
    fine = halved(rows, bins)
    assert fine.count.sum() == n
    distinct = len(values.confidence)
    assert min(len(bins.count), distinct) <= len(fine.count) <= 2 * len(bins.count)
    if digits > 1 and n >= 20:
        assert len(fine.count) == 10


def test_a_steep_curve_is_missed_by_wide_bins_and_held_by_the_interval():
    # All within one bin: it is right on average, and wrong everywhere.
    n = 4000
    p = np.linspace(0.4, 0.6, n)
    a = (np.arange(n) % 10 < np.where(p < 0.5, 1, 9)).astype(float)
    columns = Columns(p, None, a)
    rows = Rows(columns, order(columns))
    coarse = squared_error(rows, binning.mass_bins(rows.ordered, 1), 0.95)
    fine = squared_error(rows, halved(rows, binning.mass_bins(rows.ordered, 1)), 0.95)
    truth = np.mean((np.where(p < 0.5, 0.1, 0.9) - p) ** 2)
    assert coarse.interval[1] < 0.01 < truth
    low, high = between(coarse, fine)
    assert low == coarse.interval[0]
    assert low <= truth <= high


def test_half_of_the_noise_remains_for_a_calibrated_model():
    # Var of n (mean^2 - v / n) is 2 v^2 per bin; influence at mean^2 = v / n makes it 4.
    rng = np.random.default_rng(0)
    means = rng.normal(size=200_000)
    assert (means**2 - 1).var() / (4 * means**2).mean() == pytest.approx(0.5, rel=0.03)


def test_clustered_squares_subtract_what_clusters_agree_on():
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(100), 20)
    p = rng.uniform(0.3, 0.7, 2000)
    a = (rng.random(2000) < p + 0.25 * rng.choice([-1, 1], 100)[clusters]).astype(float)
    columns = Columns(p, None, a)
    values = order(columns)
    bins = binning.mass_bins(values, 13)
    blind = squared_error(Rows(columns, values), bins, 0.95)
    aware = squared_error(Rows(columns, values, clusters), bins, 0.95)
    assert blind.interval[0] > 0 or blind.value > aware.value
    assert aware.interval[0] == 0
    assert aware.interval[1] > blind.interval[1]


def test_a_smooth_shape_stays_whole_where_the_rest_is_noise():
    """A residual that is one of the cosines has all of its size in that cosine."""
    values = sample(4000)[1]
    pieces = resampling.cut(values, both_bins(values), 1 / 64)
    share = pieces.weight / pieces.total
    rank = np.cumsum(share) - 0.5 * share
    observed = 0.1 * share * np.cos(np.pi * rank)
    rough = share * np.cos(np.pi * len(share) * rank / 2)
    noise = np.random.default_rng(0).normal(size=(200, 1)) * rough
    shape = denoised(pieces, observed, noise)
    assert np.abs(shape - observed).sum() < 0.05 * np.abs(observed).sum()
