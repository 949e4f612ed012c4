"""`calibration_sharpness`: the diagram, of one model or of several side by side."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from matplotlib.axes import Axes

from calibrant._base.checks import check_choice
from calibrant._base.evaluation import Evaluation
from calibrant._base.measures import is_trivial
from calibrant._verbs.evaluate import evaluate
from calibrant._views.diagram import Evaluations, View, as_list, view
from calibrant.plot import _labels as labels
from calibrant.plot import _panel as panel
from calibrant.plot import _paper_style as paper_style
from calibrant.plot._layout import (
    Margins,
    Panels,
    columns_for,
    give_back,
    given_panels,
    panels,
)
from calibrant.plot._panel import Look, find_band
from calibrant.plot._style import DENSITY_EDGE, in_style

# ----------------------------------------------------------------------------
# Calibration-sharpness diagrams, of one model or of several side by side.


CUT_AT = 1.25
"""Aligned axes end here: a single tall band would squeeze all others."""

SCALES = (16.0, 8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.125)
"""How much a band may be stretched or shrunk where its height has no natural unit."""

HEADROOM = 1.03


@in_style
def calibration_sharpness(
    evs: Evaluations,
    *,
    style: str = "modern",
    divergence: str | None = None,
    bandwidth: float | None = None,
    kernel: str = "gaussian",
    boundary: str = "none",
    interval: bool = True,
    scale: str = "probability",
    ylim: str | None = None,
    legend: bool = True,
    ax: Any = None,
) -> Any:
    r"""Draw accuracy against confidence inside a band of the sharpness gap.

    Parameters
    ----------
    evs : Evaluation, Comparison or sequence of Evaluation
        One model, or several side by side with aligned axes.
    style : {"modern", "paper"}
        ``"modern"`` has a strip below that shows where the rows are; ``"paper"`` is the
        figure of the paper, element by element, at its bandwidth of 0.05.
    divergence : str, optional
        ``"brier"``, ``"log"`` or your own; by default that of the evaluation.
    bandwidth : float, optional
        Draw the paper's kernel estimate at this bandwidth, with `kernel`
        (``"gaussian"`` or ``"epanechnikov"``) and `boundary` (``"none"`` or
        ``"reflect"``). By default, what the evaluation was made with.
    interval : bool
        Whether to draw the pointwise interval of the accuracy.
    scale : {"probability", "logit"}
        ``"logit"`` spreads out the confidences of a saturated model.
    ylim : {"shared", "full", "free"}, optional
        ``"shared"``: all panels end at the same height, at most 1.25; a taller band is
        cut and labelled with its true top. ``"full"``: the same height, nothing cut.
        ``"free"``: each panel as high as it needs. By default ``"shared"`` in the modern
        style and ``"free"`` in that of the paper.
    legend : bool
        Whether a figure made here gets a key.
    ax : Axes or sequence of Axes, optional
        Where to draw: one for each model.

    Returns
    -------
    Axes or array of Axes
        The Axes of the diagram: one for one model, else an array.

    Notes
    -----
    The band is centred on the curve and :math:`\hat p(h)\,\rho(h)` high: density of the
    rows times pointwise sharpness gap, so a larger band is worse. Its bottom is cut at 0,
    its top is not cut at 1. Around an adaptive curve the band is that of the bandwidth
    0.05. A curve is dotted where fewer than 20 rows are near, and not drawn where there
    are none.

    Examples
    --------
    >>> import numpy as np, calibrant as cal, calibrant.plot
    >>> rng = np.random.default_rng(0)
    >>> h = rng.beta(4, 1, 500)
    >>> ev = cal.evaluate_pairs(rng.random(500) < h**2, h, name="too sure")
    >>> ax = calibrant.plot.calibration_sharpness(ev)
    >>> ax.get_ylabel()
    'accuracy'
    """
    check_choice(style, "style", ("modern", "paper"))
    check_choice(scale, "scale", ("probability", "logit"))
    check_choice(ylim, "ylim", (None, "shared", "full", "free"))
    models, several = as_list(evs), not isinstance(evs, Evaluation)
    options = divergence, bandwidth, kernel, boundary
    if style == "paper":
        axes = paper_style.draw_all(models, options, ylim or "free", ax)
        return give_back(axes, several=several)
    views = [view(ev, *options) for ev in models]
    sheet = (
        _sheet(len(views), legend=legend)
        if ax is None
        else given_panels(len(views), ax)
    )
    ends = panel.limits(models) if scale == "logit" else None
    look = Look(CUT_AT, _band_scale(views, ends), interval, ends, sheet.roomy)
    looks = _with_tops(views, look, ylim or "shared")
    size = labels.title_size(views, sheet.inches)
    for place, (one, its_look) in enumerate(zip(views, looks, strict=True)):
        _panel(sheet, place, one, its_look, size)
    _finish(sheet, views, looks[0], legend=legend)
    return give_back(sheet.axes, several=several)


def _sheet(count: int, *, legend: bool) -> Panels:
    columns = columns_for(count)
    key = 0.32 if columns > 3 else 0.48 if columns > 1 else 0.62
    roomy = columns <= 2
    return panels(
        count,
        Margins(
            height=2.55 if columns == 1 else 2.0 if roomy else 1.62,
            head=0.36 if columns == 1 else 0.47,
            foot=0.2,
            bottom=0.2 + (key if legend else 0.0),
        ),
    )


def _panel(sheet: Panels, place: int, one: View, look: Look, size: float) -> None:
    ax = sheet.axes[place]
    lower = panel.split(ax)
    panel.draw(ax, one, look)
    panel.draw_strip(lower, one, look.ends)
    labels.write(ax, one, sheet.inches, size)
    if sheet.is_left(place):
        ax.set_ylabel("accuracy")
        lower.set_ylabel("rows", color=DENSITY_EDGE, fontsize=7)
    else:
        ax.tick_params(labelleft=False)
    if sheet.is_bottom(place):
        lower.set_xlabel("confidence", labelpad=2)


def _band_scale(views: list[View], ends: tuple[float, float] | None) -> float:
    """1 for Brier on the probability scale; elsewhere so that bands fit the axes."""
    named = views[0].parts.divergence == "brier"
    if ends is None and named:
        return 1.0
    judged = [v for v in views if not is_trivial(v.ev)] or views
    for scale in SCALES if ends is not None else SCALES[4:]:
        look = Look(CUT_AT, scale, ends=ends)
        if max(find_band(v, look).top for v in judged) <= CUT_AT:
            return scale
    return SCALES[-1]


def _with_tops(views: list[View], look: Look, ylim: str) -> list[Look]:
    """Decide where each y axis ends."""
    needed = [max(1.0, find_band(v, look).top) * HEADROOM for v in views]
    if ylim == "free":
        return [_ending(look, top) for top in needed]
    top = max(needed)
    return [_ending(look, min(top, CUT_AT) if ylim == "shared" else top)] * len(views)


def _ending(look: Look, top: float) -> Look:
    return Look(top, look.band_scale, look.interval, look.ends, look.roomy)


def _finish(sheet: Panels, views: list[View], look: Look, *, legend: bool) -> None:
    """Key, the meaning of the numbers, and the words for those who cannot see it."""
    if sheet.sheet is None:
        return
    sheet.sheet.alt_text = " ".join(v.ev.describe() for v in views)
    if not legend:
        return
    columns = 2 if sheet.columns == 1 else 3 if sheet.columns < 4 else 6
    note = f"numbers: {labels.method(views)}"
    labels.legend(sheet.sheet, labels.key(views, look), columns, note)


# ----------------------------------------------------------------------------
# The diagram for users of scikit-learn: a Display with its two ways to be made.


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
    >>> from calibrant.plot import CalibrationSharpnessDisplay
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
            As in `calibrant.evaluate`.
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
            As in `calibrant.evaluate`; of two classes, by default the second is asked for.
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
