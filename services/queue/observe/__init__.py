"""Traced messages, for their spans."""
