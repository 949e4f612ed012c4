"""``calibrant curves``: which examples to trust, and what decisions gain; one figure each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from calibrant.cli import _flags as flags
from calibrant.cli import _output as out
from calibrant.cli._harness import models_in

KINDS = {
    "risk-coverage": ("risk_coverage", "risk_coverage"),
    "decision": ("decision_curve", "decision_curve"),
    "murphy": ("murphy", "murphy"),
    "cumulative": ("cutoff_error", "cumulative_differences"),
    "triptych": ("murphy", "triptych"),
    "clinical": ("clinical", ""),
}
"""What is asked for: the function that finds it, and the figure that draws it."""

FIGURES, DATA = (".png", ".svg", ".pdf"), (".csv", ".json")


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@flags.valued(
    "--kind",
    default="risk-coverage",
    type=click.Choice([*KINDS]),
    help="What to look at: errors left among the most confident, net benefit, costs "
    "by threshold, cumulative differences, three panels at once, or a clinical table.",
)
@flags.path_option(
    "-o", "--output", help="Write a figure (.png, .svg, .pdf) or numbers (.csv, .json)."
)
@click.option(
    "--thresholds",
    help="Thresholds of --kind decision or murphy, separated by commas: 0.01,0.05 or 1%,5%.",
)
@flags.model_names
@flags.roles("group")
@flags.target
@flags.valued("--level", default=0.95, help="Confidence level of the intervals.")
@flags.output_options
@flags.clean_errors
def curves(
    files: tuple[str, ...],
    kind: str,
    output: Path | None,
    thresholds: str | None,
    names: str | None,
    level: float,
    *,
    force: bool,
    as_json: bool,
    quiet: bool,
    **said: Any,
) -> None:
    """Draw curves of one model per FILE: whom to trust, and what acting gains.

    \b
    Example:
      calibrant curves before.npz after.npz --output risk.png
      calibrant curves predictions.npz --kind decision --output benefit.pdf
      calibrant curves predictions.npz --kind decision --thresholds 0.01,0.02,0.05
      calibrant curves predictions.npz --kind clinical
    """
    files = tuple(models_in(files, quiet=quiet, count_copies=said["count_copies"]))
    out.check_outputs(output, reads=files, force=force)
    _check_suffix(output, kind)
    at = _thresholds(thresholds, kind)
    options = {**AS_USUAL, **said, "group": "", "level": level, "quiet": quiet}
    with flags.steps("evaluate", quiet=quiet) as progress:
        named = flags.models_of(files, names, options)
        models = out.evaluate_models(named, progress)
    found = [_find(kind, *x, level, at) for x in zip(named, models, strict=True)]
    written = "" if output is None else _write(kind, found, models, output)
    if as_json:
        click.echo(json.dumps([x.to_dict() for x in found], allow_nan=False))
    elif not quiet:
        told = [_in_words(kind, *x) for x in zip(found, models, strict=True)]
        click.echo("\n\n".join([*told, *([written] if written else [])]))


PANELS = {"reliability (CORP)": ("mcb", "dsc", "unc"), "ROC": ("auroc",)}
"""Panels of the triptych beside the Murphy diagram, and the numbers that are in them."""


def _in_words(kind: str, found: Any, ev: Any) -> str:
    """What is printed of a model: of the triptych, the numbers of all three panels."""
    from calibrant._base.measures import MEASURES
    from calibrant._base.text import with_interval
    from calibrant.table._layout import lifted

    lines = [str(found)]
    for panel, keys in PANELS.items() if kind == "triptych" else ():
        known = {
            MEASURES[key].label: ev.metrics[key] for key in keys if key in ev.metrics
        }
        lines += ["", f"  {panel}"] if known else []
        for label, x in known.items():
            why = "  biased up by noise" if lifted(x) else ""
            lines.append(f"    {label:<11} {with_interval(x)}{why}")
    return "\n".join(lines)


AS_USUAL: dict[str, Any] = {
    "divergence": "brier",
    "bins": 15,
    "kernel": "gaussian",
    "preset": None,
    "bandwidth": "auto",
    "seed": 0,
}
"""Options of an evaluation that no curve depends on."""


def _check_suffix(output: Path | None, kind: str) -> None:
    """Refuse a format that is not written, or that this has not."""
    if output is None:
        return
    known = {"clinical": DATA, "triptych": FIGURES}.get(kind, FIGURES + DATA)
    if output.suffix.lower() not in known:
        raise ValueError(
            f"{output}: --kind {kind} is written as {', '.join(known)}; give the file a "
            "name that ends so."
        )


def _thresholds(said: str | None, kind: str) -> dict[str, list[float]]:
    """What was said of thresholds, as an option of the curve."""
    if said is None:
        return {}
    if kind not in ("decision", "murphy"):
        raise ValueError("--thresholds goes with --kind decision or --kind murphy.")
    try:
        return {"thresholds": [flags.fraction(x) for x in said.split(",")]}
    except ValueError:
        rule = "--thresholds must be numbers separated by commas, such as 0.01,0.05 or 1%,5%"
        raise ValueError(f"{rule}, got {said!r}.") from None


def _find(
    kind: str, model: flags.Model, ev: Any, level: float, more: dict[str, Any]
) -> Any:
    """What the curve's function says of a model, or of the sketch that it was made of."""
    import calibrant

    if (sketch := out.sketch_in(flags.paths_of(model.file))) is not None:
        if kind == "triptych":
            told = "is a sketch, which has sums, and --kind triptych needs the rows"
            raise ValueError(f"{model.file} {told}.")
        ev, more = sketch, {**more, "name": model.name}
    return getattr(calibrant, KINDS[kind][0])(ev, level=level, **more)


def _write(kind: str, found: list[Any], models: list[Any], output: Path) -> str:
    """Write a figure, or the numbers behind it, and say so."""
    from calibrant._base.write import write_text

    suffix = output.suffix.lower()
    if suffix == ".json":
        write_text(output, json.dumps([x.to_dict() for x in found], allow_nan=False))
    elif suffix == ".csv":
        write_text(output, _as_csv(found))
    else:
        _draw(kind, found, models).figure.savefig(output)
    return f"Wrote {output}"


def _draw(kind: str, found: list[Any], models: list[Any]) -> Any:
    from calibrant import plot

    if kind == "triptych":
        return plot.triptych(models)[0]
    return getattr(plot, KINDS[kind][1])(found)


def _as_csv(found: list[Any]) -> str:
    """One row per place and model."""
    import csv
    from io import StringIO

    text = StringIO()
    write = csv.writer(text, lineterminator="\n")
    for number, one in enumerate(found):
        columns = _columns(one)
        if not number:
            write.writerow(["model", *columns])
        rows = zip(*columns.values(), strict=True)
        write.writerows([one.name, *row] for row in rows)
    return text.getvalue()


def _columns(found: Any) -> dict[str, list[Any]]:
    """What is in the file of numbers: the columns of a curve, or the table of measures."""
    plain = found.to_dict()
    if hasattr(found, "estimates"):
        rows = [plain[key] for key in found.estimates]
        ends = [row["interval"] or ["", ""] for row in rows]
        low, high = ([pair[side] for pair in ends] for side in (0, 1))
        values = [row["value"] for row in rows]
        return {
            "measure": [*found.estimates],
            "value": values,
            "low": low,
            "high": high,
        }
    return {name: x for name, x in plain.items() if isinstance(x, list)}
