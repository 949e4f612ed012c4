"""The ``acumen`` command: read, call one function, print what it returned."""

from __future__ import annotations

from pathlib import Path

import click

from acumen import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="acumen")
def main() -> None:
    """How well calibrated a classifier's probabilities are, and how sharp."""


@main.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("acumen-demo"),
    show_default=True,
    help="Folder for the predictions.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the training.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
def demo(output: Path, seed: int, *, as_json: bool) -> None:
    """Train a small over-confident network on noisy digits and evaluate it.

    \b
    Example:
      acumen demo --output acumen-demo
    """
    from acumen.demo import run

    try:
        report = run(output, seed)
    except ImportError as error:
        raise click.ClickException(str(error)) from error
    click.echo(report.to_json() if as_json else report.text())
