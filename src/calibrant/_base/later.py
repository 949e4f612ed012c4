"""Values by name: computed when the first is asked for, or with an error that lists them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Generic, TypeVar

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
