"""Files of the record that could not be read: what they tell may have happened, and is missing here."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from spark.ledger.files import hour_of, place
from spark.ledger.soundness import Refused
from spark.terms import Unread

_SLACK = timedelta(hours=1)  # by which clocks may differ, and a row be older than what follows from it: as in look-ups
_EVER = 1 << 62


def unread(ledger: str, refused: Iterable[Refused]) -> list[Unread]:
    """The files of the folder `ledger` among the refused ones; without copies of others nothing is missing."""
    top = f"{place(ledger).path.rstrip('/')}/"
    return [Unread(one.path.removeprefix(top), _until(one.path)) for one in refused if not one.is_copy]


def _until(path: str) -> int:
    hour = hour_of(path)
    return _EVER if hour is None else int((hour + timedelta(hours=1) + _SLACK).timestamp() * 1e6)
