"""What the reader of a harness is: how it knows a file, and what it makes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import Any

from calibrant.files._sources import FileError, Numbered, one_line


@dataclass(frozen=True, slots=True)
class Harness:
    """A harness: its name, and how its files are known and read.

    Attributes
    ----------
    name : str
        What its files are called in print.
    knows : callable
        Whether the first object of a file is one of its own.
    rows : callable
        ``rows(path, given)``: flat records of ``given``, which is numbered lines or, of a
        file that is one piece of JSON, all of it.
    roles : dict
        Columns by the role they play, for those that a file has.
    way_out : str
        What gives its answers probabilities, where they have none.
    sure : bool
        Whether all options of a question have scores, so that one of -inf is meant.
    """

    name: str
    knows: Callable[[dict[str, Any]], bool]
    rows: Callable[[Path, Any], Iterator[Numbered]]
    roles: Mapping[str, str] = field(default_factory=dict)
    way_out: str = ""
    sure: bool = False

    def roles_in(self, path: Path, first: Mapping[str, Any]) -> dict[str, str]:
        """Roles of the columns that the first rows have something in."""
        there = {r: n for r, n in self.roles.items() if first.get(n) is not None}
        if not {"logits", "confidence"} & there.keys():
            none = f"its answers have no probabilities; {self.way_out}"
            raise NoProbabilitiesError(path, f"is written by {self.name}, and {none}.")
        return there


class NoProbabilitiesError(FileError):
    """A file in good order, of answers without any probability or confidence."""


@contextmanager
def as_written_by(harness: str, path: Path, where: str) -> Iterator[None]:
    """Name the line where a file is not as its harness writes it."""
    try:
        yield
    except FileError:
        raise
    except Exception as error:
        said = one_line(f"{type(error).__name__}: {error}")
        problem = f"{where} is not as {harness} writes it ({said}); it is damaged"
        raise FileError(path, f"{problem}, or of a version not known.") from error


def need(holds: object, rule: str) -> None:
    """Refuse a record that breaks a rule."""
    if not holds:
        raise ValueError(rule)


def finite(value: Any) -> float:
    """A number, which may have been written as text; infinity is one, NaN is none.

    >>> finite("-2.5"), finite("-inf")
    (-2.5, -inf)
    """
    number = float(value)
    need(not isnan(number) and not isinstance(value, bool), f"{value!r} is no number")
    return number
