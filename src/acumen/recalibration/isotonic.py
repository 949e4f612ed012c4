"""Isotonic calibration: the increasing curves that are closest to the labels."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import ClassVar

import numpy as np

from acumen.arrays import Matrix, check_choice
from acumen.compiled import fast
from acumen.recalibration import monotone, onevsrest, toplabel
from acumen.recalibration.estimator import Progress, Recalibrator
from acumen.recalibration.monotone import Curves
from acumen.recalibration.rows import Kind, Rows

MANY_CLASSES = 100
"""From this many on, it is faster not to sort the rows for every class."""


class IsotonicCalibration(Recalibrator):
    """Replace probabilities by the closest increasing function of them.

    With ``mode="one-vs-rest"`` each class has its own curve, and rows are divided by
    their sum. The order of the classes of a row, and so the accuracy, may change.

    With ``mode="top-label"`` there is one curve, from confidence to accuracy v. The
    predicted class gets v, the others share 1 - v in proportion to what they had, or
    more evenly where one of them would overtake it. The prediction changes only if
    v <= 1/k, and of two rows the more confident never becomes the less confident one.

    A curve has a constant level wherever accuracy would decrease (pool adjacent
    violators). It is linear between levels and constant beyond the scores of the fit, as
    in scikit-learn. Only equal scores are tied; scikit-learn takes single-precision
    scores within 1e-6 as tied, which most of a thousand probabilities are.

    - A class without any row to fit on keeps its own probability; a note counts them.
    - A row whose new values are all 0 keeps its probabilities.
    - The lowest level often is exactly 0, which makes the log loss infinite where it is
      wrong: `smoothing` prevents that.

    Parameters
    ----------
    scores : {"logits", "probs"}
        What the scores are.
    mode : {"one-vs-rest", "top-label"}
        Recalibrate all classes, or the confidence only.
    smoothing : float
        With s > 0 and n rows in the fit, f(p) becomes (n f(p) + s p) / (n + s), as if s
        further rows agreed with the scores. It then increases everywhere, so there are
        no new ties, and no zeros but where p is 0.
    compat : {None, "netcal"}
        ``"netcal"`` gives what netcal 1.4.0 does, always in double precision. Scores
        closer than 1e-15 are tied, a class without a row becomes impossible, and of two
        classes only the second is recalibrated. A row of zeros, which there becomes
        NaN, here makes all classes as likely.
    classes : sequence, optional
        Names of the classes in column order, if labels are neither column numbers nor
        names in sorted order.
    engine : {"auto", "numpy", "numba"}
        ``"auto"`` uses numba for large matrices if it is installed.

    Attributes
    ----------
    knots_, values_ : ndarray
        The curves of all classes, one after the other: probabilities and new values.
    starts_ : ndarray
        Class c has the knots ``starts_[c]`` to ``starts_[c + 1]``; for top-label there
        is one curve.
    absent_ : ndarray
        Column numbers of classes without a row, one-vs-rest; they have no knots.
    weight_ : float
        Number of rows of the fit, or the sum of their weights.

    Examples
    --------
    >>> from acumen.recalibration import IsotonicCalibration
    >>> p = [0.1, 0.2, 0.3, 0.4, 0.9]  # of the second class
    >>> curve = IsotonicCalibration(scores="probs").fit(p, [0, 1, 0, 1, 1])
    >>> curve.predict_proba([0.25, 0.35])[:, 1].round(3).tolist()
    [0.5, 0.75]
    """

    learned: ClassVar[tuple[str, ...]] = (
        "knots_",
        "values_",
        "starts_",
        "absent_",
        "weight_",
    )

    def __init__(
        self,
        scores: str = "logits",
        mode: str = "one-vs-rest",
        smoothing: float = 0.0,
        compat: str | None = None,
        classes: Sequence[Hashable] | None = None,
        engine: str = "auto",
    ) -> None:
        self.scores = scores
        self.mode = mode
        self.smoothing = smoothing
        self.compat = compat
        self.classes = classes
        self.engine = engine

    def _check_options(self) -> None:
        super()._check_options()
        check_choice(self.mode, "mode", ("one-vs-rest", "top-label"))
        check_choice(self.engine, "engine", fast.ENGINES)
        onevsrest.check_smoothing(self.smoothing)
        onevsrest.check_compat(
            self.compat,
            mode=(self.mode, "one-vs-rest"),
            smoothing=(self.smoothing, 0),
        )

    def _learn(self, rows: Rows, progress: Progress) -> None:
        self.weight_ = rows.total_weight
        self.absent_ = onevsrest.absent_classes(rows, self.mode, self.compat)
        curves = self._fit(rows, lambda share: progress(share, "curves"))
        self.knots_, self.values_ = curves.knots, curves.values
        self.starts_ = curves.starts
        progress(1.0, "curves")
        if self.absent_.size:
            self._note(onevsrest.describe_absent(self.absent_, rows.k, self.compat))

    def _fit(self, rows: Rows, report: Callable[[float], None]) -> Curves:
        if self.mode == "top-label":
            h, hit = toplabel.confidences(rows)
            weight = onevsrest.weight_of_rows(rows)
            return Curves.of([monotone.fit_column(h, hit, weight, monotone.differs)])
        if self.compat == "netcal":
            return monotone.fit_columns(rows, monotone.differs_as_sklearn, report)
        asked = self.engine == "numba" or rows.k >= MANY_CLASSES
        if fast.wanted(self.engine, rows.scores, plain=asked):
            return monotone.fit_compiled(rows)
        return monotone.fit_columns(rows, monotone.differs, report)

    def _apply(self, rows: Rows) -> tuple[Kind, Matrix]:
        out = np.empty(rows.scores.shape, np.float64 if self.compat else rows.work_type)
        curves = Curves(self.knots_, self.values_, self.starts_)
        if self.mode == "top-label":
            rows.each(lambda part: self._give(rows, part, curves, out[part]))
        elif fast.wanted(self.engine, rows.scores, plain=True):
            from acumen.recalibration import monotone_numba

            flat = curves.flat(rows.work_type)
            evaluate = partial(monotone_numba.evaluate, curves, flat)
            rows.each(lambda part: self._evaluate(rows, part, evaluate, out[part]))
        else:
            onevsrest.each_tall(
                rows,
                lambda part: self._evaluate(rows, part, curves.evaluate, out[part]),
            )
        return "probs", out

    def _give(self, rows: Rows, part: slice, curves: Curves, out: Matrix) -> None:
        probs, best, h = toplabel.find_top(rows, part)
        value = curves.of_first(h)
        rest, others = 1 - value, toplabel.others_of(probs, best)
        whole = h + others
        self._smooth(value, h / whole)
        self._smooth(rest, others / whole)
        toplabel.give(probs, best, value, rest)
        out[...] = probs

    def _evaluate(
        self,
        rows: Rows,
        part: slice,
        evaluate: Callable[[Matrix, Matrix], None],
        out: Matrix,
    ) -> None:
        probs = onevsrest.probabilities(rows, part)
        evaluate(probs, out)
        if self.compat == "netcal":
            onevsrest.divide_as_netcal(out)
            return
        self._smooth(out, probs)
        onevsrest.divide(out, probs, self.absent_)

    def _smooth(self, value: Matrix, p: Matrix) -> None:
        """Blend new values with old ones, in place."""
        if self.smoothing > 0:
            whole = self.weight_ + self.smoothing
            value *= self.weight_ / whole
            value += p * (self.smoothing / whole)
