"""Who gets it."""
