"""The version of this Hopline."""

from __future__ import annotations

from importlib.metadata import version

# Read once, before services are forked: parsing takes a megabyte, which each would have to itself.
RELEASE = version("hopline")
