"""The adaptive estimators, against their own O(n^2) definitions."""

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import pairs

import calibrant as cal
from calibrant._inputs.divergences import BRIER, BUILT_IN, LOG
from calibrant._inputs.predictions import read_predictions
from calibrant._rows.reduce import reduce_to_columns
from calibrant._sketch.cells import Cells
from calibrant._stats import closed_forms as intervals
from calibrant._stats import platt
from calibrant._stats.close_pairs import brier_error
from calibrant._stats.decomposition import EXACT_CELLS, find_cells
from calibrant._stats.neighbours import cells_of_rows, cells_of_sketch, thin
from calibrant._stats.platt_error import fit_for_error, local_error, smooth_error

INSIDE = (0.5, 0.2, 0.6, 1 / 3, 1 - 1e-7, 1e-6)


def columns_of(h, a, w=None, frequency=None):
    given = {"sample_weight": w, "frequency": frequency}
    return reduce_to_columns(read_predictions(a, confidence=h, **given))


def overconfident(n, seed=0, rounding=None):
    rng = np.random.default_rng(seed)
    h = 0.02 + 0.98 * rng.beta(3.0, 0.6, n)
    h = np.clip(h if rounding is None else np.round(h, rounding), 1e-9, 1 - 1e-12)
    z = np.log(h) - np.log1p(-h)
    return h, (rng.random(n) < 1 / (1 + np.exp(-z / 1.5))).astype(float)


@given(pairs(least=50, most=90, soft=False, weighted=False, edges=INSIDE))
def test_smooth_part_of_the_log_error_equals_its_definition(rows):
    h, a, _ = rows
    columns = columns_of(h, a)
    z, w = np.clip(columns.log_odds, -20, 20), np.ones(len(h))
    cells = cells_of_rows(columns)
    found = smooth_error(cells, LOG, fit_for_error(cells))
    assert found == pytest.approx(oracles.log_error(h, z, a, w), abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_log_error_from_a_sketch_is_within_a_fiftieth_of_its_standard_error(seed):
    h, a = overconfident(3000, seed)
    columns = columns_of(h, a)
    exact = local_error(cells_of_rows(columns), LOG)
    grid = local_error(cells_of_sketch(Cells(BUILT_IN).update(columns)), LOG)
    assert grid.value == pytest.approx(exact.value, abs=exact.se / 50)


def test_every_node_of_a_fit_solves_its_own_problem():
    h, a = overconfident(600)
    cells = cells_of_rows(columns_of(h, a))
    nodes = platt.choose_nodes(cells)
    fitted = platt.fit(cells, 0.1, nodes)
    rank_at = np.interp(nodes, cells.z, cells.rank)
    for i in range(0, len(nodes), 7):
        shift, leverage, variance = oracles.local_platt(
            nodes[i],
            rank_at[i],
            cells.z,
            cells.rank,
            cells.hits / cells.weight,
            cells.weight,
            0.1,
        )
        assert fitted.shift[i] == pytest.approx(shift, abs=1e-9)
        assert fitted.leverage[i] == pytest.approx(leverage, rel=1e-8)
        assert fitted.variance[i] == pytest.approx(variance, rel=1e-8)


def test_local_platt_recovers_a_temperature_at_every_width():
    # Accuracy sigmoid(z / 2) is in the family, so smoothing has nothing to bias.
    z = np.linspace(-4, 6, 4001)
    h, a = 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(-z / 2))
    cells = cells_of_rows(columns_of(h, a, frequency=np.full(len(z), 1000)))
    for width in (1.5, 0.2, 0.03):
        fitted = platt.fit(cells, width, np.array([-2.0, 0.0, 3.0]))
        np.testing.assert_allclose(fitted.shift, [1.0, 0.0, -1.5], atol=2e-3)


def test_brier_by_local_platt_agrees_with_brier_by_pairs():
    # Two unrelated estimators of one number.
    h, a = overconfident(20_000)
    cells = cells_of_sketch(Cells(BUILT_IN).update(columns_of(h, a)))
    by_pairs, by_platt = brier_error(cells), local_error(cells, BRIER)
    assert by_platt.value == pytest.approx(by_pairs.value, abs=by_pairs.se)


def test_one_row_says_nothing():
    ev = cal.evaluate_pairs([1], [0.7])
    assert ev.decomposition.calibration == pytest.approx(0, abs=1e-15)
    assert ev.decomposition.calibration.interval is None
    assert np.isnan(ev.decompositions["log"].calibration)


@pytest.mark.simulation
def test_calibrated_models_average_to_zero_where_the_paper_does_not():
    rng = np.random.default_rng(5)
    ours, paper = [], []
    for _ in range(60):
        h = 0.02 + 0.98 * rng.beta(3.0, 0.6, 1000)
        ev = cal.evaluate_pairs(rng.random(1000) < h, h, interval=None)
        ours.append(ev.decomposition.calibration)
        paper.append(ev.paper.calibration)
    assert abs(np.mean(ours)) < 3 * np.std(ours) / np.sqrt(60)
    assert np.mean(paper) > 5e-4


def test_few_distinct_values_are_all_used():
    h, a = overconfident(30_000, rounding=2)
    columns = columns_of(h, a)
    cells, _ = find_cells(columns, Cells(BUILT_IN).update(columns))
    assert len(cells.h) == len(np.unique(h)) <= EXACT_CELLS


@pytest.mark.parametrize("rounding", [None, 2])
@pytest.mark.parametrize("divergence", ["brier", "log"])
def test_the_error_alone_is_that_of_the_evaluation(rounding, divergence):
    h, a = overconfident(5000, rounding=rounding)
    alone = cal.calibration_error(a, confidence=h, divergence=divergence)
    whole = cal.evaluate_pairs(a, h).decompositions[divergence].calibration
    assert (alone, alone.interval, alone.method) == (
        whole,
        whole.interval,
        whole.method,
    )


def test_thinning_keeps_every_sum():
    h, a = overconfident(5000)
    cells = cells_of_rows(columns_of(h, a))
    few = thin(cells, 200)
    assert len(few.h) <= 201
    for name in ("weight", "hits", "r1", "r2"):
        assert getattr(few, name).sum() == pytest.approx(getattr(cells, name).sum())
    assert (np.diff(few.z) > 0).all()


def test_soft_hits_of_one_half_are_half_as_noisy():
    # Hits that equal the accuracy carry no noise, so nothing is subtracted for it.
    h = np.linspace(0.55, 0.95, 2000)
    exact = cal.evaluate_pairs(h - 0.1, h)
    assert exact.decomposition.calibration == pytest.approx(0.01, rel=0.02)
    log = exact.decompositions["log"].calibration
    truth = oracles.unit("log", h - 0.1, h).mean()
    assert log == pytest.approx(truth, rel=0.02)


def test_calibrated_share_is_that_of_the_twicing_kernel():
    u = np.linspace(-15, 15, 30_001)
    K, KK = (np.exp(-((u / s) ** 2) / 2) / s for s in (1.0, 2**0.5))
    share = 2 * ((2 * K - KK) ** 2).sum() / (4 * (K**2).sum())
    assert share == pytest.approx(intervals.CALIBRATED_SHARE, abs=1e-3)


def test_twenty_rows_are_enough_for_brier_and_fifty_for_log():
    for n, brier, log in ((19, 0, 0), (20, 1, 0), (49, 1, 0), (50, 1, 1)):
        ev = cal.evaluate_pairs(np.arange(n) % 2, np.linspace(0.3, 0.9, n))
        assert (ev.decomposition.calibration.interval is not None) == brier
        assert np.isfinite(ev.decompositions["log"].calibration) == log


def test_a_score_interval_ends_at_zero():
    low, high = intervals.score(0.0, 0.01, 0.02, 0.001, 0.95)
    assert low == 0 < high


@given(
    d=st.floats(-0.1, 0.1),
    se=st.floats(1e-5, 0.01),
    size=st.floats(1e-5, 0.1),
    noise=st.floats(0, 0.1),
)
def test_a_score_interval_is_never_empty_and_grows_with_the_estimate(
    d, se, size, noise
):
    low, high = intervals.score(d, se, size, noise, 0.95)
    higher = intervals.score(d + 0.001, se, size, noise, 0.95)
    assert 0 <= low <= max(d, 0.0) + 1e-12
    assert high > max(d, 0.0)
    assert low <= higher[0] + 1e-12
    assert high <= higher[1] + 1e-12


def test_below_what_chance_does_a_score_interval_stays_the_same():
    se, size, noise = 1e-3, 2e-3, 2e-3
    chance = se * np.sqrt(intervals.CALIBRATED_SHARE * noise / size)
    ends = [
        intervals.score(d, se, size, noise, 0.95)[1]
        for d in (-9 * chance, -chance, -0.9 * chance)
    ]
    assert ends[0] == ends[1] < ends[2]
    # It is 0.96 of a standard deviation where the variance does not grow with d.
    flat = intervals.score(-9 * chance, se, 1e6, 1e6, 0.95)
    assert flat[1] == pytest.approx(0.96 * chance, rel=0.01)


def test_mean_losses_have_students_interval():
    h, a = overconfident(20_000)  # so many surprises that a gamma law has no say
    loss = (a - h) ** 2
    half = 1.960082 * loss.std() / np.sqrt(20_000)
    want = loss.mean() - half, loss.mean() + half
    found = cal.evaluate_pairs(a, h).metrics["brier"].interval
    assert found == pytest.approx(want, rel=1e-5)


def test_adaptive_density_of_uniform_confidences_is_one():
    h = (np.arange(5000) + 0.5) / 5000
    density = cal.evaluate_pairs(h > 0.5, h).curve.density
    np.testing.assert_allclose(density, 1, atol=0.02)


def test_loss_of_a_constant_confidence_is_its_mean():
    a = np.r_[np.ones(60), np.zeros(40)]
    curve = cal.evaluate_pairs(a, np.full(100, 0.8)).curve
    np.testing.assert_allclose(curve.loss, 0.6 * 0.04 + 0.4 * 0.64)


def test_values_that_differ_by_round_off_are_one():
    a, twins = np.tile([1, 0], 30), np.tile([0.3, 0.1 + 0.2], 30)
    same = np.full(60, 0.3)
    want = cal.calibration_error(a, confidence=same)
    assert cal.calibration_error(a, confidence=twins) == pytest.approx(want, abs=1e-12)
    mass = {"strategy": "mass", "bins": 2}
    want = cal.ece(a, confidence=same, **mass)
    assert cal.ece(a, confidence=twins, **mass) == pytest.approx(want, abs=1e-12)


def test_intervals_of_pairs_follow_the_level():
    h, a = overconfident(500)
    narrow, wide = (
        cal.evaluate_pairs(a, h, level=level).decomposition.calibration.interval
        for level in (0.5, 0.99)
    )
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_interval_of_the_calibration_error_alone_follows_the_level():
    h, a = overconfident(500)
    for level in (0.5, 0.99):
        want = cal.evaluate_pairs(a, h, level=level).decomposition.calibration
        alone = cal.calibration_error(a, confidence=h, level=level)
        assert alone.interval == pytest.approx(want.interval)


def test_heavy_atoms_are_nodes():
    rng = np.random.default_rng(0)
    h = np.r_[rng.random(2000), np.full(100, 0.123), np.full(50, 0.987)]
    cells = cells_of_rows(columns_of(h, rng.random(2150) < h))
    heavy = cells.weight >= 50
    assert heavy.sum() == 2
    assert np.isin(cells.z[heavy], platt.choose_nodes(cells)).all()


def test_a_gain_that_all_rows_share_has_no_standard_error():
    cells = cells_of_rows(columns_of(np.full(200, 0.01), np.ones(200)))
    found = local_error(cells, LOG)
    assert found.value > 4
    assert found.se < 1e-6


def test_log_under_another_name_has_the_same_error():
    log = LOG.phi, LOG.gradient, LOG.phi_1d, LOG.derivative_1d
    other = cal.Divergence("entropy", *log)
    h, a = overconfident(500)
    cells = cells_of_rows(columns_of(h, a))
    want = local_error(cells, LOG).value
    assert local_error(cells, other).value == pytest.approx(want, abs=1e-7)


# -- hardly any misses -------------------------------------------------------------


def test_rows_that_are_all_right_do_not_refute_a_confidence_near_one():
    ev = cal.evaluate_pairs(np.ones(5000), np.full(5000, 0.9999))
    for name, reach in (("brier", 0.0004**2), ("log", 1e-4)):
        low, high = ev.decompositions[name].calibration.interval
        assert low == 0
        assert high > reach  # one miss in 2000 would be no surprise
    assert ev.metrics["ece_debiased"].interval[0] == 0


def test_rows_that_are_all_right_refute_a_lower_confidence():
    ev = cal.evaluate_pairs(np.ones(100), np.full(100, 0.9))
    assert ev.decomposition.calibration.interval[0] > 0


@pytest.mark.simulation
@pytest.mark.parametrize("n", [100, 2000])
def test_calibrated_models_that_are_nearly_always_sure_are_not_accused(n):
    excluded = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        h = 1 - rng.random(n) / n
        cells = cells_of_rows(columns_of(h, (rng.random(n) < h).astype(float)))
        excluded += brier_error(cells).interval[0] > 0
        excluded += local_error(cells, LOG).interval[0] > 0
    assert excluded <= 0.08 * 120


@pytest.mark.parametrize("n", [50, 1000])
def test_a_constant_that_matches_the_accuracy_has_a_finite_interval(n):
    a = (np.random.default_rng(0).random(n) < 0.7).astype(float)
    ev = cal.evaluate_pairs(a, np.full(n, a.mean()))
    assert 0 < ev.decompositions["log"].calibration.interval[1] < 0.5


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_certainty_that_was_never_wrong_may_still_be(value):
    ev = cal.evaluate_pairs(np.full(5000, value), np.full(5000, value))
    assert ev.decomposition.calibration.interval == pytest.approx((0, 5.9e-7), rel=0.01)
    assert ev.decompositions["log"].calibration.interval == (0, np.inf)
    assert ev.decompositions["log"].calibration.method == "one-sided close pairs"
