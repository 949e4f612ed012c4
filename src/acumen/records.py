"""The parts of a result: estimates, decompositions, curves and bins.

They know how to turn themselves into dictionaries, JSON and frames, not how to compute.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from acumen import encoding
from acumen.encoding import Frame, to_frame

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
        bounds, read = given["interval"], encoding.number
        interval = None if bounds is None else (read(bounds[0]), read(bounds[1]))
        return cls(read(given["value"]), interval, given["method"])


class Record:
    """What all results share: dictionaries, strict JSON, and back."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """All fields, with arrays as lists and NaN and infinities as strings."""
        plain = [f.name for f in fields(self) if f.metadata.get("plain", True)]  # type: ignore[arg-type]
        return {name: encoding.plain(getattr(self, name)) for name in plain}

    def to_json(self, indent: int | None = None) -> str:
        """Strict JSON; ``from_json`` gives the same record back."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Restore what ``to_dict`` gave."""
        return encoding.restore(cls, given)

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
    >>> import acumen as ac
    >>> parts = ac.evaluate_pairs([1, 0, 1, 1], [0.9, 0.4, 0.8, 0.7]).decomposition
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
    >>> import acumen as ac
    >>> curve = ac.evaluate_pairs([1, 0, 1, 1] * 20, [0.9, 0.4, 0.8, 0.7] * 20).curve
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
    >>> import acumen as ac
    >>> ac.evaluate_pairs([1, 0, 1, 1], [0.9, 0.4, 0.8, 0.7], bins=2).bins.accuracy
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
    >>> import acumen as ac
    >>> ac.corp([0, 0, 1, 1], probs=[0.1, 0.3, 0.2, 0.9]).uncertainty
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
    >>> import acumen as ac
    >>> ac.evaluate_pairs([1, 0, 1, 1], [0.9, 0.4, 0.8, 0.7]).smooth.bandwidth > 0
    True
    """

    bandwidth: float
    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    density: NDArray[np.float64]

    def __repr__(self) -> str:
        places = len(self.confidence)
        return f"SmoothCurve({places} places, bandwidth {self.bandwidth:.3g})"
