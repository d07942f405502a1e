"""Backup of a store that runs, and restore of one that does not."""
