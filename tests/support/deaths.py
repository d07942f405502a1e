"""A ledger of two deaths and a gap, said by hand, and what is true of each queue in it.

queue-0 has partitions 1 and 2 and is killed at 100; queue-1 takes over partition 1 at 105, no process partition 2.
queue-1 has partition 3 besides, and gives up rows between 300 and 310. queue-2 has partition 4, which queue-1 takes
over at 200 without what was in it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.support.ledger_rows import START, stage

Row = dict[str, Any]
Steps = tuple[tuple[str, float], ...]

DEAD, ALIVE, OTHER = "queue-0", "queue-1", "queue-2"
_OF_QUEUES = {"enqueued", "persisted", "delivered", "expired"}
_NOBODY = {"queue": "", "count": 0, "first_uid": None, "last_uid": None, "uids": []}

ENQUEUED = (("enqueued", 10.0),)
ON_DISK = (*ENQUEUED, ("persisted", 10.0))
TAKEN = (("delivered", 20.0), ("sent", 20.0))

# Queue, partition, its first owner, what befell a message there, and what is true: fate, reason, whose gap is to blame.
TRUTH: tuple[tuple[str, int, str, Steps, tuple[str, str, str] | None], ...] = (
    ("memory", 1, DEAD, ENQUEUED, ("lost (transient)", "not_recovered", DEAD)),
    ("just before", 1, DEAD, (("enqueued", 98.5),), ("unknown", "not_recovered", DEAD)),
    ("disk", 1, DEAD, ON_DISK, ("unknown", "not_recovered", DEAD)),
    ("with consumer", 1, DEAD, (*ENQUEUED, *TAKEN), ("unknown", "not_recovered", DEAD)),
    ("sent in the gap", 1, DEAD, (*ENQUEUED, ("sent", 99.0)), ("unknown", "not_recovered", DEAD)),
    ("expiring", 1, DEAD, ENQUEUED, None),
    ("expiring", 1, DEAD, (*ENQUEUED, ("expired", 20.0)), None),
    ("never enqueued", 1, DEAD, (("routed", 98.0),), ("unknown", "never_enqueued", DEAD)),
    ("found", 1, DEAD, ON_DISK, ("waiting", "", "")),
    ("left in memory", 2, DEAD, ENQUEUED, ("unknown", "not_heard_of", DEAD)),
    ("left on disk", 2, DEAD, ON_DISK, ("waiting", "", "")),
    ("left with consumer", 2, DEAD, (*ON_DISK, *TAKEN), ("unknown", "not_heard_of", DEAD)),
    ("given up", 3, ALIVE, (("enqueued", 290.0), ("delivered", 291.0), ("sent", 291.0)),
     ("unknown", "not_heard_of", ALIVE)),
    ("waits", 3, ALIVE, (("enqueued", 290.0),), ("waiting", "", "")),
    ("holds", 3, ALIVE, (("enqueued", 320.0), ("delivered", 321.0), ("sent", 321.0)), ("unsettled", "", "")),
    ("handed over", 4, OTHER, (("enqueued", 150.0),), ("lost (transient)", "not_recovered", "")),
    ("handed over from disk", 4, OTHER, (("enqueued", 150.0), ("persisted", 150.1)),
     ("lost (persisted)", "not_recovered", "")),
)  # fmt: skip


def _gap(instance: str, reason: str, since: float, noticed: float) -> Row:
    begin, end = (START + timedelta(seconds=seconds) for seconds in (since, noticed))
    row = {"service": "queue", "instance": instance, "first_row": 1, "last_row": 1, "count": -1}
    return {**row, "reason": reason, "time": end, "since": begin}


GAPS = [_gap(DEAD, "silent", 99, 135), _gap(ALIVE, "given_up", 300, 310)]


def deaths() -> list[Row]:
    """The rows of stages."""
    rows = [row for number, one in enumerate(TRUTH, 1) for row in _journey(10 * number, *one[:4])]
    found = 10 * next(number for number, one in enumerate(TRUTH, 1) if one[0] == "found")
    heir: Row = {"instance": ALIVE, "epoch": 2}
    rows.append(stage("recovered", found, at=105, queue="found", partition=1, **heir))
    rows += [stage("taken_over", 0, at=at, partition=number, **heir, **_NOBODY) for number, at in ((1, 105), (4, 200))]
    rows.append(stage("received", 10_000, at=1000))
    return [{**row, "row": number} for number, row in enumerate(rows, 1)]


def _journey(uid: int, queue: str, partition: int, owner: str, steps: Steps) -> list[Row]:
    published = (("received", 1.0), ("routed", 1.0), ("confirmed", steps[0][1]))
    place = {"queue": queue, "partition": partition}
    told_by = {"instance": owner, "epoch": 1}

    def facts(name: str) -> Row:
        return {**place, **told_by} if name in _OF_QUEUES else place if name in {"routed", "sent"} else {}

    return [stage(name, uid, at=at, **facts(name)) for name, at in (*published, *steps)]
