"""What holds the contents of a sketch, and knows whether they are whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from acumen.sketches.contents import Contents, Kind


class Holder:
    """Contents that are updated whole, or of no more use."""

    def __init__(self) -> None:
        self.contents: Contents | None = None
        self._torn = False

    @contextmanager
    def whole_update(self, kind: Kind) -> Iterator[Contents]:
        """The contents, for rows of this kind to be added."""
        contents = self.checked() or Contents.empty(kind)
        contents.kind.check_fits(kind)
        self._torn = True
        yield contents
        self.contents, self._torn = contents, False

    def checked(self) -> Contents | None:
        """The contents, unless an update was interrupted."""
        if self._torn:
            raise RuntimeError(
                "an update of this sketch was interrupted, and some of its rows are in; "
                "start again from the last sketch that was saved."
            )
        return self.contents

    @property
    def rows(self) -> int:
        """Rows of positive weight so far."""
        contents = self.checked()
        return 0 if contents is None else contents.state.cells.rows

    @property
    def parts(self) -> frozenset[str]:
        """Names of the parts that are in."""
        contents = self.checked()
        return frozenset() if contents is None else frozenset(contents.parts)

    def __repr__(self) -> str:
        contents = self.checked()
        if contents is None:
            return "Sketch(rows=0)"
        groups = f", groups={len(contents.groups)}" if contents.groups else ""
        return (
            f"Sketch(rows={self.rows}, target={contents.kind.target!r}, "
            f"classes={len(contents.kind.classes)}{groups})"
        )
