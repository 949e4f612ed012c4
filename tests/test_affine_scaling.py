"""Vector, matrix and Dirichlet scaling: against the plain definition, and on real data."""

import numpy as np
import pytest
from hypothesis import given
from make import every_fifth
from oracles import effective, log_loss
from scipy.optimize import approx_fprime, minimize
from scipy.special import log_softmax, softmax
from strategies import problems

from calibrant.recalibration import FitWarning, TemperatureScaling
from calibrant.recalibration._affine import (
    DirichletCalibration,
    MatrixScaling,
    Objective,
    Penalty,
    Reader,
    VectorScaling,
)
from calibrant.recalibration._rows import Rows

METHODS = (VectorScaling, MatrixScaling, DirichletCalibration)
every_method = pytest.mark.parametrize("method", METHODS)
quiet = pytest.mark.filterwarnings("ignore::calibrant.recalibration.FitWarning")


def make_problem(n=60, k=3, seed=0, scale=2.0):
    """Logits of a model that mixes up classes and is too sure."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * scale
    truth = softmax(0.4 * z + 0.3 * np.roll(z, 1, axis=1) + np.arange(k) / k, axis=1)
    y = np.array([rng.choice(k, p=p) for p in truth])
    return z, y


def slow_fit(method, z, y, weight, strength):
    """The definition, with W and b written out, by BFGS with numerical gradients."""
    n, k = z.shape
    w = effective(weight, n)
    x = log_softmax(z, axis=1) if method is DirichletCalibration else z
    s = np.sqrt(np.average(z.var(axis=1), weights=w))
    full = method is not VectorScaling
    hot = 1 / TemperatureScaling().fit(z, y, weight).temperature_

    def unpack(v):
        beta, b = v[0], v[1 : 1 + k]
        D = v[1 + k :].reshape(k, k) if full else np.diag(v[1 + k :])
        return beta, b, D

    def objective(v):
        beta, b, D = unpack(v)
        logs = log_softmax(x @ (beta * np.eye(k) + D).T + b, axis=1)
        on = np.diag(D)
        off = D - np.diag(on)
        squares = (
            np.sum((s * on) ** 2) * k
            + np.sum((s * off) ** 2) * k * k
            + np.sum(b**2) / 0.2**2
        )
        penalty = strength * squares + (beta / hot - 1) ** 2 / 0.2**2
        penalty /= 2 * w.sum()
        return np.average(-logs[np.arange(n), y], weights=w) + penalty

    start = np.r_[hot, np.zeros(k + (k * k if full else k))]
    beta, b, D = unpack(minimize(objective, start, options={"gtol": 1e-8}).x)
    return softmax(x @ (beta * np.eye(k) + D).T + b, axis=1)


@every_method
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("strength", [1.0, 0.1])
@pytest.mark.filterwarnings("ignore:Desired error")
def test_agrees_with_the_plain_definition(method, weighted, strength):
    z, y = make_problem(40)
    weight = np.random.default_rng(1).uniform(0.5, 3, len(y)) if weighted else None
    strengths = dict.fromkeys(method.strengths, strength)
    model = method(**strengths).fit(z, y, weight)
    assert model.converged_
    expected = slow_fit(method, z, y, weight, strength)
    np.testing.assert_allclose(model.predict_proba(z), expected, atol=2e-5)


def objective_of(full, kind, normalised):
    z, y = make_problem(30, 4)
    weight = np.random.default_rng(2).uniform(0.5, 2, len(y))
    scores = softmax(z, axis=1) if kind == "probs" else z
    shape = (4, 4) if full else (4,)
    penalty = Penalty(np.full(shape, 9.0), 6.0, 30.0)
    rows = Rows(scores, kind, y, weight)
    return Objective(rows, Reader(normalised), 1.7, 0.7, penalty)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(
    ("kind", "normalised"), [("logits", False), ("logits", True), ("probs", False)]
)
def test_gradient_and_curvature_are_those_of_the_value(full, kind, normalised):
    objective = objective_of(full, kind, normalised)
    start = objective.start
    point = start + np.random.default_rng(3).normal(size=len(start)) * 0.2
    numeric = approx_fprime(point, lambda v: objective(v)[0], 1e-7)
    np.testing.assert_allclose(objective(point)[1], numeric, atol=1e-6)

    slopes = approx_fprime(point, lambda v: objective(v)[1].copy(), 1e-7)
    unit = objective.units(point)
    np.testing.assert_allclose(unit**-2, np.diag(slopes), atol=1e-5)


# -- closed forms ------------------------------------------------------------------


@every_method
def test_an_endless_penalty_is_temperature_scaling(method):
    z, y = make_problem(100)
    model = method(**dict.fromkeys(method.strengths, 1000000000.0)).fit(z, y)
    hot = TemperatureScaling().fit(z, y)
    np.testing.assert_allclose(model.predict_proba(z), hot.predict_proba(z), atol=1e-5)
    assert model.temperature_ == pytest.approx(hot.temperature_, rel=1e-4)


def test_matrix_scaling_without_off_diagonal_weights_is_vector_scaling():
    z, y = make_problem(100)
    matrix = MatrixScaling(off_diagonal=1e9).fit(z, y)
    vector = VectorScaling().fit(z, y)
    np.testing.assert_allclose(np.diag(matrix.weight_), vector.weight_, atol=1e-4)
    np.testing.assert_allclose(
        matrix.predict_proba(z), vector.predict_proba(z), atol=1e-5
    )


def test_dirichlet_calibration_of_probabilities_is_matrix_scaling_of_them():
    z, y = make_problem(100)
    p = softmax(z, axis=1)
    matrix = MatrixScaling(scores="probs").fit(p, y)
    dirichlet = DirichletCalibration().fit(z, y)
    np.testing.assert_allclose(
        dirichlet.predict_proba(z), matrix.predict_proba(p), atol=1e-6
    )


@every_method
def test_without_penalty_each_score_gets_its_frequencies(method):
    # Two distinct rows, right 3 of 4 and 1 of 2 times: two weights and an intercept
    # can say both.
    z = np.array([[2.0, 0.0]] * 4 + [[0.0, 2.0]] * 2)
    model = method(**dict.fromkeys(method.strengths, 0))
    model.fit(z, [0, 0, 0, 1, 0, 1])
    found = model.predict_proba(z[[0, 4]])
    np.testing.assert_allclose(found, [[0.75, 0.25], [0.5, 0.5]], atol=1e-5)


@every_method
def test_parameters_reproduce_the_probabilities_in_one_line(method):
    z, y = make_problem()
    model = method().fit(z, y)
    x = log_softmax(z, axis=1) if method is DirichletCalibration else z
    weight = np.diag(model.weight_) if model.weight_.ndim == 1 else model.weight_
    expected = softmax(x @ weight.T + model.intercept_, axis=1)
    np.testing.assert_allclose(model.predict_proba(z), expected, atol=1e-12)


# -- invariance --------------------------------------------------------------------


@every_method
@quiet
@given(problem=problems())
def test_is_never_worse_than_temperature_scaling_on_the_rows_of_the_fit(
    method, problem
):
    z, y = problem
    model = method().fit(z, y)
    probs = model.predict_proba(z)
    assert np.isfinite(probs).all()
    np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-12)
    bound = log_loss(TemperatureScaling().fit(z, y), z, y)
    assert log_loss(model, z, y) <= bound + 1e-9


@pytest.mark.parametrize("method", [VectorScaling, MatrixScaling])
@pytest.mark.parametrize("factor", [1e-3, 1e4])
def test_logits_of_any_size_are_alike(method, factor):
    z, y = make_problem(200)
    small = method().fit(z, y).predict_proba(z)
    large = method().fit(z * factor, y).predict_proba(z * factor)
    np.testing.assert_allclose(large, small, atol=1e-6)


def test_dirichlet_calibration_ignores_what_is_added_to_a_row():
    z, y = make_problem()
    shift = np.random.default_rng(0).normal(size=(len(z), 1)) * 50
    moved = DirichletCalibration().fit(z + shift, y).predict_proba(z + shift)
    plain = DirichletCalibration().fit(z, y).predict_proba(z)
    np.testing.assert_allclose(moved, plain, atol=1e-6)


# -- odd input ---------------------------------------------------------------------

ODD = {
    "a class without rows": (make_problem(60)[0], make_problem(60)[1] % 2),
    "one class only": (make_problem(20)[0], np.zeros(20, int)),
    "separable": (make_problem(60)[0], make_problem(60)[0].argmax(axis=1)),
    "constant": (np.ones((30, 3)), np.arange(30) % 3),
    "constant within rows": (np.outer(np.arange(30.0), np.ones(3)), np.arange(30) % 3),
    "worse than chance": (make_problem(60)[0], make_problem(60)[0].argmin(axis=1)),
    "huge": (make_problem(60)[0] * 1e4, make_problem(60)[1]),
    "far from 0": (make_problem(60)[0] + 1e4, make_problem(60)[1]),
    "fewer rows than classes": (make_problem(3, 7)[0], np.array([0, 3, 3])),
    "one row": (np.array([[1.0, 2.0, 0.0]]), np.array([2])),
}


@every_method
@pytest.mark.parametrize("case", ODD)
@quiet
def test_odd_data_give_finite_probabilities_no_worse_than_a_temperature(method, case):
    z, y = ODD[case]
    model = method().fit(z, y)
    for scores in (z, z * 3, -z):
        probs = model.predict_proba(scores)
        assert np.isfinite(probs).all()
        np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-12)
    assert np.isfinite(model.weight_).all()
    assert np.isfinite(model.temperature_)
    bound = log_loss(TemperatureScaling().fit(z, y), z, y)
    assert log_loss(model, z, y) <= bound + 1e-9


@every_method
@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("worse than chance", "no better than chance"),
        ("separable", "hardly an example contradicts"),
        ("constant within rows", "have the same score"),
    ],
)
def test_a_temperature_at_its_edge_is_noted(method, case, words):
    with pytest.warns(FitWarning, match=words):
        model = method().fit(*ODD[case])
    assert words in model.notes_[0]
    assert model.temperature_ > 0


@quiet
def test_certain_labels_do_not_drive_the_temperature_on(data):
    # No row of these 200 is wrong once the intercepts help. The temperature would fall
    # for ever, and the log loss of other rows would be four times what it need be.
    arrays = data("cifar10_peterson_wrn_28_10_humantuned_UNDERCONFIDENT")
    kind = "logits" if "logits" in arrays else "probs"
    scores, y = arrays[kind], arrays["labels"].astype(int)
    order = np.random.default_rng(0).permutation(len(y))
    fit, new = order[:200], order[200:]
    hot = TemperatureScaling(scores=kind).fit(scores[fit], y[fit])
    vector = VectorScaling(scores=kind).fit(scores[fit], y[fit])
    bound = log_loss(hot, scores[new], y[new])
    assert log_loss(vector, scores[new], y[new]) <= 1.01 * bound


def test_constant_logits_leave_the_intercepts_and_so_the_frequencies():
    y = np.array([0] * 50 + [1] * 30 + [2] * 20)
    with pytest.warns(FitWarning, match="have the same score"):
        model = MatrixScaling(intercept=0).fit(np.zeros((100, 3)), y)
    np.testing.assert_allclose(
        model.predict_proba([[0.0] * 3])[0], [0.5, 0.3, 0.2], atol=1e-5
    )


@every_method
def test_a_probability_of_0_counts_as_the_least_positive_one(method):
    p = np.array([[0.7, 0.3, 0.0], [0.2, 0.3, 0.5], [0.1, 0.89, 0.01]] * 5)
    y = [0, 2, 1] * 4 + [2, 1, 0]
    with pytest.warns(FitWarning, match=r"5 probabilities .* other, 0.01"):
        model = method(scores="probs").fit(p, y)
    assert np.exp(model.floor_) == pytest.approx(0.01)
    zero, least = [[0.5, 0.5, 0.0]], [[0.5, 0.495, 0.005]]
    assert np.isfinite(model.predict_proba(zero)).all()
    clipped = np.log(np.maximum(np.array(least + zero), 0.01))
    weight = np.diag(model.weight_) if model.weight_.ndim == 1 else model.weight_
    np.testing.assert_allclose(
        model.predict_proba(least + zero),
        softmax(clipped @ weight.T + model.intercept_, axis=1),
        atol=1e-12,
    )


@every_method
def test_a_masked_class_is_refused_with_the_way_out(method):
    z, y = make_problem(20)
    masked = z.copy()
    masked[7, 1] = -np.inf
    words = "row 7 has -inf for class 1. TemperatureScaling keeps masked classes"
    with pytest.raises(ValueError, match=words):
        method().fit(masked, y)
    with pytest.raises(ValueError, match=words):
        method().fit(z, y).predict_proba(masked)


@every_method
def test_too_few_n_iter_give_a_note_and_a_result(method):
    z, y = make_problem(200, 6)
    shares = []
    with pytest.warns(FitWarning, match="no optimum after 1 iterations, only better"):
        model = method(max_iter=1).fit(
            z, y, progress=lambda share, what: shares.append(share)
        )
    assert (model.converged_, model.n_iter_) == (False, 1)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert log_loss(model, z, y) < log_loss(TemperatureScaling().fit(z, y), z, y)


# -- real data ---------------------------------------------------------------------

FILES = {
    "cifar10_akamaster_resnet32": 1.002,
    "cifar10_netcal_lenet_5": 0.999,
    "cifar10_widmann_resnet34": 0.985,
    "cifar100_netcal_densenet_bc_100": 0.998,
    "cifar100_netcal_lenet_5": 0.985,
    "imagenet5k_efficientnet_lite0": 1.005,
}


@every_method
@pytest.mark.parametrize("name", FILES)
def test_gains_on_held_out_rows_over_temperature_scaling(data, method, name):
    kind, scores, y, new, new_y = every_fifth(data(name))
    model = method(scores=kind).fit(scores, y)
    assert model.converged_
    bound = log_loss(TemperatureScaling(scores=kind).fit(scores, y), new, new_y)
    assert log_loss(model, new, new_y) <= FILES[name] * bound


@pytest.mark.parametrize("share", [0.2, 0.5])
@pytest.mark.parametrize(
    "name", ["cifar100_netcal_densenet_bc_100", "cifar100_netcal_lenet_5"]
)
@every_method
def test_a_hundred_classes_do_not_explode(data, method, name, share):
    probs, y = data(name)["probs"], data(name)["labels"].astype(int)
    cut = int(share * len(y))
    fit = probs[:cut], y[:cut]
    bound = log_loss(TemperatureScaling(scores="probs").fit(*fit), probs[cut:], y[cut:])
    model = method(scores="probs").fit(*fit)
    assert log_loss(model, probs[cut:], y[cut:]) <= 1.005 * bound


@quiet
def test_without_penalty_a_hundred_classes_do_explode(data):
    kind, scores, y, new, new_y = every_fifth(data("cifar100_netcal_densenet_bc_100"))
    hot = TemperatureScaling(scores=kind).fit(scores, y)
    free = MatrixScaling(kind, diagonal=0, off_diagonal=0, intercept=0, max_iter=60)
    free.fit(scores, y)
    assert log_loss(free, scores, y) < 0.1 * log_loss(hot, scores, y)
    assert log_loss(free, new, new_y) > 3 * log_loss(hot, new, new_y)
