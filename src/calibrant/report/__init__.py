"""The report: one self-contained interactive HTML file that loads nothing."""

from calibrant.report._page import build
from calibrant.report._report import report

__all__ = ["build", "report"]
