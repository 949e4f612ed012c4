"""Options that commands share, what they mean for `evaluate`, and progress on stderr."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce, wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from calibrant._base.checks import one_line

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

ROLES = {
    "label": "Column or array of the true classes.",
    "probs": "Probabilities: an array, or columns as 'p_*' or a,b,c.",
    "logits": "Logits: an array, or columns as 'z_*' or a,b,c.",
    "confidence": "Stated confidences, as language models give.",
    "correct": "Whether the answer was right, for --confidence.",
    "pred": "Predicted class, for --confidence without --correct.",
    "weight": "Importance of each row, in any unit.",
    "frequency": "How many rows each stands for.",
    "cluster": "Which rows depend on each other: a patient's, a game's.",
    "group": "Subgroup of each row, evaluated on its own too.",
    "classes": "Names of the classes, in column order, with commas.",
}

TARGETS = click.Choice(["top-label", "positive", "class-wise"])
SCORES = click.Choice(["brier", "log"])


def together(*options: Decorator) -> Decorator:
    """Several options as one, shown in this order."""
    return lambda command: reduce(lambda made, add: add(made), options[::-1], command)


def valued(*names: str, default: Any, help: str, **more: Any) -> Decorator:  # noqa: A002
    """An option whose default is shown."""
    return click.option(*names, default=default, show_default=True, help=help, **more)


def path_option(*names: str, help: str, **more: Any) -> Decorator:  # noqa: A002
    """An option that is a path."""
    return click.option(*names, type=click.Path(path_type=Path), help=help, **more)


as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, for scripts."
)
quiet = click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
force = click.option("--force", is_flag=True, help="Replace an existing file.")
target = click.option("--target", type=TARGETS, help="What is asked.")
model_names = click.option(
    "--names", help="Names of the models, with commas; else the files'."
)
page = path_option("-o", "--output", help="Write an HTML report here.")

role_options = together(
    *(click.option(f"--{name}", metavar="NAME", help=x) for name, x in ROLES.items())
)
evaluation_options = together(
    target,
    valued(
        "--divergence", default="brier", type=SCORES, help="The score that is split."
    ),
    valued(
        "--bandwidth",
        default="auto",
        metavar="AUTO|NUMBER",
        help="Smoothing; a number as published.",
    ),
    valued("--bins", default=15, help="Bins of ECE."),
    valued("--level", default=0.95, help="Of intervals."),
    valued("--seed", default=0, help="Of all randomness."),
)
output_options = together(as_json, quiet, force)


INTERRUPTED = 130
"""What shells make of an interrupt."""

MOST_SAID = 1000
"""Signs of an error that are printed."""


def clean_errors(command: Command) -> Command:
    """Turn what is wrong with the input into one line and exit code 1.

    What was not foreseen is said on one line too: with CALIBRANT_DEBUG set, in full.
    """

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        try:
            return command(*arguments, **options)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # who reads the output has left: click ends quietly
            raise
        except (ValueError, TypeError, ImportError, OSError, MemoryError) as error:
            said = " ".join(str(error).split()) or type(error).__name__
            raise click.ClickException(one_line(said, MOST_SAID)) from error
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if os.environ.get("CALIBRANT_DEBUG"):
                raise
            said = f"unexpected {type(error).__name__}: {error} (a fault of calibrant)"
            raise click.ClickException(one_line(said, MOST_SAID)) from error

    return run  # type: ignore[return-value]


@contextmanager
def about(*files: str | None) -> Iterator[None]:
    """Name the files in what is wrong with their rows."""
    given = [file for file in files if file is not None]
    try:
        yield
    except (ValueError, TypeError) as error:
        if any(path in str(error) for file in given for path in paths_of(file)):
            raise
        raise ValueError(f"{', '.join(given)}: {error}") from error


def roles_of(said: Mapping[str, str | None], **more: Any) -> Any:
    """The roles that were said, as the readers take them."""
    from calibrant.files._plan import ARGUMENTS, Roles

    given: dict[str, Any] = {
        ARGUMENTS.get(name, name): said[name] for name in ROLES if name in said
    }
    if given.get("classes"):
        given["classes"] = given["classes"].split(",")
    return Roles(**given, **more)


def paths_of(file: str) -> list[str]:
    """Files of one model: those with commas between them, unless such a file exists."""
    return [file] if Path(file).exists() else file.split(",")


def names_of(files: Sequence[str], given: str | None) -> list[str]:
    """Names of the models: as said, or those of the files, told apart if need be."""
    if given is not None:
        names = given.split(",")
        if len(names) != len(files):
            raise ValueError(f"--names has {len(names)} names for {len(files)} models.")
        return names
    names = [Path(paths_of(file)[0]).stem or file for file in files]
    return names if len(set(names)) == len(names) else list(files)


def evaluation_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords of `evaluate` from the options of a command."""
    kept = {key: options[key] for key in ("target", "divergence", "bins", "level")}
    bandwidth = options["bandwidth"]
    kept["bandwidth"] = bandwidth if bandwidth == "auto" else _number(bandwidth)
    return {**kept, "rng": options["seed"]}


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is neither 'auto' nor a number.", param_hint="--bandwidth"
        ) from None


@dataclass(frozen=True, slots=True)
class Steps:
    """A bar that is moved by calling it with the share done and what is being done."""

    shown: bool

    def __call__(self, share: float, what: str) -> None:
        """Move the bar."""
        if self.shown:
            text = f"{'━' * round(20 * share):─<20} {share:4.0%} {what}"
            room = shutil.get_terminal_size().columns - 1
            click.echo(f"\r\x1b[K{text[:room]}", nl=False, err=True)

    def part(self, number: int, count: int) -> Callable[[float, str], None]:
        """The same for one of several parts of the work."""
        return lambda share, what: self((number + share) / count, what)


@contextmanager
def steps(what: str, *, quiet: bool) -> Iterator[Steps]:
    """A progress bar on stderr, if that is a terminal and nobody asked for quiet."""
    bar = Steps(not quiet and sys.stderr.isatty())
    bar(0.0, what)
    try:
        yield bar
    finally:
        if bar.shown:
            click.echo("\r\x1b[K", nl=False, err=True)
