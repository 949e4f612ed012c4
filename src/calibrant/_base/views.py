"""The methods of a result open its views: the one place that looks up the list."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from calibrant._base.records import Finding


class Views:
    """What an evaluation and a comparison can be asked to show of themselves."""

    __slots__ = ()

    def plot(self, **options: Any) -> Any:
        """Draw the diagram, or diagrams side by side: `plot.calibration_sharpness`.

        Parameters
        ----------
        **options
            Those of `calibrant.plot.calibration_sharpness`, where each is explained:
            ``style`` ("modern" or "paper"), ``divergence``, ``bandwidth``, ``kernel``,
            ``boundary``, ``interval`` (True, "pointwise", "simultaneous" or False),
            ``scale`` ("probability" or "logit"), ``ylim`` ("shared", "full" or "free"),
            ``legend``, ``figsize`` and ``ax``.

        Returns
        -------
        Axes or array of Axes
            One for one model, else an array. ``ax.figure.savefig("model.png")`` saves it; in
            a script ``plt.savefig`` would save an empty figure. Other figures are functions
            of `calibrant.plot`.

        Examples
        --------
        >>> import calibrant as cal
        >>> ax = cal.evaluate_pairs([1, 0, 1, 1], [0.9, 0.4, 0.8, 0.7], name="a").plot()
        >>> ax.get_ylabel()
        'accuracy'
        """
        from calibrant.plot._calibration_sharpness import calibration_sharpness

        return calibration_sharpness(self, **options)  # type: ignore[arg-type]

    def table(self, format: str = "text", **options: Any) -> Any:  # noqa: A002
        """The table as text, Markdown, LaTeX, HTML, CSV or a frame: `table.table`.

        Parameters
        ----------
        format : {"text", "markdown", "latex", "html", "csv", "frame"}
            What to write.
        **options
            Those of `calibrant.table.table`, where each is explained: ``columns`` (names,
            or "paper", "study", "effects" or "all"), ``percent``, ``digits``,
            ``intervals``, ``best``, ``footnotes``, ``caption`` and ``label``.

        Examples
        --------
        >>> import calibrant as cal
        >>> ev = cal.evaluate_pairs([1, 0, 1, 1], [0.9, 0.4, 0.8, 0.7], name="a")
        >>> ev.table("csv", columns=["accuracy"]).split()
        ['"model","accuracy"', '"a",0.75']
        """
        from calibrant.table._table import table

        return table(self, format, **options)

    def report(self, path: str | PathLike[str], **options: Any) -> Path:
        """Write an interactive report as one HTML file: `report.report`.

        Parameters
        ----------
        path : path
            The file to write.
        **options
            Those of `calibrant.report.report`, where each is explained: ``title``,
            ``groups`` and ``force``.

        Examples
        --------
        >>> import tempfile, calibrant as cal
        >>> ev = cal.evaluate_pairs([1, 0, 1, 1], [0.9, 0.4, 0.8, 0.7], name="a")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     print(ev.report(folder + "/a.html").name)
        a.html
        """
        from calibrant.report._report import report

        return report(self, path, **options)

    def audit(self) -> tuple[Finding, ...]:
        """What to know before quoting a number or a ranking, worst first."""
        from calibrant.audit._audit import audit

        return audit(self)

    def describe(self, style: str = "modern") -> str:
        """What the diagrams show, in a paragraph of plain text for each model.

        Examples
        --------
        >>> import calibrant as cal
        >>> ev = cal.evaluate_pairs([1, 0, 1, 1], [0.9, 0.4, 0.8, 0.7], name="a")
        >>> ev.describe().split(":")[0]
        'Calibration-sharpness diagram of a'
        """
        from calibrant._views.words import describe_diagrams

        return describe_diagrams(self, style)

    def __str__(self) -> str:
        from calibrant._views.words import in_words

        return in_words(self)

    def __repr__(self) -> str:
        from calibrant._views.words import in_one_line

        return in_one_line(self)

    def _repr_html_(self) -> str:
        from calibrant._views.words import in_html

        return in_html(self)


class Plotted:
    """A result that has a figure of its own, the one that `_figure` names."""

    __slots__ = ()

    _figure: ClassVar[str]

    def plot(self, **options: Any) -> Any:
        """Draw it: the function of `calibrant.plot` that bears its name has the options."""
        from calibrant import plot

        return getattr(plot, self._figure)(self, **options)


class Printed:
    """A result that a notebook shows as it prints."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        from html import escape

        return f'<pre style="white-space:pre-wrap">{escape(str(self))}</pre>'


class Told(Printed):
    """A result that is a heading, a table and sentences, with a figure and a page.

    `FIGURE` names the function of `calibrant.plot` that draws it.
    """

    __slots__ = ()
    FIGURE = ""

    def _heading(self) -> str:
        raise NotImplementedError

    def _table(self) -> list[list[str]]:
        raise NotImplementedError

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the numbers say, in words that claim no more than they do."""
        raise NotImplementedError

    def __str__(self) -> str:
        from calibrant._base.text import aligned, wrapped

        said = map(wrapped, self.sentences)
        return "\n".join([self._heading(), "", *aligned(self._table()), "", *said])

    def plot(self, **options: Any) -> Any:
        """Draw the figure of this result, with the options it takes in `calibrant.plot`."""
        from calibrant import plot

        return getattr(plot, self.FIGURE)(self, **options)

    def report(self, path: str | PathLike[str], **options: Any) -> Path:
        """Write figure, sentences and table as one HTML file: `report.figure_page`."""
        from calibrant.report._figure_page import figure_page

        return figure_page(self, path, **options)
