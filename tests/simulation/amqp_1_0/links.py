"""The two kinds of links of a client, and their credit (part 2, section 2.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from services.common.message.amqp_1_0 import values as v
from services.gateway.protocols.amqp_1_0.performatives import (
    RECEIVER,
    SECOND,
    SENDER,
    SETTLED,
    UNSETTLED,
    Attach,
    Detach,
    Flow,
    Transfer,
)
from services.gateway.protocols.amqp_1_0.serial import after, distance
from services.gateway.protocols.amqp_1_0.termini import Source, Target
from tests.simulation.amqp_1_0.messages import read, reason, written
from tests.simulation.history import Consuming, Delivered, Drained, Sent
from tests.simulation.line import GoneError

if TYPE_CHECKING:
    from services.common.message.amqp_1_0.composite import Composite
    from tests.simulation.amqp_1_0.session import Session
    from tests.simulation.amqp_1_0.transactions import Local

Taker = Callable[["Receiver", Delivered], None]

SELECTOR_FILTER: Final = v.Symbol("apache.org:selector-filter:string")
_NO_LOCAL: Final = v.Symbol("apache.org:no-local-filter:list")
_LATE: Final = (1 << 32) - 3  # of a sender's count of deliveries, which goes round
_MOST: Final = 1 << 16  # bytes of a message in one frame
_HEAD: Final = 128  # bytes of a frame besides


class Link:
    """`theirs` is the broker's handle; `ending` when the client asked for its end, or saw it."""

    ROLE: bool

    def __init__(self, session: Session, name: str) -> None:
        self.session = session
        self.name = name
        self.handle = session.free_handle()
        self.theirs: int | None = None
        self.ending: int | None = None
        self.code, self.text = 0, ""
        self.closes = True  # when it hears that it has ended
        session.links[self.handle] = self

    @property
    def dead(self) -> bool:
        return self.ending is not None or self.session.dead

    async def _attach(self, **ends: Any) -> None:
        """Raises GoneError where the broker wants no such link: then a detach follows its attach (2.6.3)."""
        mode = SECOND if self.session.second else 0
        answer = await self.session.ask(Attach(self.name, self.handle, self.ROLE, rcv_settle_mode=mode, **ends), self)
        if not self._agreed(answer):
            await self.session.wait_until(lambda: self.dead)
            raise GoneError(self.code, self.text)

    def _agreed(self, attach: Attach) -> bool:
        return attach.target is not None

    async def detach(self, *, closed: bool = True) -> None:
        """Ends it, and waits for the answer."""
        if self.dead:
            return
        self.ending = self.session.history.tick()
        self.leave()
        await self.session.ask(Detach(self.handle, closed), self)

    async def part(self) -> None:
        """Its end when its client goes."""
        await self.detach()

    def leave(self) -> None:
        """The client has asked for its end."""

    def detached(self, detach: Detach) -> None:
        """The broker has ended it, by itself or as it was asked to."""
        if self.ending is None:
            self.code, self.text = reason(detach.error)
            self.session.history.texts.append(self.text)
            self.session.send(Detach(self.handle, self.closes))
            self.gone()
            self.session.unanswered(self)
        else:
            self.session.answered(detach, self)

    def gone(self) -> None:
        """The link is no more, without having been asked for its end."""
        self.ending = self.session.history.tick()

    def flow(self, flow: Flow) -> None:
        """The broker's word on credit."""

    def renew(self) -> None:
        """Gives credit anew, if it is time to."""


class Outgoing(Link):
    """A link by which the client sends; `count` is its first delivery-count."""

    ROLE = SENDER

    def __init__(self, session: Session, name: str, *, count: int) -> None:
        super().__init__(session, name)
        self._credit = 0
        self._count = count

    def flow(self, flow: Flow) -> None:
        """How many may be sent."""
        if flow.link_credit is not None:
            self._credit = flow.link_credit + distance(self._count, flow.delivery_count or 0)

    async def _has_room(self, frames: int) -> None:
        """Waits until a message of so many frames may be sent; raises GoneError."""
        session = self.session
        await session.wait_until(lambda: self.dead or (self._credit > 0 and session.room >= frames))
        if self.dead:
            raise GoneError(self.code, self.text)

    def _post(self, number: int, pieces: list[bytes], *, settled: bool, state: Composite | None = None) -> None:
        """A message, in as many frames as there are pieces."""
        first: dict[str, Any] = {"delivery_id": number, "delivery_tag": b"%d" % number, "message_format": 0}
        for index, piece in enumerate(pieces):
            more = index + 1 < len(pieces)
            its = {**first, "state": state} if not index else {}
            self.session.transfer(Transfer(self.handle, settled=settled, more=more, **its), piece)
        self._count, self._credit = after(self._count, 1), self._credit - 1


class Sender(Outgoing):
    """To an address. With `subject` it is an exchange's, and each message says its key."""

    def __init__(self, session: Session, name: str, address: str, *, subject: bool) -> None:
        super().__init__(session, name, count=0 if crc32(address.encode()) % 3 else _LATE)
        self.address = address
        self._subject = subject

    async def attach(self) -> None:
        """Raises GoneError."""
        await self._attach(source=Source(), target=Target(self.address), initial_delivery_count=self._count)

    async def send(self, sent: Sent, *, settled: bool, most: int = _MOST, part_of: Local | None = None) -> None:
        """A message, in frames of no more than so many bytes of it, once there is credit; raises GoneError."""
        session, message = self.session, written(sent, subject=self._subject)
        most = min(most, session.wire.largest - _HEAD)
        pieces = [message[at : at + most] for at in range(0, len(message), most)]
        await self._has_room(len(pieces))
        if part_of:
            part_of.posted(sent)
        number = session.begin(sent, self, settled=settled)
        self._post(number, pieces, settled=settled, state=part_of.state() if part_of else None)

    def gone(self) -> None:
        """What it has sent need not be heard of any more."""
        super().gone()
        self.session.abandon(self)


class Receiver(Link):
    """From a queue; `taker` settles deliveries. `limit` is what there is credit for, counted from the first."""

    ROLE = RECEIVER

    def __init__(self, session: Session, consuming: Consuming, taker: Taker, *, every: int = 0) -> None:
        """`every` is the credit that it gives anew when half of that is used; 0: it does not."""
        super().__init__(session, consuming.tag)
        self.consuming = consuming
        self.count = 0
        self.limit = 0
        self._taker = taker
        self._every = every
        self._drains = self._stops = self._twice = False
        self._stale = 0  # answers that may still come, of drains that were asked for twice
        self._unused = 0  # credit, of the last drain
        self._begun: Transfer | None = None
        self._pieces: list[bytes] = []

    @property
    def _source(self) -> Source | None:
        consuming = self.consuming
        chosen: dict[v.Symbol, v.Described] = {}
        if consuming.selector and not consuming.by_default:
            chosen[SELECTOR_FILTER] = v.Described(SELECTOR_FILTER, consuming.selector)
        if consuming.no_local:
            chosen[_NO_LOCAL] = v.Described(_NO_LOCAL, [])
        mode = "copy" if consuming.browses else None
        return Source(consuming.queue, distribution_mode=mode, filter=chosen or None)

    async def attach(self) -> None:
        """Raises GoneError."""
        consuming = self.consuming
        mode = SETTLED if consuming.no_ack else UNSETTLED
        await self._attach(snd_settle_mode=mode, source=self._source, target=Target())
        consuming.attached = self.session.history.tick()

    def _agreed(self, attach: Attach) -> bool:
        return attach.source is not None

    # -------------------------------------------------------------- credit

    def give(self, credit: int) -> None:
        """Credit for so many from now on."""
        self.limit = max(self.limit, self.count + credit)
        self.session.send(self._flow(self.limit - self.count))

    async def drain(self, credit: int, *, twice: bool) -> None:
        """So many as there are now: the broker says when it has no more (2.6.7), and may be asked twice."""
        self.limit = max(self.limit, self.count + credit)
        self._drains, self._twice = True, self._twice or twice
        flow, history = self._flow(self.limit - self.count, drain=True), self.session.history
        if twice:
            self.session.send(flow)
        drained = Drained(self.consuming, history.tick())
        await self.session.ask(flow, self)
        self._stale += twice
        drained.answered, drained.unused = history.tick(), self._unused
        history.drains.append(drained)

    async def stop(self) -> None:
        """Credit for no more: with the answer all has come that was on its way."""
        self._stops = True
        await self.session.ask(self._flow(0, echo=True), self)

    def _flow(self, credit: int, **more: bool) -> Flow:
        return self.session.flow(handle=self.handle, delivery_count=self.count, link_credit=credit, **more)

    def flow(self, flow: Flow) -> None:
        """The answer to a drain, or to an echo; who drains twice may be answered twice."""
        count, left = flow.delivery_count or 0, flow.link_credit or 0
        if self._drains and not left:
            if count != self.limit and self._stale:
                self._stale -= 1
                return
            if count != self.limit:
                self.session.breach(f"{self.name} drained up to {self.limit}, and was answered with {count}")
            self._unused = count - self.count
            self.count = self.limit = count
            self._drains = False
            self.session.answered(flow, self)
        elif self._stops:
            self.limit = self.limit if self._twice else count + left
            self._stops = False
            self.session.answered(None, self)

    # -------------------------------------------------------------- deliveries

    def transfer(self, transfer: Transfer, payload: bytes) -> None:
        """A frame of a delivery."""
        if self._begun is None:
            self._begin(transfer)
        self._begun = self._begun or transfer
        self._pieces.append(payload)
        if not transfer.more:
            begun, message = self._begun, b"".join(self._pieces)
            self._begun, self._pieces = None, []
            self._take(self.session.delivered(self.consuming, begun.delivery_id or 0, read(message)))

    def _begin(self, transfer: Transfer) -> None:
        self.session.comes(transfer)
        if self.count >= self.limit and not self.dead:
            self.session.breach(f"{self.name} was sent more than its credit, which was for {self.limit}")
        if bool(transfer.settled) is not self.consuming.no_ack:
            self.session.breach(f"{self.name} was sent a delivery with settled={transfer.settled}")
        self.count += 1

    def _take(self, delivered: Delivered) -> None:
        if self.ending is not None:
            # It is for others, and they may have had it since the client has asked for the link's end.
            self._give_back([delivered], self.ending)
            return
        self._taker(self, delivered)

    def renew(self) -> None:
        """When half of its credit is used."""
        waits = self.consuming.attached is None or self.dead or self._drains or self._stops
        if not waits and self.limit - self.count < (self._every + 1) // 2:
            self.give(self._every)

    def leave(self) -> None:
        """What it holds is for others from now on."""
        self.consuming.ending = self.ending
        self._give_back(self._held(), self.ending)

    def gone(self) -> None:
        """Others may have had what it held since it was delivered."""
        super().gone()
        self.consuming.ending = self.consuming.ending or self.ending
        self.consuming.cancelled_by_broker = self.consuming.attached is not None and not self.consuming.stolen
        if self.consuming.stolen:
            self.session.never_heard(self.consuming)
        for delivered in self._held():
            self._give_back([delivered], delivered.at)

    def _give_back(self, deliveries: list[Delivered], at: int | None) -> None:
        for each in deliveries:
            self.session.unsettled.pop(each.tag, None)
            if not each.no_ack:
                each.settled_as, each.settled = "requeue", at

    def _held(self) -> list[Delivered]:
        return [each for each in self.session.unsettled.values() if each.consumer is self.consuming]
