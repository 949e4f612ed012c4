"""Sums that replace the rows, and evaluation from them."""
