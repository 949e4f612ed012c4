"""Nothing is believed that the object itself contradicts."""

import re
from typing import Any

import numpy as np
import pytest
from make import softmax, unrelated

import calibrant as cal
from calibrant import files
from calibrant.files._sources import FileError
from calibrant.recalibration import TemperatureScaling

Y, Z = unrelated(200, 3)
P = softmax(Z)
NAMES = np.array(["cat", "ant", "bee"])  # not in the order of the alphabet
NO_LOGITS = r"these logits are probabilities: .*\. "
FUNCTIONS = (cal.evaluate, cal.ece, cal.accuracy, cal.calibration_test, cal.corp)


# -- probabilities that are given as logits ------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("call", [*FUNCTIONS, cal.study, cal.Sketch().update])
def test_probabilities_given_as_logits_are_refused(call, dtype):
    with pytest.raises(ValueError, match=f"^{NO_LOGITS}Pass probs= instead"):
        call(Y, logits=P.astype(dtype))


def test_a_column_of_probabilities_given_as_logits_is_refused():
    p = np.linspace(0.01, 0.99, 200)
    with pytest.raises(ValueError, match=r"run from 0.01 to 0.99.*Pass probs="):
        cal.evaluate(p > 0.5, logits=p)
    with pytest.raises(ValueError, match=r"Use TemperatureScaling\(scores='probs'\)"):
        TemperatureScaling().fit(p, p > 0.5)
    assert cal.evaluate(p > 0.5, logits=4 * p - 2).rows == 200
    rare = 0.3 * p[::4]
    with pytest.raises(ValueError, match=r"run from 0.003 to 0.293.* 0 and z"):
        TemperatureScaling().fit(rare, p[::4] > 0.5)
    two = np.stack([0 * rare, rare], axis=1)
    assert cal.evaluate(p[::4] > 0.5, logits=two, target="positive").rows == 50


def test_once_fitted_to_log_odds_some_may_all_be_in_0_to_1():
    z = np.linspace(-3, 3, 200)
    noise = np.random.default_rng(0).logistic(size=200)
    fitted = TemperatureScaling().fit(z, z + noise > 0)
    assert fitted.predict_proba(z[(z >= 0) & (z <= 1)]).shape == (33, 2)


@pytest.mark.parametrize("change", [-1e-3, 1e-2])
def test_one_row_that_is_no_distribution_makes_them_logits(change):
    z = P.copy()
    z[-1, 0] += change - z[-1, 0] * (change < 0)
    assert cal.evaluate(Y, logits=z).rows == 200


def test_few_rows_may_be_distributions_by_chance():
    assert cal.evaluate(Y[:9], logits=P[:9]).rows == 9


def test_the_torch_metric_refuses_them_over_all_batches(part):
    torch = part("torch")
    part("torchmetrics")
    from calibrant.torch import CalibrationSharpness, reduce_rows

    metric = CalibrationSharpness(3, scores="logits")
    for rows in np.array_split(np.arange(200), 40):
        metric.update(torch.tensor(P[rows]), torch.tensor(Y[rows]))
    with pytest.raises(ValueError, match=rf"{NO_LOGITS}.*scores='probs'"):
        metric.compute()
    with pytest.raises(ValueError, match=f"{NO_LOGITS}Pass probs="):
        reduce_rows(torch.tensor(Y), logits=torch.tensor(P).bfloat16())
    metric.update(torch.tensor(Z), torch.tensor(Y))
    assert metric.evaluation().rows == 400


# -- indices that disagree -----------------------------------------------------


def test_rows_in_another_order_are_refused(part):
    pd = part("pandas")
    p, y = pd.DataFrame(P), pd.Series(Y)
    other = y.sample(frac=1, random_state=0)
    told = r"y and probs have different indices: row 0 is \d+ in y and 0 in probs\. .*"
    calls = (*FUNCTIONS, cal.study, cal.Sketch().update)
    for call in calls:
        with pytest.raises(
            ValueError, match=rf"{told}probs\.loc\[y\.index\].*to_numpy"
        ):
            call(other, probs=p)
    with pytest.raises(ValueError, match="scores and y have different indices"):
        TemperatureScaling(scores="probs").fit(p, other)
    aligned = cal.evaluate(other, probs=p.loc[other.index]).metrics
    assert aligned["accuracy"] == cal.accuracy(Y, probs=P)
    assert cal.accuracy(other.to_numpy(), probs=p) != aligned["accuracy"]


@pytest.mark.parametrize("name", ["sample_weight", "frequency", "cluster", "group"])
def test_what_belongs_to_rows_must_have_their_index(part, name):
    pd = part("pandas")
    beside = {name: pd.Series(np.arange(200) % 20, index=np.arange(200)[::-1])}
    told = f"(y|correct) and {name} have different indices"
    for call in (cal.evaluate, cal.Sketch().update):
        with pytest.raises(ValueError, match=told):
            call(pd.Series(Y), probs=P, **beside)
    for call in (cal.evaluate_pairs, cal.Sketch().update_pairs):
        with pytest.raises(ValueError, match=told):
            call(pd.Series(Y == 0), P[:, 0], **beside)
    assert cal.evaluate(Y, probs=P, **beside).rows <= 200  # one index contradicts none


def backwards(pd, values):
    """Values of 200 rows whose index is that of the rows, in another order."""
    return pd.Series(values, index=np.arange(200)[::-1])


CLUSTERED = {
    "decision_curve": cal.decision_curve,
    "murphy": cal.murphy,
    "cutoff_error": cal.cutoff_error,
    "risk_coverage": cal.risk_coverage,
    "calibration_test": cal.calibration_test,
    "clinical": cal.clinical,
    "skill": cal.skill,
    "grouping_loss": lambda *y, **x: cal.grouping_loss(*y, explain=P, **x),
    "multicalibration_error": lambda *y, **x: cal.multicalibration_error(
        *y, groups=P > 0.3, **x
    ),
    "calibration_bracket": cal.calibration_bracket,
    "canonical_calibration_error": cal.canonical_calibration_error,
    "kernel_calibration_error": cal.kernel_calibration_error,
}


@pytest.mark.parametrize("name", CLUSTERED)
def test_clusters_of_every_verb_must_have_the_index_of_rows(part, name):
    pd = part("pandas")
    cluster = backwards(pd, np.arange(200) % 20)
    with pytest.raises(ValueError, match="y and cluster have different indices: row 0"):
        CLUSTERED[name](pd.Series(Y == 0), probs=P[:, 0], cluster=cluster)


def test_columns_that_a_verb_explains_by_must_have_the_index_of_rows(part):
    pd = part("pandas")
    y, p, column = pd.Series(Y == 0), P[:, 0], backwards(pd, np.arange(200) % 2)
    frame = {"a": np.arange(200) % 2, "b": column}
    calls = {
        "period": (cal.monitor, column),
        "features": (cal.find_slices, column.to_frame()),
        r"features\['b'\]": (cal.find_slices, frame),
        "explain": (cal.grouping_loss, column),
        r"explain\['b'\]": (cal.loss_parts, frame),
        "groups": (cal.multicalibration_error, column.to_frame()),
        r"groups\['b'\]": (cal.multicalibration_error, frame),
        "reference": (cal.skill, column / 2),
    }
    for name, (call, given) in calls.items():
        told = rf"y and {name} have different indices.*{name}\.loc\[y\.index\]"
        with pytest.raises(ValueError, match=told):
            call(y, probs=p, **{name.partition("\\")[0]: given})


# -- column names --------------------------------------------------------------


def frames(part):
    """Data frames of three libraries with these columns."""
    pd, pl, pa = (part(name) for name in ("pandas", "polars", "pyarrow"))
    columns = dict(zip(NAMES.tolist(), P.T, strict=True))
    return pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)


def test_column_names_are_the_classes_where_they_fit_the_labels(part):
    want = cal.accuracy(Y, probs=P)
    for frame in frames(part):
        assert cal.accuracy(NAMES[Y], probs=frame) == want
        with pytest.raises(TypeError, match=r"pass classes=\[...\]"):
            cal.accuracy(np.array(["a", "b", "c"])[Y], probs=frame)
        each = cal.evaluate(NAMES[Y], probs=frame, target="class-wise").per_class
        assert [one.name for one in each] == NAMES.tolist()
    sketch = cal.Sketch().update(NAMES[Y], probs=frames(part)[0])
    assert sketch.kind.classes == tuple(NAMES)


def test_a_label_that_is_no_column_is_named(part):
    pandas = part("pandas")
    p = pandas.DataFrame({"Dog": [0.9, 0.2], "cat": [0.1, 0.8]})
    with pytest.raises(ValueError, match=r"y holds 'dog', which is no column of probs"):
        cal.evaluate(["dog", "cat"], probs=p, target="top-label")
    p = p.rename(columns={"Dog": "dog"})
    for missing in (None, float("nan")):
        y = pandas.Series(["dog", missing], dtype=object)
        with pytest.raises(ValueError, match=r"only names in classes; row 1 is"):
            cal.evaluate(y, probs=p, target="top-label")


def test_names_without_classes_are_answered_with_one_of_them():
    p = [[0.9, 0.1], [0.2, 0.8]]
    with pytest.raises(TypeError, match=r"y holds names, such as 'dog'; pass classes="):
        cal.evaluate(np.array(["dog", "cat"]), probs=p, target="top-label")
    with pytest.raises(TypeError, match=r"in column order, the positive class last\."):
        cal.evaluate(["ham", "spam"], probs=[0.9, 0.2])


def test_studies_and_recalibrators_take_the_names_of_columns(part):
    frame = frames(part)[0]
    found = cal.study(NAMES[Y], probs=frame, methods=["temperature"])
    want = cal.study(Y, probs=P, methods=["temperature"])
    assert found[0].metrics["accuracy"] == want[0].metrics["accuracy"]
    two = cal.study(
        *(NAMES[Y[:100]], NAMES[Y[100:]]), probs=(frame[:100], frame[100:]), methods=[]
    )
    assert two[0].metrics["accuracy"] == cal.accuracy(Y[100:], probs=P[100:])
    fitted = TemperatureScaling(scores="probs").fit(frame, NAMES[Y])
    assert fitted.classes_.tolist() == NAMES.tolist()


def test_column_names_that_contradict_classes_are_refused(part):
    told = r"columns of \w+ are 'cat', 'ant', 'bee', and classes= says 'ant', 'bee', 'c"
    for frame in frames(part):
        for call in (cal.evaluate, cal.ece, cal.study, cal.Sketch().update):
            with pytest.raises(ValueError, match=told):
                call(NAMES[Y], probs=frame, classes=sorted(NAMES))
    method = TemperatureScaling(scores="probs", classes=sorted(NAMES))
    with pytest.raises(ValueError, match=told):
        method.fit(frames(part)[0], NAMES[Y])
    renamed = frames(part)[0].add_prefix("p_")  # says nothing of classes
    assert cal.accuracy(NAMES[Y], probs=renamed, classes=NAMES) == cal.accuracy(
        Y, probs=P
    )


@pytest.mark.parametrize("columns", [[2, 0, 1], ["2", "0", "1"], [1, 2, 3]])
def test_numbers_of_columns_in_another_order_are_not_believed(part, columns):
    frame = part("pandas").DataFrame(P, columns=columns)
    with pytest.raises(ValueError, match="which of them is class 0"):
        cal.evaluate(Y, probs=frame)
    got = cal.accuracy(np.array(columns)[Y], probs=frame, classes=columns)
    assert got == cal.accuracy(Y, probs=frame.to_numpy()) == cal.accuracy(Y, probs=P)


@pytest.mark.parametrize("numbers", [(2, 0, 1), (3, 1, 2)])
def test_numbers_at_the_end_of_names_are_held_against_their_order(
    part, numbers, tmp_path
):
    columns = [f"p_{i}" for i in numbers]
    frame = part("pandas").DataFrame(P, columns=columns)
    said = "'p_{}', 'p_{}', 'p_{}'".format(*numbers)
    with pytest.raises(ValueError, match=f"{said}: which of them is class 0"):
        cal.evaluate(Y, probs=frame)
    labels, want = np.array(numbers)[Y], cal.accuracy(Y, probs=P)
    assert cal.accuracy(labels, probs=frame, classes=numbers) == want
    assert cal.evaluate(frame, probs=frame).rows == 200  # soft labels of the same names
    path = tmp_path / "rows.csv"
    frame.assign(label=labels % 3).to_csv(path, index=False)
    with pytest.raises(FileError, match=f"{said} .*--classes {numbers[0]},"):
        files.read(path, files.Roles(probs=columns))
    frame.assign(label=labels).to_csv(path, index=False)
    for said in ({"probs": columns, "classes": [*map(str, numbers)]}, {}):
        found = files.read(path, files.Roles(**said))
        assert cal.accuracy(**found.arguments) == want


TRUE = Y < 1
TWO = np.stack([P[:, 0], 1 - P[:, 0]], axis=1)
"""The probabilities of true and of false, in this order."""


@pytest.mark.parametrize(("true", "false"), [(True, False), ("True", "False"), (1, 0)])
@pytest.mark.parametrize("labels", [TRUE, TRUE.astype(int), TRUE.tolist()])
def test_true_and_false_as_names_of_columns_are_read_as_1_and_0(
    part, true, false, labels
):
    frame = part("pandas").DataFrame(TWO, columns=[true, false])
    in_order = frame.iloc[:, ::-1]
    want = cal.accuracy(labels, probs=TWO[:, ::-1], target="positive")
    for call in (cal.evaluate, cal.study, cal.accuracy):
        with pytest.raises(ValueError, match=f"are {true!r}, {false!r}: which of them"):
            call(labels, probs=frame, target="positive")
        with pytest.raises(ValueError, match=r"and classes= says False, True"):
            call(labels, probs=frame, target="positive", classes=[False, True])
        assert call(labels, probs=in_order, target="positive")
    with pytest.raises(ValueError, match="which of them is class 0"):
        TemperatureScaling(scores="probs").fit(frame, labels)
    assert want == cal.accuracy(labels, probs=in_order, target="positive")
    named: Any = {"classes": [True, False], "target": "top-label"}
    assert want == cal.accuracy(labels, probs=frame, **named)
    if true != 1 or true is True:
        with pytest.raises(ValueError, match=r"and classes= says True, False"):
            cal.accuracy(labels, probs=in_order, **named)


def test_labels_that_are_words_of_truth_are_columns_of_that_name(part):
    frame = part("pandas").DataFrame(TWO, columns=["True", "False"])
    want = cal.accuracy(TRUE, probs=TWO[:, ::-1], target="top-label")
    assert want == cal.accuracy(TRUE.astype(str), probs=frame, target="top-label")


@pytest.mark.parametrize("columns", [[0, 1, 2], ["0", "1", "2"], list("abc"), ["p_1", "p_2", "p_3"], ["a1", "b0", "c2"], ["p_60", "p_20", "p_40"]])  # fmt: skip
def test_columns_in_order_say_nothing_new(part, columns):
    frame = part("pandas").DataFrame(P, columns=columns)
    assert cal.accuracy(Y, probs=frame) == cal.accuracy(Y, probs=P)


def test_numbers_that_can_only_be_names_are_names(part):
    frame = part("pandas").DataFrame(P, columns=[7, 5, 6])
    got = cal.accuracy(np.array([7, 5, 6])[Y], probs=frame)
    assert got == cal.accuracy(Y, probs=P)


def test_columns_of_soft_labels_must_be_those_of_the_scores(part):
    frame = frames(part)[0]
    with pytest.raises(
        ValueError, match=r"columns of y are 'ant'.* those of probs are"
    ):
        cal.evaluate(frame[sorted(NAMES)], probs=frame)
    assert cal.evaluate(frame, probs=frame).rows == 200


@pytest.mark.parametrize("classes", [set("abc"), {"a": 0, "b": 1, "c": 2}])
def test_classes_without_an_order_are_refused(classes):
    for call in (cal.evaluate, cal.ece, cal.study, cal.Sketch().update):
        with pytest.raises(TypeError, match="classes must be a list of names in order"):
            call(np.array(["a", "b", "c"])[Y], probs=P, classes=classes)


# -- per cent, bfloat16, positions, the positive class -------------------------


def test_per_cent_is_answered_by_dividing_by_100():
    told = r"divide them by 100\.$"
    with pytest.raises(ValueError, match=told) as matrix:
        cal.evaluate(Y, probs=100 * P)
    with pytest.raises(ValueError, match=told) as column:
        cal.evaluate(Y == 0, probs=100 * P[:, 0])
    with pytest.raises(ValueError, match=told):
        cal.evaluate_pairs(Y == 0, 100 * P[:, 0])
    assert not any("logits" in str(error.value) for error in (matrix, column))
    with pytest.raises(ValueError, match="pass logits="):
        cal.evaluate(Y == 0, probs=Z[:, 0])
    stray = np.append(P[:, 0], 1.5)
    with pytest.raises(ValueError, match="pass logits="):
        cal.evaluate(np.append(Y == 0, True), probs=stray)


def test_bfloat16_probabilities_have_its_tolerance_and_its_name(part):
    torch = part("torch")
    p = torch.tensor(softmax(np.tile(Z, 4))).bfloat16()
    y = Y + 3
    assert float((p.double().sum(1) - 1).abs().max()) > 1e-4
    want = cal.brier(y, probs=softmax(np.tile(Z, 4)))
    for given in (p, p.float().numpy()):
        assert cal.brier(y, probs=given) == pytest.approx(want, abs=3e-3)
    assert cal.study(y, probs=p, methods=["temperature"])[0].k == 12
    assert cal.Sketch().update(y, probs=p).rows == 200
    with pytest.raises(ValueError, match=r"not 1 within 0.03 \(bfloat16\)"):
        cal.evaluate(y, probs=p * 1.1)
    with pytest.raises(ValueError, match=NO_LOGITS):
        cal.evaluate(y, logits=p)
    with pytest.raises(ValueError, match=r"not 1 within 0.0001 \(float32\)"):
        cal.evaluate(Y, probs=P.astype(np.float32) * np.float32(1.001))


def test_a_coarse_row_of_single_precision_is_not_bfloat16():
    p = np.tile(np.float32([[0.3, 0.7], [0.1, 0.9]]), (10, 1))
    p[3] = 0.5, 0.515625  # exact in bfloat16, where it would pass
    with pytest.raises(ValueError, match=r"row 3 sums to 1\.01562.*\(float32\)"):
        cal.evaluate([0, 1] * 10, probs=p, target="top-label")


def test_bfloat16_of_jax_is_read(part):
    part("jax")
    import jax.numpy as jnp

    p = jnp.asarray(P, dtype=jnp.bfloat16)
    assert cal.brier(Y, probs=p) == pytest.approx(cal.brier(Y, probs=P), abs=3e-3)


@pytest.mark.parametrize("call", [cal.evaluate, cal.calibration_test, cal.study])
def test_scores_without_a_name_are_answered_with_both_spellings(call):
    name = call.__name__
    with pytest.raises(TypeError) as error:
        call(Y, P)
    assert re.search(rf"{name}\(y, probs=p\)", str(error.value))
    assert re.search(rf"{name}\(y, logits=[pz]\)", str(error.value))


@pytest.mark.parametrize("sketched", [False, True])
def test_the_positive_class_is_named(sketched, tmp_path):
    p, names = P[:, 0], np.array(["benign", "malignant"])
    y = names[(Y == 0).astype(int)]
    ev = cal.evaluate(y, probs=p, classes=names, group=Y % 2)
    if sketched:
        sketch = cal.Sketch(classes=names).update(y, probs=p, group=Y % 2)
        ev = cal.evaluate(sketch)
    assert ev.positive == "malignant"
    assert {own.positive for own in ev.per_group.values()} == {"malignant"}
    assert "is class 'malignant' as likely as forecast?" in str(ev)
    assert "Brier is of class 'malignant' alone" in str(ev.table(format="text"))
    assert cal.Evaluation.from_json(ev.to_json()).positive == "malignant"
    ev.report(tmp_path / "page.html")
    assert "malignant" in (tmp_path / "page.html").read_text("utf-8")
    plain = cal.evaluate(Y == 0, probs=p)
    assert "is class 1 as likely as forecast?" in str(plain)
    assert cal.evaluate(Y, probs=P).positive is None


# -- one half ----------------------------------------------------------------------------


def test_exactly_one_half_is_class_0_everywhere():
    p, y = np.tile([0.5, 0.2, 0.9, 0.5], 15), np.tile([0, 0, 1, 1], 15)
    right = np.mean((p > 0.5) == y)
    assert right == 0.75
    both = np.column_stack([1 - p, p])
    for target, scores in (("positive", p), ("positive", both), ("top-label", both)):
        ev = cal.evaluate(y, probs=scores, target=target)
        assert ev.metrics["accuracy"] == right
        assert cal.accuracy(y, probs=scores, target=target) == right
        sketch = cal.Sketch(target=target).update(y, probs=scores)
        assert cal.evaluate(sketch).metrics["accuracy"] == right
    logits = np.log(p) - np.log1p(-p)
    assert cal.accuracy(y, logits=logits) == right
    clustered = cal.evaluate(y, probs=p, cluster=np.arange(60) // 2)
    assert clustered.metrics["accuracy"] == right
    same = cal.recalibration.Identity(scores="probs").fit(p, y)
    assert same.score(p, y) == right
    assert np.array_equal(same.predict(p), (p > 0.5).astype(int))
    found = cal.study(y, probs=p, methods="identity", split=0.5)
    assert all(effect.changed == 0 for effect in found.effects.values())


# -- numbers that are no logits ----------------------------------------------------------


@pytest.mark.parametrize("size", [1e155, 1e300])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_logits_beyond_all_measure_are_refused_by_row(size, columns):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(60, columns))
    z[7] = np.arange(columns) * -size if columns > 1 else size
    y = np.where(np.arange(60) == 7, 0, rng.integers(0, max(columns, 2), 60))
    y[7] = columns - 1 if columns > 1 else 0
    z = z[:, 0] if columns == 1 else z
    told = r"logits must be at most 1e\+100 in size, or -inf; row 7 is "
    targets = ("top-label", "class-wise") if columns > 1 else ("positive",)
    for target in targets:
        with pytest.raises(ValueError, match=told):
            cal.evaluate(y, logits=z, target=target)
    with pytest.raises(ValueError, match=told):
        cal.nll(y, logits=z, target=targets[0])
    with pytest.raises(ValueError, match=told):
        cal.Sketch(target=targets[0]).update(y, logits=z)
    with pytest.raises(ValueError, match=told):
        TemperatureScaling().fit(z, y)
    kept = cal.evaluate(
        y, logits=z, target=targets[0], sample_weight=np.arange(60) != 7
    )
    assert kept.rows == 59


def test_large_logits_that_are_numbers_stay():
    rng = np.random.default_rng(0)
    for kind, size in (("f8", 1e90), ("f4", 1e37)):
        z = (rng.normal(size=(60, 3)) * size).astype(kind)
        ev = cal.evaluate(rng.integers(0, 3, 60), logits=z)
        assert np.isfinite(ev.metrics["nll"])
        z[:, 0] = -np.inf
        assert cal.evaluate(np.ones(60, int), logits=z).infinite_rows == 0


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_probabilities_of_half_precision_are_no_logits(kind):
    rng = np.random.default_rng(0)
    z = 3 * rng.normal(size=(500, 10))
    p = np.exp(z - z.max(axis=1, keepdims=True))
    half = (p / p.sum(axis=1, keepdims=True)).astype(np.float16).astype(kind)
    with pytest.raises(ValueError, match="these logits are probabilities"):
        cal.evaluate(z.argmax(axis=1), logits=half)
