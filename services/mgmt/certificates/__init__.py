"""Key stores and trust stores: what is in them, whether it fits together, and the records that keep them."""

from __future__ import annotations

from typing import Final

KEY_STORE: Final = "key_store"
TRUST_STORE: Final = "trust_store"
"""Kinds of records."""
