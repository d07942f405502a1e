"""The record that tells of a restore of the store: from when to when the store knows nothing."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from pydantic import BaseModel

from services.rpc.store_pb2 import Record

RECORD_KIND = "store"
RECORD_KEY = "restored"


class Restored(BaseModel):
    """`generation` is 2 after the first restore; times are Unix ms."""

    generation: int
    backup_ms: int
    restored_ms: int

    def __str__(self) -> str:
        when, of = utc(self.restored_ms), utc(self.backup_ms)
        missing = "messages confirmed in between are not here, messages acknowledged in between come again"
        return f"restored at {when} from the backup of {of}, generation {self.generation}: {missing}"


def read(records: Iterable[Record]) -> Restored | None:
    """The store's record of its restore; None: it was never restored. Raises ValueError if it cannot be read."""
    found = [record for record in records if (record.kind, record.key) == (RECORD_KIND, RECORD_KEY)]
    return Restored.model_validate_json(found[-1].value) if found and not found[-1].deleted else None


def utc(time_ms: int) -> str:
    """For operators: 2026-01-31 12:00:00 UTC."""
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
