"""Yardsticks: leave the scores alone, or replace every confidence by the accuracy."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from calibrant._base.checks import check_flags
from calibrant._base.records import Share
from calibrant._inputs.arrays import Index, Matrix
from calibrant.recalibration._estimator import Progress, Recalibrator
from calibrant.recalibration._rows import Kind, Rows, inside


@dataclass(eq=False, repr=False)
class Identity(Recalibrator):
    """Probabilities as the classifier states them: softmax of logits, or as they are.

    Parameters
    ----------
    scores, classes
        As in `Recalibrator`.

    Examples
    --------
    >>> from calibrant.recalibration import Identity
    >>> Identity().fit([[2.0, 0.0], [0.0, 1.0]], [0, 1]).predict_proba([[0.0, 0.0]])
    array([[0.5, 0.5]])
    """

    scores: str = "logits"
    classes: Sequence[Hashable] | None = None

    def _learn(self, rows: Rows, progress: Progress) -> None:
        rows.check()

    def _apply(self, rows: Rows) -> tuple[Kind, Matrix]:
        rows.check()
        return rows.kind, np.array(rows.scores, dtype=rows.work_type)


@dataclass(eq=False, repr=False)
class MeanReplacement(Recalibrator):
    """Replace every confidence by the accuracy q: the paper's trivial recalibration.

    The predicted class gets q, measured on the rows of the fit, and every other class
    (1 - q) / (k - 1). The calibration error all but vanishes, no prediction gets better,
    and everything the model knew about single rows is lost. This is a yardstick for
    calibration errors, not something to use.

    Parameters
    ----------
    scores, classes
        As in `Recalibrator`.
    pairs : bool
        Whether scores are confidences in answers, and labels whether these are correct.
        Then the answer, not the likelier of right and wrong, is what was predicted: every
        confidence, also one below 1/2, becomes q. `study` sets it.

    Attributes
    ----------
    accuracy_ : float
        The accuracy q. Below 1/k the predicted class is no longer the likeliest. Where
        all or none of n rows are right, half a row more went each way: q is
        (n + 1/2) / (n + 1), or 1 less that, for new rows may be otherwise.

    Examples
    --------
    >>> from calibrant.recalibration import MeanReplacement
    >>> logits = [[3.0, 0.0, 0.0], [0.0, 2.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 9.0]]
    >>> mean = MeanReplacement().fit(logits, [0, 1, 2, 2])
    >>> mean.accuracy_, mean.predict_proba(logits[3:]).tolist()
    (0.75, [[0.125, 0.125, 0.75]])
    >>> answers = MeanReplacement(scores="probs", pairs=True).fit([0.2, 0.9] * 2, [1, 1, 1, 0])
    >>> answers.predict_proba([0.1, 0.6])[:, 1].tolist()
    [0.75, 0.75]
    """

    learned: ClassVar[Mapping[str, Any]] = {"accuracy_": Share}

    scores: str = "logits"
    classes: Sequence[Hashable] | None = None
    pairs: bool = False

    def _check_options(self) -> None:
        super()._check_options()
        check_flags(pairs=self.pairs)

    def _predicted(self, rows: Rows, part: slice) -> Index:
        """The likeliest class; of pairs the second, that the answer is correct."""
        likeliest = rows.block(part).argmax(axis=1)
        return np.ones_like(likeliest) if self.pairs else likeliest

    def _learn(self, rows: Rows, progress: Progress) -> None:
        def hits(part: slice) -> float:
            hit = self._predicted(rows, part) == rows.y[part]
            return float(np.sum(hit * rows.weights(part)))

        if self.pairs and rows.k != 2:
            raise ValueError(
                f"pairs are right or wrong, and there are {rows.k} classes."
            )
        measured = rows.add_up(hits) / rows.total_weight
        self.accuracy_ = inside(measured, rows.total_weight)
        if self.accuracy_ < 1 / rows.k and not self.pairs:
            self._note(
                f"the accuracy {measured:.3g} is below 1/{rows.k}: with it, the "
                "predicted class is no longer the likeliest."
            )
        elif measured != self.accuracy_:
            self._note(
                f"{'every' if measured else 'no'} row is right; a confidence of "
                f"{measured:g} would make the loss of any other infinite, so it is "
                f"{self.accuracy_:.6g}."
            )

    def _apply(self, rows: Rows) -> tuple[Kind, Matrix]:
        def replace(part: slice, out: Matrix) -> None:
            best = self._predicted(rows, part)
            out[:] = (1 - self.accuracy_) / (rows.k - 1)
            out[np.arange(len(best)), best] = self.accuracy_

        return "probs", rows.filled(replace)
