"""Names of recalibration methods, as studies and the command line take them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from acumen.recalibration import (
    BetaCalibration,
    DirichletCalibration,
    EnsembleTemperatureScaling,
    HistogramBinning,
    Identity,
    IsotonicCalibration,
    MatrixScaling,
    MeanReplacement,
    PlattScaling,
    Recalibrator,
    TemperatureScaling,
    VectorScaling,
)

Methods: TypeAlias = (
    str | Sequence[str | Recalibrator] | Mapping[str, str | Recalibrator]
)

PAPER = ("temperature", "histogram", "isotonic", "mean-replacement")

METHODS: dict[str, tuple[str, Callable[..., Recalibrator], dict[str, Any]]] = {
    "identity": ("Uncalibrated", Identity, {}),
    "temperature": ("Temperature", TemperatureScaling, {}),
    "ensemble-temperature": ("Ensemble temperature", EnsembleTemperatureScaling, {}),
    "vector": ("Vector", VectorScaling, {}),
    "matrix": ("Matrix", MatrixScaling, {}),
    "dirichlet": ("Dirichlet", DirichletCalibration, {}),
    "platt": ("Platt", PlattScaling, {}),
    "beta": ("Beta", BetaCalibration, {}),
    "histogram": ("Histogram binning", HistogramBinning, {}),
    "histogram-top-label": (
        "Histogram binning (top label)",
        HistogramBinning,
        {"mode": "top-label"},
    ),
    "isotonic": ("Isotonic", IsotonicCalibration, {}),
    "isotonic-top-label": (
        "Isotonic (top label)",
        IsotonicCalibration,
        {"mode": "top-label"},
    ),
    "mean-replacement": ("Mean replacement", MeanReplacement, {}),
}
"""Name of a model in tables, its class, and options, by the name of the method."""

LIKE_NETCAL = ("histogram", "isotonic")


def recalibrators_for(
    methods: Methods, kind: str, classes: Any, preset: str | None
) -> dict[str, Recalibrator]:
    """Recalibrators by the name of their model.

    The uncalibrated model comes first, and mean replacement last if it is not among
    them: it is the yardstick of every calibration error.
    """
    named = _named(methods)
    chosen: dict[str, Recalibrator] = {}
    for name, method in [("", "identity"), *named, ("", "mean-replacement")]:
        title, recalibrator = _make(method, kind, classes, preset)
        if method in ("identity", "mean-replacement") and _has(chosen, recalibrator):
            continue
        title = name or title
        if title in chosen:
            raise ValueError(
                f"methods has two models called {title!r}; pass a mapping from names of "
                "your choice to methods."
            )
        chosen[title] = recalibrator
    return chosen


def recalibrator_named(
    method: str, kind: str, classes: Any = None, preset: str | None = None
) -> Recalibrator:
    """A recalibrator that is not fitted, by the name of its method."""
    return _make(method, kind, classes, preset)[1]


def _named(methods: Methods) -> list[tuple[str, str | Recalibrator]]:
    if isinstance(methods, str):
        groups: dict[str, Iterable[str]] = {"paper": PAPER, "all": METHODS}
        return [("", name) for name in groups.get(methods, (methods,))]
    if isinstance(methods, Mapping):
        return [(str(name), method) for name, method in methods.items()]
    if isinstance(methods, Recalibrator):
        return [("", methods)]
    return [("", method) for method in methods]


def _has(chosen: Mapping[str, Recalibrator], recalibrator: Recalibrator) -> bool:
    return any(type(other) is type(recalibrator) for other in chosen.values())


def _make(
    method: str | Recalibrator, kind: str, classes: Any, preset: str | None
) -> tuple[str, Recalibrator]:
    """A title and a recalibrator that is not fitted."""
    if isinstance(method, Recalibrator):
        if method.scores != kind:
            raise ValueError(
                f"{method!r} takes {method.scores}, but the study was given {kind}: make "
                f"it with scores={kind!r}."
            )
        copy = type(method)(**method.get_params())
        if copy.classes is None:
            copy.set_params(classes=classes)
        return _title(method), copy
    if method not in METHODS:
        options = ", ".join(repr(name) for name in METHODS)
        raise ValueError(
            f"methods must be 'paper', 'all', recalibrators, or among {options}; got "
            f"{method!r}."
        )
    title, make, options_of = METHODS[method]
    like_netcal = preset == "paper" and method in LIKE_NETCAL
    compat = {"compat": "netcal"} if like_netcal else {}
    return title, make(scores=kind, classes=classes, **options_of, **compat)


def _title(recalibrator: Recalibrator) -> str:
    """The usual name of a method, or its class in words for one's own."""
    for title, make, options in METHODS.values():
        same = all(getattr(recalibrator, k, None) == v for k, v in options.items())
        if type(recalibrator) is make and (options or _plain(recalibrator)) and same:
            return title
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(recalibrator).__name__).capitalize()


def _plain(recalibrator: Recalibrator) -> bool:
    return getattr(recalibrator, "mode", "one-vs-rest") == "one-vs-rest"
