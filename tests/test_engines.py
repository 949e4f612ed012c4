"""Sketches of data frames: the sums of the rows, whatever holds them."""

import numpy as np
import pytest
from engine_sums import (
    PAIRS,
    assert_same_metrics,
    assert_same_sums,
    forecasts,
    matrix,
    pairs,
    sketch_pairs,
)
from hypothesis import given
from hypothesis import strategies as st

import calibrant as cal
from calibrant._sketch import cells as values
from calibrant._sketch import frames
from calibrant._sketch import frames as slices
from calibrant._sketch.frames import sketch_frame

PAIR = {"confidence": "h", "correct": "a"}


def pandas(part, columns):
    return part("pandas").DataFrame(columns)


def polars(part, columns):
    return part("polars").DataFrame(columns)


def polars_lazy(part, columns):
    return polars(part, columns).lazy()


def arrow(part, columns):
    return part("pyarrow").table(columns)


def one_batch(part, columns):
    return part("pyarrow").RecordBatch.from_pydict(columns)


def reader(part, columns):
    return arrow(part, columns).to_reader(7000)


def batches_in_any_order(part, columns):
    batches = arrow(part, columns).to_batches(4001)
    return (batches[i] for i in np.random.default_rng(0).permutation(len(batches)))


def duckdb(part, columns):
    return part("duckdb").from_arrow(arrow(part, columns))


FRAMES = (
    pandas,
    polars,
    polars_lazy,
    arrow,
    one_batch,
    reader,
    batches_in_any_order,
    duckdb,
)
LAZY = (polars_lazy, duckdb)


@pytest.fixture(autouse=True, scope="module")
def grouped_where_rows_are():
    """DuckDB groups its rows here, as it does where no loop was compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames, "streams", lambda: False)
        yield


def test_duckdb_gives_its_rows_to_a_compiled_loop_where_there_is_one(part, monkeypatch):
    rows = pairs()
    want = sketch_frame(duckdb(part, rows), **PAIR)
    monkeypatch.setattr(frames, "streams", lambda: True)
    monkeypatch.setattr(frames.query, "group_rows", None)
    assert_same_sums(sketch_frame(duckdb(part, rows), **PAIR), want)


# -- the same sums -------------------------------------------------------------------


@pytest.mark.parametrize("case", PAIRS)
@pytest.mark.parametrize("frame", FRAMES)
def test_pairs_have_the_sums_of_their_rows(frame, case, part):
    rows = pairs()
    got = sketch_frame(frame(part, rows), **PAIR, **PAIRS[case])
    assert_same_sums(got, sketch_pairs(rows, **PAIRS[case]))


@pytest.mark.parametrize(
    "options", [{}, {"sample_weight": "w"}, {"y": "name"}], ids=str
)
@pytest.mark.parametrize("frame", FRAMES)
def test_probabilities_have_the_sums_of_their_rows(frame, options, part):
    rows = forecasts()
    asked = {"probs": "p_*", "y": "y"} | options
    classes = list("abcd") if "y" in options else None
    weight = rows["w"] if "sample_weight" in options else None
    got = sketch_frame(frame(part, rows), **asked, classes=classes)
    want = cal.Sketch(engine="numpy", classes=classes).update(
        rows[asked["y"]], probs=matrix(rows), sample_weight=weight
    )
    assert_same_sums(got, want)


@pytest.mark.parametrize("frame", FRAMES)
def test_class_wise_and_binary_rows(frame, part):
    rows = forecasts(2000)
    got = sketch_frame(frame(part, rows), probs="p_*", y="y", target="class-wise")
    want = cal.Sketch(target="class-wise").update(rows["y"], probs=matrix(rows))
    assert_same_sums(got, want)
    rows = {"p": rows["p_0"], "q": 1 - rows["p_0"], "y": (rows["y"] == 0).astype(int)}
    got = sketch_frame(frame(part, rows), probs="p", y="y")
    assert_same_sums(got, cal.Sketch().update(rows["y"], probs=rows["p"]))
    both = np.stack([rows["q"], rows["p"]], axis=1)
    for target in ("positive", "top-label"):
        asked = {"probs": ["q", "p"], "y": "y", "target": target}
        got = sketch_frame(frame(part, rows), **asked)
        assert_same_sums(got, cal.Sketch(target=target).update(rows["y"], probs=both))


@pytest.mark.parametrize("size", [None, 4], ids=["lists", "arrays"])
@pytest.mark.parametrize("frame", [arrow, polars, polars_lazy, duckdb, reader, pandas])
def test_columns_of_lists(frame, size, part):
    rows, pa = forecasts(), part("pyarrow")
    kind = pa.list_(pa.float64()) if size is None else pa.list_(pa.float64(), size)
    p = pa.array(list(matrix(rows)), kind)
    if frame in (polars, polars_lazy):
        p = part("polars").from_arrow(p)
    elif frame is pandas:
        p = list(matrix(rows))
    got = sketch_frame(frame(part, {"p": p, "y": rows["y"]}), probs="p", y="y")
    assert_same_sums(got, cal.Sketch().update(rows["y"], probs=matrix(rows)))


@pytest.mark.parametrize("frame", LAZY)
@pytest.mark.parametrize("name", ["float32", "bool"])
def test_other_types_of_numbers(frame, name, part):
    rows = pairs()
    rows["h" if name == "float32" else "a"] = rows[
        "h" if name == "float32" else "a"
    ].astype(name)
    got = sketch_frame(frame(part, rows), **PAIR, loss="brier")
    assert_same_sums(got, sketch_pairs(rows, loss="brier"))


@pytest.mark.parametrize("frame", [polars_lazy, duckdb])
def test_more_classes_than_an_engine_reduces(frame, part):
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(40), 500), rng.integers(0, 40, 500)
    rows = {f"p_{i}": column for i, column in enumerate(p.T)} | {"y": y}
    got = sketch_frame(frame(part, rows), probs="p_*", y="y")
    assert_same_sums(got, cal.Sketch().update(y, probs=p))


numbers = st.one_of(
    st.floats(0, 1),
    st.integers(0, 9600).map(lambda i: i / 9600),
    st.sampled_from([0.0, 1.0, 0.5, 1e-9, 5e-324, 1 - 2.0**-53]),
)


@pytest.mark.parametrize("frame", LAZY)
@given(rows=st.lists(st.tuples(numbers, st.booleans(), st.integers(0, 3)), min_size=1))
def test_any_pairs(frame, part, rows):
    h, a, w = (np.array(column, float) for column in zip(*rows, strict=True))
    columns = {"h": h, "a": a, "w": w}
    got = sketch_frame(frame(part, columns), **PAIR, sample_weight="w")
    want = sketch_pairs(columns, sample_weight="w")
    if want.kind is None:
        assert got.rows == 0
    else:
        assert_same_sums(got, want)


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("kind", [np.int32, float, str])
def test_a_cluster_is_the_same_in_numbers_and_in_text(frame, kind, part):
    rows = {name: pairs()[name][::6] for name in "hac"}
    want = sketch_pairs(rows, cluster="c")
    rows["c"] = rows["c"].astype(kind)
    got = sketch_frame(frame(part, rows), **PAIR, cluster="c")
    assert_same_sums(got, want)


def test_weighted_clusters_of_different_engines_add_up_in_any_order(part):
    rows, asked = pairs(), PAIRS["cluster"]
    thirds = [{name: x[i::3] for name, x in rows.items()} for i in range(3)]
    thirds[1]["c"] = thirds[1]["c"].astype(str)
    makers = (pandas, polars_lazy, duckdb)
    one, two, three = (
        sketch_frame(make(part, third), **PAIR, **asked)
        for make, third in zip(makers, thirds, strict=True)
    )
    want = sketch_pairs(rows, **asked)
    assert_same_sums(one + two + three, want)
    assert_same_sums(three.merge(two, one), want)


# -- metrics -------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [pandas, polars_lazy, duckdb, batches_in_any_order])
def test_metrics_are_those_of_the_rows(frame, part):
    rows = pairs(200_000)
    del rows["g"]
    got = sketch_frame(frame(part, rows), **PAIR)
    assert_same_metrics(got, cal.evaluate_pairs(rows["a"], rows["h"], interval=None))


@pytest.mark.parametrize("frame", [arrow, polars_lazy, duckdb])
def test_real_probabilities(frame, part, data):
    z = data("cifar10_akamaster_resnet32")["logits"].astype(float)
    y = data("cifar10_akamaster_resnet32")["labels"]
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    rows = {f"p_{i}": column for i, column in enumerate(p.T)} | {"y": y}
    got = sketch_frame(frame(part, rows), probs="p_*", y="y")
    assert_same_sums(got, cal.Sketch().update(y, probs=p))
    assert_same_metrics(got, cal.evaluate(y, probs=p, interval=None))


@pytest.mark.parametrize("frame", LAZY)
def test_few_distinct_confidences_are_known(frame, part):
    rows = pairs()
    rows["h"] = np.round(rows["h"], 2)
    rows = {name: rows[name] for name in "haw"}
    got = sketch_frame(frame(part, rows), **PAIR, sample_weight="w")
    want = sketch_pairs(rows, sample_weight="w")
    assert got.bounds() == {}
    mine, theirs = (x.cells.distinct for x in (got, want))
    np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-9)


# -- shards, slices and the compiled tally -------------------------------------------


def test_shards_of_different_engines_add_up(part):
    rows = pairs()
    thirds = [{name: x[i::3] for name, x in rows.items()} for i in range(3)]
    makers = (pandas, polars_lazy, duckdb)
    found = [
        sketch_frame(make(part, third), **PAIR, group="g")
        for make, third in zip(makers, thirds, strict=True)
    ]
    assert_same_sums(found[0] + found[1] + found[2], sketch_pairs(rows, group="g"))


@pytest.fixture
def tally(built, monkeypatch):
    """Use the tally after the first slice, and slices of few rows."""
    monkeypatch.setattr(slices, "ROWS", 1500)
    monkeypatch.setattr(values, "MOST_VALUES", 0)


@pytest.mark.parametrize("loss", [None, "brier"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_tally_is_the_row_by_row_sum(loss, dtype, part, tally):
    rows = pairs()
    rows["h"] = rows["h"].astype(dtype)
    got = sketch_frame(pandas(part, rows), **PAIR, loss=loss)
    assert_same_sums(got, sketch_pairs(rows, loss=loss))


def test_soft_labels_pass_by_the_tally(part, tally):
    plain, soft = pairs(), {"h": np.array([0.3]), "a": np.array([0.5])}
    plain = {"h": plain["h"], "a": plain["a"].astype(float)}
    frames = [pandas(part, x) for x in (plain, soft, plain)]
    both = {x: np.concatenate([plain[x], soft[x], plain[x]]) for x in "ha"}
    assert_same_sums(sketch_frame(iter(frames), **PAIR), sketch_pairs(both))


def test_distinct_confidences_are_kept_while_there_are_few(part, tally, monkeypatch):
    monkeypatch.setattr(values, "MOST_VALUES", 1 << 17)
    assert sketch_frame(pandas(part, pairs()), **PAIR).bounds() == {}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_tally_of_top_labels_is_the_row_by_row_sum(dtype, part, tally):
    rows = forecasts()
    p = matrix(rows).astype(dtype)
    rows |= {f"p_{i}": column for i, column in enumerate(p.T)}
    got = sketch_frame(pandas(part, rows), probs="p_*", y="y")
    want = cal.Sketch(engine="compiled").update(rows["y"], probs=p)
    assert_same_sums(got, want, 1e-12 if dtype == "float64" else 1e-8)


def test_the_tally_names_the_row_that_breaks_a_rule(part, tally):
    rows = forecasts()
    rows["p_1"] = rows["p_1"].copy()
    rows["p_1"][3456] += 0.5
    with pytest.raises(ValueError, match=r"row 3456 sums to 1\.5"):
        sketch_frame(pandas(part, rows), probs="p_*", y="y")


def test_frames_of_other_types_add_up_too(part):
    rows = pairs()
    whole = {"h": rows["h"], "a": rows["a"].astype(np.int64)}
    other = {"h": rows["h"].astype(np.float32), "a": rows["a"].astype(float)}
    frames = [pandas(part, whole), pandas(part, other)]
    both = {x: np.concatenate([whole[x], other[x]]) for x in "ha"}
    assert_same_sums(sketch_frame(iter(frames), **PAIR), sketch_pairs(both))
