"""How figures look: colours, sizes, fonts, and the figure that saves itself well."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import cache, partial, wraps
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font

from calibrant._base.checks import MOST_NAME, check_choice, one_line
from calibrant._base.write import write_bytes
from calibrant._inputs.options import KERNELS

Options = dict[str, Any]

# Contrast on white is at least 3 for every line. Fills have less, so they get an edge.
CURVE, BAND, BAND_EDGE = "#A6301C", "#F2B8A4", "#D9775A"
RIBBON, RIBBON_ALPHA = "#5F6B7A", 0.3
DENSITY, DENSITY_EDGE = "#8FB3D4", "#2F6695"
INK, MUTED, RULE, GRID, SHADE = "#1F2933", "#5F6B7A", "#CBD2DA", "#E3E7EC", "#ECEFF3"
DIAGONAL: Options = {"color": INK, "linewidth": 0.9, "linestyle": (0, (4, 3))}
SURE: Options = {"color": CURVE, "zorder": 4}
DOUBTFUL: Options = {"color": CURVE, "linestyle": (0, (1, 1.6)), "zorder": 3.8}
INTERVAL: Options = {"color": RIBBON, "alpha": RIBBON_ALPHA, "linewidth": 0}
RIBBONS: dict[str, Options] = {
    "simultaneous": {**INTERVAL, "alpha": 0.5 * RIBBON_ALPHA, "zorder": 3.4},
    "pointwise": {**INTERVAL, "zorder": 3.5},
}
BAND_FILL: Options = {"facecolor": BAND, "edgecolor": BAND_EDGE, "linewidth": 0.6}
ROWS_FILL: Options = {**BAND_FILL, "facecolor": DENSITY, "edgecolor": DENSITY_EDGE}
UNIT_TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)

# Under simulated colour blindness the colours stay apart by 12 or more (CIE 1976);
# dashes and markers tell them apart without colour.
MODELS = (
    ("#3A4453", "-", "o"),
    ("#0B6FB8", (0, (5, 1.5)), "s"),
    ("#B85C00", (0, (1.2, 1.2)), "D"),
    ("#0A7D5C", (0, (5, 1.5, 1, 1.5)), "^"),
    ("#A8327F", (0, (3, 1)), "v"),
    ("#6A51A3", (0, (7, 2, 2, 2)), "P"),
    ("#7A6A00", (0, (2, 1, 1, 1)), "X"),
    ("#B3261E", (0, (8, 2)), "*"),
)

SMALL, NOTE, LABEL, SMALL_TITLE, TITLE = 6.4, 6.8, 8.0, 7.4, 8.5

FAINT: Options = {"fontsize": SMALL, "color": MUTED}

COLUMN, PAGE = 3.25, 7.0
"""Widths of a column and of a page, in inches."""

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

DRAWN: Any = {
    **{k: v for k, v in mpl.rcParamsDefault.items() if k.split(".")[0] in LOOKS},
    "font.family": ["DejaVu Sans"],
    "font.size": 7.5,
    "mathtext.fontset": "dejavusans",
    "text.color": INK,
    "text.usetex": False,
    "axes.labelsize": LABEL,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.6,
    "axes.facecolor": "white",
    "axes.titlesize": TITLE,
    "axes.titlecolor": "auto",
    "axes.unicode_minus": True,
    "figure.facecolor": "white",
    "legend.frameon": False,
    "legend.fontsize": 7,
    "hatch.linewidth": 0.5,
    "lines.solid_capstyle": "butt",
    "path.sketch": None,
}

AS_TEXT = {"pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "calibrant"}
SAVED: Any = {**DRAWN, **AS_TEXT, "savefig.facecolor": "auto"}

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

    def __reduce__(self) -> Any:
        return _blank, (), self.__getstate__()

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save as `Figure.savefig` does, whole or not at all; options given win."""
        kind = options.get("format") or Path(str(fname)).suffix[1:]
        kind = str(kind or mpl.rcParams["savefig.format"])
        metadata: dict[str, Any] = {UNDATED[kind]: None} if kind in UNDATED else {}
        if self.alt_text and kind in DESCRIPTION:
            metadata[DESCRIPTION[kind]] = self.alt_text
        options = {"dpi": 200, "metadata": metadata, **options}
        path = _file_of(fname, kind, given=bool(options.get("format")))
        with mpl.rc_context(SAVED):
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
    """Draw with our settings, whatever the user's are, and leave those as they were."""

    @wraps(draw)
    def styled(*args: Inputs.args, **options: Inputs.kwargs) -> Output:
        for name in FLAGS.keys() & options.keys():
            check_choice(options[name], name, FLAGS[name])
        with mpl.rc_context({**DRAWN, "font.family": ["DejaVu Sans", *users_fonts()]}):
            drawn = draw(*args, **options)
            # The backend of a notebook, if it was loaded just now, has asked for this.
            interactive = mpl.is_interactive()
        mpl.interactive(interactive)
        return drawn

    return styled


def users_fonts() -> list[str]:
    """The fonts a user has chosen: they draw what ours lacks, such as Chinese names."""
    chosen: list[str] = []
    settings: Any = mpl.rcParams
    for family in settings["font.family"]:
        generic = f"font.{family}"
        named = settings[generic][:1] if generic in settings else [family]
        chosen += [name for name in named if name != "DejaVu Sans"]
    return chosen


def sheet(
    width: float, height: float, layout: Literal["constrained"] | None = "constrained"
) -> Sheet:
    """An empty figure of this many inches, which finds room for its labels if asked."""
    make: Any = Sheet
    if shows_figures():
        from matplotlib import pyplot as plt  # it must know a figure to show it

        make = partial(plt.figure, FigureClass=Sheet)
    figure: Sheet = make(figsize=(width, height), layout=layout)
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
    ax.set_facecolor("white")
    look = {"color": MUTED, "labelcolor": MUTED, "labelsize": 7, "width": 0.6}
    ax.tick_params(which="major", length=2.5, labelfontfamily="DejaVu Sans", **look)  # type: ignore[arg-type]
    ax.tick_params(which="minor", length=1.5, width=0.5, color=MUTED, labelsize=7)
    ax.set_axisbelow(True)
    if grid:
        ax.grid(color=GRID, linewidth=0.6, linestyle="-", alpha=1)
    for side, spine in ax.spines.items():
        spine.set(visible=side not in hide, color=MUTED, linewidth=0.6)


def number_ticks(ax: Axes, axis: str, places: Iterable[float]) -> None:
    """Ticks at these places, labelled as short as can be."""
    chosen = list(places)
    getattr(ax, f"{axis}axis").set_ticks(chosen, [f"{place:g}" for place in chosen])


def unit_square(ax: Axes, ylabel: str) -> None:
    """Both axes from 0 to 1, with ticks at the fifths."""
    ax.set(xlim=(0, 1), ylim=(0, 1), ylabel=ylabel)
    for axis in "xy":
        number_ticks(ax, axis, UNIT_TICKS)


@cache
def _advance(character: str, *, bold: bool) -> float:
    """How far a character moves the pen, in ems."""
    family = FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal")
    font = get_font(findfont(family))
    if font.get_char_index(ord(character)) == 0:
        return 1.0  # another font will draw it, if there is one
    font.set_size(100, 72)
    return float(font.load_char(ord(character)).linearHoriAdvance) / 65536 / 100


def width_of(text: str, size: float, *, bold: bool = False) -> float:
    """Width of a line of text, in inches."""
    return size / 72 * sum(_advance(character, bold=bold) for character in text)


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
