"""Which of the files given are one model: those a harness wrote for it, task by task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import click

from calibrant._base.checks import one_line
from calibrant.cli import _flags as flags


def models_in(files: Iterable[str], *, quiet: bool) -> list[str]:
    """Files, where those that a harness wrote for one model are put together.

    The model is what a file says or else, as lm-evaluation-harness has it, the folder.
    Files of a harness without probabilities are left out, which is said.
    """
    sorted_ = _Sorted()
    for file in files:
        sorted_.add(file)
    if sorted_.left_out and not sorted_.names:
        raise sorted_.left_out[0]
    for problem in sorted_.left_out if not quiet else ():
        click.echo(f"note: left out: {one_line(str(problem))}", err=True)
    return sorted_.found()


@dataclass
class _Sorted:
    """Files by model, in the order in which models come."""

    names: list[str] = field(default_factory=list)
    models: dict[str, list[Path]] = field(default_factory=dict)
    left_out: list[Exception] = field(default_factory=list)

    def add(self, file: str) -> None:
        """One more argument, which may be a folder or a pattern."""
        looked_into = [(path, _model_of(path)) for path in _texts_in(file)]
        if all(model is None for _, model in looked_into):
            self.names.append(file)
            return
        for path, model in looked_into:
            if not isinstance(model, str):
                self.left_out.append(model or ValueError(f"{path}: of no harness."))
                continue
            if model not in self.models:
                self.names.append(model)
            self.models.setdefault(model, []).append(path)

    def found(self) -> list[str]:
        """Models and other files."""
        return [self._joined(name) for name in self.names]

    def _joined(self, name: str) -> str:
        paths = self.models.get(name)
        return name if paths is None else flags.Files.of(name, paths)


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


def _model_of(path: Path) -> str | Exception | None:
    """The model a harness wrote a file of; why it cannot be used; None for other files."""
    from calibrant.files._harness_base import NoProbabilitiesError
    from calibrant.files._open import open_all
    from calibrant.files._sources import FileError, Request

    try:
        with closing(open_all(path)) as opened:
            source = next(opened)
            if not source.roles:
                return None
            if "model" not in source.names:
                return path.resolve().parent.name
            first = next(source.blocks(Request(("model",), 1, most=1)))
            return str(first["model"][0]) or path.resolve().parent.name
    except NoProbabilitiesError as error:
        return error
    except FileError:  # the reader says what is wrong
        return None
