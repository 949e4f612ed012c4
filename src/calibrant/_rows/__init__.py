"""Stage 2: from n x k scores to one confidence, one hit and the losses of each row."""
