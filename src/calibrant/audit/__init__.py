"""Findings about a model or a comparison: rules, and how they are applied."""

from calibrant.audit._audit import CODES, audit, docs_page

__all__ = ["CODES", "audit", "docs_page"]
