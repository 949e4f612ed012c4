"""Tests of calibration: slow twins, known laws, p-values that are uniform, power."""

from dataclasses import replace
from math import erfc, exp, pi, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import binom, kstest, norm
from strategies import pairs

import calibrant as cal
from calibrant._rows.columns import Columns
from calibrant._verbs.calibration_test import (
    METHODS,
    CalibrationTest,
    NullRows,
    Walks,
    calibration_test,
    distance_tail,
    extremes,
    in_words,
    range_tail,
    run_test,
)
from calibrant._verbs.metric_functions import ks_error

NAMES = tuple(METHODS)
INNER = (0.5, 0.2, 0.6, 1 / 3, 0.9)


def null_of(h, a, w=None):
    return NullRows.of(Columns(np.asarray(h, float), None, np.asarray(a, float), {}, w))


def outcome(h, a, method, law="asymptotic", resamples=199, seed=0):
    columns = Columns(np.asarray(h, float), None, np.asarray(a, float))
    return run_test(columns, method, law, resamples, np.random.default_rng(seed))


# -- slow twins -------------------------------------------------------------------


def slow_walk(h, a):
    """Sums of a - h over rows up to each distinct confidence, from the origin on."""
    walk = [0.0]
    for value in sorted(set(h)):
        walk.append(
            walk[-1] + sum(x - value for x, p in zip(a, h, strict=True) if p == value)
        )
    return np.array(walk)


def slow_spiegelhalter(h, a):
    top = sum((x - p) * (1 - 2 * p) for x, p in zip(a, h, strict=True))
    return top / sqrt(sum((1 - 2 * p) ** 2 * p * (1 - p) for p in h))


def slow_square(h, a):
    """Squared kernel mean of residuals less its variance, row by row."""
    h, a = np.array(h), np.array(a)
    n, r = len(h), np.array(a) - h
    rank = np.array([(h < p).sum() + 0.5 * (h == p).sum() for p in h]) / n
    x = (rank + h) / 2
    total = 0.0
    for i in range(n):
        k = np.exp(-((x[i] - x) ** 2) / (2 * (2 / sqrt(n)) ** 2))
        near = max(k.sum(), 1.0)
        total += ((k @ r) / near) ** 2 - (k**2 @ r**2) / near**2
    return total / n


@given(pairs(least=2, soft=False, weighted=False, edges=INNER))
def test_statistics_are_what_their_definitions_say(rows):
    h, a, _ = rows
    walk, spread = slow_walk(h, a), sqrt((h * (1 - h)).sum())
    assert outcome(h, a, "ks").statistic == pytest.approx(np.abs(walk).max() / spread)
    assert outcome(h, a, "kuiper").statistic == pytest.approx(np.ptp(walk) / spread)
    found = outcome(h, a, "bootstrap", "auto", resamples=20).statistic
    assert found == pytest.approx(slow_square(h, a), abs=1e-12)
    if np.any(h != 0.5):
        found = outcome(h, a, "spiegelhalter").statistic
        assert found == pytest.approx(slow_spiegelhalter(h, a), abs=1e-9)


@given(pairs(least=2, soft=False, weighted=False, edges=INNER))
def test_kuiper_is_at_least_ks_and_at_most_twice_it(rows):
    h, a, _ = rows
    ks, kuiper = (outcome(h, a, name).statistic for name in ("ks", "kuiper"))
    assert ks - 1e-12 <= kuiper <= 2 * ks + 1e-12


def test_ks_is_the_ks_error_on_the_scale_of_its_spread(data):
    arrays = data("fivethirtyeight_games")
    h, y = arrays["prob"], arrays["outcome"]
    found = calibration_test(y, probs=h, method="ks", law="asymptotic")
    spread = sqrt(float((h * (1 - h)).sum()))
    assert found.statistic * spread / len(y) == pytest.approx(ks_error(y, probs=h))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["spread", "sure", "tied"])
def test_extremes_of_draws_are_those_of_the_walk_written_out(kind, seed):
    rng = np.random.default_rng(seed)
    h = {"spread": rng.random(60), "sure": 1 - 0.1 * rng.random(60)}.get(kind)
    h = rng.integers(1, 10, 60) / 10 if h is None else h
    null = null_of(h, np.zeros(60))
    draw = null._draw_groups if seed % 2 else null._draw_rows
    draws = draw(50, rng)
    low, high = extremes(null, draws)
    for i in range(50):
        here = draws.replicate == i
        residual = null.calm.copy()
        np.add.at(
            residual,
            draws.group[here],
            (null.flip[draws.group] * draws.surprises)[here],
        )
        walk = np.concatenate([[0.0], np.cumsum(residual)])
        assert (low[i], high[i]) == pytest.approx((walk.min(), walk.max()), abs=1e-12)


# -- redrawn rows -----------------------------------------------------------------


@pytest.mark.parametrize("draw", ["_draw_groups", "_draw_rows"])
def test_redrawn_surprises_are_binomial(draw):
    null = NullRows(
        np.array([0.02, 0.3, 0.5, 0.97]), np.array([40.0, 7, 1, 30]), np.zeros(4)
    )
    draws = getattr(null, draw)(20_000, np.random.default_rng(1))
    for group in range(4):
        count = np.zeros(20_000)
        here = draws.group == group
        count[draws.replicate[here]] = draws.surprises[here]
        law = binom(int(null.rows[group]), null.chance[group])
        for k in range(4):
            share, expected = np.mean(count == k), law.pmf(k)
            assert share == pytest.approx(
                expected, abs=5 * sqrt(expected / 20_000) + 1e-9
            )


def test_draws_come_in_order_and_no_pair_comes_twice():
    rng = np.random.default_rng(2)
    null = NullRows(np.sort(rng.random(30)), rng.integers(1, 4, 30) * 1.0, np.zeros(30))
    for draws in (*null.redraw(300, rng), null._draw_rows(300, rng)):
        key = draws.replicate * 30 + draws.group
        assert np.all(np.diff(key) > 0)
        assert np.all(draws.surprises <= null.rows[draws.group])
        assert np.all(draws.surprises >= 1)


def test_parts_add_up_to_the_resamples_asked_for(monkeypatch):
    monkeypatch.setattr("calibrant._verbs.calibration_test.POINTS_AT_ONCE", 500)
    parts = null_of(np.linspace(0.1, 0.9, 100), np.zeros(100)).redraw(
        23, np.random.default_rng(0)
    )
    assert len(parts) > 1
    assert sum(part.replicates for part in parts) == 23


def test_coarse_groups_keep_sums_and_split_at_one_half():
    rng = np.random.default_rng(3)
    h = np.concatenate([rng.random(5000), [0.5, np.nextafter(0.5, 0), 0.0, 1.0]])
    null = null_of(h, np.concatenate([rng.random(5000) < h[:5000], [1, 0, 0, 1]]))
    few = null.coarse()
    assert len(few.h) <= 600
    for name in ("rows", "surprises", "calm"):
        assert getattr(few, name).sum() == pytest.approx(getattr(null, name).sum())
    assert np.all(np.diff(few.h) > 0)
    below = null.h < 0.5
    assert few.rows[few.h < 0.5].sum() == null.rows[below].sum()


# -- laws -------------------------------------------------------------------------


@pytest.mark.parametrize("x", [0.3, 0.7, 1.0, 1.7, 2.5, 4.0])
def test_law_of_the_largest_distance_in_its_other_series(x):
    # The heat equation between two walls: a sine series, quick where ours is slow.
    inside = (
        4
        / pi
        * sum(
            (-1) ** k / (2 * k + 1) * exp(-(((2 * k + 1) * pi / x) ** 2) / 8)
            for k in range(200)
        )
    )
    assert distance_tail(x) == pytest.approx(1 - inside, abs=1e-12)


@pytest.mark.parametrize("x", [0.8, 1.0, 1.7, 2.5, 4.0])
def test_law_of_the_range_is_the_integral_of_fellers_density(x):
    def density(r):
        return 8 * sum((-1) ** (k - 1) * k * k * norm.pdf(k * r) for k in range(1, 80))

    assert range_tail(x) == pytest.approx(quad(density, x, 20, limit=200)[0], abs=1e-9)


@given(st.floats(0.0, 9.0), st.floats(0.0, 9.0))
def test_tails_fall_and_stay_between_0_and_1(x, y):
    for tail in (distance_tail, range_tail):
        low, high = tail(max(x, y)), tail(min(x, y))
        assert 0 <= low <= high + 1e-12 <= 1 + 1e-12


def test_values_of_another_implementation():
    # MAPIE's test data. Its Spiegelhalter p-value is one-sided: half of ours.
    random = np.random.RandomState(1)
    h = random.uniform(size=100)
    y = random.uniform(size=100) <= h
    found = {name: outcome(h, y, name) for name in NAMES[:3]}
    assert found["ks"].p_value == pytest.approx(0.2148, abs=5e-5)
    assert found["kuiper"].p_value == pytest.approx(0.313006, abs=5e-7)
    assert found["spiegelhalter"].statistic == pytest.approx(0.935242, abs=5e-7)
    assert found["spiegelhalter"].p_value == pytest.approx(2 * 0.174832, abs=2e-6)


@pytest.mark.simulation
def test_laws_for_many_rows_agree_with_simulation():
    rng = np.random.default_rng(4)
    h = rng.random(20_000)
    a = rng.random(20_000) < h + 0.004
    for name in NAMES[:3]:
        many, drawn = (outcome(h, a, name, law, 1000) for law in ("auto", "simulated"))
        assert (many.law != "simulated", drawn.law) == (True, "simulated")
        assert many.p_value == pytest.approx(drawn.p_value, abs=0.04)


def test_two_sided_spiegelhalter_sees_both_directions():
    h = np.array([0.2] * 500 + [0.8] * 500)
    for share in (0.14, 0.26):
        a = np.concatenate(
            [np.arange(500) < 500 * share, np.arange(500) >= 500 * share]
        )
        found = outcome(h, a, "spiegelhalter")
        assert found.p_value == pytest.approx(erfc(abs(found.statistic) / sqrt(2)))
        assert found.p_value < 1e-3


# -- p-values ---------------------------------------------------------------------


@pytest.mark.simulation
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["spread", "sure", "tied"])
def test_p_values_of_calibrated_rows_are_uniform(name, kind):
    rng = np.random.default_rng([NAMES.index(name), len(kind)])
    p = []
    for _ in range(300):
        h = {"spread": rng.random(150), "sure": 1 - 0.3 * rng.random(150)}.get(kind)
        h = rng.integers(1, 10, 150) / 10 if h is None else h
        found = run_test(
            Columns(h, None, (rng.random(150) < h) * 1.0), name, "auto", 99, rng
        )
        p.append(found.p_value)
    assert kstest(p, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("name", NAMES)
def test_wrong_confidences_are_found_out(name):
    rng = np.random.default_rng(5)
    h = rng.random(3000)
    too_sure = np.clip(1.3 * (h - 0.5) + 0.5, 0.001, 0.999)
    a = rng.random(3000) < h
    assert outcome(too_sure, a, name, "auto").p_value <= 0.01
    assert outcome(h, a, name, "auto").p_value > 0.05


def test_a_shift_that_cancels_in_the_whole_is_seen_by_all_but_the_score():
    # Too low below one half and too low above: (a - h)(1 - 2h) cancels out.
    rng = np.random.default_rng(6)
    h = rng.uniform(0.1, 0.9, 4000)
    a = rng.random(4000) < h + 0.05
    for name in ("kuiper", "ks", "bootstrap"):
        assert outcome(h, a, name, "auto").p_value <= 0.01
    assert outcome(h, a, "spiegelhalter", "auto").p_value > 0.01


@pytest.mark.parametrize("name", NAMES)
def test_real_networks_are_not_calibrated_and_a_good_forecast_may_be(data, name):
    arrays = data("cifar10_akamaster_resnet32")
    found = calibration_test(arrays["labels"], logits=arrays["logits"], method=name)
    assert found.p_value <= 0.001
    assert found.target == "top-label"
    niamey = data("forecast_precip_niamey_2016")
    found = calibration_test(niamey["outcome"], probs=niamey["Logistic"], method=name)
    assert found.p_value > 0.1


# -- weights, order, edges --------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "law"),
    [(name, "simulated") for name in NAMES]
    + [(name, "asymptotic") for name in NAMES[:3]],
)
def test_frequency_2_is_a_row_twice_and_0_is_no_row(name, law):
    rng = np.random.default_rng(7)
    h, w = np.round(rng.random(200), 2), rng.integers(0, 3, 200)
    h = np.clip(h, 0.01, 0.99)
    a = rng.random(200) < h
    options = {"method": name, "law": law, "resamples": 99}
    weighted = calibration_test(a, confidence=h, frequency=w, **options)
    repeated = calibration_test(np.repeat(a, w), confidence=np.repeat(h, w), **options)
    assert weighted.statistic == pytest.approx(repeated.statistic, rel=1e-9)
    assert weighted.p_value == pytest.approx(repeated.p_value)
    assert weighted.n == repeated.n


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_rows_does_not_matter(name):
    rng = np.random.default_rng(8)
    h = rng.random(300)
    a, turn = rng.random(300) < h, rng.permutation(300)
    one, other = (outcome(h[i], a[i], name, "auto") for i in (slice(None), turn))
    assert one.statistic == pytest.approx(other.statistic)
    assert one.p_value == other.p_value


@pytest.mark.parametrize("name", NAMES)
def test_what_is_impossible_has_p_0(name):
    found = calibration_test([1, 0, 1], confidence=[0.7, 1.0, 0.4], method=name)
    assert (found.p_value, found.law) == (0.0, "exact")
    assert "0 or 1 was contradicted" in found.sentence
    found = calibration_test([0, 0], confidence=[0.0, 1.0], method=name)
    assert (found.p_value, found.statistic) == (0.0, np.inf)


@pytest.mark.parametrize("name", NAMES)
def test_where_nothing_can_differ_p_is_1(name):
    found = calibration_test([0, 1], confidence=[0.0, 1.0], method=name)
    assert (found.p_value, found.statistic, found.law) == (1.0, 0.0, "exact")
    assert "these examples could not show" in found.sentence


def test_one_half_tells_spiegelhalter_nothing():
    found = calibration_test([1] * 50, confidence=[0.5] * 50, method="spiegelhalter")
    assert (found.p_value, found.statistic) == (1.0, 0.0)
    assert calibration_test([1] * 50, confidence=[0.5] * 50).p_value < 0.01


@pytest.mark.parametrize("name", NAMES[:3])
def test_one_row_is_tested_exactly(name):
    # A hit at confidence 0.1 is the less likely of two outcomes: p = 0.1.
    found = calibration_test([1], confidence=[0.1], method=name, resamples=20_000)
    assert found.p_value == pytest.approx(0.1, abs=0.01)
    found = calibration_test([0], confidence=[0.1], method=name, resamples=200)
    assert found.p_value == 1.0


def test_one_row_has_no_other_to_agree_with():
    found = calibration_test([1], confidence=[0.1], method="bootstrap")
    assert (found.statistic, found.p_value) == (pytest.approx(0.0, abs=1e-15), 1.0)


def test_what_cannot_be_tested_is_refused():
    with pytest.raises(ValueError, match=r"outcomes of 0 or 1; row 1 is 0.5"):
        calibration_test([1, 0.5], confidence=[0.7, 0.4])
    with pytest.raises(ValueError, match=r"method must be one of 'kuiper'"):
        calibration_test([1], confidence=[0.7], method="hosmer")
    with pytest.raises(ValueError, match="resamples must be a whole number from 20 to"):
        calibration_test([1], confidence=[0.7], resamples=19)
    with pytest.raises(ValueError, match="no asymptotic law"):
        calibration_test([1], confidence=[0.7], method="bootstrap", law="asymptotic")
    weights = {"confidence": [0.7, 0.6], "sample_weight": [1.5, 0.5]}
    with pytest.raises(ValueError, match=r"does not go with sample_weight="):
        calibration_test([1, 0], law="asymptotic", **weights)
    assert calibration_test([1, 0], **weights).law == "simulated"
    clusters = {"confidence": np.full(40, 0.7), "cluster": np.arange(40) // 2}
    with pytest.raises(ValueError, match=r"does not go with cluster="):
        calibration_test([1, 0] * 20, law="asymptotic", **clusters)


# -- weights and clusters ---------------------------------------------------------


def weighted_rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    h, w = rng.beta(4, 1, n), rng.lognormal(size=n)
    return h, (rng.random(n) < h).astype(float), w


def test_statistics_of_weighted_rows_are_those_of_the_walk_written_out():
    h, a, w = weighted_rows()
    w /= w.mean()
    order = np.argsort(h)
    walk = np.append(0, np.cumsum((w * (a - h))[order]))
    spread = sqrt((w**2 * h * (1 - h)).sum())
    given = {"confidence": h, "sample_weight": w, "resamples": 20}
    expected = {
        "kuiper": np.ptp(walk) / spread,
        "ks": np.abs(walk).max() / spread,
        "spiegelhalter": (w * (a - h) * (1 - 2 * h)).sum()
        / sqrt((w**2 * (1 - 2 * h) ** 2 * h * (1 - h)).sum()),
    }
    for name, value in expected.items():
        found = calibration_test(a, method=name, **given).statistic
        assert found == pytest.approx(value, rel=1e-6), name


@pytest.mark.parametrize("name", NAMES)
def test_the_unit_of_weights_does_not_matter(name):
    h, a, w = weighted_rows()
    one, other = (
        calibration_test(a, confidence=h, sample_weight=x, method=name, resamples=99)
        for x in (w, 4 * w)
    )
    assert one == other
    same = calibration_test(a, confidence=h, sample_weight=0 * w + 3, method=name)
    plain = calibration_test(a, confidence=h, method=name)
    assert same.statistic == pytest.approx(plain.statistic, rel=1e-9)
    assert same.p_value == pytest.approx(plain.p_value)


def test_coarse_groups_of_weighted_rows_keep_their_sums():
    h, a, w = weighted_rows(3000)
    w2 = w**2
    null = NullRows.of(Columns(h, None, a, {}, w, None, w2))
    few = null.coarse(100)
    for one in (null, few):
        assert (one.worth**2 * one.rows).sum() == pytest.approx(w2.sum())
        moved = one.calm + one.step * one.surprises
        assert moved.sum() == pytest.approx((w * (a - h)).sum(), abs=1e-9)
    assert len(few.h) <= 100


@pytest.mark.parametrize("name", NAMES)
def test_statistics_of_clusters_are_those_written_out(name):
    h, a, _ = weighted_rows(60)
    h = np.round(h, 2)
    group = np.arange(60) // 5
    walks = Walks.of(Columns(h, None, a), group, 2000)
    signs = np.random.default_rng(1).choice([-1.0, 1.0], (4, 12))
    for sign, found in zip(signs, walks.statistics(name, signs), strict=True):
        r = sign[group] * (a - h)
        values = np.unique(h)
        walk = np.append(0, [r[h <= x].sum() for x in values])
        whole = np.bincount(group, a - h)
        slope = np.bincount(group, (a - h) * (1 - 2 * h))
        if name == "bootstrap":
            rank = np.array([(h < x).sum() + 0.5 * (h == x).sum() for x in h]) / 60
            x = 0.5 * (rank + h)
            K = np.exp(-0.5 * ((x[:, None] - x) * 0.5 * sqrt(60)) ** 2)
            K /= np.maximum(K.sum(axis=1), 1)[:, None]
            parts = np.array([(K * (group == g)) @ r for g in range(12)])
            expected = (parts.sum(axis=0) ** 2 - (parts**2).sum(axis=0)).mean()
        else:
            expected = {
                "kuiper": np.ptp(walk) / sqrt(whole @ whole),
                "ks": np.abs(walk).max() / sqrt(whole @ whole),
                "spiegelhalter": (r * (1 - 2 * h)).sum() / sqrt(slope @ slope),
            }[name]
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.simulation
@pytest.mark.parametrize(
    ("h", "law"),
    [
        (np.linspace(0.01, 0.99, 6041), "normal"),
        (np.round(np.linspace(0.01, 0.99, 6041), 2), "normal"),
        (np.full(6041, 0.2), "simulated"),
        (np.linspace(0.01, 0.99, 60), "simulated"),
        (np.linspace(1e-5, 0.01, 2000), "simulated"),
    ],
)
def test_spiegelhalter_is_simulated_for_few_surprises_or_ties_only(h, law):
    a = np.random.default_rng(0).random(len(h)) < h
    found = calibration_test(a, confidence=h, method="spiegelhalter")
    assert found.law == law
    if law == "normal":
        assert found.p_value == pytest.approx(2 * norm.sf(abs(found.statistic)))
        drawn = outcome(h, a, "spiegelhalter", "simulated", 4000)
        assert found.p_value == pytest.approx(drawn.p_value, abs=0.03)


def test_a_contradiction_tells_of_clusters_too():
    y, p = np.arange(200) % 2, np.full(200, 0.5)
    p[1] = 0.0
    found = calibration_test(y, probs=p, cluster=np.arange(200) // 5)
    assert found.sentence.startswith("p = 0 (Kuiper test, 200 examples in clusters)")


def test_spiegelhalter_of_clusters_has_the_sign_of_the_excess():
    y, cluster = np.arange(200) < 10, np.arange(200) // 10
    given = {"method": "spiegelhalter", "cluster": cluster}
    low = calibration_test(y, probs=np.full(200, 0.2), **given)
    # One cluster of excess 10 * 0.8, nineteen of -10 * 0.2: -30 / sqrt(64 + 19 * 4).
    assert low.statistic == pytest.approx(-30 / sqrt(140))
    assert low.p_value <= 0.05
    assert calibration_test(y, probs=np.full(200, 0.01), **given).statistic > 0


@pytest.mark.parametrize("kind", ["weights", "clusters", "copies"])
def test_sizes_hold_for_weights_and_clusters(kind):
    rejected = dict.fromkeys(NAMES, 0)
    for seed in range(100):
        rng = np.random.default_rng(seed)
        h = np.repeat(rng.beta(4, 1, 60), 5)
        u = np.repeat(rng.random(60), 5)
        if kind == "weights":
            h, u = rng.beta(4, 1, 300), rng.random(300)
        if kind == "clusters":
            u = np.where(rng.random(300) < 0.5, u, rng.random(300))
        given = {"cluster": np.arange(300) // 5}
        if kind == "weights":
            given = {"sample_weight": rng.lognormal(size=300)}
        for name in NAMES:
            options = {"method": name, "resamples": 199, "rng": seed}
            found = calibration_test(u < h, confidence=h, **options, **given)
            rejected[name] += found.p_value <= 0.05
    assert all(0 < count <= 11 for count in rejected.values()), rejected


# -- the record -------------------------------------------------------------------


def test_a_result_survives_json_and_reads_as_a_sentence():
    rng = np.random.default_rng(9)
    h = rng.random(500)
    found = calibration_test(rng.random(500) < h, confidence=h)
    assert CalibrationTest.from_json(found.to_json()) == found
    assert str(found) == (
        f"p = {found.p_value:.3f} (Kuiper test, 500 examples): no evidence of "
        "miscalibration (this does not prove calibration)."
    )
    for p, said in ((0.0004, "p < 0.001"), (0.04, "p = 0.040")):
        told = in_words(replace(found, p_value=p))
        assert told.startswith(f"{said} (Kuiper test, 500 examples): such a gap is ")
        assert ("very unlikely" in told) == (p < 0.01)
    sure = calibration_test([0, 0], confidence=[0.0, 1.0])
    assert CalibrationTest.from_json(sure.to_json()) == sure


def test_the_same_seed_gives_the_same_p_value():
    rng = np.random.default_rng(10)
    h = rng.random(100)
    a = rng.random(100) < h
    first, again = (calibration_test(a, confidence=h, rng=3) for _ in range(2))
    assert first == again


def test_a_sketch_is_refused_with_what_to_give_instead():
    sketch = cal.Sketch().update([1, 0, 1], probs=[0.9, 0.2, 0.7])
    with pytest.raises(
        TypeError, match=r"takes no Sketch: .* Give labels and scores, or"
    ):
        cal.calibration_test(sketch)


@pytest.mark.parametrize("clustered", [False, True])
def test_an_evaluation_is_tested_as_its_rows_are(clustered):
    rng = np.random.default_rng(0)
    p = rng.random(600)
    y = (rng.random(600) < p).astype(int)
    more = {"cluster": np.arange(600) // 6} if clustered else {}
    rows = cal.calibration_test(y, probs=p, **more)
    assert cal.calibration_test(cal.evaluate(y, probs=p, **more)) == rows
    assert ("600 examples in clusters)" in rows.sentence) == clustered
    with pytest.raises(TypeError, match="leave probs= out"):
        cal.calibration_test(cal.evaluate(y, probs=p), probs=p)


def test_walks_of_many_confidences_share_cells_and_keep_every_residual():
    rng = np.random.default_rng(0)
    h = rng.random(600)
    hit, groups = (rng.random(600) < h).astype(float), np.arange(600) % 20
    columns = Columns(h, None, hit)
    fine, coarse = (Walks.of(columns, groups, cells) for cells in (1000, 40))
    assert len(fine.h) == 600
    assert len(coarse.h) <= 42
    assert coarse.mass.sum() == pytest.approx(600)
    assert coarse.residual.sum(axis=1) == pytest.approx(fine.residual.sum(axis=1))
    assert (np.diff(coarse.h) > 0).all()


@pytest.mark.parametrize("method", ["kuiper", "ks", "spiegelhalter", "bootstrap"])
def test_names_of_clusters_and_the_way_rows_come_do_not_matter(method):
    """More than 128 clusters were put together by their names, or by their numbers."""
    rng = np.random.default_rng(0)
    number = np.repeat(np.arange(200), 5)
    h = rng.beta(1, 9, 1000)
    shared = 0.8 * rng.normal(size=200)[number]
    hit = rng.random(1000) < 1 / (1 + (1 - h) / h * np.exp(-shared))
    given = {"probs": h, "cluster": number}
    plain = calibration_test(hit, **given, method=method)
    ev = cal.evaluate(hit, **given, interval=None)
    assert calibration_test(ev, method=method) == plain
    renamed = {"probs": h, "cluster": np.char.add("P", number.astype(str))}
    assert calibration_test(hit, **renamed, method=method) == plain
    if method == "spiegelhalter":
        sums = np.bincount(number, (hit - h) * (1 - 2 * h))
        z = sums.sum() / np.sqrt(sums @ sums)
        assert plain.statistic == pytest.approx(z)
