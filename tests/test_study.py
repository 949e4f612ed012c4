"""Studies: the paper's table for a model, and its pattern on real networks."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from make import over_confident, softmax

import calibrant as cal
from calibrant._verbs.study import BY_NAME, METHODS, read_study_rows, same_labels
from calibrant.recalibration import (
    FitWarning,
    HistogramBinning,
    IsotonicCalibration,
    MeanReplacement,
    TemperatureScaling,
)

pytestmark = pytest.mark.xdist_group("study")

PAPER = (
    "Uncalibrated",
    "Temperature",
    "Histogram binning",
    "Isotonic",
    "Mean replacement",
)


Y, Z = over_confident(600, 4, spread=2)


# -- the paper's pattern on real networks -----------------------------------------------

NETWORKS = [
    "cifar10_akamaster_resnet32",
    "cifar100_netcal_densenet_bc_100",
    "imagenet5k_efficientnet_lite0",
]


@pytest.fixture(scope="module", params=NETWORKS)
def network(request, data):
    arrays = data(request.param)
    kind = "logits" if "logits" in arrays else "probs"
    scores, y = arrays[kind].astype(float), arrays["labels"].astype(int)
    return cal.study(y, **{kind: scores}, split=0.2, rng=0)


def test_paper_pattern(network):
    """Mean replacement wins every calibration error and loses the proper scores."""
    assert network.names == PAPER
    raw, hot, binned, isotonic, mean = network
    for name in ("ece", "ace", "smooth_ece"):
        assert mean.metrics[name] == min(ev.metrics[name] for ev in network), name
    assert (
        mean.metrics["accuracy"] == raw.metrics["accuracy"] == hot.metrics["accuracy"]
    )
    for name in ("nll", "brier"):
        assert hot.metrics[name] == min(ev.metrics[name] for ev in network), name
    finite = [ev.metrics["nll"] for ev in network if np.isfinite(ev.metrics["nll"])]
    assert mean.metrics["nll"] == max(finite)
    assert sorted(ev.metrics["brier"] for ev in network)[-2] <= mean.metrics["brier"]
    for ev in (binned, isotonic):
        assert ev.metrics["nll"] == np.inf
        assert ev.metrics["accuracy"] != raw.metrics["accuracy"]
        assert network.effects[ev.name].impossible == ev.infinite_rows > 0
        assert network.effects[ev.name].changed > 0


def test_the_gap_shows_what_mean_replacement_lost(network):
    raw, hot, *_, mean = network
    assert mean.decomposition.sharpness_gap > 1.2 * raw.decomposition.sharpness_gap
    assert hot.decomposition.calibration < raw.decomposition.calibration


def test_best(network):
    assert network.best().name == "Temperature"
    assert network.best("nll").name == "Temperature"
    with pytest.warns(UserWarning, match="'Mean replacement' has the least ECE, but"):
        assert network.best("ece").name != "Mean replacement"


def test_effects_of_a_temperature(network):
    effect = network.effects["Temperature"]
    assert effect.method == "TemperatureScaling"
    assert effect.accuracy_change == 0
    assert effect.changed == effect.impossible == 0
    assert effect.fit_seconds > 0
    assert network.effects["Histogram binning"].tied > effect.tied


def test_netcal_is_followed_under_the_preset(data):
    arrays = data("cifar10_akamaster_resnet32")
    z, y = arrays["logits"].astype(float), arrays["labels"].astype(int)
    found = cal.study(y, logits=z, split=0.2, rng=None, preset="paper")
    assert found.recalibrators["Histogram binning"].compat == "netcal"
    assert found.recalibrators["Isotonic"].compat == "netcal"
    assert found[0].settings["bandwidth"] == 0.05
    assert found.protocol == (
        "fitted on 2,000 examples (20 %, the first ones), tested on the other 8,000"
    )


# -- what is fitted on what --------------------------------------------------------------


def test_two_sets():
    found = cal.study(Y[:200], Y[200:], logits=(Z[:200], Z[200:]))
    fitted = TemperatureScaling().fit(Z[:200], Y[:200])
    assert found.recalibrators["Temperature"].temperature_ == fitted.temperature_
    expected = cal.evaluate(Y[200:], logits=Z[200:] / fitted.temperature_)
    got = found["Temperature"]
    for name in ("nll", "brier", "ece"):
        assert got.metrics[name] == pytest.approx(expected.metrics[name], abs=1e-12)
    mean = MeanReplacement().fit(Z[:200], Y[:200]).predict_proba(Z[200:])
    assert found["Mean replacement"].metrics["brier"] == cal.brier(Y[200:], probs=mean)
    assert "fitted on 200 examples, tested on 400 others" in found.protocol


def test_logits_and_probs_give_the_same_table():
    from_logits = cal.study(Y, logits=Z, split=0.5)
    from_probs = cal.study(Y, probs=softmax(Z), split=0.5)
    for a, b in zip(from_logits, from_probs, strict=True):
        for name in ("accuracy", "ece", "nll", "brier"):
            assert a.metrics[name] == pytest.approx(b.metrics[name], abs=1e-7)


def test_random_and_first_rows():
    def fitted_rows(**options):
        rows = read_study_rows(
            Y, None, logits=Z, probs=None, sample_weight=None, folds=None, **options
        )
        return rows.parts[0][0].y, rows.test.y

    fit, test = fitted_rows(split=0.25, rng=None)
    np.testing.assert_array_equal(fit, Y[:150])
    np.testing.assert_array_equal(test, Y[150:])
    one, other = (fitted_rows(split=0.25, rng=seed)[0] for seed in (0, 1))
    assert (one != other).any()
    assert len(fitted_rows(split=None, rng=0)[0]) == 120  # the paper's 20 %


def test_cross_fitting_tests_every_row_unseen():
    found = cal.study(Y, logits=Z, folds=5, rng=3)
    assert all(ev.n == len(Y) for ev in found)
    rows = read_study_rows(
        Y, None, logits=Z, probs=None, sample_weight=None, split=None, folds=5, rng=3
    )
    tested = np.concatenate([places for _, places in rows.parts])
    np.testing.assert_array_equal(np.sort(tested), np.arange(len(Y)))
    p = np.empty(Z.shape)
    for sample, places in rows.parts:
        assert len(sample.y) + len(places) == len(Y)
        fitted = TemperatureScaling().fit(sample.scores, sample.y)
        p[places] = fitted.predict_proba(Z[places])
        share = [np.mean(Y[places] == c) for c in range(4)]
        np.testing.assert_allclose(share, np.bincount(Y) / len(Y), atol=0.01)
    assert found["Temperature"].metrics["nll"] == pytest.approx(cal.nll(Y, probs=p))
    kept = found.recalibrators["Temperature"]
    assert kept.temperature_ == TemperatureScaling().fit(Z, Y).temperature_
    assert found.protocol.startswith("cross-fitted on 600 examples in 5 folds")


def test_frequencies_are_rows():
    count = np.random.default_rng(0).integers(1, 3, len(Y))
    fit, test = slice(0, 300), slice(300, None)
    weighted = cal.study(
        Y[fit],
        Y[test],
        logits=(Z[fit], Z[test]),
        frequency=(count[fit], count[test]),
    )
    places = [np.repeat(np.arange(600)[part], count[part]) for part in (fit, test)]
    repeated = cal.study(
        Y[places[0]], Y[places[1]], logits=(Z[places[0]], Z[places[1]])
    )
    for a, b in zip(weighted, repeated, strict=True):
        for name in ("accuracy", "ece", "nll", "brier"):
            assert a.metrics[name] == pytest.approx(b.metrics[name], abs=1e-7)
        one, other = weighted.effects[a.name], repeated.effects[a.name]
        assert (one.changed, one.tied) == (other.changed, other.tied)


def test_weights_have_no_unit():
    weight = np.random.default_rng(0).exponential(size=len(Y))
    one, other = (
        cal.study(Y, logits=Z, split=0.5, sample_weight=unit * weight, interval=None)
        for unit in (1, 1000)
    )
    for a, b in zip(one, other, strict=True):
        for name in ("accuracy", "ece", "nll", "brier"):
            assert a.metrics[name] == pytest.approx(b.metrics[name], abs=1e-7)
        first, second = one.effects[a.name], other.effects[a.name]
        assert first.changed == second.changed
        assert first.changed <= 300


def test_what_recalibration_did_is_counted_in_examples_whatever_their_weights():
    weight = np.random.default_rng(0).exponential(size=len(Y)) * (np.arange(len(Y)) % 5)
    fit, test = np.arange(300), np.arange(300, 600)
    parts = {"logits": (Z[fit], Z[test]), "sample_weight": (weight[fit], weight[test])}
    found = cal.study(Y[fit], Y[test], **parts, methods=["isotonic", "vector"])
    before, counted = Z[test].argmax(axis=1), weight[test] > 0
    for name in ("Isotonic", "Vector"):
        p, effect = (
            found.recalibrators[name].predict_proba(Z[test]),
            found.effects[name],
        )
        changed = (p.argmax(axis=1) != before) & counted
        assert effect.changed == changed.sum() > 0
        assert effect.impossible == ((p[range(300), Y[test]] == 0) & counted).sum()
        assert f"({changed.sum()} examples; accuracy" in found.table("latex")


def test_predictions_may_change_and_the_accuracy_stay():
    found = cal.study(Y, logits=Z, split=0.5, methods=["vector"], interval=None)
    effect = replace(found.effects["Vector"], changed=64.0, accuracy_change=0.0)
    one = cal.Comparison(found.evaluations, "", {"Vector": effect})
    assert "changed predictions: Vector (64 examples; accuracy the same)." in str(
        one.table("latex")
    )
    (told,) = [x.text for x in one.audit() if x.code == "accuracy-changed"]
    assert told == (
        "Vector changed the predicted class of 64 examples: accuracy is the same."
    )


def test_a_name_that_is_none_is_answered_with_those_there_are():
    found = cal.study(Y, logits=Z, split=0.5, methods=["platt"], interval=None)
    for names, wrong in (
        (found.recalibrators, "platt"),
        (found[0].metrics, "ECE"),
        (cal.scorers, "ece"),
    ):
        with pytest.raises(KeyError) as caught:
            names[wrong]
        told = f"no {wrong!r}; choose from {', '.join(names)}"
        assert caught.value.args == (told,)


def test_a_study_tested_on_the_rows_it_fitted_does_not_call_them_others():
    found = cal.study(Y, Y, logits=(Z, Z), methods=["temperature"])
    assert found.protocol == (
        "fitted on 600 examples, tested on 600; 600 of these have the same scores and "
        "label as an example used to fit"
    )
    assert "But 600 of 600 examples to test on have the same scores" in found.worth[0]
    apart = cal.study(Y[:300], Y[300:], logits=(Z[:300], Z[300:]), methods="platt")
    assert "used to fit" not in apart.worth[0]


def test_a_study_of_two_models_on_the_same_examples_does_not_call_them_others():
    other = Z + np.random.default_rng(1).normal(size=Z.shape)
    found = cal.study(Y, Y, logits=(Z, other), methods=["temperature"])
    same = "have the same labels, row by row, as those used to fit"
    assert found.protocol == f"fitted on 600 examples, tested on 600; these {same}"
    assert f"But the examples to test on {same}, where any" in found.worth[0]
    (told,) = (x for x in found.audit() if x.code == "shared-rows")
    assert told.text == f"The 600 examples to test on {same}."
    assert told.severity == "serious"
    assert "compare them (calibrant.compare)" in told.advice
    again = cal.Comparison.from_json(found.to_json())
    assert "shared-rows" in {x.code for x in again.audit()}


@pytest.mark.parametrize(
    ("y", "same"),
    [
        ([0, 1] * 10, True),
        (["cat", "dog", "fish"] * 10, True),
        (np.eye(3)[[0, 1, 2] * 10], True),
        ([0, 1] * 9, False),  # fewer than 20
        ([0] * 3000, False),
        ([0] * 2998 + [1], False),  # one in 3,000 is so by chance
        ([0] * 50 + [1] * 50, False),  # sorted, as many of each
        (["cat"] * 30 + ["dog"] * 30 + ["ant"] * 30, False),
    ],
)
def test_equal_labels_are_the_same_examples_where_chance_has_no_part(y, same):
    assert same_labels(np.array(y), np.array(y)) is same
    assert not same_labels(np.array(y), np.array(y)[::-1][1:])
    assert not same_labels(np.array(y), np.roll(np.array(y), 1, axis=0)) or not same


def test_forecasts_of_one_event_are_recalibrated_by_platt_scaling_too():
    p = np.linspace(0.02, 0.98, 300)
    y = np.diff(np.floor(np.cumsum(p) + 0.5), prepend=0.0).astype(int)
    usual = ("Temperature", "Histogram binning", "Isotonic", "Mean replacement")
    event, two = {"probs": p}, {"probs": np.stack([1 - p, p], axis=1)}
    for given, platt in (
        (event, True),
        ({**two, "target": "positive"}, True),
        ({**two, "target": "top-label"}, False),
        ({**event, "preset": "paper"}, False),
        ({**event, "methods": "paper"}, False),
        ({"confidence": p}, False),
    ):
        found = cal.study(y, **given, split=0.5, interval=None).names
        assert found == ("Uncalibrated", usual[0], *["Platt"] * platt, *usual[1:])


def test_one_example_to_fit_on_is_not_plural():
    one = cal.study([1], [0], probs=([0.7], [0.4]), methods=[])
    assert one.protocol == "fitted on 1 example, tested on 1 other"


def test_rounded_forecasts_of_other_examples_are_not_said_to_be_used_to_fit():
    rng = np.random.default_rng(0)
    q = rng.random((2, 200)).round(3)
    y = (rng.random((2, 200)) < q).astype(int)
    found = cal.study(*y, probs=(*q,), methods="platt")
    assert found.protocol == "fitted on 200 examples, tested on 200 others"
    assert "used to fit" not in str(found)


# -- clusters ---------------------------------------------------------------------------


def read(cluster=None, split=None, folds=None, rng=0, y=Y, z=Z):
    divided = {"split": split, "folds": folds, "rng": rng}
    return read_study_rows(y, None, logits=z, probs=None, cluster=cluster, **divided)


GAMES = {
    "equal": np.arange(600) // 6,
    "names": np.array([f"game {i % 41}" for i in range(600)]),
    "of all sizes": np.sort(np.random.default_rng(0).geometric(0.05, 600)),
    "one is large": np.where(np.arange(600) < 300, -1, np.arange(600)),
    "objects": np.array([("a", i // 20)[i % 2] for i in range(600)], object),
}


@pytest.mark.parametrize("rng", [0, 1, None])
@pytest.mark.parametrize("case", GAMES)
def test_no_cluster_is_in_two_folds(case, rng):
    cluster = GAMES[case]
    names, size = np.unique(cluster.astype(str), return_counts=True)
    rows = read(cluster, folds=4, rng=rng)
    where = {name: set() for name in names}
    for number, (sample, places) in enumerate(rows.parts):
        for name in cluster.astype(str)[places]:
            where[name].add(number)
        assert not set(sample.cluster.astype(str)) & set(cluster.astype(str)[places])
        assert len(sample.y) + len(places) == 600
    assert all(len(folds) == 1 for folds in where.values())
    filled = [len(places) for _, places in rows.parts]
    assert max(filled) - min(filled) <= max(size.max(), 300 if size.max() > 150 else 0)


@pytest.mark.parametrize("how", [{"folds": 2}, {"split": 0.5}])
def test_clusters_in_a_matrix_are_refused(how):
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(4), 18), rng.integers(0, 4, 18)
    cluster = rng.random((18, 4))
    for given in (cluster, tuple(cluster.tolist())):
        with pytest.raises(ValueError, match=r"cluster must have one entry per row"):
            cal.study(y, probs=p, cluster=given, **how)


@pytest.mark.parametrize("rng", [0, None])
@pytest.mark.parametrize("case", GAMES)
def test_a_split_cuts_no_cluster(case, rng):
    cluster = GAMES[case].astype(str)
    rows = read(GAMES[case], split=0.3, rng=rng)
    ((fit, _),) = rows.parts
    both = set(fit.cluster.astype(str)), set(rows.test.cluster.astype(str))
    assert not both[0] & both[1]
    assert both[0] | both[1] == set(cluster)
    largest = np.unique(cluster, return_counts=True)[1].max()
    assert abs(len(fit.y) - 180) <= largest


@pytest.mark.parametrize("divided", [{"folds": 5}, {"split": 0.3}])
@pytest.mark.parametrize("rng", [0, None])
def test_clusters_of_one_row_are_no_clusters(divided, rng):
    names = np.random.default_rng(1).permutation(600)
    plain, single = read(rng=rng, **divided), read(names, rng=rng, **divided)
    for (a, at), (b, there) in zip(plain.parts, single.parts, strict=True):
        np.testing.assert_array_equal(a.scores, b.scores)
        np.testing.assert_array_equal(a.y, b.y)
        if "folds" in divided:
            np.testing.assert_array_equal(at, there)


def test_folds_of_clusters_are_balanced_in_rows():
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(120), rng.integers(1, 30, 120))
    y, z = over_confident(len(cluster), 4, spread=2)
    rows = read(cluster, folds=5, y=y, z=z)
    filled = [len(places) for _, places in rows.parts]
    assert max(filled) - min(filled) <= 2


def test_clusters_in_a_study():
    cluster = np.arange(600) // 6
    found = cal.study(Y, logits=Z, folds=5, methods="temperature", cluster=cluster)
    assert "in 5 folds, in whole clusters: each is" in found.protocol
    for ev in found:
        pairs = np.unique(np.stack([ev.clusters, cluster]), axis=1)
        assert pairs.shape == (2, 100)  # the same clusters by other numbers
    split = cal.study(Y, logits=Z, split=0.5, methods="temperature", cluster=cluster)
    assert "drawn at random, in whole clusters" in split.protocol


def test_differences_in_a_study_are_those_of_clusters():
    """Rows six times over say no more than once, if the six are one cluster."""
    fit, test, six = slice(0, 300), slice(300, 600), np.repeat(np.arange(300, 600), 6)
    given = {"methods": "temperature", "interval": None}
    once = cal.study(Y[fit], Y[test], logits=(Z[fit], Z[test]), **given)
    pair = np.arange(300), six
    often = cal.study(Y[fit], Y[six], logits=(Z[fit], Z[six]), cluster=pair, **given)
    for name in ("nll", "brier"):
        one, other = (
            cal.compare(study).differences["Temperature"][name]
            for study in (once, often)
        )
        # What varies more than surprises do is added to independent rows, and taken for
        # surprises that come at once in clusters: 2 % of the length.
        near = 0.02 * np.ptp(one.interval)
        assert other.interval == pytest.approx(one.interval, abs=near)
        assert other.method == "paired, clusters"


def test_forecasts_of_the_same_race_are_not_both_fitted_on_and_tested(data):
    """By rows, isotonic regression knows each race; by race, it gains nothing."""
    arrays = data("fivethirtyeight_governors")
    p, y = arrays["prob"][::4].astype(float), arrays["outcome"][::4].astype(int)
    options = {"folds": 5, "methods": ["isotonic"], "interval": None}
    by_row = cal.study(y, probs=p, **options)
    by_race = cal.study(y, probs=p, cluster=arrays["race"][::4], **options)
    gains = [
        float(s[0].metrics["brier"] - s[1].metrics["brier"]) for s in (by_row, by_race)
    ]
    assert gains[0] > 0.002
    assert gains[1] < 0


def test_two_sets_of_clusters():
    cluster = np.arange(600) // 6
    half = slice(0, 300), slice(300, None)
    given = {"logits": tuple(Z[h] for h in half), "methods": "temperature"}
    found = cal.study(
        Y[:300], Y[300:], cluster=tuple(cluster[h] for h in half), **given
    )
    assert found[0].clusters is not None
    with pytest.raises(ValueError, match=r"both sets.*; 25 are, the first of them 25"):
        cal.study(
            Y[:300], Y[300:], cluster=(cluster[:300], cluster[:300] + 25), **given
        )


def test_binary_scores_of_one_column():
    rng = np.random.default_rng(0)
    z = 2 * rng.normal(size=800)
    y = (rng.uniform(size=800) < 1 / (1 + np.exp(-z / 2))).astype(int)
    found = cal.study(y, logits=z, split=0.5, methods="all")
    assert all(ev.target == "positive" for ev in found)
    assert found.best("nll").metrics["nll"] < found[0].metrics["nll"]
    from_probs = cal.study(y, probs=1 / (1 + np.exp(-z)), split=0.5)
    assert from_probs[1].metrics["nll"] == pytest.approx(found[1].metrics["nll"])


def test_names_of_classes():
    names = np.array(["ant", "bee", "cat", "dog"])
    found = cal.study(names[Y], logits=Z, split=0.5, classes=names)
    plain = cal.study(Y, logits=Z, split=0.5)
    assert found[1].metrics["nll"] == plain[1].metrics["nll"]
    assert found.recalibrators["Temperature"].classes_.tolist() == names.tolist()


def test_names_without_an_order_are_refused():
    """Sorted order was believed, even of a series named after the other class."""
    rng = np.random.default_rng(0)
    q = rng.random(400)
    y = np.where(rng.random(400) < q, "Bad", "Good")
    with pytest.raises(TypeError, match=r"y holds names, .* the positive class last"):
        cal.study(y, probs=q)
    named = cal.study(y, probs=pd.Series(q, name="Bad"), methods=["platt"])
    assert named[0].positive == "Bad"
    assert named[0].metrics["accuracy"] > 0.7
    assert named.recalibrators["Platt"].slope_ > 0.5


# -- methods --------------------------------------------------------------------------------


def test_all_methods_run():
    found = cal.study(Y, logits=Z, split=0.5, methods="all")
    every = [METHODS[name][0] for name in METHODS if name not in BY_NAME]
    assert found.names == tuple(every)
    assert all(np.isfinite(ev.metrics["brier"]) for ev in found)


def test_methods_that_run_only_if_asked_for():
    found = cal.study(Y, logits=Z, split=0.5, methods=list(BY_NAME))
    assert found.names[1:-1] == tuple(METHODS[name][0] for name in BY_NAME)
    assert all(np.isfinite(ev.metrics["nll"]) for ev in found)


def test_mean_replacement_and_no_method_are_always_there():
    assert cal.study(Y, logits=Z, methods="temperature").names == (
        "Uncalibrated",
        "Temperature",
        "Mean replacement",
    )
    assert cal.study(Y, logits=Z, methods=["mean-replacement", "vector"]).names == (
        "Uncalibrated",
        "Mean replacement",
        "Vector",
    )
    assert cal.study(Y, logits=Z, methods=[]).names == (
        "Uncalibrated",
        "Mean replacement",
    )


def test_methods_of_ones_own():
    given = HistogramBinning(bins=5, smoothing=1)
    found = cal.study(
        Y,
        logits=Z,
        methods={"five bins": given, "hot": "temperature", "MRR": MeanReplacement()},
    )
    assert found.names == ("Uncalibrated", "five bins", "hot", "MRR")
    assert found.recalibrators["five bins"].bins == 5
    assert not hasattr(given, "classes_")  # the user's own is not touched
    by_class = cal.study(Y, logits=Z, methods=[IsotonicCalibration(mode="top-label")])
    assert by_class.names[1] == "Isotonic (top label)"


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ("temprature", "got 'temprature'; did you mean 'temperature'\\?"),
        ("Temperature", "got 'Temperature'; did you mean 'temperature'\\?"),
        (["Isotonic (top label)"], "did you mean 'isotonic-top-label'\\?"),
        ("gradient boosting", "among 'identity', .*; got 'gradient boosting'"),
        (["temperature", "temperature"], "two models called 'Temperature'"),
        ([TemperatureScaling(scores="probs")], "takes probs, but the study was given"),
        ([None], "got None"),
    ],
)
def test_methods_are_checked(methods, message):
    with pytest.raises(ValueError, match=message):
        cal.study(Y, logits=Z, methods=methods)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"logits": Z, "probs": Z}, TypeError, "exactly one of"),
        ({}, TypeError, "exactly one of"),
        ({"logits": Z, "split": 1.5}, ValueError, "split must be the share"),
        ({"logits": Z, "split": 0.0001}, ValueError, "leave rows on both sides"),
        ({"logits": Z, "split": 0.2, "folds": 2}, ValueError, "exclude each other"),
        ({"logits": Z, "folds": 1}, ValueError, "folds must be a whole number"),
        ({"logits": Z, "folds": 2.5}, ValueError, "folds must be a whole number"),
        ({"logits": (Z, Z)}, TypeError, "needs y_test"),
        ({"logits": Z[:10]}, ValueError, "y must have one entry per row"),
        ({"logits": Z, "y_test": Y}, TypeError, "must be a pair"),
        ({"logits": (Z, Z[:, :3]), "y_test": Y}, ValueError, "same columns"),
        ({"logits": (Z, Z), "y_test": Y, "split": 0.2}, ValueError, "divide one set"),
        ({"logits": Z, "sample_weight": [1]}, ValueError, "sample_weight must have"),
        ({"logits": Z, "frequency": [1]}, ValueError, "frequency must have"),
        ({"logits": Z, "cluster": [1]}, ValueError, "cluster must have"),
        (
            {"logits": Z, "cluster": np.arange(600) % 3, "folds": 4},
            ValueError,
            "folds must be a whole number from 2 to 3, the number of clusters; got 4",
        ),
        ({"logits": Z, "cluster": np.ones(600)}, ValueError, "two distinct values"),
        ({"logits": Z, "bandwith": 1}, TypeError, "bandwith"),
    ],
)
def test_bad_input(options, error, message):
    with pytest.raises(error, match=message):
        cal.study(Y, **options)


def test_an_error_names_the_method():
    z = np.where(Z < -8, -np.inf, Z)
    with pytest.raises(ValueError, match=r"Vector: .*-inf"):
        cal.study(Y, logits=z, methods=["vector"])


# -- the record -----------------------------------------------------------------------------


def test_notes_are_kept_and_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitWarning)
        found = cal.study(Z.argmax(axis=1), logits=Z, methods=["temperature"])
    assert "hardly an example" in found.effects["Temperature"].notes[0]


def test_progress_goes_from_0_to_1_and_names_the_method():
    seen = []
    cal.study(
        Y, logits=Z, folds=3, progress=lambda share, what: seen.append((share, what))
    )
    shares = [share for share, _ in seen]
    assert (np.diff(shares) > -1e-9).all()
    assert shares[-1] == 1
    assert {what.split(":")[0] for _, what in seen} == set(PAPER)


def test_a_study_is_plain_data():
    found = cal.study(Y, logits=Z)
    again = cal.Comparison.from_json(found.to_json())
    assert again.names == found.names
    assert again.effects == dict(found.effects)
    assert json.loads(found.to_json()) == json.loads(again.to_json())
    assert "Temperature" in str(found)
    assert "Mean replacement" in str(found)


def test_inputs_are_not_changed():
    z, y = Z.copy(), Y.copy()
    z.flags.writeable = y.flags.writeable = False
    cal.study(y, logits=z, methods="all", folds=2)
    np.testing.assert_array_equal(z, Z)


class TwoStepScaling(TemperatureScaling):
    """A method of the user's own."""


def test_one_method_alone_keeps_its_classes_and_is_named_in_words():
    own = TwoStepScaling(classes=[*range(int(Y.max()) + 1)])
    found = cal.study(Y, logits=Z, methods=own)
    assert found.names[1] == "Two step scaling"
    assert found.recalibrators["Two step scaling"].classes == own.classes


def test_several_labels_are_refused_before_they_are_taken_for_soft_ones():
    labels = np.eye(3, dtype=int)[np.arange(90) % 3]
    with pytest.raises(ValueError, match="study each label as a binary problem"):
        cal.study(labels, probs=np.full((90, 3), 0.4), target="multi-label")


def test_columns_beside_the_scores_may_be_n_x_1_and_no_wider():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(3), 60), rng.integers(0, 3, 60)
    cluster, count = np.arange(60) // 2, rng.integers(1, 4, 60)
    flat = cal.study(y, probs=p, cluster=cluster, frequency=count)
    tall = cal.study(y, probs=p, cluster=cluster[:, None], frequency=count[:, None])
    assert tall.frame()["brier"].tolist() == flat.frame()["brier"].tolist()
    for name in ("cluster", "frequency", "sample_weight"):
        for wide in (p, np.float64(2)):
            with pytest.raises(ValueError, match=f"{name} must have one entry per row"):
                cal.study(y, probs=p, folds=2, **{name: wide})
