"""The group of commands: each is loaded when it is called, and ends quietly."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import click

PIPE_CLOSED = 141
"""What shells make of a program that writes to a closed pipe."""

MOST_SAID = 1000
"""Characters of an error: names and paths within it may be of any length."""

ABOUT = {
    "demo": "Train an over-confident network and recalibrate it.",
    "report": "Evaluate one model per FILE; print a table, write a page.",
    "study": "Fit recalibration methods on FILE, evaluate each on TEST.",
    "recalibrate": "Fit a recalibrator, or load one, and apply it.",
    "compare": "Compare models on the same examples, with intervals.",
    "curves": "Draw curves of one model per FILE: whom to trust, and what acting gains.",
    "groups": "Compare groups of examples: sizes, differences, the worst, a test of equality.",
    "explain": "Split the score: calibration error, grouping loss, rest.",
    "monitor": "Follow a model over time: trend, change, alarm.",
    "sketch": "Summarise FILEs in a small sketch.",
    "merge": "Merge SKETCHes of different examples into one.",
    "inspect": "Show what is in a FILE and how it would be read.",
    "infer": "Run a MODEL on labelled images and write its logits.",
}
"""What each command does: the first line of its help, which is not loaded for it."""

BESIDE = {"merge": "sketch"}
"""Commands that are in the file of another."""


class Commands(Mapping[str, click.Command]):
    """The commands by name, each in the file of its name."""

    def __getitem__(self, name: str) -> click.Command:
        if name not in ABOUT:
            raise KeyError(name)
        file = import_module(f"calibrant.cli._{BESIDE.get(name, name)}")
        command: click.Command = getattr(file, name)
        return command

    def __contains__(self, name: object) -> bool:
        return name in ABOUT

    def __iter__(self) -> Iterator[str]:
        return iter(ABOUT)

    def __len__(self) -> int:
        return len(ABOUT)


MEANT = {"evaluate": "report"}
"""Commands that there are not, by what does what they promise."""


class Quiet(click.Group):
    """Commands that end quietly if whoever reads their output has left."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the command; click would suggest what is spelt alike."""
        if meant := MEANT.get(args[0]):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {meant!r}?")
        return super().resolve_command(ctx, args)

    def make_context(self, *given: Any, **more: Any) -> click.Context:
        """Read the command line; this may print the help."""
        if sys.stdout is None:  # closed before we began, as by >&-
            sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - till Python ends
        with _until_closed():
            return super().make_context(*given, **more)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, to the last line of its output."""
        with _until_closed():
            done = super().invoke(ctx)
            sys.stdout.flush()
            return done

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """List the commands as click does, without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(ABOUT.items()))


@contextmanager
def _until_closed() -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:  # which repeats what was typed
        from calibrant._base.checks import one_line

        told = one_line(error.format_message(), MOST_SAID)
        raise click.UsageError(told, error.ctx) from error
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)  # Python itself flushes once more when it ends
        raise click.exceptions.Exit(PIPE_CLOSED) from None
