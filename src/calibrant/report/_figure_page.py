"""A page about one result: its figure, its sentences and its table, in one HTML file."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from calibrant import __version__
from calibrant._base.checks import (
    as_path,
    check_flags,
    check_kind,
    check_texts,
    one_line,
)
from calibrant._base.views import Told
from calibrant._base.write import write_text
from calibrant.report._report import MOST_TITLE, gates_told, hash_of, read_part
from calibrant.table._html import escape

STYLE = """
figure { margin: 18px 0; max-width: 720px; }
figure img { width: 100%; height: auto; background: #fff; border-radius: 6px; }
.verdict { margin: 14px 0; }
.numbers { overflow-x: auto; }
.numbers table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.numbers th, .numbers td { padding: 3px 12px; text-align: right; white-space: nowrap; }
.numbers th:first-child, .numbers td:first-child { text-align: left; }
.numbers tbody tr:nth-child(odd) { background: var(--soft); }
"""

PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="calibrant {version}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header class="top"><h1>{title}</h1><p class="sub">{heading}</p></header>
<main>
<section class="verdict">
{sentences}
</section>
<figure><img alt="{alt}" src="data:image/svg+xml;base64,{figure}"></figure>
<section class="numbers"><h2>Numbers</h2>
<table>
{table}
</table></section>
</main>
</body>
</html>
"""


def figure_page(
    result: Told,
    path: str | PathLike[str],
    *,
    title: str | None = None,
    failed: Sequence[str] = (),
    force: bool = False,
) -> Path:
    """Write what a result says as one HTML file that loads nothing and runs no script.

    Parameters
    ----------
    result : Monitor, Groups, Slices or LossParts
        What to show.
    path : path
        The file; it is replaced as a whole or not at all.
    title : str, optional
        Heading of the page.
    failed : sequence of str
        Conditions that were set on these numbers and are not met, to stand first.
    force : bool
        Whether a file that exists may be replaced; else it is an error.

    Returns
    -------
    Path
        The file written.

    Examples
    --------
    >>> import tempfile, calibrant as cal
    >>> found = cal.monitor([0, 1, 1] * 40, probs=[0.5] * 120, period=[1, 2, 3] * 40)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(found.report(folder + "/trend.html").name)
    trend.html
    """
    check_kind(result, Told, "result")
    check_texts(title=title)
    check_flags(force=force)
    target = as_path(path)
    told = [*gates_told(failed), *result.sentences]
    page = _page(result, title or type(result).__name__, told)
    write_text(target, page, force=force)
    return target


def _page(result: Told, title: str, told: Iterable[str]) -> str:
    style = f"\n{read_part('page.css')}{STYLE}"
    policy = f"default-src 'none'; img-src data:; style-src '{hash_of(style)}'"
    return PAGE.format(
        policy=f"{policy}; base-uri 'none'; form-action 'none'",
        version=escape(__version__),
        title=escape(one_line(title, MOST_TITLE)),
        style=style,
        heading=escape(result._heading()),
        sentences="\n".join(f"<p>{escape(x)}</p>" for x in told),
        alt=escape(result._heading()),
        figure=base64.b64encode(_figure(result)).decode(),
        table=_table(result._table()),
    )


def _figure(result: Told) -> bytes:
    content: Any = BytesIO()
    first = next(iter(np.ravel(np.asarray(result.plot(), dtype=object))))
    first.figure.savefig(content, format="svg")
    return bytes(content.getvalue())


def _table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    lines = [_row(row, "td") for row in body]
    return "\n".join(
        ["<thead>", _row(head, "th"), "</thead>", "<tbody>", *lines, "</tbody>"]
    )


def _row(cells: Iterable[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(x)}</{tag}>' for x in cells)}</tr>"
