"""Stage 4: estimates and their intervals, from rows or from sums."""
