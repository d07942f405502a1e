"""What a store has in it while it is made of another: how far that is. It goes with the last commit.

It is a record, written in the commit of each piece: who was killed goes on with the piece behind the last that is
there. A store does not start where one is.
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
        """As it is kept."""
        return RecordRow(KIND, KEY, self.model_dump_json().encode(), 0)


def mark_in(rows: Iterable[RecordRow]) -> Mark | None:
    """What a store's records have of it."""
    for row in rows:
        if (row.kind, row.key) == (KIND, KEY):
            try:
                return Mark.model_validate_json(row.value)
            except ValidationError:
                return Mark(source="another release")
    return None


def unfinished(mark: Mark) -> str:
    """For people."""
    return f"this store is not whole: it was being made of {mark.source}, which has ended half-way; do that again"
