"""Whether a restore from a backup has undone some of what is on record: the record is not in backups. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from services.common.restored import Restored
from services.common.trace import Journey


def undone(journeys: Iterable[Journey], restored: Restored | None) -> bool:
    """Whether any of it happened between the backup and the restore from it."""
    if restored is None:
        return False
    begin, end = restored.backup_ms * 1000, restored.restored_ms * 1000
    steps = (step for journey in journeys for message in journey.messages for step in message.steps)
    return any(begin <= step.time_us < end for step in steps)
