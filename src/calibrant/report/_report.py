"""The report: one self-contained interactive HTML file that loads nothing."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from calibrant._base.comparison import as_comparison
from calibrant._base.write import write_text
from calibrant.report._page import build


def report(
    models: Any,
    path: str | PathLike[str] = "report.html",
    *,
    title: str | None = None,
    groups: Mapping[str, Any] | None = None,
    force: bool = True,
) -> Path:
    """Write an interactive report as one HTML file.

    Parameters
    ----------
    models : Comparison, Evaluation or list of Evaluation
        What to show. Models that kept the sums behind them (any that was not restored
        from a file or evaluated class by class) follow the bandwidth slider.
    path : path
        The file; it is replaced as a whole or not at all.
    title : str, optional
        Heading of the page.
    groups : dict of str to models, optional
        The same models, evaluated on groups of rows, by name of the group; by default
        those that the evaluations hold.
    force : bool
        Whether a file that exists may be replaced.

    Returns
    -------
    Path
        The file written.

    Notes
    -----
    The page loads nothing and sends nothing: its content policy allows no network, and
    only its own script and style. It holds sums over rows, not rows. Without
    JavaScript it shows the table, the findings and the diagrams as evaluated. The same
    evaluations give the same bytes.

    Examples
    --------
    >>> import tempfile, calibrant as cal
    >>> from calibrant.report import report
    >>> ev = cal.evaluate_pairs([1, 0, 1, 1] * 30, [0.9, 0.4, 0.8, 0.7] * 30, name="a")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = report(ev, folder + "/a.html", title="Four answers")
    ...     print(path.name, path.stat().st_size < 200_000)
    a.html True
    """
    target = Path(path)
    groups = groups or groups_of(models)
    write_text(target, build(models, title=title, groups=groups), force=force)
    return target


def groups_of(models: Any) -> dict[str, list[Any]]:
    """The models on each group of rows, by name of the group, if they were given any."""
    groups: dict[str, list[Any]] = {}
    for ev in as_comparison(models):
        for name, of_group in ev.per_group.items():
            groups.setdefault(name, []).append(of_group)
    return groups
