"""That no spans can be written, for health: all services share the folder, so one of them can say it for all."""

from __future__ import annotations

from services.common.config import Settings
from services.common.disk import must_give_way, room


def spans_note(settings: Settings) -> dict[str, str]:
    """Empty where there is room, or no folder."""
    folder = settings.spans_folder
    if not must_give_way(settings.disk_reserve, room(folder)):
        return {}
    return {"spans": f"not written to files: low on disk, make room for {folder}, it goes on by itself"}
