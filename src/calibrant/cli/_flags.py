"""Options that commands share, and progress on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import click

# ----------------------------------------------------------------------------
# Progress on stderr: a bar in a terminal, nothing in a pipe.


class Steps:
    """A bar that is moved by calling it with the share done and what is being done."""

    def __init__(self, what: str, *, quiet: bool) -> None:
        self._what = what
        self._bar: Any = None
        self._shown = not quiet and sys.stderr.isatty()

    def __enter__(self) -> Self:
        if self._shown:
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self._what, total=1.0)
        return self

    def __call__(self, share: float, what: str) -> None:
        """Move the bar."""
        if self._bar is not None:
            self._bar.update(self._task, completed=share, description=what)

    def part(self, number: int, count: int) -> Any:
        """The same for one of several parts of the work."""

        def report(share: float, what: str) -> None:
            self((number + share) / count, what)

        return report

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


# ----------------------------------------------------------------------------
# Options that commands share, and how files become arguments of `evaluate`.


Command = TypeVar("Command", bound=Callable[..., Any])

ROLES = {
    "label": "Column or array of the true classes.",
    "probs": "Probabilities: an array, or columns as 'p_*' or a,b,c.",
    "logits": "Logits: an array, or columns as 'z_*' or a,b,c.",
    "confidence": "Stated confidences, as language models give.",
    "correct": "Whether the answer was right, for --confidence.",
    "pred": "Predicted class, for --confidence without --correct.",
    "weight": "Weight of each row: 2 is a row twice.",
    "group": "Subgroup of each row, evaluated on its own too.",
    "classes": "Names of the classes, in column order, with commas.",
}

TARGETS = ("top-label", "positive", "class-wise")


def role_options(command: Command) -> Command:
    """Add the options that say which column is what."""
    for name, text in reversed(ROLES.items()):
        command = click.option(f"--{name}", metavar="NAME", help=text)(command)
    return command


def evaluation_options(command: Command) -> Command:
    """Add the options of an evaluation."""
    options = (
        click.option("--target", type=click.Choice(TARGETS), help="What is asked."),
        click.option(
            "--divergence",
            type=click.Choice(["brier", "log"]),
            default="brier",
            show_default=True,
            help="The score that is split.",
        ),
        click.option(
            "--bandwidth",
            default="auto",
            show_default=True,
            metavar="AUTO|NUMBER",
            help="Smoothing; a number as published.",
        ),
        click.option("--bins", default=15, show_default=True, help="Bins of ECE."),
        click.option("--level", default=0.95, show_default=True, help="Of intervals."),
        click.option("--seed", default=0, show_default=True, help="Of all randomness."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def output_options(command: Command) -> Command:
    """Add the options on what is printed and written."""
    options = (
        click.option(
            "--json", "as_json", is_flag=True, help="Print JSON, for scripts."
        ),
        click.option("-q", "--quiet", is_flag=True, help="Print errors only."),
        click.option("--force", is_flag=True, help="Replace an existing file."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def clean_errors(command: Command) -> Command:
    """Turn what is wrong with the input into one line and exit code 1."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        try:
            return command(*arguments, **options)
        except (ValueError, TypeError, ImportError, OSError, MemoryError) as error:
            text = " ".join(str(error).split()) or type(error).__name__
            raise click.ClickException(text) from error

    return run  # type: ignore[return-value]


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
    bandwidth = options["bandwidth"]
    return {
        "target": options["target"],
        "divergence": options["divergence"],
        "bandwidth": bandwidth if bandwidth == "auto" else _number(bandwidth),
        "bins": options["bins"],
        "level": options["level"],
        "rng": options["seed"],
    }


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is neither 'auto' nor a number.", param_hint="--bandwidth"
        ) from None


def refuse_to_replace(path: Path | None, *, force: bool) -> None:
    """Say so before the work if the file exists already."""
    if path is not None and path.exists() and not force:
        raise FileExistsError(f"{path} exists; pass --force to replace it.")


@contextmanager
def steps(what: str, *, quiet: bool) -> Iterator[Steps]:
    """A progress bar on stderr, if that is a terminal and nobody asked for quiet."""
    with Steps(what, quiet=quiet) as running:
        yield running
