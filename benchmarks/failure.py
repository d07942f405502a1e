"""What a benchmark run may end with, other than figures."""

from __future__ import annotations


class BenchmarkError(Exception):
    """A broker that does not start, refuses, loses or invents a message; the text says which."""
