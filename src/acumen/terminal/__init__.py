"""Models in a terminal: table, findings and small diagrams, with or without colour."""

from __future__ import annotations

import shutil
import sys
from io import StringIO
from typing import Any, TextIO

from acumen.comparison import as_comparison
from acumen.terminal.canvas import BAND
from acumen.terminal.page import page
from acumen.terminal.spans import Line, plain
from acumen.terminal.sparkline import BLOCKS
from acumen.words import can_show

__all__ = ["render", "show"]

LEAST_WIDTH = 40
SIGNS = f"∞†–×Δ→…●○─│└⠿{BAND}{BLOCKS}"
STYLES = {
    "title": "bold",
    "dim": "dim",
    "best": "bold green",
    "trivial": "yellow",
    "bad": "red",
    "finding": "bold yellow",
    "rows": "blue",
    "band": "red",
    "curve": "bold bright_red",
    "diagonal": "dim",
}
"""Names of styles and what rich makes of them: 16 colours, of the reader's theme."""


def render(
    models: Any,
    *,
    width: int | None = None,
    colour: bool | None = None,
    unicode: bool | None = None,
    file: TextIO | None = None,
) -> str:
    """Draw models for a terminal.

    Signs carry the meaning, and colour repeats it: the best of a column has a star, what
    is trivial a dagger, the band is shaded.

    Parameters
    ----------
    models : Comparison, Evaluation or list of Evaluation
        What to show.
    width : int, optional
        Columns to fill, at least 40; those of the terminal if not said, else 80.
    colour : bool, optional
        Whether to write escape codes. If not said, only to a terminal, with rich
        installed; ``NO_COLOR`` is heeded.
    unicode : bool, optional
        Whether braille, blocks and signs may be used; if not said, what the encoding of
        `file` can show decides.
    file : text stream, optional
        Where the text will go: standard output if not said. Nothing is written to it.

    Returns
    -------
    str
        The lines, without an end of line after the last.

    Examples
    --------
    >>> import acumen as ac
    >>> from acumen.terminal import render
    >>> ev = ac.evaluate_pairs([1, 1, 0, 1], [0.9, 0.8, 0.3, 0.8], name="forecaster")
    >>> print(render(ev, width=60, colour=False).splitlines()[0])
    1 model, 4 rows
    """
    stream = sys.stdout if file is None else file
    columns = shutil.get_terminal_size().columns if width is None else width
    if unicode is None:
        unicode = can_show(stream, SIGNS)
    lines = page(as_comparison(models), max(columns, LEAST_WIDTH), unicode=unicode)
    text = _painted(lines, stream, colour=colour)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "replace").decode(encoding)  # names may hold anything


def show(models: Any, *, file: TextIO | None = None, **options: Any) -> None:
    """Write models to a terminal; options of `render`."""
    stream = sys.stdout if file is None else file
    stream.write(render(models, file=file, **options) + "\n")


def _painted(lines: list[Line], stream: TextIO, *, colour: bool | None) -> str:
    """The lines as text, with escape codes if wanted and possible."""
    console = None if colour is False else _console(stream, colour=colour)
    if console is None:
        return "\n".join(plain(line).rstrip() for line in lines)
    from rich.text import Text

    for line in lines:
        spans = [(span.text, STYLES.get(span.style, "")) for span in line]
        text = Text.assemble(*spans)
        text.rstrip()
        console.print(text, soft_wrap=True)
    return console.file.getvalue().rstrip("\n")


def _console(stream: TextIO, *, colour: bool | None) -> Any:
    """A rich console that writes to memory what the stream can show; None if plain."""
    try:
        from rich.console import Console
    except ImportError:
        return None
    real: Any = Console(file=stream)
    if colour is None and not real.is_terminal:
        return None
    return Console(
        file=StringIO(),
        force_terminal=True,
        color_system="256" if colour else real.color_system or "standard",
        no_color=False if colour else real.no_color,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
