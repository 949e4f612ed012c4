"""Temperatures that differ: by how unsure a row is, or in a mixture."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from calibrant._base.records import Positive, Range, Share, Shares, close
from calibrant._inputs.arrays import Column, Matrix, Table
from calibrant.recalibration import _temperature as temperature
from calibrant.recalibration._estimator import Progress, Recalibrator
from calibrant.recalibration._rows import Kind, Rows, softmax

LEAST_ENTROPY = 1e-12
SLOPE_SD = 0.5
"""Prior standard deviation of how much log T changes, and changes with one spread of log H."""

STEEPEST, FARTHEST = 2.0, 50.0
STARTS = ((0.0, 1.0), (0.7, 2.0), (-0.7, 3.0))
"""Where the search for a mixture starts: log of the first temperature, relative to the best
single one, and log of how many times the second is as hot."""

HOTTEST = 7.0
PRIOR_ROWS, PRIOR_SD = 0.5, 0.7
"""Rows that each part of a mixture is taken to have explained beforehand, and prior standard
deviation of log T1 around that of the best single temperature."""


def plain_temperature(scores: str, rows: Rows) -> temperature.TemperatureScaling:
    """Temperature scaling, fitted."""
    single = temperature.TemperatureScaling(scores)
    single.notes_ = ()
    single._learn(rows, lambda *_: None)
    return single


def log_entropy(d: Matrix, beta: float) -> Column:
    """Logarithm of the entropy of softmax(beta d) over that of the uniform distribution."""
    p = softmax(beta * d.astype(np.float64))
    terms = p * np.log(np.maximum(p, np.finfo(float).tiny))
    share = -terms.sum(axis=1) / np.log(d.shape[1])
    return np.log(np.maximum(share, LEAST_ENTROPY))


class TemperatureLine(NamedTuple):
    """How log T depends on the entropy, and the log loss with its prior."""

    intercept: float
    slope: float
    loss: float


@dataclass(eq=False, repr=False)
class AdaptiveTemperatureScaling(Recalibrator):
    """A temperature for each row, by how unsure the row is.

    log T = intercept + slope log H, where H is the entropy of softmax(z / T0), as a share of
    that of the uniform distribution, and T0 the best single temperature. One number more than temperature scaling: rows that are sure and those that are not may be
    off by different factors. The classes of a row keep their order. The log loss of the fit
    is never worse than at one temperature, to which a prior holds it.

    Parameters
    ----------
    scores, classes
        As in `Recalibrator`.

    Attributes
    ----------
    temperature_ : float
        T0, that of `TemperatureScaling`, or of the same without a lapse rate.
    intercept_, slope_ : float
        How log T depends on log H; a slope of 0 is one temperature.
    lapse_ : float
        As in `TemperatureScaling`, unless temperatures that differ explain the rows better.

    References
    ----------
    T. Joy et al., *Sample-dependent adaptive temperature scaling*, AAAI 2023, who read the
    temperature from features of the network. S. Balanya et al., *Adaptive temperature
    scaling for robust calibration*, 2022, from the entropy, as here.

    Examples
    --------
    >>> from calibrant.recalibration import AdaptiveTemperatureScaling
    >>> logits = [[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [0.0, 1.0]] * 25
    >>> hot = AdaptiveTemperatureScaling().fit(logits, [0, 0, 1, 1] * 25)
    >>> hot.predict_proba([[4.0, 0.0]]).round(1).tolist()
    [[0.7, 0.3]]
    """

    learned: ClassVar[Mapping[str, Any]] = {
        "temperature_": Positive,
        "slope_": Annotated[float, Range(-1e3, 1e3)],
        "intercept_": Annotated[float, Range()],
        "lapse_": Share,
    }

    scores: str = "logits"
    classes: Sequence[Hashable] | None = None

    def _learn(self, rows: Rows, progress: Progress) -> None:
        single = plain_temperature(self.scores, rows)
        found = self._learn_line(temperature.lifted(rows, single.lapse_), single)
        progress(0.5, "slope")
        if single.lapse_ and not single.impossible_:
            # Rows that one temperature leaves next to impossible may just be hotter.
            bare = temperature.TemperatureScaling(self.scores)
            bare.notes_, bare.lapse_ = (), 0.0
            bare._learn_temperature(rows)
            trial = self._learn_line(rows, bare)
            if trial.loss < found.loss:
                single, found = bare, trial
        self.temperature_, self.lapse_ = single.temperature_, single.lapse_
        self.notes_ = single.notes_
        self.intercept_, self.slope_ = found.intercept, found.slope
        progress(1.0, "slope")

    def _learn_line(
        self, rows: Rows, single: temperature.TemperatureScaling
    ) -> TemperatureLine:
        """Intercept and slope that make log loss and prior least."""
        from scipy.optimize import minimize

        d, own = temperature.below_top(rows, slice(0, len(rows)))
        d, known = d.astype(np.float64), own > temperature.FARTHEST
        start, weight = float(np.log(single.temperature_)), rows.weight_of_each * known
        x = log_entropy(d, 1 / single.temperature_)
        centre = float(weight @ x / weight.sum()) if known.any() else 0.0
        spread = float(np.sqrt(weight @ (x - centre) ** 2 / max(weight.sum(), 1e-300)))
        unit = np.clip((x - centre) / max(spread, 1e-9), -10, 10)

        def loss(line: Column) -> tuple[float, Column]:
            beta = np.exp(-(start + line[0] + line[1] * unit))
            e = np.exp(beta[:, None] * d)
            total = e.sum(axis=1)
            in_log = -beta * (np.vecdot(e, d) / total - own)
            value = weight @ np.where(known, np.log(total) - beta * own, 0.0)
            off = line / SLOPE_SD
            slopes = np.array([weight @ in_log, weight @ (in_log * unit)])
            return float(value + 0.5 * off @ off), slopes + off / SLOPE_SD

        plain, bounds = loss(np.zeros(2))[0], [(-STEEPEST, STEEPEST)] * 2
        if spread <= 1e-9 or single.at_boundary_:  # rows do not tell one temperature
            return TemperatureLine(start, 0.0, plain)
        found: Any = minimize(
            loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=bounds
        )
        shift, slope = found.x if found.fun < plain else (0.0, 0.0)
        slope, least = float(slope) / spread, min(float(found.fun), plain)
        return TemperatureLine(start + float(shift) - slope * centre, slope, least)

    def _apply(self, rows: Rows) -> tuple[Kind, Matrix]:
        rows = temperature.lifted(rows, self.lapse_)

        def work(part: slice, out: Matrix) -> None:
            d = temperature.tempered(rows, part, 1.0)
            safe = np.maximum(d.astype(np.float64), temperature.FARTHEST)
            x = log_entropy(safe, 1 / self.temperature_)
            beta = np.exp(
                -np.clip(self.intercept_ + self.slope_ * x, -FARTHEST, FARTHEST)
            )
            out[...] = d * beta[:, None].astype(d.dtype)

        return "logits", rows.filled(work)


@dataclass(eq=False, repr=False)
class MixtureScaling(Recalibrator):
    """Mix softmax(z / T1), softmax(z / T2) of a hotter T2, and the uniform distribution.

    For models that are mostly right and, where they are wrong, next to certain: naive Bayes
    on text, say, where one temperature must serve both and serves neither. All five numbers
    are fitted together, with half a pseudo-row for each part, so that no class becomes
    impossible and a few dozen rows are enough. `EnsembleTemperatureScaling` takes the
    temperature of the best single one instead. Classes of a row keep their order.

    Parameters
    ----------
    scores, classes
        As in `Recalibrator`.

    Attributes
    ----------
    temperatures_ : ndarray of shape (2,)
        T1 and T2.
    weights_ : ndarray of shape (3,)
        Weights of the three parts; they sum to 1.

    Examples
    --------
    >>> from calibrant.recalibration import MixtureScaling
    >>> logits = [[40.0, 0.0, 0.0]] * 99 + [[0.0, 40.0, 0.0]]
    >>> mixed = MixtureScaling().fit(logits, [0] * 90 + [1] * 10)
    >>> mixed.predict_proba([[40.0, 0.0, 0.0]]).round(1).tolist()
    [[0.9, 0.0, 0.0]]
    """

    learned: ClassVar[Mapping[str, Any]] = {
        "temperatures_": Annotated[Column, Range(0, above=True)],
        "weights_": Shares,
    }

    scores: str = "logits"
    classes: Sequence[Hashable] | None = None

    def _learn(self, rows: Rows, progress: Progress) -> None:
        fitted = plain_temperature(self.scores, rows)
        single, self.notes_ = fitted.temperature_, fitted.notes_
        d, own = temperature.below_top(rows, slice(0, len(rows)))
        centre = float(np.log(single))
        loss = MixtureLoss(d.astype(np.float64), own, rows.weight_of_each, centre)
        trials = []
        for number, (first, hotter) in enumerate(STARTS):
            start = np.array([centre + first, hotter, 1.0, 0.0, -1.0])
            trials.append(loss.descend(start))
            progress((number + 1) / len(STARTS), "mixture")
        best = min(trials, key=lambda found: found[0])[1]
        self.temperatures_, self.weights_ = loss.read(best)

    def _disagreement(self, k: int) -> str | None:
        shapes = self.temperatures_.shape, self.weights_.shape
        if shapes == ((2,), (3,)) and close(float(self.weights_.sum()), 1):
            return None
        return "must have two temperatures_, and three weights_ that sum to 1"

    def _apply(self, rows: Rows) -> tuple[Kind, Matrix]:
        first, second, uniform = self.weights_

        def mix(part: slice, out: Matrix) -> None:
            cold, hot = self.temperatures_
            block = first * softmax(temperature.tempered(rows, part, cold))
            block += second * softmax(temperature.tempered(rows, part, hot))
            block += uniform / rows.k
            out[:] = block / block.sum(axis=1, keepdims=True)

        return "probs", rows.filled(mix)


@dataclass(frozen=True, slots=True, eq=False)
class MixtureLoss:
    """Log loss of a mixture with its prior, per row, as a function of five free numbers.

    These are log T1, how much hotter T2 is (its logarithm, kept positive), and weights before
    the softmax.
    """

    d: Table
    own: Column
    weight: Column
    centre: float

    def read(self, free: Column) -> tuple[Column, Column]:
        """Temperatures and weights."""
        hotter = np.logaddexp(0.0, free[1])
        temperatures = np.exp([free[0], free[0] + hotter])
        return temperatures, softmax(free[None, 2:].copy())[0]

    def __call__(self, free: Column) -> tuple[float, Column]:
        """Value and gradient."""
        (cold, hot), mix = self.read(free)
        parts, slopes = np.full((3, len(self.own)), 1 / self.d.shape[1]), []
        for at, T in enumerate((cold, hot)):
            e = softmax(self.d / T)
            mean = np.vecdot(e, np.maximum(self.d, -1e300))
            parts[at] = e[np.arange(len(e)), self.label]
            slopes.append(-parts[at] * (self.own - mean) / T)  # in log T
        total = mix @ parts
        share = self.weight / total
        off = (free[0] - self.centre) / PRIOR_SD
        prior = PRIOR_ROWS * np.log(mix).sum() - 0.5 * off**2
        value = -float(self.weight @ np.log(total)) - float(prior)
        in_logs = [-mix[at] * float(share @ slopes[at]) for at in (0, 1)]
        rises = 1 / (1 + np.exp(-free[1]))
        by_part = np.append(parts @ share, 0.0)[:3] * mix
        in_mix = -(by_part - mix * by_part.sum()) - PRIOR_ROWS * (1 - 3 * mix)
        first = sum(in_logs) + off / PRIOR_SD
        gradient = np.array([first, in_logs[1] * rises, *in_mix])
        return value / self.weight.sum(), gradient / self.weight.sum()

    @property
    def label(self) -> Any:
        """A column with the score of the label: any that equals it."""
        return np.argmax(self.d == self.own[:, None], axis=1)

    def descend(self, start: Column) -> tuple[float, Column]:
        """The least value near a start, and where it is."""
        from scipy.optimize import minimize

        T = start[0]
        bounds = [(T - HOTTEST, T + HOTTEST), (-HOTTEST, HOTTEST), *[(-20.0, 20.0)] * 3]
        found: Any = minimize(
            self,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"ftol": 1e-13},
        )
        return float(found.fun), found.x
