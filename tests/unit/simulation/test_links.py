"""What clients of AMQP 1.0 see of a broker that keeps to the protocol, and of one that does not."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from services.common.message.amqp_1_0.composite import Composite
from services.gateway.protocols.amqp_1_0.performatives import (
    RECEIVER,
    SENDER,
    Attach,
    Begin,
    Detach,
    Disposition,
    Error,
    Flow,
    Transfer,
)
from services.gateway.protocols.amqp_1_0.states import Accepted, Rejected
from services.gateway.protocols.amqp_1_0.termini import Source, Target
from tests.simulation.amqp_1_0.links import Receiver, Sender
from tests.simulation.amqp_1_0.messages import read, written
from tests.simulation.amqp_1_0.session import Session
from tests.simulation.history import Connected, Consuming, Delivered, History, Opened, Sent
from tests.simulation.line import GoneError


class Broker:
    """Says what a test has it say, to one session."""

    def __init__(self, *, second: bool = False, window: int = 100, number: int = 1) -> None:
        self.history = history = History(lambda: 0.0)
        self.connected = Connected(0, "l0", "gateway-1", "/", history.tick())
        self.changed = asyncio.Event()
        self.dead, self.largest = False, 1 << 16
        self.heard: list[Composite] = []
        self.session = Session(self, 0, Opened(number, "session", self.connected), second=second, window=window)  # type: ignore[arg-type]
        self.session.room = 100

    def send(self, _channel: int, what: Composite, _payload: bytes = b"") -> None:
        self.heard.append(what)

    def says(self, *what: Composite, payload: bytes = b"") -> None:
        """All of it in one read."""
        for each in what:
            self.session.take(each, payload)
        self.session.caught_up()

    async def asked(self, work: Coroutine[Any, Any, Any], *answers: Composite) -> None:
        """The client does something, and is answered."""
        doing = asyncio.create_task(work)
        await asyncio.sleep(0)
        for answer in answers:
            self.says(answer)
        await doing

    async def receiver(self, credit: int, *, settled: bool = False) -> Receiver:
        """One that settles nothing by itself."""
        consuming = Consuming("/", "q", "t", self.session.opened, settled, exclusive=False, asked=1)
        receiver = Receiver(self.session, consuming, lambda _receiver, _delivered: None)
        await self.asked(receiver.attach(), Attach("t", 0, SENDER, source=Source("q")))
        receiver.give(credit)
        return receiver

    async def sender(self, credit: int) -> Sender:
        sender = Sender(self.session, "to q", "q", subject=False)
        await self.asked(sender.attach(), Attach("to q", 1, RECEIVER, target=Target("q")), _flow(1, 0, credit))
        return sender

    def delivers(self, *numbers: int, **more: Any) -> None:
        """In one read."""
        for number in numbers:
            transfer = Transfer(0, number, b"t", 0, settled=False, **more)
            self.session.take(transfer, written(sent(f"m{number}"), subject=False))
        self.session.caught_up()

    @property
    def deliveries(self) -> list[Delivered]:
        return self.history.deliveries


def sent(name: str) -> Sent:
    opened = Opened(0, "session", Connected(0, "l0", "gateway-1", "/", 1))
    return Sent(name, "/", "", "q", {"h": 1}, True, 3, 5000, True, False, 20, opened, 0, 0, 0.0)


def _flow(handle: int, count: int, credit: int, *, drain: bool = False) -> Flow:
    return Flow(0, 100, 0, 100, handle, count, credit, drain=drain)


# ------------------------------------------------------------------ messages


def test_messages() -> None:
    """A message is read as it was written."""
    properties, payload, attempts, went = read(written(sent("m"), subject=True))
    assert (properties.message_id, properties.priority, properties.expiration) == ("m", 3, "5000")
    assert (properties.delivery_mode, properties.headers) == (2, {"h": 1})
    assert (payload[:2], len(payload), attempts, went) == (b"m|", 20, 0, (None, None))


# ------------------------------------------------------------------ receiving


async def test_credit() -> None:
    """What comes within credit is right; one more is a breach."""
    broker = Broker()
    await broker.receiver(2)
    broker.delivers(0, 1)
    assert broker.history.breaches == []
    broker.delivers(2)
    assert len(broker.history.breaches) == 1
    assert [each.id for each in broker.deliveries] == ["m0", "m1", "m2"]


async def test_ids() -> None:
    """Deliveries of a session are numbered one after the other."""
    broker = Broker()
    await broker.receiver(5)
    broker.delivers(0, 2)
    assert len(broker.history.breaches) == 1


async def test_window() -> None:
    """No more frames come than the session takes; it says so anew when half of them have come."""
    broker = Broker(window=3)
    await broker.receiver(9)
    broker.delivers(0, 1)
    assert broker.heard[-1] == Flow(2, 3, 0, (1 << 31) - 1)
    broker.delivers(2, 3, 4)
    assert broker.history.breaches == []
    broker.delivers(5, 6, 7, 8)
    assert len(broker.history.breaches) == 1


async def test_pieces() -> None:
    """A delivery in several frames is one, and takes credit for one."""
    broker = Broker()
    receiver = await broker.receiver(1)
    whole = written(sent("m"), subject=False)
    broker.says(Transfer(0, 0, b"t", 0, settled=False, more=True), payload=whole[:30])
    broker.says(Transfer(0), payload=whole[30:])
    assert [(each.id, each.intact) for each in broker.deliveries] == [("m", True)]
    assert (receiver.count, broker.history.breaches) == (1, [])


@pytest.mark.parametrize(("count", "breaches"), [(10, 0), (4, 1)])
async def test_drain(count: int, breaches: int) -> None:
    """A drain uses all credit up, and ends with the answer: then there is none left."""
    broker = Broker()
    receiver = await broker.receiver(3)
    doing = asyncio.create_task(receiver.drain(10, twice=False))
    await asyncio.sleep(0)
    broker.delivers(0)
    broker.says(_flow(0, count, 0, drain=True))
    await doing
    assert len(broker.history.breaches) == breaches
    broker.delivers(1)
    assert len(broker.history.breaches) == breaches + 1


async def test_drains_twice() -> None:
    """Who asks twice may be answered twice: the second answer is none of the next drain."""
    broker = Broker()
    receiver = await broker.receiver(3)
    await broker.asked(receiver.drain(10, twice=True), _flow(0, 10, 0, drain=True))
    doing = asyncio.create_task(receiver.drain(10, twice=False))
    await asyncio.sleep(0)
    broker.says(_flow(0, 10, 0, drain=True))
    await asyncio.sleep(0)
    assert not doing.done()
    broker.says(_flow(0, 20, 0, drain=True))
    await doing
    assert broker.history.breaches == []


async def test_stop() -> None:
    """Credit that was taken back is not used after the answer."""
    broker = Broker()
    receiver = await broker.receiver(5)
    doing = asyncio.create_task(receiver.stop())
    await asyncio.sleep(0)
    broker.delivers(0)
    broker.says(_flow(0, 1, 0))
    await doing
    assert broker.history.breaches == []
    broker.delivers(1)
    assert len(broker.history.breaches) == 1


async def test_what_is_held_is_given_back() -> None:
    """What a link holds, and what comes until its end is answered, is others' from when the client asks for it."""
    broker = Broker()
    receiver = await broker.receiver(5)
    broker.delivers(0)
    doing = asyncio.create_task(receiver.detach())
    await asyncio.sleep(0)
    broker.delivers(1)
    broker.says(Detach(0, True))
    await doing
    assert [(each.settled_as, each.settled) for each in broker.deliveries] == [("requeue", receiver.ending)] * 2


async def test_settling() -> None:
    """An outcome is known once a later answer has come; of who settles second once the broker has settled."""
    broker = Broker()
    receiver = await broker.receiver(5)
    broker.delivers(0)
    broker.session.settle("ack", 0)
    assert broker.heard[-1] == Disposition(RECEIVER, 0, 0, settled=True, state=Accepted())
    assert broker.deliveries[0].known is None
    await broker.asked(receiver.drain(1, twice=False), _flow(0, 5, 0, drain=True))
    assert broker.deliveries[0].known is not None


async def test_settling_second() -> None:
    """Who settles second says what it wants, and the broker settles."""
    broker = Broker(second=True)
    await broker.receiver(5)
    broker.delivers(0)
    broker.session.settle("ack", 0)
    assert broker.heard[-1] == Disposition(RECEIVER, 0, 0, settled=False, state=Accepted())
    assert broker.deliveries[0].known is None
    broker.says(Disposition(SENDER, 0, settled=True))
    assert broker.deliveries[0].known is not None


async def test_refused() -> None:
    """A link that the broker does not want is gone, with the reason."""
    broker = Broker()
    sender = Sender(broker.session, "to q", "q", subject=False)
    error = Error("amqp:not-found", "no such queue")
    with pytest.raises(GoneError, match="404 amqp:not-found no such queue"):
        await broker.asked(sender.attach(), Attach("to q", 1, RECEIVER), Detach(1, True, error))
    assert broker.session.links == {}
    assert broker.heard[-1] == Detach(0, True)


# ------------------------------------------------------------------ sending


async def test_outcomes() -> None:
    """Accepted is confirmed, nowhere to go is returned, else it was refused; only what was sent has one."""
    broker = Broker()
    sender = await broker.sender(9)
    messages = [sent(name) for name in "abc"]
    for each in messages:
        await sender.send(each, settled=False)
    broker.says(Disposition(RECEIVER, 0, settled=True, state=Accepted()))
    broker.says(Disposition(RECEIVER, 1, settled=True, state=Rejected(Error("amqp:not-found", ""))))
    broker.says(Disposition(RECEIVER, 2, settled=True, state=Rejected(Error("amqp:resource-limit-exceeded", ""))))
    found = [(each.confirmed, each.returned, each.refused) for each in messages]
    assert [[at is not None for at in each] for each in found] == [[n == m for n in range(3)] for m in range(3)]
    assert broker.session.unconfirmed == {}
    broker.says(Disposition(RECEIVER, 2, settled=True, state=Accepted()))
    assert len(broker.history.breaches) == 1


async def test_waiting_for_credit() -> None:
    """Nothing is sent without credit."""
    broker = Broker()
    sender = await broker.sender(0)
    doing = asyncio.create_task(sender.send(sent("m"), settled=False))
    await asyncio.sleep(0)
    assert not any(isinstance(each, Transfer) for each in broker.heard)
    broker.says(_flow(1, 0, 1))
    await doing
    assert isinstance(broker.heard[-1], Transfer)


async def test_settled_ones_are_bound_when_their_link_has_ended() -> None:
    """Of what is sent settled nothing is heard, but that the link's end waits for it."""
    broker = Broker()
    sender, message = await broker.sender(9), sent("m")
    await sender.send(message, settled=True)
    assert message.bound is None
    await broker.asked(sender.detach(), Detach(1, True))
    assert message.bound is not None


async def test_a_session_begins() -> None:
    """The broker's window is what may be sent."""
    broker = Broker()
    await broker.asked(broker.session.open(), Begin(0, 0, 7, 100))
    assert broker.session.room == 7


async def test_numbers_go_round() -> None:
    """Ids of deliveries and the window are numbers of 32 bits."""
    broker = Broker(number=0)
    sender = await broker.sender(99)
    messages = [sent(f"m{number}") for number in range(9)]
    for each in messages:
        await sender.send(each, settled=False)
    numbers = [each.delivery_id for each in broker.heard if isinstance(each, Transfer)]
    assert numbers == [*range((1 << 32) - 5, 1 << 32), 0, 1, 2, 3]
    broker.says(Disposition(RECEIVER, numbers[0], numbers[-1], settled=True, state=Accepted()))
    assert all(each.confirmed for each in messages)
    broker.says(Flow(4, 100, 0, 100))
    assert broker.session.room == 100
    broker.says(Flow(2, 100, 0, 100))
    assert broker.session.room == 98
