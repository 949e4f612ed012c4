"""Stage 6: results in words, and the geometry that all diagrams share."""
