"""Run the benchmarks and print their ratios as a Markdown table.

    python benchmarks/run.py [--no-peers] [--only WORD] [--missing] [--threads N] [--strict]

Both sides of a ratio are measured in this one run, by turns, best of all turns; the
seconds themselves depend on the machine and stay in results.json. Targets are for CPU
time, which a busy machine disturbs least. Writes results.md and results.json beside this
file after each row; with --only or --missing, other rows stay as they were. A wrong
answer is an error (exit code 1); a missed target only with --strict.
"""

import argparse
import json
import os
import sys
import textwrap
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
THREADS = ("CALIBRANT", "OMP_NUM", "OPENBLAS_NUM", "MKL_NUM")
HEADER = """\
| line | measured | wall clock | goal | |
|---|--:|--:|--:|---|"""


def hold_threads(count: int, *, use_peers: bool) -> None:
    """One thread each, unless asked otherwise; before NumPy is first imported."""
    for name in THREADS:
        os.environ[f"{name}_THREADS"] = str(count)
    if use_peers:
        import peers

        peers.use_threads(count)


def run(benchmark, *, use_peers: bool) -> dict:
    """The record of one row: its ratio, or why there is none."""
    import peers
    from registry import WrongAnswerError

    record = {"title": benchmark.title, "target": benchmark.target}
    allowed = benchmark.needs if use_peers else set()
    missing = [
        name
        for name in benchmark.needs
        if name not in allowed or not peers.available(name)
    ]
    if missing:
        return record | {"skipped": f"without {', '.join(missing)}"}
    try:
        ratio = benchmark.run()
    except WrongAnswerError as error:
        return record | {"wrong": str(error)}
    return (
        record
        | asdict(ratio)
        | {"unit": benchmark.unit, "met": benchmark.met(ratio.value)}
    )


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
    verdict = record.get("skipped") or record.get("wrong") or verdicts[record["met"]]
    verdict += "".join(f"; {x}" for x in record.get("checks", ()) if "softmax" in x)
    cells = (record["title"], measured, by_wall, record["target"], verdict)
    return f"| {' | '.join(cells)} |"


def footnote(versions: dict[str, str], threads: int) -> str:
    from rows import CLASSES, ROWS

    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    each = "one thread" if threads == 1 else f"{threads} threads"
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return textwrap.fill(
        f"Logits are {ROWS:,} x {CLASSES:,} in float32. `cal.evaluate` gives all metrics, "
        "both decompositions and the curve, without resampled intervals; answers are "
        "checked against the other "
        f"side's. Both sides ran in turns, {each} each; the ratio is of their best CPU "
        f"times. In fresh processes a library is loaded and called once on ten rows before "
        f"it is timed; what starts Python is timed from its start. "
        f"Python {python}, {named}.",
        width=88,
        break_on_hyphens=False,
    )


def versions_of(names: list[str]) -> dict[str, str]:
    import peers

    return {name: peers.version(name) for name in names if peers.available(name)}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--no-peers", action="store_true", help="skip the other libraries"
    )
    parser.add_argument("--only", metavar="WORD", help="only rows whose title has WORD")
    parser.add_argument(
        "--missing", action="store_true", help="only rows that have no result yet"
    )
    parser.add_argument("--threads", type=int, default=1, help="per contestant (1)")
    parser.add_argument("--strict", action="store_true", help="a missed target fails")
    return parser.parse_args()


def main() -> int:
    options = parse()
    hold_threads(options.threads, use_peers=not options.no_peers)
    import rows  # noqa: F401, I001  importing rows registers them, in this order
    import engine_rows  # noqa: F401
    import bootstrap_rows  # noqa: F401
    import figure_rows  # noqa: F401
    import memory_rows  # noqa: F401
    import report_rows  # noqa: F401
    from registry import BENCHMARKS

    kept = earlier() if options.only or options.missing else {}
    done = kept if options.missing else {}
    print(HEADER)
    for benchmark in BENCHMARKS:
        title = benchmark.title
        if title not in done and (options.only or "") in title:
            kept[title] = run(benchmark, use_peers=not options.no_peers)
            print(line(kept[title]), flush=True)
            write([kept[b.title] for b in BENCHMARKS if b.title in kept], options)
    return verdict(list(kept.values()), strict=options.strict)


def earlier() -> dict[str, dict]:
    """Results that are there already, by title."""
    rows = json.loads((HERE / "results.json").read_text())["rows"]
    return {row["title"]: row for row in rows}


def write(rows: list[dict], options: argparse.Namespace) -> None:
    """Write the results down, after each row: a run may be interrupted."""
    packages = ["calibrant", "numpy", "scipy"]
    if not options.no_peers:
        packages += ["torch", "sharpcal", "netcal", "relplot", "torchmetrics"]
    versions = versions_of(packages)
    table = "\n".join([HEADER, *map(line, rows)])
    note = footnote(versions, options.threads)
    (HERE / "results.md").write_text(f"# Benchmarks\n\n{table}\n\n{note}\n")
    kept = {"versions": versions, "threads": options.threads, "rows": rows}
    (HERE / "results.json").write_text(json.dumps(kept, indent=1) + "\n")


def verdict(records: list[dict], *, strict: bool) -> int:
    """The exit code."""
    wrong = any("wrong" in record for record in records)
    missed = any(record.get("met") is False for record in records)
    return int(wrong or (strict and missed))


if __name__ == "__main__":
    sys.exit(main())
