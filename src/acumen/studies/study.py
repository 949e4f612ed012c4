"""The paper's table for one's own model: recalibrate in several ways, evaluate each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from acumen import encoding
from acumen.comparison import Comparison
from acumen.recalibration import Recalibrator
from acumen.recalibration.estimator import Progress, silent
from acumen.recalibration.labels import class_names
from acumen.studies.methods import PAPER, Methods, recalibrators_for
from acumen.studies.rows import StudyRows, read_study_rows
from acumen.studies.trials import Trial, attempt


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Study(Comparison):
    """A comparison of recalibration methods, with the fitted recalibrators.

    The first model is the uncalibrated one. Mean replacement is always there: a method
    that does not beat it on a proper score has learned nothing worth having.

    Attributes
    ----------
    recalibrators : dict of str to Recalibrator
        Fitted, by name; not part of `to_dict`. After cross-fitting they are fitted on
        all rows.

    Examples
    --------
    >>> import numpy as np, acumen as ac
    >>> rng = np.random.default_rng(0)
    >>> z = 3 * rng.normal(size=(2000, 3))
    >>> y = (z / 3 + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> found = ac.study(y, logits=z, split=0.5, rng=0)
    >>> found.best("nll").name
    'Temperature'
    >>> round(found.recalibrators["Temperature"].temperature_, 1)
    2.8
    >>> "recalibrators" in found.to_dict()
    False
    """

    recalibrators: Mapping[str, Recalibrator] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """All numbers; recalibrators are saved with their own ``save``."""
        kept = [f.name for f in fields(self) if f.name != "recalibrators"]
        return {name: encoding.plain(getattr(self, name)) for name in kept}


def study(
    y: Any,
    y_test: Any = None,
    *,
    logits: Any = None,
    probs: Any = None,
    methods: Methods = PAPER,
    split: float | None = None,
    folds: int | None = None,
    rng: Any = 0,
    sample_weight: Any = None,
    classes: Any = None,
    target: str | None = None,
    preset: str | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Study:
    """Recalibrate a model in several ways and evaluate each on rows not used to fit.

    Parameters
    ----------
    y, y_test : array_like
        Labels of the rows to fit on and to test on. With `y_test`, scores (and weights)
        are pairs ``(calibration, test)``. Without, `y` is one set of rows, of which
        `split` or `folds` says how it is used.
    logits, probs : array_like or pair of array_like
        Scores; exactly one of the two.
    methods : str, sequence or mapping
        ``"paper"`` (the default: temperature, histogram binning, isotonic, mean
        replacement), ``"all"``, names such as ``"temperature"`` or ``"vector"``,
        recalibrators, or a mapping from names of your choice to either. The uncalibrated
        model and mean replacement are always added.
    split : float, optional
        Share of rows to fit on; 0.2, as in the paper, if neither this nor `folds` nor
        `y_test` is given.
    folds : int, optional
        Cross-fitting: every row is tested by a recalibrator fitted on the other folds,
        so small sets are used well.
    rng : int, Generator or None
        How rows are drawn. None takes the first rows, in order, as the authors did.
    sample_weight : array_like or pair of array_like, optional
        Weight 2 is a row twice, weight 0 is no row.
    classes, target
        As in `evaluate`.
    preset : {None, "paper"}
        ``"paper"`` evaluates as published and lets histogram binning and isotonic
        regression follow netcal, the tool of the paper.
    progress : callable, optional
        Called as ``progress(share_done, what)``.
    **options
        Further options of `evaluate`: `divergence`, `bandwidth`, `bins`, `level`, ...

    Returns
    -------
    Study
        A comparison whose first model is ``"Uncalibrated"``. Print it for the table.

    Examples
    --------
    >>> import numpy as np, acumen as ac
    >>> rng = np.random.default_rng(0)
    >>> z = 3 * rng.normal(size=(2000, 3))
    >>> y = (z / 3 + rng.gumbel(size=z.shape)).argmax(axis=1)
    >>> found = ac.study(y[:500], y[500:], logits=(z[:500], z[500:]))
    >>> found.names
    ('Uncalibrated', 'Temperature', 'Histogram binning', 'Isotonic', 'Mean replacement')
    >>> found.best("brier").name
    'Temperature'
    """
    rows = read_study_rows(
        y,
        y_test,
        logits=logits,
        probs=probs,
        sample_weight=sample_weight,
        split=split,
        folds=folds,
        rng=rng,
    )
    k = 2 if rows.test.scores.ndim == 1 else rows.test.scores.shape[1]
    classes = class_names(rows.whole.y, k, classes)
    chosen = recalibrators_for(methods, rows.kind, classes, preset)
    if target is None and rows.test.scores.ndim == 1:
        target = "positive"
    options = {"classes": classes, "target": target, "preset": preset, **options}
    return _run(rows, chosen, options, progress or silent)


def _run(
    rows: StudyRows,
    chosen: Mapping[str, Recalibrator],
    options: Mapping[str, Any],
    progress: Progress,
) -> Study:
    trials: dict[str, Trial] = {}
    for number, (name, recalibrator) in enumerate(chosen.items()):

        def report(share: float, what: str, name: str = name, at: int = number) -> None:
            progress((at + share) / len(chosen), f"{name}: {what}")

        try:
            trials[name] = attempt(name, recalibrator, rows, options, report)
        except (ValueError, TypeError) as error:
            raise type(error)(f"{name}: {error}") from error
        report(1.0, "done")
    first = next(iter(trials.values()))
    return Study(
        evaluations=tuple(trial.evaluation for trial in trials.values()),
        protocol=rows.protocol,
        effects={name: trial.effect(first) for name, trial in trials.items()},
        shared_rows=rows.shared,
        recalibrators={name: trial.recalibrator for name, trial in trials.items()},
    )
