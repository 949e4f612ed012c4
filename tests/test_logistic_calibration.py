"""Platt scaling and beta calibration: against the definition, peers and real data."""

import numpy as np
import pytest
from hypothesis import given
from make import every_fifth
from oracles import effective, log_loss
from scipy.optimize import approx_fprime, minimize
from scipy.special import expit, log_expit, logsumexp, softmax
from strategies import problems

from calibrant.recalibration import FitWarning, TemperatureScaling
from calibrant.recalibration._logistic import (
    BetaCalibration,
    Hits,
    PlattScaling,
    Regressions,
    log_odds,
    log_sigmoid,
    read_odds,
)
from calibrant.recalibration._rows import Rows

METHODS = (PlattScaling, BetaCalibration)
every_method = pytest.mark.parametrize("method", METHODS)
quiet = pytest.mark.filterwarnings("ignore::calibrant.recalibration.FitWarning")


def make_binary(n=200, seed=0, slope=0.5, shift=-0.3):
    rng = np.random.default_rng(seed)
    s = rng.normal(size=n) * 3
    return s, (rng.random(n) < expit(slope * s + shift)).astype(int)


def make_problem(n=150, k=4, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * 2
    truth = softmax(0.5 * z + np.arange(k) / k, axis=1)
    return z, np.array([rng.choice(k, p=p) for p in truth])


def all_log_odds(scores, kind="logits"):
    rows = Rows(np.asarray(scores, float), kind)
    part = slice(0, len(rows))
    every = np.arange(rows.k)
    return log_odds(rows.scores, kind, read_odds(rows, part), every)


# -- log-odds ----------------------------------------------------------------------


@given(problem=problems())
def test_log_odds_are_those_of_the_class_against_the_sum_of_the_others(problem):
    z, _ = problem
    s = all_log_odds(z)
    for j in range(z.shape[1]):
        others = logsumexp(np.delete(z, j, axis=1), axis=1)
        np.testing.assert_allclose(s[:, j], z[:, j] - others, rtol=1e-12, atol=1e-12)


def test_log_sigmoid_is_that_of_scipy_at_the_ends_too():
    x = np.array([-np.inf, -1e4, -745.0, -36.0, -1e-9, 0.0, 1e-300, 1.0, 40.0, 1e4])
    np.testing.assert_allclose(log_sigmoid(x), log_expit(x), rtol=1e-14)


def test_log_odds_are_exact_where_the_probability_rounds_to_1():
    s = all_log_odds([[1000.0, 0.0, 0.0], [60.0, 0.0, 1.0]])
    assert s[0].tolist() == pytest.approx([1000 - np.log(2), -1000, -1000], rel=1e-14)
    assert s[1, 0] == pytest.approx(60 - np.log(1 + np.e), rel=1e-14)


@given(problem=problems())
def test_log_odds_of_probabilities_are_those_of_logits(problem):
    z = problem[0].clip(-30, 30)
    s = all_log_odds(softmax(z, axis=1), "probs")
    np.testing.assert_allclose(s, all_log_odds(z), atol=1e-9)


# -- the regression ----------------------------------------------------------------


def slow_targets(y, weight, smoothing):
    yes, no = np.sum(weight * y), np.sum(weight * (1 - y))
    high = (yes + smoothing) / (yes + 2 * smoothing)
    return np.where(y == 1, high, smoothing / (no + 2 * smoothing))


def slow_fit(features, y, weight, smoothing, bounds=None):
    """The definition by a general optimiser, one class."""
    target = slow_targets(y, weight, smoothing)
    columns = np.stack([*features, np.ones(len(y))], axis=1)

    def objective(v):
        eta = columns @ v
        loss = np.logaddexp(0, eta) - target * eta
        gradient = columns.T @ (weight * (expit(eta) - target))
        return np.sum(weight * loss) / weight.sum(), gradient / weight.sum()

    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000}
    start = np.zeros(columns.shape[1])
    return minimize(
        objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    ).x


@pytest.mark.parametrize("smoothing", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_platt_agrees_with_the_plain_definition(smoothing, weighted):
    s, y = make_binary()
    weight = np.random.default_rng(1).uniform(0.5, 3, len(y)) if weighted else None
    model = PlattScaling(smoothing=smoothing).fit(s, y, weight)
    w = effective(weight, len(y))
    expected = slow_fit([s], y, w, smoothing)
    found = model.slope_[0], model.intercept_[0]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def mirrored(s, y):
    return -s, 1 - y


BENT = {  # by whether a and b are 0
    (False, False): make_binary(120),
    (True, False): make_binary(120, 1, 0.05, 0.0),
    (False, True): mirrored(*make_binary(120, 1, 0.05, 0.0)),
    (True, True): make_binary(120, 0, -1.0, 0.2),
}


@pytest.mark.parametrize("at_zero", BENT)
def test_beta_agrees_with_the_plain_definition_within_its_bounds(at_zero):
    s, y = BENT[at_zero]
    model = BetaCalibration().fit(s, y)
    features = [-np.logaddexp(0, -s), np.logaddexp(0, s)]
    bounds = [(0, None), (0, None), (None, None)]
    a, b, c = slow_fit(features, y, np.ones(len(y)), 1.0, bounds)
    expected = expit(a * features[0] + b * features[1] + c)
    np.testing.assert_allclose(model.predict_proba(s)[:, 1], expected, atol=1e-5)
    assert (model.a_[0] == 0, model.b_[0] == 0) == at_zero


def test_gradient_and_hessian_are_those_of_the_value():
    rng = np.random.default_rng(0)
    n, g = 40, 3
    share = rng.dirichlet(np.ones(n))
    hits = Hits(rng.integers(0, g, n), np.arange(g), np.full(g, 0.1), np.full(g, 0.8))
    problem = Regressions.of(rng.normal(size=(2, n, g)) * 5 + 2, hits, share)
    place = rng.normal(size=(3, g))
    every = np.arange(g)
    at = problem.at(place, every)
    for j in range(g):

        def only(v, j=j):
            moved = place.copy()
            moved[:, j] = v
            found = problem.at(moved, every)
            return np.r_[found.value[j], found.gradient[:, j]]

        slopes = approx_fprime(place[:, j], only, 1e-7)
        np.testing.assert_allclose(at.gradient[:, j], slopes[0], atol=1e-6)
        np.testing.assert_allclose(at.hessian[j], slopes[1:], atol=1e-6)
    alone = problem.at(place[:, 1:2], every[1:2])
    np.testing.assert_allclose(alone.hessian[0], at.hessian[1], atol=1e-14)


def test_several_classes_are_fitted_each_on_its_own():
    z, y = make_problem()
    model = PlattScaling().fit(z, y)
    s = all_log_odds(z)
    for j in range(4):
        expected = slow_fit([s[:, j]], (y == j).astype(int), np.ones(len(y)), 1.0)
        np.testing.assert_allclose(
            [model.slope_[j], model.intercept_[j]], expected, atol=1e-5
        )
    p = expit(model.slope_ * s + model.intercept_)
    expected = p / p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(z), expected, atol=1e-12)


# -- closed forms and peers --------------------------------------------------------


@every_method
@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_two_distinct_scores_get_their_smoothed_frequencies(method, smoothing):
    # 6 rows of the class, 4 of the others; two parameters say two frequencies.
    s = np.repeat([-1.0, 2.0], 5)
    y = np.array([0, 0, 0, 1, 1, 0, 1, 1, 1, 1])
    target = slow_targets(y, np.ones(10), smoothing)
    model = method(smoothing=smoothing).fit(s, y)
    found = model.predict_proba([-1.0, 2.0])[:, 1]
    expected = [target[:5].mean(), target[5:].mean()]
    np.testing.assert_allclose(found, expected, atol=1e-6)


@every_method
def test_calibrated_scores_are_left_as_they_are(method):
    s, y = make_binary(200_000, slope=1.0, shift=0.0)
    found = method().fit(s, y).predict_proba(s)[:, 1]
    np.testing.assert_allclose(found, expit(s), atol=0.01)


def test_agrees_with_the_logistic_regression_of_scikit_learn(part):
    linear_model = part("sklearn.linear_model")
    s, y = make_binary()
    peer = linear_model.LogisticRegression(C=np.inf, tol=1e-10).fit(s[:, None], y)
    model = PlattScaling(smoothing=0).fit(s, y)
    assert model.slope_[0] == pytest.approx(peer.coef_[0, 0], abs=1e-5)
    assert model.intercept_[0] == pytest.approx(peer.intercept_[0], abs=1e-5)


def test_agrees_with_the_sigmoid_calibration_of_scikit_learn(part):
    calibration = part("sklearn.calibration")
    s, y = make_binary()
    peer = calibration._SigmoidCalibration().fit(s, y)
    model = PlattScaling().fit(s, y)
    np.testing.assert_allclose(model.predict_proba(s)[:, 1], peer.predict(s), atol=1e-5)


# -- invariance --------------------------------------------------------------------


@every_method
@quiet
def test_groups_of_classes_give_the_same_as_all_at_once(method, monkeypatch):
    z, y = make_problem(300, 30)
    one_by_one = method().fit(z, y).predict_proba(z)
    monkeypatch.setattr("calibrant.recalibration._logistic.GROUPS", 1)
    np.testing.assert_allclose(
        method().fit(z, y).predict_proba(z), one_by_one, atol=1e-9
    )


@every_method
def test_of_two_classes_the_other_gets_the_rest(method):
    s, y = make_binary()
    one = method().fit(s, y)
    two = method().fit(np.stack([np.zeros_like(s), s], axis=1), y)
    probs = one.predict_proba(s)
    np.testing.assert_allclose(probs.sum(axis=1), 1, atol=4e-16)
    odds = np.log(probs[:, 1]) - np.log(probs[:, 0])
    np.testing.assert_allclose(odds, one.recalibrate(s)[1][:, 1], atol=1e-12)
    np.testing.assert_array_equal(probs, two.predict_proba(np.c_[np.zeros_like(s), s]))
    assert len(getattr(one, one.coefficients[0])) == 1


# -- odd input ---------------------------------------------------------------------

ODD = {
    "a class without rows": (make_problem(60)[0], make_problem(60)[1] % 2),
    "one class only": (make_problem(20)[0], np.zeros(20, int)),
    "separable": (make_problem(60)[0], make_problem(60)[0].argmax(axis=1)),
    "constant": (np.ones((30, 3)), np.arange(30) % 3),
    "constant and far": (np.tile([1e4, 0.0, -1e4], (30, 1)), np.arange(30) % 3),
    "worse than chance": (make_problem(60)[0], make_problem(60)[0].argmin(axis=1)),
    "huge": (make_problem(60)[0] * 1e4, make_problem(60)[1]),
    "tiny": (make_problem(60)[0] * 1e-6, make_problem(60)[1]),
    "fewer rows than classes": (make_problem(3, 7)[0], np.array([0, 3, 3])),
    "one row": (np.array([[1.0, 2.0, 0.0]]), np.array([2])),
    "two classes, separable": (np.array([[0.0, -1], [0, 1]]), np.array([0, 1])),
    "two classes, one seen": (np.array([[0.0, -1], [0, 1]]), np.array([1, 1])),
    "masked": (
        np.where(np.eye(4)[make_problem(60)[1]] > 0, -np.inf, 1.0),
        np.arange(60) % 4,
    ),
}


@every_method
@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("smoothing", [0.0, 1.0])
@quiet
def test_odd_data_give_finite_probabilities(method, case, smoothing):
    z, y = ODD[case]
    model = method(smoothing=smoothing).fit(z, y)
    assert model.converged_
    for scores in (z, 3 * z, -np.maximum(z, -1e5)):
        for dtype in (np.float32, np.float64):
            probs = model.predict_proba(scores.astype(dtype))
            assert np.isfinite(probs).all()
            np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-6)
    for name in model.coefficients:
        assert np.isfinite(getattr(model, name)).all()


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
@quiet
def test_constant_scores_get_the_smoothed_frequencies(smoothing):
    y = np.array([0] * 7 + [1] * 3)
    model = PlattScaling(smoothing=smoothing).fit(np.full(10, 50.0), y)
    expected = slow_targets(y, np.ones(10), smoothing).mean()
    assert model.predict_proba([50.0])[0, 1] == pytest.approx(expected, abs=1e-6)
    assert model.slope_[0] == pytest.approx(1)


@every_method
def test_a_class_without_rows_keeps_its_odds_and_is_named(method):
    z = make_problem(60)[0]
    y = z[:, 1] + z[:, 2] > z[:, 0]  # class 1 or 0
    with pytest.warns(FitWarning, match=r"2 of 4 classes \(2, 3\) are the label of no"):
        model = method().fit(z, y.astype(int))
    learned = [getattr(model, name)[2:].tolist() for name in model.coefficients]
    assert learned == [[1, 1]] * (len(learned) - 1) + [[0, 0]]


def test_a_negative_slope_is_noted():
    s, y = make_binary(slope=-1.0)
    with pytest.warns(FitWarning, match=r"slope of 1 of 1 classes \(1\) is negative"):
        model = PlattScaling().fit(s, y)
    assert model.slope_[0] < 0


@every_method
def test_infinite_log_odds_count_as_the_most_extreme_finite_ones(method):
    p = np.array([0.0, 0.1, 0.3, 0.6, 0.8, 1.0] * 5)
    y = np.array([0, 0, 1, 1, 0, 1] * 4 + [1, 0, 0, 1, 1, 0])
    with pytest.warns(FitWarning, match="10 log-odds are infinite"):
        model = method(scores="probs").fit(p, y)
    assert model.reach_ == pytest.approx(np.log(9))
    probs = model.predict_proba([0.0, 0.1, 0.9, 1.0])
    np.testing.assert_allclose(probs[[0, 3]], probs[[1, 2]], atol=1e-12)


@every_method
@quiet
def test_certain_forecasts_get_the_frequency_with_which_they_came_true(method):
    p = np.repeat([0.0, 1.0], 10)
    y = np.array([0] * 8 + [1] * 2 + [1] * 9 + [0])
    model = method(scores="probs", smoothing=0).fit(p, y)
    np.testing.assert_allclose(
        model.predict_proba([0.0, 1.0])[:, 1], [0.2, 0.9], atol=1e-6
    )


# -- real data ---------------------------------------------------------------------


@every_method
def test_binary_reviews_lose_an_eighth_of_the_log_loss(data, method):
    kind, scores, y, new, new_y = every_fifth(data("imdb_cleanlab_cv"))
    model = method(scores=kind).fit(scores, y)
    stated = -np.mean(np.log(new[np.arange(len(new_y)), new_y].astype(float)))
    assert log_loss(model, new, new_y) < 0.875 * stated


@every_method
@pytest.mark.parametrize("name", ["cifar10_netcal_lenet_5", "cifar10_widmann_resnet34"])
def test_ten_classes_are_served_as_well_as_by_a_temperature(data, method, name):
    kind, scores, y, new, new_y = every_fifth(data(name))
    model = method(scores=kind).fit(scores, y)
    bound = log_loss(TemperatureScaling(scores=kind).fit(scores, y), new, new_y)
    assert log_loss(model, new, new_y) < 1.01 * bound


@every_method
@quiet
def test_a_thousand_classes_with_a_row_each_converge(data, method):
    kind, scores, y, new, _ = every_fifth(data("imagenet5k_efficientnet_lite0"))
    model = method(scores=kind).fit(scores, y)
    assert model.converged_
    probs = model.predict_proba(new)
    assert np.isfinite(probs).all()
    np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-5)
