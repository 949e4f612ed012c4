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
from calibrant._sketch.frames import sketch_frame, streams

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
    """Engines group their rows here, as they do where no loop was compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames, "streams", lambda _: False)
        yield


@pytest.mark.parametrize("frame", LAZY)
def test_rows_of_this_process_go_to_a_compiled_loop_where_there_is_one(
    frame, part, monkeypatch
):
    rows = pairs()
    want = sketch_frame(frame(part, rows), **PAIR)
    monkeypatch.setattr(frames, "streams", lambda _: True)
    monkeypatch.setattr(frames.query, "group_rows", None)
    assert_same_sums(sketch_frame(frame(part, rows), **PAIR), want)


def test_engines_stream_if_a_loop_was_compiled_and_they_give_batches(part, monkeypatch):
    for frame in LAZY:
        lazy = part("narwhals").from_native(frame(part, pairs())).lazy()
        native = lazy.to_native()
        monkeypatch.setattr(frames.engines, "wanted", lambda: True)
        assert streams(lazy) == (frame is duckdb or hasattr(native, "collect_batches"))
        monkeypatch.setattr(frames.engines, "wanted", lambda: False)
        assert not streams(lazy)


@pytest.mark.parametrize("frame", LAZY)
def test_an_error_in_a_stream_names_the_row(frame, part, monkeypatch):
    monkeypatch.setattr(frames, "streams", lambda _: True)
    rows = {name: np.tile(column, 40) for name, column in pairs().items()}
    row = len(rows["h"]) - 7
    rows["h"][row] = 1.5
    with pytest.raises(ValueError, match=f"row {row} "):
        sketch_frame(frame(part, rows), **PAIR)


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
def test_a_probability_above_one_by_round_off_is_one(frame, part):
    rows = forecasts(40)
    for name, value in {"p_0": 1 + 4e-7, "p_1": 0.0, "p_2": 0.0, "p_3": 0.0}.items():
        rows[name][:3] = value
    got = sketch_frame(frame(part, rows), probs="p_*", y="y")
    want = cal.Sketch(engine="numpy").update(rows["y"], probs=matrix(rows))
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


# -- what Dask and Spark do with these, in this process --------------------------------


def in_parts(part, rows, count):
    return [
        arrow(part, {x: column[i::count] for x, column in rows.items()})
        for i in range(count)
    ]


def roles_of(rows, **asked):
    names = ("y", "probs", "confidence", "correct", "loss", "sample_weight")
    names += ("frequency", "cluster", "group", "target", "classes")
    return frames.query.read_roles([*rows], dict.fromkeys(names) | asked)


def test_partitions_become_sketches_that_add_up(part):
    rows = pairs()
    roles = roles_of(rows, **PAIR)
    packed = [frames.sketch_bytes([one], roles) for one in in_parts(part, rows, 3)]
    merged = frames.unpack(frames.merge_bytes([*packed, b""]))
    assert_same_sums(merged, sketch_pairs(rows))
    assert frames.merge_bytes([b"", b""]) == b""
    assert frames.unpack(b"").rows == 0


def test_batches_of_an_executor_become_one_sketch_each(part):
    rows, found = pairs(), []
    work = frames.partial(frames._of_batches, roles=roles_of(rows, **PAIR))
    for table in in_parts(part, rows, 2):
        found += frames._in_arrow(iter(table.to_batches(1000)), work)
    assert [batch.num_rows for batch in found] == [1, 1]
    (both,) = frames._in_arrow(iter(found), frames._merged_batches)
    sent = both.column("sketch").to_pylist()
    assert_same_sums(frames.unpack(*sent), sketch_pairs(rows))


class Later:
    """What `dask.delayed` gives: a call that waits, and remembers how many it made."""

    def __init__(self, function, calls):
        self.function, self.calls, self.given = function, calls, ()

    def __call__(self, *given):
        self.given = given
        return self

    def compute(self):
        self.calls.append(self.function.__name__)
        one, *rest = self.given
        one = [x.compute() if isinstance(x, Later) else x for x in one]
        return self.function(one, *rest)


class Partitioned:
    """A Dask frame as far as we use it."""

    def __init__(self, parts):
        self.parts = parts

    def __getitem__(self, names):
        return Partitioned([x.select(names) for x in self.parts])

    def to_delayed(self):
        return self.parts


@pytest.mark.parametrize(("count", "merges"), [(1, 0), (4, 1), (5, 3)])
def test_partitions_of_dask_are_merged_in_a_tree(part, monkeypatch, count, merges):
    rows, calls = pairs(), []

    class Dask:
        @staticmethod
        def delayed(function):
            return Later(function, calls)

    load = frames.importlib.import_module
    monkeypatch.setattr(
        frames.importlib,
        "import_module",
        lambda name, *rest: Dask if name == "dask" else load(name, *rest),
    )
    frame = Partitioned(in_parts(part, rows, count))
    found = frames.sketch_dask(frame, roles_of(rows, **PAIR))
    assert_same_sums(found, sketch_pairs(rows))
    assert calls.count("sketch_bytes") == count
    assert calls.count("merge_bytes") == merges


class Sparked:
    """A Spark frame as far as we use it: tables of rows, or batches of sketches."""

    def __init__(self, parts, log):
        self.parts, self.log, self.rdd = parts, log, self

    def getNumPartitions(self):  # noqa: N802 - a name of Spark
        return len(self.parts)

    def select(self, *names):
        return Sparked([x.select(names) for x in self.parts], self.log)

    def mapInArrow(self, work, schema):  # noqa: N802 - a name of Spark
        assert schema == "sketch binary"
        return Sparked([[*work(iter(x.to_batches()))] for x in self.parts], self.log)

    def repartition(self, count):
        import pyarrow as pa

        self.log.append(count)
        flat = [batch for one in self.parts for batch in one]
        return Sparked(
            [pa.Table.from_batches(flat[i::count]) for i in range(count)], self.log
        )

    def collect(self):
        return [row for one in self.parts for batch in one for row in batch.to_pylist()]


@pytest.mark.parametrize(("count", "tasks"), [(4, []), (9, [3])])
def test_partitions_of_spark_are_merged_by_tasks_if_many(part, count, tasks):
    rows, log = pairs(), []
    frame = Sparked(in_parts(part, rows, count), log)
    found = frames.sketch_spark(frame, roles_of(rows, **PAIR))
    assert_same_sums(found, sketch_pairs(rows))
    assert log == tasks


@pytest.mark.parametrize("library", ["dask", "pyspark"])
def test_frames_go_to_the_library_that_holds_them(part, monkeypatch, library):
    """Clusters cannot be summed by a query, so that Spark is given the rows, too."""
    rows, given = pairs(), []
    lazy = frames.nw.from_native(polars_lazy(part, rows))
    monkeypatch.setattr(
        type(lazy), "implementation", getattr(frames.nw.Implementation, library.upper())
    )
    monkeypatch.setattr(
        frames, f"sketch_{library.removeprefix('py')}", lambda *x: given.append(x)
    )
    roles = roles_of(rows, **PAIR, cluster="c")
    frames._sketch_lazy(lazy, roles, lazy.collect_schema())
    assert given == [(lazy.to_native(), roles)]


def test_rows_of_other_lazy_frames_come_at_once(part, monkeypatch):
    rows = pairs()
    lazy = frames.nw.from_native(polars_lazy(part, rows))
    monkeypatch.setattr(type(lazy), "implementation", frames.nw.Implementation.IBIS)
    (whole,) = frames._batches(lazy)
    assert whole.shape == (len(rows["h"]), len(rows))
    got = frames._sketch_lazy(
        lazy, roles_of(rows, **PAIR, cluster="c"), lazy.collect_schema()
    )
    assert_same_sums(got, sketch_pairs(rows, cluster="c"))


class Hostile:
    """No frame; even to ask what it is fails."""

    def __narwhals_lazyframe__(self):
        raise RuntimeError


def test_what_cannot_be_asked_is_no_frame():
    with pytest.raises(TypeError, match="frame must be a data frame"):
        sketch_frame(Hostile(), **PAIR)


def test_soft_labels_of_vectors_are_not_tallied_as_hits(part, monkeypatch):
    monkeypatch.setattr(values, "MOST_VALUES", 100)
    monkeypatch.setattr(values, "WAITING", 100)
    monkeypatch.setattr(slices, "ROWS", 200)
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(3), (2, 500))
    frame = polars(part, {"p": p.tolist(), "y": y.tolist()})
    got = sketch_frame(frame, probs="p", y="y")
    assert_same_sums(got, cal.Sketch().update(y, probs=p))
    assert got.soft_rows == 500


@pytest.mark.parametrize("kind", ["O", "U3"])
def test_pairs_that_are_no_numbers_are_not_tallied(built, kind):
    h = np.array([0.5, 0.2]).astype(kind)
    tally = frames.query.Tally(frames.query.WITH_LOG)
    assert tally.add_pairs(h, np.ones(2), None) is False
    assert tally.add_pairs(np.array([0.5, 0.2]), np.ones(2), None) is True
    assert tally.grouped().sums["rows"].sum() == 2


def test_a_tally_of_many_rows_loses_none(built, monkeypatch):
    monkeypatch.setattr(frames.query, "FLUSH", 1000)
    rows = pairs()
    tally = frames.query.Tally(frames.query.WITH_LOG)
    for some in np.array_split(np.arange(len(rows["h"])), 7):
        assert tally.add_pairs(rows["h"][some], rows["a"][some], None)
    sums = tally.grouped().sums
    assert sums["rows"].sum() == len(rows["h"])
    assert sums["low"].min() == 0
    assert sums["high"].max() == 1
