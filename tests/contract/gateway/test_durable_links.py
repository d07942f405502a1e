"""Links of AMQP 1.0 that outlive their connections (part 3, section 3.5.6): any gateway takes them up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pamqp import commands

from services.common.access.records import Permission
from services.common.clients.store import StoreClient
from services.common.message import arguments
from services.common.message.amqp_1_0.values import Described, Symbol
from services.gateway.operations import choosing
from services.gateway.protocols.amqp_1_0.durable_record import queue_of, record_in
from services.gateway.protocols.amqp_1_0.performatives import Attach, Detach, Transfer
from services.gateway.protocols.amqp_1_0.termini import Target
from services.mgmt.access.grants import Grants
from services.mgmt.users import Users
from services.router.topology import declare_queue
from tests.support.amqp_1_0_client import Client
from tests.support.amqp_1_0_playbook import receiving
from tests.support.broker_house import BrokerHouse
from tests.support.durable_links import NEVER, definition, goes_at, link_of, other_of, publish
from tests.support.programs import until

Exchange = commands.Exchange

SELECTOR_FILTER = Symbol("apache.org:selector-filter:string")


@asynccontextmanager
async def user(broker: BrokerHouse, name: str, read: str = ".*") -> AsyncIterator[str]:
    """Who may read from what is called so, and do everything else; whose secret is as its name."""
    store = StoreClient(broker.address_of("store"))
    await Grants(store).put_permission(Permission(user=name, configure=".*", write=".*", read=read))
    await Users(store).put(name, name, (), loopback_only=False)
    for gateway in broker.gateways:
        await until(lambda gateway=gateway: name in gateway._listener.authenticator.known.users)
    yield name
    await Users(store).delete(name)
    await Grants(store).forget_user(name)
    await store.close()


@pytest_asyncio.fixture(loop_scope="session")
async def mallory(broker: BrokerHouse) -> AsyncIterator[str]:
    """A user who may do everything."""
    async with user(broker, "mallory") as name:
        yield name


async def test_what_came_while_nobody_was_there(broker: BrokerHouse, clients: list[Client], exchange: str) -> None:
    """Its connection dies; at another gateway its container gets all that was published meanwhile, once."""
    first, second = clients
    assert await first.receives_from(exchange, **NEVER) == ""
    first.abort()
    await publish(broker, exchange, "1", "2", "3")
    assert await second.receives_from(exchange, **NEVER) == ""
    second.takes(10)
    for delivery in range(3):
        await second.next(Transfer)
        second.settles(delivery)
    await second.detaches()
    assert definition(broker, exchange) is None


async def test_it_is_a_record_of_the_topology(broker: BrokerHouse, clients: list[Client], exchange: str) -> None:
    """Which says whose it is, and what it receives."""
    assert await clients[0].receives_from(exchange, **NEVER) == ""
    known = definition(broker, exchange)
    assert (known.durable, known.owner.scope, known.owner.name) == (True, "principal_container", "guest/client")
    record = record_in(arguments.load(known.arguments))
    assert record is not None
    assert (record.container, record.link, record.address, record.key) == ("client", link_of(exchange), exchange, "#")
    await clients[0].detaches()


async def test_stolen_by_another_gateway(broker: BrokerHouse, clients: list[Client], exchange: str) -> None:
    """Section 2.6.1: who has it loses it, with that error; what it had not settled goes to the other."""
    first, second = clients
    await first.receives_from(exchange, **NEVER)
    first.takes(10)
    await publish(broker, exchange, "1")
    await first.next(Transfer)
    assert await second.receives_from(exchange, **NEVER) == ""
    detach = await first.next(Detach)
    assert detach.error.condition == "amqp:link:stolen"
    second.takes(10)
    await second.next(Transfer)
    second.settles(0)
    await publish(broker, exchange, "2")
    await second.next(Transfer)
    second.settles(1)
    await second.detaches()


async def test_stolen_before_it_is_there(
    broker: BrokerHouse, clients: list[Client], exchange: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its gateway hears of both at once: the client is told that, and nothing of a queue that was deleted."""
    first, second = clients
    former, held = broker.gateways[0]._broker, list[Any]()
    for name in ("_attached", "_cancelled"):
        monkeypatch.setattr(former, name, lambda *what: held.append(what))
    refused = asyncio.create_task(first.receives_from(exchange, **NEVER))
    await until(lambda: held)
    await second.receives_from(exchange, **NEVER)
    await until(lambda: len(held) > 1)
    monkeypatch.undo()
    former._attached(*held[0])
    former._cancelled(*held[1])
    assert await refused == "amqp:link:stolen"
    await publish(broker, exchange, "1")
    second.takes(1)
    await second.next(Transfer)
    second.settles(0)
    await second.detaches()


@pytest.mark.parametrize("stays", [True, False])
async def test_closed_when_it_is_stolen(
    broker: BrokerHouse, clients: list[Client], exchange: str, monkeypatch: pytest.MonkeyPatch, *, stays: bool
) -> None:
    """Whose link it was no more, though they had not heard of that, ends nothing of whoever has it, or will again."""
    first, second = clients
    former, held = broker.gateways[0]._broker, list[Any]()
    await first.receives_from(exchange, **NEVER)
    monkeypatch.setattr(former, "_ended", lambda *what: held.append(what))
    await second.receives_from(exchange, **NEVER)
    await until(lambda: held)
    known = definition(broker, exchange).id
    if not stays:
        await second.detaches(closed=False)
    ended = asyncio.create_task(first.detaches())
    await until(lambda: len(held) > 1)
    monkeypatch.undo()
    for each in held:
        former._ended(*each)
    await ended
    assert definition(broker, exchange).id == known
    if not stays:
        await second.makes(receiving(exchange, 0, dict(NEVER)))
    await second.detaches()
    await until(lambda: definition(broker, exchange) is None)


async def test_of_another_user(broker: BrokerHouse, clients: list[Client], exchange: str, mallory: str) -> None:
    """Anybody may call their container as another does: that is not theirs, whichever way they ask for it."""
    alice, _ = clients
    await alice.receives_from(exchange, **NEVER)
    alice.takes(10)
    other = Client()
    await other.open(broker.ports[1], mallory, mallory, "/")
    sought = Attach(link_of(exchange), 0, True, source=None, target=Target())
    for attach in (sought, receiving(exchange, 1, dict(NEVER))):
        assert (await other.makes(replace(attach, name=link_of(exchange)))).source is None
        assert (await other.next(Detach)).error.condition == "amqp:unauthorized-access"
    queue = queue_of("client", link_of(exchange))
    assert await other.receives_from(f"/queue/{queue}") == "amqp:resource-locked"
    await publish(broker, exchange, "1")
    await alice.next(Transfer)
    alice.settles(0)
    await alice.detaches()
    other.abort()


async def test_detached_it_stays(broker: BrokerHouse, clients: list[Client], exchange: str) -> None:
    """Only a detach that closes it ends it; found again by its name alone, it says what it was."""
    first, second = clients
    await first.receives_from(exchange, **NEVER)
    assert (await first.detaches(closed=False)).closed is False
    await publish(broker, exchange, "1")
    sought = Attach(link_of(exchange), 0, True, source=None, target=Target())
    attached = await second.makes(sought)
    assert (attached.source.address, attached.source.expiry_policy, attached.source.durable) == (exchange, "never", 2)
    second.takes(1)
    await second.next(Transfer)
    second.settles(0)
    await second.detaches()
    assert (await second.makes(sought)).source is None
    assert (await second.next(Detach)).error.condition == "amqp:not-found"


async def test_of_another_source(broker: BrokerHouse, clients: list[Client], exchange: str) -> None:
    """It is another one: what waited for the former is not for it."""
    first, second = clients
    await first.receives_from(exchange, **NEVER)
    first.abort()
    await publish(broker, exchange, "1")
    other = replace(receiving(f"{exchange}/other", 0, dict(NEVER)), name=link_of(exchange))
    assert (await second.makes(other)).source.address == f"{exchange}/other"
    record = record_in(arguments.load(definition(broker, exchange).arguments))
    assert record is not None
    assert record.key == "other"
    client = await broker.connect()
    await client.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    client.publish(b"2", "other", exchange=exchange)
    second.takes(10)
    await second.next(Transfer)
    assert second.payload.endswith(b"2")
    second.settles(0)
    await second.detaches()


@pytest.mark.parametrize(
    ("other", "condition"),
    [
        ({"address": "amq.fanout"}, "amqp:unauthorized-access"),
        ({"filter": {SELECTOR_FILTER: Described(SELECTOR_FILTER, "no selector (")}}, "amqp:invalid-field"),
    ],
)
async def test_of_another_source_that_is_refused(
    broker: BrokerHouse, exchange: str, other: dict[str, Any], condition: str
) -> None:
    """Who may not have that keeps what it had, with all that waits for it."""
    async with user(broker, "carol", read=f"{exchange}|qpidsub_.*") as carol:
        client = Client()
        await client.open(broker.ports[0], carol, carol, "/")
        await client.receives_from(exchange, **NEVER)
        await client.detaches(closed=False)
        await publish(broker, exchange, "1")
        changed = {"address": exchange, **NEVER, **other}
        attach = receiving(changed.pop("address"), 1, changed)
        assert (await client.makes(replace(attach, name=link_of(exchange)))).source is None
        assert (await client.next(Detach)).error.condition == condition
        again = replace(receiving(exchange, 2, dict(NEVER)), name=link_of(exchange))
        assert (await client.makes(again)).source is not None
        client.takes(1)
        await client.next(Transfer)
        assert client.payload.endswith(b"1")
        client.settles(0)
        await client.detaches()
        client.abort()


async def test_of_another_source_where_there_is_no_room(
    broker: BrokerHouse, clients: list[Client], exchange: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A virtual host that has all its queues has no more than those afterwards."""
    client, _ = clients
    await client.receives_from(exchange, **NEVER)
    await client.detaches(closed=False)
    monkeypatch.setattr(declare_queue, "_has_room", lambda *_: False)
    assert (await client.makes(other_of(exchange))).source is not None
    await publish(broker, "amq.fanout", "1")
    client.takes(1)
    await client.next(Transfer)
    client.settles(0)
    await client.detaches()


async def test_of_another_source_that_goes(
    broker: BrokerHouse, clients: list[Client], exchange: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was there when it was looked for: the former stays, with all that waits for it."""
    client, _ = clients
    await client.receives_from(exchange, **NEVER)
    await client.detaches(closed=False)
    await publish(broker, exchange, "1")
    other, manager, look = f"{exchange}-other", await broker.connect(), choosing.check_binding
    await manager.call(1, Exchange.Declare(exchange=other), Exchange.DeclareOk)

    async def goes(*what: Any) -> None:
        await manager.call(1, Exchange.Delete(exchange=other), Exchange.DeleteOk)
        await look(*what)

    monkeypatch.setattr(choosing, "check_binding", goes)
    assert (await client.makes(other_of(exchange, other))).source is None
    assert (await client.next(Detach)).error.condition == "amqp:not-found"
    monkeypatch.undo()
    await client.makes(replace(receiving(exchange, 2, dict(NEVER)), name=link_of(exchange)))
    client.takes(1)
    await client.next(Transfer)
    assert client.payload.endswith(b"1")
    client.settles(0)
    await client.detaches()


@pytest.mark.parametrize("last", [1, 2, 3])
async def test_of_another_source_by_a_client_that_goes(
    broker: BrokerHouse, clients: list[Client], exchange: str, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    """Whichever of its link's requests is the last: it has either the former or the other, and what comes to that."""
    first, second = clients
    await first.receives_from(exchange, **NEVER)
    await first.detaches(closed=False)
    await publish(broker, exchange, "1")
    asked = goes_at(monkeypatch, last, first.abort)
    first.attaches(other_of(exchange))
    await until(lambda: len(asked) >= last and asked[0].closed)
    monkeypatch.undo()
    attached = await second.makes(Attach(link_of(exchange), 0, True, source=None, target=Target()))
    await publish(broker, attached.source.address, "2")
    second.takes(10)
    waited = [b"1", b"2"] if attached.source.address == exchange else [b"2"]
    for delivery, body in enumerate(waited):
        await second.next(Transfer)
        assert second.payload.endswith(body)
        second.settles(delivery)
    await second.detaches()


async def test_stolen_when_the_owner_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody was told of the theft: both come back to the next owner, and whoever was stolen from is told by that."""
    async with BrokerHouse(tmp_path) as house:
        first, second = Client(), Client()
        for client, port in zip((first, second), house.ports, strict=True):
            await client.open(port, "guest", "guest", "/")
        former = house.gateways[0]._broker
        await first.receives_from("amq.topic", **NEVER)
        monkeypatch.setattr(former, "_cancelled", lambda *_: None)
        await second.receives_from("amq.topic", **NEVER)
        monkeypatch.undo()
        await house.fall()
        await house.come_back()
        assert (await first.next(Detach)).error.condition == "amqp:link:stolen"
        second.takes(10)
        await publish(house, "amq.topic", "1", "2")
        for delivery in range(2):
            await second.next(Transfer)
            second.settles(delivery)
        first.abort()
        second.abort()


@pytest.mark.parametrize("last", [1, 2, 3])
async def test_begun_by_a_client_that_goes(
    broker: BrokerHouse, clients: list[Client], exchange: str, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    """Whichever of its link's requests is the last: there is none, or it has what comes, found again by its name."""
    first, second = clients
    asked = goes_at(monkeypatch, last, first.abort)
    first.attaches(receiving(exchange, 0, dict(NEVER)))
    await until(lambda: len(asked) >= last and asked[0].closed)
    monkeypatch.undo()
    assert (definition(broker, exchange) is not None) == (last > 1)
    if last > 1:
        await second.makes(Attach(link_of(exchange), 0, True, source=None, target=Target()))
        await publish(broker, exchange, "1")
        second.takes(1)
        await second.next(Transfer)
        second.settles(0)
        await second.detaches()
