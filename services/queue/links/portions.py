"""Frames that are more than goes in one turn of the event loop: they are carried out in parts, and what comes behind
them waits. A client that acknowledges, or leaves with, a million deliveries must not cost this process its leases, nor
may hundreds of consumers with long selectors that come to another owner.

What is given back with the claim for it is not cut here: it is heard behind that.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from services.common.containment import for_each
from services.common.topology.slots import SlotId
from services.queue.host import Host
from services.queue.links.attaching import new_selectors
from services.queue.links.last_words import last_words
from services.queue.links.parts import cut, size_of, spans_of
from services.queue.machine import turn
from services.queue.machine.claims import FINAL
from services.queue.machine.columns import Raw
from services.queue.machine.queue import Queue
from services.rpc.queue_pb2 import LinkFrame, Settle

if TYPE_CHECKING:
    from services.queue.links.link import PeerLink


class Portions:
    """Frames of one link, on their way to it."""

    def __init__(
        self, host: Host, link: PeerLink, written: Callable[[], None], fail: Callable[[Exception], None]
    ) -> None:
        """`written` writes what a frame's answer is; `fail` ends the stream, with the fault of a frame that waited."""
        self._host, self._link, self._written, self._fail = host, link, written, fail
        self._waiting: deque[tuple[int, LinkFrame, Sequence[Raw]]] = deque()

    def receive(self, frame: LinkFrame, publishes: Sequence[Raw]) -> None:
        """Carries a frame out, now if it is not much and none waits."""
        if self._is_little(frame):
            self._link.receive(frame, publishes)
            return
        self._waiting.append((self._host.late.begin(self._link), frame, publishes))
        if len(self._waiting) == 1:
            self._host.tasks.start(self._run(), f"frames of {self._link.name}")

    def _is_little(self, frame: LinkFrame) -> bool:
        if self._waiting or self._host.claims.concern(self._link):
            return False
        return size_of(frame.settles) <= turn.AT_ONCE and not new_selectors(self._host, frame)

    async def _run(self) -> None:
        try:
            while self._waiting:
                late, frame, publishes = self._waiting[0]
                await self._carry_out(frame, publishes)
                self._waiting.popleft()
                self._host.late.over(late)
        except Exception as fault:  # noqa: BLE001 - as when it is carried out at once
            while self._waiting:
                self._host.late.over(self._waiting.popleft()[0])
            self._fail(fault)

    async def _carry_out(self, frame: LinkFrame, publishes: Sequence[Raw]) -> None:
        held: dict[Queue, None] = {}
        kept = await self._host.compiling.kept(new_selectors(self._host, frame))
        try:
            whole, others = _apart(frame)
            parts = spans_of(others)
            spans = next(parts)
            for ahead in parts:
                await self._host.claims.until_done(self._link)
                self._settle(self._counts(cut(spans)), held)
                spans = ahead
                await asyncio.sleep(0)
            await self._host.claims.until_done(self._link)
            last = cut(spans)
            if self._link.broken:
                self._settle(self._counts(last), held)
                return
            del frame.settles[:]
            frame.settles.extend(last + whole)
            self._link.receive(frame, publishes)
            kept.clear()  # consumers have theirs
        finally:
            # Not before it is known that no other process delivers: this one may have stood still meanwhile.
            self._host.when_certain(partial(self._go_on, held))
        self._written()
        await asyncio.sleep(0)

    def _counts(self, settles: list[Settle]) -> list[Settle]:
        return last_words(settles) if self._link.broken else settles

    def _go_on(self, held: dict[Queue, None]) -> None:
        now = self._host.now()
        for_each("delivering what came back", held, lambda queue: queue.giving_back.go_on(now))

    def _settle(self, settles: Sequence[Settle], held: dict[Queue, None]) -> None:
        """Nothing is delivered before all of it is back: it would overtake what belongs before it."""
        for settle in settles:
            queue = self._host.registry.settling(SlotId(settle.queue_id))
            if queue is not None and settle.outcome not in FINAL and queue not in held:
                held[queue] = None
                queue.giving_back.hold_up()
        now = self._host.now()
        for_each("settling deliveries", settles, lambda settle: self._link.settle(settle, now))


def _apart(frame: LinkFrame) -> tuple[list[Settle], list[Settle]]:
    """What is given back of queues of which the frame claims some, and all else that is settled."""
    queues = {attach.queue_id for attach in frame.attaches if attach.held}
    whole, others = list[Settle](), list[Settle]()
    for settle in frame.settles:
        (whole if settle.queue_id in queues and settle.outcome not in FINAL else others).append(settle)
    return whole, others
