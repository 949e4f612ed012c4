"""Stage 3: sums that replace the rows, and add up."""
