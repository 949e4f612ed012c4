"""Records of plain numbers: they turn themselves into dictionaries and JSON, and back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from math import inf
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Self,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import check_choice, check_kind
from calibrant._base.later import Named

Frame: TypeAlias = Any
"""A Polars or pandas data frame, or a dict of arrays where neither is installed."""

WORDS = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}
"""Strict JSON has no NaN and no infinity, so they are words."""


def as_plain(value: Any) -> Any:
    """Turn records, arrays and numbers into what strict JSON can hold."""
    if isinstance(value, Record):
        return value.to_dict()  # plain already
    if hasattr(value, "to_dict"):
        return as_plain(value.to_dict())
    if isinstance(value, Mapping):
        return {str(key): as_plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        finite = value.dtype.kind == "f" and np.isfinite(value).all()
        return value.tolist() if finite else as_plain(value.tolist())
    if isinstance(value, list | tuple):
        return [as_plain(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value


def to_frame(columns: Mapping[str, NDArray[Any]], kind: str | None = None) -> Frame:
    """Make a frame of the kind asked for, or of the first library that is installed.

    What else a program has imported does not matter: the same call gives the same kind.
    """
    known = ("pandas", "polars")
    if kind is not None:
        check_choice(kind, "kind", known)
        if find_spec(kind) is None:
            raise ModuleNotFoundError(f"{kind} is not installed: pip install {kind}.")
        return import_module(kind).DataFrame(dict(columns))
    for name in filter(find_spec, known):
        return import_module(name).DataFrame(dict(columns))
    return dict(columns)


Interval = tuple[float, float]


class Estimate(float):
    """A float that knows its interval and where that came from.

    Examples
    --------
    >>> accuracy = Estimate(0.9, interval=(0.88, 0.92), method="Wilson")
    >>> accuracy + 0, accuracy.interval
    (0.9, (0.88, 0.92))
    """

    __slots__ = ("interval", "method")

    interval: Interval | None
    method: str | None

    def __new__(
        cls, value: float, interval: Interval | None = None, method: str | None = None
    ) -> Self:
        """Make a float and tell it its interval."""
        self = super().__new__(cls, value)
        ends = None if interval is None else (float(interval[0]), float(interval[1]))
        self.interval, self.method = ends, method
        return self

    def __reduce__(self) -> Any:
        return Estimate, (float(self), self.interval, self.method)

    def to_dict(self) -> dict[str, Any]:
        """Value, interval and method."""
        interval = None if self.interval is None else list(self.interval)
        return {"value": float(self), "interval": interval, "method": self.method}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Restore what ``to_dict`` gave."""
        return _restored(cls, given)

    def _disagreement(self) -> str | None:
        low, high = self.interval or (0.0, 0.0)
        down = f"has an interval from {low:g} down to {high:g}"
        return down if low > high + SLACK * (1 + abs(high)) else None


class RecordError(ValueError):
    """What was read is no record, or no longer one: the file, the field and the rule.

    Everything that calibrant reads back of its own raises it: results, recalibrators and
    sketches.

    Attributes
    ----------
    path, said : str
        The field, empty where the whole is meant, and what is wrong with it.
    name : str
        What was read: a file, or a kind of record.

    Examples
    --------
    >>> str(RecordError("bins.count[2]", "must be a number from 0 on, got -1", "evaluation"))
    'evaluation: bins.count[2] must be a number from 0 on, got -1.'
    """

    def __init__(self, path: str, said: str, name: str = "record") -> None:
        super().__init__(path, said, name)
        self.path, self.said, self.name = path, said, name

    def __str__(self) -> str:
        where = f": {self.path}" if self.path else ""
        return f"{self.name}{where} {self.said}."


class Record:
    """What all results share: dictionaries, strict JSON, and back.

    A record is a dataclass. The types of its fields say how to read them and, by a `Range`
    and its like, what they may be; `_disagreement` says what must hold between them. A
    field whose metadata says ``plain: False`` is not written.

    JSON ends with a digest of the content, so what was changed is noticed. A dictionary,
    and JSON of versions before 0.2.0, has none: then the rules alone say what is read.
    """

    __slots__ = ()
    _beside: ClassVar[tuple[str, ...]] = ()  # what the command adds, and none reads

    def to_dict(self) -> dict[str, Any]:
        """All fields, with arrays as lists and NaN and infinities as strings."""
        return {name: as_plain(value) for name, value in self._values().items()}

    def to_json(self, indent: int | None = None) -> str:
        """Strict JSON with a digest; ``from_json`` gives the same record back."""
        check_kind(indent, (int, NoneType), "to_json writes no file; indent")
        return json.dumps(with_digest(self.to_dict()), indent=indent, allow_nan=False)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Restore what ``to_dict`` gave; a ValueError names the field that is off."""
        return _restored(cls, given)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Restore what ``to_json`` gave; a ValueError names the field that is off."""
        return _restored(cls, text, read_json)

    def frame(self, kind: str | None = None) -> Frame:
        """One row of the numbers and words, with ``_low`` and ``_high`` of intervals.

        A pandas frame, else a Polars one, else a dict of arrays, as is installed; `kind`,
        ``"polars"`` or ``"pandas"``, says which.
        """
        columns: dict[str, Any] = {}
        for name, value in self._values().items():
            if isinstance(value, str | float | int | NoneType):
                columns[name] = float(value) if isinstance(value, Estimate) else value
            if isinstance(value, Estimate) and value.interval is not None:
                columns[f"{name}_low"], columns[f"{name}_high"] = value.interval
        return to_frame({name: np.array([x]) for name, x in columns.items()}, kind)

    def _values(self) -> dict[str, Any]:
        """The fields that are written, as they are."""
        kind: Any = type(self)
        return {name: getattr(self, name) for name in _schema(kind)}

    def _disagreement(self) -> str | None:
        """What is wrong with fields that are right one by one."""
        return None


class Columnar(Record):
    """A record whose arrays are columns of one length."""

    __slots__ = ()

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {n: x for n, x in self._values().items() if isinstance(x, np.ndarray)}

    def frame(self, kind: str | None = None) -> Frame:
        """One row per place: a pandas frame, else a Polars one, else a dict of arrays.

        The first that is installed; `kind`, ``"polars"`` or ``"pandas"``, says which.
        """
        return to_frame(self._arrays(), kind)

    def _disagreement(self) -> str | None:
        lengths = {name: len(column) for name, column in self._arrays().items()}
        first = next(iter(lengths))
        for name, length in lengths.items():
            if length != lengths[first]:
                both = f"{first} has {lengths[first]}, {name} has {length}"
                return f"must have columns of one length; {both}"
        return None


# -- rules -----------------------------------------------------------------------------

SLACK, CLOSE = 1e-9, 1e-6
"""Round-off by which a number may leave its range, and numbers that agree may differ."""


@dataclass(frozen=True, slots=True)
class Range:
    """What a number, or each one of an array, must be to be read.

    Both ends belong to it, but for `least` where it must be `above` that. `unknown` lets
    NaN in, `infinite` what has no bound. Of an estimate the interval is meant, too.
    """

    least: float = -inf
    most: float = inf
    above: bool = False
    unknown: bool = False
    infinite: bool = False

    def check(self, value: Any, path: str) -> None:
        """Raise an error that names the first number outside."""
        if isinstance(value, Estimate) and value.interval is not None:
            self._check(np.array(value.interval), f"{path}.interval")
        self._check(np.asarray(value, np.float64), path)

    def _check(self, numbers: NDArray[np.float64], path: str) -> None:
        slack = 0.0 if self.above else SLACK
        fits = (numbers >= self.least - slack) & (numbers <= self.most + slack)
        if self.above:
            fits &= numbers != self.least
        if not self.infinite:
            fits &= np.isfinite(numbers)
        if self.unknown:
            fits |= np.isnan(numbers)
        if not fits.all():
            place = np.argwhere(~fits)[0].tolist()
            at = path + "".join(f"[{i}]" for i in place)
            found = numbers[tuple(place)]
            raise RecordError(at, f"must be {self}, got {found}")

    def __str__(self) -> str:
        ends = f"{'above' if self.above else 'from'} {self.least:g}"
        ends += " on" * (self.most == inf and not self.above)
        ends += f" to {self.most:g}" * (self.most < inf)
        said = "a finite number" if self.least == -inf else f"a number {ends}"
        return said + ", or NaN" * self.unknown


@dataclass(frozen=True, slots=True)
class OneOf:
    """What text must be to be read."""

    choices: tuple[str, ...]
    pattern: str = ""

    def check(self, value: Any, path: str) -> None:
        """Raise an error unless the text is one of the choices, or fits the pattern."""
        fits = value in self.choices or (
            self.pattern and re.fullmatch(self.pattern, value)
        )
        demand(bool(fits), path, f"one of {', '.join(self.choices)}", value)


@dataclass(frozen=True, slots=True)
class Keyed:
    """Types of the values of some keys of a mapping, of which some must be there."""

    kinds: Mapping[str, Any]
    required: tuple[str, ...] = ()

    def check(self, value: Any, path: str) -> None:
        """Raise an error if a key is missing."""
        for name in self.required:
            if name not in value:
                raise RecordError(_below(path, name), "is missing")


Rule: TypeAlias = Range | OneOf | Keyed

Share = Annotated[float, Range(0, 1)]
Amount = Annotated[float, Range(0)]
Positive = Annotated[float, Range(0, above=True)]
Whole = Annotated[int, Range(0, 1 << 63)]
Shares = Annotated[NDArray[np.float64], Range(0, 1)]
SharesOrNaN = Annotated[NDArray[np.float64], Range(0, 1, unknown=True)]
Amounts = Annotated[NDArray[np.float64], Range(0)]
Loss = Annotated[float, Range(0, infinite=True)]
Losses = Annotated[NDArray[np.float64], Range(unknown=True, infinite=True)]
Bandwidth = Annotated[float, Range(0, 10, above=True)]
TARGETS = ("top-label", "positive", "class-wise", "multi-label", "pairs")
FORECASTS = ("positive", "multi-label")
"""Targets of which each row is the forecast of one class."""

Target = Annotated[str, OneOf(TARGETS, r"top-[1-9]\d*|event: .+")]


def close(one: float, two: float) -> bool:
    """Whether two numbers agree but for round-off; NaN agrees with NaN."""
    return bool(np.isclose(one, two, rtol=CLOSE, atol=CLOSE, equal_nan=True))


# -- digests ---------------------------------------------------------------------------

DIGEST = "digest"


def with_digest(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Plain data with the digest of its content, whatever the order of its fields."""
    return {**plain, DIGEST: _digest(plain)}


def without_digest(given: Mapping[str, Any]) -> dict[str, Any]:
    """Plain data whose digest, if there is one, is that of its content."""
    rest = {name: value for name, value in given.items() if name != DIGEST}
    if DIGEST in given and given[DIGEST] != _digest(rest):
        said = "is not that of the content, which was damaged, or changed by hand"
        raise RecordError(DIGEST, said)
    return rest


def _digest(plain: Mapping[str, Any]) -> str:
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), default=repr)
    return f"sha256:{sha256(text.encode()).hexdigest()}"


# -- reading ---------------------------------------------------------------------------


def read_file(path: Path) -> bytes:
    """The content of a file; what is no regular one may never end, and is refused."""
    if path.exists() and not path.is_file():
        raise RecordError("", "is no regular file, and only these are read", str(path))
    return path.read_bytes()


def read_json(text: str | bytes) -> Any:
    """What strict JSON says; a name that is there twice is refused."""
    try:
        given = text if isinstance(text, str) else text.decode("utf-8")
        return json.loads(given, object_pairs_hook=_once, parse_constant=_no_constant)
    except RecordError:
        raise
    except (ValueError, RecursionError) as error:  # numbers of 5,000 digits, too
        raise RecordError("", f"is not JSON: {error}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise RecordError("", f"has {twice!r} twice")
    return found


def _no_constant(name: str) -> None:
    raise RecordError("", f"is not JSON: {name} is no number there")


def _restored(record: Any, given: Any, read: Callable[[Any], Any] | None = None) -> Any:
    """A record from its plain data, or one error that names the field that is off."""
    name = "".join(f" {c.lower()}" if c.isupper() else c for c in record.__name__)
    with told(name.strip()):
        plain = given if read is None else read(given)
        demand(isinstance(plain, Mapping), "", "a mapping", plain)
        beside = getattr(record, "_beside", ())
        own = {k: x for k, x in without_digest(plain).items() if k not in beside}
        return decode(record, own, "")


@contextmanager
def told(name: str) -> Iterator[None]:
    """Errors about fields say what the fields belong to."""
    try:
        yield
    except RecordError as refused:
        raise RecordError(refused.path, refused.said, name) from None
    except RecursionError:
        raise RecordError("", "is nested too deeply", name) from None


def decode(kind: Any, given: Any, path: str, null: str = "") -> Any:
    """A value of some type from its plain data; `path` says which field it is."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _ruled(inner[0], inner[1], given, path, null)
    if origin is UnionType or origin is Union:
        return _either(inner, given, path)
    if kind is Any:
        return _any(given, path)
    if kind in _PLAIN:
        return _plain(kind, given, path, null)
    if kind is object:  # there is no rule
        return given
    if origin in (np.ndarray, NDArray):  # a name of its own from NumPy 2.5 on
        return _array((*get_args(inner[-1]), inner[-1])[0], given, path)
    if origin is tuple:
        pair = inner[-1] is not ...
        rule = f"{'two numbers' if pair else 'a list'}{null}"
        fits = isinstance(given, list | tuple) and (len(given) == 2 or not pair)
        demand(fits, path, rule, given)
        return tuple(decode(inner[0], x, f"{path}[{i}]") for i, x in enumerate(given))
    demand(isinstance(given, Mapping), path, f"a mapping{null}", given)
    if origin is Mapping:
        return {k: decode(inner[1], x, _below(path, k)) for k, x in given.items()}
    return _record(kind, given, path)


def _ruled(kind: Any, rule: Rule, given: Any, path: str, null: str) -> Any:
    """A value of some type that keeps a rule."""
    if isinstance(rule, Keyed) and isinstance(given, Mapping):
        *_, rest = get_args(kind)
        kinds = {name: rule.kinds.get(name, rest) for name in given}
        pairs = ((k, decode(kinds[k], x, _below(path, k))) for k, x in given.items())
        value = Named(pairs)
    else:
        value = decode(kind, given, path, null)
    rule.check(value, path)
    return value


def _either(kinds: tuple[Any, ...], given: Any, path: str) -> Any:
    """A value of the first type that fits."""
    if NoneType in kinds and given is None:
        return None
    *others, last = (kind for kind in kinds if kind is not NoneType)
    for kind in others:
        try:
            return decode(kind, given, path)
        except RecordError:
            continue
    return decode(last, given, path, " or null" if NoneType in kinds else "")


def _any(given: Any, path: str) -> Any:
    fits = given is None or isinstance(given, str | float)
    fits = fits or (isinstance(given, int) and abs(given) < MOST_WHOLE)
    demand(fits, path, "a number, text, true, false or null", given)
    return given


def _array(dtype: Any, given: Any, path: str) -> NDArray[Any]:
    """An array as it is, or one of double precision from a list."""
    if isinstance(given, np.ndarray):
        fits = dtype is Any or given.dtype == dtype
        demand(fits, path, f"an array of {np.dtype(dtype).name}", given)
        return given
    demand(isinstance(given, list), path, "a list of numbers", given)
    numbers = [
        x if type(x) is float else _plain(float, x, f"{path}[{place}]", "")
        for place, x in enumerate(given)
    ]
    return np.array(numbers, np.float64)


def _record(kind: Any, given: Mapping[str, Any], path: str) -> Any:
    """A record of known class; fields that a later version added may be missing."""
    schema = _schema(kind)
    for name in given:
        if name not in schema:
            raise RecordError(path, f"has no field {name!r}")
    for name, (_, required) in schema.items():
        if required and name not in given:
            raise RecordError(_below(path, name), "is missing")
    read = {n: decode(schema[n][0], x, _below(path, n)) for n, x in given.items()}
    try:
        made = kind(**read)
    except ValueError as error:
        raise RecordError(path, f"is off: {str(error).removesuffix('.')}") from error
    if said := made._disagreement():
        raise RecordError(path, said)
    return made


@cache
def _schema(kind: Any) -> dict[str, tuple[Any, bool]]:
    """For each field that is written, its type, and whether it must be there."""
    hints = get_type_hints(kind, include_extras=True)
    if kind is Estimate:
        return {name: (x, True) for name, x in {"value": float, **hints}.items()}
    return {
        f.name: (hints[f.name], f.default is MISSING and f.default_factory is MISSING)
        for f in fields(kind)
        if f.metadata.get("plain", True)
    }


_PLAIN: dict[Any, tuple[Any, str]] = {
    bool: (bool, "true or false"),
    int: (int, "a whole number"),
    float: ((float, int), "a number"),
    str: (str, "text"),
}
"""What a plain value may be read from, and what it is called."""


def _plain(kind: Any, given: Any, path: str, null: str) -> Any:
    accepted, rule = _PLAIN[kind]
    if kind is float and isinstance(given, str):
        given = WORDS.get(given, given)
    fits = isinstance(given, accepted) and isinstance(given, bool) == (kind is bool)
    fits = fits and (type(given) is not int or abs(given) < MOST_WHOLE)
    demand(fits, path, f"{rule}{null}", given)
    return kind(given)


MOST_WHOLE = 1 << 1000
"""Whole numbers are less than this, and so are numbers of double precision, too."""


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else str(name)


def demand(holds: bool, path: str, rule: str, given: Any) -> None:  # noqa: FBT001
    """Raise an error about a field unless its rule holds."""
    if not holds:
        text = json.dumps(given, default=repr)
        shown = text if len(text) <= 40 else f"{text[:37]}..."
        raise RecordError(path, f"must be {rule}, got {shown}")


# -- what must hold between columns ----------------------------------------------------


def _falling(column: NDArray[np.float64], name: str) -> str | None:
    """What is wrong with a column that should increase."""
    falls = np.flatnonzero(np.diff(column) <= 0)
    return (
        f"must have increasing {name}; entry {falls[0] + 1} is not"
        if falls.size
        else None
    )


def _crossing(
    columns: Mapping[str, NDArray[np.float64]], *pairs: tuple[str, str]
) -> str | None:
    """What is wrong with columns of which the first of a pair should not exceed the other."""
    for less, more in pairs or (tuple(columns),):
        with np.errstate(invalid="ignore"):
            over = np.flatnonzero(columns[less] - columns[more] > CLOSE)
        if over.size:
            return f"has {less} above {more} at entry {over[0]}"
    return None


def _unlike(
    one: NDArray[np.bool_], two: NDArray[np.bool_], known: str, name: str
) -> str | None:
    """What is wrong where of two columns only one is NaN or empty."""
    off = np.flatnonzero(one != two)
    return (
        f"has {name} that does not go with {known} at entry {off[0]}"
        if off.size
        else None
    )


# -- records ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Decomposition(Record):
    """d_TOT = d_CAL + sharpness gap, for one divergence.

    Attributes
    ----------
    total : Estimate
        The mean loss (proper score).
    calibration : Estimate
        The calibration error that belongs to it.
    divergence, estimator, kernel, boundary, bandwidth
        How it was estimated; bandwidth is None where the width adapts.
    gap : Estimate or None
        What gives the sharpness gap its interval, if one was computed.
    resolution : float or None
        Share of the rows that are looked at together to find the calibration error: of
        what is finer in confidence nothing is said. None where the width is given.
    p_value : float or None
        How often calibrated models with the same confidences look as bad.

    Examples
    --------
    >>> import calibrant as cal
    >>> parts = cal.evaluate_pairs([1, 0, 1, 1], [0.9, 0.4, 0.8, 0.7]).decomposition
    >>> bool(abs(parts.calibration + parts.sharpness_gap - parts.total) < 1e-12)
    True
    """

    divergence: str
    total: Annotated[Estimate, Range(0, infinite=True)]
    calibration: Annotated[Estimate, Range(unknown=True, infinite=True)]
    estimator: str
    kernel: str
    boundary: str
    bandwidth: Bandwidth | None
    gap: Annotated[Estimate, Range(unknown=True, infinite=True)] | None = None
    resolution: Share | None = None
    p_value: Share | None = None

    @property
    def sharpness_gap(self) -> Estimate:
        """The loss that would remain if the model were calibrated."""
        value = float(self.total) - float(self.calibration)
        if self.gap is None:
            return Estimate(value)
        return Estimate(value, self.gap.interval, self.gap.method)

    def _disagreement(self) -> str | None:
        total, calibration = float(self.total), float(self.calibration)
        # An estimate may exceed what it is part of, and be below 0, by its noise; where
        # the paper's curve gives what has probability 0 a chance, that of log is infinite.
        brier = self.divergence == "brier"
        least = -2 * total - (SLACK if brier else 1)
        most = 2 * total + 1 if brier else inf
        if calibration < least or calibration > most:
            return f"has a calibration of {calibration:g} in a total of {total:g}"
        if self.gap is None or close(self.gap, total - calibration):
            return None
        return f"has a gap of {self.gap:g}, which is not total less calibration"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Curve(Columnar):
    """Accuracy, loss and density as functions of confidence.

    All fields are arrays of one length. Where no row is near, `support` (the weight of
    rows nearby, as many as they are worth) is about 0 and everything estimated is NaN.
    `low` and `high` are a pointwise band of the accuracy: it holds at each place.
    `band_low` and `band_high` are a simultaneous one: all places at once, for a curve
    without jumps. Both are NaN where none was computed.

    Examples
    --------
    >>> import calibrant as cal
    >>> curve = cal.evaluate_pairs([1, 0, 1, 1] * 20, [0.9, 0.4, 0.8, 0.7] * 20).curve
    >>> len(curve.accuracy) == len(curve.confidence)
    True
    """

    confidence: Shares
    accuracy: SharesOrNaN
    sharpness_gap: Losses
    loss: Annotated[NDArray[np.float64], Range(0, unknown=True, infinite=True)]
    density: Amounts
    support: Amounts
    low: SharesOrNaN
    high: SharesOrNaN
    band_low: SharesOrNaN = field(default_factory=lambda: np.empty(0))
    band_high: SharesOrNaN = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        for name in ("band_low", "band_high"):  # records of 0.1.0 have none
            if not len(getattr(self, name)):
                nothing = np.full_like(self.confidence, np.nan)
                object.__setattr__(self, name, nothing)

    def _disagreement(self) -> str | None:
        orders = (
            ("low", "accuracy"),
            ("accuracy", "high"),
            ("band_low", "band_high"),
            ("sharpness_gap", "loss"),
        )
        return (
            Columnar._disagreement(self)
            or _falling(self.confidence, "confidence")
            or _crossing(self._arrays(), *orders)
            or _unlike(np.isnan(self.accuracy), np.isnan(self.loss), "accuracy", "loss")
        )

    def __repr__(self) -> str:
        ends = f"{self.confidence[0]:.3g} to {self.confidence[-1]:.3g}"
        return f"Curve({len(self.confidence)} places, confidence {ends})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Bins(Columnar):
    """Mean confidence, accuracy and variance of the hits in bins; NaN in empty ones.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.evaluate_pairs([1, 0, 1, 1], [0.9, 0.4, 0.8, 0.7], bins=2).bins.accuracy
    array([0., 1.])
    """

    lower: Shares
    upper: Shares
    count: Amounts
    confidence: SharesOrNaN
    accuracy: SharesOrNaN
    variance: SharesOrNaN

    @property
    def means(self) -> tuple[float, float]:
        """Mean confidence and accuracy of all rows."""
        some, total = self.count > 0, self.count.sum()
        h, a = (self.count[some] @ x[some] for x in (self.confidence, self.accuracy))
        return float(h / total), float(a / total)

    @property
    def gaps(self) -> NDArray[np.float64]:
        """Distance of confidence and accuracy in bins that hold rows."""
        return np.abs(self.confidence - self.accuracy)[self.count > 0]

    def _disagreement(self) -> str | None:
        empty = self.count == 0
        inside = (("lower", "upper"), ("lower", "confidence"), ("confidence", "upper"))
        return (
            Columnar._disagreement(self)
            or _unlike(empty, np.isnan(self.confidence), "empty bins", "confidence")
            or _unlike(empty, np.isnan(self.accuracy), "empty bins", "accuracy")
            or _unlike(empty, np.isnan(self.variance), "empty bins", "variance")
            or _crossing(self._arrays(), *inside)
            or _crossing({"upper": self.upper[:-1], "the next lower": self.lower[1:]})
            or _crossing(
                {
                    "variance": self.variance,
                    "a (1 - a)": self.accuracy * (1 - self.accuracy),
                }
            )
        )

    def __repr__(self) -> str:
        return f"Bins({len(self.count)} bins, {self.count.sum():,.10g} examples)"


@dataclass(frozen=True, slots=True)
class Corp(Record):
    """Score = miscalibration - discrimination + uncertainty, by isotonic regression.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.corp([0, 0, 1, 1], probs=[0.1, 0.3, 0.2, 0.9]).uncertainty
    0.25
    """

    divergence: str
    score: Loss
    miscalibration: Loss
    discrimination: Annotated[float, Range()]
    uncertainty: Amount

    def _disagreement(self) -> str | None:
        parts = self.miscalibration - self.discrimination + self.uncertainty
        if close(self.score, parts):
            return None
        return f"has a score of {self.score:g}, and its parts add up to {parts:g}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SmoothCurve(Columnar):
    """Accuracy and density smoothed as SmoothECE does, at its own bandwidth.

    The Gaussian is reflected at 0 and 1. Where no row is near, the accuracy is NaN.

    Examples
    --------
    >>> import calibrant as cal
    >>> cal.evaluate_pairs([1, 0, 1, 1], [0.9, 0.4, 0.8, 0.7]).smooth.bandwidth > 0
    True
    """

    bandwidth: Annotated[float, Range(0, 1, above=True)]
    confidence: Shares
    accuracy: SharesOrNaN
    density: Amounts

    def _disagreement(self) -> str | None:
        rising = _falling(self.confidence, "confidence")
        return Columnar._disagreement(self) or rising

    def __repr__(self) -> str:
        places = len(self.confidence)
        return f"SmoothCurve({places} places, bandwidth {self.bandwidth:.3g})"


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
    text, advice : str
        What was found, in a sentence, and what to do about it.
    evidence : dict of str to float
        The numbers behind it.

    Examples
    --------
    >>> import calibrant as cal
    >>> first = cal.evaluate_pairs([1, 0, 1, 1] * 20, [0.75] * 80).audit()[0]
    >>> first.code, first.severity
    ('trivial-confidence', 'serious')
    """

    code: str
    severity: Annotated[str, OneOf(SEVERITIES)]
    models: tuple[str, ...]
    text: str
    evidence: Mapping[str, float]
    advice: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.text} {self.advice} [{self.code}]"


def listed(given: Sequence[str]) -> str:
    """Words in a sentence: HB, IR and MRR."""
    first = ", ".join(given[:-1])
    return f"{first} and {given[-1]}" if first else given[-1]
