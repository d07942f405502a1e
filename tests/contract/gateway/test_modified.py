"""AMQP 1.0, part 3, section 3.4.5: what receivers say of messages that they give back, through a whole broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import pytest_asyncio
from pamqp import commands

from services.common.message.amqp_1_0 import added, composite
from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.composite import Composite
from services.common.message.amqp_1_0.decode import decode_at
from services.common.message.amqp_1_0.encode import encode
from services.common.message.amqp_1_0.sections import (
    APPLICATION_PROPERTIES,
    HEADER,
    MESSAGE_ANNOTATIONS,
    VALUE,
    Header,
    sections,
)
from services.gateway.protocols.amqp_1_0.performatives import Attach, Detach, Transfer
from services.gateway.protocols.amqp_1_0.states import Accepted, Modified, Rejected
from services.gateway.protocols.amqp_1_0.termini import Source
from services.gateway.protocols.amqp_1_0.transactional import Coordinator, Declare, Discharge, TransactionalState
from tests.contract.gateway.test_failover import replace_owner
from tests.contract.gateway.test_settling import ready
from tests.support.amqp_1_0_client import Client
from tests.support.amqp_1_0_playbook import data
from tests.support.broker_house import BrokerHouse

CONTROL = 9


def noted(**said: Any) -> dict[str, Any]:
    """Annotations, by names with which no others clash."""
    return {v.Symbol(f"x-opt-{name}"): value for name, value in said.items()}


def section(code: int, value: Any) -> bytes:
    return encode(v.Described(v.ULong(code), value))


def told(message: bytes, code: int) -> Any:
    """What a section of a message says, None where it is not there."""
    found = {each.code: each.value for each in sections(message)}
    return decode_at(message, found[code])[0] if code in found else None


def annotations(message: bytes) -> Any:
    return told(message, MESSAGE_ANNOTATIONS) or {}


def attempts(message: bytes) -> int:
    values = told(message, HEADER)
    return (composite.read(Header, values).delivery_count or 0) if values else 0


async def nothing_comes(client: Client, seconds: float = 0.3) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(seconds):
            await client.next(Transfer)


@pytest_asyncio.fixture(loop_scope="session")
async def house(tmp_path: Path) -> AsyncIterator[BrokerHouse]:
    """A broker of its own, with one queue process that can be taken away."""
    async with BrokerHouse(tmp_path, gateways=1, queues=1) as house:
        yield house


async def queue(broker: BrokerHouse, name: str, **options: Any) -> None:
    await (await broker.connect()).declare(name, durable=True, **options)


Open: TypeAlias = Callable[..., Awaitable[Client]]


@pytest_asyncio.fixture(loop_scope="session")
async def attached() -> AsyncIterator[Open]:
    """Opens a client at a port that receives from a queue, or, with `sends`, sends to it."""
    opened: list[Client] = []

    async def open_one(port: int, name: str, *, sends: bool = False) -> Client:
        client = Client()
        opened.append(client)
        await client.open(port, "guest", "guest", "/")
        assert await (client.sends_to if sends else client.receives_from)(name) == ""
        if not sends:
            client.takes(10)
        return client

    yield open_one
    for client in opened:
        client.abort()


async def test_annotations(broker: BrokerHouse, clients: list[Client], name: str) -> None:
    """They are merged into the message's own, those said later onto those said before, and come with it to anybody."""
    await queue(broker, name)
    sender, other = clients
    await sender.sends_to(name)
    mine = section(MESSAGE_ANNOTATIONS, noted(mine=1, why="none"))
    assert await sender.sends(composite.write(Header(durable=True)) + mine + data()) == Accepted()
    assert await other.receives_from(name) == ""
    other.takes(10)
    delivery, message = await other.delivered()
    assert annotations(message) == noted(mine=1, why="none")
    other.settles(delivery.delivery_id, Modified(delivery_failed=True, message_annotations=noted(why="late", by="me")))
    delivery, message = await other.delivered()
    assert (annotations(message), attempts(message)) == (noted(mine=1, why="late", by="me"), 1)
    other.settles(delivery.delivery_id, Modified(message_annotations=noted(why="later")))
    delivery, message = await other.delivered()
    assert (annotations(message), attempts(message)) == (noted(mine=1, why="later", by="me"), 1)
    await other.detaches()
    assert await sender.receives_from(name) == ""
    sender.takes(1)
    _, message = await sender.delivered()
    assert annotations(message) == noted(mine=1, why="later", by="me")
    assert message.endswith(data())


async def test_what_clients_of_0_9_1_see(broker: BrokerHouse, clients: list[Client], name: str) -> None:
    """Those whose names begin with "x-" are headers, as of what was published with them."""
    await queue(broker, name)
    client, _ = clients
    await client.sends_to(name)
    await client.sends(section(APPLICATION_PROPERTIES, {"n": v.UInt(1)}) + data(b"new"))
    await client.receives_from(name)
    client.takes(1)
    delivery, _ = await client.delivered()
    said = {**noted(why="late"), v.Symbol("unseen"): True}
    client.settles(delivery.delivery_id, Modified(message_annotations=said))
    await client.detaches()
    old = await broker.connect()
    got = await old.get(name, no_ack=True)
    assert got is not None
    assert (got.body, got.properties.headers) == (b"new", {"x-opt-why": "late", "n": 1})


async def test_what_was_published_over_0_9_1(broker: BrokerHouse, clients: list[Client], name: str) -> None:
    """It has annotations from then on, and the headers that it had."""
    await queue(broker, name)
    old = await broker.connect()
    await old.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    old.publish(b"old", name, headers={"n": 1, "x-theirs": "a"}, delivery_mode=2)
    await old.confirmed(1)
    client = clients[1]
    await client.receives_from(name)
    client.takes(10)
    for number in (1, 2):
        delivery, message = await client.delivered()
        said = {**noted(n=number), v.Symbol("x-theirs"): "b", v.Symbol(f"seen-{number}"): None}
        client.settles(delivery.delivery_id, Modified(message_annotations=said))
    delivery, message = await client.delivered()
    assert annotations(message) == {**noted(n=2), "x-theirs": "b", "seen-1": None, "seen-2": None}
    assert told(message, APPLICATION_PROPERTIES) == {"n": 1, "x-theirs": "a"}
    await client.detaches()
    got = await old.get(name, no_ack=True)
    assert got is not None
    headers = dict(got.properties.headers)
    assert headers.pop(added.HEADER)
    assert (got.body, headers) == (b"old", {"n": 1, "x-theirs": "a", "x-opt-n": 2})


async def test_a_dead_letter(broker: BrokerHouse, clients: list[Client], name: str) -> None:
    """The annotations are the message's: it has them in the next queue as well."""
    await queue(broker, f"{name}-dead")
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{name}-dead"}
    await queue(broker, name, arguments=to_dead)
    client, other = clients
    await client.sends_to(name)
    await client.sends()
    await client.receives_from(name)
    client.takes(2)
    delivery, _ = await client.delivered()
    client.settles(delivery.delivery_id, Modified(message_annotations=noted(why="late")))
    delivery, _ = await client.delivered()
    client.settles(delivery.delivery_id, Rejected())
    await other.receives_from(f"{name}-dead")
    other.takes(1)
    _, message = await other.delivered()
    assert annotations(message).items() >= noted(why="late").items()
    assert "x-death" in annotations(message)


async def test_undeliverable_here(broker: BrokerHouse, clients: list[Client], attached: Open, name: str) -> None:
    """The link is not given the message again, and what comes behind it; another link, at another gateway, is."""
    await queue(broker, name)
    client, other = clients
    await client.sends_to(name)
    await client.sends(data(b"1"))
    await client.sends(data(b"2"))
    mine = await attached(broker.ports[0], name)
    deliveries = [await mine.delivered() for _ in range(2)]
    assert [message for _, message in deliveries] == [data(b"1"), data(b"2")]
    mine.settles(deliveries[0][0].delivery_id, Modified(True, True, noted(why="not mine")))
    await nothing_comes(mine)
    await client.sends(data(b"3"))
    _, message = await mine.delivered()
    assert message == data(b"3")
    await other.receives_from(name)
    other.takes(1)
    delivery, message = await other.delivered()
    assert (annotations(message), attempts(message)) == (noted(why="not mine"), 1)
    other.settles(delivery.delivery_id, Modified(undeliverable_here=True))
    await nothing_comes(other)
    await nothing_comes(mine, 0.1)
    assert await ready(await broker.connect(), name) == 1
    await other.detaches()
    await other.receives_from(name)  # another link, of the same name
    other.takes(1)
    _, message = await other.delivered()
    assert message.endswith(data(b"1"))


async def test_in_a_transaction(broker: BrokerHouse, clients: list[Client], attached: Open, name: str) -> None:
    """Part 4, section 4.4.2: what is said in it counts when it is committed, and not where it is rolled back."""
    await queue(broker, name)
    client, _ = clients
    await client.sends_to(name)
    await client.sends()
    mine = await attached(broker.ports[0], name)
    control = Attach("control", CONTROL, False, source=Source(), target=Coordinator(), initial_delivery_count=0)
    await mine.makes(control)
    for fail, expected in ((True, {}), (False, noted(why="late"))):
        delivery, _ = await mine.delivered()
        txn = (await mine.sends(_asks(Declare()))).txn_id
        mine.settles(delivery.delivery_id, TransactionalState(txn, Modified(False, True, noted(why="late"))))
        assert await mine.sends(_asks(Discharge(txn, fail))) == Accepted()
        if fail:
            continue
        await nothing_comes(mine)
        other = await attached(broker.ports[1], name)
        _, message = await other.delivered()
        assert annotations(message) == expected


async def test_of_too_many_in_a_transaction(
    broker: BrokerHouse, clients: list[Client], attached: Open, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not committed, and says why; what it was to settle is there, without annotations."""
    monkeypatch.setattr("services.gateway.sessions.transaction._MOST_ANNOTATED", 1)
    await queue(broker, name)
    client, _ = clients
    await client.sends_to(name)
    for _ in range(2):
        await client.sends()
    mine = await attached(broker.ports[0], name)
    deliveries = [(await mine.delivered())[0].delivery_id for _ in range(2)]
    control = Attach("control", CONTROL, False, source=Source(), target=Coordinator(), initial_delivery_count=0)
    await mine.makes(control)
    txn = (await mine.sends(_asks(Declare()))).txn_id
    for delivery in deliveries:
        mine.settles(delivery, TransactionalState(txn, Modified(False, False, noted(why="late"))))
    refused = await mine.sends(_asks(Discharge(txn, False)))
    assert refused.error.condition == "amqp:transaction:rollback"
    assert "annotations in a transaction" in refused.error.description
    mine.abort()
    other = await attached(broker.ports[1], name)
    for _ in range(2):
        _, message = await other.delivered()
        assert annotations(message) == {}


def _asks(what: Composite) -> bytes:
    return b"\x00\x53" + bytes((VALUE,)) + composite.write(what)


@pytest.mark.parametrize("how", ["at once", "gathered"])
async def test_too_much(broker: BrokerHouse, clients: list[Client], attached: Open, name: str, how: str) -> None:
    """More than a message may gather ends the link, which is told why; the message is there, without it."""
    await queue(broker, name)
    client, other = clients
    await client.sends_to(name)
    await client.sends()
    mine = await attached(broker.ports[0], name)
    delivery, _ = await mine.delivered()
    if how == "gathered":
        mine.settles(delivery.delivery_id, Modified(message_annotations=noted(a="x" * (added.MOST - 100))))
        delivery, _ = await mine.delivered()
    mine.settles(
        delivery.delivery_id,
        Modified(message_annotations=noted(b="y" * (added.MOST - 100 if how == "gathered" else added.MOST))),
    )
    detach = await mine.next(Detach)
    assert detach.error.condition == "amqp:resource-limit-exceeded"
    assert f"may gather {added.MOST}" in detach.error.description
    await other.receives_from(name)
    other.takes(1)
    _, message = await other.delivered()
    assert annotations(message).keys() == ({"x-opt-a"} if how == "gathered" else set())


async def test_names_that_are_none(broker: BrokerHouse, clients: list[Client], attached: Open, name: str) -> None:
    """Section 3.2.10: the link ends, and nothing else does."""
    await queue(broker, name)
    client, _ = clients
    await client.sends_to(name)
    await client.sends()
    mine = await attached(broker.ports[0], name)
    delivery, _ = await mine.delivered()
    mine.settles(delivery.delivery_id, Modified(message_annotations={v.UInt(1): "a"}))
    assert (await mine.next(Detach)).error.condition == "amqp:decode-error"
    assert await mine.receives_from(name) == ""


async def two_delivered(house: BrokerHouse, attached: Open) -> tuple[Client, int, int]:
    """Persistent messages of a durable queue, and who has them."""
    await queue(house, "q")
    client = await attached(house.ports[0], "q")
    sender = await attached(house.ports[0], "q", sends=True)
    for body in (b"1", b"2"):
        await sender.sends(composite.write(Header(durable=True)) + data(body))
    first, second = [(await client.delivered())[0].delivery_id for _ in range(2)]
    return client, first, second


async def test_the_next_owner(house: BrokerHouse, attached: Open) -> None:
    """It knows what was said, of persistent messages in durable queues, and what is not for a link that lives."""
    client, first, second = await two_delivered(house, attached)
    client.settles(first, Modified(True, True, noted(why="late")))
    client.settles(second, Modified(True, False, noted(why="again")))
    _, message = await client.delivered()
    assert (annotations(message), message.endswith(data(b"2"))) == (noted(why="again"), True)
    await asyncio.sleep(0.2)
    await replace_owner(house)
    await nothing_comes(client, 1)
    other = await attached(house.ports[0], "q")
    _, message = await other.delivered()
    assert (annotations(message), message.endswith(data(b"1"))) == (noted(why="late"), True)
    client.abort()
    _, message = await other.delivered()
    assert annotations(message) == noted(why="again")


async def test_without_an_owner(house: BrokerHouse, attached: Open) -> None:
    """What is said between two owners counts at the next."""
    client, first, second = await two_delivered(house, attached)
    await house.queues.pop("queue-1").stop()
    await asyncio.sleep(0.2)
    client.settles(first, Modified(True, False, noted(why="late")))
    client.settles(second, Modified(True, True, noted(why="never")))
    await asyncio.sleep(0.2)
    await house.start_queue("queue-2")
    _, message = await client.delivered()
    assert (annotations(message), message.endswith(data(b"1"))) == (noted(why="late"), True)
    await nothing_comes(client)
    other = await attached(house.ports[0], "q")
    _, message = await other.delivered()
    assert (annotations(message), message.endswith(data(b"2"))) == (noted(why="never"), True)


@pytest.mark.parametrize("leaves", [True, False])
async def test_what_the_owner_did_not_hear(house: BrokerHouse, attached: Open, leaves: bool) -> None:
    """What is on its way as the owner dies, or hands over, counts at the next."""
    await queue(house, "q")
    client = await attached(house.ports[0], "q")
    sender = await attached(house.ports[0], "q", sends=True)
    await sender.sends(composite.write(Header(durable=True)) + data(b"1"))
    delivery, _ = await client.delivered()
    for link in house.queues["queue-1"]._host.links:
        if leaves:
            link.settle = lambda said, link=link, **_: link.outbox.frame.unsettled.append(said)
        else:
            link._settle_all = lambda _settles, _now: None
    client.settles(delivery.delivery_id, Modified(True, False, noted(why="late")))
    await asyncio.sleep(0.2)
    await replace_owner(house)
    _, message = await client.delivered()
    assert annotations(message) == noted(why="late")
