"""What is checked alike everywhere: choices, numbers, and rows that break a rule."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import islice
from math import inf, nan
from numbers import Real
from os import PathLike, fsencode, fspath
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

MOST_NAMES, MOST_WHOLE = 1 << 20, 1 << 53
MOST_SHOWN, MOST_NAME, MOST_TEXT = 80, 120, 5_000
"""Signs that are shown of a value in an error, of a name, and of any text."""


def shown(value: Any) -> str:
    r"""A value as an error shows it: on one line, short, and never an error itself.

    Examples
    --------
    >>> shown("two\nlines"), shown(list(range(1000)))[-7:]
    ("'two\\nlines'", ' 21, 2…')
    """
    try:
        text = " ".join(repr(value).split())
    except Exception:  # noqa: BLE001 - what is shown may be anything
        text = f"a {type(value).__name__}"
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"


def one_line(text: str, most: int = MOST_TEXT) -> str:
    r"""Text that stays on its line however hostile it is, and is at most so long.

    Whatever reaches a terminal, a page or a figure goes through here: control signs, lone
    surrogates and code points of no sign become spaces, signs that turn the direction go,
    and what is too long is cut in its middle, where names differ least. So a name can
    neither end a row, nor move a cursor, nor read as other text.

    Examples
    --------
    >>> one_line("two\nlines\x1b[2J"), one_line("a name that is too long", 11)
    ('two lines [2J', 'a name… long')
    """
    if text.isascii() and text.isprintable() and len(text) <= most:
        return text.strip()
    if len(text) > 4 * most:  # what will go need not be looked at
        text = f"{text[: 2 * most]}{text[-2 * most :]}"
    signs = (" " if _is_broken(sign) else sign for sign in text if sign not in TURNS)
    clean = "".join(signs).strip()
    if len(clean) <= most:
        return clean
    return f"{clean[: (most + 1) // 2]}…{clean[len(clean) - most // 2 :]}"


TURNS = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
"""Signs that turn the direction of what follows, so that it reads as other text."""


def _is_broken(sign: str) -> bool:
    """Whether a sign ends a line, moves a cursor, or cannot be written at all."""
    code = ord(sign)
    no_sign = code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
    return no_sign or unicodedata.category(sign) in ("Cc", "Zl", "Zp", "Cs")


GONE = " Its loops are built in now, without numba: engine='compiled', or leave it out."


def check_choice(value: Any, name: str, choices: tuple[Any, ...]) -> None:
    """Raise one clear error unless `value` is among `choices`: names, numbers, None."""
    plain = value is None or isinstance(value, str | Real | np.bool_)
    if not (plain and value in choices):
        options = ", ".join(repr(choice) for choice in choices)
        gone = GONE if plain and (name, value) == ("engine", "numba") else ""
        raise ValueError(f"{name} must be one of {options}, got {shown(value)}.{gone}")


STRATEGIES = {"width": "width", "mass": "mass", "uniform": "width", "quantile": "mass"}
"""How bins are cut, in our words and in those of scikit-learn."""


def read_strategy(strategy: Any) -> str:
    """How bins are cut: ``"width"``, which scikit-learn calls uniform, or ``"mass"``."""
    check_choice(strategy, "strategy", tuple(STRATEGIES))
    return STRATEGIES[strategy]


def check_flags(**flags: Any) -> None:
    """Raise one clear error unless these arguments are each true or false."""
    for name, value in flags.items():
        check_choice(value, name, (True, False))


def check_text(value: Any, name: str) -> None:
    """Raise one clear error unless `value` is text."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be text, got {shown(value)}.")


def check_texts(**texts: Any) -> None:
    """Raise one clear error unless these arguments are each text, or None."""
    for name, value in texts.items():
        if value is not None:
            check_text(value, name)


def check_functions(**functions: Any) -> None:
    """Raise one clear error unless these arguments are each a function, or None."""
    for name, value in functions.items():
        if not (value is None or callable(value)):
            raise TypeError(f"{name} must be a function, got {shown(value)}.")


def check_kind(value: Any, kind: type | tuple[type, ...], name: str) -> None:
    """Raise one clear error unless `value` is of this kind, or of one of these."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(one.__name__ for one in kinds)
        raise TypeError(f"{name} must be of type {wanted}, got {shown(value)}.")


def read_names(given: Any, what: str, most: int = MOST_NAMES) -> tuple[Hashable, ...]:
    """Read the first names of a list that has an order: text, numbers and the like."""
    if not isinstance(given, str | bytes | bytearray | AbstractSet | Mapping):
        with suppress(Exception):  # what the user gives may raise anything
            listed = given.tolist() if hasattr(given, "tolist") else given
            names = tuple(islice(listed, most))
            hash(names)
            return names
    raise TypeError(f"{what} must be a list of names in order, got {shown(given)}.")


def as_path(path: Any, name: str = "path") -> Path:
    """Read the name of a file, or say clearly that it can be none."""
    if not isinstance(path, str | PathLike) or not isinstance(fspath(path), str):
        raise TypeError(f"{name} must be the name of a file, got {shown(path)}.")
    with suppress(UnicodeEncodeError):
        if b"\0" not in fsencode(path):
            return Path(path)
    raise ValueError(f"{name} can be no name of a file, got {shown(path)}.")


def check_number(
    value: Any,
    name: str,
    least: float,
    most: float = inf,
    *,
    kind: str = "a number",
    remedy: str = "",
) -> None:
    """Raise one clear error unless `value` is of its kind and in a range."""
    number = as_number(value)
    whole = (number % 1 == 0 and number <= MOST_WHOLE) or "whole" not in kind
    if not (least <= number <= most and whole):
        end = "on" if most == inf else f"to {most:,.10g}"
        rule = f"{name} must be {kind} from {least:g} {end}, got {shown(value)}."
        raise ValueError(f"{rule} {remedy}".strip())


def check_length(values: NDArray[Any], rows: int, name: str) -> None:
    """Raise one clear error unless there is one value for each row."""
    if values.shape != (rows,):
        raise ValueError(
            f"{name} must have one entry per row: {values.shape} for {rows} rows."
        )


EXTRAS = {
    "sklearn": ("scikit-learn", "sklearn"),
    "torch": ("PyTorch", "torch"),
    "torchmetrics": ("torchmetrics", "torch"),
    "timm": ("timm", "vision"),
    "datasets": ("datasets", "vision"),
    "huggingface_hub": ("huggingface_hub", "vision"),
    "narwhals": ("narwhals", "frames"),
    "pandas": ("pandas", "pandas"),
    "polars": ("Polars", "polars"),
    "dask": ("Dask", "dask"),
    "distributed": ("distributed", "dask"),
    "pyspark": ("PySpark", "spark"),
    "pyarrow": ("PyArrow", "arrow"),
    "safetensors": ("safetensors", "tensors"),
}
"""Packages that are not installed by default, by module: their name, and their extra."""


def missing(error: ImportError, what: str, extra: str = "") -> ImportError:
    """What to say where an optional package is missing: one line, with what to install.

    An error that is not about such a package is handed back.

    Examples
    --------
    >>> missing(ModuleNotFoundError(name="sklearn.base"), "RecalibratedClassifier")
    ImportError("RecalibratedClassifier needs scikit-learn: pip install 'calibrant[sklearn]'.")
    """
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS:
        return error
    package, usual = EXTRAS[module]
    broken = "" if isinstance(error, ModuleNotFoundError) else f" ({error})"
    way_out = f"pip install 'calibrant[{extra or usual}]'"
    return ImportError(f"{what} needs {package}{broken}: {way_out}.", name=error.name)


class RowError(ValueError):
    """Rows that break a rule: the first of them, how many there are, and the way out.

    Attributes
    ----------
    rule, remedy : str
        What is asked of every row, and the way out.
    row, what : int, str
        The first row that breaks it, and what that row is or has.
    count, of : int or None
        How many rows break it, among how many; None where they were not counted.
    how : str
        What those rows are, in a word.
    start : int or None
        The row that the rows looked at begin with, if they are part of more.

    Examples
    --------
    >>> error = RowError("y must be in 0..2;", 7, "is 3", 2, 10, "outside")
    >>> str(error)
    'y must be in 0..2; row 7 is 3 (2 of 10 rows are outside).'
    >>> str(error.shifted(100))
    'y must be in 0..2; row 107 is 3 (2 of rows 100 to 109 are outside).'
    """

    def __init__(
        self,
        rule: str,
        row: int,
        what: str,
        count: int | None = None,
        of: int | None = None,
        how: str = "off",
        remedy: str = "",
        start: int | None = None,
    ) -> None:
        super().__init__(rule, row, what, count, of, how, remedy, start)
        self.rule, self.row, self.what, self.remedy = rule, row, what, remedy
        self.count, self.of, self.how, self.start = count, of, how, start

    @classmethod
    def at_first(
        cls,
        rule: str,
        bad: NDArray[Any],
        values: NDArray[Any],
        how: str = "off",
        remedy: str = "",
    ) -> Self:
        """The error of the rows marked bad, which shows the value of the first."""
        row = int(bad.argmax())
        found = f"is {values[row]}", int(bad.sum()), len(bad)
        return cls(rule, row, *found, how, remedy)

    def shifted(self, start: int) -> RowError:
        """The same error where the rows looked at are part of more: from `start` on."""
        rest = self.what, self.count, self.of, self.how, self.remedy
        return RowError(self.rule, self.row + start, *rest, (self.start or 0) + start)

    def __str__(self) -> str:
        said = f"{self.rule} row {self.row} {self.what}"
        if self.count is not None and self.of is not None:
            among, first = f"{self.of} rows", self.start
            if first is not None:
                among = f"rows {first} to {first + self.of - 1}"
            said += f" ({self.count} of {among} are {self.how})"
        return f"{said}. {self.remedy}".strip()


def as_number(value: Any) -> float:
    """Read an option that should be a number; NaN, which fails every test, if not."""
    try:
        real = isinstance(value, Real) and not isinstance(value, bool)
        return float(value) if real else nan
    except (ValueError, TypeError, OverflowError):  # beyond every range, or masked
        return nan


def out_of_order(columns: Sequence[Hashable]) -> bool:
    """Whether names end in the numbers of classes, from 0 or 1 on, in another order.

    Examples
    --------
    >>> out_of_order(["p_2", "p_0", "p_1"]), out_of_order(["p_1", "p_2", "p_3"])
    (True, False)
    """
    found = [re.fullmatch(r"(.*?)(\d{1,9})", str(x), re.DOTALL) for x in columns]
    ends = [(x[1], int(x[2])) for x in found if x is not None]
    numbers, k = [number for _, number in ends], len(columns)
    if len(ends) < k or len({start for start, _ in ends}) > 1:
        return False
    counted = ([*range(k)], [*range(1, k + 1)])
    return numbers not in counted and sorted(numbers) in counted
