"""Stage 5: what users call; each verb is in the file of its name."""
