"""Which Hopline this is."""

from __future__ import annotations

from importlib.metadata import version

# Read once, where services are forked from: to parse the file takes a megabyte of memory that each would have alone.
RELEASE = version("hopline")
