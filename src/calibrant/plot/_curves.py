"""What figures of curves share: one line and band for each model, on one Axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from calibrant._base.comparison import shown_names
from calibrant._base.evaluation import Evaluation
from calibrant._inputs.arrays import Column
from calibrant._views.diagram import as_list
from calibrant.plot import _labels as labels
from calibrant.plot import _style as style
from calibrant.plot._layout import check_room, given_panels, make_room, read_figsize

Curve = TypeVar("Curve")

MOST_LINES = 8
"""More lines than this on one Axes cannot be told apart."""

WIDTH, HEIGHT, LINE = 3.4, 2.6, 0.13
"""Inches of a figure of its own, and of each line of its key."""

TALLEST = 2000
"""Points of a line, beyond which it only takes longer to draw."""


def curves_of(
    models: Any, kind: type[Curve], make: Callable[[Evaluation], Curve]
) -> list[Curve]:
    """Records of this kind: as given, one or several, or made of evaluations."""
    one = isinstance(models, kind)
    given = [models] if one else models
    listed = isinstance(given, list | tuple) and given
    if not (listed and all(isinstance(x, kind) for x in given)):
        given = [make(ev) for ev in as_list(models)]
    if len(given) > MOST_LINES:
        raise ValueError(
            f"models must be at most {MOST_LINES} for this figure, which has them on one "
            f"Axes, got {len(given)}; choose some."
        )
    return list(given)


def names_of(records: Sequence[Any]) -> list[str]:
    """How to show the names of models, which may be alike."""
    shown = shown_names(x.name for x in records)
    return [shown[x.name] for x in records]


def axes_of(ax: Axes | None, figsize: Any, lines: int) -> Axes:
    """The Axes given, or one of a figure with room for so many lines of a key."""
    if ax is not None:
        return given_panels(1, ax, figsize).axes[0]
    room = style.theme().room
    usual = WIDTH * room, (HEIGHT + LINE * lines) * room
    size = usual if figsize is None else read_figsize(figsize)
    found: Axes = style.sheet(*size).subplots()
    return found


def draw_model(
    ax: Axes,
    place: int,
    at: Column,
    y: Column,
    ends: Any = None,
    name: str = "",
    **look: Any,
) -> None:
    """The line of a model, over the band between these ends."""
    theme = style.theme()
    colour, dash, _ = theme.model(place)
    some = thinned(len(at))
    if ends is not None:
        low, high = (x[some] for x in ends)
        fill: Any = {"color": colour, "alpha": 0.16, "linewidth": 0, "zorder": 2}
        ax.fill_between(at[some], low, high, gid="interval", **fill)
    line: Any = {"color": colour, "linestyle": dash, "linewidth": theme.line(1.4)}
    ax.plot(at[some], y[some], zorder=4, gid=name or "curve", **(line | look))


def thinned(count: int) -> Any:
    """Places of a long column that are enough for a line; the ends are among them."""
    if count <= TALLEST:
        return slice(None)
    return np.unique(np.linspace(0, count - 1, TALLEST).astype(np.intp))


def model_handles(
    texts: Sequence[str], inches: float = WIDTH - 0.5
) -> list[Line2D | Patch]:
    """Handles of the lines of models, named in at most so many inches."""
    theme, handles = style.theme(), []
    for place, text in enumerate(texts):
        colour, dash, _ = theme.model(place)
        shown = style.elide(text, inches, theme.size("key"))
        look: Any = {"color": colour, "linestyle": dash, "linewidth": theme.line(1.4)}
        handles.append(Line2D([], [], label=shown, **look))
    return list(handles)


def band_handle(level: float, what: str = "pointwise") -> Patch:
    """The handle of the bands of models."""
    return labels.interval_patch(f"{100 * level:g}% {what}")


def finish(
    ax: Axes, handles: Sequence[Any], alt_text: str, *, own: bool, legend: bool
) -> None:
    """A key below the Axes, and words for those who cannot see it."""
    figure: Any = ax.get_figure(root=True)
    break_labels(handles, _room(ax, own=own))
    made = None
    if own:
        figure.alt_text = alt_text
    if legend:
        key = figure.legend if own else ax.legend
        place: Any = {"loc": "outside lower left"} if own else {"loc": "best"}
        spacing: Any = {"handlelength": 2.0, "labelspacing": 0.3, "borderpad": 0.1}
        made = key(
            handles=list(handles),
            fontsize=style.theme().size("key"),
            **place,
            **spacing,
        )
    if own:
        _fit_name(ax, made)
    else:
        make_room([ax])


BESIDE, LEAST = 0.45, 0.5
"""Inches of a key that are not text, and of text at least."""


def _room(ax: Axes, *, own: bool) -> float:
    """Inches for a line of the key: those of the figure, or of the Axes it is on."""
    figure: Any = ax.get_figure(root=True)
    width = ax.get_window_extent().width / figure.dpi
    return max((figure.get_figwidth() if own else width) - BESIDE, LEAST)


def _fit_name(ax: Axes, key: Any) -> None:
    """Break the name of the y axis where the Axes is low, or refuse to draw it cut off."""
    figure: Any = ax.get_figure(root=True)
    theme, label, names = style.theme(), ax.yaxis.label, ax.xaxis.get_tightbbox()
    below = ax.get_window_extent().y0 - names.y0 if names else 0.0
    below += key.get_window_extent().height if key else 0
    width, height = (float(inches) for inches in figure.get_size_inches())
    tall = height - below / figure.dpi - PADDING * theme.room
    words, size = label.get_text().split(" "), float(label.get_fontsize())
    lines = [(" ".join(words[:i]), " ".join(words[i:])) for i in range(len(words))]
    wide = [max(style.width_of(line, size) for line in pair) for pair in lines]
    if wide[0] > tall:
        best = wide.index(min(wide))
        label.set_text("\n".join(lines[best]))
        whole = width, height
        check_room(whole, (LEAST, tall), whole, least=(LEAST, wide[best]))


PADDING = 0.15
"""Inches above Axes and between it, its labels and the key."""


def break_labels(handles: Sequence[Any], inches: float) -> int:
    """Break the labels of a key into lines of so many inches; how many there are then."""
    size = style.theme().size("key")
    for handle in handles:
        handle.set_label(broken(str(handle.get_label()), inches, size))
    return sum(1 + str(handle.get_label()).count("\n") for handle in handles)


def broken(text: str, inches: float, size: float) -> str:
    """A text in lines of so many inches; a word that is wider is shortened."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if style.width_of(longer, size) <= inches:
            lines[-1] = longer
        else:
            lines.append(style.elide(word.replace(r"\$", "$"), inches, size))
    return "\n".join(filter(None, lines))
