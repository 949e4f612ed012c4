"""The paper's table for one's own model."""
