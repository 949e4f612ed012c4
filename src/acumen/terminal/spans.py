"""Text with styles by name: what to show is settled before how to colour it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from acumen.table.text import in_ascii, width

ASCII = str.maketrans("…→─│└░●○", "~>-|+:Oo")
"""Signs of the terminal, each as wide as what stands for it."""


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line and the name of its style."""

    text: str
    style: str = ""


Line: TypeAlias = tuple[Span, ...]


def plain(line: Line) -> str:
    """The text of a line.

    Examples
    --------
    >>> plain((Span("a", "best"), Span("b")))
    'ab'
    """
    return "".join(span.text for span in line)


def spelt(line: Line) -> Line:
    """The line in ASCII, save the letters of names.

    Examples
    --------
    >>> plain(spelt((Span("0→1 "), Span("∞", "bad"))))
    '0>1 inf'
    """
    return tuple(Span(in_ascii(s.text).translate(ASCII), s.style) for s in line)


def cells(signs: Iterable[tuple[str, str]]) -> Line:
    """Signs with their styles as a line; neighbours of one style are joined.

    Examples
    --------
    >>> cells([("a", ""), ("b", ""), ("c", "best")])
    (Span(text='ab', style=''), Span(text='c', style='best'))
    """
    groups = groupby(signs, key=lambda pair: pair[1])
    return tuple(Span("".join(sign for sign, _ in g), style) for style, g in groups)


def beside(blocks: Sequence[Sequence[Line]], gap: int = 2) -> list[Line]:
    """Blocks of lines side by side, each as wide as its widest line."""
    tall = max(len(block) for block in blocks)
    lines: list[Line] = [()] * tall
    for place, block in enumerate(blocks):
        wide = (
            max(width(plain(line)) for line in block) if place < len(blocks) - 1 else 0
        )
        for row in range(tall):
            line = block[row] if row < len(block) else ()
            space = Span(" " * (wide + gap - width(plain(line))))
            lines[row] += (*line, space) if wide else line
    return lines


def shorten(text: str, to: int) -> str:
    """Text cut to a width, with a sign that it was.

    Examples
    --------
    >>> shorten("mean replacement", 8), shorten("TS", 8)
    ('mean re…', 'TS')
    """
    if width(text) <= to:
        return text
    kept = ""
    for letter in text:
        if width(kept + letter) >= to:
            break
        kept += letter
    return kept + "…"
