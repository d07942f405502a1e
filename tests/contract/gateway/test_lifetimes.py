"""Queues that links of AMQP 1.0 make, and until when they are there, whatever becomes of services meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from unittest.mock import patch

import pytest
import pytest_asyncio
from pamqp import commands

from services.common.clients.leases import Leases
from services.common.errors import NotFound, Unavailable
from services.common.message.amqp_1_0 import values as v
from services.common.topology.slots import SlotName
from services.gateway.protocols.amqp_1_0.performatives import Disposition, Transfer
from services.gateway.protocols.amqp_1_0.states import Accepted
from services.queue.machine import use
from services.rpc.router_pb2 import ChangeReply, ChangeRequest
from tests.conformance.amqp_1_0.test_lifetimes import asked
from tests.contract.gateway.test_failover import replace_owner
from tests.support.amqp_1_0_client import Client
from tests.support.amqp_client import AmqpClient
from tests.support.broker_house import BrokerHouse, die

Basic, Confirm = commands.Basic, commands.Confirm

CLOSE, LINKS, MESSAGES, LINKS_OR_MESSAGES = 0x2B, 0x2C, 0x2D, 0x2E


@pytest_asyncio.fixture(loop_scope="session")
async def house(tmp_path: Path) -> AsyncIterator[BrokerHouse]:
    """A broker of its own, of which each service can be taken away."""
    async with BrokerHouse(tmp_path, gateways=2, queues=1) as house:
        yield house


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who comes after an owner waits for consumers of the former a second."""
    monkeypatch.setattr(use, "_AWAITED_MS", 1000)


@pytest_asyncio.fixture(loop_scope="session")
async def maker() -> AsyncIterator[Client]:
    """A client of AMQP 1.0."""
    client = Client()
    yield client
    client.abort()


async def made(house: BrokerHouse, client: Client, code: int, *, sends: bool = True) -> str:
    """The client has a link that has made a queue: gives its name."""
    await client.open(house.ports[0], "guest", "guest", "/")
    attached = await client.makes(asked(v.Described(v.ULong(code), []), sends=sends))
    name: str = attached.target.address if sends else attached.source.address
    return name


def is_there(house: BrokerHouse, name: str) -> bool:
    return SlotName("/", name) in house.topology.by_name


async def gone(house: BrokerHouse, name: str) -> None:
    """Returns when it is."""
    async with asyncio.timeout(60):
        while is_there(house, name):
            await asyncio.sleep(0.02)


async def drained(client: AmqpClient, name: str, tag: int = 1) -> None:
    """Takes its message, the client's first, and settles it."""
    delivery = await client.get(name)
    assert delivery is not None
    client.ack(tag)


async def kill_owner(house: BrokerHouse) -> None:
    """The only queue process is gone without a word; another one comes, which waits for its leases to run out."""
    with patch.object(Leases, "stop", die):
        await house.queues.pop("queue-1").stop()
    await house.start_queue("queue-2")


# ------------------------------------------------------------------ what ends the link, and what happens then


async def detaches(_house: BrokerHouse, client: Client) -> None:
    await client.detaches()


async def closes(_house: BrokerHouse, client: Client) -> None:
    await client.close()


async def is_lost(_house: BrokerHouse, client: Client) -> None:
    client.abort()


async def new_owner(house: BrokerHouse, client: Client) -> None:
    await client.detaches()
    await replace_owner(house)


async def new_owner_first(house: BrokerHouse, client: Client) -> None:
    await replace_owner(house)
    await client.detaches()


async def owner_dies(house: BrokerHouse, client: Client) -> None:
    await client.detaches()
    await kill_owner(house)


async def owner_dies_first(house: BrokerHouse, client: Client) -> None:
    await kill_owner(house)
    await client.detaches()


async def new_router(house: BrokerHouse, client: Client) -> None:
    await client.detaches()
    await house.stop_router()
    await house.start_router()


async def new_router_first(house: BrokerHouse, client: Client) -> None:
    await house.stop_router()
    await house.start_router()
    await client.detaches()


Ends = Callable[[BrokerHouse, Client], Awaitable[None]]
ENDS: list[Ends] = [
    detaches,
    closes,
    is_lost,
    new_owner,
    new_owner_first,
    owner_dies,
    owner_dies_first,
    new_router,
    new_router_first,
]


@pytest.mark.parametrize("ends", ENDS)
async def test_links(house: BrokerHouse, maker: Client, ends: Ends) -> None:
    """A consumer keeps it, who goes on getting messages; with the last it goes, though it is not empty."""
    name = await made(house, maker, LINKS)
    client = await house.connect(1)
    await client.consume(name, "c")
    await maker.sends()
    await client.bodies(1)
    await ends(house, maker)
    client.publish(b"more", name)
    await client.bodies(2)
    await client.call(1, Basic.Cancel(consumer_tag="c"), Basic.CancelOk)
    await gone(house, name)


@pytest.mark.parametrize("code", [MESSAGES, LINKS_OR_MESSAGES])
@pytest.mark.parametrize("ends", ENDS)
async def test_messages(house: BrokerHouse, maker: Client, ends: Ends, code: int) -> None:
    """The last one takes it along, when it is settled."""
    name = await made(house, maker, code)
    await maker.sends()
    await ends(house, maker)
    client = await house.connect(1)
    await drained(client, name)
    await gone(house, name)


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("sends", [True, False])
async def test_close(house: BrokerHouse, maker: Client, ends: Ends, sends: bool) -> None:
    """It goes with its link at once, whatever is in it."""
    name = await made(house, maker, CLOSE, sends=sends)
    client = await house.connect(1)
    client.publish(b"left", name)
    assert is_there(house, name)
    await ends(house, maker)
    await gone(house, name)


@pytest.mark.parametrize("code", [LINKS, MESSAGES, LINKS_OR_MESSAGES])
async def test_of_a_receiver(broker: BrokerHouse, maker: Client, code: int) -> None:
    """Its own link keeps it, however empty it is; then nothing does."""
    name = await made(broker, maker, code, sends=False)
    client = await broker.connect(1)
    maker.takes(1)
    client.publish(b"m", name)
    delivered = await maker.next(Transfer)
    maker.settles(delivered.delivery_id)
    observer = await broker.connect(1)
    await observer.declare(name, passive=True)
    await maker.detaches()
    await gone(broker, name)


class Held:
    """The router, as the only queue process asks it for changes: each waits until `go` says how it ends."""

    def __init__(self, house: BrokerHouse, monkeypatch: pytest.MonkeyPatch) -> None:
        self.registry = house.queues["queue-1"]._host.registry
        self.asked, self._go, self._ends = asyncio.Event(), asyncio.Event(), "done"
        topology = house.queues["queue-1"]._host.topology
        self._change = topology.change
        monkeypatch.setattr(topology, "change", self._held)

    async def _held(self, request: ChangeRequest) -> ChangeReply:
        self.asked.set()
        await self._go.wait()
        ends, self._ends = self._ends, "done"
        if ends == "refused":
            raise Unavailable("no router has answered")
        reply: ChangeReply = await self._change(request)
        if ends == "unheard":  # and the next router is asked
            raise NotFound("no queue")
        return reply

    async def waiting(self, queue_id: int, count: int) -> None:
        """Returns when so many publishers, of a gateway each, wait for what becomes of the queue."""
        async with asyncio.timeout(60):
            while not (awaited := self.registry.awaited(queue_id)) or len(awaited.waiting) < count:
                await asyncio.sleep(0.02)

    def go(self, ends: str) -> None:
        self._ends = ends
        self._go.set()


@pytest.fixture
def held(house: BrokerHouse, monkeypatch: pytest.MonkeyPatch) -> Held:
    """The router, held."""
    return Held(house, monkeypatch)


@pytest.mark.parametrize("ends", ["done", "refused", "unheard"])
@pytest.mark.parametrize("code", [MESSAGES, LINKS_OR_MESSAGES])
async def test_a_publish_to_one_that_goes(house: BrokerHouse, maker: Client, held: Held, code: int, ends: str) -> None:
    """It waits for what becomes of the queue, and is answered then: it is in the queue if that stays."""
    name = await made(house, maker, code)
    queue_id = house.topology.by_name[SlotName("/", name)].id
    sender = Client()
    await sender.open(house.ports[0], "guest", "guest", "/")
    await sender.sends_to(name)
    client = await house.connect(1)
    await client.call(1, Confirm.Select(), Confirm.SelectOk)
    await maker.sends()
    await maker.detaches()
    await drained(client, name)
    await held.asked.wait()
    client.publish(b"late", name)
    sender.transfers()
    await held.waiting(queue_id, 2)
    held.go(ends)
    await client.confirmed(1, seconds=60)
    assert isinstance((await sender.next(Disposition)).state, Accepted)
    if ends == "refused":
        await drained(client, name, 2)
        await drained(client, name, 3)
    await gone(house, name)
    sender.abort()
