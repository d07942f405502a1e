"""Columns as files of the ledger have them."""

from __future__ import annotations

import pyarrow as pa

from services.mgmt.ledger.schema import REPEATED


def plain(schema: pa.Schema) -> pa.Schema:
    """The same with all text as text."""
    return pa.schema([field.with_type(pa.string()) if field.type == REPEATED else field for field in schema])
