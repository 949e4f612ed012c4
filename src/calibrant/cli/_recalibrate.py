"""``calibrant recalibrate``: learn on one file, apply to another, keep what was learned."""

from __future__ import annotations

import re
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

from calibrant._base.checks import one_line
from calibrant.cli import _flags as flags
from calibrant.cli._output import check_outputs, check_suffix, read_vectors


@click.command()
@click.option("--fit", metavar="FILE", help="Predictions to fit on, with labels.")
@click.option("--load", "saved", metavar="JSON", help="Or a recalibrator saved before.")
@flags.valued("--method", default="temperature", help="Method to fit.")
@click.option("--apply", "new", metavar="FILE", help="Predictions to recalibrate.")
@flags.path_option(
    "-o", "--output", help="Write the recalibrated probabilities to this .npz file."
)
@flags.path_option("--save", help="Write the recalibrator to this JSON file.")
@flags.roles("group")
@flags.force
@flags.quiet
@flags.clean_errors
def recalibrate(
    fit: str | None,
    saved: str | None,
    method: str,
    new: str | None,
    output: Path | None,
    save: Path | None,
    *,
    force: bool,
    **said: Any,
) -> None:
    """Fit a recalibrator, or load one, and apply it.

    The file given to --apply needs no labels. They are copied if there are any, and so are
    ids and all other columns.

    \b
    Example:
      calibrant recalibrate --fit calibration.npz --apply test.npz --output out.npz
      calibrant recalibrate --fit calibration.npz --save temperature.json
      calibrant recalibrate --load temperature.json --apply test.npz --output out.npz
    """
    if (fit is None) == (saved is None):
        raise click.UsageError("pass one of --fit and --load.")
    said_method = click.get_current_context().get_parameter_source("method")
    if saved is not None and said_method is not ParameterSource.DEFAULT:
        raise click.UsageError("--method is for --fit; what --load reads has its own.")
    if (new is None) != (output is None):
        raise click.UsageError("--apply and --output go together.")
    check_outputs(output, save, reads=(fit, saved, new), force=force)
    check_suffix(output, ".npz")
    check_suffix(save, ".json")
    quiet = said["quiet"]
    with flags.steps("recalibrate", quiet=quiet) as progress:
        fitted = _load(saved) if saved else _fit(str(fit), method, said, progress)
        if save is not None:
            fitted.save(save, force=force)
        if new is not None and output is not None:
            _apply(fitted, new, output, said, force=force)
    if not quiet:
        _say(fitted, output, save)


def _load(saved: str) -> Any:
    from calibrant.recalibration._estimator import load

    if not Path(saved).is_file():
        raise ValueError(f"there is no file {saved}; --save writes a recalibrator.")
    return load(saved)


def _fit(file: str, method: str, said: dict[str, Any], progress: Any) -> Any:
    from calibrant._base.checks import check_choice
    from calibrant._verbs.study import METHODS, near_method, recalibrator_named
    from calibrant.recalibration._estimator import FitWarning

    if method not in METHODS and (near := near_method(method)):
        told = f"must be the name of a method, got {method!r}; did you mean {near!r}?"
        raise ValueError(f"--method {told}")
    check_choice(method, "--method", tuple(METHODS))
    roles = flags.roles_of(said, group="")
    found = read_vectors(file, roles, "recalibration", quiet=said["quiet"])
    recalibrator = recalibrator_named(method, found.kind, found.classes)
    more = {} if found.frequency is None else {"frequency": found.frequency}
    with flags.about(file), warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # its notes are printed
        return recalibrator.fit(
            found.scores, found.y, found.sample_weight, progress=progress, **more
        )


def _apply(
    fitted: Any, file: str, output: Path, said: dict[str, Any], *, force: bool
) -> None:
    from calibrant._base.write import write_npz

    roles = flags.roles_of(
        said, group="", unlabelled=True, with_id=True, with_others=True
    )
    found = read_vectors(file, roles, "recalibration", quiet=said["quiet"])
    if found.kind != fitted.scores:
        raise ValueError(
            f"{file} holds {found.kind}, and the recalibrator was fitted on "
            f"{fitted.scores}."
        )
    with flags.about(file):
        probs = fitted.predict_proba(found.scores)
    alone = found.scores.size == len(found)  # one column in, one column out
    arrays = {"probs": probs[:, 1] if alone else probs}
    if found.y is not None:
        arrays["labels"] = found.y
    if found.classes is not None:
        arrays["classes"] = np.array(found.classes)
    for name in ("sample_weight", "frequency", "cluster", "group"):
        if (column := getattr(found, name)) is not None:
            arrays[name] = column
    ids = {} if found.ids is None else {found.plan.id: found.ids}
    for name, column in (ids | dict(found.others)).items():
        arrays.setdefault(name, _as_array(column))
    write_npz(output, arrays, force=force)


def _as_array(column: Any) -> Any:
    """A column that is no array of objects: whole numbers, numbers, or text as it was."""
    if column.dtype.kind in "biuf":
        return column
    text = np.array(["" if x is None else str(x) for x in column.tolist()])
    if any(re.match(r"0\d", x) for x in text.tolist()):  # a code such as 007
        return text
    for kind in (np.int64, np.float64):
        with suppress(ValueError, OverflowError):
            return text.astype(kind)
    return text


def _say(fitted: Any, output: Path | None, save: Path | None) -> None:
    click.echo(f"{fitted!r}")
    for name in fitted.learned:
        value = getattr(fitted, name)
        word = name.rstrip("_").replace("_", " ")
        if isinstance(value, bool):
            click.echo(f"  {word}: {'yes' if value else 'no'}")
        elif isinstance(value, float | int):
            click.echo(f"  {word}: {value:.6g}")
    for note in fitted.notes_:
        click.echo(f"  note: {note}")
    for path in (output, save):
        if path is not None:
            click.echo(f"wrote {one_line(str(path))}")
