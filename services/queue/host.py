"""What all links of a queue process share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import structlog

from services.common.bus.events import UNHEARD, Events
from services.common.errors import BrokerError
from services.common.ledger.recorder import OFF, Recorder
from services.common.runtime import Tasks
from services.common.uid import UidSource, origin_of
from services.queue.expected import Expected
from services.queue.journal_writer import JournalWriter
from services.queue.journeys import Journeys
from services.queue.message import Interned, MemoryAccount
from services.queue.registry import Registry
from services.rpc import store_pb2
from services.rpc.router_pb2 import ChangeReply, ChangeRequest, DeleteQueue, QueueDefinition

if TYPE_CHECKING:
    from services.queue.link import Link

log = structlog.get_logger()

_RETRY_SECONDS = 1.0


class Changes(Protocol):
    """The part of the router's client that changes the topology."""

    def change(self, request: ChangeRequest) -> Awaitable[ChangeReply]: ...


class Store(Protocol):
    """The part of the store's client that links need, and what gives ids."""

    def allocate_origin(self, name: str) -> Awaitable[tuple[int, int]]: ...

    def resolve_transaction(self, transaction: int) -> Awaitable[store_pb2.TransactionOutcome]: ...


@dataclass(slots=True)
class Host:
    """One for each process. `suspended`: the leases may have run out, so nothing is done until that is known.

    `leases_hold` tells by the clock: a process that was asleep reads what came meanwhile before any timer tells it.
    """

    registry: Registry
    writer: JournalWriter
    ids: UidSource  # of contents and entry batches
    topology: Changes
    store: Store
    memory_limit: int
    events: Events = UNHEARD
    recorder: Recorder = OFF
    account: MemoryAccount = field(default_factory=MemoryAccount)
    interned: Interned = field(default_factory=Interned)
    links: set[Link] = field(default_factory=set)
    departed: dict[int, Link] = field(default_factory=dict)  # the latest of a gateway, by origin, for a moment
    expected: Expected = field(default_factory=Expected)
    tasks: Tasks = field(default_factory=Tasks)
    leases_hold: Callable[[], bool] = field(default=bool)  # nothing holds before there are leases
    timed: asyncio.Event = field(default_factory=asyncio.Event)  # a queue may have a sooner deadline than before
    suspended: bool = False
    blocked: bool = False
    journeys: Journeys = field(default_factory=Journeys)  # of traced messages
    _uncertain: list[Callable[[], None]] = field(default_factory=list)  # what waits to know which leases are held

    def take_id(self) -> int:
        """An id for the journal."""
        return self.ids.take()[0]

    async def exceed(self, highest: int) -> None:
        """From now on ids are higher than `highest`: entry batches sort by arrival, whoever wrote those before."""
        if self.ids.origin <= origin_of(highest):
            origin, _ = await self.store.allocate_origin("journal ids")
            self.ids.origin = max(origin, self.ids.origin)

    def check_memory(self) -> None:
        """Holds publishers back above the limit, and lets them go on below 80 % of it."""
        used = self.account.used
        if self.blocked if used < self.memory_limit * 0.8 else not self.blocked and used > self.memory_limit:
            self.blocked = not self.blocked
            log.info("publishers held back" if self.blocked else "publishers go on", used=used)
            for link in self.links:
                link.outbox.frame.blocked = self.blocked

    @property
    def certain(self) -> bool:
        """Whether the leases hold at this moment."""
        return self.leases_hold() and not self.suspended

    def when_certain(self, action: Callable[[], None]) -> None:
        """Calls it at once, or as soon as it is known which leases are held."""
        if self.certain:
            action()
        else:
            self._uncertain.append(action)

    def resume(self, *, valid: bool) -> None:
        """The leases are valid again, or not any more."""
        self.suspended = not valid
        if valid:
            actions, self._uncertain = self._uncertain, []
            for action in actions:
                action()
            for link in list(self.links):
                link.resume()

    async def delete(self, definition: QueueDefinition) -> None:
        """Has the router delete a queue; raises what it raises."""
        self.registry.deleting.add(definition.id)
        request = ChangeRequest(
            virtual_host=definition.virtual_host,
            delete_queue=DeleteQueue(name=definition.name, queue_id=definition.id),
        )
        try:
            await self.topology.change(request)
        finally:
            self.registry.deleting.discard(definition.id)

    def delete_soon(self, queue_id: int) -> None:
        """Deletes a queue that has lost its purpose."""
        definition = self.registry.definitions.get(queue_id)
        if definition and queue_id not in self.registry.deleting:
            self.registry.deleting.add(queue_id)
            self.tasks.start(self._delete_at_last(definition), f"delete queue {definition.name}")

    async def _delete_at_last(self, definition: QueueDefinition) -> None:
        while definition.id in self.registry.definitions and definition.id in self.registry.queues:
            try:
                await self.delete(definition)
            except BrokerError as failure:
                log.warning("queue not deleted, trying again", queue=definition.name, reason=failure.text)
                await asyncio.sleep(_RETRY_SECONDS)
