"""Rows of the table on engines: sketches of Parquet files, one thread, in constant memory.

    python benchmarks/engine_rows.py TASK FILE WARM_UP_FILE

is a process of its own, so that memory is that of one engine: it does the task on a
small file first, so that imports and compilation are over, and prints CPU seconds, wall
seconds, peak memory in bytes and a number to check the answer by.
"""

import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from registry import Ratio, agree, benchmark
from timing import ONCE, Timing

ROWS = int(float(os.environ.get("CALIBRANT_BENCH_ROWS", "1e6" if ONCE else "1e8")))
ROWS_OF_PROBS, CLASSES = ROWS // 10, 10
SMALL = min(2_000_000, ROWS)
"""Rows to warm up on."""

SLICE, GROUP = 1_000_000, 1 << 17
PAIR = {"confidence": "confidence", "correct": "correct", "loss": "loss"}
PROBS = {"probs": "p_*", "y": "label"}
NEEDS = ("narwhals", "pyarrow", "duckdb")
STATUS = Path("/proc/self/status")


# -- files ---------------------------------------------------------------------------


def pairs(rng, rows):
    h = rng.beta(4, 1, rows).astype(np.float32)
    correct = (rng.random(rows, dtype=np.float32) < h**1.3).astype(np.int8)
    loss = (1.4 * (correct - h) ** 2).astype(np.float32)
    return {"confidence": h, "correct": correct, "loss": loss}


def probabilities(rng, rows):
    z = 2 * rng.standard_normal((rows, CLASSES), dtype=np.float32)
    label = (z + rng.gumbel(size=z.shape)).argmax(axis=1).astype(np.int16)
    p = np.exp(z)
    p /= p.sum(axis=1, keepdims=True)
    columns = {f"p_{i}": np.ascontiguousarray(p[:, i]) for i in range(CLASSES)}
    return columns | {"label": label}


def write(path, make, rows):
    """A Parquet file of so many rows, made a slice at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(0), None
    for start in range(0, rows, SLICE):
        table = pa.table(make(rng, min(SLICE, rows - start)))
        if writer is None:
            plain = {"compression": "none", "use_dictionary": False}
            writer = pq.ParquetWriter(path, table.schema, **plain)
        writer.write_table(table, row_group_size=GROUP)
    writer.close()


@functools.cache
def folder():
    return tempfile.TemporaryDirectory(prefix="calibrant-engines-")


@functools.cache
def files(name):
    """The file to be measured and the small one, for pairs or for probabilities."""
    make, rows = {
        "pairs": (pairs, ROWS),
        "probabilities": (probabilities, ROWS_OF_PROBS),
    }[name]
    paths = [Path(folder().name, f"{name}-{n}.parquet") for n in (rows, SMALL)]
    for path, n in zip(paths, (rows, SMALL), strict=True):
        write(path, make, n)
    return paths


# -- tasks, each in a process of its own ------------------------------------------------


def batches(path):
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path, pre_buffer=False)
    return file.iter_batches(GROUP, use_threads=False)


def connection():
    import duckdb

    return duckdb.connect(config={"threads": 1})


def sum_in_duckdb(path):
    sums = "sum(confidence), sum(correct), sum(loss), count(*)"
    query = f"SELECT {sums} FROM read_parquet('{path}')"
    *_, loss, rows = connection().sql(query).fetchall()[0]
    return loss / rows


def read_and_max(path):
    """The mean of the largest probabilities, column by column of record batches."""
    names, total, rows = [f"p_{i}" for i in range(CLASSES)], 0.0, 0
    for batch in batches(path):
        columns = [batch[name].to_numpy() for name in names]
        total += float(np.maximum.reduce(columns).sum(dtype=np.float64))
        rows += len(batch)
    return total / rows


def brier_of(frame):
    from calibrant._sketch.frames import sketch_frame

    cells = sketch_frame(frame, **PAIR).cells
    return cells.totals["brier"].loss / cells.rows


def in_batches(path):
    return brier_of(batches(path))


def in_polars(path):
    import polars as pl

    return brier_of(pl.scan_parquet(path))


def in_duckdb(path):
    return brier_of(connection().read_parquet(str(path)))


def in_dask(path):
    import dask
    import dask.dataframe as dd

    with dask.config.set(scheduler="synchronous"):
        return brier_of(dd.read_parquet(path, split_row_groups=8))


def in_spark(path):
    return brier_of(spark_session().read.parquet(str(path)))


@functools.cache
def spark_session():
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[1]")
    builder = builder.config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def top_confidence_in_batches(path):
    from calibrant._sketch.frames import sketch_frame

    cells = sketch_frame(batches(path), **PROBS).cells
    return cells["h"].sum() / cells.rows


def main(task, path, small):
    work = globals()[task]
    work(small)
    cpu, wall = cpu_seconds(), time.perf_counter()
    answer = work(path)
    took = cpu_seconds() - cpu, time.perf_counter() - wall
    print(json.dumps([*took, peak(), answer]))


def cpu_seconds():
    """Those of this process, and of Java if it has started one."""
    import psutil

    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def peak():
    """The most memory this process has had, in bytes."""
    line = next(x for x in STATUS.read_text().splitlines() if x.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


# -- rows ------------------------------------------------------------------------------


@functools.cache
def raced(task, against, kind):
    """Timings of a task and of what it is compared with, by turns; its peak memory."""
    timings, most = {"ours": Timing(), "theirs": Timing()}, 0
    for _ in range(1 if ONCE or task == "in_spark" else 2):
        for name, work in (("theirs", against), ("ours", task)):
            used = run_alone(work, kind, timings[name])
        most = max(most, used)
    return timings, most


def run_alone(task, kind, timing):
    """Run a task in a process of its own; returns its peak memory."""
    command = [sys.executable, __file__, task, *map(str, files(kind))]
    # Arrow's own pool keeps what was freed, which would count as memory in use.
    settings = {"POLARS_MAX_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
    environment = os.environ | settings
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment
    )
    cpu, wall, used, timing.answer = json.loads(done.stdout.splitlines()[-1])
    timing.cpu, timing.wall = min(timing.cpu, cpu), min(timing.wall, wall)
    return used


def against_the_sum(task):
    timings, _ = raced(task, "sum_in_duckdb", "pairs")
    ours, theirs = (timings[name].answer for name in ("ours", "theirs"))
    check = agree("mean loss", ours, theirs, 1e-9)
    return Ratio.of("ours", "theirs", timings, check, f"{ROWS} rows")


ENGINES = {
    "record batches": ("in_batches", 4, ()),
    "DuckDB": ("in_duckdb", 4, ()),
    "Polars, streamed": ("in_polars", 6, ("polars",)),
    "Dask, one thread": ("in_dask", 6, ("dask",)),
    "Spark, `local[1]`": ("in_spark", 20, ("pyspark",)),
}

for engine, (task, most, needs) in ENGINES.items():
    benchmark(
        f"`cal.sketch_frame`, {engine} / DuckDB's `SELECT sum` of the same 3 columns, "
        f"{ROWS:,} rows of Parquet",
        at_most=most,
        needs=(*NEEDS, *needs),
    )(functools.partial(against_the_sum, task))


def memory_of(task):
    timings, most = raced(task, "sum_in_duckdb", "pairs")
    return Ratio.amount(most / 1e6, timings, f"{ROWS} rows")


for engine, (task, _, needs) in ENGINES.items():
    if task != "in_spark":  # most of it is Java's, and set by its options
        benchmark(
            f"peak memory of `cal.sketch_frame`, {engine}, {ROWS:,} rows of Parquet",
            at_most=400,
            needs=(*NEEDS, *needs),
            unit=" MB",
        )(functools.partial(memory_of, task))


@benchmark(
    f"`cal.sketch_frame` of {CLASSES} columns of probabilities, record batches / "
    f"reading them and taking maxima, {ROWS_OF_PROBS:,} rows of Parquet",
    at_most=4,
    needs=NEEDS,
)
def against_maxima() -> Ratio:
    names = "top_confidence_in_batches", "read_and_max", "probabilities"
    timings, _ = raced(*names)
    ours, theirs = (timings[name].answer for name in ("ours", "theirs"))
    check = agree("mean confidence", ours, theirs, 1e-6)
    return Ratio.of("ours", "theirs", timings, check, f"{ROWS_OF_PROBS} rows")


if __name__ == "__main__":
    main(*sys.argv[1:])
