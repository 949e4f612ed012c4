"""Sketches of data frames, made where the rows are: in memory, in an engine, on a cluster."""
