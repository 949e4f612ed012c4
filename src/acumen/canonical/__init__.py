"""Calibration of the whole probability vector, for few classes."""
