"""Options: how to estimate, and what every metric function takes; checked once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypedDict, TypeVar

import numpy as np

from calibrant._base.checks import as_number, check_choice
from calibrant._inputs.divergences import BRIER, LOG, Divergence, find_divergence
from calibrant._inputs.predictions import Predictions, read_predictions

KERNELS = ("gaussian", "epanechnikov")
"""Names of the kernels; `_sketch.kernels` says what they are."""

# ----------------------------------------------------------------------------
# How to estimate: the options of `evaluate`, checked once.


PAPER_BANDWIDTH = 0.05
LEAST_BANDWIDTH, MOST_BANDWIDTH = 0.001, 10.0
MOST_LEVEL = 1 - 1e-12
LEAST_RESAMPLES, MOST_RESAMPLES = 100, 1_000_000

PAPER: dict[str, Any] = {
    "bandwidth": PAPER_BANDWIDTH,
    "kernel": "gaussian",
    "boundary": "none",
    "estimator": "direct",
    "closed": "left",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of `evaluate`; the defaults are its defaults."""

    divergence: str | Divergence = "brier"
    bandwidth: float | str = "auto"
    kernel: str = "gaussian"
    boundary: str = "none"
    estimator: str = "direct"
    counterpart: str = "paper"
    bins: int = 15
    closed: str = "right"
    level: float = 0.95
    engine: str = "auto"
    preset: str | None = None
    interval: str | None = "auto"
    resamples: int = 1000
    rng: int | np.random.Generator = 0

    def checked(self) -> Settings:
        """The same settings with the preset filled in, or one clear error."""
        check_choice(self.preset, "preset", (None, "paper"))
        check_choice(self.kernel, "kernel", KERNELS)
        check_choice(self.boundary, "boundary", ("none", "reflect"))
        check_choice(self.estimator, "estimator", ("direct", "plugin"))
        check_choice(self.counterpart, "counterpart", ("paper", "tight"))
        check_choice(self.engine, "engine", ("auto", "numpy", "numba"))
        check_choice(self.closed, "closed", ("right", "left"))
        check_choice(self.interval, "interval", ("auto", None))
        if not 0 < as_number(self.level) <= MOST_LEVEL:
            raise ValueError(f"level must be between 0 and 1, got {self.level!r}.")
        if self.counterpart == "tight" and self.main is not BRIER:
            raise ValueError("counterpart='tight' is defined for Brier only.")
        check_bandwidth(self.bandwidth)
        check_resamples(self.resamples)
        check_rng(self.rng)
        return self._as_published() if self.preset == "paper" else self

    def _as_published(self) -> Settings:
        """The paper's choices, unless one that was given contradicts them."""
        defaults = {field.name: field.default for field in fields(self)}
        for name, value in PAPER.items():
            given = getattr(self, name)
            if given not in (value, defaults[name]):
                raise ValueError(
                    f"preset='paper' means {name}={value!r}, got {name}={given!r}. "
                    "Leave one of them out."
                )
        return replace(self, **PAPER)

    @property
    def adaptive(self) -> bool:
        """Whether the width adapts to the data."""
        return self.bandwidth == "auto"

    @property
    def main(self) -> Divergence:
        """The divergence of the headline."""
        return find_divergence(self.divergence)

    @property
    def divergences(self) -> dict[str, Divergence]:
        """Brier, log and the user's own, if any."""
        return {"brier": BRIER, "log": LOG, self.main.name: self.main}

    @property
    def extra(self) -> dict[str, Divergence]:
        """Divergences besides the built-in ones."""
        return {n: d for n, d in self.divergences.items() if n not in ("brier", "log")}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the record."""
        values = asdict(replace(self, divergence="brier", rng=0))
        seed = "generator" if isinstance(self.rng, np.random.Generator) else self.rng
        return {**values, "divergence": self.main.name, "rng": seed}


def check_bandwidth(bandwidth: Any) -> None:
    """Allow ``"auto"`` and numbers a grid can resolve."""
    if bandwidth == "auto":
        return
    if not LEAST_BANDWIDTH <= as_number(bandwidth) <= MOST_BANDWIDTH:
        raise ValueError(
            f"bandwidth must be 'auto' or a number from {LEAST_BANDWIDTH:g} to "
            f"{MOST_BANDWIDTH:g}, got {bandwidth!r}."
        )


def check_resamples(resamples: Any) -> None:
    """Allow whole numbers that quantiles can be read from."""
    count = as_number(resamples)
    if not LEAST_RESAMPLES <= count <= MOST_RESAMPLES or count != int(count):
        raise ValueError(
            f"resamples must be a whole number from {LEAST_RESAMPLES} to "
            f"{MOST_RESAMPLES:,}, got {resamples!r}. Use interval=None for none."
        )


def check_rng(rng: Any) -> None:
    """Allow a seed or a generator."""
    if isinstance(rng, np.random.Generator):
        return
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer) or rng < 0:
        raise ValueError(
            "rng must be a whole number from 0 on or a numpy.random.Generator, "
            f"got {rng!r}."
        )


# ----------------------------------------------------------------------------
# What every metric function takes: labels, one kind of scores, and options.


class Scores(TypedDict, total=False):
    """Keywords shared by all metrics."""

    probs: Any
    logits: Any
    confidence: Any
    target: str | None
    classes: Any
    sample_weight: Any


Function = TypeVar("Function", bound=Callable[..., Any])


def takes_scores(function: Function) -> Function:
    """Show the shared keywords in the signature of a metric, where help() looks."""
    own = inspect.signature(function)
    first, *rest, _ = own.parameters.values()
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)
        for name in Scores.__annotations__
    ]
    shown = own.replace(parameters=[first, *shared, *rest])
    function.__signature__ = shown  # type: ignore[attr-defined]
    return function


def read_given(y: Any, given: Scores) -> Predictions:
    """Read labels and scores, or say which keyword does not exist."""
    unknown = [name for name in given if name not in Scores.__annotations__]
    if unknown:
        raise TypeError(
            f"unexpected keyword argument {unknown[0]!r}; scores are given as probs=, "
            "logits= or confidence=."
        )
    return read_predictions(y, **given)


def with_target(given: Scores, target: str, function: str) -> Scores:
    """The same with the one target a function is about; another is refused."""
    if given.get("target") not in (None, target):
        raise ValueError(f"{function} is about target={target!r}; leave target out.")
    return {**given, "target": target}


def target_of(predictions: Predictions) -> str:
    return "pairs" if predictions.kind == "confidence" else str(predictions.target)
