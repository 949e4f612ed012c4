"""`Study.select`: choose a method, and what the choice is worth on rows it has not seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any

import numpy as np

from calibrant._base.checks import check_choice, check_number
from calibrant._base.comparison import Comparison
from calibrant._base.records import Estimate, Positive, Range, Record
from calibrant._base.views import Printed
from calibrant._inputs.arrays import Column, Index
from calibrant._inputs.divergences import find_divergence
from calibrant._inputs.options import check_rng
from calibrant._rows.columns import Columns
from calibrant._verbs.calibration_bracket import assign_folds, mean_gain
from calibrant._verbs.compare import ROUND_OFF

SCORES = {"brier": "brier", "nll": "log"}
"""Divergences by the name of their mean loss."""

LABELS = {"brier": "Brier score", "nll": "log loss"}
FOLDS, REPEATS = 10, 20
"""Parts of the rows, and how often rows are divided anew: near ties are decided by chance."""

Number = Annotated[float, Range(infinite=True)]


@dataclass(frozen=True, slots=True)
class Selection(Printed, Record):
    """The method with the best score, and how good the choice is on new rows.

    The best of several scores on the same rows is too good: some of its lead is luck. So
    the choice is made again without each fold of the test rows and tested on that fold.

    No map of the forecasts can save more than their calibration error, so on average `gain` is
    a lower bound of that of whole vectors, for any number of classes.

    Attributes
    ----------
    by, n : str, float
        The score, ``"brier"`` or ``"nll"``, and how many examples were tested.
    chosen : str
        The model whose score is best on all test rows; its recalibrator is
        ``study.recalibrators[chosen]``.
    before : float
        The score of the uncalibrated model.
    apparent : float
        That of the chosen one, on the rows it was chosen by.
    honest : Estimate
        That of the choice on rows that had no say in it.
    optimism : float
        `honest` less `apparent`: what choosing made up.
    gain : Estimate
        `before` less `honest`, with its interval: what recalibration is worth.
    votes : dict of str to int
        How many folds chose each model; rows are divided 20 times.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> z = 3 * rng.normal(size=(2000, 3))
    >>> y = (z / 3 + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> found = cal.study(y, logits=z, split=0.5, methods="all", interval=None).select()
    >>> found.optimism >= 0, found.gain.interval[0] > 0
    (True, True)
    """

    by: str
    n: Positive
    chosen: str
    before: Number
    apparent: float
    honest: Annotated[Estimate, Range(infinite=True)]
    optimism: Number
    gain: Annotated[Estimate, Range(infinite=True)]
    votes: Mapping[str, int]

    def _disagreement(self) -> str | None:
        if self.by not in SCORES:
            return f"must be by one of {', '.join(SCORES)}, got {self.by!r}"
        return None if self.chosen in self.votes else "must have votes for the chosen"

    @property
    def worth(self) -> str:
        """Whether recalibration is worth it, in a sentence."""
        score = LABELS[self.by]
        if {*self.votes} == {self.chosen} and abs(self.gain) < ROUND_OFF:
            return f"Recalibration does not help: no method has a better {score}."
        if not isfinite(self.gain):
            now = f"is {float(self.honest):.4g} with {self.chosen}"
            return f"Recalibration helps: the {score} was infinite, and {now}."
        low, high = self.gain.interval or (-np.inf, np.inf)
        verdict = "helps" if low > 0 else "does harm" if high < 0 else "may not help"
        verb, ends = (
            ("lowers", (low, high)) if self.gain >= 0 else ("raises", (-high, -low))
        )
        return (
            f"Recalibration {verdict}: a method chosen by its {score} on some test examples "
            f"{verb} it on the others by {abs(self.gain):.4f} [{ends[0]:z.4f}, "
            f"{ends[1]:z.4f}] from {self.before:.4f}; on all of them {self.chosen} is best "
            f"({self.apparent:.4f})."
        )

    def __str__(self) -> str:
        all_of_them = sum(self.votes.values())
        shares = {name: 100 * count / all_of_them for name, count in self.votes.items()}
        others = ", ".join(f"{name} {share:.0f} %" for name, share in shares.items())
        return "\n".join(
            [
                f"chosen by {LABELS[self.by]} on {self.n:,.10g} examples: {self.chosen}",
                f"  uncalibrated          {self.before:9.5f}",
                f"  apparent              {self.apparent:9.5f}  (the examples chose the method, too)",
                f"  cross-validated       {float(self.honest):9.5f}  (others chose the method)",
                f"  optimism              {self.optimism:9.5f}  (the difference)",
                f"  chosen in folds       {others}",
                self.worth,
            ]
        )


def select_method(
    study: Comparison,
    by: str = "brier",
    folds: int = FOLDS,
    rng: Any = 0,
    level: float = 0.95,
) -> Selection:
    """Choose the model of the best score, with cross-validation of the choice itself."""
    check_choice(by, "by", tuple(SCORES))
    check_number(folds, "folds", 2, kind="a whole number")
    check_number(level, "level", 0.01, 0.9999)
    check_rng(rng)
    losses, columns = losses_of(study, by)
    means = [columns.mean(loss) for loss in losses]
    best = int(np.argmin(means))
    if not isfinite(means[best]):
        raise ValueError(f"no model can be chosen by {by!r}: it is infinite for each.")
    clusters = study[0].clusters
    seed = np.random.default_rng(rng)
    nested, chosen = np.zeros(len(columns)), []
    for _ in range(REPEATS):
        fold = assign_folds(len(columns), clusters, folds, seed)
        loss, models = choose_without(losses, columns, fold, folds)
        nested += loss / REPEATS
        chosen += models
    honest, _ = mean_gain(columns, nested, clusters, level)
    gain = _gain(columns, losses, nested, best, clusters, level)
    names = [study.names[i] for i in (best, *chosen)]
    return Selection(
        by=by,
        n=columns.count,
        chosen=names[0],
        before=means[0],
        apparent=means[best],
        honest=honest,
        optimism=max(float(honest) - means[best], 0.0),  # never below, but by round-off
        gain=gain,
        votes={name: names[1:].count(name) for name in dict.fromkeys(names)},
    )


def _gain(
    columns: Columns,
    losses: list[Column],
    nested: Column,
    best: int,
    clusters: Index | None,
    level: float,
) -> Estimate:
    """What the choice saves, with an interval that holds those of it as it seems, too.

    Where methods nearly tie, the choice without a fold is unstable, and the interval of the
    nested gain alone is too short.
    """
    gain, _ = mean_gain(columns, losses[0] - nested, clusters, level)
    apparent, _ = mean_gain(columns, losses[0] - losses[best], clusters, level)
    if gain.interval is None or apparent.interval is None:
        return Estimate(float(gain))
    ends = [*zip(gain.interval, apparent.interval, strict=True)]
    interval = min(ends[0]), max(ends[1])
    return Estimate(float(gain), interval, "normal, held out")


def losses_of(study: Comparison, by: str) -> tuple[list[Column], Columns]:
    """The loss of each row by model, and the columns of the first."""
    divergence, found = find_divergence(SCORES[by]), []
    for ev in study:
        if ev.columns is None:
            raise ValueError(
                "select needs the rows of the study, which a file or a sketch does not "
                "keep: run the study again."
            )
        found.append(ev.columns.loss(divergence))
    assert study[0].columns is not None
    return found, study[0].columns


def choose_without(
    losses: list[Column], columns: Columns, fold: Index, folds: int
) -> tuple[Column, list[int]]:
    """Losses of rows under the model that is best in all other folds, and those models."""
    sums = np.empty((len(losses), folds))
    for i, loss in enumerate(losses):
        sums[i] = np.bincount(fold, columns.weights * loss, folds)
    others = [np.delete(sums, f, axis=1).sum(axis=1) for f in range(folds)]
    chosen = [int(np.argmin(each)) for each in others]
    nested = np.empty(len(columns))
    for f, i in enumerate(chosen):
        nested[fold == f] = losses[i][fold == f]
    return nested, chosen
