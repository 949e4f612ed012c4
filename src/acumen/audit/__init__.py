"""Findings about a model or a comparison: rules, and how they are applied."""
