"""A session of a client: ids, windows, and what it has sent and was sent that is not settled (part 2, section 2.5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final

from services.common.message.amqp_1_0.composite import Composite
from services.gateway.protocols.amqp_1_0.performatives import (
    RECEIVER,
    SENDER,
    Attach,
    Begin,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Transfer,
)
from services.gateway.protocols.amqp_1_0.serial import after, distance
from services.gateway.protocols.amqp_1_0.states import Accepted, Rejected
from services.gateway.protocols.amqp_1_0.transactional import TransactionalState
from tests.simulation.amqp_1_0.links import Link, Receiver, Sender
from tests.simulation.amqp_1_0.messages import ANNOTATED, NO_ATTEMPT, OUTCOMES, Read, annotated, reason, runs
from tests.simulation.amqp_1_0.transactions import Coordinator, Local
from tests.simulation.channel import body_of
from tests.simulation.history import Consuming, Delivered, Opened, Sent
from tests.simulation.line import GoneError

if TYPE_CHECKING:
    from tests.simulation.amqp_1_0.wire import Wire

_OUTGOING: Final = (1 << 31) - 1
_LATE: Final = (1 << 32) - 5
_NO_ROUTE: Final = 312
_NOT_FOUND: Final = 404
MODE: Final = "session"


class Session:
    """What Channel is to 0-9-1. With `second` receivers settle second (2.8.3); `window` frames are taken at once."""

    def __init__(self, wire: Wire, number: int, opened: Opened, *, second: bool, window: int) -> None:
        self.wire = wire
        self.history = wire.history
        self.number = number
        self.opened = opened
        self.second = second
        self.links: dict[int, Link] = {}  # by our handle
        self.transactions: dict[str, Local] = {}  # by the names of the plan
        self.unconfirmed: dict[int, Sent] = {}  # by delivery-id, as all below
        self.unsettled: dict[int, Delivered] = {}
        self.room = 0  # frames of transfers that the broker takes
        self._sent: dict[int, tuple[Sent, Link]] = {}  # whose outcome may come
        self._second: dict[int, Delivered] = {}  # that the broker is to settle
        # Numbers of 32 bits go round (2.8.10), in some sessions soon.
        first = _LATE if opened.number % 3 == 0 else 0
        self._next = first  # delivery-id
        self._outgoing = first  # frames of transfers
        self._numbered = 0
        self._coming = 0  # delivery-id
        self._incoming = 0
        self._window = self._left = window
        self._renews_at = window // 2 if opened.number % 2 else 0  # frames that are left
        self._answer: asyncio.Future[Any] | None = None
        self._asker: Link | None = None
        self._unbound: list[tuple[Sent, Link]] = []
        self._unknown: list[Delivered] = []
        self._before = (0, 0)
        self._transacts = False  # what is not unsettled may be so again: no range goes over it

    @property
    def dead(self) -> bool:
        return self.opened.ending is not None

    @property
    def leaving(self) -> bool:
        """Whether what a client settles now is not heard."""
        return self.dead or self.opened.leaving is not None or self.wire.dead

    def free_handle(self) -> int:
        """The lowest that neither end uses."""
        return next(handle for handle in range(1024) if handle not in self.links)

    def breach(self, text: str) -> None:
        """The broker has not kept to the protocol."""
        self.history.breaches.append(f"{self.wire.connected.client} at {self.history.clock():.3f} s: {text}")

    # -------------------------------------------------------------- requests

    async def ask(self, what: Composite, link: Link | None = None) -> Any:
        """Sends what is answered, and gives the answer; raises GoneError."""
        if self.dead:
            raise GoneError(self.opened.code, self.opened.text)
        assert self._answer is None, "one request at a time"
        self._answer, self._asker = asyncio.get_running_loop().create_future(), link
        self._before = len(self._unbound), len(self._unknown)
        self.send(what)
        try:
            return await self._answer
        finally:
            self._answer = self._asker = None

    def answered(self, value: Any, link: Link | None = None) -> None:
        """What was sent before the request has been carried out, unless it is answered with None."""
        if self._answer is None or self._answer.done() or self._asker is not link:
            return
        if value is not None:
            only = link if isinstance(link, Sender) and isinstance(value, Detach) else None
            self._known(*self._before, only)
        self._answer.set_result(value)

    def carried_out(self) -> None:
        """All that was sent has been."""
        self._known(len(self._unbound), len(self._unknown), None)

    def _known(self, unbound: int, unknown: int, only: Link | None) -> None:
        """A sender's end waits for its own messages, and asks nothing of others."""
        now = self.history.tick()
        for sent, link in self._unbound[:unbound]:
            if only in (None, link):
                sent.bound = sent.bound or now
        if only is None:
            for delivered in self._unknown[:unknown]:
                if delivered.settled != delivered.at:
                    delivered.known = delivered.known or now
            del self._unbound[:unbound], self._unknown[:unknown]

    def unanswered(self, link: Link) -> None:
        """The link is gone that was asked about."""
        if self._asker is link and self._answer and not self._answer.done():
            self._answer.set_exception(GoneError(link.code, link.text))
        self.wire.changed.set()

    async def wait_until(self, so: Callable[[], bool]) -> None:
        """Looks again whenever something has come."""
        while not so():
            self.wire.changed.clear()
            await self.wire.changed.wait()

    def send(self, what: Composite, payload: bytes = b"") -> None:
        """Writes a frame on its channel."""
        self.wire.send(self.number, what, payload)

    # -------------------------------------------------------------- beginning and end

    async def open(self) -> None:
        """Raises GoneError."""
        begun = await self.ask(Begin(None, self._outgoing, self._window, _OUTGOING))
        self.room = begun.incoming_window

    async def close(self) -> None:
        """Waits for the answer."""
        self.opened.leaving = self.history.tick()
        await self.ask(End())

    def end(self, code: int, text: str) -> None:
        """It is no more."""
        if self.dead:
            return
        now = self.history.tick()
        self.opened.ending, self.opened.code, self.opened.text = now, code, text
        for link in self.links.values():
            if isinstance(link, Receiver):
                link.consuming.ending = link.consuming.ending or now
            elif isinstance(link, Coordinator):
                link.break_off()
        for local in self.transactions.values():
            local.over("rolled_back", now)
        self.transactions.clear()
        if self._answer and not self._answer.done():
            self._answer.set_exception(GoneError(code, text))
        self.wire.changed.set()

    # -------------------------------------------------------------- what the client sends

    def next_id(self) -> int:
        """Of a delivery."""
        number, self._next = self._next, after(self._next, 1)
        return number

    def begin(self, sent: Sent, link: Link, *, settled: bool) -> int:
        """A delivery's id; its outcome is written into `sent`."""
        number = self.next_id()
        self._numbered += 1
        sent.number, sent.link = self._numbered, link.name
        sent.at, sent.time = self.history.tick(), self.history.clock()
        self.history.sent[sent.id] = sent
        if settled:
            self._unbound.append((sent, link))
        else:
            self.unconfirmed[number] = sent
            self._sent[number] = sent, link
        return number

    def transfer(self, transfer: Transfer, payload: bytes) -> None:
        """A frame of it, for which there is room."""
        self._outgoing = after(self._outgoing, 1)
        self.room -= 1
        self.send(transfer, payload)

    def abandon(self, link: Link) -> None:
        """Outcomes of what it has sent may come, or not."""
        for number, (_, its) in self._sent.items():
            if its is link:
                self.unconfirmed.pop(number, None)

    def flow(self, **link: Any) -> Flow:
        """With the session's windows."""
        return Flow(self._incoming, max(self._left, 0), self._outgoing, _OUTGOING, **link)

    async def transaction(self, name: str) -> Local:
        """That which is open by this name, or a new one; raises GoneError."""
        if local := self.transactions.get(name):
            return local
        self._transacts = True
        coordinator = next((each for each in self.links.values() if isinstance(each, Coordinator)), None)
        if coordinator is None or coordinator.dead:
            coordinator = Coordinator(self)
            await coordinator.attach()
        return await coordinator.declare(name)

    def settle(self, how: str, tag: int, *, multiple: bool = False, part_of: Local | None = None) -> None:
        """An outcome of one delivery, or of all up to it; in a transaction only when that is committed."""
        tags = [each for each in self.unsettled if each <= tag] if multiple else [tag]
        settled_as, state = OUTCOMES[how]
        settled, at = not self.second or state is None, self.history.tick()
        said = str(at) if how in ANNOTATED else ""
        state = annotated(state, said) if said else state
        for each in tags:
            delivered = self.unsettled.pop(each)
            delivered.settled_as, delivered.settled = settled_as, at
            delivered.attempt = how not in NO_ATTEMPT
            delivered.said, delivered.refused = said, how == "undeliverable"
            if part_of:
                part_of.retired(delivered, settled=settled)
            elif settled:
                self._unknown.append(delivered)
            if not settled:
                self._second[each] = delivered
        state = part_of.state(state) if part_of else state
        for first, last in runs(tags) if self._transacts else [(tags[0], tags[-1])]:
            self.send(Disposition(RECEIVER, first, last, settled, state))

    def never_heard(self, consuming: Consuming) -> None:
        """What it has said may have been for nothing: it had lost the link, and what it held, and did not know yet."""
        for each in self._unknown:
            if each.consumer is consuming:
                each.settled = each.at

    def forget(self, number: int) -> None:
        """The broker is not to settle that any more."""
        self._second.pop(number, None)

    # -------------------------------------------------------------- what comes

    def take(self, what: Composite, payload: bytes) -> None:
        """A frame on its channel."""
        self._TABLE[type(what)](self, what, payload)
        self.wire.changed.set()

    def _begun(self, begin: Begin, _payload: bytes) -> None:
        self.answered(begin)

    def _attached(self, attach: Attach, _payload: bytes) -> None:
        for link in self.links.values():
            if link.name == attach.name and link.theirs is None and link.ROLE is not attach.role:
                link.theirs = attach.handle
                self.answered(attach, link)
                return
        self.breach(f"an attach of {attach.name}, which was not asked for")

    def _link(self, handle: int) -> Link | None:
        found = next((each for each in self.links.values() if each.theirs == handle), None)
        if found is None:
            self.breach(f"a word on handle {handle}, which is nobody's")
        return found

    def _detached(self, detach: Detach, _payload: bytes) -> None:
        if link := self._link(detach.handle):
            del self.links[link.handle]
            link.detached(detach)

    def _flowed(self, flow: Flow, _payload: bytes) -> None:
        self.room = flow.incoming_window - distance(flow.next_incoming_id or 0, self._outgoing)
        if flow.handle is not None and (link := self._link(flow.handle)):
            link.flow(flow)

    def _transferred(self, transfer: Transfer, payload: bytes) -> None:
        self._incoming, self._left = self._incoming + 1, self._left - 1
        if self._left < 0:
            self.breach(f"a transfer beyond the window of {self._window}")
        link = self._link(transfer.handle)
        if isinstance(link, Receiver):
            link.transfer(transfer, payload)

    def caught_up(self) -> None:
        """All that has come is read: gives window and credit anew. Not before: what came with it used up the old."""
        if self.leaving:
            return
        for link in list(self.links.values()):
            link.renew()
        if self._left <= self._renews_at:
            self._left = self._window
            self.send(self.flow())

    def comes(self, first: Transfer) -> None:
        """The first frame of a delivery."""
        if first.delivery_id != self._coming:
            self.breach(f"delivery {first.delivery_id} instead of {self._coming}")
        self._coming = (first.delivery_id or 0) + 1

    def delivered(self, consuming: Consuming, number: int, message: Read) -> Delivered:
        """A delivery that has come whole."""
        delivered = _delivered(self, consuming, number, message)
        self.history.deliveries.append(delivered)
        if delivered.no_ack:
            delivered.settled_as, delivered.settled = "none", delivered.at
        else:
            self.unsettled[number] = delivered
        return delivered

    def _disposed(self, disposition: Disposition, _payload: bytes) -> None:
        first, last = disposition.first, disposition.first if disposition.last is None else disposition.last
        links = list(self.links.values())
        for number in (after(first, index) for index in range(distance(first, last) + 1)):
            if disposition.role is SENDER:
                if delivered := self._second.pop(number, None):
                    delivered.known = self.history.tick()
            elif any(isinstance(link, Coordinator) and link.answer(number, disposition.state) for link in links):
                continue
            elif found := self._sent.pop(number, None):
                self.unconfirmed.pop(number, None)
                self._outcome(found[0], disposition.state)
            else:
                self.breach(f"an outcome of delivery {number}, which was not waited for")
        if disposition.role is RECEIVER and not disposition.settled:
            self.send(Disposition(SENDER, first, last, settled=True))

    def _outcome(self, sent: Sent, state: Any) -> None:
        sent.bound = now = self.history.tick()
        if provisional := isinstance(state, TransactionalState):
            state = state.outcome
        if provisional is not bool(sent.transaction):
            self.breach(f"{state} of {sent.id}, in a transaction: {provisional}")
        if isinstance(state, Accepted):
            sent.confirmed = None if provisional else now
        elif isinstance(state, Rejected) and reason(state.error)[0] == _NOT_FOUND:
            sent.returned, sent.return_code = now, _NO_ROUTE
        else:
            sent.refused = now
            self.history.texts.append(f"{getattr(state, 'error', state)}")

    def _ended(self, end: End, _payload: bytes) -> None:
        if self.opened.leaving is not None:
            self.answered(end)
            self.end(200, "")
        else:
            self.send(End())
            self.end(*reason(end.error if isinstance(end.error, Error) else None))

    _TABLE: ClassVar[dict[type[Composite], Callable[[Any, Any, bytes], None]]] = {
        Begin: _begun,
        Attach: _attached,
        Detach: _detached,
        Flow: _flowed,
        Transfer: _transferred,
        Disposition: _disposed,
        End: _ended,
    }


def _delivered(session: Session, consuming: Consuming, number: int, message: Read) -> Delivered:
    history, properties = session.history, message.properties
    exchange, key = message.went
    deaths = properties.headers.get("x-death", [])
    return Delivered(
        message.payload.partition(b"|")[0].decode("utf-8", "replace"),
        session.wire.connected.host,
        consuming.queue,
        session.opened,
        consuming,
        number,
        message.attempts > 0,
        exchange,
        key,
        properties,
        message.payload == body_of(properties.message_id or "?", len(message.payload)),
        history.tick(),
        history.clock(),
        history.draining,
        consuming.no_ack,
        tuple((death["queue"], death["reason"], death["count"]) for death in deaths),
        before=message.attempts,
    )
