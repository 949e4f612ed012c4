"""Run the simulations, and write the pages about them."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: processes share the cores

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from . import pages, runs
from .enumeration import enumerate_cases
from .measure import QUANTITIES


def listed(text: str) -> list[str]:
    """What stands between commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


@click.group(help=__doc__)
def main() -> None:
    """Group of the commands."""


@main.command()
@click.option("--laws", default="development,holdout", show_default=True)
@click.option("--n", "sizes", default=",".join(map(str, runs.SIZES)), show_default=True)
@click.option("--replicates", default=400, show_default=True)
@click.option("--only", default=",".join(QUANTITIES), help="Quantities, or all.")
@click.option("--processes", default=2, show_default=True)
@click.option("--minutes", default=600.0, show_default=True, help="Then start no more.")
@click.option("--results", default=runs.RESULTS, type=click.Path(path_type=Path))
@click.option("--estimate", is_flag=True, help="Say how long it takes, and stop.")
def run(
    laws: str,
    sizes: str,
    replicates: int,
    only: str,
    processes: int,
    minutes: float,
    results: Path,
    estimate: bool,  # noqa: FBT001
) -> None:
    """Draw data sets until each case has as many as asked for."""
    cells, other = runs.load(results)
    chosen = runs.find_worlds(listed(laws))
    asked = [int(float(n)) for n in listed(sizes)]
    wanted = _checked(listed(only))
    about = {world.name: asdict(runs.About.of(world)) for world in chosen}
    other = other | {"worlds": other.get("worlds", {}) | about}
    todo = runs.tasks(chosen, asked, wanted, replicates, cells, other["seed"])
    hours = runs.seconds_of(todo) / 3600 / processes
    click.echo(f"{len(todo)} cases, about {hours:.2f} h", err=True)
    if estimate:
        return

    def done(task: runs.Task, found: Sequence[dict]) -> None:
        runs.fold(cells, task, found)
        runs.save(cells, other, results)
        click.echo(f"{task.world}, n = {task.n:,}", err=True)

    runs.save(cells, other, results)
    left = runs.run(todo, processes, minutes, done)
    click.echo(f"{left} cases left", err=True)


def _checked(names: list[str]) -> list[str]:
    unknown = [name for name in names if name not in QUANTITIES]
    if unknown:
        known = ", ".join(QUANTITIES)
        raise click.BadParameter(f"no quantity {unknown[0]!r}; there are {known}.")
    return names


@main.command()
@click.option("--results", default=runs.RESULTS, type=click.Path(path_type=Path))
def enumerate(results: Path) -> None:  # noqa: A001
    """Sum over all numbers of hits, where all rows have one confidence."""
    cells, other = runs.load(results)
    runs.save(cells, other | {"enumeration": enumerate_cases()}, results)


@main.command()
@click.option("--results", default=runs.RESULTS, type=click.Path(path_type=Path))
@click.option("--output", default=runs.HERE, type=click.Path(path_type=Path))
def page(results: Path, output: Path) -> None:
    """Write coverage.md (development) and holdout.md from the results."""
    for name, text in pages.pages(*runs.load(results)).items():
        (output / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
