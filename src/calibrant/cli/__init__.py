"""The ``calibrant`` command: read files, call one function, print what it returned.

Exit codes: 0 fine, 1 bad input (one line on stderr), 2 wrong usage, 3 a condition of
--fail-if holds, 130 interrupted, 141 whoever read the output has left.
"""

from __future__ import annotations

import click

from calibrant import __version__
from calibrant.cli._group import Commands, Quiet

COMMANDS = Commands()


def _show_version(context: click.Context, _: click.Parameter, asked: bool) -> None:  # noqa: FBT001
    if asked:
        from calibrant._rows import engines

        built = "yes" if engines.built() else "no (NumPy does its work)"
        click.echo(f"calibrant, version {__version__}\ncompiled module: {built}")
        context.exit()


@click.group(
    cls=Quiet,
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version, and whether the loops over rows were compiled.",
)
def main() -> None:
    """Measure how well calibrated a classifier's probabilities are, and how sharp.

    A FILE is .npz, .npy, .csv, .tsv, .parquet, .arrow, .feather, .jsonl, .json,
    .safetensors or .pt (text also as .gz or .zst), a quoted pattern such as
    'shards/*.parquet', a folder of such files, a sketch, or - for standard input. Files
    that make up one model are joined by commas: logits.npy,labels.npy.

    \b
    Shell completion:
      eval "$(_CALIBRANT_COMPLETE=bash_source calibrant)"     # or zsh_source, fish_source
    """
