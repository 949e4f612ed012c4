"""The ``calibrant`` command: read files, call one function, print what it returned."""

from calibrant.cli._main import main

__all__ = ["main"]
