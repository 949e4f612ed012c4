"""Gates for continuous integration: conditions on a model, and what trips them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, TypeVar

import click

from acumen.measures import MEASURES
from acumen.results import Evaluation

Command = TypeVar("Command", bound=Callable[..., Any])
TRIPPED = 3
FORM = re.compile(r"\s*(\w+?)(\.upper|\.lower)?\s*(>=|<=|>|<)\s*([-+.\deE]+)\s*")
HOLDS: dict[str, Callable[[float, float], bool]] = {
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
}


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


def gate_options(command: Command) -> Command:
    """Add the options of gates."""
    command = click.option(
        "--max-ece-upper",
        type=float,
        metavar="X",
        help="The same as --fail-if 'ece.upper>X'.",
    )(command)
    return click.option(
        "--fail-if",
        "conditions",
        multiple=True,
        metavar="CONDITION",
        help="Exit with code 3 if it holds for a model: 'brier>0.2', 'ece.upper>0.05'.",
    )(command)


def gates_of(conditions: Sequence[str], max_ece_upper: float | None) -> list[Gate]:
    """The gates asked for."""
    gates = [Gate.read(text) for text in conditions]
    if max_ece_upper is not None:
        gates.append(Gate("ece", "upper", ">", max_ece_upper))
    return gates


def judge(gates: Iterable[Gate], models: Iterable[Evaluation]) -> None:
    """Exit with code 3, after saying why, if a model fails a gate."""
    verdicts = [gate.verdict(ev) for gate in gates for ev in models]
    failures = [verdict for verdict in verdicts if verdict is not None]
    for failure in failures:
        click.echo(f"gate: {failure}", err=True)
    if failures:
        raise click.exceptions.Exit(TRIPPED)
