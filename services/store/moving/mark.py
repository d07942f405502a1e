"""The mark in a store that is not whole, by itself: a store does not start where there is one.

It is a record. In a store that is still being written from another it says how far that is: it is written in the
commit of each piece, so a move that was killed continues behind the last piece that is there, and the last commit
removes it. In each half of a store whose configuration is apart (`providers/apart_halves.py`) it stays.
"""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, ValidationError

from services.store.provider import RecordRow

KIND, KEY = "store", "moving"


class Mark(BaseModel):
    """`pieces` of what comes from `source` are here, and `chain` is a checksum over them in their order.

    Or it is a half, which `holds` configuration or messages; `pair` is the number of both, and `other` where the other
    one was. `known` grows with what the other has to know of, and `heard` is the other's, when this was written.
    """

    source: str
    pieces: int = 0
    chain: str = ""
    holds: str = ""
    pair: int = 0
    other: str = ""
    known: int = 0
    heard: int = 0

    def row(self) -> RecordRow:
        """The mark as a row of the provider."""
        return RecordRow(KIND, KEY, self.model_dump_json().encode(), 0)


def half(holds: str, pair: int, other: str) -> Mark:
    """The mark of a half. Former releases read `source` alone, and refuse it as a store that was to be made of that."""
    rest = "messages" if holds == "configuration" else "configuration"
    source = f"two, with the {rest} elsewhere (HOPLINE_STORE_CONFIGURATION_URL)"
    return Mark(source=source, holds=holds, pair=pair, other=other)


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
    if mark.holds:
        return (
            f"this has only the {mark.holds} of a store, and the rest is in {mark.other}: "
            "set HOPLINE_STORE_URL and HOPLINE_STORE_CONFIGURATION_URL"
        )
    return f"this store is not whole: it was being made of {mark.source}, which has ended half-way; do that again"
