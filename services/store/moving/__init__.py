"""Carries a store's data from one provider to another, or to a file and back; no store serves the data meanwhile."""
