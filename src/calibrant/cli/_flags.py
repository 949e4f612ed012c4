"""Options that commands share, what they mean for `evaluate`, and progress on stderr."""

from __future__ import annotations

import glob
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce, wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from calibrant._base.checks import one_line, shown
from calibrant.cli._commands import MOST_SAID

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

ROLES = {
    "label": "Column or array of the true classes.",
    "probs": "Probabilities: an array, or columns as 'p_*' or a,b,c. Given twice, two models.",
    "logits": "Logits: an array, or columns as 'z_*' or a,b,c.",
    "confidence": "Stated confidences, such as a language model's.",
    "correct": "Whether each answer is correct, for --confidence.",
    "pred": "Predicted class, for --confidence without --correct.",
    "weight": "Sample weights, in any unit.",
    "frequency": "How many examples each row stands for.",
    "cluster": "Dependent examples: the patient or game each belongs to.",
    "group": "Subgroups, each evaluated separately as well.",
    "classes": "Class names in column order, separated by commas.",
}

MODELS = ("probs", "logits", "confidence")
"""Roles that may be said more than once: each time they are another model's."""

READING = (
    *("sep", "decimal", "percent", "drop_missing", "ragged", "scale"),
    "count_copies",
)
EVALUATION = ("target", "divergence", "bins", "level", "kernel", "preset", "bandwidth")

SETTINGS = ("split", "folds", "methods", "baseline", "sep", "decimal")

TARGETS = click.Choice(["top-label", "positive", "class-wise", "multi-label"])
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
target = click.option(
    "--target",
    type=TARGETS,
    help="Which probability to check: that of the predicted class, of the positive "
    "class, of every class, or of every label where several can be true. Required for two columns. [default: top-label, or "
    "positive for one column]",
)
model_names = click.option(
    "--names", help="Model names, separated by commas. [default: the file names]"
)
page = path_option("-o", "--output", help="Write an HTML report to this file.")


count_copies = click.option(
    "--count-copies",
    is_flag=True,
    help="Count files of the same bytes as files of their own, not as an error.",
)


def roles(*without: str) -> Decorator:
    """Options that say which column is what, and how files are read."""
    named = [
        click.option(f"--{name}", metavar="NAME", help=text, multiple=name in MODELS)
        for name, text in ROLES.items()
        if name not in without
    ]
    return together(*named, *reading)


def as_mark(_: Any, option: Any, given: str | None) -> str | None:
    """One character; a tab may be said in words, or as Python and others write it."""
    mark = {"tab": "\t", "\\t": "\t"}.get(given or "", given)
    if mark is not None and len(mark) != 1:
        told = f"must be a single character, or tab; got {shown(given)}."
        raise click.BadParameter(told, param=option)
    return mark


reading = (
    click.option(
        "--sep",
        metavar="CHARACTER",
        callback=as_mark,
        help="Separator of columns in .csv files, or tab.",
    ),
    click.option(
        "--decimal",
        metavar="CHARACTER",
        callback=as_mark,
        help="Decimal mark, such as a comma.",
    ),
    click.option("--percent", is_flag=True, help="Probabilities are 0 to 100."),
    click.option(
        "--drop-missing",
        is_flag=True,
        help="Leave out examples with a missing score, label, weight or group, and count them.",
    ),
    click.option(
        "--ragged",
        is_flag=True,
        help="Questions differ in their number of options; absent ones have "
        "probability 0.",
    ),
    click.option(
        "--scale",
        metavar="WORD=X,...",
        help="What words for confidences mean: 'likely=0.8,unsure=0.5', or in per cent (80%).",
    ),
    count_copies,
)
role_options = roles()
evaluation_options = together(
    target,
    valued(
        "--divergence",
        default="brier",
        type=SCORES,
        help="Which score is split into calibration error and sharpness gap.",
    ),
    valued(
        "--bandwidth",
        default="auto",
        metavar="AUTO|NUMBER",
        help="Kernel bandwidth; 'auto' adapts, a number uses the paper's estimator.",
    ),
    valued(
        "--kernel",
        default="gaussian",
        type=click.Choice(["gaussian", "epanechnikov"]),
        help="Kernel of the paper's estimator.",
    ),
    click.option(
        "--preset",
        type=click.Choice(["paper"]),
        help="'paper': all choices as published (bandwidth 0.05, left-closed bins).",
    ),
    valued("--bins", default=15, help="Number of bins of the ECE."),
    valued("--level", default=0.95, help="Confidence level of the intervals."),
    valued("--seed", default=0, help="Random seed."),
)
output_options = together(as_json, quiet, force)


INTERRUPTED = 130
"""What shells make of an interrupt."""


def clean_errors(command: Command) -> Command:
    """Turn what is wrong with the input into one line and exit code 1.

    Values that an option cannot have are wrong usage, whatever the files hold. What was not foreseen is said on one line too: with CALIBRANT_DEBUG set, in full.
    """

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        try:
            return command(*arguments, **options)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # `Quiet` ends the command
            raise
        except (ValueError, TypeError, ImportError, OSError, MemoryError) as error:
            said = " ".join(_named(str(error)).split()) or type(error).__name__
            raise _as_error(in_options(said)) from error
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if os.environ.get("CALIBRANT_DEBUG"):
                raise
            said = f"unexpected {type(error).__name__}: {error} (a fault of calibrant)"
            raise click.ClickException(one_line(said, MOST_SAID)) from error

    return run  # type: ignore[return-value]


VALUES = (
    *("bandwidth", "bins", "level", "split", "folds"),
    *("alpha", "tolerance", "regions", "method", "methods", "thresholds", "baseline"),
)
"""Options whose values the library checks, beside --seed."""

WRONG_VALUE = re.compile(rf"(?:^|: )(--(?:{'|'.join(VALUES)}|seed) must be .*)")


def _as_error(said: str) -> click.ClickException:
    """What was wrong: with an option, without the files it was read with, or with these."""
    if found := WRONG_VALUE.search(said):
        told, context = one_line(found[1], MOST_SAID), click.get_current_context()
        return click.UsageError(told, context)
    return click.ClickException(one_line(said, MOST_SAID))


OPTIONS = {
    **{name: name for name in (*ROLES, *EVALUATION, *SETTINGS)},
    "y": "label",
    "sample_weight": "weight",
    "name": "names",
    "rng": "seed",
    "every": "every",
    "period": "period",
}
QUOTED = r"(?<![\w=])'[^']*'(?!\w)|(?<![\w=])\"[^\"]*\"(?!\w)"
CODE = r"\b\w+(?:\.\w+)+\([^()]*\)"
VALUE = r"'[^']*'|\"[^\"]*\"|-?\d[\w.+-]*\w|\w+"
KEYWORD = re.compile(
    rf"{QUOTED}|{CODE}|(?<![\w/\\.=-])({'|'.join(OPTIONS)})=({VALUE})?(?!\.?[\w/\\=])"
)
"""A keyword of the library; names of columns, models and files are quoted, or have a dot.
Calls of other modules, `numpy.savez(logits=...)`, are Python for the user to run."""
PHRASES = {
    r"force=True": "--force",
    r"evaluate\(\.\.\., name=\.\.\.\)(, or show a dict of them: \{.*?\})?": "--names A,B",
    r"classes=\[\.\.\.\]": "--classes A,B,...",
    r"paired=False": "--unpaired",
    r"\brng (must be .*?) or a numpy\.random\.Generator": r"--seed \1",
    r"Use \w+\(scores='(\w+)'\)": r"Name them with --\1",
    rf"(?<!-)\b({'|'.join((*EVALUATION, *SETTINGS, *VALUES))}) must be": r"--\1 must be",
    r"(such rows a group of their own)\.": r"\1, or leave them out (--drop-missing).",
    r"(lower least=, or )?pass other features=": "name other columns with --slices",
    r"divide ([\w ]*)by 100": r"divide \1by 100 (--percent)",
}
"""What errors of the library say to those who call it, and what the command has for it."""


def in_options(text: str) -> str:
    """An error in terms of the command line, not of Python.

    Examples
    --------
    >>> in_options("If these are logits, pass logits=; or say target='positive'.")
    'If these are logits, pass --logits; or say --target positive.'
    >>> in_options("put dates together with every='week', or leave out every=.")
    'put dates together with --every week, or leave out --every.'
    """
    for phrase, said in PHRASES.items():
        text = re.sub(phrase, said, text)
    return KEYWORD.sub(_option, text)


def _option(found: re.Match[str]) -> str:
    if found[1] is None:  # names of the user's in quotes, or Python
        return found[0]
    value = (found[2] or "").strip("'\"")
    return f"--{OPTIONS[found[1]]} {value}".rstrip()


@contextmanager
def about(*files: str | None) -> Iterator[None]:
    """Name the files in what is wrong with their rows."""
    given = [file for file in files if file is not None]
    try:
        yield
    except (ValueError, TypeError) as error:
        if any(path in str(error) for file in given for path in paths_of(file)):
            raise
        raise ValueError(f"{', '.join(map(_in_words, given))}: {error}") from error


def _in_words(file: str) -> str:
    """What a file is called where its rows are counted."""
    if isinstance(file, Files):
        paths = file.paths
        return paths[0] if len(paths) == 1 else f"{file} (rows of {', '.join(paths)})"
    return "standard input" if file == STDIN else file


def roles_of(said: Mapping[str, str | None], **more: Any) -> Any:
    """The roles that were said, as the readers take them."""
    from calibrant.files._plan import ARGUMENTS, Roles

    given: dict[str, Any] = {
        ARGUMENTS.get(name, name): said[name]
        for name in (*ROLES, *READING)
        if name in said
    }
    for name in MODELS:
        given[name] = _only_one(name, given.get(name, ()))
    if given.get("classes"):
        given["classes"] = given["classes"].split(",")
    if given.get("scale"):
        given["scale"] = _scale(given["scale"])
    return Roles(**given, **more)


def said_of_files(said: Mapping[str, Any]) -> dict[str, bool]:
    """What was said on how to look for the files of a model."""
    return {name: said[name] for name in ("quiet", "count_copies")}


def fraction(text: str) -> float:
    """A number, or a percentage that has its sign.

    >>> fraction("0.06"), fraction("6%")
    (0.06, 0.06)
    """
    number = text.strip()
    return float(number[:-1]) / 100 if number.endswith("%") else float(number)


def as_fraction(_: click.Context, option: click.Parameter, text: str) -> float:
    """The value of an option that may be a percentage."""
    try:
        return fraction(text)
    except ValueError:
        rule = f"{text!r} is not a number such as 0.05, or 5%."
        raise click.BadParameter(rule, param=option) from None


def _scale(text: str) -> dict[str, float]:
    """Words and what they mean.

    >>> _scale("almost certain=95%, likely=0.8")
    {'almost certain': 0.95, 'likely': 0.8}
    """
    found = {}
    for part in text.split(","):
        word, is_, number = part.rpartition("=")
        try:
            found[word.strip()] = value = fraction(number)
        except ValueError:
            is_, value = "", 0.0
        if 1 < value <= 100 and not number.strip().endswith("%"):
            told = f"{part.strip()!r} is above 1; if it is in per cent, write {number.strip()}%."
            raise click.BadParameter(told, param_hint="--scale")
        if not is_ or not word.strip():
            said = f"{part.strip()!r} is not a word and a number, such as likely=0.8 or likely=80%."
            raise click.BadParameter(said, param_hint="--scale")
    return found


class Files(str):
    """Files of one model that a harness wrote, by the name of the model."""

    __slots__ = ("paths",)
    paths: list[str]

    @classmethod
    def of(cls, name: str, paths: Sequence[Path]) -> Files:
        """Files under a name."""
        made = cls(name)
        made.paths = [str(path) for path in paths]
        return made


def _only_one(name: str, values: Sequence[str]) -> str | None:
    if len(values) > 1:
        raise click.UsageError(
            f"--{name} is given {len(values)} times; once is enough."
        )
    return values[0] if values else None


@dataclass(frozen=True, slots=True)
class Model:
    """A model of the command line: a file, what the model is called, and its options."""

    file: str
    name: str
    said: dict[str, Any]


def models_of(
    files: Sequence[str], names: str | None, said: dict[str, Any]
) -> list[Model]:
    """One model for each file, or for each time that --probs or its like is said."""
    again = [role for role in MODELS if len(said[role]) > 1]
    if not again:
        called = names_of(files, names)
        return [
            Model(file, name, said) for file, name in zip(files, called, strict=True)
        ]
    columns = said[again[0]]
    if len(files) > 1 or len(again) > 1:
        told = f"--{again[0]} given {len(columns)} times is {len(columns)} models of one file"
        raise click.UsageError(f"{told}; pass one file, and one kind of scores.")
    called = list(columns) if names is None else names_of(columns, names)
    return [
        Model(files[0], name, {**said, again[0]: (column,)})
        for name, column in zip(called, columns, strict=True)
    ]


def paths_of(file: str) -> list[str]:
    """Files of one model: those with commas between them, unless such a file exists."""
    if isinstance(file, Files):
        return file.paths
    if file == STDIN:
        return [str(_kept_input())]
    return [file] if Path(file).exists() else file.split(",")


def are_joined(file: str) -> bool:
    """Whether several files of one model have commas between them."""
    paths = [] if isinstance(file, Files) else paths_of(file)
    return len(paths) > 1 and all(Path(path).suffix for path in paths)


STDIN = "-"


def _kept_input() -> Path:
    """Standard input as a file of the format it begins like, for as long as the command."""
    from calibrant.files._open import format_of_bytes

    context = click.get_current_context()
    if (kept := context.meta.get(STDIN)) is not None:
        return Path(kept)
    if sys.stdin is None or sys.stdin.isatty():
        raise ValueError("- reads standard input, which is a terminal; pipe a file in.")
    folder = context.with_resource(TemporaryDirectory(prefix="calibrant-"))
    with Path(folder, "stdin").open("w+b") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        file.seek(0)
        suffix = format_of_bytes(file.read(4096)).suffixes[0]
    path = Path(folder, f"stdin{suffix}")
    context.meta[STDIN] = Path(folder, "stdin").rename(path)
    return path


def _named(error: str) -> str:
    """An error that calls standard input by its name, not by that of a file of ours."""
    kept = click.get_current_context().meta.get(STDIN)
    return error if kept is None else error.replace(str(kept), "standard input")


def names_of(files: Sequence[str], given: str | None) -> list[str]:
    """Names of the models: as said, or those of the files, told apart if need be."""
    if given is not None:
        names = given.split(",")
        if len(names) != len(files):
            models = "1 model" if len(files) == 1 else f"{len(files)} models"
            raise ValueError(f"--names has {len(names)} names for {models}.")
        return names
    named = [file if isinstance(file, Files) else paths_of(file)[0] for file in files]
    names = [str(x) if isinstance(x, Files) else stem_of(x) or x for x in named]
    return names if len(set(names)) == len(names) else list(files)


def stem_of(file: str) -> str:
    """The name of a file without suffixes of formats: scores.csv.gz is scores.

    Of a pattern it is what all names begin with, or the folder.

    >>> stem_of("scores.csv.gz"), stem_of("run-*.npz"), stem_of("bert/*.npz"), stem_of("*.npz")
    ('scores', 'run', 'bert', 'model')
    """
    path = Path(file)
    stem = Path(path.stem).stem if path.suffix in (".gz", ".zst") else path.stem
    if not glob.has_magic(stem) or path.exists():
        return stem
    folder = path.parent.name
    begun = re.split(r"[*?[]", stem)[0].rstrip("-_. ")
    return begun or ("model" if glob.has_magic(folder) else folder or "model")


def evaluation_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords of `evaluate` from the options of a command."""
    kept = {key: options[key] for key in EVALUATION}
    bandwidth = options["bandwidth"]
    kept["bandwidth"] = bandwidth if bandwidth == "auto" else _number(bandwidth)
    if not is_said("bandwidth"):
        del kept["bandwidth"]  # that of a preset, if there is one
    return {**kept, "rng": options["seed"]}


def is_said(option: str) -> bool:
    """Whether an option was given, and is not its default."""
    source = click.get_current_context().get_parameter_source(option)
    return source is not ParameterSource.DEFAULT


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
