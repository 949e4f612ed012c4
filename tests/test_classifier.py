"""A classifier of scikit-learn and its recalibration as one: contract, weights, losses."""

import warnings
from importlib.metadata import version
from typing import ClassVar

import numpy as np
import pytest

import calibrant as cal
from calibrant.recalibration import (
    EnsembleTemperatureScaling,
    FitWarning,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    RecalibratedClassifier,
    TemperatureScaling,
    VectorScaling,
)

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.recalibration.FitWarning")


@pytest.fixture(scope="module")
def iris(part):
    datasets = part("sklearn.datasets")
    X, y = datasets.load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], np.array(["se", "ve", "vi"])[y[order]]


@pytest.fixture(scope="module")
def bayes(part):
    return part("sklearn.naive_bayes").GaussianNB


# -- scikit-learn's contract -----------------------------------------------------------------

# None of the checks fails. A limit on T and Platt's targets count examples by their
# effective number, in which a weight of 2 is not the same as two examples; these do without.
CHECKED = {
    "probabilities": lambda part: RecalibratedClassifier(
        part("sklearn.naive_bayes").GaussianNB(), cv=3
    ),
    "both": lambda part: RecalibratedClassifier(
        part("sklearn.linear_model").LogisticRegression(),
        TemperatureScaling(bounds=(0.01, 100.0)),
        cv=2,
    ),
    "ensemble": lambda part: RecalibratedClassifier(
        part("sklearn.naive_bayes").GaussianNB(), cv=2, ensemble=True
    ),
    "logits": lambda part: RecalibratedClassifier(
        part("sklearn.svm").LinearSVC(dual=False), PlattScaling(smoothing=0), cv=3
    ),
}


@pytest.mark.parametrize("which", CHECKED)
def test_scikit_learn_checks(which, part):
    checks = part("sklearn.utils.estimator_checks")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = checks.check_estimator(
            CHECKED[which](part), on_skip=None, on_fail=None
        )
    failed = {
        r["check_name"]: r["exception"] for r in results if r["status"] == "failed"
    }
    assert failed == {}
    passed = {r["check_name"] for r in results if r["status"] == "passed"}
    assert {
        "check_sample_weight_equivalence_on_dense_data",
        "check_n_features_in_after_fitting",
        "check_requires_y_none",
        "check_supervised_y_2d",
    } <= passed
    part("pandas")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checks.check_dataframe_column_names_consistency(which, CHECKED[which](part))


def test_names_of_features_are_those_of_the_classifier(iris, bayes, part):
    X, y = iris
    frame = part("pandas").DataFrame(X, columns=list("abcd"))
    model = RecalibratedClassifier(bayes(), cv=3).fit(frame, y)
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == list("abcd")
    assert not hasattr(model.fit(X, y), "feature_names_in_")
    with pytest.raises(ValueError, match="X has 3 features"):
        model.predict(X[:, :3])


# -- behind a classifier -------------------------------------------------------------------


def test_recalibrated_classifier_leaves_a_fitted_one_alone(iris, part):
    X, y = iris
    linear = part("sklearn.linear_model").LogisticRegression().fit(X[:60], y[:60])
    before = linear.predict_proba(X)
    model = RecalibratedClassifier(linear).fit(X[60:110], y[60:110])
    assert model.estimator_ is linear
    np.testing.assert_array_equal(linear.predict_proba(X), before)
    expected = TemperatureScaling(scores="probs").fit(before[60:110], y[60:110])
    np.testing.assert_array_equal(
        model.predict_proba(X), expected.predict_proba(before)
    )
    np.testing.assert_array_equal(model.predict(X), linear.predict(X))


def test_recalibrated_classifier_behind_a_frozen_one_and_in_cross_validation(
    iris, part
):
    X, y = iris
    frozen = part("sklearn.frozen").FrozenEstimator(
        part("sklearn.linear_model").LogisticRegression().fit(X[:60], y[:60])
    )
    model = RecalibratedClassifier(frozen, TemperatureScaling())  # decision_function
    scores = part("sklearn.model_selection").cross_val_score(model, X[60:], y[60:])
    assert scores.mean() > 0.9
    cross_fitted = RecalibratedClassifier(
        part("sklearn.naive_bayes").GaussianNB(), HistogramBinning("probs"), cv=3
    ).fit(X, y)
    assert cross_fitted.predict_proba(X).shape == (150, 3)
    assert cross_fitted.classes_.tolist() == ["se", "ve", "vi"]


def recording(base, seen):
    """A classifier that keeps the first column of the rows it is fitted on."""

    class Recording(base):
        weights: ClassVar[list] = []

        def fit(self, X, y, sample_weight=None):
            seen.append(X[:, 0])
            self.weights.append(sample_weight)
            return base.fit(self, X, y, sample_weight)

    return Recording()


def test_folds_of_a_recalibrated_classifier_do_not_cut_a_cluster(iris, part):
    X, y = iris
    game = np.arange(150) // 6
    X = np.c_[game, X[:, 1:]]
    seen = []
    bayes = recording(part("sklearn.naive_bayes").GaussianNB, seen)
    model = RecalibratedClassifier(bayes, HistogramBinning("probs"), cv=5)
    model.fit(X, y, cluster=game)
    *folds, whole = seen
    assert len(whole) == 150
    for rows in folds:
        assert all(np.sum(rows == one) in (0, 6) for one in range(25))
    with pytest.raises(ValueError, match="cv must be at most 25, the number of clus"):
        RecalibratedClassifier(bayes, cv=30).fit(X, y, cluster=game)
    cuts = part("sklearn.model_selection").KFold(4)
    with pytest.raises(ValueError, match="cv must not cut a cluster; it cuts"):
        RecalibratedClassifier(bayes, cv=cuts).fit(X, y, cluster=game)


def test_groups_are_for_the_splitter_and_weights_for_the_classifier(iris, part):
    X, y = iris
    groups, weight = np.arange(150) // 6, np.arange(150) % 3 + 1.0
    X = np.c_[groups, X[:, 1:]]
    seen = []
    bayes = recording(part("sklearn.naive_bayes").GaussianNB, seen)
    by_groups = part("sklearn.model_selection").GroupKFold(5)
    model = RecalibratedClassifier(bayes, cv=by_groups)
    model.fit(X, y, weight, groups=groups)
    assert all(np.sum(rows == one) in (0, 6) for rows in seen for one in range(25))
    np.testing.assert_array_equal(bayes.weights[-1], weight)
    model.fit(X, y, weight, frequency=np.full(150, 2), groups=groups)
    np.testing.assert_array_equal(bayes.weights[-1], 2 * weight)
    with pytest.raises(TypeError, match="fit got 'groups', for which there is no use"):
        RecalibratedClassifier(model).fit(X, y, groups=groups)


def test_metadata_routing(iris, part):
    X, y = iris
    groups, weight = np.arange(150) // 6, np.arange(150) % 3 + 1.0
    selection = part("sklearn.model_selection")
    linear = part("sklearn.linear_model").LogisticRegression(max_iter=1000)
    by_hand = RecalibratedClassifier(linear, cv=selection.GroupKFold(5))
    by_hand.fit(X, y, weight, groups=groups)
    with part("sklearn").config_context(enable_metadata_routing=True):
        asking = linear.set_fit_request(sample_weight=True)
        model = RecalibratedClassifier(asking, cv=selection.GroupKFold(5))
        model.set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        model.fit(X, y, sample_weight=weight, groups=groups)
        given = {"sample_weight": weight, "groups": groups}
        found = selection.cross_validate(
            model, X, y, params=given, cv=3, error_score="raise"
        )
        refusing = RecalibratedClassifier(
            part("sklearn.base").clone(linear).set_fit_request(sample_weight=False),
            cv=3,
        ).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(by_hand.predict_proba(X), model.predict_proba(X))
    assert found["test_score"].min() > 0.8
    unweighted = part("sklearn.base").clone(linear).fit(X, y)
    np.testing.assert_array_equal(refusing.estimator_.coef_, unweighted.coef_)


def test_a_classifier_without_weights_is_told(iris, part):
    X, y = iris
    near = part("sklearn.neighbors").KNeighborsClassifier()
    with pytest.warns(FitWarning, match="KNeighborsClassifier takes no sample_weight"):
        RecalibratedClassifier(near, cv=3).fit(X, y, np.ones(150) + (y == "se"))


# -- which scores ------------------------------------------------------------------------


def test_scores_are_those_that_the_classifier_has(iris, bayes, part):
    X, y = iris
    linear = part("sklearn.linear_model").LogisticRegression(max_iter=1000)
    machine = part("sklearn.svm").LinearSVC(dual=False)
    for base, method, expected in (
        (bayes(), TemperatureScaling(), "probs"),
        (machine, None, "logits"),
        (machine, PlattScaling("probs"), "logits"),
        (linear, TemperatureScaling(), "logits"),
        (linear, None, "probs"),
    ):
        model = RecalibratedClassifier(base, method, cv=3).fit(X, y)
        assert model.recalibrator_.scores == expected
        assert model.predict_proba(X).shape == (150, 3)
        assert model.score(X, y) > 0.8
    forced = RecalibratedClassifier(linear, cv=3, scores="logits").fit(X, y)
    assert forced.recalibrator_.scores == "logits"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scores": "logits"}, "needs decision_function, which GaussianNB does not ha"),
        ({"scores": "logits"}, "use scores='probs'"),
        ({"scores": "odds"}, "scores must be one of"),
        ({}, "Pass cv=5 to have it fitted"),
        ({"cv": 1}, "cv must be a whole number from 2 on"),
        ({"cv": True}, "cv must be a whole number"),
        ({"cv": 3, "ensemble": "yes"}, "ensemble must be one of True, False"),
        ({"ensemble": True}, "ensemble=True averages over folds, so it needs cv"),
    ],
)
def test_errors_say_the_way_out(options, message, iris, bayes):
    with pytest.raises(ValueError, match=message):
        RecalibratedClassifier(bayes(), **options).fit(*iris)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": "five"}, "cv must be a number of folds, a splitter .* got 'five'"),
        ({"cv": 2.5}, "cv must be a number of folds"),
        ({"recalibrator": "platt"}, "recalibrator must be a recalibrator such as"),
        ({"recalibrator": PlattScaling}, "recalibrator must be a recalibrator such as"),
    ],
)
def test_what_is_no_recalibrator_or_splitter_is_named(options, message, iris, bayes):
    with pytest.raises(TypeError, match=message):
        RecalibratedClassifier(bayes(), **options).fit(*iris)


def test_a_frame_in_gives_an_array_out_which_scikit_learn_can_index(iris, bayes, part):
    pandas, selection = part("pandas"), part("sklearn.model_selection")
    X, y = iris
    table, two = pandas.DataFrame(X, columns=list("abcd")), y == "vi"

    class Framed(bayes):
        def predict_proba(self, X):
            return pandas.DataFrame(super().predict_proba(X), columns=self.classes_)

    model = RecalibratedClassifier(Framed(), cv=3)
    assert type(model.fit(table, two).predict_proba(table)) is np.ndarray
    scoring = ("roc_auc", "neg_brier_score", "neg_log_loss")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = selection.cross_validate(
            RecalibratedClassifier(bayes(), cv=3), table, two, scoring=scoring, cv=3
        )
    assert all(np.isfinite(found[f"test_{name}"]).all() for name in scoring)


# -- an ensemble of folds --------------------------------------------------------------------


def test_an_ensemble_is_the_mean_of_its_folds(iris, bayes, part):
    X, y = iris
    folds = part("sklearn.model_selection").StratifiedKFold(3)
    weight = np.random.default_rng(0).random(len(y)) + 0.5
    method = TemperatureScaling(scores="probs")
    model = RecalibratedClassifier(bayes(), method, cv=folds, ensemble=True)
    model.fit(X, y, weight)
    means = np.zeros((len(y), 3))
    for fit, test in folds.split(X, y):
        base = bayes().fit(X[fit], y[fit], weight[fit])
        one = RecalibratedClassifier(base, method).fit(X[test], y[test], weight[test])
        means += one.predict_proba(X) / 3
    assert model.predict_proba(X) == pytest.approx(means, abs=1e-12)
    assert np.array_equal(model.predict(X), model.classes_[means.argmax(axis=1)])
    assert model.score(X, y) > 0.9
    assert len(model.members_) == 3


def test_folds_of_an_ensemble_need_every_class_and_cut_no_cluster(iris, bayes, part):
    X, y = iris
    rare = np.where(np.arange(len(y)) == 0, "rare", y)
    splits = [(np.arange(75, 150), np.arange(75)), (np.arange(75), np.arange(75, 150))]
    with pytest.raises(ValueError, match="cv leaves a class out"):
        RecalibratedClassifier(bayes(), cv=splits, ensemble=True).fit(X, rare)
    model = RecalibratedClassifier(bayes(), cv=splits, ensemble=True)
    with pytest.raises(ValueError, match="cv must not cut a cluster"):
        model.fit(X, y, cluster=np.arange(len(y)) % 10)


def test_an_ensemble_is_as_good_as_scikit_learn(digits, part):
    X, y = digits
    fit, test = slice(400), slice(400, None)
    for name, peer, method in (
        (BAYES, "sigmoid", PlattScaling()),
        (NEIGHBOURS, "isotonic", IsotonicCalibration()),
    ):
        package, _, kind = name.partition(".")
        base = getattr(part(f"sklearn.{package}"), kind)()
        ours = RecalibratedClassifier(base, method, cv=5, ensemble=True)
        theirs = part("sklearn.calibration").CalibratedClassifierCV(
            base, method=peer, cv=5, ensemble=True
        )
        losses = [
            cal.nll(y[test], probs=model.fit(X[fit], y[fit]).predict_proba(X[test]))
            for model in (ours, theirs)
        ]
        assert losses[0] <= losses[1]


@pytest.mark.parametrize("name", ["digits", "breast_cancer", "wine"])
def test_sigmoids_of_neighbours_are_as_good_as_scikit_learn(name, part):
    """Of 5 neighbours 0, 1, … are for a class: 0 must not count as 1."""
    split = part("sklearn.model_selection").train_test_split
    base = part("sklearn.neighbors").KNeighborsClassifier()
    theirs = part("sklearn.calibration").CalibratedClassifierCV
    models = (
        RecalibratedClassifier(base, PlattScaling(scores="probs"), cv=5),
        theirs(base, method="sigmoid", cv=5, ensemble=False),
    )
    X, y = getattr(part("sklearn.datasets"), f"load_{name}")(return_X_y=True)
    losses = np.zeros(2)
    for seed in range(5):
        X_fit, X_test, y_fit, y_test = split(
            X, y, test_size=0.5, random_state=seed, stratify=y
        )
        losses += [
            cal.nll(
                y_test, m.fit(X_fit, y_fit).predict_proba(X_test), target="top-label"
            )
            for m in models
        ]
    assert losses[0] < losses[1]


def test_a_model_without_scores_is_refused(part):
    regression = part("sklearn.linear_model").LinearRegression()
    with pytest.raises(ValueError, match="LinearRegression has neither"):
        RecalibratedClassifier(regression, cv=2).fit([[1.0], [2.0]] * 5, [0, 1] * 5)


def test_a_classifier_that_is_not_fitted_is_told_apart(iris, bayes, part):
    with pytest.raises(part("sklearn").exceptions.NotFittedError, match="cv is None"):
        RecalibratedClassifier(bayes()).fit(*iris)


# -- losses ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def digits(part):
    X, y = part("sklearn.datasets").load_digits(return_X_y=True)
    order = np.random.default_rng(4).permutation(len(y))
    return X[order], y[order]


BAYES, NEIGHBOURS = "naive_bayes.GaussianNB", "neighbors.KNeighborsClassifier"
PEERS = [
    (BAYES, "sigmoid", PlattScaling),
    (BAYES, "temperature", TemperatureScaling),
    (BAYES, "temperature", EnsembleTemperatureScaling),
    (NEIGHBOURS, "temperature", TemperatureScaling),
    (NEIGHBOURS, "sigmoid", PlattScaling),
]


@pytest.mark.parametrize(("base", "peer", "method"), PEERS)
@pytest.mark.parametrize("size", [120, 400])
def test_at_least_as_good_as_scikit_learn(base, peer, method, size, digits, part):
    X, y = digits
    if peer == "temperature" and version("scikit-learn").startswith("1.7"):
        pytest.skip("scikit-learn scales temperatures since 1.8")
    package, _, name = base.partition(".")
    model = getattr(part(f"sklearn.{package}"), name)().fit(X[400:1000], y[400:1000])
    frozen = part("sklearn.frozen").FrozenEstimator(model)
    theirs = part("sklearn.calibration").CalibratedClassifierCV(frozen, method=peer)
    theirs.fit(X[:size], y[:size])
    ours = RecalibratedClassifier(model, method()).fit(X[:size], y[:size])
    new, labels = X[1000:], y[1000:]
    raw = cal.nll(labels, probs=model.predict_proba(new))
    assert raw == np.inf
    found = cal.nll(labels, probs=ours.predict_proba(new))
    assert found < cal.nll(labels, probs=theirs.predict_proba(new))


@pytest.mark.parametrize(
    "method",
    [TemperatureScaling, VectorScaling, IsotonicCalibration, HistogramBinning],
)
def test_no_class_is_impossible(method, digits, part):
    X, y = digits
    trees = part("sklearn.ensemble").RandomForestClassifier(20, random_state=0)
    trees.fit(X[400:1000], y[400:1000])
    model = RecalibratedClassifier(trees, method()).fit(X[:100], y[:100])
    p = model.predict_proba(X[1000:])
    assert (trees.predict_proba(X[1000:]) == 0).any()
    assert p.min() > 0
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert cal.nll(y[1000:], probs=p) < 1.0
    np.testing.assert_array_equal(
        model.predict(X[1000:]), model.classes_[p.argmax(axis=1)]
    )


def test_what_is_no_distribution_is_still_refused(iris, bayes):
    class Odd(bayes):
        def predict_proba(self, X):
            return np.where(bayes.predict_proba(self, X) > 0.5, 1.1, 0.0)

    X, y = iris
    with pytest.raises(ValueError, match=r"sum to 1|not 1 within"):
        RecalibratedClassifier(Odd().fit(X, y)).fit(X, y)
