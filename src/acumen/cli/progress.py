"""Progress on stderr: a bar in a terminal, nothing in a pipe."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Self


class Steps:
    """A bar that is moved by calling it with the share done and what is being done."""

    def __init__(self, what: str, *, quiet: bool) -> None:
        self._what = what
        self._bar: Any = None
        self._shown = not quiet and sys.stderr.isatty()

    def __enter__(self) -> Self:
        if self._shown:
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task(self._what, total=1.0)
        return self

    def __call__(self, share: float, what: str) -> None:
        """Move the bar."""
        if self._bar is not None:
            self._bar.update(self._task, completed=share, description=what)

    def part(self, number: int, count: int) -> Any:
        """The same for one of several parts of the work."""

        def report(share: float, what: str) -> None:
            self((number + share) / count, what)

        return report

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
