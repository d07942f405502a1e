"""The tree of configured objects as it is now: read from records and counts, changed by the owner of each object."""
