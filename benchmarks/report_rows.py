"""A row on the command: a report of more rows than fit in memory. Linux only.

    python benchmarks/report_rows.py ARGUMENT...

is the command ``calibrant`` with these arguments; its peak memory and CPU seconds go to
standard error.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from registry import Ratio, agree, benchmark
from timing import ONCE, Timing

SHARD, SHARDS, CLASSES = 1_000_000, 2 if ONCE else 20, 10


def rows(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities in float32, and labels drawn from them."""
    rng = np.random.default_rng(seed)
    probs = rng.standard_normal((SHARD, CLASSES), dtype=np.float32)
    np.exp(1.5 * probs, out=probs)
    probs /= probs.sum(axis=1, keepdims=True)
    below = probs.cumsum(axis=1) < rng.random((SHARD, 1), dtype=np.float32)
    return probs, np.minimum(below.sum(axis=1), CLASSES - 1).astype(np.uint8)


def brier(probs: np.ndarray, labels: np.ndarray) -> float:
    of_label = probs[np.arange(len(labels)), labels].astype(np.float64)
    squares = np.einsum("ij,ij->i", probs, probs, dtype=np.float64)
    return float(np.mean(squares - 2 * of_label + 1))


def write(folder: Path) -> float:
    """Write the shards; the Brier score of all rows."""
    import duckdb

    scores = []
    for seed in range(SHARDS):
        probs, labels = rows(seed)
        shard = {f"p_{j}": probs[:, j].copy() for j in range(CLASSES)}
        shard["label"] = labels
        path = folder / f"{seed:02}.parquet"
        duckdb.sql("FROM shard").write_parquet(str(path))  # found by its name
        scores.append(brier(probs, labels))
    return float(np.mean(scores))


@benchmark(
    f"peak memory of `calibrant report`, {SHARD * SHARDS:,} x {CLASSES} in Parquet shards",
    at_most=500,
    unit=" MB",
)
def memory_of_a_report() -> Ratio:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "shards")
        folder.mkdir()
        expected = write(folder)
        arguments = [
            "report",
            str(folder),
            "-o",
            str(Path(name, "page.html")),
            "--json",
        ]
        started = time.perf_counter()
        done = subprocess.run(
            [sys.executable, __file__, *arguments],
            capture_output=True,
            text=True,
            check=True,
        )
        wall = time.perf_counter() - started
    found = json.loads(done.stdout)["evaluations"][0]
    check = (
        agree("rows", found["n"], SHARD * SHARDS, 0),
        agree("Brier", found["metrics"]["brier"]["value"], expected, 1e-6),
    )
    used, cpu = done.stderr.split()
    timing = Timing(wall, float(cpu))
    return Ratio.amount(int(used) / 1e6, {"report": timing}, *check)


def main(*arguments: str) -> None:
    """Run the command, then say how much memory this process had at its peak."""
    from calibrant.cli import main as calibrant

    calibrant(arguments, standalone_mode=False)
    status = Path("/proc/self/status").read_text()
    kilobytes = re.search(r"VmHWM:\s+(\d+) kB", status)[1]
    print(1024 * int(kilobytes), time.process_time(), file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
