"""Which copies are meant by ends that name no queue, message by message: plain to read."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

Row = dict[str, Any]
IN_DOUBT = "in_doubt"
_PLACED = {"routed", "enqueued", "recovered"}
_ENDS = {"settled", "expired", "dead_lettered", "dropped"}


def with_queues(rows: list[Row]) -> list[Row]:
    """The rows, and for each message with such ends a row for each copy that they mean, or may mean."""
    ends: dict[tuple[str, int, int, int], list[Row]] = defaultdict(list)
    said: dict[tuple[str, int, int], list[Row]] = defaultdict(list)
    for row in rows:
        for uid in (uid for one in row["uids"] for uid in range(one["first"], one["last"] + 1)):
            if row["queue"]:
                said[row["virtual_host"], row["partition"], uid].append(row)
            elif row["stage"] == "dropped":
                ends[row["virtual_host"], row["partition"], row["epoch"], uid].append(row)
    found: list[Row] = []
    for (host, partition, epoch, uid), its in ends.items():
        left = _left(said[host, partition, uid], epoch)
        reason = its[0]["reason"] if len(its) >= len(left) else IN_DOUBT
        found += [_named(its[0], uid, queue, reason) for queue in left]
    return rows + found


def _named(end: Row, uid: int, queue: str, reason: str) -> Row:
    return {**end, "queue": queue, "reason": reason, "uids": [{"first": uid, "last": uid}]}


def _left(said: list[Row], epoch: int) -> list[str]:
    return [queue for queue in sorted({row["queue"] for row in said}) if _is_left(_of(said, queue), epoch)]


def _of(said: list[Row], queue: str) -> list[Row]:
    return [row for row in said if row["queue"] == queue]


def _is_left(said: list[Row], epoch: int) -> bool:
    let_go = [row["epoch"] for row in said if (row["stage"], row["reason"]) == ("dropped", "no_owner")]
    placed = [row["epoch"] for row in said if row["stage"] in _PLACED]
    others = [row for row in said if row["stage"] in _ENDS and row["reason"] != "no_owner"]
    is_there = any(row["epoch"] >= epoch for row in said)
    return bool(placed) and not others and not is_there and max(let_go, default=-1) < max(placed)
