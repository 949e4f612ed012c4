"""``calibrant monitor``: the same model from period to period, and an alarm."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from calibrant._base.checks import one_line
from calibrant._base.records import Estimate
from calibrant._base.write import locked
from calibrant.cli import _flags as flags
from calibrant.cli import _output as out
from calibrant.cli._compare import only
from calibrant.cli._sketch import (
    Saves,
    check_target,
    gather,
    say_skipped,
)
from calibrant.files._sources import text_of

ALARM = "alarm"
"""The condition of --fail-if that is no number."""


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option(
    "--period",
    metavar="NAME",
    help="Column of dates, or of names in order of time. [default: one period per file]",
)
@click.option(
    "--every",
    type=click.Choice(["day", "week", "month", "quarter", "year"]),
    help="Put dates together.",
)
@flags.path_option(
    "--state",
    help="Keep sums by period in this .npz file: it is read, added to, and saved.",
)
@click.option(
    "--reference", metavar="A,B", help="Periods to compare with. [default: first]"
)
@flags.valued(
    "--against",
    default="calibration",
    type=click.Choice(["calibration", "reference"]),
    help="Alarm if no longer calibrated, or if no longer as in the reference.",
)
@flags.valued(
    "--alpha",
    default="0.01",
    metavar="NUMBER",
    callback=flags.as_fraction,
    help="Largest probability of a false alarm, ever: 0.01 or 1%.",
)
@flags.valued(
    "--tolerance",
    default="0",
    metavar="NUMBER",
    callback=flags.as_fraction,
    help="How far accuracy may be off: 0.02 or 2%.",
)
@flags.page
@click.option(
    "--name",
    "called",
    help="Name of the model. [default: the name of the state, or of the only file]",
)
@flags.roles("group")
@flags.evaluation_options
@click.option(
    "--fail-if",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="Exit with code 3 on 'alarm', or if it holds for the last period: "
    "'brier > 0.2', 'ece.upper > 5%'. Repeatable.",
)
@flags.output_options
@flags.clean_errors
def monitor(
    files: tuple[str, ...],
    state: Path | None,
    output: Path | None,
    called: str | None,
    *,
    force: bool,
    **said: Any,
) -> None:
    """Follow a model over time: trend, change, alarm.

    Each FILE is a period of its own, or --period names a column. With --state only what
    is new need be given, and no file is counted twice (a copy is refused); without FILEs
    the state alone is looked at. However often one looks, a false alarm has a probability of --alpha at most.

    \b
    Example:
      calibrant monitor 2024-*.csv --fail-if alarm
      calibrant monitor new.parquet --period date --every week --state risk.npz -o risk.html
    """
    from calibrant._verbs.monitor import Watched
    from calibrant._verbs.monitor import monitor as follow

    if files and said["every"] is not None and said["period"] is None:
        raise click.UsageError(
            "--every puts dates of a column together: name it by --period."
        )
    gates = _gates(said)
    out.check_outputs(output, reads=files, force=force)
    out.check_suffix(output, ".html", ".htm")
    out.check_suffix(state, ".npz")
    sketch, back = _sums(files, state, said)
    reference = said["reference"] and said["reference"].split(",")
    own = {name: said[name] for name in ("against", "alpha", "tolerance")}
    options = flags.evaluation_of(said)
    del options["target"]
    with flags.about(*files, *([str(state)] if state else [])):
        found = follow(
            sketch if back is None else Watched(sketch, back),
            name=called or _name_of(files, state),
            reference=reference,
            **own,
            **options,
        )
    verdicts = [
        _verdict(gate, found, len(sketch.kind.classes) or None) for gate in gates
    ]
    failed, written = out.failed(verdicts), ""
    if output is not None:
        new = [
            x for gates in failed.values() for x in gates if x not in found.sentences
        ]
        written = f"report: {found.report(output, failed=new, force=force)}"
    out.print_result(found, written, said, **failed)
    out.trip(verdicts)


def _gates(said: Mapping[str, Any]) -> list[Any]:
    """The conditions; that of the alarm is no number."""
    read = partial(out.Gate.read, divergence=said["divergence"])
    gates = [x if x == ALARM else read(x) for x in said["conditions"]]
    for gate in gates:
        if gate != ALARM:
            gate.check_end(said)
    return gates


def _name_of(files: Sequence[str], state: Path | None) -> str:
    if state is not None:
        return state.stem
    return flags.names_of(files, None)[0] if len(files) == 1 else "model"


def _sums(
    files: Sequence[str], state: Path | None, said: Mapping[str, Any]
) -> tuple[Any, str | None]:
    """The sketch whose groups are periods: that of the state, with what is new.

    With it, which clusters came back, if all examples were seen on the way.
    """
    from calibrant._sketch.sketch import Sketch

    there = state is not None and state.exists()
    if not files and not there:
        raise click.UsageError("give FILEs, or a --state that exists.")
    if not files:
        _check_nothing_read(said)
    out.check_outputs(state, reads=files, force=True)
    with locked(state) if state is not None else nullcontext():
        found = Sketch.load(state) if state and there else Sketch(target=said["target"])
        check_target(found, said["target"])
        _check_form(found.groups, said["every"])
        clusters = None if found.rows else _Clusters()
        named = _alike(found.groups, _in_periods(said))
        skipped = gather(
            files,
            flags.roles_of({**said, "group": said["period"] or ""}),
            found,
            save=Saves(state, replace=there) if state else lambda _: None,
            since=state.stat().st_mtime if state and there else math.inf,
            quiet=said["quiet"],
            watch=named if clusters is None else lambda rows: clusters.add(named(rows)),
        )
    if not said["quiet"]:
        say_skipped(skipped)
        if state is None and len(found.groups) == 1 and said["period"] is None:
            _say_date(files[0], said)
    return found, None if clusters is None else clusters.back


DATE = re.compile(r"(?i)(.*_)?(date|datetime|day|week|month|quarter|year|timestamp)")
"""Names of columns that say when an example was."""


def _say_date(file: str, said: Mapping[str, Any]) -> None:
    """A column that may tell periods apart, where there is one of all examples."""
    from calibrant.files._open import open_all

    names = next(open_all(flags.paths_of(file), said["sep"])).names
    if (name := next(filter(DATE.fullmatch, names), None)) is not None:
        told = f"all examples are one period; if column {name!r} says when they were"
        click.echo(f"note: {one_line(f'{told}, pass --period {name}')}", err=True)


def _check_nothing_read(said: Mapping[str, Any]) -> None:
    """Refuse what is said of columns and of reading where there is a state alone."""
    for name in ("period", *flags.ROLES, *flags.READING):
        if said.get(name):
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(
                "without FILEs there is only the --state, a sketch, which has no columns "
                f"and was read already; drop {option}, or give the FILEs it is for."
            )


MOST_WATCHED = 1_000_000
"""Clusters beyond which it is not known whether they come back."""


class _Clusters:
    """Periods of clusters: evidence of periods that share one must not be multiplied."""

    def __init__(self) -> None:
        self.first: dict[int, str] = {}
        self.again: set[int] = set()
        self.example: tuple[str, tuple[str, str]] | None = None

    def add(self, found: Any) -> Any:
        """See some rows, and pass them on."""
        from calibrant._inputs.predictions import hash_names

        if found.cluster is None or len(self.first) > MOST_WATCHED:
            return found
        numbers = hash_names(found.cluster)
        for row in _each_pair(numbers, found.group):
            number, period = int(numbers[row]), str(found.group[row])
            before = self.first.setdefault(number, period)
            if before != period:
                self.again.add(number)
                name = str(text_of(found.cluster[row : row + 1])[0])
                self.example = self.example or (name, (before, period))
        return found

    @property
    def back(self) -> str | None:
        """Which came back, in words; None if there are too many to know."""
        from calibrant._verbs.monitor import came_back

        if len(self.first) > MOST_WATCHED:
            return None
        if self.example is None:
            return ""
        name, periods = self.example
        who = f"cluster {one_line(name)!r}"
        return came_back(who, sorted(periods), len(self.again))


def _each_pair(*columns: Any) -> list[int]:
    """The first row of each pair of values, in order."""
    import numpy as np

    codes = [np.unique(x, return_inverse=True)[1] for x in columns]
    return sorted(np.unique(np.stack(codes), axis=1, return_index=True)[1].tolist())


def _alike(
    periods: Iterable[str], in_periods: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    """The same, which refuses rows of another kind of period than those of the state."""
    forms = {_form(x): x for x in periods}
    kinds = {form: kind for kind, form in FORMS.items()}

    def checked(found: Any) -> Any:
        named = in_periods(found)
        for period in dict.fromkeys(map(str, named.group.tolist())):
            if len(forms) == 1 and kinds.keys() & forms and _form(period) not in forms:
                form, example = next(iter(forms.items()))
                raise ValueError(
                    f"the periods of the state are {kinds[form]}s, such as {example!r}, and "
                    f"{period!r} is none; give the same --period and --every as before, or "
                    "begin another state."
                )
        return named

    return checked


def _form(period: str) -> str:
    return re.sub(r"\d", "0", period)


def _in_periods(said: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Give rows the name of their period: that of their date, or of their file."""
    import numpy as np

    from calibrant._base.checks import RowError
    from calibrant._verbs.monitor import names_of_periods
    from calibrant.files._sources import FileError

    def name(found: Any) -> Any:
        if said["period"] is None:
            stem = flags.stem_of(str(found.path))
            return replace(found, group=np.full(len(found), stem))
        if said["drop_missing"]:
            found = _with_period(found, said)
        try:
            return replace(found, group=names_of_periods(found.group, said["every"]))
        except RowError as error:
            raise FileError(found.path, str(found.in_file(error))) from error

    return name


def _with_period(found: Any, said: Mapping[str, Any]) -> Any:
    """The rows that have a period; how many have none is said."""
    import numpy as np

    from calibrant._verbs.monitor import MISSING

    lacks = np.isin(text_of(found.group).astype(str), MISSING)
    if lacks.any() and not said["quiet"]:
        what = f"{int(lacks.sum()):,} of {len(found):,} examples without a period"
        click.echo(f"note: {one_line(f'{found.path}: dropped {what}')}", err=True)
    return only(found, ~lacks) if lacks.any() else found


FORMS = {"day": "0000-00-00", "week": "0000-W00", "month": "0000-00"}
FORMS |= {"quarter": "0000-Q0", "year": "0000"}


def _check_form(periods: Iterable[str], every: str | None) -> None:
    """Refuse to mix weeks with months in one state."""
    strange = [x for x in periods if every and _form(x) != FORMS[every]]
    if strange:
        raise ValueError(
            f"the state has the period {strange[0]!r}, which is no {every}; give the same "
            "--every as before, or begin another state."
        )


def _verdict(gate: Any, found: Any, classes: int | None) -> str | None:
    """Why a condition holds, or None."""
    if gate != ALARM:
        gate.check_scale(found.target, classes, found.divergence)
        last, value = (
            found.periods[-1],
            found.trend.get(gate.key, [Estimate(math.nan)])[-1],
        )
        out.say_doubt(gate.doubt(last, float(value)))
        return gate.verdict(last, value, gate.key, found.level)
    if found.alarm is None or found.alarm.period is not None:
        return found.sentences[0]
    return None
