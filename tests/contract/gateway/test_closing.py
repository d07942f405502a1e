"""How connections and channels end, and what ends with them; which clients may connect at all."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable, MutableMapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pamqp import commands, frame
from structlog.testing import capture_logs

from services.common.topology.slots import SlotName
from services.gateway.transport.listening import listen_at
from tests.contract.gateway.test_settling import ready
from tests.support.amqp_client import AmqpClient
from tests.support.amqp_playbook import HEADER, content, written
from tests.support.broker_house import BrokerHouse
from tests.support.programs import until

Basic, Channel, Connection, Queue = commands.Basic, commands.Channel, commands.Connection, commands.Queue

_START_OK = Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US")


@pytest_asyncio.fixture(loop_scope="session")
async def house(tmp_path: Path) -> AsyncIterator[BrokerHouse]:
    """A broker of its own."""
    async with BrokerHouse(tmp_path, gateways=1, queues=1) as house:
        yield house


@pytest.mark.parametrize("end", ["channel.close", "connection.close", "end of stream"])
async def test_publishes_before_the_end_are_not_lost(broker: BrokerHouse, name: str, end: str) -> None:
    """Messages sent together with the close, over routes that the gateway does not know yet, arrive."""
    observer, client = await broker.connect(1), await broker.connect()
    for number in range(5):
        await observer.declare(f"{name}-{number}")
    for number in range(5):
        client.publish(b"x", f"{name}-{number}")
    if end == "channel.close":
        await client.call(1, Channel.Close(200, "", 0, 0), Channel.CloseOk)
    elif end == "connection.close":
        await client.close()
    else:
        client.writer.close()
    for number in range(5):
        queue = f"{name}-{number}"
        await observer.consume(queue, queue, no_ack=True)
    assert await observer.bodies(5) == [b"x"] * 5


@pytest.mark.parametrize("kind", [Channel, Connection])
async def test_a_client_that_closes_at_once_gets_the_outcome(broker: BrokerHouse, name: str, kind: Any) -> None:
    """declare, a publish to no exchange and the close in one write: declare-ok, 404, close-ok."""
    client = await broker.connect()
    declare = written(1, Queue.Declare(queue=name, exclusive=True))
    close = written(1 if kind is Channel else 0, kind.Close(200, "", 0, 0))
    client.writer.write(declare + content(1, b"x", exchange=f"{name}-none") + close)
    await client.expect(kind.CloseOk)
    declared, refused, _ = [value for _, value in client.frames[-3:]]
    assert isinstance(declared, Queue.DeclareOk)
    assert isinstance(refused, Channel.Close)
    assert refused.reply_code == 404


@pytest.mark.parametrize(
    ("end", "last"),
    [(written(0, Connection.Close(200, "", 0, 0)), Connection.CloseOk), (b"\xff" * 8, Connection.Close)],
    ids=["close", "no frame"],
)
async def test_the_close_reaches_a_client_that_still_publishes(
    broker: BrokerHouse, end: bytes, last: type[Any]
) -> None:
    """With megabytes in flight behind the end, the client reads close-ok, or what was wrong, and the end of stream."""

    def talk() -> bytes:
        with socket.create_connection(("127.0.0.1", broker.ports[0]), 20) as client:
            heard = b""
            client.sendall(HEADER + written(0, _START_OK, Connection.TuneOk(0, 0, 0), Connection.Open("/")))
            while not heard.endswith(written(0, Connection.OpenOk())):
                heard += client.recv(4096)
            client.sendall(end)
            client.sendall(content(1, b"x" * 4000) * 1000)
            heard = b""
            while data := client.recv(4096):
                heard += data
            return heard

    _, channel, value = frame.unmarshal(await asyncio.to_thread(talk))
    assert channel == 0
    assert isinstance(value, last)


async def test_exclusive_queues_are_their_connections_own(broker: BrokerHouse, name: str) -> None:
    """Another connection gets 405 for every use; once close-ok came, the name is free on every gateway."""
    owner, other = await broker.connect(0), await broker.connect(1)
    await owner.declare(name, exclusive=True, durable=True)
    assert await other.refused(1, Queue.Declare(queue=name, passive=True)) == 405
    assert await other.refused(1, Basic.Consume(queue=name)) == 405
    assert await other.refused(1, Basic.Get(queue=name)) == 405
    assert await other.refused(1, Queue.Purge(queue=name)) == 405
    assert await other.refused(1, Queue.Delete(queue=name)) == 405
    await owner.close()
    await other.declare(name, exclusive=True)


async def test_close_ok_comes_when_all_is_done(broker: BrokerHouse, name: str) -> None:
    """In the moment in which close-ok is read, no gateway knows the connection's exclusive queue any more."""
    owner = await broker.connect()
    await owner.declare(name, exclusive=True)
    await owner.close()
    assert not any(SlotName("/", name) in gateway._broker.topology.by_name for gateway in broker.gateways)


async def test_a_server_named_queue_is_the_last_declared_one(broker: BrokerHouse) -> None:
    """queue.declare with an empty name makes one, to which empty names then refer."""
    client = await broker.connect()
    made = (await client.declare("", exclusive=True)).queue
    assert made.startswith("amq.gen-")
    client.publish(b"x", made)
    message = await client.get("")
    assert message is not None
    assert message.body == b"x"


async def test_an_exclusive_consumer_is_alone(broker: BrokerHouse, name: str) -> None:
    """Neither another consumer beside an exclusive one nor an exclusive one beside another: 403."""
    first, second = await broker.connect(0), await broker.connect(1)
    await first.declare(name)
    await first.consume(name, exclusive=True)
    assert await second.refused(1, Basic.Consume(queue=name)) == 403
    await first.call(1, Basic.Cancel("c"), Basic.CancelOk)
    await first.consume(name)
    assert await second.refused(1, Basic.Consume(queue=name, exclusive=True)) == 403


async def test_consumers_are_told_that_their_queue_is_gone(broker: BrokerHouse, name: str) -> None:
    """basic.cancel comes when the queue is deleted by another connection, and the tag can be used again."""
    client, other = await broker.connect(0), await broker.connect(1)
    await client.declare(name)
    await client.consume(name)
    await other.call(1, Queue.Delete(queue=name), Queue.DeleteOk)
    assert (await client.expect(Basic.Cancel)).consumer_tag == "c"
    await client.declare(name)
    await client.consume(name)


async def test_deleting_the_queue_of_ones_consumer_cancels_it_first(broker: BrokerHouse, name: str) -> None:
    """queue.delete-ok, then basic.cancel."""
    client = await broker.connect()
    await client.declare(name)
    await client.consume(name)
    client.send(1, Queue.Delete(queue=name))
    await client.until(lambda: client.of(Queue.DeleteOk) and client.of(Basic.Cancel))
    assert [type(value) for _, value in client.frames[-2:]] == [Queue.DeleteOk, Basic.Cancel]


async def test_an_auto_delete_queue_goes_with_its_last_consumer(broker: BrokerHouse, name: str) -> None:
    """After the last basic.cancel the queue is deleted."""
    client, other = await broker.connect(0), await broker.connect(1)
    await client.declare(name, auto_delete=True)
    await client.consume(name)
    assert await ready(other, name) == 0
    await client.call(1, Basic.Cancel("c"), Basic.CancelOk)
    for _ in range(100):
        other.send(1, Queue.Declare(queue=name, passive=True))
        answer = await other.expect((Queue.DeclareOk, Channel.Close))
        if isinstance(answer, Channel.Close):
            break
    assert answer.reply_code == 404


async def test_user_id_is_the_user_or_refused(broker: BrokerHouse, name: str) -> None:
    """A publish with another user's user-id closes the channel with 406, one with one's own arrives."""
    client = await broker.connect()
    await client.declare(name)
    client.publish(b"mine", name, user_id="guest")
    assert await client.get(name, no_ack=True) is not None
    client.publish(b"not mine", name, user_id="admin")
    assert (await client.expect(Channel.Close)).reply_code == 406


@pytest.mark.parametrize(
    ("options", "code"), [({"password": "wrong"}, 403), ({"user": "nobody"}, 403), ({"virtual_host": "none"}, 530)]
)
async def test_clients_that_may_not_connect(broker: BrokerHouse, options: dict[str, Any], code: int) -> None:
    """Wrong credentials are refused with 403, an unknown virtual host with 530."""
    client = await broker.connect(**options)
    assert client.of(Connection.Close)[0].reply_code == code


async def test_an_unknown_virtual_host_is_told_in_rabbitmqs_words(broker: BrokerHouse) -> None:
    """The text of the 530 is RabbitMQ's, letter for letter: clients and their users look for it."""
    client = await broker.connect(virtual_host="none")
    assert client.of(Connection.Close)[0].reply_text == "NOT_ALLOWED - vhost none not found"


async def test_a_new_secret_ends_nothing(broker: BrokerHouse) -> None:
    """connection.update-secret is answered and the connection goes on; the log says if the secret is wrong."""
    client = await broker.connect()
    with capture_logs() as told:
        for secret in ("guest", "wrong"):
            await client.call(0, Connection.UpdateSecret(secret, "rotated"), Connection.UpdateSecretOk)
            await client.declare("", exclusive=True)
        await until(lambda: _warnings(told))
    [warning] = _warnings(told)
    assert (warning["user"], warning["peer"][:10]) == ("guest", "127.0.0.1:")


async def test_a_flood_of_new_secrets_is_a_few_lines(broker: BrokerHouse) -> None:
    """What comes while one is compared is answered, and the last of it is said and compared."""
    client = await broker.connect()
    with capture_logs() as told:
        client.send(0, *[Connection.UpdateSecret("wrong", str(number)) for number in range(5000)])
        await client.until(lambda: len(client.of(Connection.UpdateSecretOk)) == 5000)
        await until(lambda: [each for each in told if each.get("reason") == "4999"])
    assert len(told) < 500


def _warnings(told: Iterable[MutableMapping[str, Any]]) -> list[MutableMapping[str, Any]]:
    return [each for each in told if each["log_level"] == "warning" and "secret" in each["event"]]


async def test_this_machine_has_two_loopback_addresses(broker: BrokerHouse, name: str) -> None:
    """guest may come from both, where there is IPv6, and each is written so that its port can be told."""
    listener = broker.gateways[0]._listener
    servers = await listen_at("", 0, listener.entrances["amqp"]._listen)
    opened = []
    for server in servers:
        host, port = server.sockets[0].getsockname()[:2]
        client = AmqpClient()
        await client.open(port, host={"0.0.0.0": "127.0.0.1", "::": "::1"}[host])
        await client.declare("", exclusive=True)
        opened.append(client)
    peers = {connection.peer.rpartition(":")[0] for connection in list(listener._connections)[-len(opened) :]}
    assert peers == {"127.0.0.1", "[::1]"} if len(servers) > 1 else {"127.0.0.1"}
    for client, server in zip(opened, servers, strict=True):
        await client.close()
        server.close()


async def test_confirms_go_out_before_channel_close_ok(broker: BrokerHouse, name: str) -> None:
    """Refusals are nacks, returns come before their acks, and all of it in the order of the numbers."""
    client = await broker.connect()
    await client.declare(name, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    await client.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    client.publish(b"fits", name)
    await client.confirmed(1)
    client.publish(b"too much", name)
    nack = await client.expect(Basic.Nack)
    assert nack.delivery_tag == 2
    client.publish(b"nowhere", name + "-none", mandatory=True)
    await client.confirmed(3)
    kinds = [type(value).__name__ for _, value in client.frames[-2:]]
    assert kinds == ["Message", "Ack"]


async def test_a_gateway_that_stops_says_so(house: BrokerHouse) -> None:
    """Clients hear connection.close with 320 before their sockets close."""
    client = await house.connect()
    stopping = house.gateways.pop().stop()
    await stopping
    assert client.of(Connection.Close)[0].reply_code == 320
