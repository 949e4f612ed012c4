"""Estimates from rows or sums: binned, smoothed, isotonic, adaptive."""
