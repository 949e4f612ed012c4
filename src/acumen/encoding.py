"""Records as plain data: strict JSON has no NaN and no infinity, so they are words."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Frame: TypeAlias = Any
"""A Polars or pandas data frame, or a dict of arrays where neither is installed."""

WORDS = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}


def plain(value: Any) -> Any:
    """Turn records, arrays and numbers into what strict JSON can hold.

    Examples
    --------
    >>> plain({"loss": np.array([0.5, np.inf])})
    {'loss': [0.5, 'inf']}
    """
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
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
    from acumen import results

    if record in (results.Curve, results.Bins, results.SmoothCurve):
        return record(
            **{
                name: array(value) if isinstance(value, list) else number(value)
                for name, value in given.items()
            }
        )
    if record is results.Corp:
        words = {"divergence": given["divergence"]}
        return record(
            **{n: number(x) for n, x in given.items() if n not in words}, **words
        )
    if record is results.Decomposition:
        names = [n for n in ("total", "calibration", "gap") if given.get(n) is not None]
        return record(**{**given, **{n: _estimate(given[n]) for n in names}})
    return _evaluation(given)


def _evaluation(given: Mapping[str, Any]) -> Any:
    from acumen.results import Bins, Curve, Decomposition, Evaluation, SmoothCurve

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
    from acumen.results import Estimate

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
