"""Preferences: what users keep for themselves at objects of the tree, and show to their groups."""
