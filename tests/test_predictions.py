"""Bad input gets one clear error: argument, rule, first offender, count, way out."""

import inspect
import pickle
import re

import numpy as np
import pytest

import calibrant as cal
from calibrant._base.checks import RowError
from calibrant._inputs.predictions import read_predictions

P = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
Y = [0, 1, 2]


def changed(row, column, value, matrix=P):
    copy = matrix.astype(float).copy()
    copy[row, column] = value
    return copy


BAD = {
    "neither scores": (TypeError, r"exactly one of probs=, logits= and confidence=; got none", (Y,), {}),
    "both scores": (TypeError, r"got probs= and logits=", (Y,), {"probs": P, "logits": P}),
    "NaN logit": (ValueError, r"logits must be finite: row 1 holds NaN in column 2 \(1 of 3", (Y,), {"logits": changed(1, 2, np.nan)}),
    "+inf logit": (ValueError, r"row 0 holds \+inf in column 1", (Y,), {"logits": changed(0, 1, np.inf)}),
    "no class possible": (ValueError, r"row 2 is -inf in every column", (Y,), {"logits": np.r_[P[:2], [[-np.inf] * 3]]}),
    "NaN probability": (ValueError, r"row 1 holds NaN", (Y,), {"probs": changed(1, 0, np.nan)}),
    "negative probability": (ValueError, r"row 2 holds a negative number \(-0.1\)", (Y,), {"probs": changed(2, 0, -0.1)}),
    "logits as probs": (ValueError, r"row 0 holds a number above 1 \(5\).*If these are logits, pass logits=", (Y,), {"probs": changed(0, 0, 5.0)}),
    "rows that do not sum to 1": (ValueError, r"row 0 sums to 0.9, not 1 within 0.0001 \(float64\) \(1 of 3", (Y,), {"probs": changed(0, 0, 0.6)}),
    "rows that do not sum to 1, float16": (ValueError, r"not 1 within 0.004 \(float16\)", (Y,), {"probs": changed(0, 0, 0.6).astype(np.float16)}),
    "label out of range": (ValueError, r"y must be in 0\.\.2.*row 2 is 3 \(1 of 3", ([0, 1, 3],), {"probs": P}),
    "negative label": (ValueError, r"row 0 is -1", ([-1, 1, 2],), {"probs": P}),
    "fractional label": (ValueError, r"row 1 is 0.5.*n x k matrix", ([0, 0.5, 1],), {"probs": P}),
    "too few labels": (ValueError, r"one entry per row of probs: 2 against 3", ([0, 1],), {"probs": P}),
    "names without classes": (TypeError, r"pass classes=", (["a", "b", "c"],), {"probs": P}),
    "unknown name": (ValueError, r"row 2 is 'z' \(1 of 3", (["a", "b", "z"],), {"probs": P, "classes": ["a", "b", "c"]}),
    "too few classes": (ValueError, r"name each of the 3 classes", (Y,), {"probs": P, "classes": ["a", "b"]}),
    "two columns, no target": (ValueError, r"target='positive'.*target='top-label'", ([0, 1],), {"probs": [[0.5, 0.5]] * 2}),
    "positive of three": (ValueError, r"target='positive' needs a binary problem, got 3", (Y,), {"probs": P, "target": "positive"}),
    "unknown target": (ValueError, r"target must be one of", (Y,), {"probs": P, "target": "top"}),
    "one column": (ValueError, r"one column.*1-D array", (Y,), {"probs": P[:, :1]}),
    "no rows": (ValueError, r"no rows", ([],), {"probs": np.empty((0, 3))}),
    "three axes": (ValueError, r"1-D or 2-D", (Y,), {"probs": P[None]}),
    "negative weight": (ValueError, r"sample_weight must be finite and not negative; row 1 is -1", (Y,), {"probs": P, "sample_weight": [1, -1, 1]}),
    "NaN weight": (ValueError, r"row 0 is nan", (Y,), {"probs": P, "sample_weight": [np.nan, 1, 1]}),
    "all weights zero": (ValueError, r"zero for every row", (Y,), {"probs": P, "sample_weight": [0, 0, 0]}),
    "too many weights": (ValueError, r"one entry per row", (Y,), {"probs": P, "sample_weight": [1, 1]}),
    "soft labels of another shape": (ValueError, r"shape of probs: \(3, 2\)", (P[:, :2],), {"probs": P}),
    "soft labels that do not sum to 1": (ValueError, r"y as soft labels.*row 1 sums to 1.7", (changed(1, 0, 0.8),), {"probs": P}),
    "text scores": (TypeError, r"probs must hold real numbers", (Y,), {"probs": P.astype(str)}),
    "probability above 1, 1-D": (ValueError, r"probs must be in \[0, 1\]; row 1 is 1.5 .*logits=", ([0, 1],), {"probs": [0.5, 1.5]}),
    "bandwidth 0": (ValueError, r"bandwidth must be 'auto' or a number", (Y,), {"probs": P, "bandwidth": 0}),
    "unknown kernel": (ValueError, r"kernel must be one of 'gaussian', 'epanechnikov', got 'box'", (Y,), {"probs": P, "kernel": "box"}),
    "unknown divergence": (ValueError, r"divergence must be one of 'brier', 'log'", (Y,), {"probs": P, "divergence": "mse"}),
    "level of 95": (ValueError, r"level must be between 0 and 1, got 95", (Y,), {"probs": P, "level": 95}),
    "no bins": (ValueError, r"bins must be a whole number from 1", (Y,), {"probs": P, "bins": 0}),
    "half a row": (ValueError, r"frequency must hold whole numbers; row 1 is 0.5.*sample_weight", (Y,), {"probs": P, "frequency": [1, 0.5, 1]}),
    "counts that are all 0": (ValueError, r"frequency is zero for every row", (Y,), {"probs": P, "frequency": [0, 0, 0]}),
    "+inf logit of the positive class": (ValueError, r"logits must be finite; row 1 is inf", ([0, 1],), {"logits": [-np.inf, np.inf]}),
    "bandwidth too large": (ValueError, r"number from 0.001 to 10, got 1000000", (Y,), {"probs": P, "bandwidth": 1_000_000}),
    "too many bins": (ValueError, r"from 1 to 1,000,000", (Y,), {"probs": P, "bins": 10**9}),
    "bins in words": (ValueError, r"bins must be a whole number from 1", (Y,), {"probs": P, "bins": "many"}),
    "paper preset and another bandwidth": (ValueError, r"preset='paper' means bandwidth=0.05, got bandwidth=0.2", (Y,), {"probs": P, "preset": "paper", "bandwidth": 0.2}),
    "tight counterpart of log": (ValueError, r"defined for Brier only", (Y,), {"probs": P, "counterpart": "tight", "divergence": "log"}),
    "level in words": (ValueError, r"level must be between 0 and 1, got 'x'", (Y,), {"probs": P, "level": "x"}),
    "tight counterpart of a binary target": (ValueError, r"'tight' applies to", ([0, 1],), {"probs": [0.2, 0.3], "counterpart": "tight"}),
}  # fmt: skip


@pytest.mark.parametrize(("error", "words", "args", "given"), BAD.values(), ids=BAD)
@pytest.mark.filterwarnings("error")
def test_bad_input_is_named(error, words, args, given):
    with pytest.raises(error, match=words):
        cal.evaluate(*args, **given)


@pytest.mark.parametrize("value", [1.2, -0.1, np.nan, np.inf])
def test_bad_confidence_is_named(value):
    with pytest.raises(ValueError, match=r"confidence must be in \[0, 1\]; row 1 is"):
        cal.evaluate_pairs([1, 0], [0.5, value])


@pytest.mark.parametrize("value", [2, -1, np.nan])
def test_bad_correctness_is_named(value):
    with pytest.raises(ValueError, match=r"correct must be in \[0, 1\]; row 0 is"):
        cal.evaluate_pairs([value, 0], [0.5, 0.5])


def test_offenders_of_weight_zero_are_as_good_as_removed():
    p = changed(1, 0, np.nan)
    ev = cal.evaluate(Y, probs=p, sample_weight=[1, 0, 1])
    assert ev.rows == 2
    assert ev.metrics["brier"] == cal.brier([0, 2], probs=P[[0, 2]])
    assert cal.evaluate_pairs([1, 1], [0.5, np.nan], sample_weight=[1, 0]).rows == 1
    each = cal.evaluate(Y, probs=p, sample_weight=[1, 0, 1], target="class-wise")
    assert each.rows == 2


def test_labels_may_have_any_name():
    by_number = cal.evaluate(Y, probs=P).to_dict()
    for names in (["cat", "dog", "emu"], [10, 20, 30], [True, None, ("a", 1)]):
        y = np.empty(3, object)
        y[:] = names
        assert cal.evaluate(y, probs=P, classes=names).to_dict() == by_number
    assert cal.evaluate(["cat", "dog", "emu"], probs=P, classes=["cat", "dog", "emu"])
    assert cal.accuracy(np.array([[0], [1], [2]]), probs=P) == 1


def test_a_mask_is_a_weight():
    ev = cal.evaluate(Y, probs=P, sample_weight=[True, False, True])
    assert ev.n == 2


def test_rows_may_be_off_by_what_their_dtype_explains():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(100), 200)
    y = rng.integers(0, 100, 200)
    exact = cal.brier(y, probs=p)
    assert cal.brier(y, probs=p.astype(np.float16)) == pytest.approx(exact, rel=1e-3)
    assert cal.brier(y, probs=p.astype(np.float32)) == pytest.approx(exact, rel=1e-6)


def test_names_of_any_kind_may_come_in_a_list():
    names = [("a", 1), ("b", 2), None]
    ev = cal.evaluate([names[0], names[2], names[1]], probs=P[[0, 2, 1]], classes=names)
    assert ev.metrics["accuracy"] == 1
    mixed = cal.accuracy([1, "b", 1.5], probs=P, classes=[1, "b", 1.5])
    assert mixed == 1


def test_soft_labels_have_the_tolerance_of_their_dtype():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(30), 100)
    half = cal.brier(p.astype(np.float16), probs=p)
    assert half == pytest.approx(0, abs=1e-5)
    one_hot = np.eye(3, dtype=bool)
    assert cal.brier(one_hot, probs=P) == pytest.approx(cal.brier(Y, probs=P))


def test_a_row_at_the_edge_of_the_tolerance_is_judged_in_double_precision():
    # Sums in single precision may land on the other side; the message must not.
    rng = np.random.default_rng(0)
    for _ in range(200):
        row = rng.dirichlet(np.ones(1000)) * (1 + 1e-4)
        row = row.astype(np.float32)[None]
        try:
            cal.brier([0], probs=row)
        except ValueError as error:
            assert "probs must be rows" in str(error)  # noqa: PT017
            assert abs(row.sum(dtype=np.float64) - 1) > 1e-4


def test_options_of_every_metric_are_checked():
    for call, words in (
        (lambda: cal.top_label_ece(Y, probs=P, closed="foo"), "closed must be one of"),
        (lambda: cal.top_label_ece(Y, probs=P, bins=0), "bins must be"),
        (lambda: cal.top_label_ece(Y, probs=P, norm=0), "norm must be"),
        (lambda: cal.full_vector_ece(Y, probs=P, bins=-3), "bins must be"),
        (lambda: cal.ece(Y, probs=P, norm=None), "norm must be"),
        (lambda: cal.top_label_ece(Y, probs=P, target="positive"), "leave target out"),
        (lambda: cal.classwise_ece(Y, probs=P, target="top-label"), "leave target out"),
        (lambda: cal.ece(Y, probs=P, target="class-wise"), "one number per class"),
        (
            lambda: cal.calibration_error(Y, probs=P, target="class-wise"),
            "one number per class",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_weight_zero_removes_a_bad_row_from_the_full_vector_error_too():
    p = changed(1, 0, np.nan)
    got = cal.full_vector_ece(Y, probs=p, sample_weight=[1, 0, 1])
    assert got == cal.full_vector_ece([0, 2], probs=P[[0, 2]])
    z = changed(1, 0, np.inf)
    cal.evaluate(Y, logits=z, sample_weight=[1, 0, 1], target="class-wise")


@pytest.mark.parametrize("name", ["ece", "brier", "classwise_ece", "smooth_ece"])
def test_metrics_show_their_keywords_and_refuse_others(name):
    metric = getattr(cal, name)
    shown = inspect.signature(metric).parameters
    assert list(shown)[:4] == ["y", "probs", "logits", "confidence"]
    assert "given" not in shown
    with pytest.raises(
        TypeError, match=rf"{name} has no option 'prob'; did you mean 'probs'"
    ):
        metric(Y, prob=P)


def test_swapped_arguments_are_noticed():
    p, y = [0.2, 0.7, 0.4] * 10, [0, 1, 1] * 10
    for call in (
        lambda: cal.evaluate_pairs(p, y),
        lambda: cal.evaluate(p, probs=y),
        lambda: cal.ece(p, confidence=y),
    ):
        with pytest.raises(ValueError, match="are the two swapped"):
            call()
    cal.evaluate_pairs([0.5, 1.0], [1.0, 1.0])  # certain of soft labels: may well be


def test_round_off_above_one_is_allowed_in_one_column_as_in_two():
    p = np.array([1.000001, 0.25], np.float32)
    two = np.stack([1 - p, p], axis=1).clip(0)
    assert cal.brier([1, 0], probs=p) == cal.brier([1, 0], probs=two, target="positive")
    with pytest.raises(ValueError, match=r"row 0 is 1\.5"):
        cal.brier([1, 0], probs=[1.5, 0.2])


def test_soft_labels_of_the_positive_class_are_checked():
    y = [[0.5, 0.5], [0.9, 0.9]]
    with pytest.raises(ValueError, match=r"y as soft labels.*row 1 sums to 1.8"):
        cal.evaluate(y, probs=[[0.5, 0.5]] * 2, target="positive")


@pytest.mark.parametrize(
    "name",
    ["boundary", "estimator", "kernel", "counterpart", "preset", "closed", "engine"],
)
def test_unknown_choices_are_named(name):
    with pytest.raises(ValueError, match=f"{name} must be one of .*, got 'x'"):
        cal.evaluate([0], probs=[[0.7, 0.2, 0.1]], **{name: "x"})


def test_a_mask_may_leave_one_row_in_a_hundred():
    given = {"confidence": np.full(100, 0.9), "sample_weight": np.arange(100) == 7}
    assert cal.brier(np.ones(100), **given) == pytest.approx(0.01)


def test_an_error_about_rows_can_be_asked():
    with pytest.raises(RowError) as caught:
        cal.evaluate([0, 3, 4], probs=P)
    error = caught.value
    assert (error.row, error.count, error.of) == (1, 2, 3)
    assert error.rule == "y must be in 0..2, the column numbers;"
    assert error.remedy.startswith("If labels have other names")


def test_an_error_about_rows_survives_the_way_between_processes():
    with pytest.raises(RowError) as caught:
        cal.evaluate(Y, logits=changed(1, 2, np.nan))
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is RowError
    assert str(again) == str(caught.value)
    assert "(1 of rows 0 to 2 are off)" in str(again.shifted(0))


def test_rows_of_a_part_are_counted_in_the_whole():
    error = RowError("y must be whole;", 1, "is 0.5", 2, 10, remedy="Round it.")
    shifted = error.shifted(20).shifted(100)
    assert shifted.row == 121
    assert str(shifted) == (
        "y must be whole; row 121 is 0.5 (2 of rows 120 to 129 are off). Round it."
    )
    uncounted = RowError("y must be whole;", 1, "is 0.5").shifted(3)
    assert str(uncounted) == "y must be whole; row 4 is 0.5."


def test_weights_are_free_of_unit_and_counts_are_not():
    w = np.array([0.5, 2.0, 0.0])
    plain = read_predictions(Y, probs=P, sample_weight=w)
    np.testing.assert_array_equal(plain.weight, [0.4, 1.6, 0.0])
    np.testing.assert_allclose(plain.squared, [0.16, 2.56, 0.0], rtol=1e-15)
    for unit in (1e-300, 4.0, 1e300):
        scaled = read_predictions(Y, probs=P, sample_weight=unit * w)
        np.testing.assert_allclose(scaled.weight, plain.weight, rtol=1e-15)
    counted = read_predictions(Y, probs=P, frequency=[3, 1, 0])
    assert counted.weight.tolist() == [3, 1, 0]
    assert counted.squared is None


def test_weights_that_only_choose_rows_are_counts():
    chosen = read_predictions(Y, probs=P, sample_weight=[0.1, 0.1, 0.0])
    assert chosen.weight.tolist() == [1, 1, 0]
    assert chosen.squared is None


def test_both_kinds_of_weights_are_multiplied():
    both = read_predictions(Y, probs=P, sample_weight=[1, 3, 1], frequency=[2, 2, 0])
    assert both.weight.tolist() == [1, 3, 0]
    assert both.squared.tolist() == [0.5, 4.5, 0]


NAN = float("nan")


@pytest.mark.parametrize(
    ("correct", "confidence", "said"),
    [
        ([1, 0, 1], [90, 20, NAN], r"row 0 is 90.0 .*divide them by 100\."),
        ([1, 0, 1], [0.9, NAN, 0.3], r"row 1 is nan .*drop_missing=True"),
        ([1, 0, 1], [0.9, None, 0.3], r"row 1 is None\. .*drop_missing=True"),
        ([1, NAN, 1], [0.9, 0.2, 0.3], r"row 1 is nan .*np.asarray\(correct, float\)"),
        (
            [1, None, 1],
            [0.9, 0.2, 0.3],
            r"row 1 is None\. .*np.asarray\(correct, float\)",
        ),
        (
            [1, 0],
            ["90%", "20%"],
            r"row 0 is '90%'\. .*x.rstrip\('% '\)\) / 100 for x in c",
        ),
        ([1, 0], ["sure", "0.2"], r"row 0 is 'sure'\. Are labels and scores swapped"),
        (["no", "yes"], [0.9, 0.2], r"row 0 is 'no'.*np.asarray\(correct\) == 'yes'\."),
    ],
)
def test_errors_of_pairs_say_what_to_do(correct, confidence, said):
    with pytest.raises((ValueError, TypeError), match=said):
        cal.evaluate_pairs(correct, confidence)
    with pytest.raises((ValueError, TypeError), match=said):
        cal.evaluate(correct, confidence=confidence)


@pytest.mark.parametrize(
    "given",
    [
        {"correct": [1, None, 0, 1], "confidence": [0.9, 0.2, 0.3, 0.4]},
        {"correct": [1, 1, 0, 1], "confidence": [0.9, None, 0.3, 0.4]},
        {"correct": np.array([1, 1, NAN, 1]), "confidence": [0.9, 0.2, 0.3, 0.4]},
    ],
)
def test_the_way_out_of_missing_rows_works_as_it_is_written(given):
    with pytest.raises((ValueError, TypeError)) as refused:
        cal.evaluate_pairs(**given)
    keep = re.search(r"keep = (.*?), and np.asarray\(x\)\[keep\]", str(refused.value))
    rows = eval(keep[1], {"np": np, **given})
    assert rows.sum() == 3
    kept = {what: np.asarray(x)[rows] for what, x in given.items()}
    assert cal.evaluate_pairs(**kept).rows == 3


@pytest.mark.parametrize("y", [[1, 0, None] * 20, ["a", "b", None] * 20])
def test_labels_that_are_none_are_no_names(y):
    probs = [0.2, 0.8, 0.4] * 20
    said = {}
    for classes in (None, sorted({*y} - {None})):
        with pytest.raises(RowError, match=r"row 2 is None \(20 of 60") as refused:
            cal.evaluate(y, probs=probs, classes=classes)
        keep = re.search(r"keep = (.*?), and", str(refused.value))[1]
        said[keep] = eval(keep, {"y": y})
    (rows,) = said.values()
    kept = np.asarray(y)[rows], np.asarray(probs)[rows]
    assert cal.evaluate(kept[0], probs=kept[1], classes=classes).rows == 40


def test_confidences_in_words_are_refused_with_missing_ones_left_out_too():
    with pytest.raises(TypeError, match="row 0 is '90%'"):
        cal.evaluate_pairs([1, 0, 1], ["90%", None, "30%"], drop_missing=True)


def test_nan_among_probabilities_is_left_out_not_called_a_logit():
    for probs in ([0.9, NAN], [[0.9, 0.1], [NAN, 1.0]]):
        with pytest.raises(ValueError, match=r"keep = ~np\.isnan"):
            cal.evaluate([1, 0], probs=probs, target="positive")


P300 = np.linspace(0.1, 0.9, 300)


def test_a_weight_that_counts_for_nothing_is_refused_with_the_way_out():
    weight = np.ones(300)
    weight[7] = 1e-90
    words = "at least 1e-70 times the largest; row 7 is 1e-90 .* give it a weight of 0"
    with pytest.raises(RowError, match=words):
        read_predictions(np.zeros(300), probs=np.zeros(300), sample_weight=weight)
    weight[7] = 0.0
    assert (
        cal.evaluate(np.arange(300) % 2, probs=P300, sample_weight=weight).rows == 299
    )


@pytest.mark.parametrize("labels", [["a", "b", "c"] * 10, [True, False, True] * 10])
def test_labels_given_as_scores_look_swapped(labels):
    p = np.linspace(0.1, 0.8, 30)
    for given in (np.array(labels), np.array(labels, object)):
        with pytest.raises(TypeError, match="Are labels and scores swapped"):
            cal.evaluate(p, probs=given)
        with pytest.raises(TypeError, match="Are labels and scores swapped"):
            cal.evaluate_pairs(p, given)


def test_a_matrix_of_scores_given_as_labels_looks_swapped():
    p = np.full((30, 3), 1 / 3)
    with pytest.raises(ValueError, match="Are the two swapped"):
        cal.evaluate(p, probs=np.arange(30) % 3)


def test_names_in_an_error_are_plain():
    with pytest.raises(TypeError, match=r"such as 'one'; pass"):
        cal.evaluate(np.array(["one"] * 9, object), probs=np.full((9, 3), 1 / 3))
    names = np.fromiter(map(np.str_, ["one"] * 9), object, 9)
    with pytest.raises(TypeError, match=r"such as 'one'; pass"):
        cal.evaluate(names, probs=np.full((9, 3), 1 / 3))
