"""Which of the files given are one model: those a harness wrote for it, task by task."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, TypeGuard

import click

from calibrant._base.checks import one_line
from calibrant.cli import _flags as flags


def models_in(
    files: Iterable[str], *, quiet: bool, count_copies: bool = False
) -> list[str]:
    """Files, where those that a harness wrote for one model are put together.

    The model is what a file says or else, as lm-evaluation-harness has it, the folder.
    Files of a harness without probabilities are left out, which is said. A damaged one is
    not: a gate must not pass because what would fail it cannot be read. Nor is a copy, which
    would be another task or run, unless copies are to be counted.
    """
    sorted_ = _Sorted()
    for file in files:
        sorted_.add(file)
    if sorted_.left_out and not sorted_.names:
        raise sorted_.left_out[0]
    for problem in sorted_.left_out if not quiet else ():
        click.echo(f"note: left out: {one_line(str(problem))}", err=True)
    if not count_copies:
        from calibrant.files._open import check_no_copies

        for paths in sorted_.models.values():
            check_no_copies(paths)
    return sorted_.found()


def model_in(file: str, *, quiet: bool, count_copies: bool = False) -> str:
    """The one model that a file is, or a folder of a harness holds."""
    found = models_in([file], quiet=quiet, count_copies=count_copies)
    if len(found) > 1:
        named = ", ".join(found[:4]) + (", …" if len(found) > 4 else "")
        one = "name the folder or the files of one"
        raise ValueError(f"{file} has {len(found)} models ({named}); {one}.")
    return found[0]


@dataclass(frozen=True)
class _Model:
    """A model of a harness: its name, and the folder that tells runs of it apart."""

    name: str
    folder: Path
    task: str = field(default="", compare=False)  # of the file, if that says so
    has_options: bool = field(default=False, compare=False)  # not the chosen one alone


_LookedInto: TypeAlias = tuple[Path, _Model | Exception | None]


@dataclass
class _Sorted:
    """Files by model, in the order in which models come."""

    names: list[str | _Model] = field(default_factory=list)
    models: dict[_Model, list[Path]] = field(default_factory=dict)
    tasks: dict[_Model, list[str]] = field(default_factory=dict)
    left_out: list[Exception] = field(default_factory=list)

    def add(self, file: str) -> None:
        """One more argument, which may be a folder or a pattern."""
        looked_into = _each_run_once(
            [(path, _model_of(path, file)) for path in _texts_in(file)]
        )
        damaged = [model for _, model in looked_into if _is_damage(model)]
        others = [None for _, model in looked_into if model is None]
        if len(damaged) + len(others) == len(looked_into):
            self.names.append(file)  # the reader says what is wrong
            return
        if damaged:
            raise damaged[0]
        for path, model in looked_into:
            if model is None:
                _check_name(path)
            if not isinstance(model, _Model):
                if model is not None or not path.name.startswith(SUMMARY):
                    self.left_out.append(model or ValueError(f"{path}: of no harness."))
                continue
            if model not in self.models:
                self.names.append(model)
            self.models.setdefault(model, []).append(path)
            self.tasks.setdefault(model, []).append(model.task)

    def found(self) -> list[str]:
        """Models and other files."""
        for model, tasks in self.tasks.items():
            told = [task for task in tasks if task]
            if len(set(told)) < len(told):
                self._take_apart(model)
        return [self._joined(x) if isinstance(x, _Model) else x for x in self.names]

    def _take_apart(self, model: _Model) -> None:
        """Make each file of a model one of its own: some are runs of the same task."""
        files = self.models.pop(model)
        runs = {_Model(path.stem, path.resolve().parent): [path] for path in files}
        place = self.names.index(model)
        self.names[place : place + 1] = runs
        self.models |= runs

    def _joined(self, model: _Model) -> str:
        paths = self.models[model]
        _check_once(paths)
        for path in paths:
            _check_count(path)
        return flags.Files.of(self._called(model), paths)

    def _called(self, model: _Model) -> str:
        """The name of a model; with as much of its folder as tells its runs apart."""
        runs = [other.folder.parts for other in self.models if other.name == model.name]
        parts = model.folder.parts
        for i in range(len(parts)):
            ends = {(run[-i:] if i else ()) for run in runs}
            if len(ends) == len(runs):
                return "/".join([*(parts[-i:] if i else ()), model.name])
        return model.name


SAME_ANSWERS = (
    "per_instance_stats.json",
    "display_predictions.json",
    "scenario_state.json",
)
"""Files of a run of HELM, that which is nearest to its own numbers first."""


def _each_run_once(looked_into: list[_LookedInto]) -> list[_LookedInto]:
    """All files, but one for each run of HELM, which writes each answer several times.

    It is one with scores of all options, if all runs of the model have one.
    """
    of_runs = [
        (path, model)
        for path, model in looked_into
        if isinstance(model, _Model) and path.name in SAME_ANSWERS
    ]
    whole = {path.parent for path, model in of_runs if model.has_options}
    mixed = {model for path, model in of_runs if path.parent not in whole}
    written = [
        (not model.has_options or model in mixed, SAME_ANSWERS.index(path.name), path)
        for path, model in of_runs
    ]
    kept: dict[Path, Path] = {}
    for _, _, path in sorted(written):
        kept.setdefault(path.parent, path)
    again = {path for _, _, path in written if kept[path.parent] != path}
    return [(path, model) for path, model in looked_into if path not in again]


def _check_name(path: Path) -> None:
    """Refuse a file that is called as samples are, but does not begin as they do."""
    from calibrant.files._sources import FileError

    if path.name.startswith("samples_"):
        told = "is called as samples of lm-evaluation-harness are, but its first line is none"
        raise FileError(path, f"{told}; write it again, or take it out of the folder.")


def _check_once(paths: Sequence[Path]) -> None:
    """Refuse two runs of a task in one folder, of which each question would count twice."""
    from calibrant.files._lm_eval import DATE, task_of
    from calibrant.files._sources import FileError

    seen: dict[str, Path] = {}
    for path in (path for path in paths if DATE.search(path.stem)):
        other = seen.setdefault(task_of(path), path)
        if other != path:
            twice = f"is of the same task as {other.name}: questions would count twice"
            raise FileError(path, f"{twice}; keep one of them.")


SUMMARY = "results"
"""How the file begins in which lm-evaluation-harness sums up a run."""


def _check_count(path: Path) -> None:
    """Refuse samples that are fewer or more than the summary of their run says."""
    from calibrant.files._lm_eval import DATE, task_of
    from calibrant.files._sources import FileError

    date = DATE.search(path.stem)
    summary = path.with_name(f"{SUMMARY}{date[0]}.json") if date else path
    if summary == path or not summary.is_file():
        return
    try:
        said = json.loads(summary.read_text("utf-8"))["n-samples"]
        count = int(said[task_of(path)]["effective"])
    except (OSError, ValueError, LookupError, TypeError):  # of another version
        return
    if (found := _samples_in(path)) != count:
        lost = f"has {found} samples, and {summary.name} says {count}; it is damaged"
        filters = ", or has lines of several filters" if found > count else ""
        raise FileError(path, f"{lost}{filters}, or take {summary.name} away.")


def _samples_in(path: Path) -> int:
    """Lines with anything in them."""
    with path.open("rb") as file:
        pieces = iter(lambda: file.readline(1 << 24), b"")
        return sum(1 for line in pieces if line.strip())


def _texts_in(file: str) -> Sequence[Path]:
    """The files of JSON that an argument means; none if it means something else."""
    from calibrant.files._open import FORMAT_OF, files_meant, suffix_of
    from calibrant.files._read import WITH_OPTIONS
    from calibrant.files._sources import FileError

    if file == flags.STDIN:
        return ()
    try:
        inside = Path(file).is_dir()  # harnesses make folders in the one they are given
        found = sorted(Path(file).rglob("*")) if inside else files_meant(file)
    except (FileError, OSError):  # names with commas between them, or an error to come
        return ()
    formats = {path: FORMAT_OF.get(suffix_of(path)) for path in found}
    named = [p for p, known in formats.items() if known and known.name in WITH_OPTIONS]
    return [path for path in named if path.is_file() and path.name[0] not in "._"]


def _model_of(path: Path, file: str) -> _Model | Exception | None:
    """The model a harness wrote a file of; why it cannot be used; None for other files."""
    from calibrant.files._open import open_all
    from calibrant.files._sources import TASK, FileError, Request
    from calibrant.files._token_logprobs import TOKEN_LOGPROBS

    folder, given = path.resolve().parent, Path(file)
    own = _Model(folder.name, folder.parent)
    try:
        with closing(open_all(path)) as opened:
            source = next(opened)
            named = source.format == TOKEN_LOGPROBS.name and not given.is_dir()
            if named or not source.roles:  # those of an API are called what users say
                return None
            if "model" not in source.names:
                return own
            names = tuple(name for name in ("model", TASK) if name in source.names)
            first = next(source.blocks(Request(names, 1, most=1)))
            run = given.resolve() if given.is_dir() else Path()
            called, task = str(first["model"][0]), str(first.get(TASK, [""])[0])
            whole = "logits" in source.roles
            return _Model(called, run, task, whole) if called else own
    except FileError as error:
        return None if error.of_no_harness else error


def _is_damage(model: _Model | Exception | None) -> TypeGuard[Exception]:
    """Whether a file cannot be read, and not for want of probabilities."""
    from calibrant.files._harness_base import NoProbabilitiesError

    return isinstance(model, Exception) and not isinstance(model, NoProbabilitiesError)
