"""The ``calibrant`` command: read files, call one function, print what it returned.

Exit codes: 0 fine, 1 bad input (one line on stderr), 2 wrong usage, 3 a condition of
--fail-if holds, 130 interrupted, 141 whoever read the output has left.
"""

from __future__ import annotations

import click

from calibrant import __version__
from calibrant.cli._compare import compare
from calibrant.cli._demo import demo
from calibrant.cli._explain import explain
from calibrant.cli._flags import Quiet
from calibrant.cli._groups import groups
from calibrant.cli._infer import infer
from calibrant.cli._inspect import inspect
from calibrant.cli._monitor import monitor
from calibrant.cli._recalibrate import recalibrate
from calibrant.cli._report import report
from calibrant.cli._sketch import merge, sketch
from calibrant.cli._study import study


@click.group(cls=Quiet, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="calibrant")
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


COMMANDS = (
    *(demo, report, study, recalibrate, compare, groups, explain, monitor),
    *(sketch, merge, inspect, infer),
)

for command in COMMANDS:
    main.add_command(command)
