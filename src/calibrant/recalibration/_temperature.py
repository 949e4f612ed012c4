"""Temperature scaling: one number for all rows, alone or in a mixture."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np

from calibrant._base.checks import as_number, shown
from calibrant._base.records import SLACK, Positive, Share, Shares, Whole, close
from calibrant._inputs.arrays import Column, Matrix, Table
from calibrant._rows import compiled, engines
from calibrant._rows.engines import over_ranges
from calibrant.recalibration._estimator import Progress, Recalibrator
from calibrant.recalibration._rows import Kind, Rows, softmax

# The log loss of softmax(beta z) is convex in the inverse temperature beta = 1/T, and one
# pass over the rows gives its value and its first two derivatives.

CLOSE, NEAR = 0.03, 4e-3
"""The search ends after a relative step below `CLOSE` that has come as near as `NEAR`: a
cubic through slopes and curvatures at its ends then finds the root to about the square
of the product of the two."""

EXACT = 1e-10  # relative width of a bracket that ends the search
STRIDE = 4.5  # the factor of the longest step
MOST_PASSES, PATIENCE = 100, 8  # at all, and of Newton steps alone
FIRST_ROWS, FEWEST_ROWS = 1000, 100

LEAST, MOST = 1e-3, 1e2
"""Range of beta times the spread of the scores: from next to uniform to all but sure."""

LAPSES = tuple(
    float(f"{digit}e{power}") for power in range(-15, 0) for digit in (1, 2, 5)
)
PAYS, EVIDENCE = 0.04, 4.0
"""A lapse rate is used if it lowers the log loss by that share, and its sum by that much."""

FIRST_LAPSE, FIRST_SCORES = 5e-3, 100_000
"""A lapse rate tried on about that many scores, to see whether a search is worth it."""

FARTHEST = -1e30
"""Logits farther below the largest one count as impossible: so does -inf."""


class Bend(NamedTuple):
    """Mean log loss at one beta, with its slope and curvature in beta."""

    loss: float
    slope: float
    curvature: float


class Found(NamedTuple):
    """Where a search ended, after how many passes over all rows, and how.

    `flat` says that all betas are the same.
    """

    beta: float
    passes: int
    low: float
    high: float
    converged: bool = True
    flat: bool = False

    @property
    def edge(self) -> str | None:
        """Which end of the range it ran into, if it did."""
        if self.flat:
            return "flat"
        if self.low < self.beta < self.high:
            return None
        return "hot" if self.beta <= self.low else "cold"


class LogLoss:
    """The mean log loss of rows as a function of beta, ``loss(beta)``.

    Rows whose label is impossible (logit -inf, probability 0) have infinite loss at
    every temperature. They are left out, and counted in `impossible`.
    """

    def __init__(self, rows: Rows, engine: str = "auto") -> None:
        self.rows = rows
        self.impossible = 0
        compiled = engines.wanted(engine, plain=rows.kind == "logits")
        self.engine = "compiled" if compiled else "numpy"

    def __call__(self, beta: float) -> Bend:
        """Value, slope and curvature at one beta."""
        rows = self.rows
        if self.engine == "compiled":
            sums = self._looped(beta)
        else:
            sums = rows.add_up(lambda part: self._block(beta, part))
        if not np.isfinite(sums).all():
            rows.check()
        self.impossible = round(float(sums[4]))
        weight = sums[3] if sums[3] > 0 else 1.0
        return Bend(*(float(x) for x in sums[:3] / weight))

    def _looped(self, beta: float) -> Column:
        """The sums of `_block` over all rows, exponentials in the compiled loop."""
        rows, dtype = self.rows, self.rows.work_type
        found = value, slope, curvature, own = np.empty((4, len(rows)))
        at_once = compiled.rows_at_once(rows.scores, dtype)

        def work(start: int, stop: int) -> None:
            for part in rows.parts(start, stop, at_once):
                scores = compiled.ready(rows.scores[part], dtype)
                y = compiled.ready(rows.y[part], np.int64)
                compiled.loops.bend(beta, rows.k, scores, y, *(x[part] for x in found))

        over_ranges(work, len(rows), rows.scores.size)
        weight = np.where(own > FARTHEST, rows.weights(slice(None)), 0.0)
        with np.errstate(invalid="ignore", over="ignore"):
            terms = [np.sum(weight * x) for x in (value, slope, curvature)]
        return np.array([*terms, np.sum(weight), np.sum(own <= FARTHEST)], float)

    def _block(self, beta: float, part: slice) -> Column:
        d, own = below_top(self.rows, part)
        weight = self.rows.weights(part) * (own > FARTHEST)
        e = np.exp(np.multiply(d, d.dtype.type(beta)))
        total = e.sum(axis=1).astype(np.float64)
        mean = np.vecdot(e, d).astype(np.float64) / total
        e *= d
        square = np.vecdot(e, d).astype(np.float64) / total
        terms = np.log(total) - beta * own, mean - own, square - mean * mean
        sums = [float(np.sum(weight * term)) for term in terms]
        return np.array([*sums, np.sum(weight), np.sum(own <= FARTHEST)], float)


def below_top(rows: Rows, part: slice) -> tuple[Matrix, Column]:
    """Log-scores relative to the largest of their row, and that of the label."""
    d = np.array(rows.block(part))
    if rows.kind == "probs":
        with np.errstate(divide="ignore"):
            np.log(d, out=d)
    with np.errstate(over="ignore"):
        d -= d.max(axis=1, keepdims=True)
    np.maximum(d, d.dtype.type(FARTHEST), out=d)
    return d, d[np.arange(len(d)), rows.y[part]].astype(np.float64)


def search(
    loss: Callable[[float], Bend], start: float, low: float, high: float
) -> Found:
    """Minimise a convex function on [low, high] by Newton steps inside a bracket.

    Where the loss falls for ever (no row is wrong) Newton steps are short, and where it
    is all but flat they are wild: after some passes, every second step is long, or
    halves the bracket.
    """
    beta, left, right = min(max(start, low), high), low, high
    before: tuple[float, Bend] | None = None
    for passes in range(1, MOST_PASSES + 1):
        at = loss(beta)
        left, right = (left, beta) if at.slope > 0 else (beta, right)
        if before is not None and abs(beta - before[0]) <= CLOSE * beta:
            root = _root(before, (beta, at))
            if abs(root - beta) <= NEAR * beta:
                return Found(min(max(root, left), right), passes, low, high)
        step = min(max(_newton(at, beta), low), high)
        if right - left <= EXACT * beta or step == beta:
            return Found(beta, passes, low, high)
        step = min(max(step, beta / STRIDE), beta * STRIDE)
        if passes > PATIENCE and passes % 2:
            step = min(beta * STRIDE, high) if right == high else sqrt(left * right)
        before = beta, at
        new = left < step < right or step in (low, high)  # not where it has been
        beta = step if new and left <= step <= right else sqrt(left * right)
    return Found(beta, MOST_PASSES, low, high, converged=False)


def _root(one: tuple[float, Bend], two: tuple[float, Bend]) -> float:
    """Where the slope is 0, by a cubic through two places and three Newton steps."""
    (x0, a), (x1, b) = one, two
    h = x1 - x0
    rise = (b.slope - a.slope) / h
    c2 = (3 * rise - 2 * a.curvature - b.curvature) / h
    c3 = (a.curvature + b.curvature - 2 * rise) / h**2
    x = h
    for _ in range(3):
        value = a.slope + x * (a.curvature + x * (c2 + x * c3))
        tilt = a.curvature + x * (2 * c2 + 3 * c3 * x)
        if not tilt > 0:
            return inf
        x -= value / tilt
    return x0 + x


def _newton(at: Bend, beta: float) -> float:
    """Where a parabola with this slope and curvature is least; far off if it is flat."""
    if at.curvature > 0:
        return beta - at.slope / at.curvature
    return -inf if at.slope > 0 else inf


def spread(rows: Rows) -> float:
    """Root mean variance of the finite log-scores within rows: what beta multiplies."""

    def variance(part: slice) -> float:
        d, _ = below_top(rows, part)
        there = d > FARTHEST
        count = there.sum(axis=1)
        d = np.where(there, d, 0.0)
        mean = d.sum(axis=1) / count
        within = (np.vecdot(d, d) / count - mean * mean).clip(min=0)
        return float(np.sum(rows.weights(part) * within))

    return sqrt(rows.add_up(variance) / rows.total_weight)


def minimise(loss: LogLoss, bounds: tuple[float, float] | None) -> Found:
    """The best beta within bounds; without, from `LEAST` to `MOST` over the spread.

    It starts from the optimum on about a thousand rows spread over all, and there from
    that on a hundred. Their spread also tells whether the result is far from any edge, which it almost always is.
    """
    rows = loss.rows
    few = sample(rows)
    scale = spread(few.select(slice(100))) or spread(rows)
    if scale == 0:
        loss(1.0)  # for its checks and counts
        return Found(1.0, 1, 1.0, 1.0, flat=True)
    low, high = bounds or (LEAST / scale / 10, MOST / scale * 10)
    start = min(max(1.0, 0.1 / scale), 10 / scale)
    for part in () if few is rows else (sample(few, FEWEST_ROWS), few):
        start = search(LogLoss(part, loss.engine), start, low, high).beta
    found = search(loss, start, low, high)
    if bounds is None and not 10 * LEAST < found.beta * scale < MOST / 10:
        scale = spread(rows)
        low, high = LEAST / scale, MOST / scale
        beta = min(max(found.beta, low), high)  # of a convex function still the optimum
        return found._replace(beta=beta, low=low, high=high)
    return found


def sample(rows: Rows, count: int = FIRST_ROWS) -> Rows:
    """About so many rows, spread over all."""
    every = len(rows) // count
    if every < 2:
        return rows
    few = rows.select(slice(None, None, every)).compact()
    if few.offends(few.scores).any():
        rows.check()  # an error names the row by its number among all
    return few


def room(rows: Rows, beta: float) -> float:
    """How far rows that are all right leave room for a miss; negative if they do not.

    That is what softmax(beta z) expects labels to lie below the largest score of their
    row, all rows together, less what the second largest does in a mean row. Rows in which
    one class is certain have no say.
    """

    def work(part: slice) -> Column:
        d, _ = below_top(rows, part)
        e = np.exp(beta * d.astype(np.float64))
        expected = np.vecdot(e, d) / e.sum(axis=1)
        second = np.partition(d, -2, axis=1)[:, -2].astype(np.float64)
        there = rows.weights(part) * (second > FARTHEST)
        sums = rows.weights(part) * expected, there * second, there
        return np.array([np.sum(x) for x in sums])

    expected, second, there = rows.add_up(work)
    return float(second / there - expected) if there else 0.0


def within_evidence(rows: Rows, found: Found) -> Found:
    """The same, or a beta that is only as sure as so many rows allow.

    Few rows that happen to be right would drive beta to its end. Beyond 1, it goes no
    further than if all rows were right and one more, a mean row, went to the runner-up:
    there, `room` is 0. Near ties, which are always uncertain, hardly count.
    """
    if found.flat or found.beta <= 1 or room(sample(rows), found.beta) >= 0:
        return found
    if room(rows, found.beta) >= 0:
        return found
    if room(rows, 1.0) <= 0:
        return found._replace(beta=1.0, low=min(found.low, 0.5), high=1.0)
    from scipy.optimize import brentq

    ends = 0.0, float(np.log(found.beta))
    end = float(np.exp(brentq(lambda x: room(rows, np.exp(x)), *ends, xtol=1e-14)))
    return found._replace(beta=end, high=end)


def lifted(rows: Rows, lapse: float) -> Rows:
    """Logarithms of (1 - lapse) p + lapse / k: no class is next to impossible."""
    if not lapse:
        return rows

    def lift(part: slice, out: Matrix) -> None:
        p = rows.probabilities(part)
        p *= p.dtype.type(1 - lapse)
        p += p.dtype.type(lapse / rows.k)
        np.log(p, out=out)

    return Rows(rows.filled(lift), "logits", rows.labels, rows.weight)


def impossible_labels(rows: Rows) -> int:
    """How many rows give their label probability 0."""
    own = rows.scores[np.arange(len(rows)), rows.y].astype(np.float64)
    return int(np.sum(own <= (0 if rows.kind == "probs" else FARTHEST)))


def floored(rows: Rows) -> Rows:
    """Logarithms of probabilities, of which 0 counts as the least other."""
    positive = (rows.probabilities(part) for part in rows.parts())
    least = min(float(p.min(where=p > 0, initial=1.0)) for p in positive)

    def lift(part: slice, out: Matrix) -> None:
        np.log(np.maximum(rows.probabilities(part), out.dtype.type(least)), out=out)

    return Rows(rows.filled(lift), "logits", rows.labels, rows.weight)


def learn_lapse(rows: Rows, *, floor: bool = False) -> float:
    """The share of the uniform distribution that scores need before they are scaled.

    It is 0 unless labels were impossible, or so nearly that a single temperature would
    have to serve both them and all other rows, at the expense of the log loss. A few rows
    tell whether that may be. A method for which 0 counts as a `floor` can do without.
    """
    impossible = impossible_labels(rows) > 0
    if impossible and not floor:
        return _best_lapse(rows)[0]
    few = sample(rows, max(200, min(FIRST_ROWS, FIRST_SCORES // rows.k)))
    enough = (1 - PAYS / 2) * (inf if impossible else _best_loss(few, 0.0))
    if _best_loss(few, FIRST_LAPSE) > enough:
        return 0.0
    plain = _best_loss(floored(rows) if impossible else rows, 0.0)
    lapse, mixed = _best_lapse(rows)
    enough = max(PAYS * plain, EVIDENCE / rows.total_weight)
    return lapse if plain - mixed > enough else 0.0


def _best_lapse(rows: Rows) -> tuple[float, float]:
    """The best of `LAPSES`, and its log loss, going downhill by decades, then closer."""
    at, known = LAPSES.index(FIRST_LAPSE), dict[int, float]()
    for stride in (3, 1):
        while True:
            near = [i for i in (at, at - stride, at + stride) if 0 <= i < len(LAPSES)]
            known |= {i: _best_loss(rows, LAPSES[i]) for i in near if i not in known}
            before, at = at, min(near, key=known.__getitem__)
            if at == before:
                break
    return LAPSES[at], known[at]


def _best_loss(rows: Rows, lapse: float) -> float:
    """The least log loss of any temperature."""
    loss = LogLoss(lifted(rows, lapse))
    return loss(minimise(loss, None).beta).loss


@dataclass(frozen=True, slots=True)
class BrierLoss:
    """The mean Brier score of rows as a function of beta, not convex, and its slope."""

    rows: Rows

    def __call__(self, beta: float) -> tuple[float, float]:
        """Value and slope at one beta."""
        total = self.rows.add_up(lambda part: self._block(beta, part))
        value, slope = total / self.rows.total_weight
        return float(value), float(slope)

    def _block(self, beta: float, part: slice) -> Table:
        d, own = below_top(self.rows, part)
        p = np.exp(beta * d.astype(np.float64))
        p /= p.sum(axis=1, keepdims=True)
        at, labels = np.arange(len(d)), self.rows.y[part]
        p_own = p[at, labels]
        mean = np.vecdot(p, d)
        squares = np.vecdot(p, p)
        value = squares - 2 * p_own + 1
        p *= p
        slope = 2 * (np.vecdot(p, d) - mean * squares - p_own * (own - mean))
        weight = self.rows.weights(part)
        return np.array([np.sum(weight * value), np.sum(weight * slope)])


def minimise_brier(loss: BrierLoss, start: Found) -> Found:
    """The best beta for the Brier score, in the range of the log loss.

    A grid over the whole range on a few rows tells where to look. From there it goes
    downhill on all rows, then to where the slope is 0.
    """
    few, low, high = BrierLoss(sample(loss.rows)), start.low, start.high
    coarse = np.unique([*np.geomspace(low, high, 61), start.beta])
    centre = float(min(coarse, key=lambda beta: few(beta)[0]))
    near = centre / 1.5, centre, centre * 1.5, 1.0
    known = {beta: loss(beta) for beta in near if low <= beta <= high}
    while True:  # at most one step per grid point of the range, usually none
        best = min(known, key=lambda beta: known[beta][0])
        ends = min(known), max(known)
        if best not in ends or best in (low, high):
            return _polish(loss, known, Found(best, len(known), low, high))
        step = best / 1.5 if best == ends[0] else best * 1.5
        known[min(max(step, low), high)] = loss(min(max(step, low), high))


def _polish(
    loss: BrierLoss, known: dict[float, tuple[float, float]], found: Found
) -> Found:
    """From the best of what is known to where the slope is 0, if that is better."""
    from scipy.optimize import brentq

    left = max((beta for beta in known if beta < found.beta), default=found.beta)
    right = min((beta for beta in known if beta > found.beta), default=found.beta)
    if not known[left][1] < 0 < known[right][1]:
        return found
    slope = lambda beta: loss(beta)[1]
    beta, report = brentq(slope, left, right, xtol=1e-13, full_output=True)
    if loss(beta)[0] > known[found.beta][0]:  # there are several minima here
        return found
    passes = found.passes + report.function_calls + 1
    return Found(float(beta), passes, found.low, found.high, report.converged)


EDGES = {
    "flat": "all possible classes of an example have the same score, so no temperature matters:",
    "hot": "the labels score no better than chance (or `bounds` are too narrow), so the "
    "loss falls up to the greatest temperature allowed,",
    "cold": "hardly an example contradicts its largest score (or `bounds` are too narrow), so "
    "the loss falls down to the least temperature that so many examples allow,",
}


@dataclass(eq=False, repr=False)
class TemperatureScaling(Recalibrator):
    """Divide all logits by one temperature T: softmax(z / T).

    The order of the classes of a row, and so the accuracy, does not change. T > 1 makes
    an over-confident model less sure. The log loss is convex in 1/T, so the optimum is
    unique and found by Newton steps inside a bracket; it is never worse on the rows of
    the fit than T = 1.

    Few rows that happen to be right would have T run to 0. So below 1, T goes no further
    than if all rows were right and one more, a mean row, were of the runner-up's class.

    Probabilities are read through their logarithms. A class of probability 0 keeps it,
    unless it was the label of a row. Then 0 does not mean impossible, and p becomes
    (1 - e) p + e / k first, with the lapse rate e that makes the log loss least; so, too,
    where labels of next to no probability would spoil T for all other rows: e must lower
    the log loss by 4 %.

    Parameters
    ----------
    scores, classes, engine
        As in `Recalibrator`.
    divergence : {"log", "brier"}
        The divergence whose loss is minimised on the rows of the fit.
    bounds : tuple of float, optional
        Least and greatest temperature. By default s/100 and 1000 s, where s is the
        root mean variance of the logits within rows, so logits of any size will do.

    Attributes
    ----------
    temperature_ : float
        The temperature T.
    converged_ : bool
        Whether the optimum was found inside the bounds.
    at_boundary_ : bool
        Whether T is a bound: no row was wrong, the model is worse than chance, or
        `bounds` exclude the optimum. A `FitWarning` says which.
    passes_ : int
        Passes over all rows that it took.
    impossible_ : int
        Rows that gave their label probability 0. Their log loss is infinite at any
        temperature; with ``divergence="brier"`` they are no reason for a lapse rate.
    lapse_ : float
        The lapse rate e, nearly always 0. A `FitWarning` tells of any other.

    Examples
    --------
    >>> from calibrant.recalibration import TemperatureScaling
    >>> logits = [[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [0.0, 4.0]]
    >>> hot = TemperatureScaling().fit(logits, [0, 0, 1, 1])  # 3 of 4 are right
    >>> round(hot.temperature_, 4), hot.predict_proba([[4.0, 0.0]]).round(4).tolist()
    (3.641, [[0.75, 0.25]])

    Like all recalibrators it predicts classes, scores itself, and is saved as JSON:

    >>> hot.predict(logits).tolist(), hot.score(logits, [0, 0, 1, 1])
    ([0, 0, 0, 1], 0.75)
    >>> hot.recalibrate([[4.0, 0.0]])[0], hot.get_params()["divergence"]
    ('logits', 'log')
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hot.save(f"{folder}/hot.json")
    ...     again = TemperatureScaling.load(f"{folder}/hot.json")
    >>> again.set_params(engine="numpy").temperature_ == hot.temperature_
    True
    """

    learned: ClassVar[Mapping[str, Any]] = {
        "temperature_": Positive,
        "converged_": bool,
        "at_boundary_": bool,
        "passes_": Whole,
        "impossible_": Whole,
        "lapse_": Share,
    }
    lapse_ = 0.0  # of files of 0.1.0, too

    scores: str = "logits"
    divergence: str = "log"
    bounds: tuple[float, float] | None = None
    classes: Sequence[Hashable] | None = None
    engine: str = "auto"

    def _check_options(self) -> None:
        super()._check_options()
        bounds: Any = (1, 2) if self.bounds is None else self.bounds
        listed = bounds.ravel() if isinstance(bounds, np.ndarray) else bounds
        paired = isinstance(listed, tuple | list | np.ndarray)
        numbers = [as_number(bound) for bound in listed] if paired else []
        if len(numbers) != 2 or not 0 < numbers[0] < numbers[1] < inf:
            raise ValueError(
                "bounds must be the least and the greatest temperature, "
                f"0 < least < greatest; got {shown(bounds)}."
            )

    def _learn(self, rows: Rows, progress: Progress) -> None:
        self.lapse_ = learn_lapse(rows) if self.divergence == "log" else 0.0
        self._learn_temperature(lifted(rows, self.lapse_))
        self.impossible_ = impossible_labels(rows)
        progress(1.0, "temperature")
        if self.impossible_ or self.lapse_:
            self._note(lapse_note(self.impossible_, self.lapse_))

    def _disagreement(self, k: int) -> str | None:
        least, most = self._allowed() or (0.0, inf)
        if least * (1 - SLACK) <= self.temperature_ <= most * (1 + SLACK):
            return None
        return f"has a temperature_ of {self.temperature_:g} outside the bounds"

    def _allowed(self) -> tuple[float, float] | None:
        """The bounds as two numbers, be they a tuple, a list or an array."""
        if self.bounds is None:
            return None
        least, most = np.ravel(self.bounds).tolist()
        return least, most

    def _learn_temperature(self, rows: Rows) -> None:
        found = self._find(rows)
        self.temperature_ = 1 / found.beta
        self.passes_, self.converged_ = found.passes, found.converged
        self.at_boundary_ = found.edge is not None
        if found.edge is not None:
            self._note(f"{EDGES[found.edge]} T = {self.temperature_:.6g}.")

    def _find(self, rows: Rows) -> Found:
        allowed = self._allowed()
        bounds = allowed and (1 / allowed[1], 1 / allowed[0])
        found = minimise(LogLoss(rows, self.engine), bounds)
        if self.divergence == "brier" and found.edge != "flat":
            found = minimise_brier(BrierLoss(rows), found)
        return found if bounds else within_evidence(rows, found)

    def _apply(self, rows: Rows) -> tuple[Kind, Matrix]:
        rows = lifted(rows, self.lapse_)

        def fill(part: slice, out: Matrix) -> None:
            out[:] = tempered(rows, part, self.temperature_)

        return "logits", rows.filled(fill)


def lapse_note(impossible: int, lapse: float) -> str:
    """What one should know of labels that were impossible, or next to it."""
    rows = f"{impossible} examples gave their label probability 0"
    which = (
        rows if impossible else "some examples gave their label next to no probability"
    )
    if not lapse:
        return f"{which}. Their log loss is infinite at any temperature."
    return f"{which}, so {lapse:g} of the uniform distribution is mixed in first."


def tempered(rows: Rows, part: slice, temperature: float) -> Matrix:
    """Log-scores of some rows, less the largest of their row, over the temperature."""
    block = rows.block(part)
    with np.errstate(divide="ignore", over="ignore"):
        if rows.kind == "probs":
            block = np.log(block)
        block = block - block.max(axis=1, keepdims=True)
        # A saved temperature may be too small for single precision: 0 / 0 is no score.
        block /= max(block.dtype.type(temperature), np.finfo(block.dtype).tiny)
    return block


@dataclass(eq=False, repr=False)
class EnsembleTemperatureScaling(Recalibrator):
    """Mix softmax(z / T), softmax(z) and the uniform distribution.

    The temperature is that of `TemperatureScaling`; the three weights then minimise the
    log loss, a convex problem. Every class keeps at least its share of the uniform part,
    so one row that is sure and wrong does less harm. If some class has probability 0,
    that part is at least half a row in n + 1, n being the rows of the fit. The order of
    classes is kept, unless all the weight is on the uniform part.

    Parameters
    ----------
    scores, classes, engine
        As in `Recalibrator`.

    Attributes
    ----------
    temperature_ : float
        The temperature T.
    weights_ : ndarray of shape (3,)
        Weights of the tempered, the plain and the uniform part; they sum to 1.

    References
    ----------
    Zhang, Kailkhura, Han: Mix-n-Match, ICML 2020.

    Examples
    --------
    >>> from calibrant.recalibration import EnsembleTemperatureScaling
    >>> logits = [[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [0.0, 4.0]]
    >>> mixed = EnsembleTemperatureScaling().fit(logits, [0, 0, 1, 1])
    >>> mixed.predict_proba([[4.0, 0.0]]).round(4).tolist()
    [[0.75, 0.25]]
    """

    learned: ClassVar[Mapping[str, Any]] = {
        "temperature_": Positive,
        "weights_": Shares,
    }

    scores: str = "logits"
    classes: Sequence[Hashable] | None = None
    engine: str = "auto"

    def _learn(self, rows: Rows, progress: Progress) -> None:
        single = TemperatureScaling(self.scores, engine=self.engine)
        single.notes_ = ()
        single._learn_temperature(rows)
        progress(0.5, "temperature")
        self.notes_, self.temperature_ = single.notes_, single.temperature_
        given = self._given_to_labels(rows)
        self.weights_ = mixture_weights(given, rows.weight_of_each)
        if self._any_impossible(rows):
            least = 0.5 / (rows.total_weight + 1)
            self.weights_ = with_at_least(self.weights_, least)
        progress(1.0, "weights of the mixture")

    def _disagreement(self, k: int) -> str | None:
        if self.weights_.shape == (3,) and close(self.weights_.sum(), 1):
            return None
        return (
            f"must have three weights_ that sum to 1, got {self.weights_.tolist()[:4]}"
        )

    def _any_impossible(self, rows: Rows) -> bool:
        """Whether any class of any row has probability 0."""
        least = 0 if rows.kind == "probs" else FARTHEST
        return bool(rows.add_up(lambda part: int(rows.block(part).min() <= least)))

    def _given_to_labels(self, rows: Rows) -> Table:
        """What each of the three parts gives to the label of each row, n x 3."""
        given = np.full((len(rows), 3), 1 / rows.k)

        def look_up(part: slice) -> None:
            at, labels = np.arange(part.stop - part.start), rows.y[part]
            for column, temperature in enumerate((self.temperature_, 1.0)):
                probs = softmax(tempered(rows, part, temperature))
                given[part, column] = probs[at, labels]

        rows.each(look_up)
        return given

    def _apply(self, rows: Rows) -> tuple[Kind, Matrix]:
        hot, plain, uniform = self.weights_

        def mix(part: slice, out: Matrix) -> None:
            block = hot * softmax(tempered(rows, part, self.temperature_))
            block += plain * softmax(tempered(rows, part, 1.0))
            out[:] = block + uniform / rows.k

        return "probs", rows.filled(mix)


def with_at_least(weights: Column, least: float) -> Column:
    """The same weights, but of the last at least so much.

    >>> with_at_least(np.array([0.75, 0.25, 0.0]), 0.2).round(12).tolist()
    [0.6, 0.2, 0.2]
    """
    last = max(float(weights[-1]), least)
    others = weights[:-1] * (1 - last) / max(float(weights[:-1].sum()), 1e-300)
    return np.append(others, last)


def mixture_weights(given: Table, weight: Column) -> Column:
    """Weights of the parts of a mixture that make its log loss least."""
    from scipy.optimize import minimize

    share, parts = weight / weight.sum(), given.shape[1]

    def loss(mix: Column) -> tuple[float, Column]:
        total = np.maximum(given @ mix, np.finfo(float).tiny)
        return -float(share @ np.log(total)), -(share / total) @ given

    found: Any = minimize(
        loss,
        np.full(parts, 1 / parts),
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * parts,
        constraints={"type": "eq", "fun": lambda m: m.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    mix, first = np.clip(found.x, 0, 1), np.eye(parts)[0]
    mix /= mix.sum()
    return mix if loss(mix)[0] <= loss(first)[0] else first
