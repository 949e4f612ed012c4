"""From n x k to columns: exact against definitions, at every edge."""

import numpy as np
import oracles
import pytest
from hypothesis import given
from strategies import problems

import calibrant as cal
from calibrant._inputs.divergences import BRIER
from calibrant._inputs.predictions import read_predictions
from calibrant._rows.columns import Columns
from calibrant._rows.reduce import each_class, reduce_to_columns


def reduce(y, engine="numpy", **given):
    return reduce_to_columns(read_predictions(y, **given), engine=engine)


@given(problems(classes=(3, 6)))
def test_logits_and_their_softmax_give_the_same_columns(problem):
    z, y = problem
    p = oracles.softmax(z)
    one_hot = np.eye(z.shape[1])[y]
    from_logits, from_probs = reduce(y, logits=z), reduce(y, probs=p)
    at = np.arange(len(y))
    best = z.argmax(axis=1)
    np.testing.assert_array_equal(from_logits.predicted, best)
    np.testing.assert_allclose(from_logits.confidence, p[at, best], rtol=1e-13)
    np.testing.assert_array_equal(from_logits.hit, best == y)
    np.testing.assert_allclose(
        from_logits.losses["brier"], ((p - one_hot) ** 2).sum(axis=1), atol=1e-13
    )
    log_p = z - z.max(axis=1, keepdims=True)
    log_p -= np.log(np.exp(log_p).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(from_logits.losses["log"], -log_p[at, y], atol=1e-12)
    for name in ("confidence", "hit", "log_odds"):
        np.testing.assert_allclose(
            getattr(from_probs, name), getattr(from_logits, name), rtol=1e-9, atol=1e-12
        )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("kind", ["logits", "probs"])
def test_each_dtype_agrees_to_its_own_precision(dtype, kind):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(3000, 7)) * 3
    y = rng.integers(0, 7, 3000)
    given = (z if kind == "logits" else oracles.softmax(z)).astype(dtype)
    exact = given.astype(np.float64)
    if kind == "probs":  # rounding moved the sums: compare the same numbers
        got, want = (
            (reduce(y, probs=x) for x in (given, exact))
            if dtype != np.float16
            else (reduce(y, probs=given), None)
        )
        if want is None:
            assert got.losses["brier"].mean() == pytest.approx(
                reduce(y, probs=oracles.softmax(z)).losses["brier"].mean(), abs=1e-3
            )
            return
    else:
        got, want = reduce(y, logits=given), reduce(y, logits=exact)
    tolerance = 1e-12 if dtype == np.float64 else 2e-6
    for name in ("brier", "log"):
        np.testing.assert_allclose(
            got.losses[name], want.losses[name], rtol=tolerance, atol=tolerance
        )
    np.testing.assert_array_equal(got.hit, want.hit)


def test_log_odds_stay_exact_where_the_confidence_rounds_to_one():
    # Two classes: the log-odds are the difference of the logits, whatever its size.
    for gap in (1.0, 40.0, 200.0, 1000.0, 1e4):
        for dtype in (np.float32, np.float64):
            z = np.array([[gap, 0.0, -np.inf]], dtype)
            columns = reduce([1], logits=z)
            assert columns.log_odds[0] == pytest.approx(gap, rel=1e-6)
            assert columns.losses["log"][0] == pytest.approx(
                gap + np.log1p(np.exp(-gap)), rel=1e-6
            )
            assert 0 <= columns.losses["brier"][0] <= 2


def test_one_possible_class_has_infinite_log_odds():
    columns = reduce([0, 1], logits=[[0.0, -np.inf, -np.inf]] * 2)
    assert (columns.log_odds == np.inf).all()
    assert columns.losses["log"].tolist() == [0, np.inf]
    assert columns.losses["brier"].tolist() == [0, 2]


def test_huge_logits_do_not_overflow():
    z = np.array([[3e38, -3e38, 0.0], [-3e38, -3e38, -3.2e38]], np.float32)
    columns = reduce([0, 1], logits=z)
    assert np.isfinite(columns.confidence).all()
    assert columns.confidence.tolist() == [1.0, 0.5]


def test_ties_go_to_the_lower_class():
    columns = reduce([0, 1, 2], probs=[[0.4, 0.4, 0.2]] * 3)
    assert columns.predicted.tolist() == [0, 0, 0]
    assert columns.hit.tolist() == [1, 0, 0]


def test_probability_zero_at_the_label_is_legal_and_infinite():
    ev = cal.evaluate([2, 0, 0], probs=[[0.5, 0.5, 0.0]] * 3, divergence="log")
    assert ev.metrics["nll"] == np.inf
    assert ev.infinite_rows == 1
    assert "gave the true class probability 0 in 1 of 3 examples" in str(ev)


@given(problems(classes=(3, 5)))
def test_soft_labels_that_are_hard_change_nothing(problem):
    z, y = problem
    hard, soft = reduce(y, logits=z), reduce(np.eye(z.shape[1])[y], logits=z)
    np.testing.assert_array_equal(hard.hit, soft.hit)
    for name in ("brier", "log"):
        np.testing.assert_allclose(hard.losses[name], soft.losses[name], atol=1e-12)


def test_soft_labels_give_the_divergence_between_distributions():
    pi, p = np.array([[0.5, 0.3, 0.2]]), np.array([[0.2, 0.6, 0.2]])
    columns = reduce(pi, probs=p)
    assert columns.hit[0] == 0.3
    assert columns.losses["brier"][0] == pytest.approx(0.09 + 0.09)
    assert columns.losses["log"][0] == pytest.approx((pi * np.log(pi / p)).sum())
    assert reduce(p, probs=p).losses["log"][0] == 0


@given(problems(classes=(2, 5)))
def test_class_losses_add_up_to_the_full_brier_loss(problem):
    z, y = problem
    predictions = read_predictions(y, logits=z, target="class-wise")
    parts = list(each_class(predictions))
    full = reduce(y, logits=z, target="top-label")
    added = sum(columns.loss(BRIER) for columns in parts)
    np.testing.assert_allclose(added, full.losses["brier"], atol=1e-12)
    probability = sum(columns.confidence for columns in parts)
    np.testing.assert_allclose(probability, 1, atol=1e-12)
    p = oracles.softmax(z)
    for j, columns in enumerate(parts):
        np.testing.assert_allclose(columns.confidence, p[:, j], atol=1e-14)


def test_class_wise_from_probabilities_equals_class_wise_from_logits():
    rng = np.random.default_rng(1)
    z, y = rng.normal(size=(200, 4)) * 3, rng.integers(0, 4, 200)
    a = cal.evaluate(y, logits=z, target="class-wise")
    b = cal.evaluate(y, probs=oracles.softmax(z), target="class-wise")
    assert a.decomposition.calibration == pytest.approx(
        b.decomposition.calibration, abs=1e-10
    )
    assert a.decomposition.total == pytest.approx(cal.brier(y, logits=z), abs=1e-12)
    assert a.metrics["ece"] == pytest.approx(cal.classwise_ece(y, logits=z), abs=1e-12)
    assert len(a.per_class) == 4


def test_positive_class_reads_one_column_two_columns_and_logits_alike():
    rng = np.random.default_rng(2)
    z, y = rng.normal(size=300) * 2, rng.integers(0, 2, 300)
    p = 1 / (1 + np.exp(-z))
    given = [
        {"probs": p},
        {"logits": z},
        {"probs": np.stack([1 - p, p], axis=1), "target": "positive"},
        {"logits": np.stack([np.zeros(300), z], axis=1), "target": "positive"},
    ]
    for one in given:
        columns = reduce(y, **one)
        np.testing.assert_allclose(columns.confidence, p, atol=1e-15)
        np.testing.assert_allclose(columns.log_odds, z, atol=1e-12)
        np.testing.assert_array_equal(columns.hit, y)
    pairs = cal.evaluate_pairs(y, p)
    assert cal.brier(y, probs=p) == pairs.metrics["brier"]


def test_top_label_of_one_column_spells_out_the_other_class():
    p, y = np.array([0.2, 0.7, 0.4]), np.array([0, 1, 1])
    one = reduce(y, probs=p, target="top-label")
    two = reduce(y, probs=np.stack([1 - p, p], axis=1), target="top-label")
    np.testing.assert_array_equal(one.confidence, two.confidence)
    assert one.confidence.tolist() == [0.8, 0.7, 0.6]


def test_input_is_never_modified():
    rng = np.random.default_rng(3)
    z, y, w = rng.normal(size=(50, 3)), rng.integers(0, 3, 50), rng.random(50)
    p = oracles.softmax(z)
    kept = [x.copy() for x in (z, y, w, p)]
    for x in (z, y, w, p):
        x.flags.writeable = False
    for target in ("top-label", "class-wise"):
        cal.evaluate(y, logits=z, sample_weight=w, target=target)
        cal.evaluate(y, probs=p, sample_weight=w, target=target)
    for before, after in zip(kept, (z, y, w, p), strict=True):
        np.testing.assert_array_equal(before, after)


def test_many_blocks_and_threads_give_the_rows_in_order(monkeypatch):
    rng = np.random.default_rng(4)
    z, y = rng.normal(size=(70_000, 5)), rng.integers(0, 5, 70_000)
    whole = reduce(y, logits=z)
    monkeypatch.setenv("CALIBRANT_THREADS", "3")
    threaded = reduce(y, logits=np.asfortranarray(z))
    np.testing.assert_array_equal(whole.losses["log"], threaded.losses["log"])


def test_losses_near_certainty_do_not_cancel():
    for eps in (1e-7, 1e-8, 1e-9):
        h = 1 - eps
        assert cal.brier([1], probs=[h]) == (1 - h) ** 2
        assert cal.brier([1], confidence=[h]) == (1 - h) ** 2


def test_rounding_above_one_costs_nothing():
    assert cal.nll([0], probs=[[1.00005, 0.0, 0.0]]) == 0
    p = np.array([[0.54776, 0.4522, 0.00009]])
    assert cal.nll(np.eye(3)[[0]], probs=p) == pytest.approx(cal.nll([0], probs=p))


def test_soft_labels_that_round_above_one_count_as_one():
    given = {"probs": [[0.2, 0.8]], "target": "positive"}
    assert cal.brier([[0.0, 1.00005]], **given) == pytest.approx(0.04, rel=1e-9)


def test_a_row_whose_squared_weight_is_too_small_for_a_float_counts_as_one():
    columns = Columns(
        confidence=np.array([0.5, 0.5]),
        exact_log_odds=None,
        hit=np.array([1.0, 0.0]),
        losses={},
        weight=np.array([4.0, 1e-300]),
        squared=np.array([8.0, 0.0]),
        predicted=None,
    )
    assert columns.count == 3


@pytest.mark.parametrize("kind", ["probs", "logits"])
def test_one_column_is_that_of_two_classes_also_of_shares(kind):
    rng = np.random.default_rng(0)
    p, y = rng.random(50), rng.random(50)
    z = p if kind == "probs" else np.log(p / (1 - p))
    one = read_predictions(y, **{kind: z}, target="class-wise")
    both = np.stack([1 - p, p], axis=1)
    two = read_predictions(
        np.stack([1 - y, y], axis=1), probs=both, target="class-wise"
    )
    for mine, theirs in zip(each_class(one), each_class(two), strict=True):
        np.testing.assert_allclose(mine.confidence, theirs.confidence)
        np.testing.assert_allclose(mine.hit, theirs.hit)
