"""A consumer as its gateway knows it: where it is attached, and what it may still be sent.

Credit makes the socket the authority over the backlog. A queue process sends while both message and byte credit are
above zero; message credit comes back as its mode says (`credit.py`), byte credit when they are written.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from services.common.ledger.place import LedgerPlace
from services.common.topology.slots import SlotId
from services.gateway.sessions.credit import LinkCredit
from services.gateway.sessions.timeout import Timeout
from services.rpc import queue_pb2 as pb

if TYPE_CHECKING:
    from services.common.clients.queue_link import QueueLink
    from services.gateway.sessions.credit import CreditMode
    from services.gateway.sessions.session import Session
    from services.gateway.vocabulary import Credit

WINDOW_BYTES = 4 << 20
_NOT_FOR = 1000  # as many as an owner keeps of a consumer (queue/machine/delivery/not_for.py)


class ConsumerState(enum.Enum):
    """Where a consumer stands with the owner of its queue."""

    ATTACHING = "asked, no answer yet"
    ATTACHED = "served"
    OWNERLESS = "the owner is gone; the next one will be asked"
    ENDED = "cancelled"


@dataclass(slots=True, eq=False)
class GetHolder:
    """Holds what basic.get took from one queue, and is in `others` as long as it holds something."""

    queue_id: SlotId
    link: QueueLink | None = None  # where it was taken from
    count: int = 0  # unsettled
    others: dict[SlotId, GetHolder] = field(default_factory=dict)  # of its session, by queue
    takes: bool = True  # deliveries to it leave the queue
    unsettled: dict[int, int] = field(default_factory=dict)  # uids by delivery number, but for what a transaction has

    def returned(self, count: int) -> None:
        """Deliveries were settled."""
        self.count -= count
        if not self.count:
            self.others.pop(self.queue_id, None)


@dataclass(slots=True, eq=False, weakref_slot=True)
class Consumer:
    """One consumer of one session."""

    handle: int
    session: Session
    tag: str
    queue_id: SlotId
    settled: bool
    exclusive: bool
    browse: bool
    priority: int
    credit: CreditMode
    window: int  # bytes that may be on the way
    place: LedgerPlace  # of deliveries to it, for the ledger
    state: ConsumerState = ConsumerState.ATTACHING
    link: QueueLink | None = None
    answer: asyncio.Future[pb.Attached] | None = None
    ended: asyncio.Future[None] | None = None
    capacity: int = 0  # messages that may be on the way at once; granted, used or due
    drain: Credit | None = None  # the request to drain, answered when that credit is used up or taken back
    stops: bool = False  # its owner says when it has taken credit back; older ones do not
    stopping: bool = False  # it was asked to: what it had sent before is still on its way
    put_off: Credit | None = None  # what the client has granted meanwhile
    due: int = 0  # messages to be granted; below zero after the capacity has shrunk
    due_room: int = 0  # bytes to be granted
    started: bool = field(default=False)
    age: int = 0  # by which owners order the consumers of a queue with a single active one, …
    activated: int = 0  # … and when it became the active one; 0: it never was
    timeout: Timeout | None = None
    selector: str = ""  # which messages it wants; "": whatever is next
    steals: bool = False  # it takes the place of those that are there
    stolen: bool = False  # another one has taken its place
    theft: int = 0  # by which owners know who has stolen from whom
    no_local: bool = False  # none that came on its own connection
    replay: int | None = None  # none that came more seconds before it; None: whenever it came
    since: float = 0  # when that was, by the loop's clock
    unsettled: dict[int, int] = field(default_factory=dict)  # uids by delivery number, but for what a transaction has
    not_for: dict[int, None] | None = None  # uids that it is not to have again, the latest last

    @property
    def takes(self) -> bool:
        """Whether deliveries to it leave the queue: a browser's do not, and the queue does not need its settlements."""
        return not self.browse

    @property
    def gives_back(self) -> bool:
        """Whether deliveries that are not written to the client go back to the queue."""
        return not self.settled and not self.browse

    def attached(self, said: pb.Attached) -> None:
        """The owner of its queue serves it."""
        self.state, self.age, self.theft = ConsumerState.ATTACHED, said.age, said.theft
        self.browse, self.stops = self.browse or said.browse, said.stops
        if said.timeout_ms and self.gives_back and not self.timeout:
            self.timeout = Timeout(self, said.timeout_ms)
        self._take_back()  # the client has less credit by now than was said with the question

    def attach(self, link: QueueLink, term: int, held: list[int], *, again: bool) -> None:
        """Asks the owner of the queue in a term; with `again`, deliveries in `held` stay the consumer's.

        Credit comes with it: once a client has its answer, an immediate message of any publisher finds the consumer.
        """
        self.link, self.state = link, ConsumerState.ATTACHING
        self._stopped()  # what a former owner had sent does not come any more
        kept, kept_bytes = self.session.kept_for(self)
        self.capacity = self._capacity()
        # What it holds has used credit already.
        holds = len(held) if self.takes else len(self.unsettled)
        self.due = self.capacity - kept - self.credit.held(holds)
        messages, room = max(self._grantable(), 0), max(self.window - kept_bytes, 0)
        self.due -= messages
        self.due_room = 0
        link.attach(
            pb.AttachConsumer(
                consumer=self.handle,
                queue_id=self.queue_id,
                tag=self.tag,
                connection=self.session.connection.name,
                exclusive=self.exclusive,
                settled=self.settled,
                browse=self.browse,
                selector=self.selector,
                no_local=self.no_local,
                steals=self.steals,
                theft=self.theft,
                replay_ms=self._replay_ms(again=again),
                priority=self.priority,
                messages=messages,
                bytes=room,
                held=held,
                again=again,
                term=term,
                age=self.age,
                activated=self.activated,
                not_for=self.not_for,
            )
        )

    def refuses(self, uids: Iterable[int]) -> None:
        """Its link is not to be given these again: owners of its queue are told. Those that were first are forgotten,
        beyond so many: they are done with, most likely.
        """
        known = self.not_for = self.not_for or {}
        for uid in uids:
            known.pop(uid, None)
            known[uid] = None
        for uid in list(islice(known, max(len(known) - _NOT_FOR, 0))):
            del known[uid]

    def _replay_ms(self, *, again: bool) -> int | None:
        """How long ago that is by now, which is more for the next owner: clocks of two machines differ."""
        if self.replay is None:
            return None
        now = asyncio.get_running_loop().time()
        if not again or not self.since:
            self.since = now - self.replay
        return round((now - self.since) * 1000)

    def start(self) -> None:
        """The client has the answer to its consume: deliveries that have come for it are written."""
        self.started = True
        self.session.release(self)
        self.grant()

    def _capacity(self) -> int:
        return self.credit.capacity(self.session.shared_limit if self.gives_back else 0)

    @property
    def room(self) -> int | None:
        """How many more deliveries may be written; None: all that its owner sends."""
        if self.session.shared_limit and self.gives_back and self.credit.room is None:
            return self.session.room
        return self.credit.room

    def resize(self) -> None:
        """The limit over all consumers of the session has changed."""
        capacity = self._capacity()
        self.due += capacity - self.capacity
        self.capacity = capacity

    def written(self, count: int, size: int) -> None:
        """Deliveries went to the socket."""
        self.due_room += size
        self.due += self.credit.written(count)
        if self.drain and self.is_used_up:
            self.answer_drain()

    def unsent(self, count: int, size: int) -> None:
        """Deliveries went back before the client saw them."""
        self.due += count
        self.due_room += size

    def kept_back(self, count: int) -> None:
        """The same of deliveries that its engine was given, and counted as made."""
        self.due += self.credit.kept_back(count)

    def returned(self, count: int) -> None:
        """Deliveries were settled."""
        self.due += self.credit.settled(count)

    def give(self, granted: Credit) -> None:
        """Its client grants credit up to so many deliveries in all: more than before, or fewer.

        Where its owner was asked for the rest of its credit, more has to wait for the answer: what it had sent before,
        beyond the credit, goes back, and must not be overtaken by what it sent a little later.
        """
        if self.stopping:
            self.answer_drain()
            self.put_off = granted
            self._take(min(granted.up_to, self._up_to))
            return
        self.answer_drain()  # new credit ends a drain
        self._take(granted.up_to)
        if granted.drain and not self.is_used_up:
            self.drain = granted
        elif granted.drain:  # its owner may have more, and no room to say that it has not
            self.session.answer(granted)

    @property
    def _up_to(self) -> int:
        return self.credit.up_to if isinstance(self.credit, LinkCredit) else 0

    def _take(self, up_to: int) -> None:
        if isinstance(self.credit, LinkCredit):
            self.due += self.credit.take(up_to)
        self.session.release(self)
        self._take_back()

    def _take_back(self) -> None:
        """Asks its owner for the credit that it has, if that is too much."""
        if self.due < 0 and self.stops and not self.stopping and self.state is ConsumerState.ATTACHED and self.link:
            self.stopping = True
            self.link.credit(self.handle, 0, 0, stop=True)

    def stopped(self, left: int) -> None:
        """Its owner has taken back what was `left` of the credit, and all that it had sent has come."""
        self.due += left
        self.session.keep_within_limit(self)  # before there is more credit, with which it would overtake what went back
        self._stopped()
        self.grant()

    def _stopped(self) -> None:
        granted, self.put_off, self.stopping = self.put_off, None, False
        if granted:
            self.give(granted)

    def drained(self, left: int) -> None:
        """The owner has sent what it had, and took back what was `left` of the credit."""
        if self.drain is None:
            # The client has granted new credit since, and counts on all of it.
            self.due += left
            self.grant()
            return
        if isinstance(self.credit, LinkCredit):
            self.credit.up_to -= left
        if self.is_used_up:
            self.answer_drain()

    @property
    def is_used_up(self) -> bool:
        """Whether the client has had all that its credit allows."""
        return self.credit.is_used_up

    def answer_drain(self) -> None:
        """Nothing more comes of the credit that is drained, or is to be, if any is."""
        drain, self.drain, self.put_off = self.drain or self.put_off, None, None
        if drain and drain.drain:
            self.session.answer(drain)

    def grant(self) -> None:
        """Grants the owner the credit that is due: at once where a limit waits for it, else by halves of the window.

        A drain is sent again with each grant that may let it go on.
        """
        if not self.started or self.stopping or self.state is not ConsumerState.ATTACHED or self.link is None:
            return
        messages, drains = self._grantable(), self.drain is not None
        if messages <= 0 and self.due_room * 2 < self.window and not drains:
            return
        self.link.credit(self.handle, messages, self.due_room, drain=drains)
        self.due -= messages
        self.due_room = 0

    def _grantable(self) -> int:
        if self.session.shared_limit and self.gives_back:
            # Beyond the session's limit messages stay in the queue, where other consumers may have them.
            return max(min(self.due, self.session.room), 0)
        return self.credit.grantable(self.due)
