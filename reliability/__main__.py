"""Try to break calibrant, and write the figures of the page about it."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: processes share the cores

import importlib
import json
import random
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import click

from . import mutants as mutation
from . import page as pages
from . import results as stored
from .engine import (
    GIGABYTES,
    KINDS,
    SHARED,
    Bench,
    Found,
    Slice,
    finish,
    minimised,
    signature,
    start,
)
from .judge import limit_memory
from .records import evaluations, recalibrators, sketches
from .records import results as saved_results

SLICE = 20.0
"""Seconds that a process computes: then a new one begins."""

MODULES = (
    "calibrant.cli", "calibrant.recalibration", "calibrant.report", "calibrant.terminal",
    "calibrant.plot", "pandas", "click.testing", "duckdb", "pyarrow.parquet", "safetensors",
    *(f"calibrant.cli._{name}" for name in ("report", "study", "compare", "sketch", "monitor")),
)  # fmt: skip
"""What is imported once, before processes begin."""


@click.group(help=__doc__)
def main() -> None:
    """Group of the commands."""


@main.command()
@click.option("--minutes", default=10.0, show_default=True)
@click.option("--number", default=10**9, help="Inputs of each kind. [no limit]")
@click.option("--kinds", "named", default=",".join(KINDS), show_default=True)
@click.option("--processes", default=2, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--results", default=stored.RESULTS, type=click.Path(path_type=Path))
@click.option("--corpus", default=stored.CORPUS, type=click.Path(path_type=Path))
def fuzz(
    minutes: float,
    number: int,
    named: str,
    processes: int,
    seed: int,
    results: Path,
    corpus: Path,
) -> None:
    """Try inputs until time is up; figures are added to those of earlier runs."""
    for module in MODULES:
        with suppress(ImportError):
            importlib.import_module(module)
    for made in (recalibrators, evaluations, sketches, saved_results):
        made()  # what all records are changes of, made once for all processes
    found = Run(stored.load(results), corpus, seed, number, results)
    found.search(stored.kinds(named), processes, time.monotonic() + 60 * minutes)
    new = [name for name in found.findings if name not in found.before]
    for name in found.findings:
        click.echo(
            f"{found.findings[name]:6,}  {'new  ' if name in new else '     '}{name}"
        )
    click.echo(f"{sum(found.inputs.values()):,} inputs, {len(found.findings)} findings")
    sys.exit(1 if new else 0)


class Run:
    """One run of the fuzzer: which kinds are due, and what was found."""

    def __init__(
        self, results: dict, corpus: Path, seed: int, number: int, path: Path
    ) -> None:
        self.results, self.corpus, self.path = results, corpus, path
        self.seed, self.number = seed, number
        self.before = set(results["findings"])
        self.inputs = dict.fromkeys(KINDS, 0)
        self.findings: dict[str, int] = {}
        self.kept = {kind: stored.read_corpus(kind, corpus) for kind in KINDS}
        self.arcs: dict[str, set[int]] = {kind: set() for kind in KINDS}
        self.costs: dict[str, dict[bytes, float]] = {kind: {} for kind in KINDS}
        self.means: dict[str, dict[str, float]] = {kind: {} for kind in KINDS}

    def search(self, kinds: list[str], processes: int, until: float) -> None:
        """Keep the processes busy, the kind that had least time first."""
        spent, running = dict.fromkeys(kinds, 0.0), []
        place = Path(tempfile.mkdtemp(prefix="calibrant-marks-", dir=SHARED))
        while True:
            busy = {one.kind for one in running}
            due = [k for k in kinds if k not in busy and self.inputs[k] < self.number]
            while due and len(running) < processes and time.monotonic() < until:
                kind = min(due, key=spent.__getitem__)
                due.remove(kind)
                running.append(self._start(kind, until, place))
            if not running:
                break
            for one, found in finish(running):
                running = [other for other in running if other is not one]
                spent[one.kind] += found.seconds
                self._fold(found)
            time.sleep(0.2)
        shutil.rmtree(place)

    def _start(self, kind: str, until: float, place: Path) -> Slice:
        done = self.results["kinds"].get(kind, {}).get("slices", 0)
        known = self.arcs[kind], self.costs[kind], self.means[kind]
        found = Found(kind, arcs=known[0], costs=known[1], means=known[2])
        left = self.number - self.inputs[kind]
        return start(
            found,
            self.kept[kind],
            f"{self.seed} {kind} {done}",
            left,
            (SLICE, until),
            place,
        )

    def _fold(self, found: Found) -> None:
        kind = found.kind
        self.inputs[kind] += found.inputs
        self.arcs[kind] |= found.arcs
        self.costs[kind] |= found.costs
        self.means[kind] |= found.means
        self.kept[kind] = found.corpus or self.kept[kind]
        for name, finding in found.findings.items():
            self.findings[name] = self.findings.get(name, 0) + finding["count"]
        stored.fold(self.results, found)
        stored.save(self.results, self.path)
        stored.write_corpus(kind, self.kept[kind], self.corpus)
        click.echo(
            f"{kind}: {self.results['kinds'][kind]['inputs']:,} inputs", err=True
        )


@main.command()
@click.argument("others", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--results", default=stored.RESULTS, type=click.Path(path_type=Path))
def add(others: tuple[Path, ...], results: Path) -> None:
    """Add the figures of runs that kept their own results to those of this folder."""
    known = stored.load(results)
    for other in others:
        stored.add(known, stored.load(other))
    stored.save(known, results)


@main.command()
@click.option("--results", default=stored.RESULTS, type=click.Path(path_type=Path))
def recheck(results: Path) -> None:
    """Try the input of every finding again, simplify it, and mark what is mended."""
    known = stored.load(results)
    limit_memory(GIGABYTES)
    for name, finding in known["findings"].items():
        kind, data = name.split(" | ")[0], bytes.fromhex(finding["input"])
        bench = Bench(kind)
        case, verdict = bench.try_out(data)
        bench.close()
        finding["mended"] = not verdict.is_finding
        if not finding["mended"] and signature(kind, verdict) == name:
            finding["input"] = minimised(kind, data, name).hex()
            bench = Bench(kind)
            case, verdict = bench.try_out(bytes.fromhex(finding["input"]))
            bench.close()
            finding.update(said=verdict.said, shown=case.shown)
        stored.save(known, results)
        click.echo(
            f"{'mended' if finding['mended'] else 'open  '}  {name}: {finding['said']}"
        )


@main.command()
@click.argument("kind", type=click.Choice(list(KINDS)))
@click.argument("data")
@click.option("--keep", type=click.Path(path_type=Path), help="Leave its files here.")
def replay(kind: str, data: str, keep: Path | None) -> None:
    """Try one input, given as hexadecimal digits, and say what became of it."""
    from .choices import Choices

    bench = Bench(kind)
    limit_memory(GIGABYTES)
    if keep is not None:
        keep.mkdir(parents=True)
        click.echo(KINDS[kind](Choices(bytes.fromhex(data)), keep).shown)
    case, verdict = bench.try_out(bytes.fromhex(data))
    bench.close()
    click.echo(
        f"{case.shown}\n{verdict.outcome} {verdict.where} {verdict.said}".rstrip()
    )


@main.command()
@click.option("--seed", default=1, show_default=True)
@click.option(
    "--number", default=100, show_default=True, help="Mutants to have in all."
)
@click.option("--package", default="_rows,_sketch,_stats", show_default=True)
@click.option("--minutes", default=10.0, show_default=True)
@click.option("--results", default=mutation.RESULTS, type=click.Path(path_type=Path))
@click.option("--contexts", type=click.Path(path_type=Path), help="Data of coverage.")
def mutants(
    seed: int,
    number: int,
    package: str,
    minutes: float,
    results: Path,
    contexts: Path | None,
) -> None:
    """Change the code at random places, and see whether a test fails."""
    packages, rng = package.split(","), random.Random(seed)
    mutation.run(packages, rng, number, minutes, results, click.echo, contexts)


@main.command()
@click.argument("report", type=click.Path(exists=True, path_type=Path))
def branches(report: Path) -> None:
    """Keep what a JSON report of `coverage` says of each package of the core."""
    found = pages.branches_by_package(json.loads(report.read_text("utf-8")))
    stored.BRANCHES.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


@main.command()
def page() -> None:
    """Write fuzz.md, mutants.md, kills.md and branches.md, which docs/reliability.md includes."""
    for name, text in pages.pages().items():
        (stored.HERE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
