"""At which moment a record is judged: what nothing was heard of for long by then is lost, or else on its way."""

from __future__ import annotations

import json
from datetime import datetime
from typing import NamedTuple

from spark.errors import AnalysisError
from spark.ledger.files import place
from spark.times import in_utc

_STATE = "_state.json"
_LIVE_SECONDS = 180  # the mgmt process that files says so once a minute at least

NOW, END = "now", "end"


class AsOf(NamedTuple):
    """`time` None: the last row of the record. `why` says which it is."""

    time: datetime | None
    why: str


def as_of(said: str, *, live: bool, now: datetime) -> AsOf:
    """The moment for what is said: a time, `now`, `end`, or "": now for a live record, else its end.

    Raises AnalysisError for what is none of these.
    """
    if not said:
        return AsOf(now, "now, the record is live") if live else AsOf(None, "the last row, the record is not live")
    if said == NOW:
        return AsOf(now, "now, as asked")
    if said == END:
        return AsOf(None, "the last row, as asked")
    try:
        return AsOf(in_utc(datetime.fromisoformat(said)), "as asked")
    except (ValueError, OverflowError):
        raise AnalysisError(f"as-of {said}: say now, end, or a time as 2026-01-31T12:00") from None


def is_live(ledger: str, now: datetime) -> bool:
    """Whether a mgmt process files rows in the folder `ledger` at the moment."""
    try:
        folder = place(ledger)
        with folder.system.open_input_file(f"{folder.path.rstrip('/')}/{_STATE}") as file:
            filed = json.loads(file.read()).get("filed_ms", 0)
        return bool(abs(now.timestamp() - filed / 1000) < _LIVE_SECONDS)
    except (OSError, ValueError, AttributeError, TypeError):
        return False  # files without a mgmt process that files
