"""Stage 0: records of plain numbers, and what every stage above needs."""
