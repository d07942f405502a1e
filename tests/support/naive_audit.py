"""The audit, message by message: slow, and plain to read."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from tests.support.naive_unnamed import IN_DOUBT, with_queues

Row = dict[str, Any]
_OF_MESSAGES = {"received", "returned", "confirmed", "refused", "rolled_back"}
_OF_OWNERS = {"enqueued", "recovered", "delivered"}
_NOT_LOOKED_AT = {"sent"}
_ENDS = ("dead_lettered", "moved", "accepted", "expired", "dropped", "rejected")


def naive_fates(rows: list[Row]) -> Counter[tuple[str, ...]]:
    """Messages by virtual host, queue, origin, fate, reason, duplicate; nothing is in flight, and there are no gaps."""
    rows = with_queues(rows)
    copies: dict[tuple[str, str, int], list[Row]] = defaultdict(list)
    messages: dict[int, list[Row]] = defaultdict(list)
    owners = {(row["partition"], row["epoch"]) for row in rows if row["epoch"]}
    moved = {number for number, count in Counter(number for number, _ in owners).items() if count > 1}
    for row in rows:
        # What was on disk matters where another owner did not find it.
        if row["stage"] in _NOT_LOOKED_AT or (row["stage"] == "persisted" and row["partition"] not in moved):
            continue
        for uid in _uids(row["uids"]):
            if row["stage"] in _OF_MESSAGES or not row["queue"]:
                messages[uid].append(row)
            else:
                copies[row["virtual_host"], row["queue"], uid].append(row)
        for uid in _uids(row["successors"]):
            messages[uid].append({"stage": _successor(row), "virtual_host": row["virtual_host"]})
    epochs: Counter[int] = Counter()
    for row in rows:
        epochs[row["partition"]] = max(epochs[row["partition"]], row["epoch"])
    in_queues = {uid for _, _, uid in copies}
    fates = Counter((host, queue, *_copy(told, messages[uid], epochs)) for (host, queue, uid), told in copies.items())
    return fates + Counter(
        (told[0]["virtual_host"], "", *_message(told))
        for uid, told in messages.items()
        if uid not in in_queues and told
    )


def _uids(ranges: list[dict[str, int]]) -> list[int]:
    return [uid for one in ranges for uid in range(one["first"], one["last"] + 1)]


def _successor(row: Row) -> str:
    return row["reason"] if row["reason"] in {"moved", "copied"} else "successor"


def _origin(told: list[Row]) -> str:
    stages = {row["stage"] for row in told}
    for stage, origin in (
        ("confirmed", "confirmed"),
        ("copied", "copied"),
        ("moved", "moved"),
        ("successor", "dead_letter"),
        ("rolled_back", "rolled_back"),
        ("refused", "refused"),
        ("received", "unconfirmed"),
    ):
        if stage in stages:
            return origin
    return "earlier"


def _message(told: list[Row]) -> tuple[str, str, str, str]:
    origin = _origin(told)
    reasons = {row["stage"]: row["reason"] for row in told if "reason" in row}
    for stage in ("returned", "dropped"):
        if stage in reasons:
            return origin, stage, reasons[stage], ""
    if origin in {"refused", "rolled_back"}:
        return origin, origin, reasons[origin], ""
    return (origin, "lost", "never_routed", "") if _promised(origin) else (origin, "not_enqueued", "", "")


def _copy(told: list[Row], message: list[Row], epochs: Counter[int]) -> tuple[str, str, str, str]:
    origin = _origin(message)
    kinds = [_kind(row) for row in told]
    return origin, *_fate(told, kinds, origin, message, epochs), _duplicate(told, kinds, origin)


def _kind(row: Row) -> str:
    """An owner that loses a partition drops what is not on disk, which may come again: that is no end."""
    if (row["stage"], row["reason"]) == ("dropped", "no_owner"):
        return "let go"
    if (row["stage"], row["reason"]) == ("dead_lettered", "moved"):
        return "moved"
    if (row["stage"], row["reason"]) == ("dropped", IN_DOUBT):
        return "in doubt"
    return str(row["outcome"] if row["stage"] == "settled" else row["stage"])


def _promised(origin: str) -> bool:
    return origin in {"confirmed", "dead_letter", "moved", "copied"}


def _fate(told: list[Row], kinds: list[str], origin: str, message: list[Row], epochs: Counter[int]) -> tuple[str, str]:
    placed = "enqueued" in kinds or "recovered" in kinds
    no_room = False
    for end in _ENDS:
        if end in kinds:
            reason = next((row["reason"] for row in told if _kind(row) == end), "")
            if end == "dropped" and _is_no_room(told, kinds, origin):
                no_room = True  # the queue was full, and its publisher knows
                continue
            return {"accepted": "settled"}.get(end, end), "" if end == "moved" else reason
    let_go = max((row["epoch"] for row in told if _kind(row) == "let go"), default=-1)
    was_let_go = let_go >= max((row["epoch"] for row in told if row["stage"] in _OF_OWNERS), default=0)
    if not no_room and (was_let_go or "in doubt" in kinds):
        why = "no_owner" if was_let_go else _why_missing(told, placed=placed, epochs=epochs)
        return "unknown" if "in doubt" in kinds else "lost (transient)", why
    if placed:
        return _fate_of_placed(told, kinds, epochs)
    if _promised(origin):
        return "lost", "never_enqueued"
    if origin in {"refused", "rolled_back"}:
        return origin, next(row["reason"] for row in message if row["stage"] == origin)
    return "not_enqueued", ""


def _why_missing(told: list[Row], *, placed: bool, epochs: Counter[int]) -> str:
    if not placed:
        return "never_enqueued"
    return "not_recovered" if _is_gone(told, epochs) else "not_heard_of"


def _is_gone(told: list[Row], epochs: Counter[int]) -> bool:
    last = max(row["epoch"] for row in told if row["stage"] in _OF_OWNERS)
    return bool(last < epochs[max(row["partition"] for row in told)])


def _is_no_room(told: list[Row], kinds: list[str], origin: str) -> bool:
    """Whether it was a full queue's answer to a publisher that asked, however often: no end."""
    placed = "enqueued" in kinds or "recovered" in kinds
    reasons = {row["reason"] for row in told if _kind(row) == "dropped"}
    return (origin, placed, reasons) == ("refused", False, {"maxlen"})


def _fate_of_placed(told: list[Row], kinds: list[str], epochs: Counter[int]) -> tuple[str, str]:
    if _is_gone(told, epochs):
        return "lost (persisted)" if "persisted" in kinds else "lost (transient)", "not_recovered"
    returned = [
        _when(r) for r in told if r["stage"] == "requeued" or (r["stage"] == "recovered" and r["reason"] != "held")
    ]
    delivered = [
        _when(r) for r in told if r["stage"] == "delivered" or (r["stage"] == "recovered" and r["reason"] == "held")
    ]
    return ("unsettled" if max(delivered, default=(0,)) > max(returned, default=(0,)) else "waiting"), ""


def _when(row: Row) -> tuple[Any, ...]:
    return (row["epoch"], row["time"])


def _duplicate(told: list[Row], kinds: list[str], origin: str) -> str:
    no_room = {"dropped"} if _is_no_room(told, kinds, origin) else set()
    ends = Counter(kind for kind in kinds if kind in _ENDS and kind not in no_room)
    ended = [_when(row) for row in told if _kind(row) in _ENDS]
    owners = max(ended)[0] - min(ended)[0] + 1 if ended else 0
    went_on = ends["dead_lettered"] + ends["moved"]
    if went_on > owners or (ends["accepted"] and went_on):
        return "settled_twice"
    if max(ends.values(), default=0) > owners or (ends["accepted"] and ends.total() > 1 and owners == 1):
        return "settled_twice"
    if _delivered_after_end(told):
        return "delivered_after_settled"
    enqueued = [_when(row) for row in told if row["stage"] == "enqueued"]
    recovered = [_when(row) for row in told if row["stage"] == "recovered"]
    if len(enqueued) > 1 and (
        len(enqueued) > max(enqueued)[0] - min(enqueued)[0] + 1 or (recovered and max(enqueued) > min(recovered))
    ):
        return "enqueued_twice"
    return ""


def _delivered_after_end(told: list[Row]) -> bool:
    """What a former owner said is earlier; that it dropped what a deleted queue had, only if it was by time, too."""
    delivered = [row for row in told if row["stage"] == "delivered"]
    ended = [row for row in told if _kind(row) in _ENDS and _kind(row) != "dropped"]
    dropped = [row for row in told if _kind(row) == "dropped"]
    if not delivered:
        return False
    last = max(_when(row) for row in delivered)
    if ended and last > min(_when(row) for row in ended):
        return True
    if not dropped or last <= min(_when(row) for row in dropped):
        return False
    of_deleted = all(row["reason"] == "queue_deleted" for row in dropped)
    return not of_deleted or max(row["time"] for row in delivered) > min(row["time"] for row in dropped)
