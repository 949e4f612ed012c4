"""Findings: what a reader should know before quoting a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from acumen.encoding import number
from acumen.records import Record

SEVERITIES = ("serious", "warning", "note")
"""A number misleads as it stands; it does unless one knows; it is good to know."""


@dataclass(frozen=True, slots=True)
class Finding(Record):
    """One thing an audit found.

    Attributes
    ----------
    code : str
        Stable name of the rule, such as ``"trivial-confidence"``.
    severity : {"serious", "warning", "note"}
        How much it matters.
    models : tuple of str
        Names of the models it is about.
    text : str
        What was found, in a sentence.
    evidence : dict of str to float
        The numbers behind it.
    advice : str
        What to do about it.

    Examples
    --------
    >>> import acumen as ac
    >>> first = ac.evaluate_pairs([1, 0, 1, 1] * 20, [0.75] * 80).audit()[0]
    >>> first.code, first.severity
    ('trivial-confidence', 'serious')
    """

    code: str
    severity: str
    models: tuple[str, ...]
    text: str
    evidence: Mapping[str, float]
    advice: str

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Restore what ``to_dict`` gave."""
        evidence = {name: number(value) for name, value in given["evidence"].items()}
        models = tuple(given["models"])
        return cls(**{**given, "evidence": evidence, "models": models})

    def __str__(self) -> str:
        return f"{self.severity}: {self.text} {self.advice} [{self.code}]"


def listed(given: Sequence[str]) -> str:
    """Words in a sentence.

    Examples
    --------
    >>> listed(["HB"]), listed(["HB", "IR", "MRR"])
    ('HB', 'HB, IR and MRR')
    """
    if len(given) == 1:
        return given[0]
    return f"{', '.join(given[:-1])} and {given[-1]}"
