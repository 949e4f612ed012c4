"""`classwise_grid`: one small diagram for each class, worst first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from calibrant._base.checks import check_number, read_names
from calibrant._base.evaluation import Evaluation
from calibrant._views.diagram import GEOMETRY, axis_words, the_one, view
from calibrant.plot import _labels as labels
from calibrant.plot import _panel as panel
from calibrant.plot import _style as style
from calibrant.plot._layout import Margins, panels

MARGINS = Margins(height=1.05, head=0.36, foot=0.2, bottom=0.36)


@style.in_style
def classwise_grid(
    models: Evaluation,
    *,
    classes: Sequence[object] | None = None,
    most: int = 20,
    interval: bool | str = True,
    figsize: tuple[float, float] | None = None,
) -> NDArray[np.object_]:
    """Draw a diagram for each class of a class-wise evaluation.

    The calibration errors of the classes do not add up to that of the evaluation: here each
    class is judged by itself, and what is too little to be believed of one may be certain of
    all. Their sum is too low as a rule, the more so the more classes there are.

    Parameters
    ----------
    models : Evaluation
        From ``calibrant.evaluate(..., target="class-wise")``.
    classes : sequence, optional
        Names of the classes to draw, in order. By default those of the largest
        calibration error, largest first.
    most : int
        How many to draw at most, if `classes` does not say which.
    interval, figsize
        As in `calibration_sharpness`.

    Returns
    -------
    array of Axes
        One for each class that was drawn.

    Examples
    --------
    >>> import numpy as np, calibrant as cal, calibrant.plot
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 300)
    >>> y = (p.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1)
    >>> ev = cal.evaluate(y, probs=p, target="class-wise")
    >>> len(calibrant.plot.classwise_grid(ev))
    3
    """
    ev = the_one(models)
    chosen = _chosen(ev, classes, most)
    sheet = panels(len(chosen), MARGINS, figsize)
    views = [view(one) for one in chosen]
    top = min(GEOMETRY.most_top, max([1.03, *(seen.band().top for seen in views)]))
    look = panel.Look(top, interval=interval, roomy=False)
    words, size = axis_words(ev), style.theme().size("tick")
    for place, (ax, seen) in enumerate(zip(sheet.axes, views, strict=True)):
        panel.draw(ax, seen, look)
        line = rf"$d_\mathrm{{CAL}}$ {labels.with_interval(seen.parts.calibration)}"
        labels.header(ax, seen.ev.name, line, [line], sheet.inches)
        ax.tick_params(labelleft=sheet.is_left(place))
        if sheet.is_left(place):
            style.name_axis(ax, "y", words["hit"], size=size)
        if sheet.is_bottom(place):
            style.name_axis(ax, "x", words["said"], size=size)
            ax.xaxis.labelpad = 2
    assert sheet.sheet is not None
    _caption(sheet.axes[0], ev, len(chosen), by_size=classes is None)
    sheet.sheet.alt_text = ev.describe()
    return np.array(sheet.axes)


def _chosen(
    ev: Evaluation, classes: Sequence[object] | None, most: int
) -> list[Evaluation]:
    if not ev.per_class:
        raise ValueError(
            f"{ev.name!r} has no evaluations of single classes; make them with "
            "calibrant.evaluate(..., target='class-wise')."
        )
    if classes is None:
        check_number(most, "most", 1, kind="a whole number")
        return sorted(ev.per_class, key=_badness)[: int(most)]
    by_name = {one.name: one for one in ev.per_class}
    names = [str(name) for name in read_names(classes, "classes", len(by_name))]
    missing = [name for name in names if name not in by_name]
    if missing or not names:
        said = f"{missing[0]!r} is not one" if missing else "got none"
        raise ValueError(f"classes must name classes of the evaluation; {said}.")
    return [by_name[name] for name in names]


def _badness(ev: Evaluation) -> float:
    error = float(ev.decomposition.calibration)
    return np.inf if np.isnan(error) else -error


def _caption(ax: Axes, ev: Evaluation, shown: int, *, by_size: bool) -> None:
    figure = ax.get_figure(root=True)
    assert figure is not None
    order = ", largest calibration error first" if by_size else ""
    total = len(ev.per_class)
    count = f"{shown} of {total} classes" if shown < total else f"all {total} classes"
    theme = style.theme()
    size = theme.points(style.NOTE)
    name = style.elide(ev.name, 2.2 * theme.room, size)
    text = f"{name}: {count}{order}; {labels.score_name(ev.divergence)} ×100"
    size = labels.fitting(text, figure.get_figwidth() - 0.1, size)
    look: Any = {"fontsize": size, "color": theme.muted, "ha": "center"}
    figure.text(0.5, 0.05 / figure.get_figheight(), text, va="bottom", **look)
