"""The choice among methods: made anew without each fold, and what it is worth."""

from dataclasses import replace

import numpy as np
import pytest
from make import over_confident

import calibrant as cal
from calibrant._verbs.selection import Selection, choose_without, select_method

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
    assert "raises it on the others by 0.2000 [0.1000, 0.3000]" in bad.worth


def test_the_sentence_tells_the_procedure_from_the_table():
    """The table has a gain where choosing and testing on other rows has a loss."""
    found = replace(
        study().select(),
        chosen="Mean replacement",
        votes={"Mean replacement": 1},
        before=0.2225,
        apparent=0.2198,
        gain=cal.Estimate(-0.0125, (-0.0318, 0.0289)),
    )
    assert found.worth == (
        "Recalibration may not help: a method chosen by its Brier score on some test "
        "examples raises it on the others by 0.0125 [-0.0289, 0.0318] from 0.2225; on all "
        "of them Mean replacement is best (0.2198)."
    )


def test_a_study_says_what_mean_replacement_is_where_it_is_the_best():
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 2, 100), rng.random(100)
    found = cal.study(y, probs=p, split=0.5, methods=["mean-replacement"])
    assert found.select().chosen == "Mean replacement"
    (said,) = found.worth
    assert "But Mean replacement gives" in said
    assert said.endswith(": a yardstick, not a method to use.")


def test_a_study_prints_whether_it_is_worth_it():
    found = study()
    text = " ".join(str(found).split())
    assert found.select().worth in text
    for kind in (cal.Study, cal.Comparison):
        again = str(kind.from_json(found.to_json()))
        assert "Recalibration helps" not in again  # a file keeps no rows
        assert "A record keeps no examples and no recalibrators" in " ".join(
            again.split()
        )
    assert "read back" not in text


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


def test_a_score_that_is_infinite_for_each_chooses_nothing():
    p = np.array([[1.0, 0.0], [0.0, 1.0]] * 100)
    y = np.array([0, 1] * 90 + [1, 0] * 10)
    found = cal.Comparison(
        tuple(
            cal.evaluate(y, probs=p, target="top-label", interval=None, name=x)
            for x in "ab"
        )
    )
    with pytest.raises(ValueError, match=r"no model can be chosen by 'nll': it is inf"):
        select_method(found, "nll")


def test_where_no_method_is_better_it_says_so_and_prints_the_votes():
    found = study().select()
    same = replace(found, gain=cal.Estimate(0.0), votes={found.chosen: 200})
    said = "Recalibration does not help: no method has a better Brier score."
    assert same.worth == said
    split = replace(found, votes={found.chosen: 150, "other": 50})
    first, *numbers, votes, worth = str(split).splitlines()
    assert first == f"chosen by Brier score on {found.n:g} examples: {found.chosen}"
    assert [float(line.split("  (")[0].split()[-1]) for line in numbers] == (
        pytest.approx(
            [found.before, found.apparent, found.honest, found.optimism], abs=1e-5
        )
    )
    assert votes.split("folds")[1].strip() == f"{found.chosen} 75 %, other 25 %"
    assert worth == split.worth


def test_a_gain_of_round_off_is_none():
    for seed in (0, 5):  # of the first none is chosen but the model as it is
        rng = np.random.default_rng(seed)
        p = rng.random(200)
        y = (rng.random(200) < p).astype(int)
        found = cal.study(y, probs=p, folds=4, methods=[], interval=None).select()
        assert "-0.0000" not in found.worth
        assert ("does not help" in found.worth) is (seed == 0)
