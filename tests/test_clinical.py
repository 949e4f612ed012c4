"""Clinical measures and skill: closed forms, other fits, peers, edge cases."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import chi2

import calibrant as cal
from calibrant._verbs import clinical
from calibrant._verbs.clinical import (
    _in_the_large,
    _ratio,
    _scaled,
    fit,
    local_linear,
    logistic,
)
from calibrant._verbs.decisions import of_square
from calibrant._verbs.reading import read_sample
from calibrant.recalibration import PlattScaling

PEERS = Path(__file__).parent.parent / "benchmarks" / "peer_decisions.json"
REAL = ["adult_random_forest", "fivethirtyeight_governors"]


def risks(n=1200, seed=0, temperature=1.4):
    rng = np.random.default_rng(seed)
    p = rng.beta(1, 3, n)
    return (rng.random(n) < expit(logit(p) / temperature)).astype(int), p


def test_skill_of_an_evaluation_is_that_of_its_rows():
    y, p = risks()
    for more in ({}, {"sample_weight": 1.0 + y % 2}, {"cluster": np.arange(1200) // 3}):
        for divergence in ("brier", "log"):
            ours = cal.skill(cal.evaluate(y, probs=p, **more), divergence=divergence)
            rows = cal.skill(y, probs=p, divergence=divergence, **more)
            assert ours == pytest.approx(rows)
            assert ours.interval == pytest.approx(rows.interval)
    with pytest.raises(ValueError, match="skill of an Evaluation is that of one event"):
        cal.skill(cal.evaluate(y, probs=p, target="top-label"))


def test_clinical_of_an_evaluation_heeds_its_clusters_in_every_number():
    y, p = risks()
    cluster = np.arange(1200) // 12
    rows = cal.clinical(y, probs=p, cluster=cluster)
    ours = cal.clinical(cal.evaluate(y, probs=p, cluster=cluster))
    assert ours.spiegelhalter_p == rows.spiegelhalter_p
    assert str(rows).startswith("model: 1,200 examples in 100 clusters, ")
    assert "clusters" not in str(cal.clinical(y, probs=p))


def test_the_reason_for_a_missing_slope_is_the_one_at_hand():
    y, p = risks()

    def reason(y, p):
        return str(cal.clinical(y, probs=p)).splitlines()[-1]

    assert reason(0 * y, p).endswith("slope: there are no events.")
    assert reason(0 * y + 1, p).endswith("slope: every example is an event.")
    assert "risks are exactly 0 or 1" in reason(y, np.where(p > 0.5, 1.0, p))
    assert reason(y, 0 * p + 0.3).endswith("slope: all risks are equal.")
    assert reason((p > 0.3).astype(int), p).endswith(
        "slope: risks separate the events."
    )


def test_weighted_events_are_printed_short():
    y, p = risks()
    weight = np.random.default_rng(0).random(1200)
    text = str(cal.clinical(y, probs=p, sample_weight=weight))
    assert (
        f"{cal.clinical(y, probs=p, sample_weight=weight).events:.1f} weighted" in text
    )


def test_means_ratios_and_scaled_brier_are_what_they_are_called():
    y, p = risks()
    found = cal.clinical(y, probs=p)
    assert found.rate == pytest.approx(y.mean())
    assert found.mean_risk == pytest.approx(p.mean())
    assert found.in_the_large == pytest.approx(y.mean() - p.mean())
    assert found.oe_ratio == pytest.approx(y.sum() / p.sum())
    assert found.brier == pytest.approx(((p - y) ** 2).mean())
    assert found.scaled_brier == pytest.approx(1 - ((p - y) ** 2).mean() / y.var())
    assert found.c_statistic == cal.auroc(y, probs=p)
    assert found.events == y.sum()


def test_intercepts_and_slope_solve_their_equations():
    y, p = risks()
    found = cal.clinical(y, probs=p)
    shift = brentq(lambda a: expit(a + logit(p)).mean() - y.mean(), -20, 20)
    assert found.intercept == pytest.approx(shift, abs=1e-9)
    platt = PlattScaling(scores="probs", smoothing=0).fit(p, y)
    assert found.slope == pytest.approx(platt.slope_[0], abs=1e-5)
    assert found.joint_intercept == pytest.approx(platt.intercept_[0], abs=1e-5)
    fitted = expit(found.joint_intercept + found.slope * logit(p))
    assert fitted.mean() == pytest.approx(y.mean(), abs=1e-9)
    assert (fitted * logit(p)).mean() == pytest.approx((y * logit(p)).mean(), abs=1e-9)


def test_local_linear_fits_reproduce_lines_and_the_brute_force_of_lowess():
    rng = np.random.default_rng(1)
    x, w = np.sort(rng.random(60)), np.ones(60)
    L = local_linear(x, w)
    assert pytest.approx(2 * x + 1, abs=1e-9) == L @ (2 * x + 1)
    y = rng.random(60)
    for i in (0, 17, 59):
        far = np.sort(np.abs(x - x[i]))[39] * (1 + 1e-9)  # 40 of 60 are two thirds
        k = np.maximum(1 - (np.abs(x - x[i]) / far) ** 3, 0) ** 3
        line = np.polyfit(x, y, 1, w=np.sqrt(k))
        assert (L @ y)[i] == pytest.approx(np.polyval(line, x[i]), abs=1e-9)


def _sandwich(y, p):
    """Errors without what undoes the leverage of rows, as statsmodels has them."""
    rows = read_sample(y, {"probs": p}, None, None, 0.95).sample.rows
    z = rows.columns.log_odds
    ones = np.ones((len(z), 1))
    alone, both = fit(rows, ones, z), fit(rows, np.column_stack([ones, z]), 0 * z)
    errors = [rows.error_of(x) for x in (*alone.moved.T, *both.moved.T)]
    return dict(zip(("intercept", "joint_intercept", "slope"), errors, strict=True))


@pytest.mark.parametrize("name", REAL)
def test_statsmodels_and_the_definitions_of_val_prob(name, data):
    file = data(name)
    y = file["outcome"].astype(int)
    p = np.clip(file["prob"].astype(float), 1e-6, 1 - 1e-6)
    theirs = json.loads(PEERS.read_text())["files"][name]["statsmodels"]
    ours = cal.clinical(y, probs=p, resamples=100)
    for key in ("intercept", "slope", "joint_intercept"):
        value, error = theirs[key]
        found = getattr(ours, key)
        assert found == pytest.approx(value, abs=1e-6)
        assert _sandwich(y, p)[key] == pytest.approx(error, rel=1e-3)
        assert 1 < np.ptp(found.interval) / 2 / 1.96 / error < 1.02  # Student, leverage
    some = np.sort(np.random.default_rng(0).permutation(len(y))[:4000])
    part = cal.clinical(y[some], probs=p[some], resamples=100)
    for key in ("ici", "e50", "e90", "emax"):
        assert getattr(part, key) == pytest.approx(theirs[key], abs=2e-3)


def test_frequency_repeats_weights_have_no_unit_and_copies_change_nothing():
    y, p = risks(300, 2)
    times = np.random.default_rng(3).integers(1, 4, 300)
    one = cal.clinical(y, probs=p, frequency=times).estimates
    many = cal.clinical(np.repeat(y, times), probs=np.repeat(p, times)).estimates
    light, heavy = (
        cal.clinical(y, probs=p, sample_weight=u * times).estimates for u in (1, 3)
    )
    group = np.repeat(np.arange(300), 4)
    four = cal.clinical(np.repeat(y, 4), probs=np.repeat(p, 4), cluster=group).estimates
    alone = cal.clinical(y, probs=p).estimates
    for key, found in one.items():
        assert found == pytest.approx(many[key], abs=1e-9), key
        assert light[key] == pytest.approx(heavy[key], abs=1e-9), key
        assert four[key] == pytest.approx(alone[key], abs=1e-9), key
    for key in ("slope", "intercept", "oe_ratio", "scaled_brier"):
        width = np.ptp(alone[key].interval)
        assert np.ptp(four[key].interval) == pytest.approx(width, rel=0.02), key


def test_spiegelhalter_is_that_of_the_test():
    y, p = risks()
    found = cal.clinical(y, probs=p)
    test = cal.calibration_test(y, probs=p, method="spiegelhalter")
    assert (found.spiegelhalter, found.spiegelhalter_p) == (
        test.statistic,
        test.p_value,
    )


def test_no_slope_where_risks_are_certain_or_separate_the_events():
    y, p = risks(200)
    p[0] = 0.0
    certain = cal.clinical(y, probs=p)
    assert np.isnan(certain.slope)
    assert "No intercept or slope" in str(certain)
    apart = cal.clinical([0] * 60 + [1] * 60, probs=np.linspace(0.1, 0.9, 120))
    assert np.isnan(apart.slope)
    assert np.isfinite(apart.intercept)


def test_no_events_and_few_rows_behave():
    none = cal.clinical([0] * 80, probs=[0.1, 0.2] * 40)
    assert none.oe_ratio == 0
    assert none.oe_ratio.interval[0] == 0 < none.oe_ratio.interval[1]
    assert np.isnan(none.c_statistic)
    few = cal.clinical([0, 1, 1], probs=[0.2, 0.6, 0.9])
    assert few.ici.interval is None
    assert cal.Clinical.from_json(few.to_json()).oe_ratio == few.oe_ratio


def test_soft_labels_have_no_spiegelhalter():
    found = cal.clinical(np.linspace(0, 1, 100), confidence=np.linspace(0.1, 0.9, 100))
    assert np.isnan(found.spiegelhalter)
    assert found.slope == pytest.approx(1.5, abs=0.5)


def test_the_record_prints_restores_and_frames():
    y, p = risks(300)
    found = cal.clinical(y, probs=p, name="ward")
    assert str(cal.Clinical.from_json(found.to_json())) == str(found)
    assert "ward: 300 examples" in str(found)
    frame = found.frame("pandas")
    assert frame["measure"].tolist() == [*found.estimates]
    assert frame["value"].tolist()[3] == float(found.oe_ratio)


# -- ranked probability score, and skill -----------------------------------------------------


def ordered_classes(n=400, k=5, seed=4):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), n)
    y = (rng.random(n)[:, None] > np.cumsum(p, axis=1)).sum(axis=1)
    return np.minimum(y, k - 1), p


def rps(y, p):
    below = np.cumsum(p, axis=1)[:, :-1]
    came = y[:, None] <= np.arange(p.shape[1] - 1)
    return ((below - came) ** 2).sum(axis=1)


def test_the_rps_is_a_divergence_that_dominates_its_counterpart():
    y, p = ordered_classes()
    ev = cal.evaluate(y, probs=p, divergence="rps")
    assert ev.decomposition.total == pytest.approx(rps(y, p).mean(), abs=1e-12)
    assert cal.Divergence is type(ev.sketch.divergences["rps"])
    assert ev.sketch.divergences["rps"].dominates
    binary = cal.evaluate(
        y > 2,
        probs=np.column_stack([p[:, :3].sum(1), p[:, 3:].sum(1)]),
        target="top-label",
        divergence="rps",
    )
    assert binary.decomposition.total == pytest.approx(binary.metrics["brier"] / 2)


@pytest.mark.parametrize(
    ("reference", "error", "told"),
    [
        (
            0.57,
            ValueError,
            "^reference must hold a forecast for each row, .* got 0.57;",
        ),
        ([0.5] * 3, ValueError, "^reference is read as probs: y must have one entry"),
        (
            [0.5, 2, 0.5, 0.5],
            ValueError,
            "^reference is read as probs: probs must be in",
        ),
        (["a"] * 4, TypeError, "^reference is read as probs: .* hold real numbers"),
    ],
)
def test_errors_about_a_reference_name_it(reference, error, told):
    with pytest.raises(error, match=told):
        cal.skill([1, 0, 1, 0], probs=[0.2, 0.3, 0.4, 0.5], reference=reference)


def test_skill_is_the_share_of_the_climatology_that_is_saved():
    y, p = ordered_classes()
    shares = np.tile(np.bincount(y, minlength=5) / len(y), (len(y), 1))
    found = cal.skill(y, probs=p, divergence="rps")
    assert found == pytest.approx(1 - rps(y, p).mean() / rps(y, shares).mean())
    given = cal.skill(y, probs=p, divergence="rps", reference=shares)
    assert given == pytest.approx(found)
    assert given.interval == pytest.approx(found.interval, rel=1e-9)
    assert cal.skill(y, probs=shares) == pytest.approx(0, abs=1e-12)
    assert cal.skill(y, probs=np.eye(5)[y]) == 1.0


def test_skill_of_one_event_is_the_scaled_brier():
    y, p = risks()
    weight = np.random.default_rng(5).random(len(y))
    for more in ({}, {"sample_weight": weight}, {"cluster": np.arange(len(y)) // 3}):
        found = cal.skill(y, probs=p, **more)
        scaled = cal.clinical(y, probs=p, **more).scaled_brier
        assert found == pytest.approx(scaled)
        assert found.interval == pytest.approx(scaled.interval)


def test_an_infinite_loss_has_no_skill():
    assert cal.skill([1, 0, 1], probs=[0.0, 0.4, 0.6], divergence="log") == -np.inf
    assert np.isnan(cal.skill([1, 1], probs=[0.6, 0.7]))


@pytest.mark.simulation
def test_intercept_and_slope_of_few_events_are_covered():
    """300 rows with 9 events; errors of the moves alone are too small."""
    held = {"slope": 0, "joint_intercept": 0, "scaled_brier": 0, "brier": 0}
    a, b = 0.6, 19.0
    square = a * b / (a + b) / (a + b + 1)  # E p(1 - p), the Brier score
    rate = a / (a + b)
    truth = {"slope": 1, "joint_intercept": 0, "brier": square}
    truth["scaled_brier"] = 1 - square / (rate * (1 - rate))
    for seed in range(200):
        rng = np.random.default_rng([seed, 5])
        p = np.clip(rng.beta(a, b, 300), 1e-9, 1)
        sample = read_sample(rng.random(300) < p, {"confidence": p}, None, None, 0.95)
        rows = sample.sample.rows
        found = {**logistic(sample.sample), "brier": of_square(rows, 0.95)}
        found["scaled_brier"] = _scaled(sample.sample)
        for key in held:
            low, high = found[key].interval or (-np.inf, np.inf)
            held[key] += low <= truth[key] <= high
    for key, count in held.items():
        assert count >= 0.925 * 200, key


def test_whole_clusters_draw_a_fit_towards_themselves():
    """With as many copies of each row, the error is that of the rows, leverage and all."""
    y, p = risks(60)
    plain = cal.clinical(y, probs=p, cluster=np.arange(60), resamples=100)
    copies = np.repeat(np.arange(60), 3)
    found = cal.clinical(y[copies], probs=p[copies], cluster=copies, resamples=100)
    for key in ("intercept", "slope", "joint_intercept"):
        one, other = getattr(plain, key), getattr(found, key)
        assert np.ptp(other.interval) == pytest.approx(np.ptp(one.interval), rel=0.02)
    assert np.ptp(plain.slope.interval) > 1.03 * 2 * 2.001 * _sandwich(y, p)["slope"]


def test_the_ratio_of_one_event_is_that_of_poisson():
    y, p = np.arange(400) == 0, np.full(400, 0.0125)
    found = cal.clinical(y, probs=p, resamples=100)
    exact = np.array([chi2.ppf(0.025, 2), chi2.ppf(0.975, 4)]) / 2 / 5
    np.testing.assert_allclose(found.oe_ratio.interval, exact, rtol=0.03)
    assert found.oe_ratio.interval[1] < 1.02 * found.rate.interval[1] / 0.0125


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("events", [0, 1, 4, 10, 60])
def test_ratio_and_difference_agree_on_what_is_expected(events, clustered):
    y, cluster = np.arange(1000) % 997 < events, np.arange(1000) // 20
    more = {"cluster": cluster} if clustered else {}
    for risk in np.geomspace(0.0005, 0.1, 30):
        p = np.full(1000, risk)
        given = read_sample(y, {"probs": p}, more.get("cluster"), None, 0.95).sample
        (low, high), off = _ratio(given).interval, _in_the_large(given).interval
        assert (low <= 1 <= high) == (off[0] <= 0 <= off[1])
        assert low <= y.mean() / risk <= high


@pytest.mark.simulation
@pytest.mark.parametrize("events", [1, 3, 50])
@pytest.mark.parametrize("clustered", [False, True])
def test_the_ratio_of_few_events_is_covered(events, clustered):
    held = 0
    for seed in range(200):
        rng = np.random.default_rng([seed, events])
        p, cluster = rng.beta(1, 800 / events - 1, 800), rng.integers(0, 20, 800)
        often = rng.gamma(8, 1 / 8, 20)[cluster] if clustered else 1.0
        y, names = rng.random(800) < p * often, cluster if clustered else None
        sample = read_sample(y, {"probs": p}, names, None, 0.95).sample
        low, high = _ratio(sample).interval
        held += low <= 1 <= high
    assert held >= 0.92 * 200


def test_the_bound_advised_for_a_risk_of_0_moves_no_other():
    rng = np.random.default_rng(1)
    p = rng.beta(1, 200, 2000)
    p[p.argmin()] = 0.0
    text = str(cal.clinical(rng.random(2000) < p, probs=p, resamples=100))
    bound = re.search(r"a risk is exactly 0 .*np.clip\(p, (\S+), 1 - \1\)", text)[1]
    np.testing.assert_array_equal(np.clip(p, float(bound), 1)[p > 0], p[p > 0])
    assert float(bound) == pytest.approx(p[p > 0].min() / 2, rel=0.05)
    text = str(cal.clinical([0, 1, 1], probs=[0.0, 1.0, 0.0], resamples=100))
    assert "3 of 3 risks are exactly 0 or 1" in text


def certain(n=2000):
    """Risks of which a quarter are exactly 0, some of them wrongly."""
    rng = np.random.default_rng(0)
    p = np.r_[np.zeros(n // 4), np.linspace(0.05, 0.95, n - n // 4)]
    y = (rng.random(n) < p).astype(int)
    y[: n // 40] = 1
    return y, p


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "500 of 2,000 risks are"),
        ({"cluster": np.arange(2000) // 20}, "500 of 2,000 risks are"),
        ({"frequency": np.full(2000, 5)}, "2,500 of 10,000 risks are"),
        (
            {"sample_weight": np.where(np.arange(2000) < 500, 3.0, 1.0)},
            "50 % of the risks, by weight, are",
        ),
    ],
)
def test_a_sketch_refuses_a_slope_where_rows_do_and_both_count_examples(more, said):
    y, p = certain()
    rows = cal.clinical(y, probs=p, resamples=100, **more)
    ours = cal.clinical(cal.Sketch().update(y, probs=p, **more), resamples=100)
    for found in (rows, ours):
        assert np.isnan(found.slope)
        assert found.lacking.startswith(f"{said} exactly 0 or 1")
    assert "np.clip" in rows.lacking
    assert "np.clip" not in ours.lacking  # a sketch does not know the least other risk


def test_a_contradicted_risk_is_said_however_large_z_is():
    y, p = certain(40_000)
    found = cal.clinical(y, probs=p**2, resamples=100)
    assert found.spiegelhalter > 40
    assert "(p = 0: a risk of 0 or 1 was contradicted)" in str(found)
    found = cal.clinical(y, probs=np.clip(p**2, 1e-3, 1), resamples=100)
    assert found.spiegelhalter > 40
    assert found.spiegelhalter_p > 0
    assert "(p < 0.001)" in str(found)


def test_headings_tell_how_many_clusters_there_are_and_of_a_sketch_at_least():
    y, p = risks()
    for count in (100, 300):
        cluster = np.arange(1200) % count
        rows = cal.risk_coverage(y, probs=p, cluster=cluster)
        assert f"1,200 examples in {count} clusters, risk" in str(rows)
        assert type(rows).from_json(rows.to_json()).n_clusters == count
        ours = cal.clinical(
            cal.Sketch().update(y, probs=p, cluster=cluster), resamples=100
        )
        assert ours.folded == (count > 128)
        more = " or more" * ours.folded
        assert f"1,200 examples in {ours.n_clusters}{more} clusters, " in str(ours)
        assert type(ours).from_json(ours.to_json()).folded == ours.folded


@pytest.mark.parametrize("turned", [False, True])
def test_few_events_are_said_as_the_audit_says_them(turned):
    rng = np.random.default_rng(0)
    for events in (1, 12, 19, 30):
        p, y = rng.beta(1, 20, 400), np.zeros(400, bool)
        y[np.argsort(-p)[:events]] = True
        y, p = (~y, 1 - p) if turned else (y, p)
        text = str(cal.clinical(y, probs=p, resamples=100))
        told = [x for x in cal.evaluate(y, probs=p).audit() if x.code == "few-events"]
        what = "non-events" if turned else "events"
        assert (f"rest on few {what} ({events};" in text) == bool(told) == (events < 20)
    y = np.arange(400) == 0
    text = str(cal.clinical(y, probs=p / 4, resamples=100))
    assert text.startswith("model: 400 examples, 1 event\n")


def test_risks_of_exactly_0_have_no_finite_ratio():
    none, some = (
        _ratio(read_sample(y, {"probs": np.zeros(3)}, None, None, 0.95).sample)
        for y in ([0, 0, 0], [0, 1, 0])
    )
    assert np.isnan(none)
    assert some == np.inf
    assert some.interval is None


def test_a_fit_without_an_end_is_none(monkeypatch):
    y, p = risks(200)
    rows = read_sample(y, {"probs": p}, None, None, 0.95).sample.rows
    twice = np.stack([logit(p), 2 * logit(p)], axis=1)
    assert fit(rows, twice, np.zeros(200)) is None  # columns that say the same
    one = np.ones((200, 1))
    assert fit(rows, one, np.zeros(200)) is not None
    monkeypatch.setattr(clinical, "STEPS", 1)
    assert fit(rows, one, np.zeros(200)) is None


def test_skill_of_a_top_label_given_by_one_column_is_that_of_two():
    y, p = risks(300)
    both = np.stack([1 - p, p], axis=1)
    one = cal.skill(y, probs=p, target="top-label")
    two = cal.skill(y, probs=both, target="top-label")
    assert one == pytest.approx(two)
    assert one.interval == pytest.approx(two.interval)


def test_the_climatology_of_weighted_rows_has_their_shares():
    y, p = ordered_classes()
    w = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    shares = np.array([w[y == j].sum() for j in range(5)]) / w.sum()
    hot = np.eye(5)[y]
    loss, usual = (((hot - x) ** 2).sum(axis=1) @ w for x in (p, shares))
    assert cal.skill(y, probs=p, sample_weight=w) == pytest.approx(1 - loss / usual)


def test_a_contradicted_risk_of_0_is_named_beside_its_p_value():
    rng = np.random.default_rng(3)
    p = rng.beta(1, 40, 2000)
    y = (rng.random(2000) < p).astype(int)
    assert "contradicted" not in str(cal.clinical(y, probs=p))
    p[0], y[0] = 0, 1
    assert "(p = 0: a risk of 0 or 1 was contradicted)" in str(cal.clinical(y, probs=p))


@pytest.mark.parametrize("p", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("y", [0, 1])
def test_one_example_has_no_interval_of_a_mean(y, p):
    found, ev = cal.clinical([y], probs=[p]), cal.evaluate([y], probs=[p])
    assert found.rate.interval is not None
    for name in ("mean_risk", "in_the_large", "oe_ratio", "brier"):
        assert getattr(found, name).interval is None, name
    area = cal.murphy([y], probs=[p]).area
    assert area.interval is ev.metrics["brier"].interval is None
    assert str(found).startswith("model: 1 example, ")
    assert "nan, nan" not in str(cal.murphy([y], probs=[p]))


def test_no_distance_is_longer_than_the_range_of_chances():
    y, p = [1, 1, 1, 0, 0, 1], [0.0047, 0.0079, 0.4395, 0.0001, 0.1297, 0.2817]
    found = cal.clinical(y, probs=p)
    assert found.emax == 1  # a line through so few points leads to 1.15
    assert cal.Clinical.from_json(found.to_json()).emax == 1


def test_only_what_is_missing_is_said_to_be():
    y = np.arange(200) % 4 == 0
    one = str(cal.clinical(y, probs=np.full(200, 0.3)))
    assert "No slope: all risks are equal." in one
    assert "No intercept or slope" in str(cal.clinical(y, probs=np.where(y, 1.0, 0.3)))
