"""The choice among methods: made anew without each fold, and what it is worth."""

from dataclasses import replace

import numpy as np
import pytest
from make import over_confident

import calibrant as cal
from calibrant._verbs.selection import Selection, choose_without

Y, Z = over_confident(600, 4)


def study(**options):
    given = {"logits": Z, "split": 0.5, "interval": None, **options}
    return cal.study(Y, **given)


def test_the_choice_is_made_without_the_fold_it_is_tested_on():
    rng = np.random.default_rng(0)
    losses = list(rng.exponential(size=(5, 40)))
    ev = cal.evaluate_pairs(
        rng.integers(0, 2, 40), rng.random(40), sample_weight=rng.random(40)
    )
    fold, weight = np.arange(40) % 4, ev.columns.weights
    nested, chosen = choose_without(losses, ev.columns, fold, 4)
    for f in range(4):
        seen = fold != f
        means = [np.average(loss[seen], weights=weight[seen]) for loss in losses]
        assert chosen[f] == int(np.argmin(means))
        np.testing.assert_array_equal(nested[~seen], losses[chosen[f]][~seen])


@pytest.mark.parametrize("by", ["brier", "nll"])
@pytest.mark.parametrize(
    "options", [{}, {"folds": 4, "split": None}, {"methods": "all"}]
)
def test_optimism_is_what_choosing_made_up(by, options):
    found = study(**options)
    chosen = found.select(by)
    assert chosen.chosen == found.best(by).name
    assert chosen.apparent == pytest.approx(found[chosen.chosen].metrics[by])
    assert chosen.before == pytest.approx(found[0].metrics[by])
    assert chosen.optimism >= 0
    assert chosen.gain == pytest.approx(chosen.before - chosen.honest)
    assert chosen.gain.interval[0] < chosen.gain < chosen.gain.interval[1]
    assert sum(chosen.votes.values()) == 200
    assert Selection.from_json(chosen.to_json()) == chosen


def test_an_infinite_score_is_never_chosen():
    p = np.array([[1.0, 0.0], [0.2, 0.8]] * 100)
    y = np.array([0, 1] * 90 + [1, 0] * 10)
    found = cal.study(y, probs=p, target="top-label", split=0.5, interval=None)
    chosen = found.select("nll")
    assert chosen.before == np.inf
    assert chosen.gain == np.inf
    assert np.isfinite(chosen.honest)
    assert "log loss was infinite" in chosen.worth


def test_the_sentence_says_yes_no_and_perhaps():
    assert "Recalibration helps" in study().select().worth
    rng = np.random.default_rng(1)
    z = rng.normal(size=(2000, 3))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    fair = cal.study(y, logits=z, split=0.5, interval=None).select()
    assert "does not help" in fair.worth or "may not help" in fair.worth
    votes, gain = {fair.chosen: 9, "other": 1}, cal.Estimate(-0.2, (-0.3, -0.1))
    bad = replace(fair, gain=gain, votes=votes)
    assert "does harm" in bad.worth
    assert "raises it by 0.2000 [0.1000, 0.3000]" in bad.worth


def test_a_study_prints_whether_it_is_worth_it():
    found = study()
    text = " ".join(str(found).split())
    assert found.select().worth in text
    again = cal.Comparison.from_json(found.to_json())
    assert "Recalibration helps" not in str(again)  # a file keeps no rows


def test_clusters_stay_whole_and_widen_the_interval():
    cluster = np.arange(600) // 12
    plain = study().select().gain.interval
    found = study(cluster=cluster)
    wide = found.select(folds=5).gain.interval
    assert wide[1] - wide[0] != pytest.approx(plain[1] - plain[0])
    with pytest.raises(
        ValueError, match="folds must be at most the number of clusters"
    ):
        found.select(folds=50)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "ece"}, "by must be one of"),
        ({"folds": 1}, "folds must be"),
        ({"rng": -1}, "rng must be"),
        ({"level": 2}, "level must be"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        study().select(**options)


def test_without_rows_there_is_no_choice():
    rows = study()
    bare = replace(rows, evaluations=tuple(replace(ev, columns=None) for ev in rows))
    with pytest.raises(ValueError, match="select needs the rows of the study"):
        bare.select()
    assert bare.worth == ()


@pytest.mark.parametrize("k", [3, 30])
def test_the_gain_is_a_lower_bound_of_the_error_of_whole_vectors(k):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(k, 0.3), 4000)
    p = (p + 1e-9) / (p + 1e-9).sum(axis=1, keepdims=True)
    true = np.sqrt(p) * (1 + (np.arange(k) == 0))
    true /= true.sum(axis=1, keepdims=True)
    y = (true.cumsum(axis=1) > rng.random((4000, 1))).argmax(axis=1)
    truth = np.mean(np.sum((true - p) ** 2, axis=1))  # d_CAL of vectors, Brier
    methods = ["temperature", "vector"]
    found = cal.study(y, probs=p, methods=methods, folds=5, interval=None).select()
    low, high = found.gain.interval
    assert low < truth
    assert 0.8 * truth < found.gain < truth + (high - low) / 2
