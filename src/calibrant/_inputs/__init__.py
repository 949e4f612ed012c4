"""Stage 1: what the caller gives, read and refused here, before any work."""
