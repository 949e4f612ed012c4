"""``calibrant recalibrate``: learn on one file, apply to another, keep what was learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from calibrant.cli._flags import (
    clean_errors,
    paths_of,
    refuse_to_replace,
    role_options,
    roles_of,
    steps,
)


@click.command()
@click.option("--fit", metavar="FILE", help="Predictions to learn from.")
@click.option("--load", "saved", metavar="JSON", help="Or a recalibrator saved before.")
@click.option(
    "--method", default="temperature", show_default=True, help="Method to fit."
)
@click.option("--apply", "new", metavar="FILE", help="Predictions to recalibrate.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write them here, as .npz."
)
@click.option(
    "--save", type=click.Path(path_type=Path), help="Write the recalibrator, as JSON."
)
@role_options
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
@clean_errors
def recalibrate(
    fit: str | None,
    saved: str | None,
    method: str,
    new: str | None,
    output: Path | None,
    save: Path | None,
    *,
    force: bool,
    quiet: bool,
    **said: Any,
) -> None:
    """Fit a recalibrator, or load one, and apply it.

    The labels of --apply are copied if there are any; they are not needed.

    \b
    Example:
      calibrant recalibrate --fit calibration.npz --apply test.npz --output out.npz
      calibrant recalibrate --fit calibration.npz --save temperature.json
      calibrant recalibrate --load temperature.json --apply test.npz --output out.npz
    """
    from calibrant.recalibration._estimator import load

    if (fit is None) == (saved is None):
        raise click.UsageError("say where it comes from: one of --fit and --load.")
    if (new is None) != (output is None):
        raise click.UsageError("--apply and --output go together.")
    for path in (output, save):
        refuse_to_replace(path, force=force)
    with steps("recalibrate", quiet=quiet) as progress:
        fitted = load(saved) if saved else _fit(str(fit), method, said, progress)
        if save is not None:
            fitted.save(save, force=force)
        if new is not None and output is not None:
            _apply(fitted, new, output, said)
    if not quiet:
        _say(fitted, output, save)


def _fit(file: str, method: str, said: dict[str, Any], progress: Any) -> Any:
    from calibrant._verbs.study import recalibrator_named

    found = _read(file, roles_of(said))
    recalibrator = recalibrator_named(method, found.kind, found.classes)
    return recalibrator.fit(
        found.scores, found.y, found.sample_weight, progress=progress
    )


def _apply(fitted: Any, file: str, output: Path, said: dict[str, Any]) -> None:
    from calibrant._base.write import write_npz

    found = _read(file, roles_of(said, unlabelled=True))
    if found.kind != fitted.scores:
        raise ValueError(
            f"{file} holds {found.kind}, and the recalibrator was fitted on "
            f"{fitted.scores}."
        )
    arrays = {"probs": fitted.predict_proba(found.scores)}
    if found.y is not None:
        arrays["labels"] = found.y
    for name in ("sample_weight", "group"):
        if (column := getattr(found, name)) is not None:
            arrays[name] = column
    write_npz(output, arrays)


def _read(file: str, roles: Any) -> Any:
    from calibrant.files._read import read

    found = read(paths_of(file), roles)
    if found.pairs:
        raise ValueError(
            f"{file} holds confidences of one class only; recalibration needs logits or "
            "probabilities of all classes."
        )
    return found


def _say(fitted: Any, output: Path | None, save: Path | None) -> None:
    click.echo(f"{fitted!r}")
    for name in fitted.learned:
        value = getattr(fitted, name)
        if isinstance(value, float | int | bool):
            click.echo(f"  {name.rstrip('_')}: {value:.6g}")
    for note in fitted.notes_:
        click.echo(f"  note: {note}")
    for path in (output, save):
        if path is not None:
            click.echo(f"wrote {path}")
