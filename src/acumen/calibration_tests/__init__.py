"""Tests of calibration, and what calibrated rows would look like."""
