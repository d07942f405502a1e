"""What all links of a queue process share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from operator import call
from typing import TYPE_CHECKING, Protocol

import structlog

from services.common.budget import Budget
from services.common.bus.events import UNHEARD, Events
from services.common.compiling import Compiling
from services.common.containment import for_each
from services.common.errors import BrokerError, NotFound
from services.common.few_lines import FewLines
from services.common.ledger.recorder import OFF, Recorder
from services.common.remedies import ROUTER
from services.common.runtime import Tasks
from services.common.topology.slots import SlotId, slot_of
from services.common.uid import UidSource, origin_of
from services.queue.journal.ticket import Receipt, Unheard
from services.queue.journal.writer import JournalWriter
from services.queue.links.claiming import Claims
from services.queue.links.expected import Expected
from services.queue.links.full import Full, Gate
from services.queue.links.gateways import Gateways
from services.queue.links.greeted import Greeted
from services.queue.links.in_turns import InTurns
from services.queue.links.late_links import LateLinks
from services.queue.links.overfull import Overfull
from services.queue.links.returning import Returning
from services.queue.links.untold import Untold
from services.queue.machine.message import Interned, MemoryAccount
from services.queue.observe.journeys import Journeys
from services.queue.partitions.registry import Registry
from services.rpc import store_pb2
from services.rpc.router_pb2 import ChangeReply, ChangeRequest, DeleteQueue, QueueDefinition

if TYPE_CHECKING:
    from services.queue.links.link import PeerLink
    from services.queue.machine.queue import Queue

log = structlog.get_logger()

_RETRY_SECONDS = 1.0
_LOOK_SECONDS = 0.05
_BODIES = 64 << 20  # bytes that gateways keep, beside those that queues hold …
_SHARE = 16  # … and this part of what the queues may hold at most


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
    gate: Gate
    events: Events = UNHEARD
    recorder: Recorder = OFF
    account: MemoryAccount = field(default_factory=MemoryAccount)
    interned: Interned = field(default_factory=Interned)
    links: dict[PeerLink, None] = field(default_factory=dict)
    overfull: Overfull = field(default_factory=Overfull)
    greeted: Greeted = field(default_factory=Greeted)
    few: FewLines = field(default_factory=lambda: FewLines(1))  # about peers that are refused
    compiling: Compiling = field(default_factory=Compiling)
    departed: dict[int, PeerLink] = field(default_factory=dict)  # the latest of a gateway, by origin, for a moment
    late: LateLinks = field(default_factory=LateLinks)
    expected: Expected = field(default_factory=Expected)
    gateways: Gateways = field(default_factory=Gateways)
    returning: Returning = field(default_factory=Returning)
    tasks: Tasks = field(default_factory=Tasks)
    leases_hold: Callable[[], bool] = field(default=bool)  # nothing holds before there are leases
    timed: asyncio.Event = field(default_factory=asyncio.Event)  # a queue may have a sooner deadline than before
    suspended: bool = False
    unheard: Unheard = field(default_factory=Unheard)
    journeys: Journeys = field(default_factory=Journeys)  # of traced messages
    peers_bodies: Budget = field(init=False)  # that gateways keep: held here, delivered and acknowledged or not
    turns: InTurns = field(init=False)
    claims: Claims = field(init=False)
    untold: Untold = field(init=False)
    _uncertain: list[Callable[[], None]] = field(default_factory=list)  # what waits to know which leases are held

    def __post_init__(self) -> None:
        """What waits for the router, or for the topology, waits for the leases as well."""
        self.registry.when_certain = self.when_certain
        self.peers_bodies = Budget(min(_BODIES, self.gate.limit // _SHARE))
        self.turns = InTurns(self.tasks, self.until_certain)
        self.claims = Claims(self.registry, self.turns)
        self.untold = Untold(self.registry, self.links, self.expected, self.gateways, self.tasks, self.until_certain)

    def hears(self, origin: int, newest: int | None = None) -> bool:
        """Whether something that a gateway has said is to be carried out yet, `newest` as LateLinks says it."""
        return self.claims.concern_one_of(origin) or self.late.has_one_of(origin, newest)

    def now(self) -> int:
        """Milliseconds since the Unix epoch, without jumps."""
        return self.registry.now()

    def take_id(self) -> int:
        """An id for the journal."""
        return self.ids.take()[0]

    async def exceed(self, highest: int) -> None:
        """From now on ids are higher than `highest`: entry batches sort by arrival, whoever wrote those before."""
        if self.ids.origin <= origin_of(highest):
            origin, _ = await self.store.allocate_origin("journal ids")
            self.ids.origin = max(origin, self.ids.origin)

    def safe_soon(self, receipt: Receipt) -> None:
        """A part of it is done when everything that was taken so far is safe, and its publishers know."""
        self.writer.barrier(receipt)
        self.unheard.hold(receipt)
        receipt.part_done()

    @property
    def full(self) -> Full:
        """Where publishers have to wait, for want of memory, or because a queue has more than it wants."""
        return Full(self.gate.full.everywhere, self.gate.full.queue_ids | self.overfull.queue_ids)

    def check_full(self) -> None:
        """Holds publishers back from full queues, and lets them go on."""
        overfull, memory = self.overfull.look(self.registry.queues), self._memory_changed()
        if not overfull and not memory:
            return
        full = self.full
        for link in self.links:
            link.tell_full(full)
        # What expires, or goes on to where it is dead-lettered, makes room without a word from any link.
        self.timed.set()

    def _memory_changed(self) -> bool:
        used, gate, before = self.account.used, self.gate, self.gate.full
        if not gate.wants_look(used):
            return False
        if not gate.look(used, ((queue_id, queue.holding.size) for queue_id, queue in self.registry.queues.items())):
            return False
        if bool(gate.full) is not bool(before):
            log.info("publishers held back" if gate.full else "publishers go on", used=used, limit=gate.limit)
        return True

    @property
    def certain(self) -> bool:
        """Whether the leases hold at this moment."""
        return self.leases_hold() and not self.suspended

    async def until_certain(self) -> None:
        """Returns when it is known which leases are held; until the next await they are."""
        while not self.certain:
            known = asyncio.Event()
            self._uncertain.append(known.set)
            await known.wait()

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
            for_each("carrying out what has waited for leases", actions, call)
            for_each("going on with a gateway", list(self.links), lambda link: link.resume())

    async def delete(self, definition: QueueDefinition) -> None:
        """Has the router delete a queue; raises what it raises."""
        queue_id = slot_of(definition)
        self.registry.deleting.begin(queue_id)
        request = ChangeRequest(
            virtual_host=definition.virtual_host,
            delete_queue=DeleteQueue(name=definition.name, queue_id=definition.id),
        )
        try:
            await self.topology.change(request)
        finally:
            self.registry.deleting.over(queue_id)

    def delete_soon(self, queue_id: SlotId) -> None:
        """Deletes a queue that has lost its purpose."""
        definition, queue = self.registry.definitions.get(queue_id), self.registry.queues.get(queue_id)
        if definition and queue and queue_id not in self.registry.deleting:
            self.registry.deleting.begin(queue_id)
            self.tasks.start(self._delete_at_last(definition, queue), f"delete queue {definition.name}")

    async def _delete_at_last(self, definition: QueueDefinition, queue: Queue) -> None:
        queue_id = slot_of(definition)
        while queue_id in self.registry.definitions and self.registry.queues.get(queue_id) is queue:
            if not self.certain:  # another process may have it, and consumers of it
                await asyncio.sleep(_LOOK_SECONDS)
                continue
            if queue.use.needs_empty:
                if not queue.use.is_over(self.now()):
                    break
                self.registry.seal(queue)
            try:
                await self.delete(definition)
            except NotFound:
                return  # deleted, and the answer was lost: who waits for it is told when the news of it comes
            except BrokerError as failure:
                self.registry.unseal(queue_id)
                what = "queue not deleted, trying again"
                log.warning(what, queue=definition.name, reason=failure.text, do=ROUTER)
                await asyncio.sleep(_RETRY_SECONDS)
                if queue_id in self.registry.deleting or not queue.use.is_over(self.now()):
                    return  # another sees to it, or somebody has come: it was there for everybody meanwhile
        self.registry.deleting.over(queue_id)
