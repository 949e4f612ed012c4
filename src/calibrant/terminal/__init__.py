"""Models in a terminal: table, findings and small diagrams, with or without colour."""

from calibrant.terminal._page import render, show

__all__ = ["render", "show"]
