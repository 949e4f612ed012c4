"""calibrant in scikit-learn's hands: scorers, metrics by position, its words, its arrays."""

import copy
import inspect
import pickle
import subprocess
import sys

import numpy as np
import pytest

import calibrant as cal
from calibrant.recalibration import (
    BetaCalibration,
    HistogramBinning,
    MeanReplacement,
    PlattScaling,
    TemperatureScaling,
    VectorScaling,
    load,
)

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.recalibration.FitWarning")


@pytest.fixture(scope="module")
def cancer(part):
    data = part("sklearn.datasets").load_breast_cancer()
    return data.data, data.target_names[data.target], data.target


@pytest.fixture(scope="module")
def iris(part):
    data = part("sklearn.datasets").load_iris()
    return data.data, data.target_names[data.target], data.target


@pytest.fixture(scope="module")
def bayes(part):
    return part("sklearn.naive_bayes").GaussianNB()


def scored(part, model, X, y, **options):
    validate = part("sklearn.model_selection").cross_validate
    return validate(model, X, y, error_score="raise", **options)["test_score"]


Z = np.random.default_rng(1).normal(size=(60, 3))
Y = np.random.default_rng(2).integers(0, 3, 60)


# -- metrics by position -------------------------------------------------------------------


def test_make_scorer_takes_metrics_as_they_are(cancer, iris, bayes, part):
    scorer = part("sklearn.metrics").make_scorer(
        cal.ece, response_method="predict_proba", greater_is_better=False, bins=10
    )
    for X, names, numbers in (cancer, iris):
        by_name = scored(part, bayes, X, names, scoring=scorer)
        np.testing.assert_allclose(
            by_name, scored(part, bayes, X, numbers, scoring=scorer)
        )
        ours = cal.scorers["neg_ece"].using(bins=10)
        np.testing.assert_array_equal(
            by_name, scored(part, bayes, X, names, scoring=ours)
        )
        assert (by_name < 0).all()


def test_the_positive_class_is_the_last_or_pos_label(cancer, bayes, part):
    X, names, _ = cancer
    make = part("sklearn.metrics").make_scorer
    options = {"response_method": "predict_proba", "greater_is_better": False}
    bad = make(cal.confidence_gap, pos_label="benign", **options)
    good = make(cal.confidence_gap, **options)
    one = scored(part, bayes, X, names, scoring=good)
    other = scored(part, bayes, X, names, scoring=bad)
    np.testing.assert_allclose(one, -other)  # of one class less, of the other more
    ours = cal.scorers["neg_ece"].using(pos_label="benign")
    theirs = make(cal.ece, pos_label="benign", **options)
    np.testing.assert_allclose(
        scored(part, bayes, X, names, scoring=ours),
        scored(part, bayes, X, names, scoring=theirs),
    )
    p = np.array([0.1, 0.2, 0.8])
    assert cal.brier(["n", "n", "y"], p) == pytest.approx(0.03)
    fitted, wrong = bayes.fit(X, names), cal.scorers["neg_ece"].using(pos_label="good")
    with pytest.raises(ValueError, match="pos_label must be one of 'benign', 'malig"):
        wrong(fitted, X, names)
    assert cal.brier(["n", "n", "y"], p, pos_label="y") == pytest.approx(0.03)
    assert cal.brier(["y", "y", "n"], p, pos_label="n") == pytest.approx(0.03)
    assert cal.brier(["n", "n", "n"], p, pos_label="y") == pytest.approx(0.23)
    assert cal.brier([-1, -1, 1], p) == pytest.approx(0.03)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0, 1], [0.1, 0.9], 15), {}, "ece takes labels and probabilities by pos"),
        (([0, 1], [0.1, 0.9]), {"probs": [0.1, 0.9]}, "and all else by keyword"),
        (([0, 1], [0.1, 0.9]), {"logits": [0.1, 0.9]}, "pass exactly one of"),
        ((["a", "b"], [[0.2, 0.3, 0.5]] * 2), {}, "y holds 2 distinct labels"),
        (
            (["a", "b", "c"], [0.2, 0.3, 0.5]),
            {"pos_label": "a"},
            "pos_label must be one of the two labels of y, got 'a', and y holds 'b' and",
        ),
        (([0, 1], [[0.2, 0.8]] * 2), {"pos_label": 1}, "pos_label is for 1-D probs"),
        (
            (["a", "b"], [0.2, 0.8]),
            {"pos_label": "a", "classes": np.array(["b", "a"])},
            "without classes",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(arguments, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        cal.ece(*arguments, **options)


def test_shares_and_soft_labels_are_left_as_they_are():
    p = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.1, 0.8, 0.1]])
    soft = np.eye(3)[[2, 0, 1]] * 0.9 + 1 / 30
    assert cal.brier(soft, p) == cal.brier(soft, probs=p)
    assert cal.brier([0.25, 1.0], [0.5, 0.5]) == cal.brier([0.25, 1.0], probs=[0.5] * 2)
    assert cal.brier([2, 0, 2], p) == cal.brier([2, 0, 2], probs=p)
    one_hot, both = [[1, 0], [0, 1]], [[0.7, 0.3], [0.4, 0.6]]
    found = cal.brier(one_hot, both, target="top-label")
    assert found == cal.brier([0, 1], both, target="top-label")
    assert cal.brier([1], None, logits=[0.0]) == cal.brier(y=[1], probs=[0.5]) == 0.25


def test_signatures_say_so():
    parameters = inspect.signature(cal.ece).parameters
    assert [*parameters][:2] == ["y", "probs"]
    assert parameters["probs"].kind is parameters["probs"].POSITIONAL_OR_KEYWORD
    assert parameters["logits"].kind is parameters["probs"].KEYWORD_ONLY
    assert parameters["pos_label"].default is None
    assert "pos_label : hashable, optional" in cal.ece.__doc__
    assert pickle.loads(pickle.dumps(cal.ece)) is cal.ece


# -- scorers -------------------------------------------------------------------------------


def test_all_scorers_at_once(cancer, iris, bayes, part):
    validate = part("sklearn.model_selection").cross_validate
    for X, y, _ in (cancer, iris):
        found = validate(bayes, X, y, scoring=cal.scorers, cv=2, error_score="raise")
        assert {f"test_{name}" for name in cal.scorers} <= set(found)
        for name in cal.scorers:
            values = found[f"test_{name}"]
            assert (values <= 0).all() or name == "neg_calibration_error", name
    assert {"neg_ece", "neg_smooth_ece", "neg_brier", "neg_log_loss"} < set(cal.scorers)


def test_losses_are_those_of_scikit_learn(cancer, iris, part):
    steps = part("sklearn.pipeline").make_pipeline(
        part("sklearn.preprocessing").StandardScaler(),
        part("sklearn.linear_model").LogisticRegression(),
    )
    for X, _, y in (cancer, iris):
        for ours, theirs in (
            ("neg_brier", "neg_brier_score"),
            ("neg_log_loss", "neg_log_loss"),
        ):
            np.testing.assert_allclose(
                scored(part, steps, X, y, scoring=cal.scorers[ours]),
                scored(part, steps, X, y, scoring=theirs),
            )


def test_classes_are_those_of_the_model_not_of_the_fold(iris, bayes):
    X, _, numbers = iris
    model = bayes.fit(X, numbers + 1)  # classes 1, 2, 3
    some = numbers < 2
    found = cal.scorers["neg_brier"](model, X[some], numbers[some] + 1)
    assert found == -cal.brier(numbers[some], probs=model.predict_proba(X[some]))


def test_a_search_takes_a_scorer_and_copies_it(iris, part):
    X, y, _ = iris
    trees = part("sklearn.tree").DecisionTreeClassifier(random_state=0)
    search = part("sklearn.model_selection").GridSearchCV(
        trees, {"max_depth": [1, 5]}, scoring=cal.scorers["neg_smooth_ece"]
    )
    search = part("sklearn.base").clone(search).fit(X, y)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    scorer = cal.scorers["neg_brier"].using(convention="half")
    assert repr(scorer) == "Scorer(brier, convention='half')"
    for again in (copy.deepcopy(scorer), pickle.loads(pickle.dumps(scorer))):
        assert again == scorer
    assert cal.scorers["neg_brier"].options == {}


def test_scorers_read_frames(part):
    frame = part("pandas").DataFrame({"score": Z[:, 0]})
    found = scored(
        part, PlattScaling(), frame, Y > 0, scoring=cal.scorers["neg_brier"], cv=3
    )
    expected = scored(
        part, PlattScaling(), Z[:, :1], Y > 0, scoring="neg_brier_score", cv=3
    )
    np.testing.assert_allclose(found, expected)


def test_scorers_ask_for_weights(iris, bayes, part):
    X, y, _ = iris
    weight = np.where(y == "virginica", 5.0, 1.0)
    plain = cal.scorers["neg_brier"]
    model = part("sklearn.base").clone(bayes).fit(X, y)
    probs = model.predict_proba(X)
    expected = cal.brier(y, probs=probs, classes=model.classes_, sample_weight=weight)
    assert plain(model, X, y, sample_weight=weight) == -expected != plain(model, X, y)
    with part("sklearn").config_context(enable_metadata_routing=True):
        asking = plain.set_score_request(sample_weight=True)
        model = bayes.set_fit_request(sample_weight=False)
        options = {"params": {"sample_weight": weight}, "cv": 3}
        heavy = scored(part, model, X, y, scoring=asking, **options)
        light = scored(part, model, X, y, scoring=plain, cv=3)
        error = part("sklearn").exceptions.UnsetMetadataPassedError
        with pytest.raises(error, match="sample_weight"):
            scored(part, model, X, y, scoring=plain, **options)
    assert (heavy != light).any()


def test_scorers_load_no_scikit_learn():
    code = (
        "import sys, calibrant; calibrant.scorers; sys.exit('sklearn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -- conventions ---------------------------------------------------------------------------


def test_conventions_of_the_brier_score():
    y, p = [0, 1, 2, 1], np.array([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3]] * 2)
    total = cal.brier(y, probs=p)
    assert total == pytest.approx(np.mean(((np.eye(3)[y] - p) ** 2).sum(axis=1)))
    assert cal.brier(y, p, convention="sum") == total
    assert cal.brier(y, p, convention="half") == total / 2
    assert cal.brier(y, p, convention="mean") == total / 3
    one = cal.brier([1, 0], probs=[0.75, 0.25])
    assert one == cal.brier([1, 0], [0.75, 0.25], convention="half") == 0.0625
    assert cal.brier([1, 0], [0.75, 0.25], convention="mean") == 0.0625
    both = {"probs": [[0.25, 0.75], [0.75, 0.25]], "target": "top-label"}
    for convention in ("sum", "half", "mean"):
        expected = cal.brier([1, 0], **both, convention=convention)
        assert cal.brier([1, 0], [0.75, 0.25], convention=convention) == expected
    pairs = cal.brier([1, 0], confidence=[0.75, 0.25], convention="sum")
    assert pairs == 0.125
    with pytest.raises(ValueError, match="convention must be one of None, 'sum', 'ha"):
        cal.brier([1, 0], [0.75, 0.25], convention="double")


def test_words_of_scikit_learn_for_bins():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = rng.random(300) < p
    for ours, theirs in (("width", "uniform"), ("mass", "quantile")):
        assert cal.ece(y, p, strategy=ours) == cal.ece(y, p, strategy=theirs)
        assert cal.mce(y, p, strategy=ours) == cal.mce(y, p, strategy=theirs)
        fits = [
            HistogramBinning("probs", strategy=x, compat=c).fit(p, y).predict_proba(p)
            for x in (ours, theirs)
            for c in ((None, "netcal") if ours == "width" else (None,))
        ]
        np.testing.assert_array_equal(fits[0], fits[len(fits) // 2])
        np.testing.assert_array_equal(fits[-1], fits[len(fits) // 2 - 1])
    assert cal.ece(y, p, bins="cube-root") == cal.ece(y, p, bins="cube_root")
    assert cal.ece(y, p) == cal.ece(y, p, strategy="width")
    with pytest.raises(
        ValueError, match="strategy must be one of 'width', 'mass', 'un"
    ):
        cal.ece(y, p, strategy="kmeans")


def test_words_of_scikit_learn_are_kept_in_files(tmp_path):
    for strategy in ("uniform", "quantile"):
        fitted = HistogramBinning(strategy=strategy, bins=5).fit(Z, Y)
        fitted.save(tmp_path / strategy)
        again = load(tmp_path / strategy)
        assert again.strategy == strategy
        np.testing.assert_array_equal(again.predict_proba(Z), fitted.predict_proba(Z))


def test_a_sweep_is_over_bins_of_equal_weight():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = rng.random(300) < p
    found = cal.ece(y, p, bins="sweep")
    assert found == cal.ece(y, p, bins="sweep", strategy="mass")
    assert found == cal.ece(y, p, bins="sweep", strategy="quantile")
    for wrong in ("width", "uniform"):
        with pytest.raises(
            ValueError, match="strategy must be 'mass' where bins='sweep'"
        ):
            cal.ece(y, p, bins="sweep", strategy=wrong)


# -- arrays and frames -----------------------------------------------------------------------


def test_probabilities_come_in_the_kind_of_array_that_was_given(part):
    fitted = TemperatureScaling().fit(Z, Y)
    expected = fitted.predict_proba(Z)
    assert type(expected) is type(fitted.predict_proba(Z.tolist())) is np.ndarray
    torch = part("torch")
    for dtype, result in (("float64", "float64"), ("bfloat16", "float32")):
        given = torch.tensor(Z, dtype=getattr(torch, dtype), requires_grad=True)
        found = fitted.predict_proba(given)
        assert isinstance(found, torch.Tensor)
        assert found.dtype == getattr(torch, result)
        np.testing.assert_allclose(found.numpy(), expected, atol=2e-2)
    jax = part("jax")
    found = fitted.predict_proba(jax.numpy.asarray(Z))
    assert isinstance(found, jax.Array)
    np.testing.assert_allclose(np.asarray(found), expected, atol=1e-6)


def test_frames_keep_their_names(part):
    pandas, polars = part("pandas"), part("polars")
    fitted = VectorScaling().fit(Z, Y)
    expected = fitted.predict_proba(Z)
    rows = range(100, 160)
    found = fitted.predict_proba(pandas.DataFrame(Z, rows, ["a", "b", "c"]))
    assert isinstance(found, pandas.DataFrame)
    assert [*found.columns] == ["a", "b", "c"]
    assert [*found.index] == [*rows]
    np.testing.assert_array_equal(found.to_numpy(), expected)
    found = fitted.predict_proba(polars.DataFrame(Z, schema=["a", "b", "c"]))
    assert isinstance(found, polars.DataFrame)
    assert found.columns == ["a", "b", "c"]
    np.testing.assert_array_equal(found.to_numpy(), expected)
    binary = PlattScaling().fit(Z[:, 0], np.where(Y > 0, "yes", "no"))
    found = binary.predict_proba(pandas.Series(Z[:, 0], rows))
    assert [*found.columns] == ["no", "yes"]
    assert [*found.index] == [*rows]
    assert binary.predict_proba(polars.Series(Z[:, 0])).columns == ["no", "yes"]


def test_records_come_as_the_frame_that_is_asked_for(part):
    pandas, polars = part("pandas"), part("polars")
    rng = np.random.default_rng(2)
    p = rng.random(400)
    y = rng.random(400) < p
    ev = cal.evaluate(y, probs=p, name="a")
    records = [
        ev,
        ev.bins,
        ev.isotonic,
        ev.atoms,
        ev.curve,
        ev.smooth,
        ev.decomposition,
        cal.compare([ev, cal.evaluate(y, probs=p**2, name="b")]),
        cal.corp(y, probs=p),
        cal.calibration_test(y, probs=p),
        cal.calibration_bracket(y, probs=p),
        cal.confidence_split(y, probs=p),
        cal.choose_bandwidth(y, probs=p),
    ]
    for record in records:
        one, two = record.frame("pandas"), record.frame(kind="polars")
        assert isinstance(one, pandas.DataFrame)
        assert isinstance(two, polars.DataFrame)
        assert [*one.columns] == two.columns
        assert len(one) == len(two)
    parts = ev.decomposition.frame("pandas")
    assert parts["calibration"][0] == float(ev.decomposition.calibration)
    low, high = ev.decomposition.calibration.interval
    assert (parts["calibration_low"][0], parts["calibration_high"][0]) == (low, high)
    with pytest.raises(ValueError, match="kind must be one of 'pandas', 'polars'"):
        ev.frame("arrow")


def test_the_kind_of_a_frame_does_not_depend_on_what_was_imported(part):
    part("pandas"), part("polars")
    program = (
        "{}import calibrant as cal\n"
        "ev = cal.evaluate_pairs([1, 0], [0.9, 0.4], interval=None)\n"
        "print(type(ev.frame()).__module__.partition('.')[0], end='')"
    )
    for before in ("", "import polars\n", "import pandas\n"):
        line = [sys.executable, "-c", program.format(before)]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        assert done.stdout == "pandas"


def test_a_frame_of_what_is_not_installed_says_how_to_have_it(monkeypatch):
    from calibrant._base import records

    monkeypatch.setattr(records, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="pip install polars"):
        cal.corp([0, 1], probs=[0.2, 0.7]).frame("polars")


def test_a_fitted_recalibrator_shows_its_numbers():
    fitted = TemperatureScaling().fit(3 * Z, Y)
    assert repr(fitted) == f"TemperatureScaling(fitted: T={fitted.temperature_:.4g})"
    found = cal.study(Y, logits=3 * Z, methods=["temperature"], folds=2)
    shown = found.recalibrators["Temperature"]
    assert f"T={shown.temperature_:.4g}" in repr(found.recalibrators)
    platt = PlattScaling(smoothing=0).fit(Z[:, 0], Y > 0)
    numbers = f"slope={platt.slope_[0]:.4g}, intercept={platt.intercept_[0]:.4g}"
    assert repr(platt) == f"PlattScaling(smoothing=0; fitted: {numbers})"
    assert "fitted: a=" in repr(BetaCalibration().fit(Z[:, 0], Y > 0))
    assert "fitted: accuracy=" in repr(MeanReplacement().fit(Z, Y))
    assert repr(HistogramBinning().fit(Z, Y)) == "HistogramBinning()"


def test_a_scorer_refuses_an_option_that_its_metric_has_not():
    with pytest.raises(TypeError, match="ece has no option 'bin'; did you mean 'bins'"):
        cal.scorers["neg_ece"].using(bin=5)


def test_a_scorer_reads_the_column_of_the_true_class():
    from sklearn.datasets import load_breast_cancer
    from sklearn.naive_bayes import GaussianNB

    X, y = load_breast_cancer(return_X_y=True)
    found = []
    for labels in (y, np.array(["b", "a"])[y], 1 - y):
        one = GaussianNB().fit(X[100:], labels[100:])
        p = one.predict_proba(X[:100])
        at = np.searchsorted(one.classes_, labels[:100])
        found.append(cal.scorers["neg_log_loss"](one, X[:100], labels[:100]))
        # One column holds 1 where the other has what is left to lose.
        assert found[-1] == pytest.approx(np.log(p[np.arange(100), at]).mean(), 1e-12)
    assert (p[:, 0] == 1).any() or (p[:, 1] == 1).any()
    assert found[0] == pytest.approx(found[1], 1e-12)
    assert np.isfinite(found).all()
