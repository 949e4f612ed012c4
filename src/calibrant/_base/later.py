"""What is computed when it is first asked for: values by name, and fields of records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from calibrant._base.checks import shown

T = TypeVar("T")


class Named(dict[str, T]):
    """Values by name, whose error lists the names there are.

    Examples
    --------
    >>> Named(ece=0.1, nll=2.0)["ECE"]
    Traceback (most recent call last):
    KeyError: "no 'ECE'; choose from ece, nll"
    """

    def __missing__(self, name: object) -> T:
        raise KeyError(f"no {shown(name)}; choose from {', '.join(self)}")


class Later(Mapping[str, T], Generic[T]):
    """Values by name, of which only the names are known yet.

    It is pickled, copied and written as the dict it stands for.

    Examples
    --------
    >>> squares = Later(["a"], lambda: {"a": print("now") or 4})
    >>> list(squares)
    ['a']
    >>> squares["a"]
    now
    4
    """

    def __init__(self, names: Iterable[str], make: Callable[[], dict[str, T]]) -> None:
        self._names, self._make = tuple(names), make

    @cached_property
    def _values(self) -> dict[str, T]:
        values = self._make()
        del self._make  # and what it was computed from
        return values

    def __getitem__(self, name: str) -> T:
        if name not in self._names:
            raise KeyError(name)
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


class Awaited:
    """A dataclass with slots of which some fields are made when one of them is asked for.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, slots=True)
    ... class Point(Awaited):
    ...     x: int
    ...     y: int
    >>> point = Point.knowing(lambda: print("now") or {"y": 2}, x=1)
    >>> point.x
    1
    >>> point.y
    now
    2
    """

    __slots__ = ("_make",)

    @classmethod
    def knowing(cls, make: Callable[[], Mapping[str, Any]], **known: Any) -> Self:
        """One of these fields and of those with defaults; `make` gives all the others."""
        found = object.__new__(cls)
        _fill(found, {**_defaults(cls), **known, "_make": make})
        return found

    if not TYPE_CHECKING:  # a checker shall know which fields there are

        def __getattr__(self, name: str) -> Any:
            # Python asks here only for what is not there yet.
            names = [x.name for x in fields(self)]
            if name in names and (make := object.__getattribute__(self, "_make")):
                made = make()
                unset = {x: made[x] for x in names if not _is_set(self, x)}
                _fill(self, {**unset, "_make": None})
            return object.__getattribute__(self, name)


def _defaults(kind: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for x in fields(kind):
        if x.default is not MISSING:
            found[x.name] = x.default
        elif x.default_factory is not MISSING:
            found[x.name] = x.default_factory()
    return found


def _fill(record: Any, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        object.__setattr__(record, name, value)


def _is_set(record: Any, name: str) -> bool:
    try:
        object.__getattribute__(record, name)
    except AttributeError:
        return False
    return True
