"""The ladder of close pairs: slow twins, its law, exact coverage, weights and clusters."""

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from make import balanced
from scipy.special import chndtr
from scipy.stats import binom
from strategies import pairs as rows_of_pairs

import calibrant as cal
from calibrant._inputs.divergences import BUILT_IN, LOG
from calibrant._inputs.predictions import read_predictions
from calibrant._rows.reduce import reduce_to_columns
from calibrant._sketch.cells import Cells
from calibrant._stats import ladder as rungs
from calibrant._stats.close_pairs import (
    brier_error,
    lower_end,
    noncentrality,
    upper_end,
)
from calibrant._stats.decomposition import cell_of_rows, find_cells
from calibrant._stats.influence import pair_values
from calibrant._stats.ladder import Ladder, Residuals
from calibrant._stats.neighbours import cells_of_rows
from calibrant._stats.platt_error import local_error


def cells_of(h, a, weight=None, cluster=None, frequency=None):
    given = {"sample_weight": weight, "cluster": cluster, "frequency": frequency}
    predictions = read_predictions(a, confidence=h, **given)
    columns = reduce_to_columns(predictions)
    sums = Cells(BUILT_IN).update(columns)
    return find_cells(columns, sums, predictions.cluster_groups)[0]


def world(n, seed=0, slope=1.5, rounding=None):
    """Confidences of a network, too sure by a temperature."""
    rng = np.random.default_rng(seed)
    h = 1 / (1 + np.exp(-rng.normal(2, 1.5, n)))
    h = h if rounding is None else np.clip(np.round(h, rounding), 0.01, 0.99)
    z = np.log(h) - np.log1p(-h)
    return h, (rng.random(n) < 1 / (1 + np.exp(-z / slope))).astype(float)


# -- one level, by its definition --------------------------------------------------


@given(rows_of_pairs(least=2, most=40))
def test_a_level_is_a_sum_over_pairs_of_different_rows(rows):
    h, a, w = rows
    cells = cells_of(h, a, w)
    w = w * (len(w) / w.sum())
    for mixed, level in zip((False, True), rungs.levels_of(cells), strict=False):
        found = rungs.contributions(cells, level).sum() / cells.n
        want = oracles.squared_distance(h, a - h, w, level.width, mixed=mixed)
        assert found == pytest.approx(want, abs=1e-10)


def test_a_level_of_many_rows_and_all_its_cells_agree():
    h, a = world(300)
    w = np.random.default_rng(1).lognormal(0, 1, 300)
    cells = cells_of(h, a, w)
    w = w * (300 / w.sum())
    for mixed, level in zip((False, True, True), rungs.levels_of(cells), strict=True):
        want = oracles.squared_distance(h, a - h, w, level.width, mixed=mixed)
        found = rungs.pairs(cells, level, Residuals.of(cells), np.ones((1, 300)))
        assert found[0, 0] == pytest.approx(want, abs=1e-10)


def test_groups_of_clusters_give_products_between_groups_only():
    h, a = world(120)
    rng = np.random.default_rng(2)
    cluster, w = rng.integers(0, 15, 120), rng.lognormal(0, 0.5, 120)
    cells = cells_of(h, a, w, cluster)
    w = w * (120 / w.sum())
    share = np.bincount(cluster, w) / 120
    level = rungs.levels_of(cells)[1]
    between = rungs.between_groups(cells, cells.groups, [level], np.ones((1, 1, 120)))
    want = oracles.squared_distance(h, a - h, w, level.width, cluster)
    assert between.sum() == pytest.approx(want / (1 - share @ share), abs=1e-10)


def test_one_confidence_is_a_u_statistic():
    # Every pair of 100 rows at 0.8 counts: the sum of r_i r_j over i and j not equal is
    # S^2 - Q, once in the numerator and, without the row itself, in the square.
    a = np.r_[np.ones(60), np.zeros(40)]
    cells = cells_of(np.full(100, 0.8), a)
    n, S, Q = 100, -20.0, 60 * 0.04 + 40 * 0.64
    pairs = S * S - Q
    want = (2 * pairs / n - pairs * (n - 2) / n**2) / n
    np.testing.assert_allclose(Ladder.of(cells).rungs, want, atol=1e-14)


def test_a_row_far_from_all_others_says_nothing():
    found = cal.evaluate_pairs([1], [0.7]).decomposition.calibration
    assert found == pytest.approx(0, abs=1e-15)


def test_round_off_decides_nothing_where_nothing_can_happen():
    # All that is said to be impossible, and one row that happens: no pair says a thing.
    h, a, w = np.zeros(25), np.arange(25) == 3, 1 + np.arange(25) / 7
    for weight in (None, w, w[::-1]):
        ladder = Ladder.of(cells_of(h, a * 1.0, weight))
        assert ladder.value == pytest.approx(0, abs=1e-15)
        for test in (ladder.test, ladder.joint_test):
            assert (test.rejects(0.95), test.p_value) == (False, 1.0)
    two = Ladder.of(cells_of(h, (np.arange(25) < 2) * 1.0))
    assert two.test.rejects(0.95)
    assert two.joint_test.rejects(0.95)


def test_influence_leaves_each_row_out_of_its_own_neighbours():
    h, a = world(200)
    columns = reduce_to_columns(read_predictions(a, confidence=h))
    ladder, r = Ladder.of(cells_of_rows(columns)), a - h
    want, order = np.zeros(200), np.argsort(np.argsort(h))
    for level, share in zip(ladder.levels, ladder.shares, strict=True):
        g = (level.means(ladder.cells.r1) - ladder.cells.r1 / level.near)[order]
        want += share[order] * (2 * g * r - g * g)
    np.testing.assert_allclose(pair_values(columns), want, atol=1e-12)


@pytest.mark.parametrize("rounding", [None, 2])
def test_each_row_is_found_in_its_cell(rounding):
    h, a = world(5000, rounding=rounding)
    columns = reduce_to_columns(read_predictions(a, confidence=h))
    sums = Cells(BUILT_IN).update(columns)
    cells, place = find_cells(columns, sums)[0], cell_of_rows(columns, sums)
    np.testing.assert_array_equal(np.bincount(place), cells.weight)
    np.testing.assert_allclose(np.bincount(place, h) / cells.weight, cells.h)


# -- the law -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "p"), [(1, 0.3), (5, 0.02), (40, 0.25), (9, 0.5), (400, 0.1), (1e6, 0.5)]
)
def test_draws_are_binomial(n, p):
    many = np.full(50, float(n)), np.full(50, p), 2000
    found = rungs.binomial_less_mean(*many, rungs.Chance())
    mean, variance, skewness = binom.stats(n, p, moments="mvs")
    sd, noise = np.sqrt(variance), 1e5**-0.5
    assert found.mean() / sd == pytest.approx(0, abs=5 * noise)
    assert found.std() / sd == pytest.approx(1, abs=20 * noise)
    assert ((found / sd) ** 3).mean() == pytest.approx(skewness, abs=0.15)
    if n * p < rungs.MANY_EVENTS:
        share = np.mean(np.rint(found + mean) == 1)
        assert share == pytest.approx(binom.pmf(1, n, p), abs=5 * noise)


@pytest.mark.parametrize("first", [(3, 200), (2000, 200), (1, 3)])
def test_numbers_that_laws_share_are_those_of_one_generator(first):
    """Whether they were drawn before, are too many for that, or are odd in number."""
    rng, chance = np.random.default_rng(rungs.SEED), rungs.Chance()
    for name, shape in (
        ("uniform", first),
        ("normal", (0, 200)),
        ("uniform", (5, 200)),
        ("normal", (7, 200)),
        ("uniform", (2, 200)),
    ):
        draw = rng.random if name == "uniform" else rng.standard_normal
        np.testing.assert_array_equal(
            getattr(chance, name)(*shape), draw(shape, dtype=np.float32)
        )


def test_the_law_is_that_of_calibrated_data():
    h, _ = world(400)
    law = Ladder.of(cells_of(h, h > 0.5)).law[:-1]
    rng = np.random.default_rng(0)
    drawn = [Ladder.of(cells_of(h, rng.random(400) < h)).rungs for _ in range(150)]
    for seen, known in zip(np.transpose(drawn), law, strict=True):
        assert abs(seen.mean()) < 4 * seen.std() / np.sqrt(150)
        assert known.std() == pytest.approx(seen.std(), rel=0.25)


def test_the_law_is_the_same_every_time_and_for_the_other_class():
    h, a = world(700)
    one, again, other = (
        Ladder.of(cells_of(*rows)) for rows in ((h, a), (h, a), (1 - h, 1 - a))
    )
    assert one.value == again.value
    np.testing.assert_array_equal(one.chance, again.chance)
    assert other.value == pytest.approx(one.value, rel=1e-9)
    assert other.test.p_value == one.test.p_value


def test_many_outcomes_that_are_the_same_are_no_evidence():
    # Without a miss the statistic is the largest it can be, and more likely than not.
    h = 1 - np.random.default_rng(1).random(2000) / 4000
    ladder = Ladder.of(cells_of(h, np.ones(2000)))
    assert ladder.test.p_value > 0.3
    assert ladder.joint_test.p_value > 0.3


def test_the_p_value_agrees_with_the_lower_end():
    for seed in range(25):
        found = brier_error(cells_of(*world(200, seed, slope=1.15)))
        assert (found.interval[0] > 0) == (found.p_value <= 11 / 401)


# -- the interval ------------------------------------------------------------------


@given(
    value=st.floats(0.1, 1900),
    freedom=st.floats(1, 1900),
    p=st.sampled_from([0.025, 0.975, 0.25]),
)
def test_noncentrality_has_the_probability_asked_for(value, freedom, p):
    found = noncentrality(value, freedom, p)
    reached = chndtr(value, freedom, found)
    assert reached == pytest.approx(p, abs=1e-6) if found else reached <= p + 1e-9


@pytest.mark.parametrize("end", [upper_end, lower_end])
def test_ends_join_where_a_chi_square_becomes_normal(end):
    unit = 1e-4
    for freedom in (1999.0, 2001.0):
        chance = 2 * freedom * unit**2
        found = end(0.05, unit, chance, 0.95)
        sd = np.sqrt(chance + 4 * unit * found)
        assert abs(found - 0.05) == pytest.approx(1.96 * sd, rel=0.02)


ONE_CONFIDENCE = [
    *[(0.9, 0.98, 100), (0.9, 0.99, 100), (0.9, 0.99, 199), (0.9, 0.99, 300)],
    *[(0.95, 0.999, 1000), (0.95, 0.999, 3000), (0.8, 0.995, 200), (0.9, 0.97, 100)],
    *[(0.8, 0.8, 300), (0.8, 0.79, 300), (0.8, 0.77, 300), (0.8, 0.75, 300)],
    *[(0.8, 0.77, 1000), (0.5, 0.47, 300), (0.5, 0.5, 300), (0.8, 0.8, 1000)],
    *[(0.99, 0.95, 50), (0.99, 0.99, 50), (0.7, 0.7, 50), (0.7, 0.6, 50)],
]


@pytest.mark.parametrize(("h", "m", "n"), ONE_CONFIDENCE)
def test_one_confidence_is_covered_in_all_of_its_outcomes(h, m, n):
    counts = np.arange(n + 1)
    chance = binom.pmf(counts, n, m)
    truths = {"brier": (m - h) ** 2, "log": float(oracles.unit("log", m, h))}
    covered = dict.fromkeys(truths, 0.0)
    for hits in counts[chance > 1e-5]:
        cells = cells_of(np.full(2, h), np.array([1, 0]), frequency=[hits, n - hits])
        ladder = Ladder.of(cells)
        found = brier_error(cells, 0.95, ladder), local_error(cells, LOG, ladder=ladder)
        for (name, truth), error in zip(truths.items(), found, strict=True):
            low, high = error.interval
            covered[name] += chance[hits] * (low <= truth + 1e-12 and truth <= high)
    assert min(covered.values()) >= 0.93


def test_a_hundred_of_a_hundred_right_at_nine_tenths():
    ev = cal.evaluate_pairs(np.ones(100), np.full(100, 0.9))
    brier, log = (ev.decompositions[x].calibration for x in ("brier", "log"))
    assert brier == pytest.approx(0.01, abs=1e-12)  # the loss, and not above it
    assert brier.interval == pytest.approx((0.00406, 0.01), abs=2e-4)
    assert log.interval == pytest.approx((0, -np.log(0.9)), abs=1e-5)


@given(rows_of_pairs(least=20, most=60))
def test_no_error_is_above_the_loss(rows):
    h, a, w = rows
    ev = cal.evaluate_pairs(a, h, sample_weight=w, interval=None)
    for name, parts in ev.decompositions.items():
        if not np.isnan(parts.calibration):
            loss = np.average(oracles.unit(name, a, h), weights=w)
            assert parts.calibration <= loss + 1e-12


@pytest.mark.parametrize("n", [30, 400, 10_000])
def test_resolution_is_a_share_of_the_rows(n):
    found = cal.evaluate_pairs(*world(n)[::-1]).decomposition
    assert found.resolution in (
        pytest.approx(min(4 / n**0.5, 1)),
        pytest.approx(1 / n**0.5),
    )
    again = type(found).from_json(found.to_json())
    assert (again.resolution, again.p_value) == (found.resolution, found.p_value)


def test_a_narrow_defect_is_found_by_the_finest_level():
    rng = np.random.default_rng(0)
    h = rng.uniform(0.5, 1, 40_000)
    m = np.where((h > 0.7) & (h < 0.715), h - 0.5, h)
    parts = cal.evaluate_pairs(rng.random(40_000) < m, h).decomposition
    assert parts.resolution == pytest.approx(1 / 200)
    low, high = parts.calibration.interval
    assert low < 0.5**2 * 0.03 < high


# -- weights, counts and clusters --------------------------------------------------


def same_errors(one, other, tolerance):
    for name in ("brier", "log"):
        x, y = one.decompositions[name], other.decompositions[name]
        assert x.calibration == pytest.approx(y.calibration, rel=tolerance, abs=1e-15)
        ends = x.calibration.interval, y.calibration.interval
        assert ends[0] == pytest.approx(ends[1], rel=tolerance, abs=1e-15)
        assert x.p_value == y.p_value


@pytest.mark.parametrize("rounding", [None, 2])
def test_frequency_is_repetition(rounding):
    h, a = world(900, rounding=rounding)
    times = np.random.default_rng(3).integers(0, 4, 900)
    counted = cal.evaluate_pairs(a, h, frequency=times, interval=None)
    repeated = cal.evaluate_pairs(
        np.repeat(a, times), np.repeat(h, times), interval=None
    )
    same_errors(counted, repeated, 1e-12)


def test_weights_have_no_unit():
    h, a = world(900)
    w = np.random.default_rng(3).lognormal(0, 1, 900)
    one, three, four = (
        cal.evaluate_pairs(a, h, sample_weight=c * w, interval=None) for c in (1, 3, 4)
    )
    same_errors(one, three, 1e-12)
    same_errors(one, four, 0.0)


def test_clusters_of_one_row_are_none():
    h, a = world(900)
    one = cal.evaluate_pairs(a, h, interval=None)
    same_errors(one, cal.evaluate_pairs(a, h, cluster=np.arange(900)), 0.0)


def test_weights_leave_fewer_rows_to_learn_from():
    h, a = world(2000)
    w = np.random.default_rng(3).lognormal(0, 1, 2000)
    plain, weighted = (
        cal.evaluate_pairs(a, h, sample_weight=x, interval=None).decomposition
        for x in (None, w)
    )
    lengths = [np.ptp(x.calibration.interval) for x in (plain, weighted)]
    assert lengths[1] > 1.2 * lengths[0]


def calibrated(kind, rng):
    """Rows of a calibrated model, with what is to be said about them."""
    if kind == "duplicates":
        h = rng.beta(4, 1, 300)
        a = rng.random(300) < h
        rows = np.repeat(np.arange(300), 5)
        return a[rows], h[rows], {"cluster": rows}
    if kind == "rare":
        h = 1 / (1 + np.exp(-rng.normal(-6, 1.5, 2000)))
        return rng.random(2000) < h, h, {}
    h = rng.beta(4, 1, 800)
    weight = rng.lognormal(0, 1, 800) if kind == "weights" else None
    return rng.random(800) < h, h, {"sample_weight": weight}


@pytest.mark.simulation
@pytest.mark.parametrize("kind", ["plain", "weights", "duplicates", "rare"])
def test_calibrated_models_are_seldom_accused(kind):
    accused = np.zeros(2)
    for seed in range(120):
        a, h, about = calibrated(kind, np.random.default_rng([7, seed]))
        cells = cells_of(h, a, about.get("sample_weight"), about.get("cluster"))
        ladder = Ladder.of(cells)
        found = brier_error(cells, 0.95, ladder), local_error(cells, LOG, ladder=ladder)
        accused += [error.interval[0] > 0 for error in found]
    assert accused.max() <= 8  # 3 are expected; more than 8 have a chance of 1 in 250


def test_either_an_error_or_a_surprise_is_enough():
    """Eight misses of a thousand where one is expected, or a twentieth off in the middle."""
    a, h = balanced(4000)
    sure = np.full(1000, 0.999), (np.arange(1000) >= 8) * 1.0
    hidden = Ladder.of(
        cells_of(*(np.concatenate(x) for x in zip((h, a), sure, strict=True)))
    )
    assert not hidden.test.rejects(0.95)
    assert hidden.joint_test.rejects(0.95)
    middle = np.linspace(0.45, 0.55, 1000)
    off = np.diff(np.floor(np.cumsum(middle + 0.07) + 0.5), prepend=0.0)
    edge = 1 - np.random.default_rng(0).random(3000) / 300
    fair = np.diff(np.floor(np.cumsum(edge) + 0.5), prepend=0.0)
    plain = Ladder.of(
        cells_of(np.concatenate([middle, edge]), np.concatenate([off, fair]))
    )
    surprise = rungs.AgainstChance(float(plain.tested[-1]), plain.law[-1])
    assert not surprise.rejects(0.95)
    assert plain.joint_test.rejects(0.95)
