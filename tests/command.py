"""The command without a process of its own, which takes a second to start.

What only a process shows (exit codes, signals, pipes) is in `test_cli_exits.py`.
"""

import contextlib
import inspect
import shlex
import warnings
from dataclasses import dataclass

from click.testing import CliRunner

APART = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}  # fmt: skip
"""Until click 8.2 standard error was part of the output unless one said otherwise."""


@dataclass(frozen=True)
class Done:
    """A command that has ended, as `subprocess.run` tells it."""

    returncode: int
    stdout: str
    stderr: str


def calibrant(*arguments, cwd=".", stdin=None):
    """Run ``calibrant ARGUMENTS`` in a folder; an error that is not caught is raised."""
    from calibrant.cli import main

    with contextlib.chdir(cwd), warnings.catch_warnings():
        warnings.simplefilter("default")
        result = CliRunner(**APART).invoke(
            main, [str(x) for x in arguments], input=stdin, prog_name="calibrant"
        )
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Done(result.exit_code, result.stdout, result.stderr)


def calibrant_line(line, cwd="."):
    """Run a line of a help or a page, such as ``calibrant report a.npz``."""
    name, *arguments = shlex.split(line, comments=True)
    assert name == "calibrant", line
    return calibrant(*arguments, cwd=cwd)
