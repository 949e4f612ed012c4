"""``calibrant demo``: the whole argument on a network that is trained on the spot."""

from __future__ import annotations

from pathlib import Path

import click

from calibrant.cli._flags import clean_errors, steps


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("calibrant-demo"),
    show_default=True,
    help="Folder for report, figures and predictions.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the training.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
@clean_errors
def demo(output: Path, seed: int, *, as_json: bool, quiet: bool) -> None:
    """Train a small over-confident network, recalibrate it, and report on it.

    It needs no network and no data: the digits come with scikit-learn.

    \b
    Example:
      calibrant demo --output calibrant-demo
    """
    from calibrant.demo import run
    from calibrant.terminal._page import show

    with steps("train a network", quiet=quiet) as progress:
        report = run(output, seed, progress)
    if as_json:
        click.echo(report.to_json())
    elif not quiet:
        show(report.study)
        click.echo(f"\n{report.text()}")
