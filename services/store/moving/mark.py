"""The mark in a store that is still being written from another: how far that is. The last commit removes it.

It is a record, written in the commit of each piece: a move that was killed continues behind the last piece that is
there. A store does not start where there is a mark.
"""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, ValidationError

from services.store.provider import RecordRow

KIND, KEY = "store", "moving"


class Mark(BaseModel):
    """`pieces` of what comes from `source` are here, and `chain` is a checksum over them in their order."""

    source: str
    pieces: int = 0
    chain: str = ""

    def row(self) -> RecordRow:
        """The mark as a row of the provider."""
        return RecordRow(KIND, KEY, self.model_dump_json().encode(), 0)


def mark_in(rows: Iterable[RecordRow]) -> Mark | None:
    """The mark among a store's records, or None."""
    for row in rows:
        if (row.kind, row.key) == (KIND, KEY):
            try:
                return Mark.model_validate_json(row.value)
            except ValidationError:
                return Mark(source="another release")
    return None


def unfinished(mark: Mark) -> str:
    """The error text for a store that is not whole."""
    return f"this store is not whole: it was being made of {mark.source}, which has ended half-way; do that again"
