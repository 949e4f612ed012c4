"""From files to evaluations, to what is printed, to the exit code of gates."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calibrant._base.checks import MOST_NAME, one_line
from calibrant._base.comparison import Comparison
from calibrant._base.evaluation import Evaluation
from calibrant._base.measures import MEASURES, sample_size
from calibrant._base.write import target_of
from calibrant._verbs.evaluate import evaluate, evaluate_pairs
from calibrant.cli import _flags as flags

if TYPE_CHECKING:
    from calibrant._sketch.sketch import Sketch

IN_FILES, IN_MEMORY = 1 << 28, 1 << 31
"""Bytes of files, and of what their rows take, up to which all are read at once."""


def evaluate_files(
    files: Sequence[str], names: str | None, said: dict[str, Any], progress: flags.Steps
) -> list[Evaluation]:
    """One model for each file, or for files joined by commas."""
    called, count = flags.names_of(files, names), len(files)
    models = []
    for number, (file, name) in enumerate(zip(files, called, strict=True)):
        with flags.about(file):
            part = progress.part(number, count)
            models.append(_evaluate_file(file, name, said, part))
    return models


def _evaluate_file(
    file: str, name: str, said: Mapping[str, Any], progress: Any
) -> Evaluation:
    """In memory where the file fits, in batches where it does not."""
    from calibrant.files._inspect import repeated_ids
    from calibrant.files._read import batches, memory_of, read

    paths, roles = flags.paths_of(file), flags.roles_of(said)
    options = flags.evaluation_of(said)
    progress(0.0, f"read {name}")
    if (sketch := sketch_in(paths)) is not None:
        if roles.given:
            raise ValueError(
                f"{file} is a sketch, whose rows are read; drop --{roles.given[0]}."
            )
        return evaluate(sketch, **options, name=name)
    if size_of(paths) > IN_FILES or memory_of(paths, roles) > IN_MEMORY:
        from calibrant._verbs.stream import evaluate_batches

        def report(rows: int) -> None:
            progress(0.5, f"{name}: {rows:,} rows")

        return evaluate_batches(
            batches(paths, roles), name=name, progress=report, **options
        )
    found = read(paths, roles)
    progress(0.5, f"evaluate {name}")
    options |= {"group": found.group, "name": name}
    if found.pairs:
        del options["target"]
        ev = evaluate_pairs(**found.arguments, **options)
    else:
        ev = evaluate(**found.arguments, **options)
    return replace(ev, repeated=repeated_ids(paths))


def sketch_in(paths: list[str]) -> Sketch | None:
    """The sketch in a file, if that is what is in it."""
    from calibrant._sketch.storage import is_sketch

    if len(paths) != 1 or not is_sketch(Path(paths[0])):
        return None
    from calibrant._sketch.sketch import Sketch

    return Sketch.load(paths[0])


def size_of(paths: list[str]) -> int:
    """Bytes of all files that are named, matched by a pattern, or in a folder."""
    from calibrant.files._open import find_files

    return sum(path.stat().st_size for path in find_files(paths))


def read_vectors(file: str, roles: Any, who: str) -> Any:
    """Predictions of all classes in a file; `who` needs them."""
    from calibrant.files._read import read

    found = read(flags.paths_of(file), roles)
    if found.pairs:
        raise ValueError(
            f"{file} holds confidences of one class only; {who} needs logits or "
            "probabilities of all classes."
        )
    return found


def check_outputs(
    *outputs: Path | None, reads: Iterable[str | None], force: bool
) -> None:
    """Refuse before any work what must not be written: a folder, a device, an input."""
    given = [path for path in outputs if path is not None]
    targets = {target_of(path): path for path in given}
    for target, path in targets.items():
        if target.exists() and not force:
            raise FileExistsError(f"{path} exists; pass --force to replace it.")
        if any(map(target.samefile, _files_of(reads) if target.exists() else [])):
            raise ValueError(f"{path} is read and written; write to another file.")
    if len(targets) < len(given):
        raise ValueError(f"{given[0]} is two outputs; give each a file of its own.")


def _files_of(reads: Iterable[str | None]) -> Iterator[Path]:
    """The files that arguments mean, as far as there are any."""
    from calibrant.files._open import find_files

    for paths in map(flags.paths_of, filter(None, reads)):
        try:
            yield from find_files(paths)
        except (ValueError, OSError):  # not of a format: a recalibrator, or an error
            yield from filter(Path.exists, map(Path, paths))


def write_page(models: Comparison, output: Path | None, **options: Any) -> str:
    """Write the report, if one was asked for, and say so."""
    if output is None:
        return ""
    from calibrant.report._report import report

    return f"report: {report(models, output, **options)}"


def print_models(models: Comparison, said: Mapping[str, Any], more: str = "") -> None:
    """Print a comparison, its groups, and what more there is to say, or JSON."""
    if said["as_json"]:
        findings = [finding.to_dict() for finding in models.audit()]
        click.echo(json.dumps({**models.to_dict(), "findings": findings}))
        return
    if said["quiet"]:
        return
    from calibrant.report._report import groups_of
    from calibrant.terminal._page import show

    show(models)
    for group, of_group in groups_of(models).items():
        click.echo(f"\ngroup {one_line(group, MOST_NAME)}: {sample_size(of_group[0])}")
        click.echo(Comparison(tuple(of_group)).table("text", footnotes=False))
    if more:
        click.echo(f"\n{more}")


# -- gates for continuous integration: conditions on a model, and what trips them ------

TRIPPED = 3
FORM = re.compile(r"\s*(\w+?)(\.upper|\.lower)?\s*(>=|<=|>|<)\s*([-+.\deE]+)\s*")

HOLDS = {">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le}


@dataclass(frozen=True, slots=True)
class Gate:
    """Fail if a number, or an end of its interval, is on the wrong side of a limit."""

    key: str
    end: str
    sign: str
    limit: float

    @classmethod
    def read(cls, text: str) -> Gate:
        """Read a condition such as ``brier>0.2`` or ``ece.upper>0.05``."""
        form = FORM.fullmatch(text)
        if form is None or form[1] not in MEASURES:
            options = ", ".join(MEASURES)
            raise click.BadParameter(
                f"{text!r} is not a condition such as 'brier>0.2' or 'ece.upper>0.05', "
                f"on one of {options}.",
                param_hint="--fail-if",
            )
        try:
            limit = float(form[4])
        except ValueError:
            raise click.BadParameter(
                f"{form[4]!r} in {text!r} is not a number.", param_hint="--fail-if"
            ) from None
        return cls(form[1], (form[2] or "").lstrip("."), form[3], limit)

    def verdict(self, ev: Evaluation) -> str | None:
        """Why a model fails, or None; a number that is missing fails too."""
        estimate = MEASURES[self.key].of(ev)
        value, what = float(estimate), self.key
        if self.end and not isnan(value):
            if estimate.interval is None:
                return f"{ev.name}: {self.key} has no interval to take the end of."
            value = estimate.interval[self.end == "upper"]
            level = 100 * float(ev.settings["level"])
            what = (
                f"{self.end} end of the {level:g}% interval of {self.key} "
                f"({estimate.method})"
            )
        if isnan(value):
            return f"{ev.name}: {what} is undefined."
        if HOLDS[self.sign](value, self.limit):
            return f"{ev.name}: {what} is {value:.6g}, {self.sign} {self.limit:g}."
        return None


gate_options = flags.together(
    click.option(
        "--fail-if",
        "conditions",
        multiple=True,
        metavar="CONDITION",
        help="Exit with code 3 if it holds for a model: 'brier>0.2', 'ece.upper>0.05'.",
    ),
    click.option(
        "--max-ece-upper",
        type=float,
        metavar="X",
        help="The same as --fail-if 'ece.upper>X'.",
    ),
)


def gates_of(said: Mapping[str, Any]) -> list[Gate]:
    """The gates asked for."""
    gates = [Gate.read(text) for text in said["conditions"]]
    if (most := said["max_ece_upper"]) is not None:
        gates.append(Gate("ece", "upper", ">", most))
    return gates


def judge(gates: Iterable[Gate], models: Iterable[Evaluation]) -> None:
    """Exit with code 3, after saying why, if a model fails a gate."""
    verdicts = [gate.verdict(ev) for gate in gates for ev in models]
    failures = [verdict for verdict in verdicts if verdict is not None]
    for failure in failures:
        click.echo(f"gate: {one_line(failure)}", err=True)
    if failures:
        raise click.exceptions.Exit(TRIPPED)
