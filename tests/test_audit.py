"""Audits: every rule fires where it should, says why, and is silent on a good model."""

import json
import re
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from command import calibrant
from handmade import model, seeded, small, studied
from hypothesis import given, settings
from hypothesis import strategies as st
from make import balanced
from rowful import keep, rowful
from strategies import pairs

import calibrant as cal
from calibrant._base.comparison import Comparison, Effect
from calibrant._base.measures import is_trivial, spread_of
from calibrant._base.records import SEVERITIES, Finding
from calibrant._views.words import direction
from calibrant.audit import _rules as comparison_rules
from calibrant.audit._audit import CODES, audit, docs_page
from calibrant.recalibration import TemperatureScaling
from calibrant.report import build
from calibrant.report._payload import badges


def codes(models):
    return [finding.code for finding in audit(models)]


def only(models, code):
    (found,) = [finding for finding in audit(models) if finding.code == code]
    return found


@cache
def good(n=4000, seed=0, name="good"):
    """A calibrated model of three classes."""
    rng = np.random.default_rng(seed)
    z = 2 * rng.normal(size=(n, 3))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    return rowful(y, logits=z, name=name)


@cache
def recalibrated(n=6000):
    """An over-confident model recalibrated in the paper's ways, with rows kept."""
    rng = np.random.default_rng(1)
    z = 2 * rng.normal(size=(n, 4))
    y = (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
    fit, test = slice(n // 3), slice(n // 3, n)
    found = cal.study(y[fit], y[test], logits=(z[fit], z[test]))
    models = []
    for ev in found:
        kind, scores = found.recalibrators[ev.name].recalibrate(z[test])
        models.append(rowful(y[test], name=ev.name, **{kind: scores}))
    return Comparison(tuple(models), found.protocol, found.effects)


# -- silence ----------------------------------------------------------------------


def test_a_good_model_has_no_findings():
    assert audit(good()) == ()


def test_a_temperature_scaled_network_has_no_findings(data):
    arrays = data("cifar10_akamaster_resnet32")
    z, y = arrays["logits"], arrays["labels"]
    ts = TemperatureScaling().fit(z[:2000], y[:2000])
    assert audit(rowful(y[2000:], probs=ts.predict_proba(z[2000:]), name="TS")) == ()


def test_real_models_that_are_fine_are_miscalibrated_at_most(data):
    for name in ("imagenet5k_efficientnet_lite0", "mnist_cleanlab_cv"):
        arrays = data(name)
        scores = {k: arrays[k] for k in ("probs", "logits") if k in arrays}
        ev = rowful(arrays["labels"], name=name, **scores)
        low, _ = ev.decomposition.calibration.interval
        assert codes(ev) == (["miscalibrated"] if low > 0 else [])


# -- one model --------------------------------------------------------------------


def test_one_confidence_for_all_rows_is_trivial():
    found = only(
        rowful([1, 1, 0, 1] * 500, confidence=[0.75] * 2000), "trivial-confidence"
    )
    assert found.severity == "serious"
    assert found.evidence["largest_share"] == 1.0
    assert "few-confidences" not in codes(rowful([1, 0] * 500, confidence=[0.5] * 1000))


def test_one_confidence_that_is_off_is_not_called_calibrated():
    ev = cal.evaluate_pairs([1, 0, 0, 0] * 100, [0.9] * 400)
    found = only(ev, "trivial-confidence")
    assert "miscalibrated" in codes(ev)
    assert "is calibrated" not in found.text
    assert found.text.endswith(
        "the same confidence: it cannot tell one example from another."
    )


def noisy_mean(noise, n=2000, p=0.8, seed=0):
    """Mean replacement with noise on top: the outcomes, and confidences near their mean."""
    rng = np.random.default_rng([seed, n])
    hit = rng.random(n) < p
    return hit, np.clip(hit.mean() + noise * rng.normal(size=n), 0, 1)


def plain(hit, h, name="model", **options):
    return cal.evaluate_pairs(hit, h, name=name, interval=None, **options)


@pytest.mark.parametrize("noise", [1e-6, 1e-5, 1e-4, 1e-3])
@pytest.mark.parametrize(("n", "p"), [(200, 0.5), (2000, 0.8), (20_000, 0.95)])
def test_noise_does_not_hide_mean_replacement(noise, n, p):
    for seed in range(3):
        ev = plain(*noisy_mean(noise, n, p, seed))
        found = only(ev, "trivial-confidence")
        assert found.evidence["spread"] == pytest.approx(noise, rel=0.15)
        assert "(nearly) the same confidence" in found.text
        assert is_trivial(cal.Evaluation.from_json(ev.to_json()))


def test_noise_on_the_mean_does_not_win_a_calibration_column():
    rng = np.random.default_rng(1)
    h = rng.beta(2, 1, 2000)
    hit = rng.random(2000) < h**1.3
    noisy = plain(hit, hit.mean() + 1e-4 * rng.normal(size=2000), "noisy mean")
    found = Comparison((noisy, plain(hit, h, "honest")))
    assert noisy.metrics["ece"] < found["honest"].metrics["ece"]
    with pytest.warns(UserWarning, match="explains .almost. nothing"):
        assert found.best("ece").name == "honest"
    assert found.best("brier").name == "honest"


def weak(n, d, p=0.5, shrunk=1.0, seed=0):
    """Two normal laws d apart, calibrated, or with log-odds shrunk to their mean."""
    rng = np.random.default_rng([seed, n])
    hit = rng.random(n) < p
    z = np.log(p / (1 - p)) + shrunk * (d * (rng.normal(size=n) + d * hit) - d * d / 2)
    return hit, 1 / (1 + np.exp(-z))


def rare(n, seed=0):
    """Calibrated events of probability 0.0001 to 0.01."""
    rng = np.random.default_rng([seed, n])
    h = 10 ** rng.uniform(-4, -3, n) * np.where(rng.random(n) < 0.02, 10, 1)
    return rng.random(n) < h, h


@pytest.mark.parametrize(
    "rows",
    [
        weak(200, 0.178),  # AUROC 0.55
        weak(20_000, 0.178),
        weak(20_000, 0.178, p=0.9),
        weak(20_000, 0.178, shrunk=0.5),
        weak(50_000, 0.07),  # AUROC 0.52
        weak(300, 1.2, shrunk=0.02),  # narrow, and AUROC 0.8
        weak(300, 2.0),
        rare(20_000),
        rare(100_000),
    ],
)
def test_weak_narrow_and_rare_are_not_trivial(rows):
    assert not is_trivial(plain(*rows))


def test_confidences_equal_to_three_digits_are_trivial_in_whatever_order():
    hit, h = weak(2000, 1.2)
    ev = plain(hit, 0.5 + 1e-5 * (h - 0.5))
    assert ev.metrics["auroc"] > 0.75
    assert is_trivial(ev)


def test_what_confidences_gain_is_their_log_likelihood():
    hit, h = weak(5000, 0.3)
    ev = plain(hit, h, bins=1000)
    m = h.mean()
    gain = np.where(hit, np.log(h / m), np.log((1 - h) / (1 - m))).sum()
    middle, spread, found = spread_of(ev)
    assert (middle, spread) == pytest.approx((m, h.std()), rel=1e-3)
    assert found == pytest.approx(gain, rel=0.05)


def test_every_class_trivial_makes_a_model_trivial():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    probs = np.full((600, 3), 1 / 3) + 1e-6 * rng.normal(size=(600, 3))
    probs /= probs.sum(axis=1, keepdims=True)
    assert is_trivial(cal.evaluate(y, probs=probs, target="class-wise"))
    z = 2 * rng.normal(size=(600, 3))
    assert not is_trivial(cal.evaluate(y, logits=z, target="class-wise"))


# -- verdicts follow the interval ---------------------------------------------------


def over_sure(n=4000, seed=0, power=1.5, above=0.0):
    """Confidences that come true with probability h^power from one place on."""
    rng = np.random.default_rng([seed, n])
    h = rng.uniform(0.5, 1, n)
    return rng.random(n) < np.where(h > above, h**power, h), h


def test_miscalibration_has_size_direction_region_and_worth():
    hit, h = over_sure(power=3.0, above=0.85)
    ev = cal.evaluate_pairs(hit, h, name="net")
    found, error = only(ev, "miscalibrated"), ev.decomposition.calibration
    assert found.severity == "warning"
    seen = found.evidence
    assert seen["calibration"] == error
    assert (seen["low"], seen["high"]) == error.interval
    assert seen["confidence_gap"] == ev.metrics["confidence_gap"]
    inside = (h >= seen["region_low"]) & (h <= seen["region_high"])
    assert seen["region_low"] > 0.8
    assert seen["region_share"] == pytest.approx(inside.mean())
    assert seen["region_gap"] == pytest.approx((h - hit)[inside].mean())
    assert (
        f"net is miscalibrated (over-confident): calibration error {error:.4f} ["
        in (found.text)
    )
    assert "% of the Brier score; most visible at confidences from 0.8" in found.text
    assert "it is worth it" in found.advice


def wrong_in(start, stop, h):
    """Where confidences of these ranks are right half of the time, others always."""
    off = (np.arange(len(h)) >= start) & (np.arange(len(h)) < stop)
    hit = np.where(off, np.arange(len(h)) % 2, 1)
    return only(cal.evaluate_pairs(hit, np.sort(h)), "miscalibrated")


@pytest.mark.parametrize(
    ("start", "place"),
    [
        (0, "with the lowest confidence"),
        (200, "that follow the 20 % with the lowest confidence"),
        (900, "with the highest confidence"),
    ],
)
def test_a_region_whose_ends_round_away_is_told_by_ranks(start, place):
    h = 1 - np.geomspace(1e-5, 1e-13, 1000)
    found = wrong_in(start, start + 100, h)
    percent = f"{100 * found.evidence['region_share']:.0f} %"
    assert (
        f"; most visible among the {percent} of examples {place}, where" in found.text
    )


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.floats(-3, 3), st.floats(0.2, 3))
def test_the_range_that_a_region_names_holds_as_many_examples_as_it_says(
    seed, shift, scale
):
    rng = np.random.default_rng(seed)
    h = np.sort(1 / (1 + np.exp(-shift - scale * rng.normal(size=600))))
    start = int(rng.integers(0, 500))
    text = wrong_in(start, start + 100, h).text
    named = re.search(r"at (about )?([\d.]+) to ([\d.]+) \((\d+) % of examples", text)
    if named:
        about, low, high, percent = named.groups()
        inside = ((h >= float(low)) & (h <= float(high))).mean()
        # Told from bins alone, within which examples are not quite evenly spread.
        assert abs(100 * inside - int(percent)) <= (3 if about else 0.5 + 1e-9)


def test_miscalibration_that_no_one_need_mend_is_a_note():
    rng = np.random.default_rng(0)
    h = rng.uniform(0.3, 0.7, 60_000)
    ev = plain(rng.random(60_000) < h - 0.02, h)
    found = only(ev, "miscalibrated")
    assert found.severity == "note"
    assert "hardly worth it" in found.advice


def test_recalibrating_vectors_may_save_more_than_the_error_of_the_top_label():
    """So no upper end is told of it; of one forecast d_CAL is all there is to save."""
    rng = np.random.default_rng(0)
    z = 3 * rng.normal(size=(6000, 5))
    y = (z / 3 + rng.gumbel(size=z.shape)).argmax(axis=1)
    found = cal.study(y, logits=z, split=0.5, methods=["temperature"])
    parts, after = found[0].decomposition, found["Temperature"].metrics["brier"]
    least, most = (x / parts.total for x in parts.calibration.interval)
    assert 1 - after / parts.total > most  # a range would have been wrong
    advice = only(found[0], "miscalibrated").advice
    assert advice == (
        f"Recalibration can lower the Brier score by at least {100 * least:.2g} %: it is "
        "worth it (calibrant.study)."
    )
    one = cal.evaluate(y == 1, probs=1 / (1 + np.exp(-z[:, 1])), target="positive")
    ends = [x / one.decomposition.total for x in one.decomposition.calibration.interval]
    low, high = (f"{100 * x:.2g}" for x in ends)
    assert f"Brier score by {low} to {high} %:" in only(one, "miscalibrated").advice


def test_small_errors_are_told_with_digits_that_show_them():
    rng = np.random.default_rng(0)
    h = rng.uniform(1e-3, 2e-3, 60_000)
    found = only(plain(rng.random(60_000) < 4 * h, h, name="rare"), "miscalibrated")
    numbers = (found.evidence[x] for x in ("calibration", "low", "high"))
    value, low, high = (f"{x:.6f}" for x in numbers)
    assert f"calibration error {value} [{low}, {high}]" in found.text


def test_the_lower_end_of_a_miscalibrated_model_does_not_print_as_0():
    ev = good()
    error = cal.Estimate(0.0004, (0.00003, 0.0011), "close pairs")
    parts = replace(ev.decomposition, calibration=error)
    small = replace(ev, decompositions={**ev.decompositions, "brier": parts})
    told = "0.00040 [0.00003, 0.00110]"
    assert f"calibration error {told}" in only(small, "miscalibrated").text
    assert told in str(small)


def test_errors_of_both_signs_have_no_direction():
    rng = np.random.default_rng(0)
    h = rng.uniform(0.1, 0.9, 6000)
    hit = rng.random(6000) < 0.5 + 0.4 * (h - 0.5)
    ev = cal.evaluate(hit.astype(int), probs=h)
    assert "(no clear direction)" in only(ev, "miscalibrated").text
    wave = 0.1 * np.sign(np.sin(10 * np.pi * h))
    mixed = plain(rng.random(6000) < h + wave, h)  # seen by 15 bins: 0.08 of 0.1
    assert "too high and too low by about 0.0" in only(mixed, "miscalibrated").text
    assert direction(ev, 0.0) == ""

    low = cal.evaluate(hit.astype(int), probs=h**2)
    assert "(forecasts too low)" in only(low, "miscalibrated").text


def test_a_direction_against_that_of_the_region_is_one_on_average():
    rng = np.random.default_rng(0)
    h = rng.uniform(0.1, 0.9, 20_000)
    off = np.where(h > 0.8, -0.3, 0.09)  # most of the error above, most examples below
    found = only(plain(rng.random(20_000) < h + off, h), "miscalibrated")
    assert "(under-confident on average)" in found.text
    assert found.evidence["region_gap"] > 0 > found.evidence["confidence_gap"]


def test_an_infinite_loss_has_no_share():
    hit, h = over_sure()
    h[0], hit[0] = 1.0, False
    found = only(cal.evaluate_pairs(hit, h, divergence="log"), "miscalibrated")
    assert "% of the" not in found.text
    assert "Recalibrate" in found.advice


def test_a_region_is_the_lightest_run_with_half_of_the_error():
    rng = np.random.default_rng(0)
    for _ in range(50):
        size, weight = rng.exponential(size=8) ** 3, rng.uniform(1, 2, 8)
        runs = [
            (weight[i:j].sum(), i, j)
            for i in range(8)
            for j in range(i + 1, 9)
            if size[i:j].sum() >= size.sum() / 2
        ]
        assert comparison_rules.shortest_run(size, weight) == min(runs)[1:]


def test_no_verdict_where_the_interval_holds_0():
    hit, h = balanced(1000)
    ev = cal.evaluate_pairs(hit, h, name="fair")
    text = " ".join(str(ev).split())
    assert "miscalibrated" not in codes(ev)
    assert (
        "no evidence of miscalibration: the interval of d_CAL reaches from 0 to 0.0"
        in text
    )
    assert "-confident" not in text
    several = str(Comparison((ev, cal.evaluate_pairs(hit**2, h**3, name="bad"))))
    assert "No evidence of miscalibration: fair." in several
    assert "bad is miscalibrated" in " ".join(several.split())


@pytest.mark.parametrize("keys", [["ece"], ["ece", "smooth_ece"]])
def test_an_interval_of_ece_that_excludes_0_is_weak_evidence_beside_d_cal(keys):
    ev = cal.evaluate_pairs(*balanced(1000), name="fair")
    off = {key: cal.Estimate(0.03, (0.001, 0.06)) for key in keys}
    ev = replace(ev, metrics={**ev.metrics, **off})
    text = " ".join(str(ev).split())
    which = {1: "interval of ECE excludes", 2: "intervals of ECE and SmoothECE exclude"}
    told = f"the {which[len(keys)]} 0, that of d_CAL reaches from 0 to 0.0"
    assert f"weak evidence of miscalibration: {told}" in text
    assert "no evidence" not in text
    assert "No evidence" not in str(Comparison((ev,)))


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_mean_within_its_interval_has_no_direction(sign):
    ev = good(300)
    gap = sign * 0.04
    for interval, word in (((gap - 0.05, gap + 0.05), False), ((gap, gap), True)):
        metrics = {**ev.metrics, "confidence_gap": cal.Estimate(gap, interval)}
        told = replace(ev, metrics=metrics)
        assert bool(direction(told)) is word
        assert ("accuracy by 0.040" in str(told)) is word


def test_without_an_interval_there_is_no_verdict():
    few = cal.evaluate_pairs([1, 0, 1, 1] * 4, [0.9, 0.4, 0.8, 0.7] * 4)
    assert few.decomposition.calibration.interval is None
    assert "miscalibrat" not in str(few)


@pytest.mark.simulation
def test_calibrated_models_are_accused_as_often_as_their_interval_is_wrong():
    accused = 0
    for seed in range(60):
        hit, h = over_sure(300, seed, power=1.0)
        ev = plain(hit, h)
        low, _ = ev.decomposition.calibration.interval
        found = "miscalibrated" in codes(ev)
        assert found == (low > 0)
        accused += found
    assert accused <= 6  # 4 % of 60 are 2.4; more than 6 have probability 0.01


# -- few events, weights, duplicates, clusters ---------------------------------------


@pytest.mark.parametrize(("events", "fires"), [(0, True), (19, True), (20, False)])
def test_few_events_are_counted_on_the_rarer_side(events, fires):
    hit = np.arange(4000) < events
    h = np.random.default_rng(0).uniform(0.004, 0.01, 4000)
    for outcome, forecast in ((hit, h), (~hit, 1 - h)):
        ev = plain(outcome, forecast)
        assert ("few-events" in codes(ev)) is fires
        if fires:
            assert only(ev, "few-events").evidence["observed"] == pytest.approx(events)
    if events == 19:
        ev = cal.evaluate(hit.astype(int), probs=h, name="fraud")
        told = only(ev, "few-events")
        assert "fraud has 19 events in 4,000 examples (28 expected)" in told.text


@pytest.mark.parametrize(
    ("events", "n", "severity"), [(5, 300, "warning"), (16, 5000, "note")]
)
def test_the_fewer_events_the_worse(events, n, severity):
    ev = plain(np.arange(n) < events, np.full(n, events / n))
    assert only(ev, "few-events").severity == severity


def test_events_that_were_not_expected_are_not_few():
    hit = np.arange(4000) < 300
    assert "few-events" not in codes(plain(hit, np.linspace(1e-4, 2e-3, 4000)))


def test_weights_that_leave_little_are_named():
    rng = np.random.default_rng(0)
    h = rng.random(3000)
    hit = rng.random(3000) < h
    heavy = rng.lognormal(0, 1.5, 3000)
    ev = plain(hit, h, sample_weight=heavy)
    found = only(ev, "weights")
    left = heavy.sum() ** 2 / (heavy**2).sum()
    assert found.evidence["effective"] == pytest.approx(left)
    assert f"{left:,.0f} examples out of 3,000" in found.text
    for mild in (None, np.full(3000, 7.0), rng.uniform(0.5, 1.5, 3000)):
        assert "weights" not in codes(plain(hit, h, sample_weight=mild))
    counts = rng.integers(1, 50, 3000)
    assert "weights" not in codes(plain(hit, h, frequency=counts))


def test_repeated_rows_are_found():
    rng = np.random.default_rng(0)
    h = rng.beta(2, 1, 500)
    hit = rng.random(500) < h
    ev = cal.evaluate_pairs(np.repeat(hit, 8), np.repeat(h, 8))
    found = only(ev, "duplicates")
    assert found.severity == "serious"
    assert found.evidence["rows"] == 3500
    some = plain(np.concatenate([hit, hit[:60]]), np.concatenate([h, h[:60]]))
    assert only(some, "duplicates").evidence["rows"] == 60
    z = 2 * rng.normal(size=(1500, 4))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    twice = {"logits": np.tile(z, (2, 1)), "interval": None}
    assert cal.evaluate(np.tile(y, 2), **twice).duplicates == 1500
    assert cal.evaluate(np.tile(y, 2), target="class-wise", **twice).duplicates == 1500
    known = np.tile(np.arange(1500), 2)
    assert "duplicates" not in codes(
        cal.evaluate(np.tile(y, 2), cluster=known, **twice)
    )


@pytest.mark.parametrize("n", [300, 1000, 10_000])
@pytest.mark.parametrize("step", [0.1, 0.01, 0.001, 1e-4, 1 / 300, 2**-11])
def test_coarse_scores_are_no_duplicates(n, step):
    rng = np.random.default_rng([n, int(1 / step)])
    p = rng.beta(2, 1, n)
    h = np.clip(np.round(p / step) * step, 0, 1)
    for hit in (rng.random(n) < p, rng.random(n) < p**3, p > 0.6):
        assert plain(hit, h).duplicates == 0


def test_small_groups_that_err_together_are_clusters():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(25), 12)
    h = rng.beta(3, 1, 300)
    z = np.log(h / (1 - h)) + 2 * rng.normal(size=25)[group]
    hit = rng.random(300) < 1 / (1 + np.exp(-z))
    together = plain(hit, h, group=group)
    found = only(together, "clusters-ignored")
    assert found.evidence["design_effect"] > 2
    again = cal.Evaluation.from_json(together.to_json())
    assert "clusters-ignored" in codes(again)
    assert "clusters-ignored" not in codes(replace(together, n_clusters=25))
    apart = plain(rng.random(300) < h, h, group=group)
    assert "clusters-ignored" not in codes(apart)
    few = plain(hit, h, group=group // 5)
    assert "clusters-ignored" not in codes(few)


def test_the_design_effect_is_that_of_the_sandwich():
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(50), 20)
    h = rng.uniform(0.2, 0.9, 1000)
    hit = rng.random(1000) < np.clip(h + 0.2 * rng.normal(size=50)[group], 0, 1)
    effect, _ = comparison_rules._design_effect(plain(hit, h, group=group, bins=500))
    r = hit - h
    sums = np.bincount(group, r - r.mean())
    assert effect == pytest.approx(sums @ sums / 49 / 20 / (r @ r / 1000), rel=0.02)


def test_repeated_ids_of_a_file_are_named():
    ev = replace(good(), repeated={"patient_id": 250})
    assert "'patient_id' whose values repeat" in only(ev, "clusters-ignored").text
    assert "clusters-ignored" not in codes(replace(ev, n_clusters=250))
    assert cal.Evaluation.from_json(ev.to_json()).repeated == {"patient_id": 250}


@pytest.mark.parametrize(
    ("values", "rows", "fires"),
    [(15, 2000, True), (40, 2000, True), (41, 2000, False), (101, 10_200, True)],
)
def test_few_confidences_are_few_for_the_rows_there_are(values, rows, fires):
    h = np.resize(np.linspace(0.01, 0.99, values), rows)
    a = np.random.default_rng(0).random(rows) < h
    assert ("few-confidences" in codes(rowful(a, confidence=h))) == fires


def test_a_handful_of_rows_has_a_handful_of_values_and_that_is_fine():
    h = np.linspace(0.1, 0.9, 30)
    assert "few-confidences" not in codes(rowful(np.arange(30) % 2, confidence=h))


def test_rows_of_infinite_loss_are_counted():
    probs = np.tile([0.0, 0.4, 0.6], (1200, 1))
    y = np.where(np.arange(1200) < 7, 0, 2)
    found = only(rowful(y, probs=probs, name="IR"), "infinite-loss")
    assert found.evidence == {"rows": 7.0, "share": 7 / 1200}
    assert "IR gave the true class probability 0 in 7 of 1,200 examples" in found.text
    certain = rowful([0, 1] * 600, confidence=[1.0, 0.8] * 600)
    assert "was certain and wrong in 600" in only(certain, "infinite-loss").text


def test_weights_of_infinite_loss_are_not_called_rows():
    probs, weight = np.tile([0.0, 0.4, 0.6], (1200, 1)), np.ones(1200)
    weight[:2] = 0.75
    y = np.where(np.arange(1200) < 2, 0, 2)
    ev = rowful(y, probs=probs, sample_weight=weight, name="IR")
    found = only(ev, "infinite-loss")
    assert found.evidence == {
        "weight": ev.infinite_rows,
        "share": pytest.approx(1.5 / weight.sum()),
    }
    assert "in 0.125 % of 1,200 examples by weight" in found.text
    assert "infinite NLL (0.125 % by weight)" in build(ev)


def test_pairs_are_scored_in_one_dimension_and_low_accuracy_makes_it_worse():
    rng = np.random.default_rng(0)
    h = rng.random(2000)
    assert (
        only(
            rowful(rng.random(2000) < 0.8, confidence=h), "one-dimensional-score"
        ).severity
        == "note"
    )
    # Always wrong, and sure of it: the one-dimensional Brier score is perfect.
    wrong = rowful(np.zeros(2000), confidence=np.full(2000, 0.01))
    assert wrong.metrics["brier"] < 1e-3
    assert only(wrong, "one-dimensional-score").severity == "warning"


def test_thin_bins_that_carry_the_error_are_found():
    rng = np.random.default_rng(2)
    h = np.concatenate([np.full(2000, 0.999), rng.uniform(0.3, 0.9, 60)])
    a = np.concatenate([np.arange(2000) >= 2, np.zeros(60)])
    assert only(rowful(a, confidence=h), "thin-support").evidence["share"] > 0.9
    assert "thin-support" not in codes(good())


@pytest.mark.parametrize(
    ("n", "severity"), [(30, "warning"), (999, "note"), (1000, None)]
)
def test_few_rows_are_mentioned(n, severity):
    found = [f.severity for f in audit(good(n, seed=n)) if f.code == "too-few-rows"]
    assert found == ([] if severity is None else [severity])


def test_labels_in_another_order_are_below_chance(data):
    arrays = data("cifar10_akamaster_resnet32")
    turned = rowful((arrays["labels"] + 1) % 10, logits=arrays["logits"])
    found = only(turned, "below-chance")
    assert found.severity == "serious"
    assert found.evidence["accuracy"] < 0.02
    assert "classes=" in found.advice


def test_the_other_class_as_positive_is_below_chance(data):
    forest = data("adult_random_forest")
    found = only(rowful(1 - forest["outcome"], probs=forest["prob"]), "below-chance")
    assert found.evidence["auroc"] == pytest.approx(0.121, abs=1e-3)


def test_guessing_is_not_below_chance():
    rng = np.random.default_rng(3)
    for seed in range(5):
        y = rng.integers(0, 2, 1500)
        assert "below-chance" not in codes(rowful(y, probs=rng.random(1500)))
        z = np.random.default_rng(seed).normal(size=(1500, 4))
        assert "below-chance" not in codes(rowful(rng.integers(0, 4, 1500), logits=z))


def test_a_guess_is_found_beside_the_commonest_class_or_a_random_order():
    rng = np.random.default_rng(1)
    y = rng.choice(3, 2000, p=[0.7, 0.2, 0.1])
    share = np.mean(y == 0)
    z = rng.normal(size=(2000, 3)) + np.array([2, 0, 0])
    found = only(rowful(y, logits=z), "at-chance")
    assert found.evidence["chance"] == share
    assert f"always predicting the commonest class gives {share:.3f}" in found.text
    assert "not significantly more accurate than a guess: accuracy" in found.text
    assert "Of a rare class" not in found.advice
    rare = only(
        rowful(
            rng.random(2000) < 0.02,
            probs=np.full((2000, 2), [0.98, 0.02])
            + rng.normal(0, 1e-3, (2000, 1)) * [1, -1],
            target="top-label",
        ),
        "at-chance",
    )
    assert rare.advice.endswith("evaluate the probability: target='positive'.")
    each = only(rowful(y, logits=z, target="class-wise"), "at-chance")
    assert each.evidence["chance"] == share
    weight = np.where(y == 0, 0.5, 1.0)
    weighted = rowful(y, logits=z, sample_weight=weight)
    assert weighted.largest_class == pytest.approx(weight[y == 0].sum() / weight.sum())
    p, event = rng.random(2000), rng.random(2000) < 0.3
    for ev in (rowful(event, probs=p), cal.evaluate_pairs(event, p, interval=None)):
        assert "a random order gives 0.500" in only(ev, "at-chance").text
    better = z + 3 * np.eye(3)[y]
    assert "at-chance" not in codes(rowful(y, logits=better))
    assert "at-chance" not in codes(rowful(y[:30], logits=z[:30]))


@pytest.mark.parametrize("places", [[5, 150, 250], [50, 100, 200, 300]])
def test_what_is_said_of_chance_is_the_interval_of_the_record(places):
    p = np.random.default_rng(0).beta(1, 80, 400)
    y = np.zeros(400, int)
    y[np.argsort(-p)[places]] = 1
    ev = rowful(y, probs=p)
    low, high = ev.metrics["auroc"].interval
    found = only(ev, "at-chance")
    assert low < 0.5 < high <= 1
    assert (found.evidence["low"], found.evidence["high"]) == (low, high)
    assert f"[{low:.3f}, {high:.3f}]; a random order" in found.text


def few_in_order(*places):
    """Forecasts of a rare event, and where in their order it happened."""
    y = np.zeros(2000, int)
    y[[*places]] = 1
    return cal.evaluate(y, probs=np.linspace(0.0001, 0.012, 2000))


def test_a_wide_interval_of_few_events_is_no_chance_where_a_rank_test_denies_it():
    ev = few_in_order(900, 1200, 1500, 1600, 1750, 1850, 1950, 1990)
    assert ev.metrics["auroc"].interval[0] < 0.5  # and Mann and Whitney's p is 0.002
    read_back = cal.Evaluation.from_json(ev.to_json())
    assert "at-chance" not in {*codes(ev), *codes(read_back)}
    assert "at-chance" in codes(few_in_order(100, 900, 1100, 1200, 1500, 1950))
    assert "at-chance" not in codes(few_in_order(100, 1800))


@pytest.mark.parametrize("digits", [1, 2, 9])
def test_the_rank_test_of_chance_is_that_of_mann_and_whitney(digits):
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(digits)
    how = {"alternative": "greater", "use_continuity": False, "method": "asymptotic"}
    for _ in range(20):
        h = rng.beta(1, 5, 300).round(digits)
        hit = rng.random(300) < 0.3 + 0.5 * h
        p = stats.mannwhitneyu(h[hit], h[~hit], **how).pvalue
        ev = plain(hit, h)
        found = comparison_rules._beats_random_order(ev, ev.metrics["auroc"])
        assert found == (p < 0.025)


def test_an_error_that_four_digits_do_not_show_is_not_smoothed_away():
    """What print would call -0.0000, below the 0.0000 or 0.0001 of the adaptive one."""
    for low, found in ((1e-5, False), (6e-5, False), (2e-4, True)):
        error = cal.Estimate(3 * low, (low, 9 * low), "close pairs")
        ev = good()
        parts = {"brier": replace(ev.decomposition, calibration=error)}
        fixed = {"brier": replace(ev.paper, calibration=cal.Estimate(2e-5))}
        ev = keep(ev, decompositions=parts, paper_decompositions=fixed)
        assert ("smoothed-away" in codes(ev)) == found


def test_soft_labels_are_mentioned_by_count():
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.ones(3), 1500)
    found = only(rowful(p, probs=p, name="soft"), "soft-labels")
    assert found.evidence["rows"] == 1500
    assert "NLL is the divergence from them (KL), not the cross-entropy" in str(found)
    assert codes(keep(good(), soft_rows=12.0)) == ["soft-labels"]


def test_a_bandwidth_that_hides_the_error_is_found(data):
    arrays = data("cifar10_akamaster_resnet32")
    y, z = arrays["labels"], arrays["logits"]
    found = only(rowful(y, logits=z), "smoothed-away")
    assert found.severity == "note"
    assert found.evidence["fixed"] == pytest.approx(0.00301, abs=1e-5)
    assert found.evidence["adaptive"] == pytest.approx(0.00884, abs=2e-5)
    headline = only(rowful(y, logits=z, preset="paper"), "smoothed-away")
    assert headline.severity == "warning"
    assert headline.evidence["adaptive"] == pytest.approx(
        found.evidence["adaptive"], rel=0.01
    )
    without = replace(cal.evaluate(y, logits=z, preset="paper"), sketch=None)
    assert "smoothed-away" not in codes(without)


# -- several models ---------------------------------------------------------------


def test_the_papers_study_shows_the_papers_pitfalls():
    found = recalibrated()
    fired = {(x.code, x.models[0]) for x in audit(found)}
    assert ("trivial-confidence", "Mean replacement") in fired
    assert ("score-worse", "Mean replacement") in fired
    assert ("accuracy-changed", "Isotonic") in fired
    assert not any(
        models == "Temperature" and code != "too-few-rows" for code, models in fired
    )


def test_a_real_study_fires_for_the_right_reasons(data):
    arrays = data("cifar10_akamaster_resnet32")
    y, z = arrays["labels"], arrays["logits"]
    found = cal.study(y[:2000], y[2000:], logits=(z[:2000], z[2000:]))
    fired = {(x.code, x.models[0]) for x in audit(found)}
    assert fired >= {
        ("trivial-confidence", "Mean replacement"),
        ("score-worse", "Mean replacement"),
        ("infinite-loss", "Histogram binning"),
        ("infinite-loss", "Isotonic"),
        ("accuracy-changed", "Histogram binning"),
        ("accuracy-changed", "Isotonic"),
        ("smoothed-away", "Uncalibrated"),
    }


def test_the_forest_and_the_language_models_fire_for_the_right_reasons(data):
    forest = data("adult_random_forest")
    assert codes(rowful(forest["outcome"], probs=forest["prob"])) == [
        "miscalibrated",
        "infinite-loss",
        "few-confidences",
    ]
    llm = data("llm_stated_confidence")
    found = rowful(llm["correct"], confidence=llm["stated_confidence"])
    assert codes(found) == [
        "miscalibrated",
        "infinite-loss",
        "few-confidences",
        "one-dimensional-score",
        "smoothed-away",
    ]


def test_a_worse_score_needs_intervals_to_be_claimed():
    def entry(name, calibration, brier):
        half = 0.004
        total = cal.Estimate(brier, (brier - half, brier + half), "normal")
        ev = model(name, brier=total)
        d = cal.Estimate(calibration, (calibration - half, calibration + half), "score")
        parts = replace(ev.decomposition, calibration=d)
        parts = {**ev.decompositions, "brier": parts}
        gone = {"sketch": None, "columns": None, "fingerprint": None}
        return replace(ev, decompositions=parts, **gone)

    clear = Comparison((entry("A", 0.05, 0.2), entry("B", 0.01, 0.3)))
    found = only(clear, "score-worse")
    assert found.models == ("B", "A")
    assert found.severity == "note"  # two models, neither made of the other
    assert found.evidence["brier_difference"] == pytest.approx(0.1)
    close = Comparison((entry("A", 0.05, 0.2), entry("B", 0.048, 0.3)))
    assert "score-worse" not in codes(close)


def test_changed_predictions_are_counted():
    found = only(studied(), "accuracy-changed")
    assert found.evidence == {"accuracy_change": -0.0132, "changed": 12.0, "tied": 5.0}
    assert "-1.32 points" in found.text
    better = {"ViT + TS": Effect("X", 0, 0, 0.01, 5.0, 0, 0)}
    assert (
        only(
            Comparison(small().evaluations, effects=better), "accuracy-changed"
        ).severity
        == "note"
    )


def two_sided(n=20_000, seed=5):
    """Two models of one outcome: errors of both signs close together, or one wide."""
    rng = np.random.default_rng(seed)
    h = rng.uniform(0.5, 0.9, n)
    wave = 0.12 * np.sign(np.sin(2 * np.pi * (h - 0.5) / 0.04))
    return h, wave, rng


def test_a_ranking_that_smoothing_turns_around_is_found():
    h, wave, rng = two_sided()
    u = rng.random(len(h))
    rough = rowful(u < h + wave, confidence=h, name="rough")
    shifted = rowful(u < h - 0.05, confidence=h, name="shifted")
    found = only([rough, shifted], "bandwidth-ranking")
    assert found.models == ("shifted", "rough")
    assert found.evidence["difference"] < 0 < found.evidence["at_0.1"]
    assert codes([good(), good(seed=0, name="other")]).count("bandwidth-ranking") == 0


def test_a_model_that_smoothing_puts_behind_several_is_told_once():
    h, wave, rng = two_sided()
    u = rng.random(len(h))
    models = [
        rowful(u < h + scale * wave, confidence=h, name=name)
        for scale, name in ((1.0, "rough"), (0.95, "rougher"), (1.05, "roughest"))
    ]
    models.append(rowful(u < h - 0.05, confidence=h, name="shifted"))
    about = [x for x in audit(models) if x.code == "bandwidth-ranking"]
    (found,) = [x for x in about if x.models[0] == "shifted"]
    assert found.models == ("shifted", "rough", "rougher", "roughest")
    assert found.text == (
        "shifted is better calibrated than rough, rougher and roughest, but not than all of "
        "them at bandwidth 0.01, 0.02, 0.05 and 0.1."
    )


def test_a_ranking_that_bins_turn_around_is_found():
    # The wave has 10 periods between 0.5 and 0.9; 10 bins average it away, 50 do not.
    h, wave, rng = two_sided()
    u = rng.random(len(h))
    rough = rowful(u < h + wave, confidence=h, name="rough")
    shifted = rowful(u < h - 0.05, confidence=h, name="shifted")
    found = only([rough, shifted], "bins-ranking")
    assert found.models == ("rough", "shifted")
    assert found.evidence["difference"] < 0 < found.evidence["at_50"]


def test_a_lead_too_small_for_the_rows_is_told_with_rows_needed():
    rng = np.random.default_rng(6)
    z = rng.normal(size=(2000, 3))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    nearly = z + 0.05 * rng.normal(size=z.shape)
    both = [rowful(y, logits=z, name="A"), rowful(y, logits=nearly, name="B")]
    found = [f for f in audit(both) if f.code == "too-few-rows"]
    assert all(f.evidence["rows_needed"] > 1000 for f in found)
    assert {f.models for f in found} <= {("A", "B"), ("B", "A")}
    assert found
    clear = [both[0], rowful(y, logits=3 * rng.permutation(z), name="B")]
    assert "too-few-rows" not in codes(clear)


def test_a_lead_of_models_of_unequal_sizes_is_told_with_both():
    rng = np.random.default_rng(6)
    z = rng.normal(size=(2000, 3))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    both = [rowful(y, logits=z, name="A"), rowful(y[:1500], logits=z[:1500], name="B")]
    found = [f.text for f in audit(both) if f.code == "too-few-rows"]
    assert found
    for text in found:
        assert text.endswith(
            ("on 2,000 and 1,500 examples.", "on 1,500 and 2,000 examples.")
        )


def test_a_lead_that_four_digits_do_not_show_is_no_finding():
    rng = np.random.default_rng(6)
    z = rng.normal(size=(2000, 3))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    same = z + 1e-4 * rng.normal(size=z.shape)
    both = [rowful(y, logits=z, name="A"), rowful(y, logits=same, name="B")]
    assert both[0].metrics["brier"] != both[1].metrics["brier"]
    assert "too-few-rows" not in codes(both)


def test_rows_needed_are_those_of_the_textbook():
    # A lead of one standard error needs (1.96 + 0.84)^2 = 7.8 times the rows.
    lead = cal.Estimate(1.0, (1 - 1.959964, 1 + 1.959964))
    assert comparison_rules._rows_needed(lead, 1000) == 7800
    assert comparison_rules._rows_needed(cal.Estimate(1.0, (0.5, 1.5)), 1000) == 0
    assert comparison_rules._rows_needed(cal.Estimate(1.0), 1000) == 0


class Overlapping(Comparison):
    """A stand-in with `shared_rows`, while the record has none."""


@pytest.mark.parametrize(("count", "severity"), [(1.0, "warning"), (100.0, "serious")])
def test_rows_used_to_fit_and_to_test_are_found(count, severity):
    models = (good(), good(seed=1, name="other"))
    known = Overlapping(models)
    object.__setattr__(known, "shared_rows", count)
    assert only(known, "shared-rows").severity == severity
    assert only(known, "shared-rows").evidence["rows"] == count
    assert "shared-rows" not in codes(models)


def test_models_that_cannot_be_compared_are_audited_one_by_one():
    a, b = good(), rowful([1, 0] * 800, confidence=[0.7, 0.2] * 800, name="pairs")
    assert "one-dimensional-score" in codes([a, b])
    assert "score-worse" not in codes([a, b])


# -- the record, the order, the page ----------------------------------------------


def test_findings_come_worst_first_and_survive_json():
    found = audit(recalibrated())
    ranks = [SEVERITIES.index(x.severity) for x in found]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == 3
    for x in found:
        again = Finding.from_dict(json.loads(json.dumps(x.to_dict())))
        assert again == x
        assert str(x).startswith(f"{x.severity}: ")
        assert str(x).endswith(f"[{x.code}]")


def test_what_is_said_of_several_models_is_said_once():
    few = [
        rowful([0, 1] * 50, confidence=np.linspace(0.1, 0.9, 100), name=x) for x in "ab"
    ]
    assert only(few, "too-few-rows").models == ("a", "b")


@pytest.mark.parametrize("pairs", [False, True])
def test_a_study_read_back_says_nothing_of_differences_that_its_rows_would_tell(pairs):
    rng = np.random.default_rng(0)
    if pairs:
        h = np.concatenate([rng.random(2000), rng.uniform(0.4, 0.6, 2000)])
        given = (rng.random(4000) < h**1.2), {"confidence": h}
    else:
        z = 2 * rng.normal(size=(4000, 4))
        given = (z / 1.1 + rng.gumbel(size=z.shape)).argmax(axis=1), {"logits": z}
    found = cal.study(given[0], **given[1], split=0.5)
    again = cal.Study.from_json(found.to_json())
    told = {"score-worse", "too-few-rows", "bandwidth-ranking", "bins-ranking"}
    assert not told & {one.code for one in audit(again) if len(one.models) > 1}
    assert "significant" not in str(again)


@pytest.mark.parametrize(("n", "known"), [(19, 0), (20, 1), (49, 1), (50, 5)])
def test_the_page_says_from_how_many_examples_on_errors_have_intervals(n, known):
    rng = np.random.default_rng(0)
    p = rng.random(n)
    ev = cal.evaluate(rng.random(n) < p, probs=p)
    errors = [parts.calibration for parts in ev.decompositions.values()]
    errors += [ev.metrics[key] for key in ("ece", "ace", "smooth_ece")]
    assert sum(error.interval is not None for error in errors) == known
    said = "below 50 only d_CAL of the Brier score has one, and below 20 no calibration"
    assert said in " ".join(docs_page().split())


def test_an_evaluation_read_from_json_is_audited_too():
    ev = cal.evaluate_pairs([1, 0] * 800, [0.7, 0.2] * 800)
    assert codes(type(ev).from_json(ev.to_json())) == codes(ev)


@given(pairs(most=30))
def test_nothing_that_can_be_evaluated_fails_the_audit(rows):
    h, a, w = rows
    for finding in audit(cal.evaluate_pairs(a, h, sample_weight=w)):
        assert finding.severity in SEVERITIES
        assert all(np.isfinite(x) for x in finding.evidence.values())


def test_the_page_of_codes_has_every_rule_with_its_reason():
    page = docs_page()
    rules = (*comparison_rules.MODEL_RULES, *comparison_rules.COMPARISON_RULES)
    for rule in rules:
        code = CODES.get(rule.__name__, rule.__name__.replace("_", "-"))
        assert f"### `{code}`" in page
        what, why = rule.__doc__.split("\n\n", 1)
        assert what in page
        assert len(why.split()) > 15
    found = [*audit(recalibrated()), *audit(seeded())]
    assert {x.code for x in found} <= {
        line[5:-1] for line in page.splitlines() if "### `" in line
    }


# -- found by trying ---------------------------------------------------------------


def test_cross_fitted_means_are_as_trivial_as_one():
    rng = np.random.default_rng(0)
    z = 3 * rng.normal(size=(1000, 3))
    y = (z / 3 + rng.gumbel(size=z.shape)).argmax(axis=1)
    found = cal.study(y, logits=z, folds=5, methods=["mean-replacement"])
    fired = {(x.code, x.models[0]) for x in audit(found)}
    assert ("trivial-confidence", "Mean replacement") in fired


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "folds"), [(92, 5), (92, 2), (60, 10), (800, 20)])
def test_cross_fitted_means_of_forecasts_are_as_trivial_as_one(n, folds, weighted):
    rng = np.random.default_rng(n + folds)
    p = rng.beta(2, 2, n)
    y = (rng.random(n) < 0.1 + 0.8 * (p > 0.5)).astype(int)
    weight = {"sample_weight": rng.uniform(1, 3, n)} if weighted else {}
    found = cal.study(y, probs=p, folds=folds, methods=["platt"], **weight)
    mean = found["Mean replacement"]
    assert mean.distinct > 2
    assert is_trivial(mean)
    assert not is_trivial(found["Platt"])
    assert not is_trivial(found["Uncalibrated"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert found.best("ece").name != mean.name


def test_cross_fitted_means_of_few_rows_are_trivial_for_the_top_label_too():
    rng = np.random.default_rng(3)
    z = 3 * rng.normal(size=(60, 3))
    y = (z / 3 + rng.gumbel(size=z.shape)).argmax(axis=1)
    found = cal.study(y, logits=z, folds=5, methods=["mean-replacement"])
    assert is_trivial(found["Mean replacement"])


def test_few_stated_values_are_no_means_of_folds():
    rng = np.random.default_rng(4)
    h = rng.choice([0.6, 0.7, 0.8, 0.9], 200)
    assert not is_trivial(plain(rng.random(200) < h, h))
    assert not is_trivial(cal.evaluate(rng.random(200) < h, probs=h, interval=None))


def study_of_three_thousand():
    """Mean replacement beside a temperature without any error that is found."""
    rng = np.random.default_rng(0)
    z = 3 * rng.normal(size=(4000, 5))
    y = (z / 2 + rng.gumbel(size=z.shape)).argmax(axis=1)
    return cal.study(y, logits=z, split=0.25, methods=["temperature"])


def test_no_lower_calibration_error_is_claimed_that_intervals_do_not_support():
    found = study_of_three_thousand()
    low = found["Temperature"].decomposition.calibration.interval[0]
    assert low == 0
    traded = next(x for x in audit(found) if x.code == "score-worse")
    assert traded.models[0] == "Mean replacement"
    assert traded.text.startswith(
        "Mean replacement has a significantly lower calibration error than Uncalibrated and "
        "is not significantly worse calibrated than Temperature, but its score is worse: "
    )


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "epanechnikov"},
        {"boundary": "reflect"},
        {"counterpart": "tight"},
        {"bandwidth": 0.1},
        {"estimator": "plugin"},
    ],
)
def test_what_is_smoothed_away_is_the_estimate_that_was_asked_for(data, options):
    arrays = data("cifar10_akamaster_resnet32")
    given = {"logits": arrays["logits"], "bandwidth": 0.05, **options}
    ev = cal.evaluate(arrays["labels"], name="mine", **given)
    if "estimator" in options:  # the plug-in estimate is above the adaptive one
        assert only(ev, "overstated").evidence["fixed"] == ev.decomposition.calibration
        return
    found, error = only(ev, "smoothed-away"), float(ev.decomposition.calibration)
    assert found.evidence["fixed"] == error
    width = ev.decomposition.bandwidth
    assert f"At bandwidth {width:g} the calibration error of mine is {error:.4f}, below" in found.text  # fmt: skip
    tight = 10 / 9 if "counterpart" in options else 1
    assert found.evidence["adaptive"] == pytest.approx(0.00884 * tight, abs=2e-5)


@pytest.mark.parametrize("options", [{"bins": 10}, {"bandwidth": 0.05}])
def test_no_finding_ranks_numbers_of_two_kinds(data, options):
    arrays = data("cifar10_akamaster_resnet32")
    y, z = arrays["labels"], arrays["logits"]
    key = "ece" if "bins" in options else "calibration"
    sure = cal.evaluate(y, logits=z, name="sure")
    for own, better in (({}, True), (options, False)):
        fair = cal.evaluate(y, logits=z / 1.6, name="fair", **own)
        audited = comparison_rules.Audited(Comparison((sure, fair)))
        assert audited.clearly_better(fair, sure, key) == better
        assert audited.clearly_better(fair, sure, "brier")


def test_smoothing_is_judged_on_one_scale(data):
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    probs = np.column_stack([1 - p, p])
    y = (rng.random(4000) < p**1.5).astype(int)
    for counterpart in ("paper", "tight"):
        ev = cal.evaluate(y, probs=probs, target="top-label", counterpart=counterpart)
        assert "smoothed-away" not in codes(ev)


def test_clusters_are_no_narrow_defect():
    rng = np.random.default_rng(0)
    h = rng.uniform(0.2, 0.9, 500)
    hit = np.repeat((rng.random(500) < h).astype(float), 12)
    given = np.repeat(h, 12), np.repeat(np.arange(500), 12)
    clustered = cal.evaluate_pairs(hit, given[0], cluster=given[1])
    assert "narrow-defect" not in codes(clustered)
    assert "narrow-defect" in codes(cal.evaluate_pairs(hit, given[0]))


def test_one_row_is_not_plural():
    assert "There is 1 example:" in str(cal.evaluate_pairs([1], [0.9]))


def test_mean_replacement_of_forecasts_is_trivial():
    rng = np.random.default_rng(15)
    p = rng.beta(5, 2, 600).round(2)
    found = cal.study(rng.random(600) < p**1.2, probs=p, split=0.3)
    mean = found["Mean replacement"]
    assert mean.distinct == 2
    assert is_trivial(mean)
    with pytest.warns(UserWarning, match="trivially calibrated"):
        assert found.best("ece").name != mean.name
    text = only(mean, "trivial-confidence").text
    assert (
        "gives the class it predicts (nearly) the same probability everywhere" in text
    )
    assert "cannot tell one example" not in text  # 0.652 and 0.348 are two forecasts
    assert "cannot tell one example" not in found.table("text")
    two = cal.evaluate([1, 1, 0, 1] * 50, probs=[0.9, 0.7, 0.1, 0.7] * 50)
    assert not is_trivial(two)


def sharp_and_dull():
    """Calibrated forecasts of two values, p and 1 - p, and of many that know less."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 1000)
    sharp = np.where(y ^ (rng.random(1000) < 0.02), 0.98, 0.02)
    dull = 1 / (1 + np.exp(-2 * (rng.normal(size=1000) + 2 * (y - 0.5))))
    given = {"sharp": sharp, "dull": dull}
    return [cal.evaluate(y, probs=p, name=name) for name, p in given.items()]


def test_sharp_forecasts_of_two_values_are_not_trivial():
    sharp, dull = sharp_and_dull()
    assert not is_trivial(sharp)
    assert "trivial-confidence" not in codes(sharp)
    assert "†" not in cal.table.table([sharp, dull])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cal.compare(sharp, dull).best("ece").name == "sharp"


def test_a_study_knows_mean_replacement_whatever_the_data():
    rows = [0, 1, 1, 0, 1], [1, 0, 1]
    probs = [0.2, 0.6, 0.7, 0.4, 0.9], [0.6, 0.3, 0.9]
    found = cal.study(*rows, probs=probs, methods="temperature")
    mean = found["Mean replacement"]
    assert mean.mean_replaced
    assert not found["Temperature"].mean_replaced
    assert is_trivial(cal.Comparison.from_json(found.to_json())[mean.name])
    line = next(x for x in found.table("markdown").splitlines() if mean.name in x)
    assert line.count("†") >= 3
    assert "**" not in line.split("|")[3]


def test_a_model_without_any_loss_is_not_called_a_yardstick():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    found = cal.study(y, probs=np.where(y, 0.8, 0.3) + 0.1 * rng.random(400), folds=5)
    binned = found["Histogram binning"]
    assert binned.metrics["brier"] < 1e-3
    assert not is_trivial(binned)
    assert "yardstick" not in found.worth[0]
    sure = cal.evaluate(y, probs=np.eye(2)[y], target="top-label")
    assert not is_trivial(sure)
    assert "few-confidences" not in codes(sure)


def test_a_region_has_most_of_the_error_by_the_numbers_told_of_it():
    said = {
        0.0: (0, 1),
        0.25: (1, 2),
        0.4: (4, 4),
        0.6: (5, 8),
        0.7: (14, 14),
        0.76: (0, 1),
        0.8: (79, 88),
        0.9: (14, 15),
        1.0: (66, 70),
    }
    hit = np.concatenate([np.arange(n) < right for right, n in said.values()])
    ev = cal.evaluate_pairs(hit, np.repeat([*said], [n for _, n in said.values()]))
    found = only(ev, "miscalibrated")
    assert "; most visible at confidences from" in found.text
    share, gap = (found.evidence[x] for x in ("region_share", "region_gap"))
    assert share * gap**2 > ev.decomposition.calibration / 2
    assert share >= ev.decomposition.resolution


def test_no_region_is_named_that_has_less_than_half_of_the_error():
    region = comparison_rules.Region((0, 1), 0.1, 0.7, 0.9, 0.2)
    assert region.has_most(0.008)
    assert not region.has_most(0.0081)


def test_no_region_is_named_where_the_errors_of_pooled_classes_cancel():
    rng = np.random.default_rng(0)
    z = 3 * rng.normal(size=(3000, 3))
    y = (z / 3 + rng.gumbel(size=z.shape)).argmax(axis=1)
    found = only(cal.evaluate(y, logits=z, target="class-wise"), "miscalibrated")
    assert "most visible" not in found.text
    assert "region_gap" not in found.evidence
    one = only(cal.evaluate(y == 0, probs=1 / (1 + np.exp(-z[:, 0]))), "miscalibrated")
    assert "; most visible at forecasts from 0." in one.text


@pytest.mark.parametrize("sizes", [(310, 290), (300, 300)])
def test_examples_of_a_group_are_said_to_be_its_own(sizes):
    rng = np.random.default_rng(0)
    p = rng.random(600)
    group = np.repeat(["north", "south"], sizes)
    ev = cal.evaluate(rng.random(600) < p, probs=p, target="positive", group=group)
    told = [x for x in cal.by_group(ev).audit() if x.text.startswith("There are")]
    assert {name for x in told for name in x.models} == {"north", "south"}
    for finding in told:
        assert all(name in finding.text for name in finding.models)
    assert len(told) == len(set(sizes))


def test_what_the_same_examples_lack_is_said_once_for_all_models():
    rng = np.random.default_rng(0)
    h = rng.random(600)
    right, lacks = rng.random(600) < h, np.arange(600)
    models = [
        cal.evaluate_pairs(
            right, np.where(lacks < few, np.nan, h), drop_missing=True, name=name
        )
        for name, few in {"a": 60, "b": 60, "c": 30}.items()
    ]
    told = only(models[:2], "left-out")
    assert told.models == ("a", "b")
    assert told.text.startswith("60 of 600 examples have no confidence: coverage is")
    for ev in models[:2]:  # the page still has it beside each model
        assert "coverage 90.0%" in [x["text"] for x in badges(ev, [told])]
    told = [x for x in audit(models) if x.code == "left-out"]
    assert [x.text.split(" have")[0] for x in told] == [
        "60 of 600 examples of each of a and b",
        "30 of 600 examples of c",
    ]


def test_a_study_says_once_what_was_left_out(tmp_path):
    rng = np.random.default_rng(0)
    h = rng.random(300)
    lines = [f"{x:.3f},{int(y)}" for x, y in zip(h, rng.random(300) < h, strict=True)]
    lines[::10] = [f",{line[-1]}" for line in lines[::10]]
    (tmp_path / "a.csv").write_text("\n".join(["confidence,correct", *lines]))
    done = calibrant("study", "a.csv", "--drop-missing", "--folds", "3", cwd=tmp_path)
    assert done.stdout.count("[left-out]") == 1


@pytest.mark.parametrize("given", [{}, {"weights": True}, {"clusters": True}])
def test_the_adaptive_estimate_that_is_quoted_is_that_of_auto(data, given):
    arrays = data("cifar10_akamaster_resnet20")
    z, y = arrays["logits"].astype(float), arrays["labels"]
    with warnings.catch_warnings(action="ignore"):
        binned = cal.recalibration.HistogramBinning().fit(z[:2000], y[:2000])
    asked = {"probs": binned.predict_proba(z[2000:])}
    if "weights" in given:
        asked["sample_weight"] = 1 + y[2000:]
    if "clusters" in given:
        asked["cluster"] = np.arange(8000) // 100
    auto = cal.evaluate(y[2000:], **asked).decomposition.calibration
    published = cal.evaluate(y[2000:], **asked, preset="paper")
    found = next(x for x in published.audit() if x.code == "smoothed-away")
    assert found.evidence["adaptive"] == pytest.approx(float(auto), 1e-9)
    ends = [found.evidence[x] for x in ("low", "high")]
    assert ends == pytest.approx(auto.interval, 1e-9)


def test_a_fixed_bandwidth_that_overstates_the_log_error_is_told(data):
    arrays = data("cifar10_akamaster_resnet32")
    asked = arrays["labels"], {"logits": arrays["logits"]}
    ev = cal.evaluate(asked[0], **asked[1], divergence="log", preset="paper")
    found, auto = only(ev, "overstated"), cal.evaluate(asked[0], **asked[1])
    assert found.severity == "warning"
    assert found.evidence["fixed"] == float(ev.decomposition.calibration)
    parts = auto.decompositions["log"].calibration
    assert found.evidence["adaptive"] == pytest.approx(float(parts), 1e-9)
    assert "is 0.3444, above the 0.1128" in found.text
    # Beside a Brier score it is a note, and the default estimate gets none.
    beside = [
        x
        for x in cal.evaluate(asked[0], **asked[1], preset="paper").audit()
        if x.code == "overstated"
    ]
    assert [x.severity for x in beside] == ["note"]
    assert "the log calibration error of model" in beside[0].text
    assert "overstated" not in codes(auto)


def test_a_fixed_bandwidth_that_nobody_asked_for_overstates_nothing():
    rng = np.random.default_rng(1)
    p = rng.beta(3, 0.1, 200_000)  # saturated and calibrated
    y = rng.random(len(p)) < p
    assert "overstated" not in codes(cal.evaluate(y, probs=p))
    assert "overstated" in codes(cal.evaluate(y, probs=p, preset="paper"))


def test_zeros_and_ones_are_no_rounding():
    rng = np.random.default_rng(0)
    h = rng.choice([0.0, 1.0, 0.8, 0.9, 0.2], 400, p=[0.45, 0.45, 0.05, 0.03, 0.02])
    y = (rng.random(400) < h).astype(int)
    assert "rounded-confidences" in codes(cal.evaluate(y, probs=h))
    levels = np.where(h == 0.8, 0.8123, np.where(h == 0.9, 0.9, h))
    assert "rounded-confidences" not in codes(cal.evaluate(y, probs=levels))
    assert "rounded-confidences" not in codes(cal.evaluate(y, probs=np.round(h)))


def test_a_region_of_all_examples_is_none():
    rng = np.random.default_rng(2)
    h = np.repeat([0.2, 0.8], 300)
    y = (rng.random(600) < np.repeat([0.5, 0.5], 300)).astype(int)
    text = only(cal.evaluate(y, probs=h), "miscalibrated").text
    assert "100 % of examples" not in text


def test_of_classes_mean_replacement_is_said_to_lose_nothing_only_where_that_is_tested():
    """Its d_CAL is far above the others', and no interval of the difference is known."""
    rng, n = np.random.default_rng(1), 2000
    guess = rng.integers(0, 3, n)
    sure = np.array([0.97, 0.7, 0.45])[guess]
    y = np.where(rng.random(n) < sure, guess, (guess + rng.integers(1, 3, n)) % 3)
    p = np.tile(((1 - sure) / 2)[:, None], (1, 3))
    p[np.arange(n), guess] = sure
    asked = {"target": "class-wise", "methods": "temperature", "split": 0.3}
    found = cal.study(y, probs=p, **asked).audit()
    assert "miscalibrated" in {finding.code for finding in found}
    assert "score-worse" not in {finding.code for finding in found}


def test_of_rows_that_are_gone_only_a_clear_difference_is_told():
    """As if of separate examples its interval is too wide, so it cannot deny anything."""
    rng = np.random.default_rng(0)
    z = 2 * rng.normal(size=(2000, 3))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    for scale, clear in ((1.3, False), (9.0, True)):
        models = [
            replace(cal.evaluate(y, logits=x, target="class-wise").per_class[1], name=n)
            for n, x in (("raw", z), ("sharp", scale * z))
        ]
        audited = comparison_rules.Audited(Comparison(tuple(models)))
        told = audited.difference(models[1], models[0], "brier")
        assert (told.interval is not None) == clear
        with pytest.raises(ValueError, match="one class of a class-wise evaluation"):
            cal.compare(*models)


@pytest.mark.parametrize(("seed", "n"), [(47, 150), (64, 400)])
def test_the_size_told_of_a_region_does_not_exceed_the_error_of_the_model(seed, n):
    rng = np.random.default_rng(seed)
    h = rng.beta(1.2, 1.2, n)
    hit = rng.random(n) < (h + 0.12 * np.sin(12 * h)).clip(0.001, 0.999)
    ev = cal.evaluate_pairs(hit, h, interval=None)
    found = only(ev, "miscalibrated")
    told = re.search(r"\((\d+) % of examples\).* by about ([\d.]+)\.", found.text)
    share, size = float(told[1]) / 100, float(told[2])
    assert share * size**2 < 1.1 * ev.decomposition.calibration


def test_of_weights_that_one_example_has_the_share_is_one_of_the_weight():
    rng = np.random.default_rng(4)
    p = rng.beta(2, 2, 2000)
    weight = np.where(np.arange(2000) == 0, 1e6, 1.0)
    ev = rowful(rng.random(2000) < p, probs=p, sample_weight=weight)
    text = only(ev, "trivial-confidence").text
    assert "gives 99.8 % of the weight the same confidence: so weighted, it" in text


def test_nothing_is_called_contradicted_that_was_not_by_any_estimator():
    rng = np.random.default_rng(3)
    h = np.append(1.0, rng.uniform(0.5, 0.95, 2000))
    hit = np.append(True, rng.random(2000) < h[1:])
    for options in ({"preset": "paper"}, {}):
        ev = cal.evaluate_pairs(hit, h, **options)
        assert "miscalibrated" not in codes(ev)
    wrong = cal.evaluate_pairs(np.append(hit, False), np.append(h, 1.0), preset="paper")
    assert "was contradicted in 1 of 2002 examples" in only(
        wrong, "miscalibrated"
    ).text.replace(",", "")
