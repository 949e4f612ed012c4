"""The report: one self-contained interactive HTML file that loads nothing."""

from calibrant.report._figure_page import figure_page
from calibrant.report._report import build, report

__all__ = ["build", "figure_page", "report"]
