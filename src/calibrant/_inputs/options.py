"""Options: how to estimate, and what every metric function takes; checked once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import update_wrapper
from types import FunctionType
from typing import Any, TypedDict, TypeVar, cast

import numpy as np

from calibrant._base.checks import as_number, check_choice, check_number, shown
from calibrant._inputs.divergences import BRIER, BUILT_IN, Divergence, find_divergence
from calibrant._inputs.predictions import TARGETS, Predictions, read_predictions

KERNELS = ("gaussian", "epanechnikov")
"""Names of the kernels; `_sketch.kernels` says what they are."""

CHOICES: dict[str, tuple[str | None, ...]] = {
    "preset": (None, "paper"),
    "kernel": KERNELS,
    "boundary": ("none", "reflect"),
    "estimator": ("direct", "plugin"),
    "counterpart": ("paper", "tight"),
    "engine": ("auto", "numpy", "compiled"),
    "closed": ("right", "left"),
    "interval": ("auto", None),
}

MOST_BINS = 1_000_000
PAPER_BANDWIDTH = 0.05
LEAST_BANDWIDTH, MOST_BANDWIDTH = 0.001, 10.0
MOST_LEVEL = 1 - 1e-12
RESAMPLES = 100, 1_000_000
"""Fewest, which quantiles can be read from, and most."""
FEWEST_OF_A_TEST = 20  # with fewer no simulated p-value is below 0.05

OF_A_BANDWIDTH = ("kernel", "boundary", "estimator")
PAPER: dict[str, Any] = {
    "bandwidth": PAPER_BANDWIDTH,
    "kernel": "gaussian",
    "boundary": "none",
    "estimator": "direct",
    "closed": "left",
}


class Estimation(TypedDict, total=False):
    """The options that say how to estimate, but for the seed."""

    divergence: str | Divergence
    bandwidth: float | str
    kernel: str
    boundary: str
    estimator: str
    counterpart: str
    bins: int
    closed: str
    level: float
    engine: str
    preset: str | None
    interval: str | None
    resamples: int


class Options(Estimation, total=False):
    """How to estimate: options that `evaluate` takes, and all that evaluates by it.

    Parameters
    ----------
    divergence : str or Divergence
        The headline's divergence: ``"brier"`` (summed over classes, 0..2), ``"log"``,
        or your own.
    bandwidth : "auto" or float
        ``"auto"`` gives the debiased adaptive estimate with its interval; a number the
        paper's Nadaraya-Watson estimate, with `kernel`, `boundary` and `estimator`.
    kernel : {"gaussian", "epanechnikov"}
        Of the paper's estimate; like the next two for a `bandwidth` that is a number.
    boundary : {"none", "reflect"}
        What becomes of its kernel beyond 0 and 1.
    estimator : {"direct", "plugin"}
        The authors' code, or their Theorem.
    counterpart : {"paper", "tight"}
        ``"tight"`` scales the Brier calibration error of the top label by k / (k - 1),
        the largest factor for which it stays below the full calibration error.
    bins : int
        Number of equal-width bins.
    closed : {"right", "left"}
        Which end belongs to a bin.
    level : float
        Coverage of the intervals.
    engine : {"auto", "numpy", "compiled"}
        What reduces the rows; results agree to the precision of the input.
    preset : {"paper"}, optional
        All choices as published: bandwidth 0.05, left-closed bins, relplot's SmoothECE.
    interval : {"auto", None}
        Whether every metric gets an interval, or only those that cost nothing: accuracy,
        mean losses and d_CAL.
    resamples : int
        Number of resamples behind the intervals of calibration errors.
    rng : int or numpy.random.Generator
        Their seed; the same seed gives the same intervals.
    """

    rng: int | np.random.Generator


def brier_factor(counterpart: str | None, k: int | None) -> float:
    """What the calibration error by Brier is multiplied by, for k classes."""
    return k / (k - 1) if counterpart == "tight" and k else 1.0


@dataclass(frozen=True, slots=True)
class Settings:
    """The options with their defaults."""

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

    @classmethod
    def of(cls, options: Mapping[str, Any], function: Callable[..., Any]) -> Settings:
        """The options given to a function, checked; one that it has not is refused."""
        for name in options:
            if name not in Options.__annotations__:
                raise no_option(name, function)
        return cls(**options).checked(options)

    def checked(self, given: Container[str] = ()) -> Settings:
        """The same with the preset filled in, or one clear error; `given` were spelt out."""
        for name, choices in CHOICES.items():
            check_choice(getattr(self, name), name, choices)
        if not 0 < as_number(self.level) <= MOST_LEVEL:
            raise ValueError(f"level must be between 0 and 1, got {shown(self.level)}.")
        if self.counterpart == "tight" and self.main is not BRIER:
            raise ValueError("counterpart='tight' is defined for Brier only.")
        check_bandwidth(self.bandwidth)
        check_number(self.bins, "bins", 1, MOST_BINS, kind="a whole number")
        kind, remedy = "a whole number", "Use interval=None for none."
        check_number(self.resamples, "resamples", *RESAMPLES, kind=kind, remedy=remedy)
        check_rng(self.rng)
        if self.preset == "paper":
            return self._as_published(given)
        for name in OF_A_BANDWIDTH if self.adaptive else ():
            if (choice := getattr(self, name)) != CHOICES[name][0]:
                raise ValueError(
                    f"{name}={choice!r} belongs to the paper's estimate, and "
                    "bandwidth='auto' is another. Give a bandwidth, such as "
                    f"bandwidth={PAPER_BANDWIDTH}, or leave {name} out."
                )
        return self

    def _as_published(self, given: Container[str]) -> Settings:
        """The paper's choices, unless one that was given contradicts them."""
        defaults = {field.name: field.default for field in fields(self)}
        for name, value in PAPER.items():
            found = getattr(self, name)
            if found != value and (name in given or found != defaults[name]):
                raise ValueError(
                    f"preset='paper' means {name}={value!r}, got {name}={found!r}. "
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
        return {**BUILT_IN, self.main.name: self.main}

    @property
    def extra(self) -> dict[str, Divergence]:
        """Divergences besides the built-in ones."""
        return {n: d for n, d in self.divergences.items() if n not in BUILT_IN}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the record."""
        values = asdict(replace(self, divergence="brier", rng=0))
        seed = "generator" if isinstance(self.rng, np.random.Generator) else self.rng
        return {**values, "divergence": self.main.name, "rng": seed}


def check_bandwidth(bandwidth: Any) -> None:
    """Allow ``"auto"`` and numbers a grid can resolve."""
    if not (isinstance(bandwidth, str) and bandwidth == "auto"):
        ends, kind = (LEAST_BANDWIDTH, MOST_BANDWIDTH), "'auto' or a number"
        check_number(bandwidth, "bandwidth", *ends, kind=kind)


def check_rng(rng: Any) -> None:
    """Allow a seed or a generator."""
    if isinstance(rng, np.random.Generator):
        return
    if isinstance(rng, bool) or not isinstance(rng, int | np.integer) or rng < 0:
        raise ValueError(
            "rng must be a whole number from 0 on or a numpy.random.Generator, "
            f"got {shown(rng)}."
        )


class Scores(TypedDict, total=False):
    """What every metric function takes besides its own options.

    Parameters
    ----------
    y : array_like
        Labels, or correctness if ``confidence=`` is given.
    probs, logits, confidence : array_like
        Scores; exactly one of the three.
    target, classes, sample_weight, frequency
        As in `calibrant.evaluate`.
    """

    probs: Any
    logits: Any
    confidence: Any
    target: Any
    classes: Any
    sample_weight: Any
    frequency: Any


Function = TypeVar("Function", bound=Callable[..., Any])


def takes_scores(function: Function) -> Function:
    """Show the keywords of all metrics in one's signature, and say what they are."""
    first, *rest, _ = inspect.signature(function).parameters.values()
    shared = [_keyword(name, None) for name in Scores.__annotations__]
    if function.__doc__ is not None:
        text, head = inspect.cleandoc(function.__doc__), "Parameters\n----------\n"
        if head not in text:
            text = text.replace("Examples\n", f"{head}\nExamples\n", 1)
        function.__doc__ = text.replace(head, f"{head}{_said(Scores)}\n", 1)
    return _shown(function, [first, *shared, *rest])


def no_option(name: str, function: Callable[..., Any]) -> TypeError:
    """The error of an option that a function has not, with what was perhaps meant."""
    from difflib import get_close_matches

    known = [*inspect.signature(function).parameters]
    near = get_close_matches(name, known, 1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}?" if near else f"options are {', '.join(known)}."
    if name == "pos_label":
        hint = "the positive class is the second column, or last of classes."
    return TypeError(f"{function.__name__} has no option {name!r}; {hint}")


def takes_options(function: Function) -> Function:
    """Show the options in the signature of a function, and say what they are."""
    *own, _ = inspect.signature(function).parameters.values()
    taken = {parameter.name for parameter in own}
    defaults = [(field.name, field.default) for field in fields(Settings)]
    shared = [_keyword(*one) for one in defaults if one[0] not in taken]
    if function.__doc__ is not None:
        text = inspect.cleandoc(function.__doc__)
        function.__doc__ = text.replace("**options : Options", _said(Options))
    return _shown(function, [*own, *shared])


def _said(shared: type) -> str:
    """What the docstring of shared keywords says of each."""
    return inspect.cleandoc(shared.__doc__ or "").partition("----------\n")[2]


def _keyword(name: str, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)


def _shown(function: Function, parameters: list[inspect.Parameter]) -> Function:
    shown = inspect.signature(function).replace(parameters=parameters)
    function.__signature__ = shown  # type: ignore[attr-defined]
    places = [x.name for x in parameters if x.kind is not x.KEYWORD_ONLY]
    return _asking_for_keywords(function) if places == ["y"] else function


def _asking_for_keywords(function: Function) -> Function:
    """Answer ``function(y, p)`` with its two spellings; Python would count positions."""
    known = {*inspect.signature(function).parameters}
    name, refused = function.__name__, no_option  # held here: globals below are others

    def call(*given: Any, **named: Any) -> Any:
        for unknown in (x for x in named if x not in known):
            raise refused(unknown, function)
        if len(given) > 1:
            raise TypeError(
                f"{name} is given scores by name: {name}(y, probs=p) if they are "
                f"probabilities, {name}(y, logits=p) if they are logits."
            )
        return function(*given, **named)

    # With the globals of its module, where doctests look for what is their own.
    own = FunctionType(
        call.__code__, function.__globals__, name, None, call.__closure__
    )
    return cast(Function, update_wrapper(own, function))


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
    if (other := given.get("target")) is not None:
        check_choice(other, "target", TARGETS)
    if other not in (None, target):
        raise ValueError(f"{function} is about target={target!r}; leave target out.")
    return {**given, "target": target}


def target_of(predictions: Predictions) -> str:
    return "pairs" if predictions.kind == "confidence" else str(predictions.target)
