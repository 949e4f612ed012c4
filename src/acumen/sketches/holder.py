"""What holds the contents of a sketch, and knows whether they are whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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

    def facts(self) -> dict[str, Any]:
        """What the sketch holds, as plain values.

        Examples
        --------
        >>> import acumen as ac
        >>> facts = ac.Sketch().update_pairs([1, 0], [0.9, 0.4]).facts()
        >>> facts["rows"], facts["target"], facts["scores"]
        (2, 'pairs', ['brier', 'log'])
        """
        contents = self.checked()
        if contents is None:
            return {"rows": 0}
        kind, state = contents.kind, contents.state
        return {
            "rows": state.cells.rows,
            "weight": float(state.cells["weight_0"].sum()),
            "target": kind.target,
            "classes": len(kind.classes),
            "scores": list(kind.divergences),
            "groups": sorted(contents.groups),
            "parts": sorted(contents.parts),
            "all_values": state.exact,
        }

    def __str__(self) -> str:
        facts = self.facts()
        if not facts["rows"]:
            return "A sketch without rows."
        kept = "every distinct confidence" if facts["all_values"] else "sums by cell"
        lines = {
            "rows": f"{facts['rows']:,}",
            "weight": f"{facts['weight']:,.10g}",
            "target": f"{facts['target']}, {facts['classes']} classes",
            "scores": ", ".join(facts["scores"]),
            "kept": kept,
            "groups": ", ".join(facts["groups"]),
            "parts": f"{len(facts['parts']):,}" if facts["parts"] else "",
        }
        shown = [f"  {name:<8}{value}" for name, value in lines.items() if value]
        return "\n".join(["Sketch", *shown])

    def __repr__(self) -> str:
        contents = self.checked()
        if contents is None:
            return "Sketch(rows=0)"
        groups = f", groups={len(contents.groups)}" if contents.groups else ""
        return (
            f"Sketch(rows={self.rows}, target={contents.kind.target!r}, "
            f"classes={len(contents.kind.classes)}{groups})"
        )
