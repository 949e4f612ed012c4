"""Compiled twins of the NumPy code, threads, and when they pay."""
