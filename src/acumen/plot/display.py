"""The diagram for users of scikit-learn: a Display with its two ways to be made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from matplotlib.axes import Axes

from acumen.evaluation import evaluate
from acumen.plot.row import calibration_sharpness
from acumen.results import Evaluation


@dataclass(slots=True, eq=False)
class CalibrationSharpnessDisplay:
    """A calibration-sharpness diagram: evaluated once, drawn as often as needed.

    Attributes
    ----------
    evaluation : Evaluation
        Every number behind the picture.
    ax_ : Axes
        Where it was drawn last.

    Examples
    --------
    >>> import numpy as np
    >>> from acumen.plot import CalibrationSharpnessDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(300)
    >>> display = CalibrationSharpnessDisplay.from_predictions(rng.random(300) < p, p)
    >>> display.ax_.get_ylabel()
    'accuracy'
    """

    evaluation: Evaluation
    ax_: Axes | None = field(default=None, init=False)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        classes: Any = None,
        target: str | None = None,
        sample_weight: Any = None,
        name: str = "model",
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Evaluate probabilities and draw.

        Parameters
        ----------
        y_true, y_prob : array_like
            Labels, and probabilities: n x k, or those of the positive class.
        classes, target, sample_weight, name
            As in `acumen.evaluate`.
        ax, **options
            As in `calibration_sharpness`.
        """
        ev = evaluate(
            y_true,
            probs=y_prob,
            classes=classes,
            target=target,
            sample_weight=sample_weight,
            name=name,
        )
        return cls(ev).plot(ax=ax, **options)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        target: str | None = None,
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """Evaluate the probabilities of a fitted classifier and draw.

        Parameters
        ----------
        estimator : classifier
            It needs ``predict_proba`` and ``classes_``.
        X, y : array_like
            Rows it was not fitted on, and their labels.
        target : str, optional
            As in `acumen.evaluate`; of two classes, by default the second is asked for.
        name : str, optional
            By default the name of its class.
        **options
            As in `from_predictions`.
        """
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(
                f"{type(estimator).__name__} has no predict_proba; give its "
                "probabilities to from_predictions instead."
            )
        classes = list(estimator.classes_)
        if target is None and len(classes) == 2:
            target = "positive"
        return cls.from_predictions(
            y,
            estimator.predict_proba(X),
            classes=classes,
            target=target,
            name=type(estimator).__name__ if name is None else name,
            **options,
        )

    @property
    def figure_(self) -> Any:
        """The figure it was drawn on last."""
        return None if self.ax_ is None else self.ax_.figure

    def plot(self, ax: Axes | None = None, **options: Any) -> Self:
        """Draw it, again if need be; options as in `calibration_sharpness`."""
        self.ax_ = calibration_sharpness(self.evaluation, ax=ax, **options)
        return self
