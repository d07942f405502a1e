"""The tables of the ledger by name, for those who have no rows in their hands: their columns are in `schema.py`."""

from __future__ import annotations

from typing import Final

MERGED: Final = ("stages", "ids", "gaps", "connections")
"""Those whose files of an hour become one. Bodies of messages would take much memory for that."""
PAYLOADS: Final = "payloads"
"""What nobody but who runs the stack may read, and what goes first."""
NAMES: Final = (*MERGED, PAYLOADS)
