"""`python -m experiments NAME...`: tables, figures, claims and the page about them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import click

from calibrant.recalibration import FitWarning
from experiments import figures, page, tables
from experiments.claims import judge_all
from experiments.exceptions import contradictions
from experiments.models import ROOT
from experiments.paper import TABLES

Step = Callable[[Path, Path | None], None]


def _save_table(number: int) -> Step:
    return lambda into, outputs: tables.save_table(TABLES[number - 1], into, outputs)


def _save_figure(name: str) -> Step:
    return lambda into, outputs: figures.save_figure(name, into, outputs)


def _save_claims(into: Path, outputs: Path | None) -> None:
    verdicts = judge_all()
    head = ("claim", "model", "outcome", "numbers")
    rows = [(v.claim, v.model, v.outcome, v.finding.numbers) for v in verdicts]
    tables.write_csv(into / "claims.csv", head, rows)
    for words in contradictions(verdicts):
        raise click.ClickException(f"experiments/exceptions.py: {words}")


STEPS: dict[str, Step] = {
    **{f"table{table.number}": _save_table(table.number) for table in TABLES},
    "tables": lambda into, outputs: tables.save_others(into),
    **{name: _save_figure(name) for name in figures.FIGURES},
    "rows": lambda into, outputs: figures.save_rows(into),
    "claims": _save_claims,
}
"""What `all` does, in order."""


@click.command()
@click.argument("names", nargs=-1, type=click.Choice([*STEPS, "all", "page"]))
@click.option(
    "--outputs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of outputs of the paper's models, as `calibrant infer` writes them.",
)
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    default=ROOT / "build" / "paper",
    help="Folder to write to; build/paper by default.",
)
@click.option(
    "--check", is_flag=True, help="Only say whether docs/paper.md is current."
)
def main(
    names: tuple[str, ...], outputs: Path | None, into: Path, *, check: bool
) -> None:
    """Run experiments of the paper by NAME: table1, figure2, claims, page, or all."""
    chosen = [*STEPS, *names] if "all" in names else names
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # the tables say it too
        try:
            for name in dict.fromkeys(chosen):
                _do(name, into, outputs, check=check)
        except FileNotFoundError as error:
            raise click.ClickException(str(error)) from error


def _do(name: str, into: Path, outputs: Path | None, *, check: bool) -> None:
    if name in STEPS:
        click.echo(name, err=True)
        into.mkdir(parents=True, exist_ok=True)
        STEPS[name](into, outputs)
    elif name == "page":
        _write_page(check=check)


def _write_page(*, check: bool) -> None:
    verdicts = judge_all()
    if not check:
        page.save(verdicts)
    elif not page.is_current(verdicts):
        raise click.ClickException("docs/paper.md: run python -m experiments page")


if __name__ == "__main__":
    main()
