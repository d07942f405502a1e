"""The tables of the ledger by name, for code that need not import Arrow: their columns are in `schema.py`."""

from __future__ import annotations

from typing import Final

MERGED: Final = ("stages", "ids", "gaps", "connections")
"""Those whose files of an hour become one. Bodies of messages would take much memory for that."""
PAYLOADS: Final = "payloads"
"""Captured messages: only the stack's operator may read them, and they go first when the disk is short."""
DAMAGED: Final = "delete it, or restore it"
"""What an operator does about a damaged file."""
NAMES: Final = (*MERGED, PAYLOADS)
