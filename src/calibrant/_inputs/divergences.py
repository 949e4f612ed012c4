r"""Bregman divergences: a proper score and the calibration error that belongs to it.

A convex function :math:`\phi` on the simplex gives the full loss

.. math:: d_\phi(x, y) = \phi(x) - \phi(y) - \langle \nabla\phi(y), x - y \rangle,

and its one-dimensional counterpart :math:`\varphi` on [0, 1] the calibration error.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import (
    MOST_NAME,
    check_flags,
    check_kind,
    check_text,
    one_line,
    shown,
)
from calibrant._inputs.arrays import Column, Table, sigmoid, softplus

_CHECK_POINTS = 400


@dataclass(frozen=True, slots=True)
class Divergence:
    r"""A Bregman divergence on the simplex with its counterpart on [0, 1].

    Parameters
    ----------
    name : str
        How the divergence is called in results and in ``divergence=``.
    phi : callable
        The convex function on the simplex: (n, k) probabilities to (n,) numbers.
    gradient : callable
        Its gradient: (n, k) to (n, k).
    phi_1d, derivative_1d : callable
        The convex counterpart on [0, 1] and its derivative, (n,) to (n,).
    label, score : str, optional
        What it is called in a heading, and what its mean loss is called in a sentence
        (``"Brier"`` and ``"Brier score"``); by default its name.
    by_pairs : bool
        Whether d(a, h) is the squared distance, so that pairs of close rows estimate the
        calibration error; that of others comes from local Platt scaling.
    logit_slope : bool
        Whether the derivative is the log-odds, as that of the log loss is. Losses are
        then exact where a confidence rounds to 0 or 1.

    Notes
    -----
    Construction checks numerically that both functions are convex and finite, that the
    gradients belong to them, and whether d_phi(x, y) >= d_phi1(x_i, y_i) for every class
    i. Only then is the confidence calibration error a lower bound of the full one (the
    paper's Lemma on confidence calibration); ``dominates`` says so.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import Divergence
    >>> half = Divergence(
    ...     "half Brier",
    ...     phi=lambda x: 0.5 * (x**2).sum(axis=1),
    ...     gradient=lambda x: x,
    ...     phi_1d=lambda p: 0.5 * p**2,
    ...     derivative_1d=lambda p: p,
    ... )
    >>> half.dominates
    True
    >>> float(half.on_unit(np.array([0.75]), np.array([0.25]))[0])
    0.125
    """

    name: str
    phi: Callable[[Table], Column]
    gradient: Callable[[Table], Table]
    phi_1d: Callable[[Column], Column]
    derivative_1d: Callable[[Column], Column]
    label: str = ""
    score: str = ""
    by_pairs: bool = False
    logit_slope: bool = False
    dominates: bool = field(init=False)

    def __post_init__(self) -> None:
        for text in ("name", "label", "score"):
            check_text(given := getattr(self, text), text)
            if given != one_line(given, MOST_NAME):
                raise ValueError(f"{text} must be one short line, got {shown(given)}.")
        check_flags(by_pairs=self.by_pairs, logit_slope=self.logit_slope)
        _try(self)
        object.__setattr__(self, "label", self.label or self.name)
        object.__setattr__(self, "score", self.score or self.name)
        object.__setattr__(self, "dominates", _check(self))

    @property
    def portable(self) -> bool:
        """Whether it can be pickled: if it is built in, or made of functions by name."""
        parts = (self.phi, self.gradient, self.phi_1d, self.derivative_1d)
        named = ("<" not in getattr(part, "__qualname__", "<") for part in parts)
        return BUILT_IN.get(self.name) is self or all(named)

    def __reduce__(self) -> Any:
        if BUILT_IN.get(self.name) is self:
            return find_divergence, (self.name,)
        return Divergence, tuple(getattr(self, x.name) for x in fields(self) if x.init)

    def between(self, x: Table, y: Table) -> Column:
        """d_phi(x, y) row by row; 0 times infinity counts as 0."""
        with np.errstate(all="ignore"):
            slope = self.gradient(y)
            inner = np.where(x == y, 0.0, slope * (x - y)).sum(axis=1)
            return self.phi(x) - self.phi(y) - inner

    def of_labels(self, probs: Table, labels: NDArray[Any]) -> Column:
        """d_phi(e_y, p): the loss of each row for its observed class."""
        one_hot = np.zeros_like(probs)
        one_hot[np.arange(len(probs)), labels] = 1.0
        return self.between(one_hot, probs)

    def on_unit(self, a: Column, h: Column) -> Column:
        """The counterpart d(a, h) for two columns of numbers in [0, 1]."""
        with np.errstate(all="ignore"):
            slope = np.where(a == h, 0.0, self.derivative_1d(h) * (a - h))
            return self.phi_1d(a) - self.phi_1d(h) - slope

    def unit_loss(self, a: Column, h: Column, z: Column) -> Column:
        """d(a, h) of rows whose log-odds are known too, as exactly as it can be."""
        if self.by_pairs:
            return (a - h) ** 2
        return self.of_log_odds(a, z) if self.logit_slope else self.on_unit(a, h)

    def of_log_odds(self, a: Column, z: Column) -> Column:
        """The counterpart d(a, h) at the log-odds of h, exact near 0 and 1 for log."""
        if not self.logit_slope:
            return self.on_unit(a, sigmoid(z))
        if ((a == 0) | (a == 1)).all():
            return softplus(np.where(a > 0, -z, z))
        with np.errstate(invalid="ignore"):
            yes = np.where(a > 0, a * softplus(-z), 0.0)
            no = np.where(a < 1, (1 - a) * softplus(z), 0.0)
        return yes + no + self.phi_1d(a)

    def tangent(self, h: Column, z: Column) -> tuple[Column, Column]:
        """phi'(h) and phi(h) - h phi'(h), given h and its log-odds; may be infinite."""
        if self.logit_slope:
            return z, -softplus(z)
        with np.errstate(all="ignore"):
            slope = np.asarray(self.derivative_1d(h), dtype=np.float64)
            return slope, self.phi_1d(h) - h * slope

    def curvature_1d(self, p: Column) -> Column:
        """Second derivative of the counterpart, by a central difference."""
        step = 1e-5 * np.minimum(p, 1 - p) + 1e-12
        slope = self.derivative_1d
        return (slope(p + step) - slope(p - step)) / (2 * step)

    def curvature(self, p: Column, variance: Column) -> Column:
        """The same times the variance p (1 - p), which is 1 for the log loss."""
        return np.ones_like(p) if self.logit_slope else self.curvature_1d(p) * variance


def _try(divergence: Divergence) -> None:
    """Call the four functions once, or say which of them is none."""
    rows, unit = np.full((2, 3), 1 / 3), np.array([0.25, 0.5])
    for name, at, shape in (
        ("phi", rows, (2,)),
        ("gradient", rows, (2, 3)),
        ("phi_1d", unit, (2,)),
        ("derivative_1d", unit, (2,)),
    ):
        rule = f"divergence {divergence.name!r}: {name} must map {at.shape} to {shape}"
        try:
            with np.errstate(all="ignore"):
                found = np.asarray(getattr(divergence, name)(at), np.float64)
        except Exception as error:
            raise TypeError(f"{rule} numbers, and fails: {shown(error)}.") from error
        if found.shape != shape:
            raise ValueError(f"{rule} numbers, got shape {found.shape}.")


def _check(divergence: Divergence) -> bool:
    """Check convexity and gradients on random points; return whether phi dominates."""
    # Labels sit in the corners, so both functions must be finite there.
    with np.errstate(all="ignore"):
        corners = divergence.phi(np.eye(3)), divergence.phi_1d(np.array([0.0, 1.0]))
    if not all(np.isfinite(values).all() for values in corners):
        raise ValueError(
            f"divergence {divergence.name!r}: phi and phi_1d must be finite for "
            "certain forecasts too (0 log 0 is 0, not NaN)."
        )
    rng = np.random.default_rng(0)
    p, q = rng.random((2, _CHECK_POINTS))
    d, slope = divergence.on_unit(p, q), divergence.derivative_1d(p)
    _require_divergence(divergence, d, divergence.on_unit(p, p), "phi_1d")
    _check_slope(divergence, "phi_1d", slope, p, 1.0)
    dominates = True
    for k in (2, 3, 7):
        x, y = rng.dirichlet(np.full(k, 0.7), (2, _CHECK_POINTS))
        x, y = 1e-6 / k + (1 - 1e-6) * x, 1e-6 / k + (1 - 1e-6) * y
        full = divergence.between(x, y)
        _require_divergence(divergence, full, divergence.between(x, x), "phi")
        towards = x - y
        slope = (divergence.gradient(y) * towards).sum(axis=1)
        _check_slope(divergence, "phi", slope, y, towards)
        unit = divergence.on_unit(x.ravel(), y.ravel()).reshape(x.shape)
        dominates &= bool(np.all(full[:, None] >= unit - 1e-9))
    return dominates


def _require_divergence(
    divergence: Divergence, d: Column, itself: Column, name: str
) -> None:
    said = ""
    if np.shape(d) != (_CHECK_POINTS,) or not np.isfinite(d).all():
        said = f"{name} must map each row to one finite number inside the simplex."
    elif d.min() < -1e-9:
        said = f"{name} must be convex, but it gives a negative divergence "
        said += f"({d.min():.3g}). Check the sign and the gradient."
    elif np.abs(itself).max() > 1e-9:
        said = f"d(p, p) must be 0, got {np.abs(itself).max():.3g}."
    if said:
        raise ValueError(f"divergence {divergence.name!r}: {said}")


def _check_slope(
    divergence: Divergence, name: str, slope: Column, at: Any, towards: Any
) -> None:
    """Compare the slope given with a central difference of the function itself."""
    phi, eps = getattr(divergence, name), 1e-6
    measured = (phi(at + eps * towards) - phi(at - eps * towards)) / (2 * eps)
    least = np.minimum(at, 1 - at) if np.ndim(at) == 1 else at.min(axis=1)
    inside = least > 1e-3  # away from the edges, where a derivative may be infinite
    wrong = np.abs(measured - slope)[inside] > 1e-4 * (1 + np.abs(slope[inside]))
    if wrong.any():
        raise ValueError(
            f"divergence {divergence.name!r}: the derivative given for {name} does not "
            f"match its differences ({int(wrong.sum())} of {wrong.size} points)."
        )


BRIER = Divergence(
    "brier",
    phi=lambda x: np.vecdot(x, x),
    gradient=lambda x: 2 * x,
    phi_1d=lambda p: p * p,
    derivative_1d=lambda p: 2 * p,
    label="Brier",
    score="Brier score",
    by_pairs=True,
)


def _xlogx(x: Table) -> Table:
    return x * np.log(np.where(x > 0, x, 1.0))


LOG = Divergence(
    "log",
    phi=lambda x: _xlogx(x).sum(axis=1),
    gradient=np.errstate(divide="ignore")(lambda x: np.log(x) + 1.0),
    phi_1d=lambda p: _xlogx(p) + _xlogx(1 - p),
    derivative_1d=np.errstate(divide="ignore")(lambda p: np.log(p) - np.log1p(-p)),
    label="NLL",
    score="log loss",
    logit_slope=True,
)


def _up_to_each(x: Table) -> Table:
    return np.cumsum(x, axis=1)[:, :-1]


def _rps(x: Table) -> Column:
    return np.square(_up_to_each(x)).sum(axis=1)


def _rps_gradient(x: Table) -> Table:
    slope = np.cumsum(2 * _up_to_each(x)[:, ::-1], axis=1)[:, ::-1]
    return np.pad(slope, ((0, 0), (0, 1)))


def _half_square(p: Column) -> Column:
    return 0.5 * p**2


RPS = Divergence(
    "rps",
    phi=_rps,
    gradient=_rps_gradient,
    phi_1d=_half_square,  # a class between two others moves two sums
    derivative_1d=np.array,
    label="RPS",
    score="ranked probability score",
)
"""Of ordered classes: squared distances of the sums up to each class."""

BUILT_IN = {"brier": BRIER, "log": LOG}
_REGISTERED: dict[str, Divergence] = {**BUILT_IN, RPS.name: RPS}


def register_divergence(divergence: Divergence) -> Divergence:
    """Make a divergence available by name in ``evaluate(divergence=...)``.

    Warns when it does not dominate its counterpart: the confidence calibration
    error may then exceed the full one.

    Examples
    --------
    >>> import calibrant as cal
    >>> functions = (lambda x: 2 * (x**2).sum(axis=1), lambda x: 4 * x)
    >>> on_unit = (lambda p: 2 * p**2, lambda p: 4 * p)
    >>> twice = cal.Divergence("twice Brier", *functions, *on_unit)
    >>> cal.register_divergence(twice).name
    'twice Brier'
    """
    check_kind(divergence, Divergence, "divergence")
    if divergence.name in BUILT_IN:
        raise ValueError(f"{divergence.name!r} is built in; choose another name.")
    if not divergence.dominates:
        warnings.warn(
            f"divergence {divergence.name!r} does not dominate its one-dimensional "
            "counterpart: the confidence calibration error is no lower bound of the "
            "full calibration error.",
            stacklevel=2,
        )
    _REGISTERED[divergence.name] = divergence
    return divergence


def find_divergence(name: Any) -> Divergence:
    """Look up a divergence by name; a Divergence is returned as it is."""
    if isinstance(name, Divergence):
        if name is not BUILT_IN.get(name.name, name):
            raise ValueError(f"{name.name!r} is built in; choose another name.")
        return name
    if not isinstance(name, str) or name not in _REGISTERED:
        known = ", ".join(repr(known) for known in _REGISTERED)
        raise ValueError(
            f"divergence must be one of {known} or a Divergence, got {shown(name)}. "
            "Your own is added with register_divergence."
        )
    return _REGISTERED[name]


def score_in_words(divergence: str) -> str:
    """What the score of a divergence is called in a sentence.

    One without a word of its own, or not registered here, as in a record from a file, is
    called by its name.

    Examples
    --------
    >>> score_in_words("rps"), score_in_words("no such")
    ('ranked probability score', 'no such score')
    """
    try:
        score = find_divergence(divergence).score
    except ValueError:
        score = divergence
    return f"{score} score" if score == divergence else score
