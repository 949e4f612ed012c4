"""The adaptive curve, its two bands, and the interval of the sharpness gap."""

from dataclasses import replace

import numpy as np
import oracles
import pytest
from hypothesis import given
from make import forecasts
from scipy.special import expit, logit
from scipy.stats import chi2, t
from strategies import fewer, pairs

import calibrant as cal
from calibrant._base.records import Curve
from calibrant._inputs.divergences import BRIER, find_divergence
from calibrant._inputs.options import Settings
from calibrant._inputs.predictions import read_predictions
from calibrant._rows.columns import Columns
from calibrant._rows.reduce import reduce_to_columns
from calibrant._stats import curve as curves
from calibrant._stats import platt
from calibrant._stats.closed_forms import wilson_of
from calibrant._stats.curve import fit_places, gap_interval, gather_places
from calibrant._stats.decomposition import analyse, cells_of_columns, total_loss
from calibrant._stats.neighbours import cells_of_rows

SETTINGS = Settings().checked()


def choose_curve(cells):
    return fit_places(gather_places(cells))


def columns_of(h, a, **given):
    return reduce_to_columns(read_predictions(a, confidence=h, **given))


def cells_of(h, a, **given):
    return cells_of_rows(columns_of(h, a, **given))


def too_sure(n, seed=0):
    rng = np.random.default_rng([seed, n])
    h = np.clip(rng.beta(4, 1, n), 1e-6, 1 - 1e-6)
    return h, (rng.random(n) < expit(0.6 * logit(h))).astype(float)


def drawn(n, seed=0, **given):
    h, a = too_sure(n, seed)
    return cal.evaluate_pairs(a, h, resamples=100, **given).curve


# -- places and fit ----------------------------------------------------------------


def test_near_ties_are_one_place_and_others_stay_apart():
    h = np.array([0.101, 0.119, 0.6, 0.8, 0.9991, 0.9995, 1.0])
    places = gather_places(cells_of(h, np.ones(7)))
    assert places.weight.tolist() == [2, 1, 1, 1, 1, 1]
    assert places.h[0] == pytest.approx(0.11)


def test_the_place_of_a_confidence_does_not_depend_on_how_its_mean_is_rounded():
    tens = np.linspace(0, 1, 51)
    for h in (tens, np.nextafter(tens, 0), np.nextafter(tens, 1)):
        assert len(gather_places(cells_of(np.abs(h.clip(0, 1)), tens)).h) == 51


def test_near_ties_do_not_make_a_curve_steep():
    # Histogram binning makes hundreds of confidences that hardly differ.
    rng = np.random.default_rng(0)
    h = 0.85 + 0.05 * rng.random(700)
    curve = cal.evaluate_pairs(rng.random(700) < 0.86, h, resamples=100).curve
    assert np.nanmax(np.abs(np.diff(curve.accuracy))) < 0.03


def test_every_place_solves_its_own_problem():
    fit = choose_curve(cells_of(*too_sure(600)))
    cells = fit.cells
    for i in range(0, len(cells.h), 7):
        shift, leverage, _ = oracles.local_platt(
            cells.z[i],
            cells.rank[i],
            cells.z,
            cells.rank,
            cells.hits / cells.weight,
            cells.weight,
            fit.fitted.width,
            tau=2.0,
            slope_sd=1.0,
        )
        assert fit.fitted.shift[i] == pytest.approx(shift, abs=1e-9)
        assert fit.fitted.leverage[i] == pytest.approx(leverage, rel=1e-8)


def wavy(n, seed=0):
    rng = np.random.default_rng([seed, n])
    h = 0.1 + 0.8 * rng.random(n)
    chance = h + 0.15 * np.sin(4 * np.pi * h)
    return h, (rng.random(n) < chance).astype(float)


@pytest.mark.parametrize("rows", [too_sure(400), wavy(400), wavy(3000)])
def test_the_width_is_the_widest_within_one_standard_error_of_the_best(rows):
    cells = gather_places(cells_of(*rows))
    n, misses = len(rows[0]), cells.weight - cells.hits
    losses = []
    for width in [w for w in platt.WIDTHS if w >= 10 / n]:
        fitted = platt.fit(cells, width, cells.z, prior_sd=(2.0, 1.0))
        fit = curves.Recalibration(cells, fitted)
        yes = fit.without_a_row(np.ones((1, len(cells.h))))[0]
        no = fit.without_a_row(np.zeros((1, len(cells.h))))[0]
        per_row = np.repeat(np.r_[-np.log(expit(yes)), -np.log(expit(-no))],
                            np.r_[cells.hits, misses].astype(int))  # fmt: skip
        losses.append(per_row)
    best = min(losses, key=np.mean)
    allowed = [
        i
        for i, x in enumerate(losses)
        if np.mean(x - best) <= np.std(x - best) / np.sqrt(n)
    ]
    assert choose_curve(cells).fitted.width == platt.WIDTHS[allowed[0]]


def test_a_wave_is_seen_once_there_are_rows_enough():
    few, many = (choose_curve(cells_of(*wavy(n))).fitted.width for n in (100, 5000))
    assert many < 0.1 < few


def test_a_group_pulls_the_fit_as_its_weight_does():
    h, a = too_sure(300)
    h, group = h.round(1).clip(0.1, 0.9), np.arange(300) % 12
    cells = cells_of_rows(columns_of(h, a), cluster_groups=group)
    fit = choose_curve(cells)
    width, z = fit.fitted.width, fit.cells.z
    pulls = curves._pulls(fit)
    for g in (0, 7):
        less = columns_of(h, a, sample_weight=1 - 1e-4 * (group == g))
        fewer_of_it = gather_places(cells_of_rows(less))
        scale = less.weights[group != g][0]  # weights have mean 1
        some = replace(
            fewer_of_it,
            weight=fewer_of_it.weight / scale,
            hits=fewer_of_it.hits / scale,
            h=fit.cells.h,
            z=z,
        )
        # Ranks move with the weights too, which is not what a pull says.
        K = np.exp(-0.5 * ((fit.cells.rank[:, None] - fit.cells.rank) / width) ** 2)
        changed = fit.fitted.shift.copy(), fit.fitted.slope.copy()
        platt._climb(platt._problem(K, some, z, (2.0, 1.0)), *changed, 1e-12)
        moved = (fit.fitted.shift - changed[0]) / 1e-4
        np.testing.assert_allclose(pulls[g], moved, rtol=1e-2, atol=1e-4)


# -- bands -------------------------------------------------------------------------


def one_end_of_the_ribbon(cells, i, level=0.95):
    """By loops, at a place where rows are: Wilson, moved both ways, the wider taken."""
    n = cells.weight.sum() ** 2 / cells.w2.sum()
    mass = hits = claimed = noise = 0.0
    for j in range(len(cells.h)):
        u = (cells.coordinate[i] - cells.coordinate[j]) * np.sqrt(n)
        k = np.exp(-0.5 * u * u)
        mass, hits = mass + k * cells.weight[j], hits + k * cells.hits[j]
        claimed += k * cells.weight[j] * cells.h[j]
        noise += k * k * cells.w2[j]
    ends = wilson_of(hits / mass, mass**2 / noise, level)
    near, h = claimed / mass, cells.h[i]
    flat = [end + h - near for end in ends]
    odds = [expit(cells.z[i] + logit(end) - logit(near)) for end in ends]
    return max(min(flat[0], odds[0]), 0), min(max(flat[1], odds[1]), 1)


@pytest.mark.parametrize("weighted", [False, True])
def test_ribbon_equals_its_definition(weighted):
    h, a = too_sure(300)
    w = np.random.default_rng(1).exponential(size=300) if weighted else None
    curve = cal.evaluate_pairs(a, h, sample_weight=w, resamples=100).curve
    cells = gather_places(cells_of(h, a, sample_weight=w))
    for i, h_i in enumerate(cells.h):
        at = int(np.abs(curve.confidence - h_i).argmin())
        low, high = one_end_of_the_ribbon(cells, i)
        m = curve.accuracy[at]
        assert curve.low[at] == pytest.approx(min(low, m), abs=1e-9)
        assert curve.high[at] == pytest.approx(max(high, m), abs=1e-9)


@fewer(2)
@given(pairs(most=90))
def test_the_curve_never_leaves_its_ribbon_nor_that_the_wider_one(rows):
    h, a, w = rows
    for given_weights in ({}, {"sample_weight": w}):
        found = analyse_pairs(h, a, **given_weights)
        for curve in found.curves.values():
            known = np.isfinite(curve.accuracy)
            columns = [curve.band_low, curve.low, curve.accuracy]
            columns += [curve.high, curve.band_high]
            stack = np.stack(columns)
            assert (np.isnan(stack).all(axis=0) == ~known).all()
            assert (np.diff(stack[:, known], axis=0) >= 0).all()
            assert ((stack[:, known] >= 0) & (stack[:, known] <= 1)).all()
            assert not (curve.sharpness_gap < 0).any()


def analyse_pairs(h, a, **given_weights):
    columns = columns_of(h, a, **given_weights)
    return analyse(columns, cells_of_columns(columns, SETTINGS), SETTINGS, 1.0)


def test_one_confidence_needs_no_wider_band_but_many_do():
    rng = np.random.default_rng(0)
    hit = rng.random(2000) < 0.7
    one = cal.evaluate_pairs(hit, np.full(2000, 0.7), resamples=100).curve
    assert np.ptp([one.band_low, one.band_high]) == pytest.approx(
        np.ptp([one.low, one.high]), rel=0.1
    )
    many = drawn(2000)
    ratio = (many.band_high - many.band_low) / (many.high - many.low)
    assert np.nanmedian(ratio) > 1.3


def test_the_wider_band_is_that_of_so_many_standard_errors():
    # Of k places that do not see each other, the largest deviation has a known law.
    h = np.repeat(np.linspace(0.05, 0.95, 10), 400)
    cells = gather_places(cells_of(h, np.tile([1, 0], 2000)))
    at, z = curves._spread_out(cells)
    near = curves._look_around(cells, at, z)
    seen = near.support >= 20
    factor = curves._largest_deviation(cells, near, cells.h, 0.95, seen)
    want = t.ppf(0.5 + 0.5 * 0.95 ** (1 / 10), 1e9)  # ten independent normals
    assert factor * 1.96 == pytest.approx(want, rel=0.06)


def test_bands_of_copies_in_clusters_are_those_of_one_copy():
    h, a = too_sure(1200)
    one = cal.evaluate_pairs(a, h, resamples=100).curve
    five = np.tile(np.arange(1200), 5)
    many = cal.evaluate_pairs(a[five], h[five], cluster=five, resamples=100).curve
    blind = cal.evaluate_pairs(a[five], h[five], resamples=100).curve
    wide = np.nanmean(one.high - one.low)
    # Neighbourhoods of five times the rows are narrower by sqrt(5): so is each band.
    assert np.nanmean(many.high - many.low) > 1.7 * np.nanmean(blind.high - blind.low)
    assert np.nanmean(many.high - many.low) > wide
    assert (many.band_low <= many.low)[np.isfinite(many.low)].all()


def test_rows_nearby_are_worth_as_many_as_their_clusters_at_most():
    h, a = too_sure(1200)
    clusters = np.arange(1200)
    four = np.tile(clusters, 4)
    alone, _ = neighbourhoods(h, a, clusters)
    copies, blind = neighbourhoods(h[four], a[four], four)
    seen = alone.support >= 50
    # Each copy is worth a quarter; neighbourhoods of four times the rows are half as wide.
    share = np.median(copies.effective[seen] / blind.effective[seen])
    assert share == pytest.approx(1 / 4, rel=0.25)


def neighbourhoods(h, a, clusters):
    """The rows near each place, with clusters and without."""
    found = []
    for known in (clusters, None):
        cells = cells_of_rows(columns_of(h, a), cluster_groups=known)
        at, z = curves._spread_out(cells)
        found.append(curves._look_around(cells, at, z))
    return found


def test_no_curve_below_twenty_rows_and_a_straight_one_below_fifty():
    h, a = too_sure(60)
    assert np.isnan(cal.evaluate_pairs(a[:19], h[:19]).curve.accuracy).all()
    curve = cal.evaluate_pairs(a[:49], h[:49]).curve
    z, eta = logit(curve.confidence), logit(curve.accuracy)
    straight = np.polyval(np.polyfit(z, eta, 1), z)
    np.testing.assert_allclose(eta, straight, atol=0.01)  # a place is a mean
    assert choose_curve(cells_of(h[:49], a[:49])).fitted.width == np.inf
    assert np.isfinite(curve.low).all()


def test_few_rows_of_weight_count_by_what_they_are_worth():
    h, a = too_sure(60)
    w = np.r_[np.full(10, 100.0), np.full(50, 1e-3)]
    assert np.isnan(cal.evaluate_pairs(a, h, sample_weight=w).curve.accuracy).all()


def test_the_curve_hides_what_no_row_supports():
    rng = np.random.default_rng(0)
    h = np.r_[0.1 + 0.02 * rng.random(4000), 0.9 + 0.02 * rng.random(4000)]
    curve = cal.evaluate_pairs(rng.random(8000) < h, h, resamples=100).curve
    between = (curve.confidence > 0.25) & (curve.confidence < 0.75)
    assert between.any()
    for column in (curve.accuracy, curve.low, curve.band_high, curve.sharpness_gap):
        assert np.isnan(column[between]).all()


def test_only_evaluations_with_intervals_have_the_wider_band():
    h, a = too_sure(200)
    curve = cal.evaluate_pairs(a, h, interval=None).curve
    assert np.isfinite(curve.low).all()
    assert np.isnan(curve.band_low).all()


# -- units, counts, edges ----------------------------------------------------------


def same_curves(one, other):
    for name in one.curves:
        first, second = one.curves[name], other.curves[name]
        for column in Curve.__slots__:
            x, y = getattr(first, column), getattr(second, column)
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12, err_msg=column)


def test_weights_have_no_unit():
    h, a = too_sure(400)
    w = np.random.default_rng(2).exponential(size=400)
    one, other = (cal.evaluate_pairs(a, h, sample_weight=c * w) for c in (1, 0.37))
    same_curves(one, other)


@pytest.mark.parametrize("rounding", [2, 8])
def test_a_count_is_a_repetition(rounding):
    h, a = too_sure(300)
    h, f = (
        h.round(rounding).clip(0.01, 0.99),
        np.random.default_rng(3).integers(0, 4, 300),
    )
    counted = cal.evaluate_pairs(a, h, frequency=f)
    repeated = cal.evaluate_pairs(np.repeat(a, f), np.repeat(h, f))
    same_curves(counted, repeated)
    for name, parts in counted.decompositions.items():
        want = repeated.decompositions[name].sharpness_gap.interval
        assert parts.sharpness_gap.interval == pytest.approx(want, rel=1e-12)


def test_soft_labels_have_a_curve_between_their_values():
    h = np.linspace(0.55, 0.95, 400)
    curve = cal.evaluate_pairs(h - 0.1, h, resamples=100).curve
    inside = slice(5, -5)
    np.testing.assert_allclose(
        curve.accuracy[inside], curve.confidence[inside] - 0.1, atol=0.02
    )


def test_certain_confidences_have_places_and_bands():
    rng = np.random.default_rng(1)
    h = rng.choice([0.0, 0.5, 1.0], 600)
    curve = cal.evaluate_pairs(rng.random(600) < 0.5, h, resamples=100).curve
    known = curve.support > 20
    assert curve.confidence[known].tolist() == [0, 0.5, 1]
    for low, high in ((curve.low, curve.high), (curve.band_low, curve.band_high)):
        assert ((low < 0.5) & (high > 0.5))[known].all()


def test_the_gap_at_a_place_is_infinite_only_where_the_loss_is():
    h, a = too_sure(500)
    log = cal.evaluate_pairs(np.r_[a, 0.0], np.r_[h, 1.0], resamples=100).curves["log"]
    assert np.isposinf(log.sharpness_gap).any()
    assert (np.isposinf(log.sharpness_gap) == np.isposinf(log.loss)).all()


def test_the_gap_at_a_place_is_the_mean_over_rows_nearby():
    h, a = too_sure(400)
    found = analyse_pairs(h, a)
    cells, curve = found.outline.fit.cells, found.curves["log"]
    m = expit(found.outline.fit.log_odds)
    error = oracles.unit("log", m, expit(cells.z))
    width = 0.5 * 400**-0.25
    for i in range(0, len(cells.h), 9):
        at = int(np.abs(curve.confidence - cells.h[i]).argmin())
        k = np.exp(-0.5 * ((cells.rank - cells.rank[i]) / width) ** 2)
        want = (k @ (cells.losses["log"] - cells.weight * error)) / (k @ cells.weight)
        assert curve.sharpness_gap[at] == pytest.approx(max(want, 0), abs=1e-9)


def test_curves_written_without_the_wider_band_are_read():
    curve = drawn(100)
    given_once = curve.to_dict()
    del given_once["band_low"], given_once["band_high"]
    read = Curve.from_dict(given_once)
    assert np.isnan(read.band_low).all()
    assert len(read.band_high) == len(curve.confidence)
    again = Curve.from_json(curve.to_json())
    np.testing.assert_array_equal(again.band_high, curve.band_high)
    assert {"band_low", "band_high"} <= set(curve.frame().columns)


# -- the interval of the sharpness gap ---------------------------------------------


def three_classes(n, seed):
    rng = np.random.default_rng([seed, n])
    z = 3 * rng.normal(size=(n, 3))
    y = (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
    return reduce_to_columns(read_predictions(y, logits=z))


def gap_of(columns, name="brier", clusters=None):
    found = analyse(columns, cells_of_columns(columns, SETTINGS), SETTINGS, 1.0)
    parts, divergence = found.decompositions[name], find_divergence(name)
    return gap_interval(parts, found.outline, columns, divergence, 0.95, clusters)


@pytest.mark.simulation
@pytest.mark.parametrize("name", ["brier", "log"])
def test_gap_varies_from_sample_to_sample_as_its_interval_says(name):
    gaps = [gap_of(three_classes(800, seed), name) for seed in range(60)]
    length = np.mean([high - low for low, high in (gap.interval for gap in gaps)])
    # A standard deviation of 60 values is known to 1 / sqrt(120) = 9 %.
    assert length / (2 * 1.96) == pytest.approx(np.std(gaps, ddof=1), rel=0.27)
    assert gaps[0].method == "Student"


def test_gap_of_one_confidence_has_a_closed_form():
    # 3000 rows at 0.8, 1800 hits: without itself a row sees nearly the same mean.
    n, m = 3000, 0.6
    a = np.r_[np.ones(1800), np.zeros(1200)]
    gap = gap_of(Columns(np.full(n, 0.8), None, a))
    x1, x0 = (1 - m) ** 2, m**2
    sd = abs(x1 - x0) * np.sqrt(m * (1 - m))
    half = t.ppf(0.975, n - 1) * sd * np.sqrt(1 + 16 / n) / np.sqrt(n)
    assert np.ptp(gap.interval) == pytest.approx(2 * half, rel=2e-3)
    assert gap.interval[1] - gap == pytest.approx(half, rel=2e-3)


def test_costs_of_one_size_have_the_exact_interval_of_a_count():
    for count in (0, 1, 7):
        low, high = curves._gamma_interval(0.3 * count, 0.09 * count, 0.3, 0.95)
        garwood = chi2.ppf([0.025, 0.975], [max(2 * count, 1e-9), 2 * count + 2]) / 2
        assert low == pytest.approx(0.3 * (garwood[0] if count else 0))
        assert high == pytest.approx(0.3 * garwood[1])


def test_no_surprise_is_no_certainty():
    # None of 300 rows at 0.001 hit: the gap may be as large as 3.7 events make it.
    gap = gap_of(Columns(np.full(300, 0.001), None, np.zeros(300)))
    assert gap.interval[0] <= 0.001 <= gap.interval[1]
    assert gap.interval[1] > 3 / 300


def test_gap_of_a_calibrated_score_is_known_as_well_as_the_score():
    a, p = forecasts(5000, accuracy=lambda p: p)
    columns = Columns(p, None, a)
    score = total_loss(cells_of_columns(columns, SETTINGS), "brier", 0.95)
    gap = gap_of(columns)
    assert np.ptp(gap.interval) == pytest.approx(np.ptp(score.interval), rel=0.1)


def test_gap_is_no_interval_where_a_loss_is_infinite_or_rows_are_few():
    a, p = forecasts(200)
    columns = Columns(np.append(p, 1.0), None, np.append(a, 0.0))
    assert gap_of(columns, "log").interval is None
    assert gap_of(columns).interval is not None
    assert gap_of(Columns(p[:49], None, a[:49])).interval is None


def test_gap_knows_clusters_and_weights():
    columns = three_classes(1000, 1)
    copies = columns.take(np.tile(np.arange(1000), 4))
    blind = gap_of(copies)
    aware = gap_of(copies, clusters=np.tile(np.arange(1000), 4))
    assert np.ptp(aware.interval) == pytest.approx(2 * np.ptp(blind.interval), rel=0.02)
    assert aware.method == "Student, clusters"
    rng = np.random.default_rng(0)
    w = rng.exponential(size=1000) ** 2
    w /= w.mean()
    heavy = replace(columns, weight=w, squared=w * w)
    assert np.ptp(gap_of(heavy).interval) > 1.3 * np.ptp(gap_of(columns).interval)


# -- how often they hold -----------------------------------------------------------


@pytest.mark.simulation
@pytest.mark.parametrize("n", [50, 300])
def test_bands_and_gap_hold_as_often_as_they_say(n):
    # Places count by the rows they have: most of them, not most of the axis.
    rng = np.random.default_rng(7)
    h = rng.beta(4, 1, 200_000)
    m = expit(0.6 * logit(h))
    truth = float((m * (1 - h) ** 2 + (1 - m) * h**2 - (m - h) ** 2).mean())
    pointwise, everywhere, gaps = [], [], []
    for seed in range(60):
        h, a = too_sure(n, seed)
        columns = Columns(h, None, a)
        found = analyse(columns, cells_of_columns(columns, SETTINGS), SETTINGS, 1.0)
        curve, parts = found.curves["brier"], found.decompositions["brier"]
        m = expit(0.6 * logit(curve.confidence))
        inside = (curve.low <= m) & (m <= curve.high)
        middle = (curve.confidence > np.quantile(h, 0.005)) & (curve.confidence < 1)
        pointwise.append(inside[middle].mean())
        inside = (curve.band_low <= m) & (m <= curve.band_high)
        everywhere.append(inside[middle].all())
        low, high = gap_interval(parts, found.outline, columns, BRIER, 0.95).interval
        gaps.append(low <= truth <= high)
    assert np.mean(pointwise) > 0.92
    assert np.mean(everywhere) >= 0.87  # 0.95 less 3 standard errors
    assert np.mean(gaps) >= 0.87


@pytest.mark.simulation
def test_few_rows_draw_a_better_curve_than_the_papers_width():
    ours, paper = [], []
    for seed in range(40):
        h, a = too_sure(50, seed)
        m, z = expit(0.6 * logit(h)), logit(h)
        fit = choose_curve(cells_of(h, a))
        eta = z + np.interp(z, fit.cells.z, fit.fitted.shift)
        K = np.exp(-0.5 * ((h[:, None] - h) / 0.05) ** 2)
        ours.append(np.mean((expit(eta) - m) ** 2))
        paper.append(np.mean((K @ a / K.sum(axis=1) - m) ** 2))
    assert np.mean(ours) < 0.7 * np.mean(paper)
