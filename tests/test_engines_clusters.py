"""Clusters: Dask and Spark give the sums of the rows, also when a worker is lost."""

import os
import shutil
import signal
import sys
import threading
import time

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

import calibrant as cal
from calibrant._sketch.frames import sketch_frame

# What others warn of while they start and stop processes is theirs.
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.xdist_group("clusters")]
PAIR = {"confidence": "h", "correct": "a"}


@pytest.fixture(scope="module")
def cluster(part):
    distributed = part("distributed")
    part("dask.dataframe")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as found,
        distributed.Client(found),
    ):
        yield found


@pytest.fixture(scope="module")
def spark(part, absent):
    sql = part("pyspark.sql")
    if shutil.which("java") is None:
        absent("no Java: `apt install default-jre-headless`")
    before = os.environ.get("PYSPARK_PYTHON")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = sql.SparkSession.builder.master("local[2]").appName("tests")
    for option, value in (
        ("spark.ui.enabled", "false"),
        ("spark.driver.bindAddress", "127.0.0.1"),
        ("spark.driver.host", "127.0.0.1"),
        ("spark.sql.shuffle.partitions", "2"),
    ):
        builder = builder.config(option, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
    if before is None:
        del os.environ["PYSPARK_PYTHON"]
    else:
        os.environ["PYSPARK_PYTHON"] = before


def in_dask(part, columns, partitions=5):
    frame = part("pandas").DataFrame(columns)
    return part("dask.dataframe").from_pandas(frame, npartitions=partitions)


# -- Dask ----------------------------------------------------------------------------


def test_dask_has_the_sums_of_the_rows(cluster, part):
    rows = pairs()
    for case, options in PAIRS.items():
        got = sketch_frame(in_dask(part, rows), **PAIR, **options)
        assert_same_sums(got, sketch_pairs(rows, **options))
        if case == "plain":
            want = cal.evaluate_pairs(rows["a"], rows["h"], interval=None)
            assert_same_metrics(got, want)


def test_dask_reduces_probabilities(cluster, part):
    rows = forecasts()
    want = cal.Sketch().update(rows["y"], probs=matrix(rows))
    got = sketch_frame(in_dask(part, rows, 20), probs="p_*", y="y")
    assert_same_sums(got, want)
    assert_same_metrics(got, cal.evaluate(rows["y"], probs=matrix(rows), interval=None))


def test_dask_without_rows_is_an_empty_sketch(part):
    columns = {name: x[:0] for name, x in pairs().items()}
    assert sketch_frame(in_dask(part, columns, 1), **PAIR).rows == 0


def test_a_worker_that_is_killed_changes_no_bit(cluster, part, tmp_path):
    pd, dd = part("pandas"), part("dask.dataframe")
    rows = {name: pairs()[name] for name in "ha"}
    shards = [{x: column[i::8] for x, column in rows.items()} for i in range(8)]

    def shard(i, slow):
        time.sleep(0.2 * slow)
        (tmp_path / f"{i} {time.monotonic_ns()}").touch()
        return pd.DataFrame(shards[i])

    def sketch(slow):
        return sketch_frame(dd.from_map(shard, range(8), slow=slow, meta=meta), **PAIR)

    meta = pd.DataFrame({"h": np.empty(0), "a": np.empty(0, np.int8)})
    calm = sketch(slow=0)
    before = len(list(tmp_path.iterdir()))
    victim = next(iter(cluster.workers.values())).pid

    def kill_in_the_middle():
        while len(list(tmp_path.iterdir())) < before + 3:
            time.sleep(0.01)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill_in_the_middle)
    killer.start()
    disturbed = sketch(slow=1)
    killer.join()
    assert len(list(tmp_path.iterdir())) > before + 8  # some shards were read again
    assert disturbed.to_bytes() == calm.to_bytes()
    assert_same_sums(calm, sketch_pairs(rows))


# -- Spark ---------------------------------------------------------------------------


def spark_frame(spark, columns):
    """A frame of these columns; PySpark 3.5 takes no Arrow tables yet."""
    import pyarrow as pa

    table = pa.table(columns)
    if not spark.version.startswith("3."):
        return spark.createDataFrame(table)
    rows = table.to_pandas().map(lambda x: x.tolist() if hasattr(x, "tolist") else x)
    return spark.createDataFrame(rows)


def test_spark_has_the_sums_of_the_rows(spark):
    rows = pairs()
    frame = spark_frame(spark, rows)
    for name in ("weight, group and loss", "weight and frequency", "cluster"):
        got = sketch_frame(frame, **PAIR, **PAIRS[name])
        assert_same_sums(got, sketch_pairs(rows, **PAIRS[name]))
    got = sketch_frame(frame, **PAIR)
    assert_same_sums(got, sketch_pairs(rows))
    assert_same_metrics(got, cal.evaluate_pairs(rows["a"], rows["h"], interval=None))


def test_spark_reduces_probabilities(spark):
    rows = forecasts()
    want = cal.Sketch().update(rows["y"], probs=matrix(rows))
    frame = spark_frame(spark, rows)
    assert_same_sums(sketch_frame(frame, probs="p_*", y="y"), want)


def test_spark_sketches_lists_on_its_executors(spark):
    rows = forecasts()
    frame = spark_frame(spark, {"p": list(matrix(rows)), "y": rows["y"]})
    frame = frame.repartition(18)  # more than one task merges
    want = cal.Sketch().update(rows["y"], probs=matrix(rows))
    assert_same_sums(sketch_frame(frame, probs="p", y="y"), want)


def test_spark_counts_the_rows_that_break_a_rule(spark):
    rows = {"h": [0.5, 1.5, 0.2], "a": [0, 1, 1]}
    frame = spark_frame(spark, rows)
    with pytest.raises(ValueError, match=r"'h' must be in .*: 1 of 3 rows"):
        sketch_frame(frame, **PAIR)
