"""Two applications and the trace that runs through both, and through the broker between them."""
