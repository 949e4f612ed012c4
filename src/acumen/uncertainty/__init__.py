"""Intervals: which method each number gets, and how it is computed."""
