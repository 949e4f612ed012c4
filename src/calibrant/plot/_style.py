"""How figures look: colours, sizes, fonts, and the figure that saves itself well."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, partial, wraps
from inspect import signature
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import is_color_like, to_hex, to_rgb, to_rgba
from matplotlib.figure import Figure
from matplotlib.font_manager import (
    FontProperties,
    findfont,
    font_scalings,
    fontManager,
    get_font,
)

from calibrant._base.checks import MOST_NAME, check_choice, one_line
from calibrant._base.write import write_bytes
from calibrant._inputs.options import KERNELS, no_option

Options = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ground:
    """The colours that go with a light or a dark background.

    Lines have a contrast of at least 3 to it. Fills have less, so they get an edge.
    """

    ink: str
    muted: str
    curve: str
    band: str
    band_edge: str
    density: str
    density_edge: str
    models: tuple[str, ...]


# Under simulated colour blindness the colours of models stay apart by 12 or more (CIE
# 1976); dashes and markers tell them apart without colour.
ON_LIGHT = Ground(
    ink="#1F2933",
    muted="#5F6B7A",
    curve="#A6301C",
    band="#F2B8A4",
    band_edge="#D9775A",
    density="#8FB3D4",
    density_edge="#2F6695",
    models=(
        "#3A4453",
        "#0B6FB8",
        "#B85C00",
        "#0A7D5C",
        "#A8327F",
        "#6A51A3",
        "#7A6A00",
        "#B3261E",
    ),
)
ON_DARK = Ground(
    ink="#E8EDF4",
    muted="#A3AFBF",
    curve="#FF8F73",
    band="#6E3526",
    band_edge="#C9654A",
    density="#3D5F80",
    density_edge="#8DBBE6",
    models=(
        "#D3DAE4",
        "#5BB4F0",
        "#F2A541",
        "#3DCB9C",
        "#EE8CC8",
        "#B9A5F2",
        "#D8C95A",
        "#FF8A80",
    ),
)
RULE, GRID, SHADE = ("#CBD2DA", 0.2), ("#E3E7EC", 0.14), ("#ECEFF3", 0.08)
"""Faint greys: on white, and elsewhere how much of the ink is in them."""

DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1.2, 1.2)),
    (0, (5, 1.5, 1, 1.5)),
    (0, (3, 1)),
    (0, (7, 2, 2, 2)),
    (0, (2, 1, 1, 1)),
    (0, (8, 2)),
)
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")

RIBBON_ALPHA = 0.3
UNIT_TICKS, TIGHT = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0), (0.0, 0.5, 1.0)

COLUMN, PAGE = 3.25, 7.0
"""Widths of a column and of a page, in inches."""

SIZES = {
    "font.size": 7.5,
    "axes.labelsize": 8.0,
    "axes.titlesize": 8.5,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 6.8,
}
"""Points of text where the user has chosen none; ``font.size`` moves all of them."""

LOOKS = (
    "axes",
    "errorbar",
    "figure",
    "font",
    "grid",
    "hatch",
    "legend",
    "lines",
    "markers",
    "mathtext",
    "patch",
    "path",
    "savefig",
    "scatter",
    "svg",
    "text",
    "xaxis",
    "xtick",
    "yaxis",
    "ytick",
)
"""Groups of rcParams that change how a figure looks; others are none of our business."""

PLAIN: Any = {k: v for k, v in mpl.rcParamsDefault.items() if k.split(".")[0] in LOOKS}

OURS: Any = {
    "axes.linewidth": 0.6,
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    "lines.solid_capstyle": "butt",
    **{f"{axis}tick.major.size": 2.5 for axis in "xy"},
    **{f"{axis}tick.minor.size": 1.5 for axis in "xy"},
    **{f"{axis}tick.major.width": 0.6 for axis in "xy"},
    **{f"{axis}tick.minor.width": 0.5 for axis in "xy"},
}
"""What we draw otherwise than matplotlib, where the user has chosen nothing."""

THEIRS = re.compile(
    r"(font|mathtext|grid|text\.color|hatch|savefig|figure\.(dpi|facecolor|edgecolor)"
    r"|lines\.(linewidth|antialiased)|patch\.antialiased|legend\.(fontsize|labelcolor)"
    r"|axes\.(facecolor|edgecolor|grid$|label(size|weight|color|pad)|title(size|weight|color)"
    r"|linewidth|prop_cycle|unicode_minus|spines))|[xy]tick\.(color|label|direction|m)"
)
"""What a style sheet may change. Where panels stand is not of it: sizes are `figsize`."""


def _chosen() -> dict[str, Any]:
    """Settings of the user, by a style sheet or by hand, that are not matplotlib's own."""
    settings: Any = mpl.rcParams
    return {
        key: settings[key]
        for key, plain in PLAIN.items()
        if THEIRS.match(key) and settings[key] != plain
    }


def _sizes(chosen: Options) -> dict[str, float]:
    """Text in points: what was chosen, and the rest in proportion to it."""
    label, usual = chosen.get("axes.labelsize"), SIZES["axes.labelsize"]
    scale = label / usual if isinstance(label, int | float) else 1.0
    scale = chosen["font.size"] / usual if "font.size" in chosen else scale
    sizes = {key: scale * size for key, size in SIZES.items()}
    for key in SIZES.keys() & chosen.keys() - {"font.size"}:
        size = chosen[key]
        if isinstance(size, str):  # such as "large"
            size = sizes[key] * font_scalings[size] / font_scalings[PLAIN[key]]
        sizes[key] = float(size)
    return sizes


def _family() -> list[str]:
    """The fonts in force that are installed; behind them one that has all our signs."""
    settings: Any = mpl.rcParams
    installed, found = set(fontManager.get_font_names()), []
    for family in settings["font.family"]:
        names = settings.get(f"font.{family}", [family])
        found += [name for name in names if name in installed][:1]
    return [*dict.fromkeys([*found, "DejaVu Sans"])]


ALIKE = {"DejaVu Sans": "dejavusans", "DejaVu Serif": "dejavuserif", "cmr10": "cm"}


def _formulas(first: str) -> str:
    """The font of formulas that is most like that of the text."""
    settings: Any = mpl.rcParams
    serif = "serif" in settings["font.family"] or first in settings["font.serif"]
    return ALIKE.get(first, "stix" if serif else "dejavusans")


def _grounds(ax: Any) -> tuple[str, str]:
    """What is behind the drawing, and behind its labels."""
    inner, outer = mpl.rcParams["axes.facecolor"], mpl.rcParams["figure.facecolor"]
    nested = isinstance(ax, list | tuple | np.ndarray)
    first = next(np.asarray(ax, dtype=object).flat, None) if nested else ax
    if isinstance(first, Axes):
        figure = first.get_figure(root=True)
        assert figure is not None
        inner, outer = first.get_facecolor(), figure.get_facecolor()
    behind = mix(outer, "white", to_rgba(outer)[3])
    return mix(inner, behind, to_rgba(inner)[3]), behind


def mix(colour: Any, other: Any, share: float) -> str:
    """A share of one colour, and the rest of another.

    Examples
    --------
    >>> mix("black", "white", 0.5)
    '#808080'
    """
    both = np.array([to_rgb(colour), to_rgb(other)])
    return to_hex(np.array([share, 1 - share]) @ both)


def contrast(colour: Any, other: Any) -> float:
    """How well two colours can be told apart, from 1 to 21, as for pages of the web.

    Examples
    --------
    >>> round(contrast("black", "white"))
    21
    """
    rgb = np.array([to_rgb(colour), to_rgb(other)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    light = np.sort(linear @ [0.2126, 0.7152, 0.0722])
    return float((light[1] + 0.05) / (light[0] + 0.05))


def _legible(colour: Any, ours: str, ground: str, least: float = 3.0) -> str:
    """A colour that was chosen, or ours if it is none or cannot be seen there."""
    usable = colour is not None and is_color_like(colour)
    return to_hex(colour) if usable and contrast(colour, ground) >= least else ours


@dataclass(frozen=True, slots=True, eq=False)
class Theme:
    """How one figure looks: settings of matplotlib, and the colours of its parts.

    `ground` is the colour behind the drawing, on which `colours` can be seen; `muted` is
    legible beside it. `room` is how much larger than usual its text is.
    """

    settings: Any
    ground: str
    muted: str
    colours: Ground
    room: float

    @classmethod
    def of(cls, ax: Any = None) -> Theme:
        """What the user has chosen, and ours where that is nothing or illegible."""
        chosen, family, (inner, outer) = _chosen(), _family(), _grounds(ax)
        sizes = _sizes(chosen)
        fonts = {"mathtext.fontset": _formulas(family[0]), **chosen, **sizes}
        fonts |= {"font.family": family, "text.usetex": False, "path.sketch": None}
        settings = {**PLAIN, **OURS, **fonts, **_around(chosen, outer)}
        settings["axes.facecolor"] = inner
        ours = ground_of(outer)
        muted = mix(settings["text.color"], outer, 0.72)
        muted = ours.muted if settings["text.color"] == ours.ink else muted
        room = max(sizes[key] / size for key, size in SIZES.items())
        return cls(settings, inner, muted, _within(chosen, inner), room)

    @property
    def ink(self) -> str:
        """The colour of text on the drawing."""
        return self.colours.ink

    @property
    def curve(self) -> str:
        """The colour of the line of a model."""
        return self.colours.curve

    @property
    def rule(self) -> str:
        """The colour of auxiliary lines."""
        return self._faint(*RULE)

    @property
    def shade(self) -> str:
        """The colour of a range that is marked."""
        return self._faint(*SHADE)

    @property
    def grid(self) -> Options:
        """Lines of the grid: the user's if they asked for one."""
        s = self.settings
        wanted = s["axes.grid"] and s["grid.color"] != PLAIN["grid.color"]
        colour = s["grid.color"] if wanted else self._faint(*GRID)
        look = {"color": colour, "linewidth": s["grid.linewidth"]}
        return {**look, "linestyle": s["grid.linestyle"], "alpha": s["grid.alpha"]}

    def _faint(self, on_white: str, share: float) -> str:
        white = self.ground == "#ffffff"
        return on_white if white else mix(self.ink, self.ground, share)

    def points(self, usual: float) -> float:
        """The size of text that is usually of so many points."""
        return float(usual / SIZES["font.size"] * self.settings["font.size"])

    def size(self, role: str) -> float:
        """The size of a "label", "title" or "tick", or of the key, in points."""
        return float(self.settings[ROLES[role]])

    def line(self, usual: float) -> float:
        """The width of a line that is usually of so many points."""
        return float(
            usual / PLAIN["lines.linewidth"] * self.settings["lines.linewidth"]
        )

    def model(self, place: int) -> tuple[str, Any, str]:
        """Colour, dashes and marker of the model at this place."""
        colours = self.colours.models
        shapes = DASHES[place % len(DASHES)], MARKERS[place % len(MARKERS)]
        return colours[place % len(colours)], *shapes

    # -- how parts of a diagram are drawn ------------------------------------------

    @property
    def diagonal(self) -> Options:
        """Where accuracy equals confidence."""
        return {"color": self.ink, "linewidth": 0.9, "linestyle": (0, (4, 3))}

    @property
    def sure(self) -> Options:
        """A line where examples are near."""
        return {"color": self.curve, "zorder": 4}

    @property
    def doubtful(self) -> Options:
        """A line where they are few."""
        return {"color": self.curve, "linestyle": (0, (1, 1.6)), "zorder": 3.8}

    @property
    def interval(self) -> Options:
        """The area of an interval."""
        light = ground_of(self.ground) is ON_LIGHT
        alpha = RIBBON_ALPHA if light else 1.5 * RIBBON_ALPHA
        return {"color": self.colours.muted, "alpha": alpha, "linewidth": 0}

    @property
    def ribbons(self) -> dict[str, Options]:
        """The areas of both kinds of bands."""
        narrow = {**self.interval, "zorder": 3.5}
        wide = {**narrow, "alpha": 0.5 * narrow["alpha"], "zorder": 3.4}
        return {"simultaneous": wide, "pointwise": narrow}

    @property
    def band_fill(self) -> Options:
        """The band of the sharpness gap."""
        c = self.colours
        return {"facecolor": c.band, "edgecolor": c.band_edge, "linewidth": 0.6}

    @property
    def rows_fill(self) -> Options:
        """Bars of examples."""
        c = self.colours
        return {"facecolor": c.density, "edgecolor": c.density_edge, "linewidth": 0.6}

    @property
    def faint(self) -> Options:
        """Small words that may be overlooked."""
        return {"fontsize": self.points(SMALL), "color": self.muted}


ROLES = {
    "label": "axes.labelsize",
    "title": "axes.titlesize",
    "tick": "xtick.labelsize",
    "key": "legend.fontsize",
}
SMALL, NOTE, TEXT = 6.4, 6.8, 7.2
"""Points of small words, of names beside lines, and of the numbers above a panel."""


def ground_of(colour: str) -> Ground:
    """The colours that can be seen on this one."""
    return (
        ON_LIGHT if contrast(colour, "black") > contrast(colour, "white") else ON_DARK
    )


def _around(chosen: Options, outer: str) -> Options:
    """Colours of what is around a drawing: text, spines, ticks and their labels."""
    ours = ground_of(outer)
    ink = _legible(chosen.get("text.color"), ours.ink, outer)
    found = {
        "text.color": ink,
        "axes.labelcolor": _legible(chosen.get("axes.labelcolor"), ink, outer),
        "axes.edgecolor": chosen.get("axes.edgecolor", ours.muted),
    }
    for axis in "xy":
        tick = _legible(chosen.get(f"{axis}tick.color"), ours.muted, outer)
        found[f"{axis}tick.color"] = tick
        label = chosen.get(f"{axis}tick.labelcolor")
        found[f"{axis}tick.labelcolor"] = _legible(label, tick, outer)
    return found


def _within(chosen: Options, ground: str) -> Ground:
    """Colours of a drawing: those of the user's cycle, if there is one, else ours."""
    ours = ground_of(ground)
    ink = _legible(chosen.get("text.color"), ours.ink, ground)
    cycle = chosen.get("axes.prop_cycle")
    if cycle is None or "color" not in cycle.keys:
        return replace(ours, ink=ink)
    models = [_visible(colour, ink, ground) for colour in cycle.by_key()["color"]]
    first, second = models[0], models[1 % len(models)]
    return Ground(
        ink=ink,
        muted=ours.muted,
        curve=first,
        band=mix(first, ground, 0.35),
        band_edge=mix(first, ground, 0.7),
        density=mix(second, ground, 0.5),
        density_edge=second,
        models=tuple(models),
    )


def _visible(colour: Any, ink: str, ground: str) -> str:
    """A colour with as much ink as it takes to be seen."""
    shares = (_legible(mix(ink, colour, s / 10), "", ground) for s in range(10))
    return next(filter(None, shares), ink)


_THEME: ContextVar[Theme | None] = ContextVar("theme", default=None)


def theme() -> Theme:
    """How the figure looks that is being drawn."""
    return _THEME.get() or Theme.of()


AS_TEXT = {"pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "calibrant"}
SAVED: Any = {**AS_TEXT, "savefig.facecolor": "auto"}

UNDATED = {"svg": "Date", **dict.fromkeys(("pdf", "ps", "eps"), "CreationDate")}
"""What would make two files of the same figure differ, by format."""

DESCRIPTION = {"svg": "Description", "png": "Description", "pdf": "Subject"}
Inputs = ParamSpec("Inputs")
Output = TypeVar("Output")


class Sheet(Figure):
    """A figure whose files keep text as text and are the same bytes for the same data.

    Attributes
    ----------
    alt_text : str
        What it shows, in words; written into SVG, PNG and PDF files.
    """

    alt_text: str = ""
    settings: Any = PLAIN

    def __reduce__(self) -> Any:
        return _blank, (), self.__getstate__()

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save as `Figure.savefig` does, whole or not at all; options given win."""
        kind = options.get("format") or Path(str(fname)).suffix[1:]
        kind = str(kind or mpl.rcParams["savefig.format"])
        metadata: dict[str, Any] = {UNDATED[kind]: None} if kind in UNDATED else {}
        if self.alt_text and kind in DESCRIPTION:
            metadata[DESCRIPTION[kind]] = self.alt_text
        dpi: Any = mpl.rcParams["savefig.dpi"]
        options = {
            "dpi": 200 if dpi == "figure" else dpi,
            "metadata": metadata,
            **options,
        }
        path = _file_of(fname, kind, given=bool(options.get("format")))
        with mpl.rc_context({**self.settings, **SAVED}):
            if path is None:
                super().savefig(fname, **options)
                return
            content = BytesIO()
            super().savefig(content, **{**options, "format": kind})
            write_bytes(path, content.getvalue())


def _file_of(fname: Any, kind: str, *, given: bool) -> Path | None:
    """The file to write, with a suffix unless the format was given; None for a stream."""
    if not isinstance(fname, str | PathLike):
        return None
    path = Path(fname)
    if path.exists() and not path.is_file():
        return None
    named = given or path.suffix[1:]
    return path if named else path.with_name(f"{path.name.rstrip('.')}.{kind}")


# What logs figures, as Weights & Biases does, knows them by where their class lives.
Sheet.__module__ = Figure.__module__


def _blank() -> Sheet:
    """A figure to be unpickled, since the class is not where it says."""
    return Sheet()


FLAGS: dict[str, tuple[Any, ...]] = {
    "legend": (True, False),
    "interval": (True, False, "pointwise", "simultaneous"),
    "kernel": (*KERNELS, "both"),
    "boundary": ("none", "reflect"),
}
"""What these arguments may be, in every figure that has them."""


def in_style(draw: Callable[Inputs, Output]) -> Callable[Inputs, Output]:
    """Draw with the user's settings and ours, and leave theirs as they were."""
    own = signature(draw).parameters

    @wraps(draw)
    def styled(*args: Inputs.args, **options: Inputs.kwargs) -> Output:
        for name in {"probs", "logits", "confidence"} & options.keys() - own.keys():
            call = f"{draw.__name__}(calibrant.evaluate(y, {name}=...))"
            raise TypeError(f"{draw.__name__} draws what was evaluated: {call}.")
        for name in options.keys() - own.keys():
            raise no_option(name, draw)
        for name in FLAGS.keys() & options.keys():
            check_choice(options[name], name, FLAGS[name])
        look = Theme.of(options.get("ax"))
        token = _THEME.set(look)
        try:
            with mpl.rc_context(look.settings):
                drawn = draw(*args, **options)
                # The backend of a notebook, if loaded just now, has asked for this.
                interactive = mpl.is_interactive()
        finally:
            _THEME.reset(token)
        mpl.interactive(interactive)
        return drawn

    return styled


def sheet(
    width: float, height: float, layout: Literal["constrained"] | None = "constrained"
) -> Sheet:
    """An empty figure of this many inches, which finds room for its labels if asked."""
    make: Any = Sheet
    if shows_figures():
        from matplotlib import pyplot as plt  # it must know a figure to show it

        make = partial(plt.figure, FigureClass=Sheet)
    figure: Sheet = make(figsize=(width, height), layout=layout)
    figure.settings = theme().settings
    if layout is not None:
        figure.set_layout_engine(layout, w_pad=0.03, h_pad=0.03)
    return figure


FILES_ONLY = {"agg", "cairo", "pdf", "pgf", "ps", "svg", "template"}


def shows_figures() -> bool:
    """Whether figures are shown: in a notebook, or in windows if pyplot is in use.

    A script that only writes files has none open, which nobody would close.
    """
    chosen = dict.__getitem__(mpl.rcParams, "backend")  # without making a choice
    if not isinstance(chosen, str):
        if "matplotlib.pyplot" not in sys.modules:
            return False
        chosen = mpl.get_backend()
    return chosen.lower() not in FILES_ONLY


def dress(
    ax: Axes, *, grid: bool = True, hide: Iterable[str] = ("top", "right")
) -> None:
    """Set ticks, spines and grid by hand: rcParams no longer hold when ticks are made."""
    look = theme()
    _dress_ticks(ax, look.settings)
    ax.set_axisbelow(True)
    if grid:
        ax.grid(**look.grid)
    for side, spine in ax.spines.items():
        shown = side not in hide and look.settings[f"axes.spines.{side}"]
        colour, width = (look.settings[f"axes.{x}"] for x in ("edgecolor", "linewidth"))
        spine.set(visible=shown, color=colour, linewidth=width)


def _dress_ticks(ax: Axes, settings: Options) -> None:
    for axis in "xy":
        tick: Any = f"{axis}tick"
        every: Any = {"axis": axis, "color": settings[f"{tick}.color"]}
        every |= {"direction": settings[f"{tick}.direction"]}
        every |= {"labelcolor": settings[f"{tick}.labelcolor"]}
        every |= {"labelsize": settings[f"{tick}.labelsize"]}
        every |= {"labelfontfamily": settings["font.family"]}
        for which in ("major", "minor"):
            width, length = (settings[f"{tick}.{which}.{x}"] for x in ("width", "size"))
            ax.tick_params(which=which, width=width, length=length, **every)


def name_axis(
    ax: Axes, axis: str, text: str, *, size: float | None = None, colour: str = ""
) -> None:
    """Name an axis in the font of the figure, which the label of given Axes may lack."""
    look, label = theme(), getattr(ax, f"{axis}axis").label
    size = look.size("label") if size is None else size
    label.set(text=text, fontsize=size, fontfamily=look.settings["font.family"])
    label.set(color=colour or look.settings["axes.labelcolor"])
    label.set(fontweight=look.settings["axes.labelweight"])
    label.set_math_fontfamily(look.settings["mathtext.fontset"])


def number_ticks(ax: Axes, axis: str, places: Iterable[float]) -> None:
    """Ticks at these places, labelled as short as can be."""
    chosen = list(places)
    getattr(ax, f"{axis}axis").set_ticks(chosen, [f"{place:g}" for place in chosen])


def unit_square(ax: Axes, ylabel: str) -> None:
    """Both axes from 0 to 1."""
    ax.set(xlim=(0, 1), ylim=(0, 1))
    name_axis(ax, "y", ylabel)
    for axis in "xy":
        number_ticks(ax, axis, unit_ticks(ax, axis))


def unit_ticks(ax: Axes, axis: str) -> tuple[float, ...]:
    """Ticks from 0 to 1: at the fifths, or fewer where labels would touch."""
    figure, box = ax.get_figure(root=True), ax.get_position()
    assert figure is not None
    wide, tall = box.width * figure.get_figwidth(), box.height * figure.get_figheight()
    label = theme().size("tick") / 72
    return UNIT_TICKS if (wide if axis == "x" else 1.8 * tall) > 17 * label else TIGHT


@cache
def _advance(character: str, family: tuple[str, ...], *, bold: bool) -> float:
    """How far a character moves the pen, in ems."""
    for name in family:
        wanted = FontProperties(family=name, weight="bold" if bold else "normal")
        font = get_font(findfont(wanted))
        if font.get_char_index(ord(character)):
            font.set_size(100, 72)
            return float(font.load_char(ord(character)).linearHoriAdvance) / 6553600
    return 1.0  # another font will draw it, if there is one


def width_of(text: str, size: float, *, bold: bool = False) -> float:
    """Width of a line of text, in inches; marks of formulas do not count."""
    family = tuple(theme().settings["font.family"])
    signs = re.sub(r"\\mathrm|[${}_\\]", "", text) if "$" in text else text
    return size / 72 * sum(_advance(sign, family, bold=bold) for sign in signs)


def elide(text: str, inches: float, size: float, *, bold: bool = False) -> str:
    """Shorten a text in its middle, where names differ least, to fit a width.

    Dollar signs are kept from starting a formula, line breaks become spaces.

    Examples
    --------
    >>> elide("vit_base_patch16_224.augreg2_in21k_ft_in1k", inches=1.2, size=8)
    'vit_base_p…k_ft_in1k'
    """
    text = " ".join(one_line(text, MOST_NAME).split())
    shown, kept = text, len(text)
    while kept > 5 and width_of(shown, size, bold=bold) > inches:
        kept -= 1
        shown = f"{text[: kept - kept // 2]}…{text[len(text) - kept // 2 :]}"
    return shown.replace("$", r"\$")
