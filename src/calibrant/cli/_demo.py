"""``calibrant demo``: everything on a small network that it trains itself."""

from __future__ import annotations

from pathlib import Path

import click

from calibrant.cli import _flags as flags

OWN = Path("calibrant-demo")
"""The demo's own folder: what it wrote there before is replaced."""


@click.command()
@flags.valued(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=OWN,
    help="Folder for report, figures and predictions.",
)
@flags.valued("--seed", default=0, help="Random seed of the training.")
@flags.output_options
@flags.clean_errors
def demo(output: Path, seed: int, *, as_json: bool, quiet: bool, force: bool) -> None:
    """Train an over-confident network and recalibrate it.

    Nothing is downloaded: the images of digits come with scikit-learn. Files in
    calibrant-demo are replaced; in another folder, only with --force.

    \b
    Example:
      calibrant demo --output calibrant-demo
    """
    from calibrant.demo import run
    from calibrant.terminal._page import show

    with flags.steps("train a network", quiet=quiet) as progress:
        report = run(output, seed, progress, force=force or output == OWN)
    if as_json:
        click.echo(report.to_json())
    elif not quiet:
        show(report.study)
        click.echo(f"\n{report.text()}")
