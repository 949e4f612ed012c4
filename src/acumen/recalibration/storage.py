"""Recalibrators as JSON files: readable, versioned, and nothing in them is executed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from acumen.encoding import plain
from acumen.writing import write_text

if TYPE_CHECKING:
    from acumen.recalibration.estimator import Recalibrator

FORMAT, VERSION = "acumen recalibrator", 1


def save(recalibrator: Recalibrator, path: str | Path) -> None:
    """Write a fitted recalibrator; an existing file is replaced once all is written."""
    write_text(Path(path), json.dumps(to_dict(recalibrator), allow_nan=False) + "\n")


def to_dict(recalibrator: Recalibrator) -> dict[str, Any]:
    """Parameters and what was learned, as plain data."""
    names = ("classes_", "n_features_in_", "notes_", *recalibrator.learned)
    learned = {name: _encode(getattr(recalibrator, name)) for name in names}
    if hasattr(recalibrator, "feature_names_in_"):
        learned["feature_names_in_"] = _encode(recalibrator.feature_names_in_)
    return {
        "format": FORMAT,
        "version": VERSION,
        "method": type(recalibrator).__name__,
        "parameters": {k: _encode(v) for k, v in recalibrator.get_params().items()},
        "learned": learned,
    }


def _encode(value: Any) -> Any:
    """Plain data; an array says so, with its type, to come back as it was."""
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            _check_names(value.tolist())
        return {"array": plain(value), "dtype": value.dtype.str}
    if isinstance(value, tuple):
        return {"tuple": [_encode(item) for item in value]}
    if isinstance(value, list):
        return [_encode(item) for item in value]
    if value is None or isinstance(value, str | int | float | bool | np.generic):
        return plain(value)
    raise TypeError(f"cannot save {value!r}: only numbers, text and arrays of them.")


def load(path: str | Path, expected: type[Recalibrator]) -> Any:
    """Read a recalibrator of the expected class or one of its subclasses."""
    given = _read(Path(path))
    method = next(
        (m for m in _methods(expected) if m.__name__ == given["method"]), None
    )
    if method is None:
        raise ValueError(
            f"{path} holds a {given['method']!r}, which is no {expected.__name__} known "
            "here; acumen.recalibration.load reads any method."
        )
    try:
        recalibrator = method(**{k: _decode(v) for k, v in given["parameters"].items()})
        for name, value in given["learned"].items():
            setattr(recalibrator, name, _decode(value))
        for name in ("classes_", "n_features_in_", "notes_", *method.learned):
            getattr(recalibrator, name)
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise ValueError(
            f"{path} is not a whole {method.__name__}: {error}."
        ) from error
    return recalibrator


def _read(path: Path) -> dict[str, Any]:
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is not JSON: {error}.") from error
    if not isinstance(given, dict) or given.get("format") != FORMAT:
        raise ValueError(f"{path} is not a saved recalibrator of acumen.")
    if given.get("version") != VERSION:
        raise ValueError(
            f"{path} has version {given.get('version')!r} of the format; this acumen "
            f"reads version {VERSION}."
        )
    parts = {"method": str, "parameters": dict, "learned": dict}
    missing = [name for name in parts if not isinstance(given.get(name), parts[name])]
    if missing:
        raise ValueError(f"{path} is not whole: {missing[0]!r} is missing.")
    return given


def _methods(base: type[Recalibrator]) -> list[type[Recalibrator]]:
    """A class and all that derive from it."""
    return [base, *(m for derived in base.__subclasses__() for m in _methods(derived))]


def _decode(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"array", "dtype"}:
        return _array(value["array"], np.dtype(value["dtype"]))
    if isinstance(value, dict) and set(value) == {"tuple"}:
        return tuple(_decode(item) for item in value["tuple"])
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if isinstance(value, dict):
        raise KeyError(*sorted(value))
    return value


def _array(values: list[Any], dtype: np.dtype[Any]) -> Any:
    if dtype == object:
        array = np.empty(len(values), object)
        array[:] = values
        return array
    return np.array(values, dtype)  # NumPy reads "inf" and "nan" as numbers


def _check_names(names: list[Any]) -> None:
    for name in names:
        if not isinstance(name, str | int | float | bool):
            raise TypeError(
                f"cannot save class {name!r}: JSON holds names that are text or numbers."
            )
