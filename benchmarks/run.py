"""Run the benchmarks and print their ratios as a Markdown table.

    python benchmarks/run.py [--only WORD] [--once] [--into FOLDER] [--no-peers]
                             [--threads N] [--strict] [--list]

Both sides of a ratio are measured in this one run, by turns, best of all turns; the
seconds themselves depend on the machine and stay in results.json. Targets are for CPU
time, which a busy machine disturbs least. A run of all rows writes results.md and
results.json beside this file, after each row; a run of some (--only) or a quick one
(--once) writes only where it is told to, so that the two files always come from one run.
A wrong answer, or a row that fails, is an error (exit code 1); a missed target only with
--strict.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import textwrap
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent
THREADS = ("CALIBRANT", "OMP_NUM", "OPENBLAS_NUM", "MKL_NUM")
PEERS = ("torch", "torchmetrics", "sharpcal", "netcal", "relplot", "sklearn")
FRAMES = ("pyarrow", "narwhals", "duckdb", "polars", "dask", "pyspark")
HEADER = """\
| line | measured | wall clock | goal | |
|---|--:|--:|--:|---|"""


# -- one row -------------------------------------------------------------------------


def run(benchmark, *, use_peers: bool) -> dict:
    """The record of one row: its ratio, or why there is none."""
    record = {"title": benchmark.title, "target": benchmark.target}
    record |= {"load": os.getloadavg()[0]}
    if missing := not_there(benchmark.needs, use_peers=use_peers):
        return record | {"skipped": f"without {', '.join(missing)}"}
    started = time.perf_counter()
    found = outcome(benchmark)
    return record | found | {"took": time.perf_counter() - started}


def outcome(benchmark) -> dict:
    """The ratio, or what went wrong."""
    from registry import WrongAnswerError

    try:
        ratio = benchmark.run()
    except WrongAnswerError as error:
        return {"wrong": str(error)}
    except subprocess.CalledProcessError as error:
        said = (error.stderr or "").strip().splitlines() or ["it said nothing"]
        return {"failed": f"failed: {said[-1][:120]}"}
    met = benchmark.met(ratio.value)
    return asdict(ratio) | {"unit": benchmark.unit, "met": met}


def not_there(names: tuple[str, ...], *, use_peers: bool) -> list[str]:
    """Which of these libraries cannot be imported, or are not to be."""
    import peers

    return [x for x in names if not (use_peers and peers.importable(x))]


# -- the page, from what was measured --------------------------------------------------


def page(found: dict) -> str:
    """All that was measured, as Markdown."""
    table = "\n".join([HEADER, *map(line, found["rows"])])
    return f"# Benchmarks\n\n{table}\n\n{footnote(found)}\n"


def short(value: float) -> str:
    """Three significant digits, never in powers of ten."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def line(record: dict) -> str:
    """One row of the table."""
    measured, by_wall = (
        f"{short(record[key])}{record['unit']}" if record.get(key) is not None else ""
        for key in ("value", "by_wall")
    )
    verdicts = {True: "met", False: "**missed**", None: ""}
    why = [record[key] for key in ("skipped", "wrong", "failed") if key in record]
    verdict = why[0] if why else verdicts[record["met"]]
    verdict += "".join(f"; {x}" for x in record.get("checks", ()) if "softmax" in x)
    cells = (record["title"], measured, by_wall, record["target"], verdict)
    return f"| {' | '.join(cells)} |"


def footnote(found: dict) -> str:
    """What, how, when, where and with which versions."""
    named = ", ".join(f"{name} {x}" for name, x in found["versions"].items())
    each = "one thread" if found["threads"] == 1 else f"{found['threads']} threads"
    machine, loads = found["machine"], [row["load"] for row in found["rows"]]
    once = " Each task was done once only." if found["once"] else ""
    minutes = sum(row.get("took", 0) for row in found["rows"]) / 60
    return textwrap.fill(
        "Where no size is given, logits are 40,000 x 1,000 in float32. `cal.evaluate` "
        "gives all metrics, both decompositions and the curve, without resampled "
        "intervals; answers are checked against the other "
        f"side's. Both sides ran in turns, {each} each; the ratio is of their best CPU "
        f"times.{once} In fresh processes a library is loaded and called once on ten rows "
        "before it is timed; what starts Python is timed from its start. "
        f"One run of {minutes:.0f} minutes, begun on {found['date']}, on {machine['cpu']} "
        f"({machine['cores']} cores, {machine['memory']} GiB, {machine['system']}), under a "
        f"load of {min(loads):.1f} to {max(loads):.1f}, that of the benchmarks included. "
        f"{named}.",
        width=88,
        break_on_hyphens=False,
    )


# -- the run -------------------------------------------------------------------------


def hold_threads(count: int, *, use_peers: bool) -> None:
    """One thread each, unless asked otherwise; before NumPy is first imported."""
    for name in THREADS:
        os.environ[f"{name}_THREADS"] = str(count)
    if use_peers:
        import peers

        peers.use_threads(count)


def about(options: argparse.Namespace) -> dict:
    """When, where and with what."""
    import peers

    names = ["calibrant", "numpy", "scipy", *(() if options.no_peers else PEERS)]
    versions = {x: peers.version(x) for x in (*names, *FRAMES) if peers.available(x)}
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": machine(),
        "versions": {"Python": platform.python_version(), **versions},
        "threads": options.threads,
        "once": options.once,
    }


def machine() -> dict:
    """Name of the processor if it is known, cores that may be used, memory, system."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    named = [x.partition(": ")[2] for x in lines if x.startswith("model name")]
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": named[0] if named else platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory": round(pages / 2**30),
        "system": platform.system(),
    }


def registered(word: str = "") -> list:
    """The rows, in order, that have a word in their title."""
    import rows  # noqa: F401, I001  importing rows registers them, in this order
    import engine_rows  # noqa: F401
    import bootstrap_rows  # noqa: F401
    import figure_rows  # noqa: F401
    import memory_rows  # noqa: F401
    import report_rows  # noqa: F401
    from registry import BENCHMARKS

    return [benchmark for benchmark in BENCHMARKS if word in benchmark.title]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="WORD", help="only rows whose title has WORD")
    parser.add_argument(
        "--once", action="store_true", help="each task once, on few rows of Parquet"
    )
    parser.add_argument(
        "--into", type=Path, help="folder of results.md and results.json"
    )
    parser.add_argument(
        "--no-peers", action="store_true", help="skip the other libraries"
    )
    parser.add_argument("--threads", type=int, default=1, help="per contestant (1)")
    parser.add_argument("--strict", action="store_true", help="a missed target fails")
    parser.add_argument("--list", action="store_true", help="titles only")
    return parser.parse_args()


def main() -> int:
    options = parse()
    if options.once:
        os.environ["CALIBRANT_BENCH_ONCE"] = "1"  # before the rows are made
    hold_threads(options.threads, use_peers=not (options.no_peers or options.list))
    benchmarks = registered(options.only or "")
    if options.list:
        print(*(benchmark.title for benchmark in benchmarks), sep="\n")
        return 0
    part = options.only or options.once
    folder = options.into or (None if part else HERE)
    found = about(options) | {"rows": []}
    print(HEADER)
    for benchmark in benchmarks:
        found["rows"].append(run(benchmark, use_peers=not options.no_peers))
        print(line(found["rows"][-1]), flush=True)
        if folder is not None:
            write(found, folder)
    print(f"\n{footnote(found)}")
    return verdict(found["rows"], strict=options.strict)


def write(found: dict, folder: Path) -> None:
    """Write the results down, after each row: a run may be interrupted."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.md").write_text(page(found))
    (folder / "results.json").write_text(json.dumps(found, indent=1) + "\n")


def verdict(records: list[dict], *, strict: bool) -> int:
    """The exit code."""
    wrong = any("wrong" in record or "failed" in record for record in records)
    missed = any(record.get("met") is False for record in records)
    return int(wrong or (strict and missed))


if __name__ == "__main__":
    sys.exit(main())
