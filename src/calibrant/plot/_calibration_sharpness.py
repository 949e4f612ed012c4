"""`calibration_sharpness`: the diagram, of one model or of several side by side."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes

from calibrant._base.checks import check_choice
from calibrant._base.evaluation import Evaluation
from calibrant._base.measures import is_trivial
from calibrant._inputs.options import PAPER_BANDWIDTH
from calibrant._verbs.evaluate import evaluate
from calibrant._views import diagram
from calibrant.plot import _labels as labels
from calibrant.plot import _layout as layout
from calibrant.plot import _panel as panel
from calibrant.plot import _style as looks

SCALES = (16.0, 8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.125)
"""How much a band may be stretched or shrunk where its height has no natural unit."""

CUT_AT, HEADROOM = diagram.GEOMETRY.most_top, 1.03


@looks.in_style
def calibration_sharpness(
    models: diagram.Evaluations,
    *,
    style: str = "modern",
    divergence: str | None = None,
    bandwidth: float | None = None,
    kernel: str = "gaussian",
    boundary: str = "none",
    interval: bool | str = True,
    scale: str = "probability",
    ylim: str | None = None,
    legend: bool = True,
    figsize: tuple[float, float] | None = None,
    ax: Any = None,
) -> Any:
    r"""Draw accuracy against confidence inside a band of the sharpness gap.

    Parameters
    ----------
    models : Evaluation, Comparison or sequence of Evaluation
        One model, or several side by side with aligned axes.
    style : {"modern", "paper"}
        ``"modern"`` has a strip below that shows where the examples are; ``"paper"`` is the
        figure of the paper, element by element, at its bandwidth of 0.05.
    divergence : str, optional
        ``"brier"``, ``"log"`` or your own; by default that of the evaluation.
    bandwidth : float, optional
        Draw the paper's kernel estimate at this bandwidth, with `kernel`
        (``"gaussian"`` or ``"epanechnikov"``) and `boundary` (``"none"`` or
        ``"reflect"``). By default, what the evaluation was made with.
    interval : bool or {"pointwise", "simultaneous"}
        Which bands of the accuracy to draw: by default both, the darker one pointwise,
        the lighter one simultaneous (all places at once); or one of them, or none.
    scale : {"probability", "logit"}
        ``"logit"`` spreads out the confidences of a saturated model.
    ylim : {"shared", "full", "free"}, optional
        ``"shared"``: all panels end at the same height, at most 1.25; a taller band is
        cut and labelled with its true top. ``"full"``: the same height, nothing cut.
        ``"free"``: each panel as high as it needs. By default ``"shared"`` in the modern
        style and ``"free"`` in that of the paper.
    legend : bool
        Whether a figure made here gets a key. On `ax` there is none; ``ax.legend()`` adds
        one, since what is drawn has labels.
    figsize : (float, float), optional
        Width and height of a figure made here, in inches. By default 3.25 wide for one
        model and at most 7 for several, and larger if text is (`font.size`).
    ax : Axes or sequence of Axes, optional
        Where to draw: one for each model.

    Returns
    -------
    Axes or array of Axes
        The Axes of the diagram: one for one model, else an array.

    Notes
    -----
    The band is centred on the curve and :math:`\hat p(h)\,\rho(h)` high: density of the
    examples times pointwise sharpness gap, so a larger band is worse. Its bottom is cut at 0,
    its top is not cut at 1. Around an adaptive curve the band is that of the bandwidth
    0.05. A curve is dotted where fewer than 20 examples are near, and not drawn where there
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
    chosen, several = diagram.as_list(models), not isinstance(models, Evaluation)
    options = divergence, bandwidth, kernel, boundary
    if style == "paper":
        axes = _draw_paper(chosen, options, ylim or "free", (ax, figsize))
        return layout.give_back(axes, several=several)
    views = [diagram.view(ev, *options) for ev in chosen]
    count, brief = len(views), _is_low(len(views), figsize)
    sheet = (
        _sheet(count, figsize, legend=legend, brief=brief)
        if ax is None
        else layout.given_panels(count, ax, figsize)
    )
    ends = panel.limits(chosen) if scale == "logit" else None
    look = panel.Look(CUT_AT, _band_scale(views, ends), interval, ends, sheet.roomy)
    looks = _with_tops(views, look, ylim or "shared")
    size = labels.title_size((ev.name for ev in chosen), sheet.inches)
    strips = [
        _panel(each, one, its, (sheet.inches, size))
        for each, one, its in zip(sheet.axes, views, looks, strict=True)
    ]
    handles = labels.key(views, looks[0], brief=brief) if legend else []
    columns = 2 if sheet.columns == 1 else 3 if sheet.columns < 4 else 4
    note = "" if brief else f"numbers: {labels.method(views)}"
    labels.finish(sheet, strips, chosen, handles, columns, note)
    return layout.give_back(sheet.axes, several=several)


LOW = 2.6
"""A row of panels of less than so many inches has a brief key."""


def _is_low(count: int, figsize: Any) -> bool:
    if figsize is None:
        return False
    rows = -(-count // layout.columns_for(count))
    return layout.read_figsize(figsize)[1] < rows * LOW * looks.theme().room


def _sheet(count: int, figsize: Any, *, legend: bool, brief: bool) -> layout.Panels:
    columns = layout.columns_for(count)
    key = 0.46 if columns > 3 else 0.6 if columns > 1 else 0.72
    key = (0.18 if columns > 3 else 0.31) if brief else key
    height = 2.55 if columns == 1 else 2.0 if columns == 2 else 1.62
    head = layout.head_for(columns, figsize)
    bottom = 0.2 + (key if legend else 0.0)
    margins = layout.Margins(height, head, foot=0.2, bottom=bottom)
    return layout.panels(count, margins, figsize)


def _panel(
    ax: Axes, one: diagram.View, look: panel.Look, sizes: tuple[float, float]
) -> Axes:
    """Draw a model, and give the strip below it."""
    lower = layout.split(ax)
    panel.draw(ax, one, look)
    panel.draw_strip(lower, one, look.ends)
    labels.write(ax, one, *sizes)
    looks.name_axis(ax, "y", diagram.axis_words(one.ev)["hit"])
    return lower


def _band_scale(views: list[diagram.View], ends: tuple[float, float] | None) -> float:
    """1 for Brier on the probability scale; elsewhere so that bands fit the axes."""
    named = views[0].parts.divergence == "brier"
    if ends is None and named:
        return 1.0
    judged = [v for v in views if not is_trivial(v.ev)] or views
    for scale in SCALES if ends is not None else SCALES[4:]:
        look = panel.Look(CUT_AT, scale, ends=ends)
        if max(panel.find_band(v, look).top for v in judged) <= CUT_AT:
            return scale
    return SCALES[-1]


def _with_tops(
    views: list[diagram.View], look: panel.Look, ylim: str
) -> list[panel.Look]:
    """Decide where each y axis ends."""
    bands = [panel.find_band(v, look) for v in views]
    needed = [max(1.0, band.top) * HEADROOM for band in bands]
    if ylim == "free":
        return [replace(look, top=top) for top in needed]
    top = diagram.shared_top(bands, HEADROOM) if ylim == "shared" else max(needed)
    return [replace(look, top=top)] * len(views)


# -- as the paper draws it: its colours, box, hatching and scaled density --------------

RED, BLUE, LINES = "#d62728", "#1f77b4", "#b0b0b0"
Options = tuple[str | None, float | None, str, str]


def _draw_paper(
    models: list[Evaluation], options: Options, ylim: str, place: tuple[Any, Any]
) -> list[Axes]:
    """One panel for each model, on the Axes given or a figure of a size."""
    divergence, bandwidth, kernel, boundary = options
    bandwidth = PAPER_BANDWIDTH if bandwidth is None else bandwidth
    views = [diagram.view(ev, divergence, bandwidth, kernel, boundary) for ev in models]
    (ax, figsize), count = place, len(models)
    sheet = (
        layout.loose_panels(count, 2.7, 2.2, figsize)
        if ax is None
        else layout.given_panels(count, ax, figsize)
    )
    tops = [max(1.0, float(_paper_band(v).high.max(initial=0))) for v in views]
    if ylim != "free":
        top = max(tops)
        tops = [top if ylim == "full" else min(top, CUT_AT)] * len(tops)
    size = looks.theme().size("title") * (1 if sheet.roomy else labels.SMALLER)
    for each, one, top in zip(sheet.axes, views, tops, strict=True):
        _paper_panel(each, one, top, roomy=sheet.roomy)
        if sheet.sheet is not None:
            name = looks.elide(one.ev.name, sheet.inches, size)
            each.set_title(name, fontsize=size)
            sheet.sheet.alt_text += one.ev.describe("paper") + " "
    _name_paper_axes(sheet)
    return sheet.axes


def _name_paper_axes(sheet: layout.Panels) -> None:
    size = looks.theme().size("tick")
    for place, ax in enumerate(sheet.axes):
        if sheet.is_bottom(place):
            looks.name_axis(ax, "x", r"Confidence $(h(x))$")
        if sheet.is_left(place):
            text = r"Conditional Expectation of $Y = c(X)$"
            size = labels.fitting(text, 0.85 * sheet.tall, size)
            looks.name_axis(ax, "y", text, size=size)
    if sheet.sheet is None:
        layout.make_room(sheet.axes)


def _paper_line(one: diagram.View) -> np.ndarray:
    """The curve; a constant confidence is drawn as a flat line, as the authors do."""
    accuracy = one.curve.accuracy
    if len(one.ev.atoms.count) == 1:
        return np.full_like(accuracy, np.nanmean(accuracy))
    return accuracy


def _paper_band(one: diagram.View) -> diagram.Band:
    """The band wherever there is a gap: the lower edge cut at 0, the upper not at 1."""
    curve, middle = one.curve, np.nan_to_num(_paper_line(one))
    gap = np.where(np.isfinite(curve.sharpness_gap), curve.sharpness_gap, 0.0)
    return diagram.Band.of(curve.confidence, middle, curve.density, gap)


def _paper_panel(ax: Axes, one: diagram.View, top: float, *, roomy: bool) -> None:
    """Diagonal, curve, band, density and the box of numbers."""
    curve, band, line = one.curve, _paper_band(one), _paper_line(one)
    at, known, theme = curve.confidence, np.isfinite(line), looks.theme()
    looks.dress(ax, grid=False, hide=())
    frame, black = (
        "black" if colour == looks.ON_LIGHT.ink else colour
        for colour in (theme.settings["text.color"], theme.ink)
    )
    for spine in ax.spines.values():
        spine.set(color=frame, linewidth=0.8)
    ax.tick_params(color=frame, labelcolor=frame)
    ax.set_axisbelow(False)
    ax.grid(color=LINES, linewidth=0.8, zorder=1)
    diagonal: Any = {"linestyle": "dashed", "color": black, "linewidth": 1.2}
    ax.plot(at, at, gid="diagonal", **diagonal)
    ax.plot(at, line, color=RED, linewidth=1.5, gid="accuracy")
    fill: Any = {"where": known, "color": RED, "alpha": 0.5, "linewidth": 0.6}
    ax.fill_between(at, band.low, band.high, gid="band", **fill)
    density = curve.density / curve.density.max()
    ax.fill_between(at, density, color=BLUE, hatch="/", alpha=0.3, gid="density")
    ax.set(xlim=(0, 1), ylim=(0, top))
    _paper_box(ax, one, roomy=roomy)


def _paper_box(ax: Axes, one: diagram.View, *, roomy: bool) -> None:
    parts, theme = one.parts, looks.theme()
    lines = [
        rf"$d_{{\varphi,\mathrm{{CAL}}}} = {labels.percent(parts.calibration)}$",
        rf"$d_{{\phi,\mathrm{{TOT}}}} = {labels.percent(parts.total)}$",
    ]
    text = "\n".join(line.replace("∞", r"\infty") for line in lines)
    box = {"boxstyle": "round", "facecolor": "gray", "alpha": 0.2}
    look: Any = {"va": "top", "bbox": box, "color": theme.ink}
    look["fontsize"] = theme.points(8 if roomy else 6.8)
    ax.text(0.05, 0.95, text, transform=ax.transAxes, **look)
    look = {"ha": "right", "va": "bottom", "color": theme.ink}
    look["fontsize"] = theme.points(9 if roomy else 7.5)
    ax.text(0.95, 0.02, r"$\hat{p}(h(x))$", transform=ax.transAxes, **look)


# -- for users of scikit-learn ----------------------------------------------------------


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
    'observed frequency'
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
        said = {"classes": classes, "target": target, "sample_weight": sample_weight}
        ev = evaluate(y_true, probs=y_prob, name=name, **said)
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
        said = {"classes": classes, "target": target, **options}
        said["name"] = type(estimator).__name__ if name is None else name
        return cls.from_predictions(y, estimator.predict_proba(X), **said)

    @property
    def figure_(self) -> Any:
        """The figure it was drawn on last."""
        return None if self.ax_ is None else self.ax_.figure

    def plot(self, ax: Axes | None = None, **options: Any) -> Self:
        """Draw it, again if need be; options as in `calibration_sharpness`."""
        self.ax_ = calibration_sharpness(self.evaluation, ax=ax, **options)
        return self
