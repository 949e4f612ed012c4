"""Records of plain numbers: they turn themselves into dictionaries and JSON, and back."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.util import find_spec
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

# ----------------------------------------------------------------------------
# Records as plain data: strict JSON has no NaN and no infinity, so they are words.


Frame: TypeAlias = Any
"""A Polars or pandas data frame, or a dict of arrays where neither is installed."""

WORDS = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}


def as_plain(value: Any) -> Any:
    """Turn records, arrays and numbers into what strict JSON can hold.

    Examples
    --------
    >>> as_plain({"loss": np.array([0.5, np.inf])})
    {'loss': [0.5, 'inf']}
    """
    if hasattr(value, "to_dict"):
        return as_plain(value.to_dict())
    if isinstance(value, Mapping):
        return {str(key): as_plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return as_plain(value.tolist())
    if isinstance(value, list | tuple):
        return [as_plain(item) for item in value]
    if isinstance(value, np.generic):
        return as_plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return "nan" if np.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def number(value: Any) -> float:
    """Read a number, or the word for one."""
    return float(WORDS.get(value, value)) if isinstance(value, str) else float(value)


def array(values: Any) -> NDArray[np.float64]:
    """Read a list of numbers."""
    return np.array([number(value) for value in values], dtype=np.float64)


def restore(record: type[Any], given: Mapping[str, Any]) -> Any:
    """Make a record again from its plain data."""
    if record in (Curve, Bins, SmoothCurve):
        return record(
            **{
                name: array(value) if isinstance(value, list) else number(value)
                for name, value in given.items()
            }
        )
    if record is Corp:
        words = {"divergence": given["divergence"]}
        return record(
            **{n: number(x) for n, x in given.items() if n not in words}, **words
        )
    if record is Decomposition:
        names = [n for n in ("total", "calibration", "gap") if given.get(n) is not None]
        return record(**{**given, **{n: _estimate(given[n]) for n in names}})
    return _evaluation(given)


def _evaluation(given: Mapping[str, Any]) -> Any:
    from calibrant._base.evaluation import Evaluation

    restored = dict(given)
    for name in ("decompositions", "paper_decompositions"):
        parts = given[name].items()
        restored[name] = {k: Decomposition.from_dict(v) for k, v in parts}
    for name in ("curves", "paper_curves"):
        restored[name] = {k: Curve.from_dict(v) for k, v in given[name].items()}
    restored["metrics"] = {k: _estimate(v) for k, v in given["metrics"].items()}
    for name in ("bins", "mass_bins", "atoms", "isotonic"):
        restored[name] = Bins.from_dict(given[name])
    for name in ("histogram", "log_odds_histogram"):
        restored[name] = array(given[name])
    restored["smooth"] = SmoothCurve.from_dict(given["smooth"])
    restored["per_class"] = tuple(_evaluation(one) for one in given["per_class"])
    groups = given.get("per_group", {}).items()
    restored["per_group"] = {name: _evaluation(one) for name, one in groups}
    return Evaluation(**restored)


def _estimate(given: Mapping[str, Any]) -> Any:
    bounds = given["interval"]
    interval = None if bounds is None else (number(bounds[0]), number(bounds[1]))
    return Estimate(number(given["value"]), interval, given["method"])


def to_frame(columns: Mapping[str, NDArray[Any]]) -> Frame:
    """Make a frame of the library at hand: the one loaded, else the one installed."""
    known = ("polars", "pandas")
    loaded = [name for name in known if name in sys.modules]
    installed = [name for name in known if find_spec(name) is not None]
    for name in (*loaded, *installed):
        library = __import__(name)
        return library.DataFrame(dict(columns))
    return dict(columns)


# ----------------------------------------------------------------------------
# The parts of a result: estimates, decompositions, curves and bins.
#
# They know how to turn themselves into dictionaries, JSON and frames, not how to compute.


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
        self.interval = (
            None if interval is None else (float(interval[0]), float(interval[1]))
        )
        self.method = method
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
        bounds, read = given["interval"], number
        interval = None if bounds is None else (read(bounds[0]), read(bounds[1]))
        return cls(read(given["value"]), interval, given["method"])


class Record:
    """What all results share: dictionaries, strict JSON, and back."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """All fields, with arrays as lists and NaN and infinities as strings."""
        plain = [f.name for f in fields(self) if f.metadata.get("plain", True)]  # type: ignore[arg-type]
        return {name: as_plain(getattr(self, name)) for name in plain}

    def to_json(self, indent: int | None = None) -> str:
        """Strict JSON; ``from_json`` gives the same record back."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Restore what ``to_dict`` gave."""
        return restore(cls, given)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Restore what ``to_json`` gave."""
        return cls.from_dict(json.loads(text))


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

    @property
    def sharpness_gap(self) -> Estimate:
        """The loss that would remain if the model were calibrated."""
        value = float(self.total) - float(self.calibration)
        if self.gap is None:
            return Estimate(value)
        return Estimate(value, self.gap.interval, self.gap.method)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Curve(Record):
    """Accuracy, loss and density as functions of confidence.

    All fields are arrays of one length. Where no row is near, `support` (the weight of
    rows nearby) is about 0 and everything estimated is NaN. `low` and `high` are a
    pointwise band of the accuracy, NaN where none was computed.

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

    def __repr__(self) -> str:
        ends = f"{self.confidence[0]:.3g} to {self.confidence[-1]:.3g}"
        return f"Curve({len(self.confidence)} places, confidence {ends})"

    def frame(self) -> Frame:
        """One row per place: a Polars or pandas frame, or a dict of arrays without."""
        return to_frame({f.name: getattr(self, f.name) for f in fields(self)})


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Bins(Record):
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
        return f"Bins({len(self.count)} bins, {self.count.sum():,.10g} rows)"

    def frame(self) -> Frame:
        """One row per bin: a Polars or pandas frame, or a dict of arrays without."""
        return to_frame({f.name: getattr(self, f.name) for f in fields(self)})


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
class SmoothCurve(Record):
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


# ----------------------------------------------------------------------------
# Findings: what a reader should know before quoting a number.


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
