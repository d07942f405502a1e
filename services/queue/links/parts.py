"""Settlements of more than goes in one turn of the event loop, in parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from services.queue.machine import turn
from services.rpc.queue_pb2 import Settle


def size_of(settles: Sequence[Settle]) -> int:
    """How many are settled now: a transaction's are kept for its commit."""
    return sum(len(settle.uids) for settle in settles if not settle.transaction) if settles else 0


def _without_uids(settle: Settle) -> Settle:
    """To be copied for each part, as often as there are parts."""
    alike = Settle()
    alike.CopyFrom(settle)
    del alike.uids[:]
    return alike


def parts_of(settles: Sequence[Settle]) -> Iterator[list[Settle]]:
    """As many of them as go in one turn, in order."""
    part, room = list[Settle](), turn.AT_ONCE
    for settle in settles:
        at, uids, alike = 0, settle.uids, _without_uids(settle)
        while at < len(uids) and not settle.transaction:
            if not room:
                yield part
                part, room = [], turn.AT_ONCE
            some = Settle()
            some.CopyFrom(alike)
            some.uids.extend(uids[at : at + room])
            part.append(some)
            at, room = at + room, room - len(some.uids)
        if settle.transaction:
            part.append(settle)
    yield part
