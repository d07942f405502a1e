"""Why a suite was not run."""

from __future__ import annotations


class NotRun(Exception):
    """Its source, what it wants besides or a broker cannot be had; the text says which and what to do."""
