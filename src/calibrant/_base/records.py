"""Records of plain numbers: they turn themselves into dictionaries and JSON, and back."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import NoneType
from typing import Any, Self, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

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


def to_frame(columns: Mapping[str, NDArray[Any]]) -> Frame:
    """Make a frame of the library at hand: the one loaded, else the one installed."""
    known = ("polars", "pandas")
    loaded = [name for name in known if name in sys.modules]
    for name in (*loaded, *filter(find_spec, known)):
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


class Record:
    """What all results share: dictionaries, strict JSON, and back.

    A record is a dataclass. The types of its fields say how to read them; a field whose
    metadata says ``plain: False`` is not written.
    """

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """All fields, with arrays as lists and NaN and infinities as strings."""
        return {name: as_plain(value) for name, value in self._values().items()}

    def to_json(self, indent: int | None = None) -> str:
        """Strict JSON; ``from_json`` gives the same record back."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Restore what ``to_dict`` gave; a ValueError names the field that is off."""
        return _restored(cls, given)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Restore what ``to_json`` gave; a ValueError names the field that is off."""
        return cls.from_dict(json.loads(text))

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

    def frame(self) -> Frame:
        """One row per place: a Polars or pandas frame, or a dict of arrays without."""
        return to_frame(self._arrays())

    def _disagreement(self) -> str | None:
        lengths = {name: len(column) for name, column in self._arrays().items()}
        first = next(iter(lengths))
        for name, length in lengths.items():
            if length != lengths[first]:
                both = f"{first} has {lengths[first]}, {name} has {length}"
                return f"must have columns of one length; {both}"
        return None


class _RecordError(Exception):
    """Which field is off, and why."""


def _restored(record: Any, given: Any) -> Any:
    """A record from its plain data, or one error that names the field that is off."""
    name = "".join(f" {c.lower()}" if c.isupper() else c for c in record.__name__)
    try:
        return _decode(record, given, "")
    except _RecordError as refused:
        path, said = refused.args
        where = f": {path}" if path else ""
        raise ValueError(f"{name.strip()}{where} {said}.") from None


def _decode(kind: Any, given: Any, path: str, null: str = "") -> Any:
    """A value of some type from its plain data; `path` says which field it is."""
    origin, inner = get_origin(kind), get_args(kind)
    if NoneType in inner:
        return None if given is None else _decode(inner[0], given, path, " or null")
    if kind is Any:
        return given
    if kind in _PLAIN:
        return _plain(kind, given, path, null)
    if origin in (np.ndarray, NDArray):  # a name of its own from NumPy 2.5 on
        _demand(isinstance(given, list), path, "a list of numbers", given)
        numbers = [
            x if type(x) is float else _plain(float, x, f"{path}[{place}]", "")
            for place, x in enumerate(given)
        ]
        return np.array(numbers, np.float64)
    if origin is tuple:
        pair = inner[-1] is not ...
        rule = f"{'two numbers' if pair else 'a list'}{null}"
        fits = isinstance(given, list | tuple) and (len(given) == 2 or not pair)
        _demand(fits, path, rule, given)
        return tuple(_decode(inner[0], x, f"{path}[{i}]") for i, x in enumerate(given))
    _demand(isinstance(given, Mapping), path, f"a mapping{null}", given)
    if origin is Mapping:
        return {k: _decode(inner[1], x, _below(path, k)) for k, x in given.items()}
    return _record(kind, given, path)


def _record(kind: Any, given: Mapping[str, Any], path: str) -> Any:
    """A record of known class; fields that a later version added may be missing."""
    schema = _schema(kind)
    for name in given:
        if name not in schema:
            raise _RecordError(path, f"has no field {name!r}")
    for name, (_, required) in schema.items():
        if required and name not in given:
            raise _RecordError(_below(path, name), "is missing")
    read = {n: _decode(schema[n][0], x, _below(path, n)) for n, x in given.items()}
    try:
        made = kind(**read)
    except ValueError as error:
        raise _RecordError(path, f"is off: {str(error).removesuffix('.')}") from error
    if isinstance(made, Record) and (said := made._disagreement()):
        raise _RecordError(path, said)
    return made


@cache
def _schema(kind: Any) -> dict[str, tuple[Any, bool]]:
    """For each field that is written, its type, and whether it must be there."""
    hints = get_type_hints(kind)
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
    _demand(fits, path, f"{rule}{null}", given)
    return kind(given)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else str(name)


def _demand(holds: bool, path: str, rule: str, given: Any) -> None:  # noqa: FBT001
    if not holds:
        text = json.dumps(given, default=repr)
        shown = text if len(text) <= 40 else f"{text[:37]}..."
        raise _RecordError(path, f"must be {rule}, got {shown}")


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
    total: Estimate
    calibration: Estimate
    estimator: str
    kernel: str
    boundary: str
    bandwidth: float | None
    gap: Estimate | None = None
    resolution: float | None = None
    p_value: float | None = None

    @property
    def sharpness_gap(self) -> Estimate:
        """The loss that would remain if the model were calibrated."""
        value = float(self.total) - float(self.calibration)
        if self.gap is None:
            return Estimate(value)
        return Estimate(value, self.gap.interval, self.gap.method)


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

    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    sharpness_gap: NDArray[np.float64]
    loss: NDArray[np.float64]
    density: NDArray[np.float64]
    support: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    band_low: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    band_high: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        for name in ("band_low", "band_high"):  # records of 0.1.0 have none
            if not len(getattr(self, name)):
                nothing = np.full_like(self.confidence, np.nan)
                object.__setattr__(self, name, nothing)

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

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    count: NDArray[np.float64]
    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    variance: NDArray[np.float64]

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
    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


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

    bandwidth: float
    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    density: NDArray[np.float64]

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
    severity: str
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
