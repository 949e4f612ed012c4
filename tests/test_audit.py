"""Audits: every rule fires where it should, says why, and is silent on a good model."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from handmade import model, seeded, small, studied
from hypothesis import given
from rowful import keep, rowful
from strategies import pairs

import calibrant as cal
from calibrant._base.comparison import Comparison, Effect
from calibrant._base.records import SEVERITIES, Finding
from calibrant.audit import _rules as comparison_rules
from calibrant.audit._audit import CODES, audit, docs_page
from calibrant.recalibration import TemperatureScaling


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


def test_real_models_that_are_fine_have_no_findings(data):
    for name in ("imagenet5k_efficientnet_lite0", "mnist_cleanlab_cv"):
        arrays = data(name)
        scores = {k: arrays[k] for k in ("probs", "logits") if k in arrays}
        assert audit(rowful(arrays["labels"], name=name, **scores)) == ()


# -- one model --------------------------------------------------------------------


def test_one_confidence_for_all_rows_is_trivial():
    found = only(
        rowful([1, 1, 0, 1] * 500, confidence=[0.75] * 2000), "trivial-confidence"
    )
    assert found.severity == "serious"
    assert found.evidence["largest_share"] == 1.0
    assert "few-confidences" not in codes(rowful([1, 0] * 500, confidence=[0.5] * 1000))


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
    assert "IR gave the true class probability 0 in 7 of 1,200 rows" in found.text
    certain = rowful([0, 1] * 600, confidence=[1.0, 0.8] * 600)
    assert "was certain and wrong in 600" in only(certain, "infinite-loss").text


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


def test_soft_labels_are_mentioned_by_count():
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.ones(3), 1500)
    found = only(rowful(p, probs=p, name="soft"), "soft-labels")
    assert found.evidence["rows"] == 1500
    assert codes(keep(good(), soft_rows=12.0)) == ["soft-labels"]


def test_a_bandwidth_that_hides_the_error_is_found(data):
    arrays = data("cifar10_akamaster_resnet32")
    y, z = arrays["labels"], arrays["logits"]
    found = only(rowful(y, logits=z), "smoothed-away")
    assert found.severity == "note"
    assert found.evidence["fixed"] == pytest.approx(0.00301, abs=1e-5)
    assert found.evidence["adaptive"] == pytest.approx(0.00889, abs=2e-5)
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
        "infinite-loss",
        "few-confidences",
    ]
    llm = data("llm_stated_confidence")
    found = rowful(llm["correct"], confidence=llm["stated_confidence"])
    assert codes(found) == [
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
        return replace(ev, decompositions=parts, sketch=None, columns=None)

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
    assert "There is 1 row:" in str(cal.evaluate_pairs([1], [0.9]))
