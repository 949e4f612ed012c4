"""The ``acumen`` command: read files, call one function, print what it returned.

Exit codes: 0 fine, 1 bad input (one line on stderr), 2 wrong usage, 3 a gate tripped.
"""

from __future__ import annotations

import click

from acumen import __version__
from acumen.cli.comparing import compare
from acumen.cli.demonstrating import demo
from acumen.cli.inferring import infer
from acumen.cli.inspecting import inspect
from acumen.cli.recalibrating import recalibrate
from acumen.cli.reporting import report
from acumen.cli.sketching import merge, sketch
from acumen.cli.studying import study

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="acumen")
def main() -> None:
    """How well calibrated a classifier's probabilities are, and how sharp.

    A FILE is .npz, .npy, .csv, .parquet, .arrow, .feather, .jsonl, .safetensors or .pt, a
    quoted pattern such as 'shards/*.parquet', or a folder of shards. Files that make up
    one model are joined by commas: logits.npy,labels.npy. A sketch stands for its rows.

    \b
    Shell completion:
      eval "$(_ACUMEN_COMPLETE=bash_source acumen)"     # or zsh_source, fish_source
    """


COMMANDS = (demo, report, study, recalibrate, compare, sketch, merge, inspect, infer)

for command in COMMANDS:
    main.add_command(command)
