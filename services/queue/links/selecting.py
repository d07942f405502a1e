"""Messages of a queue that somebody chose, by uid or selector: shown, taken to be moved, or dropped, in portions.

A portion is as much as one frame holds, and is gathered in as many turns of the event loop as that takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from services.common.message.columns import put
from services.common.message.weight import FRAME_BYTES
from services.common.selectors.selector import selector
from services.queue.host import Host
from services.queue.journal.ticket import Written
from services.queue.machine import turn
from services.queue.machine.delivery.interest import Interest, view_of
from services.queue.machine.entry import ACQUIRED, ASIDE, AVAILABLE, BACK_ASIDE, GONE, Entry
from services.queue.machine.queue import Queue
from services.rpc import queue_pb2 as pb

if TYPE_CHECKING:
    from services.queue.links.link import PeerLink

_AT_ONCE: Final = 1000
"""Messages in a portion, and of those that are dropped, of which uids alone are told, in a turn."""
_DROPPED: Final = 10_000
_STATES: Final[Mapping[int, pb.Shown.State.ValueType]] = {
    AVAILABLE: pb.Shown.AVAILABLE,
    ACQUIRED: pb.Shown.ACQUIRED,
    ASIDE: pb.Shown.HELD,
    BACK_ASIDE: pb.Shown.HELD,
}
_NOT_WRITTEN: Final = "what was dropped is gone, but may come back with the queue's next owner"
_Carry = Callable[[Queue, list[Entry], "PeerLink"], list[Entry]]


class Selecting:
    """One selection of a peer, as far as it has come."""

    def __init__(self, link: PeerLink, queue: Queue, asked: pb.SelectRequest) -> None:
        """Raises InvalidSelector."""
        self.queue = queue
        self._link = link
        self._asked = asked
        self._uids = set(asked.uids) if asked.uids else None
        self._interest = Interest(selector(asked.selector)) if asked.selector else None
        self._walk = queue.picking.walk(held=asked.purpose == pb.SelectRequest.LOOK)
        self._pass_over = asked.first
        self._left = asked.most or None
        self._held: set[int] = set()  # uids of those chosen that somebody had then: they may come back and wait
        self._chosen: list[Entry] = []  # that the next portion begins with: they had no room in the one before

    @property
    def is_over(self) -> bool:
        """Whether there are no more."""
        enough = self._left == 0 or (self._uids is not None and not self._uids)
        return not self._chosen and (self._walk.over or enough)

    async def portion(self, host: Host) -> pb.QueueReply:
        """The next one; short of what it was when the queue is not here any more, or its peer is gone."""
        reply, room = pb.QueueReply(), FRAME_BYTES
        gathered: list[Entry] = []
        written = Written()
        most = _DROPPED if self._drops else _AT_ONCE
        await host.claims.until_claimed(self.queue)
        while len(gathered) < most and room > 0 and not self.is_over:
            if self._link.broken or host.registry.queues.get(self.queue.options.queue_id) is not self.queue:
                reply.reason = host.registry.missing(self.queue.options.queue_id)
                break
            some, room = self._some(min(most - len(gathered), _AT_ONCE), room, host.now())
            gathered += some
            if self._drops:
                host.writer.barrier(written)
            host.check_full()
            await asyncio.sleep(0)
            await host.claims.until_claimed(self.queue)
        written.part_done()
        if not await written:
            reply.reason, reply.text = pb.OTHER, _NOT_WRITTEN
        self._tell(gathered, reply)
        return reply

    def _some(self, most: int, room: int, now: int) -> tuple[list[Entry], int]:
        """One turn's: what it is asked for is done to them at once. Gives the room that is left as well."""
        chosen = self._chosen or self._choose(now)
        fitting: list[Entry] = []
        for entry in chosen[:most]:
            if room <= 0:
                break
            room -= entry.message.weight if self._carries else len(entry.message.properties)
            fitting.append(entry)
        self._chosen = chosen[len(fitting) :]
        return self._carry_out(fitting), room

    @property
    def _drops(self) -> bool:
        return self._asked.purpose == pb.SelectRequest.DROP

    @property
    def _carries(self) -> bool:
        return self._asked.bodies or self._asked.purpose == pb.SelectRequest.TAKE

    def _choose(self, now: int) -> list[Entry]:
        cost = self._interest.cost if self._interest else 0
        looks = max(1, turn.LOOKS // cost) if cost else turn.AT_ONCE
        chosen = [entry for entry in self._walk.some(looks) if self._wants(entry, now) and self._is_first(entry)]
        if self._pass_over:
            passed = min(self._pass_over, len(chosen))
            self._pass_over -= passed
            chosen = chosen[passed:]
        if self._left is not None:
            chosen = chosen[: self._left]
            self._left -= len(chosen)
        if self._uids is not None:
            self._uids.difference_update(entry.message.uid for entry in chosen)
        return chosen

    def _wants(self, entry: Entry, now: int) -> bool:
        if self._uids is not None and entry.message.uid not in self._uids:
            return False
        if 0 < entry.expires <= now:
            return False
        return self._interest is None or self._interest.wants(entry, view_of(entry))

    def _is_first(self, entry: Entry) -> bool:
        """Whether it was not chosen before."""
        uid = entry.message.uid
        if entry.state == ACQUIRED:
            self._held.add(uid)
            return True
        return uid not in self._held

    def _carry_out(self, entries: list[Entry]) -> list[Entry]:
        return _CARRIED_OUT[self._asked.purpose](self.queue, entries, self._link) if entries else entries

    def _tell(self, entries: list[Entry], reply: pb.QueueReply) -> None:
        messages = [entry.message for entry in entries]
        reply.message.uids.extend([message.uid for message in messages])
        reply.more, reply.message_count = not self.is_over, self.queue.ready_count + len(self.queue.unsettled)
        if self._drops:
            return
        put(reply.message, [message.facts for message in messages], [message.properties for message in messages])
        if self._carries:
            reply.message.bodies.extend([bytes(message.body) for message in messages])
        reply.shown.extend([_shown(entry) for entry in entries])


def _look(_queue: Queue, entries: list[Entry], _link: PeerLink) -> list[Entry]:
    return [entry for entry in entries if entry.state != GONE]


def _take(queue: Queue, entries: list[Entry], link: PeerLink) -> list[Entry]:
    link.moves = True
    link.holds_of(queue)
    return queue.picking.take(entries, link)


def _drop(queue: Queue, entries: list[Entry], _link: PeerLink) -> list[Entry]:
    return queue.picking.drop(entries)


_CARRIED_OUT: Final[Mapping[pb.SelectRequest.Purpose.ValueType, _Carry]] = {
    pb.SelectRequest.LOOK: _look,
    pb.SelectRequest.TAKE: _take,
    pb.SelectRequest.DROP: _drop,
}


def _shown(entry: Entry) -> pb.Shown:
    return pb.Shown(
        state=_STATES.get(entry.state, pb.Shown.ACQUIRED),
        attempts=entry.attempts,
        expires=entry.expires,
        time_ms=entry.message.received,
        size=len(entry.message.body),
    )
