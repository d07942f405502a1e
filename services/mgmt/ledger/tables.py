"""The tables of the ledger by name, for those who have no rows in their hands: their columns are in `schema.py`."""

from __future__ import annotations

from typing import Final

NAMES: Final = ("stages", "ids", "gaps", "connections")
