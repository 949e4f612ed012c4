"""What the reader of a harness is: how it knows a file, and what it makes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import Any, NoReturn

from calibrant.files._sources import FileError, Numbered, shorten


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


class OddError(ValueError):
    """What is not as a harness writes it; the message says which field."""


class MixedError(OddError):
    """What is in good order, but means another thing than it seems to."""


@contextmanager
def as_written_by(harness: str, path: Path, where: str) -> Iterator[None]:
    """Name the line where a file is not as its harness writes it."""
    try:
        yield
    except FileError:
        raise
    except MixedError as error:
        raise FileError(path, f"{where}: {error}.") from error
    except Exception as error:
        said = f" ({error})" if isinstance(error, OddError) else ""
        problem = f"{where} is not as {harness} writes it{said}; it is damaged"
        raise FileError(path, f"{problem}, or of a version not known.") from error


def need(holds: object, rule: str) -> None:
    """Refuse a record that breaks a rule."""
    if not holds:
        raise OddError(rule)


class Once:
    """Refuses what stands twice in a file, by keys of which it holds hashes.

    Of keys that are 0, 1, 2 and so on it holds how many there were.
    """

    __slots__ = ("_count", "_seen")

    def __init__(self) -> None:
        self._count, self._seen = 0, set[int]()

    def add(self, what: str, key: str) -> None:
        """One more record, which `what` calls by name."""
        counted = key.isascii() and key.isdecimal() and str(int(key)) == key
        passed = counted and int(key) < self._count
        need(
            not passed and hash(key) not in self._seen,
            f"{what} stands in the file twice",
        )
        if counted and int(key) == self._count:
            self._count += 1
        else:
            self._seen.add(hash(key))


class Field:
    """A value in a record, with the names that lead to it, by which errors call it.

    >>> record = Field({"result": {"tokens": [{"logprob": "-2.5"}]}})
    >>> record["result"]["tokens"].elements()[0]["logprob"].number()
    -2.5
    >>> record["result"]["text"]
    Traceback (most recent call last):
    calibrant.files._harness_base.OddError: 'result.text' is missing
    """

    __slots__ = ("_inside", "_key", "value")

    def __init__(
        self, value: Any, key: str | int = "", inside: Field | None = None
    ) -> None:
        self.value, self._key, self._inside = value, key, inside

    @property
    def name(self) -> str:
        """The names that lead to it; made when asked for, since there are many fields."""
        before = "" if self._inside is None else self._inside.name
        if isinstance(self._key, int):
            return f"{before}[{self._key}]"
        return f"{before}.{self._key}" if before else self._key

    def __getitem__(self, key: str) -> Field:
        """What an object must have."""
        found = self.get(key)
        if found.value is None and key not in self.value:
            raise OddError(f"{found.name!r} is missing")
        return found

    def get(self, key: str) -> Field:
        """What an object may have; its value is None if not."""
        if not isinstance(self.value, dict):
            self.refuse("an object")
        return Field(self.value.get(key), key, self)

    def has(self, key: str) -> bool:
        """Whether an object says something of this name."""
        return self.get(key).value is not None

    def members(self) -> dict[str, Field]:
        """What an object has, by name."""
        if not isinstance(self.value, dict):
            self.refuse("an object")
        return {key: Field(x, key, self) for key, x in self.value.items()}

    def numbered(self, name: str) -> list[Field]:
        """What an object has, if that is name_0, name_1 and so on."""
        if not isinstance(self.value, dict):
            self.refuse("an object")
        return [self[f"{name}_{i}"] for i in range(len(self.value))]

    def elements(self) -> list[Field]:
        """What a list has, in order."""
        if not isinstance(self.value, list):
            self.refuse("a list")
        return [Field(x, i, self) for i, x in enumerate(self.value)]

    def text(self) -> str:
        """A text."""
        if not isinstance(self.value, str):
            self.refuse("text")
        return str(self.value)

    def called(self) -> str:
        """A name: text, or a whole number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | str):
            self.refuse("text or a whole number")
        return str(self.value)

    def number(self, low: float = -float("inf"), high: float = float("inf")) -> float:
        """A number, which may have been written as text; infinity is one, NaN is none."""
        try:
            number = float(self.value)
        except (TypeError, ValueError, OverflowError):
            self.refuse("a number")
        if isnan(number) or isinstance(self.value, bool):
            self.refuse("a number")
        if not low <= number <= high:
            raise OddError(f"{self.name!r} is {number:g}, not from {low:g} to {high:g}")
        return number

    def log_probability(self) -> float:
        """The logarithm of a probability, which may be rounded."""
        number = self.number()
        if number > ROUNDING:
            above = f"{self.name!r} is {number:g}, which is above 0"
            raise OddError(f"{above}, and so no logarithm of a probability")
        return number

    def refuse(self, what: str) -> NoReturn:
        """Say that it is not what it must be."""
        raise OddError(f"{self.name!r} is {told(self.value)}, not {what}")


ROUNDING = 1e-3
"""How far above 0 a sum of logarithms of probabilities may come by rounding."""


def told(value: Any) -> str:
    """A value of JSON in a few words.

    >>> told([]), told({"a": 1}), told("x"), told(None), told(2)
    ('an empty list', 'an object', "'x'", 'null', '2')
    """
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if isinstance(value, dict):
        return "an object" if value else "an empty object"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return shorten(repr(value), 40)
