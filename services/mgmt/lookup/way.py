"""A message's rows, and those of everything that it was and became: dead-lettered, moved, copied."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from services.mgmt.lookup.search import Search
from services.mgmt.lookup.stage_row import StageRow

MOST_MESSAGES = 100  # a circle of dead-lettering never ends

Expired = Callable[[], bool]


@dataclass(slots=True)
class Way:
    """Rows by uid; and what each uid was before, where it was not received."""

    rows: dict[int, list[StageRow]] = field(default_factory=dict)
    predecessors: dict[int, int] = field(default_factory=dict)
    cut_short: bool = False


def follow(search: Search, uid: int, since_us: int | None, expired: Expired) -> Way:
    """Back to what was received, then on to every end; stops early when `expired` says so."""
    way = Way()
    if rows := search.rows_of(uid, since_us):
        way.rows[uid] = rows
        _climb(search, way, uid, expired)
        _descend(search, way, expired)
    return way


def _climb(search: Search, way: Way, uid: int, expired: Expired) -> None:
    while not any(row.stage == "received" for row in way.rows[uid]):
        if _is_enough(way, expired):
            return
        before = [
            predecessor
            for row in search.successions_to(uid, way.rows[uid][0].time_us)
            for predecessor in row.predecessors_of(uid)
            if predecessor not in way.rows
        ]
        if not before:
            return
        way.predecessors[uid] = before[0]
        uid = before[0]
        way.rows[uid] = search.rows_of(uid)


def _descend(search: Search, way: Way, expired: Expired) -> None:
    pending = deque(way.rows)
    while pending:
        uid = pending.popleft()
        for row in way.rows[uid]:
            for successor in row.successors_of(uid):
                way.predecessors.setdefault(successor, uid)
                if successor in way.rows:
                    continue
                if _is_enough(way, expired):
                    return
                way.rows[successor] = search.rows_of(successor, row.time_us)
                pending.append(successor)


def _is_enough(way: Way, expired: Expired) -> bool:
    way.cut_short = way.cut_short or len(way.rows) >= MOST_MESSAGES or expired()
    return way.cut_short
