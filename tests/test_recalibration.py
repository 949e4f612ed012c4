"""What every recalibrator promises: scikit-learn's contract, files, rows that add up."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracles import log_loss
from strategies import problems

import calibrant as cal
from calibrant import recalibration
from calibrant.recalibration import (
    AdaptiveTemperatureScaling,
    BetaCalibration,
    DirichletCalibration,
    EnsembleTemperatureScaling,
    FitWarning,
    HistogramBinning,
    Identity,
    IsotonicCalibration,
    MatrixScaling,
    MeanReplacement,
    MixtureScaling,
    OffsetScaling,
    PlattScaling,
    PriorShift,
    Recalibrator,
    TemperatureScaling,
    TopLabelBinning,
    VectorScaling,
    VennAbers,
    load,
)
from calibrant.recalibration._estimator import FORMATS
from calibrant.recalibration._modes import ByMode

METHODS = [
    Identity,
    MeanReplacement,
    TemperatureScaling,
    EnsembleTemperatureScaling,
    VectorScaling,
    MatrixScaling,
    DirichletCalibration,
    HistogramBinning,
    IsotonicCalibration,
    PlattScaling,
    BetaCalibration,
    OffsetScaling,
    PriorShift,
    VennAbers,
    AdaptiveTemperatureScaling,
    MixtureScaling,
    TopLabelBinning,
]
VARIANTS = [
    *METHODS,
    lambda **o: TemperatureScaling(divergence="brier", **o),
    lambda **o: HistogramBinning(mode="top-label", **o),
    lambda **o: HistogramBinning(strategy="mass", smoothing=1, **o),
    lambda **o: HistogramBinning(compat="netcal", **o),
    lambda **o: IsotonicCalibration(mode="top-label", **o),
    lambda **o: IsotonicCalibration(smoothing=1, **o),
    lambda **o: IsotonicCalibration(compat="netcal", **o),
    lambda **o: VennAbers(mode="top-label", **o),
]
JUMP = (HistogramBinning, IsotonicCalibration, VennAbers, TopLabelBinning)
AS_GIVEN = (
    Identity,
    OffsetScaling,
    PriorShift,
)  # they leave a model of the right rates
KEEP_ORDER = [TemperatureScaling, EnsembleTemperatureScaling, Identity]
pytestmark = pytest.mark.filterwarnings("ignore::calibrant.recalibration.FitWarning")


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def over_confident(n=400, k=4, seed=0):
    """Logits three times too large, and labels."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * 2
    return 3 * z, (z + rng.gumbel(size=z.shape)).argmax(axis=1)


Z, Y = over_confident()


def test_every_method_is_tested_here():
    exported = {getattr(recalibration, name) for name in recalibration.__all__}
    methods = {
        m for m in exported if isinstance(m, type) and issubclass(m, Recalibrator)
    }
    assert methods == {*METHODS, Recalibrator}


# -- scikit-learn's contract --------------------------------------------------------

# Data of these checks has three classes and two columns, or rows of one class and ten
# columns; a recalibrator has one column per class. Tests below do the same with data of
# the right shape.
NOT_FOR_US = {
    "check_estimators_overwrite_params": "three classes in two columns",
    "check_estimators_fit_returns_self": "three classes in two columns",
    "check_readonly_memmap_input": "three classes in two columns",
    "check_classifiers_classes": "three classes in two columns",
    "check_classifiers_train": "three classes in two columns",
    "check_classifiers_one_label": "a class that is the only one in y need not be the only one",
    "check_supervised_y_2d": "a column of labels is read without a warning",
    "check_sample_weight_equivalence_on_dense_data": "weights have no unit: a row twice is "
    "frequency=2, which penalties and pseudo-rows can tell from a weight of 2",
}


@pytest.mark.parametrize("method", METHODS)
def test_scikit_learn_checks(method, part):
    checks = part("sklearn.utils.estimator_checks")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = checks.check_estimator(
            method(), expected_failed_checks=NOT_FOR_US, on_skip=None, on_fail=None
        )
    failed = {
        r["check_name"]: r["exception"] for r in results if r["status"] == "failed"
    }
    assert failed == {}
    assert sum(r["status"] == "passed" for r in results) > 45


@pytest.mark.parametrize("method", METHODS)
def test_clone_and_parameters(method, part):
    sklearn = part("sklearn")
    given = method(scores="probs", classes=["b", "a"])
    copy = sklearn.base.clone(given)
    assert copy is not given
    assert copy.get_params() == given.get_params()
    assert copy.set_params(scores="logits").scores == "logits"
    assert given.scores == "probs"
    assert sklearn.base.is_classifier(given)
    with pytest.raises(ValueError, match=r"parameter must be one of .*got 'C'"):
        copy.set_params(C=1)
    assert "scores='probs'" in repr(given)
    assert repr(method()) == f"{method.__name__}()"


@pytest.mark.parametrize("make", VARIANTS)
def test_fit_returns_self_and_changes_no_parameter_and_no_input(make):
    z, y = Z.copy(), Y.copy()
    z.flags.writeable = y.flags.writeable = False
    estimator = make()
    before = estimator.get_params()
    assert estimator.fit(z, y) is estimator
    assert estimator.get_params() == before
    np.testing.assert_array_equal(z, Z)
    assert estimator.n_features_in_ == 4
    assert estimator.classes_.tolist() == [0, 1, 2, 3]
    assert estimator.predict(z).shape == (400,)
    assert estimator.score(z, y) == np.mean(estimator.predict(z) == y)


@pytest.mark.parametrize("method", METHODS)
def test_cross_validation(method, part):
    selection = part("sklearn.model_selection")
    scores = selection.cross_val_score(method(), Z, Y, scoring="neg_brier_score", cv=3)
    assert np.isfinite(scores).all()


def test_grid_search(part):
    selection = part("sklearn.model_selection")
    search = selection.GridSearchCV(
        HistogramBinning(smoothing=1), {"bins": [5, 15]}, scoring="neg_log_loss", cv=3
    )
    assert search.fit(Z, Y).best_params_["bins"] in (5, 15)


# -- probabilities -------------------------------------------------------------------


@pytest.mark.parametrize("scores", ["logits", "probs"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("make", VARIANTS)
def test_rows_sum_to_one_in_the_precision_of_the_scores(make, dtype, scores):
    given = (Z if scores == "logits" else softmax(Z)).astype(dtype)
    p = make(scores=scores).fit(given, Y).predict_proba(given)
    netcal = getattr(make(), "compat", None) == "netcal"
    assert p.shape == Z.shape
    if not (netcal and make().__class__ is IsotonicCalibration):  # always float64
        assert p.dtype == (np.float64 if dtype == np.float64 else np.float32)
    assert (p >= 0).all()
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    if dtype == np.float16 and scores == "probs" and make().__class__ is Identity:
        tolerance = 4e-3  # as given
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=tolerance)


@given(problems(least=3), st.sampled_from(VARIANTS), st.integers(0, 3))
def test_no_input_gives_nan_or_rows_that_do_not_sum_to_one(problem, make, seed):
    z, y = problem
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        p = make().fit(z, y).predict_proba(z[::-1])
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("make", VARIANTS)
def test_no_silent_no_op_on_float32(make):
    """netcal's temperature does nothing at all on float32."""
    single, double = Z.astype(np.float32), Z.astype(np.float32).astype(np.float64)
    p32 = make().fit(single, Y).predict_proba(single)
    p64 = make().fit(double, Y).predict_proba(double)
    if make().__class__ not in JUMP:
        np.testing.assert_allclose(p32, p64, atol=2e-4)
    if make().__class__ not in AS_GIVEN:
        assert np.abs(p32 - softmax(Z)).max() > 0.05


@pytest.mark.parametrize("make", VARIANTS)
def test_row_order_does_not_matter(make):
    order = np.random.default_rng(1).permutation(len(Y))
    p = make().fit(Z, Y).predict_proba(Z)
    q = make().fit(Z[order], Y[order]).predict_proba(Z)
    np.testing.assert_allclose(p, q, atol=2e-5)


@pytest.mark.parametrize("make", VARIANTS)
def test_frequency_two_is_a_row_twice_and_frequency_zero_is_no_row(make):
    count = np.random.default_rng(2).integers(0, 3, len(Y))
    repeated = np.repeat(np.arange(len(Y)), count)
    p = make().fit(Z, Y, frequency=count).predict_proba(Z)
    q = make().fit(Z[repeated], Y[repeated]).predict_proba(Z)
    exact = type(make()) in (MeanReplacement, *JUMP)
    np.testing.assert_allclose(p, q, atol=1e-12 if exact else 2e-5)


@pytest.mark.parametrize("make", VARIANTS)
@pytest.mark.parametrize("unit", [3.0, 1e-3, 1e6])
def test_weights_have_no_unit(make, unit):
    weight = np.random.default_rng(2).exponential(size=len(Y))
    p = make().fit(Z, Y, weight).predict_proba(Z)
    q = make().fit(Z, Y, unit * weight).predict_proba(Z)
    np.testing.assert_allclose(p, q, atol=1e-6)
    same = make().fit(Z, Y, np.full(len(Y), unit)).predict_proba(Z)
    np.testing.assert_array_equal(same, make().fit(Z, Y).predict_proba(Z))


def test_weights_count_as_their_effective_number():
    w = np.random.default_rng(4).exponential(size=len(Y))
    fitted = HistogramBinning(mode="top-label", bins=3).fit(Z, Y, w)
    assert fitted.counts_.sum() == pytest.approx(w.sum() ** 2 / (w @ w), rel=1e-12)
    counted = HistogramBinning(mode="top-label", bins=3).fit(Z, Y, frequency=Y + 1)
    assert counted.counts_.sum() == (Y + 1).sum()


@pytest.mark.parametrize("make", VARIANTS)
def test_counts_and_weights_go_together(make):
    count = np.random.default_rng(2).integers(0, 3, len(Y))
    weight = np.random.default_rng(3).exponential(size=len(Y))
    again = np.repeat(np.arange(len(Y)), count)
    p = make().fit(Z, Y, weight, frequency=count).predict_proba(Z)
    q = make().fit(Z[again], Y[again], weight[again]).predict_proba(Z)
    np.testing.assert_allclose(p, q, atol=2e-5)


def test_a_frequency_is_a_whole_number():
    with pytest.raises(ValueError, match="frequency must hold whole numbers"):
        MeanReplacement().fit(Z, Y, frequency=np.full(len(Y), 0.5))


SMALL = [
    VectorScaling,
    MatrixScaling,
    DirichletCalibration,
    PlattScaling,
    BetaCalibration,
]
SMALL += [make for make in VARIANTS if isinstance(make(), ByMode)]


@settings(max_examples=150)
@given(problems(least=3), st.sampled_from(SMALL), st.randoms(use_true_random=False))
def test_small_data_in_any_order_or_weighted_give_the_same(problem, make, random):
    z, y = problem
    z = z.clip(-8, 8)
    times = np.array([random.randint(1, 2) for _ in y])
    order = random.sample(range(len(y)), len(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        given = make().fit(z, y, frequency=times).predict_proba(z)
        others = (
            make().fit(z[order], y[order], frequency=times[order]),
            make().fit(z.repeat(times, axis=0), y.repeat(times)),
            make().fit(np.r_[z, z[:1]], np.r_[y, y[:1]], frequency=np.r_[times, 0]),
        )
    exact = isinstance(make(), ByMode)
    for other in others:
        atol = 1e-12 if exact else 1e-6
        np.testing.assert_allclose(other.predict_proba(z), given, atol=atol)


@pytest.mark.parametrize("method", KEEP_ORDER)
@given(problem=problems(least=3))
def test_order_of_classes_is_kept(method, problem):
    z, y = problem
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        fitted = method().fit(z, y)
    p = fitted.predict_proba(z)
    i, j = np.triu_indices(z.shape[1], 1)
    larger = z[:, i] > z[:, j]
    assert (p[:, i] >= p[:, j])[larger].all()


@pytest.mark.parametrize("make", VARIANTS)
def test_relabelling_classes_changes_nothing(make):
    order = [2, 0, 3, 1]
    place = np.argsort(order)
    p = make().fit(Z, Y).predict_proba(Z)
    q = make().fit(Z[:, order], place[Y]).predict_proba(Z[:, order])
    np.testing.assert_allclose(p[:, order], q, atol=2e-5)


# -- labels and shapes ---------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_names_of_classes(method):
    names = np.array(["ant", "bee", "cat", "dog"])
    fitted = method().fit(Z, names[Y])
    assert fitted.classes_.tolist() == names.tolist()
    np.testing.assert_array_equal(
        fitted.predict(Z), names[method().fit(Z, Y).predict(Z)]
    )
    order = ["dog", "cat", "bee", "ant"]
    turned = method(classes=order).fit(Z[:, ::-1], names[Y])
    assert turned.classes_.tolist() == order
    np.testing.assert_allclose(
        turned.predict_proba(Z[:, ::-1])[:, ::-1], fitted.predict_proba(Z), atol=2e-5
    )


@pytest.mark.parametrize("names", [[1, 2, 3, 4], [0, 1, 2, 7], [-1.0, 0.0, 1.0, 9.0]])
def test_labels_of_other_numbers_name_the_columns_in_order(names):
    fitted = TemperatureScaling().fit(Z, np.array(names)[Y])
    assert fitted.classes_.tolist() == names
    assert fitted.temperature_ == TemperatureScaling().fit(Z, Y).temperature_


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array(["a", "b"])[Y % 2], "2 distinct labels .'a', 'b'.*4 classes"),
        (np.arange(len(Y)), "400 distinct labels"),
        (Y + 0.5, "Unknown label type"),
        (np.where(Y == 3, np.nan, Y), "contains NaN"),
        (np.eye(4)[Y], "must be 1-D for fitting"),
        (Y[:-1], "one entry per row"),
        (None, "requires y to be passed"),
    ],
)
def test_labels_that_do_not_fit(labels, message):
    with pytest.raises(ValueError, match=message):
        TemperatureScaling().fit(Z, labels)


@pytest.mark.parametrize("method", METHODS)
def test_binary_problems_have_one_column_or_two(method):
    z, y = over_confident(k=2)
    margin = z[:, 1] - z[:, 0]
    two = method().fit(np.stack([0 * margin, margin], axis=1), y)
    for one_column in (margin, margin[:, None]):
        one = method().fit(one_column, y)
        assert one.n_features_in_ == 1
        np.testing.assert_array_equal(
            one.predict_proba(one_column),
            two.predict_proba(np.stack([0 * margin, margin], axis=1)),
        )
    p = 1 / (1 + np.exp(-margin))
    fitted = method(scores="probs").fit(p, y)
    assert fitted.predict_proba(p).shape == (len(p), 2)


@pytest.mark.parametrize("method", METHODS)
def test_other_columns_than_in_fit_are_refused(method):
    fitted = method().fit(Z, Y)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4"):
        fitted.predict_proba(Z[:, :3])
    with pytest.raises(ValueError, match="Reshape your data"):
        fitted.predict(Z[0])


def test_columns_of_a_frame_must_keep_their_names(part):
    frame = part("pandas").DataFrame(Z, columns=["a", "b", "c", "d"])
    fitted = TemperatureScaling().fit(frame, Y)
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict_proba(frame[["b", "a", "c", "d"]])
    assert fitted.predict_proba(Z).shape == Z.shape
    assert not hasattr(fitted.fit(Z, Y), "feature_names_in_")


def test_tensors_and_frames_are_read(part):
    expected = TemperatureScaling().fit(Z, Y).temperature_
    tensor = part("torch").tensor(Z)
    frame = part("polars").DataFrame(Z)
    for given_scores in (tensor, frame, Z.tolist()):
        assert TemperatureScaling().fit(given_scores, Y).temperature_ == expected


def test_logits_that_are_probabilities_are_refused():
    with pytest.raises(ValueError, match=r"TemperatureScaling\(scores='probs'\)"):
        TemperatureScaling().fit(softmax(Z), Y)
    with pytest.raises(ValueError, match="every row sums to 1"):
        TemperatureScaling().fit(Z, Y).predict_proba(softmax(Z))
    with pytest.raises(ValueError, match="probs must be rows of probabilities"):
        TemperatureScaling(scores="probs").fit(Z, Y)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_that_are_no_numbers_are_refused(method, bad):
    z = Z.copy()
    z[7, 2] = bad
    with pytest.raises(ValueError, match="logits must be finite: row 7"):
        method().fit(z, Y)
    with pytest.raises(ValueError, match="logits must be finite: row 7"):
        method().fit(Z, Y).predict_proba(z)


@pytest.mark.parametrize("method", METHODS)
def test_a_row_that_is_refused_has_its_number_among_many(method):
    z, y = np.tile(Z, (10, 1)), np.tile(Y, 10)
    z[2000, 1] = np.nan  # among the few that are looked at first
    with pytest.raises(ValueError, match="logits must be finite: row 2000"):
        method().fit(z, y)


@pytest.mark.parametrize("method", METHODS)
def test_not_fitted(method, part):
    error = part("sklearn").exceptions.NotFittedError
    with pytest.raises(error, match=r"is not fitted yet: call fit\(scores, y\)"):
        method().predict_proba(Z)
    with pytest.raises(error):
        method().save("nowhere.json")


BAD = {
    "scores": ["softmax", None, "prob"],
    "divergence": ["ece"],
    "strategy": ["equal"],
    "mode": ["all"],
    "compat": ["sklearn"],
    "engine": ["cuda"],
    "smoothing": [-1, np.nan, np.inf, "1", True],
    "diagonal": [-1],
    "off_diagonal": [np.nan],
    "intercept": ["1"],
    "max_iter": [0, 2.5],
    "bins": [0, -1, True, "x", 2.5, 15.0, None, np.nan, 10**9],
    "rate": [0, 1, 1.5, "x", [0.5, 0.4], [0.5, 0.5, 0, 0], True, [], np.nan],
    "prior": [0, [1.0], "x", [0.5, 0.6]],
    "source": [1, {}, [0.5, np.nan]],
    "rows_per_bin": [0, 2.5, "x"],
    "pairs": ["x", 2, None],
    "bounds": [(2, 1), (0, 1), (1,), "ab", 3, (1, np.inf), (True, 2)],
}
KNOWN_BAD = [
    (method, name, value)
    for method in METHODS
    for name in BAD.keys() & method().get_params().keys()
    for value in BAD[name]
]


def test_every_parameter_is_checked():
    names = {name for method in METHODS for name in method().get_params()}
    assert names - BAD.keys() == {"classes"}


@pytest.mark.parametrize(("method", "name", "value"), sorted(KNOWN_BAD, key=repr))
def test_a_parameter_that_will_not_do_is_named(method, name, value):
    with pytest.raises(ValueError, match=rf"{name} must be.*got "):
        method(**{name: value}).fit(Z, Y)


@pytest.mark.parametrize("method", [HistogramBinning, IsotonicCalibration])
@pytest.mark.parametrize(
    "options", [{"strategy": "mass"}, {"mode": "top-label"}, {"smoothing": 1.0}]
)
def test_netcal_has_no_options(method, options):
    (name,) = options
    if name in method().get_params():
        with pytest.raises(ValueError, match=rf"compat='netcal' needs {name}="):
            method(compat="netcal", **options).fit(Z, Y)


@pytest.mark.parametrize("make", VARIANTS)
def test_progress_goes_up_to_one(make):
    seen = []
    make().fit(Z, Y, progress=lambda share, what: seen.append((share, what)))
    shares = [share for share, _ in seen]
    assert shares == sorted(shares)
    assert not seen or shares[-1] == 1
    assert all(isinstance(what, str) for _, what in seen)
    if type(make()) in (PlattScaling, BetaCalibration):  # class by class
        assert len(shares) == 4


# -- hard data -------------------------------------------------------------------------


def worse_than_chance():
    return Z, Z.argmin(axis=1)


HARD = {
    "a class is missing": (Z[Y != 2], Y[Y != 2]),
    "one class only": (Z, np.full(400, 1)),
    "separable": (Z, Z.argmax(axis=1)),
    "constant": (np.zeros((50, 4)), Y[:50]),
    "constant but not equal": (np.tile([1.0, 2, 3, 4], (50, 1)), Y[:50]),
    "worse than chance": (Z, Z.argmin(axis=1)),
    "large": (1e4 * Z, Y),
    "tiny": (1e-6 * Z, Y),
    "fewer rows than classes": (Z[:2], Y[:2]),
    "one row": (Z[:1], Y[:1]),
}


@pytest.mark.parametrize("case", HARD)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("make", VARIANTS)
def test_hard_data_has_a_result(make, case, dtype):
    z, y = HARD[case]
    fitted = make().fit(z.astype(dtype), y)
    p = fitted.predict_proba(Z.astype(dtype))
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-5)
    assert all(isinstance(note, str) for note in fitted.notes_)


@pytest.mark.parametrize("make", VARIANTS)
def test_probabilities_of_zero_and_one(make):
    p = np.array([[1, 0, 0], [0, 1, 0], [0, 0.5, 0.5], [0.2, 0.3, 0.5]] * 30)
    y = np.array([0, 1, 2, 2] * 29 + [1, 2, 0, 0])
    q = make(scores="probs").fit(p, y).predict_proba(p)
    assert np.isfinite(q).all()
    np.testing.assert_allclose(q.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("make", VARIANTS)
@pytest.mark.parametrize(
    ("p", "y"),
    [
        ([[0.2, 0.3, 0.5]], [2]),
        ([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]], [0, 0]),
        ([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], [0, 1, 1]),
        (np.full((5, 40), 1 / 40), [0, 1, 2, 3, 4]),
    ],
)
def test_few_rows_and_classes(make, p, y):
    new = make(scores="probs").fit(p, y).predict_proba(p)
    np.testing.assert_allclose(new.sum(axis=1), 1, atol=1e-12)
    assert (new >= 0).all()


FINITE = [
    make for make in VARIANTS if not isinstance(make(), ByMode) or make().smoothing
]


@pytest.mark.parametrize("make", FINITE)
@pytest.mark.parametrize("rows", [1, 5, 50])
@pytest.mark.parametrize("worse", [False, True])
def test_rows_that_are_all_right_or_all_wrong_leave_new_losses_finite(
    make, rows, worse
):
    z, y = Z[:rows] / 3, Z[:rows].argmin(1) if worse else Z[:rows].argmax(1)
    p = make().fit(z, y).predict_proba(Z / 3)
    before = cal.nll(Y, logits=Z / 3)
    assert cal.nll(Y, probs=p) < (8 if worse else 1.5) + before


@pytest.mark.parametrize("make", [m for m in VARIANTS if isinstance(m(), ByMode)])
def test_certainties_are_warned_of_unless_they_are_smoothed_or_netcals(make):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fitted = make().fit(Z, Y)
    p = fitted.predict_proba(Z)
    said = [str(w.message) for w in told]
    silent = fitted.smoothing > 0 or fitted.compat == "netcal"
    assert ((p == 0) | (p == 1)).any() or fitted.smoothing > 0
    assert len(said) == (0 if silent else 1)
    assert silent or "smoothing=1 rules that out" in said[0]


# -- files -------------------------------------------------------------------------------


@pytest.mark.parametrize("make", VARIANTS)
def test_saved_and_loaded_gives_the_same_bits(make, tmp_path):
    names = np.array(["é", "b", "<c>", "d"])
    fitted = make(classes=names.tolist()).fit(Z, names[Y])
    fitted.save(tmp_path / "x.json")
    for again in (load(tmp_path / "x.json"), type(fitted).load(tmp_path / "x.json")):
        assert type(again) is type(fitted)
        assert again.get_params() == fitted.get_params()
        assert again.notes_ == fitted.notes_
        assert again.classes_.tolist() == fitted.classes_.tolist()
        for name in fitted.learned:
            np.testing.assert_array_equal(getattr(again, name), getattr(fitted, name))
        assert again.predict_proba(Z).tobytes() == fitted.predict_proba(Z).tobytes()


@pytest.mark.parametrize("make", VARIANTS)
def test_a_file_that_is_there_is_replaced_only_if_that_is_said(make, tmp_path):
    path = tmp_path / "x.json"
    path.write_text("precious")
    fitted = make().fit(Z, Y)
    with pytest.raises(
        FileExistsError, match=r"x.json exists; pass force=True to replace it"
    ):
        fitted.save(path)
    assert path.read_text() == "precious"
    fitted.save(path, force=True)
    assert load(path).get_params() == fitted.get_params()


def test_parameters_as_version_0_1_called_them_are_read(tmp_path):
    path = tmp_path / "t.json"
    fitted = TemperatureScaling(divergence="brier").fit(Z, Y)
    fitted.save(path)
    content = json.loads(path.read_text())
    del content["digest"]
    content["format"] = FORMATS[-1]
    content["parameters"]["objective"] = content["parameters"].pop("divergence")
    path.write_text(json.dumps(content))
    assert load(path).divergence == "brier"
    assert load(path).predict_proba(Z).tobytes() == fitted.predict_proba(Z).tobytes()


def test_a_saved_file_is_readable(tmp_path):
    fitted = TemperatureScaling().fit(Z, Y)
    fitted.save(tmp_path / "t.json")
    content = json.loads((tmp_path / "t.json").read_text())
    assert content["method"] == "TemperatureScaling"
    assert content["learned"]["temperature_"] == fitted.temperature_
    assert content["version"] == 1


def test_applying_needs_numpy_only(tmp_path):
    import subprocess
    import sys

    fitted = [m().fit(Z, Y) for m in METHODS]
    for number, one in enumerate(fitted):
        one.save(tmp_path / f"{number}.json")
    code = f"""
import sys
import numpy as np
from calibrant.recalibration import load
for number in range({len(fitted)}):
    load(rf"{tmp_path}/{{number}}.json").predict_proba(np.zeros((3, 4)))
heavy = {{"scipy", "sklearn", "pandas", "matplotlib"}} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: "{", "is not JSON"),
        (lambda c: "[1]", "not a saved recalibrator"),
        (lambda c: json.dumps({**c, "version": 2}), "has version 2 .*reads version 1"),
        (lambda c: json.dumps({**c, "method": "Evil"}), "'Evil', which is no"),
        (lambda c: json.dumps({**c, "learned": {}}), "learned.classes_ is missing"),
        (lambda c: json.dumps({**c, "learned": None}), "t.json: learned is missing"),
        (
            lambda c: json.dumps({**c, "parameters": {"x": 1}}),
            "parameters has no field 'x' in TemperatureScaling",
        ),
        (
            lambda c: json.dumps(
                {**c, "parameters": {**c["parameters"], "scores": {"odd": 1}}}
            ),
            "parameters.scores must be a number, text, true",
        ),
    ],
)
def test_broken_files_are_refused(tmp_path, change, message):
    path = tmp_path / "t.json"
    TemperatureScaling().fit(Z, Y).save(path)
    content = json.loads(path.read_text())
    del content["digest"]
    path.write_text(change(content))
    with pytest.raises(ValueError, match=message):
        load(path)


def test_the_class_that_loads_must_be_the_class_that_was_saved(tmp_path):
    MeanReplacement().fit(Z, Y).save(tmp_path / "m.json")
    with pytest.raises(ValueError, match="'MeanReplacement', which is no Temperature"):
        TemperatureScaling.load(tmp_path / "m.json")


def test_classes_that_json_cannot_hold_are_refused(tmp_path):
    names = [(0, 1), (0, 2), (1, 2), (1, 3)]
    fitted = MeanReplacement(classes=names).fit(Z, [names[y] for y in Y])
    with pytest.raises(TypeError, match="cannot save"):
        fitted.save(tmp_path / "m.json")
    assert not list(tmp_path.iterdir())


# -- mean replacement ---------------------------------------------------------------------


def test_mean_replacement_is_the_papers():
    fitted = MeanReplacement().fit(Z, Y)
    q = np.mean(Z.argmax(axis=1) == Y)
    assert fitted.accuracy_ == q
    p = fitted.predict_proba(Z)
    expected = np.full(Z.shape, (1 - q) / 3)
    expected[np.arange(400), Z.argmax(axis=1)] = q
    np.testing.assert_array_equal(p, expected)
    assert cal.ece(Y, probs=p) < 1e-12
    assert cal.accuracy(Y, probs=p) == q


def test_mean_replacement_of_a_bad_model_says_so():
    with pytest.warns(FitWarning, match="no longer the likeliest"):
        fitted = MeanReplacement().fit(*worse_than_chance())
    assert fitted.accuracy_ == 0.5 / 401
    assert len(fitted.notes_) == 1


@given(problems(least=10, most=30), st.floats(0.2, 5))
def test_temperature_undoes_a_temperature(problem, factor):
    z, y = problem
    z = np.clip(z, -20, 20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        one = TemperatureScaling().fit(z, y)
        other = TemperatureScaling().fit(z * factor, y)
    assume(not one.at_boundary_)
    assert other.temperature_ == pytest.approx(one.temperature_ * factor, rel=1e-6)


@pytest.mark.parametrize(
    "method",
    [VectorScaling, MatrixScaling, DirichletCalibration, PlattScaling, BetaCalibration],
)
@pytest.mark.parametrize("least", [0.0, 1e-12])
def test_labels_next_to_impossible_do_not_spoil_the_other_rows(method, least):
    """Calibrated forecasts, but three in ten are sure, and a tenth of these are wrong."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 4000)
    y = (rng.uniform(size=4000) < p).astype(int)
    sure = rng.uniform(size=4000) < 0.3
    claimed = np.where(rng.uniform(size=4000) < 0.1, 1 - y, y)
    p[sure] = np.where(claimed[sure] == 1, 1 - least, least)
    with pytest.warns(FitWarning, match="is mixed in first" if least else "count as"):
        model = method(scores="probs").fit(p[:1000], y[:1000])
    assert (model.lapse_ > 0) == (least > 0)
    assert getattr(model, "floor_", None) is None or least == 0
    known = np.clip(p[1000:], 0.1, 0.9)  # for those who know who is sure
    known = np.where(sure[1000:], known, p[1000:])
    best = -np.mean(np.log(np.where(y[1000:] == 1, known, 1 - known)))
    assert log_loss(model, p[1000:], y[1000:]) < 1.02 * best


@pytest.mark.parametrize("make", VARIANTS)
def test_labels_given_as_scores_look_swapped(make):
    names = np.array(["a", "b", "c"], object)[np.asarray(Y) % 3]
    for labels in (np.asarray(Y), names):
        with pytest.raises(TypeError, match="labels and scores were swapped"):
            make().fit(labels, Z)
