"""The ``calibrant`` command: read files, call one function, print what it returned.

Exit codes: 0 fine, 1 bad input (one line on stderr), 2 wrong usage, 3 a gate tripped,
130 interrupted.
"""

from __future__ import annotations

import click

from calibrant import __version__
from calibrant.cli._compare import compare
from calibrant.cli._demo import demo
from calibrant.cli._infer import infer
from calibrant.cli._inspect import inspect
from calibrant.cli._recalibrate import recalibrate
from calibrant.cli._report import report
from calibrant.cli._sketch import merge, sketch
from calibrant.cli._study import study


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="calibrant")
def main() -> None:
    """How well calibrated a classifier's probabilities are, and how sharp.

    A FILE is .npz, .npy, .csv, .parquet, .arrow, .feather, .jsonl, .safetensors or .pt, a
    quoted pattern such as 'shards/*.parquet', or a folder of shards. Files that make up
    one model are joined by commas: logits.npy,labels.npy. A sketch stands for its rows.

    \b
    Shell completion:
      eval "$(_CALIBRANT_COMPLETE=bash_source calibrant)"     # or zsh_source, fish_source
    """


COMMANDS = (demo, report, study, recalibrate, compare, sketch, merge, inspect, infer)

for command in COMMANDS:
    main.add_command(command)
