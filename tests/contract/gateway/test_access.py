"""Every operation of AMQP 0-8, 0-9 and 0-9-1, as every role, at a whole broker: what is allowed, nothing else."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio
from pamqp import commands as c

from services.common.access.needs import ANY
from services.common.access.records import AclText, Permission, TopicPermission
from services.gateway.protocols.amqp_0_9.channels import Channels
from services.gateway.protocols.amqp_0_9.method import Method
from services.gateway.protocols.amqp_0_9.methods import channel
from services.gateway.protocols.amqp_0_9.requests import request_of
from services.gateway.protocols.amqp_0_9.version import Version
from services.gateway.protocols.amqp_0_9.versions import VERSIONS
from tests.support.access_house import HERE, OF_LINKS, ROLES, AccessHouse, access_house, heard_of, wanted
from tests.support.access_operations import operations_of, publish, said
from tests.support.amqp_client import AmqpClient
from tests.support.amqp_playbook import content, written
from tests.support.broker_house import BrokerHouse
from tests.support.older_client import OPENED, OlderClient
from tests.support.raw_amqp import method, short

REFUSED = 403
CONNECTION, CHANNEL_CLOSE, QOS_OK = b"\x00\x0a", b"\x00\x14\x00\x28", b"\x00\x3c\x00\x0b"
CHANNEL_OPENED = b"\x00\x14\x00\x0b"
SAID_BY_CLIENTS = {
    *request_of.registry,
    *(kind for kind, what in Channels._WHEN_OPEN.items() if what and kind not in (Method, channel.Open, channel.Close)),
}
_PART = "(configure|write|read) access to (queue|exchange)"
WORDS = f"ACCESS_REFUSED - {_PART} '[^']+' in vhost '{HERE}' refused for user '{{}}'"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def house(broker: BrokerHouse) -> AsyncIterator[AccessHouse]:
    """With a user for each role."""
    async with access_house(broker) as made:
        yield made


async def refusal(client: AmqpClient, words: bytes) -> str:
    """The error with which the broker closes the channel for want of permission; empty for any other outcome."""
    client.writer.write(words)
    client.send(1, c.Basic.Qos(prefetch_count=0))
    answer = await client.expect((c.Channel.Close, c.Basic.QosOk), 1)
    if isinstance(answer, c.Basic.QosOk):
        return ""
    client.send(1, c.Channel.CloseOk())
    await client.call(1, c.Channel.Open(), c.Channel.OpenOk)
    return str(answer.reply_text) if answer.reply_code == REFUSED else ""


async def refused_older(client: OlderClient, words: bytes) -> str:
    """The same of a client of any of the three, by bytes."""
    client.send(words + written(1, c.Basic.Qos(prefetch_count=0)))
    async for answer in client.frames():
        if answer[:4] == QOS_OK:
            break
        if answer[:4] == CHANNEL_CLOSE:
            client.send(written(1, c.Channel.CloseOk(), c.Channel.Open()))
            assert (await client.read())[:4] == CHANNEL_OPENED
            code = int.from_bytes(answer[4:6])
            return answer[7 : 7 + answer[6]].decode() if code == REFUSED else ""
        assert answer[:2] != CONNECTION, answer
    return ""


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
@pytest.mark.parametrize("role", ROLES)
async def test_every_operation(house: AccessHouse, role: str, version: Version) -> None:
    """Nothing is allowed that the role has no permission for, and nothing refused that it has."""
    async with OlderClient(house.broker.ports[0], version.header, user=role, virtual_host=HERE) as client:
        for name, operation in operations_of(version).items():
            text = await refused_older(client, operation.says(role))
            assert bool(text) is not operation.may(role), (name, text)
            if text:
                its = WORDS.replace(_PART, f"{ANY} access to (queue|exchange)") if operation.looks else WORDS
                assert re.fullmatch(its.format(role), text), (name, text)


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
async def test_every_method_is_tried(version: Version) -> None:
    """There is none that a client may say on a channel, in any version, that is not among those operations."""
    there = {kind for kind in version.methods.values() if kind in SAID_BY_CLIENTS}
    tried = {name.partition(",")[0] for name in operations_of(version)}
    assert {kind.name for kind in there} - {"channel.resume"} == tried  # 540, for every user


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
async def test_every_request_is_tried(house: AccessHouse, monkeypatch: pytest.MonkeyPatch, version: Version) -> None:
    """Each request of the gateway that needs to be allowed is asked about by those operations, or by links of 1.0."""
    asked = heard_of(monkeypatch)
    async with OlderClient(house.broker.ports[0], version.header, user="all", virtual_host=HERE) as client:
        for operation in operations_of(version).values():
            await refused_older(client, operation.says("all"))
    assert set(wanted()) - asked == OF_LINKS


async def test_a_virtual_host_without_permission(house: AccessHouse) -> None:
    """Is not opened: 530, which ends the connection, and says the same of one that is not there."""
    for host in (HERE, "not-there"):
        client = AmqpClient()
        await client.open(house.broker.ports[0], user="outside", password="secret", virtual_host=host)
        [close] = client.of(c.Connection.Close)
        assert close.reply_code == 530
        assert close.reply_text == f"NOT_ALLOWED - access to vhost '{host}' refused for user 'outside'"
        client.abort()


@pytest.mark.parametrize("header", [b"AMQP\x01\x01\x08\x00", b"AMQP\x01\x01\x00\x09"], ids=["0-8", "0-9"])
async def test_older_clients(house: AccessHouse, header: bytes) -> None:
    """Of AMQP 0-8 and 0-9 are asked the same: a ticket opens nothing that permissions do not."""
    outside = OlderClient(house.broker.ports[0], header)
    answer = await outside.opens(HERE, b"\0outside\0secret")
    assert b"access to vhost 'access' refused for user 'outside'" in answer
    await outside.close()
    old = OlderClient(house.broker.ports[0], header)
    assert (await old.opens(HERE, b"\0reads\0secret"))[:4] == OPENED
    await old.asks(method(20, 10, b"\0"))
    await old.asks(method(30, 10, short("/data") + b"\x1f"))
    assert (await old.asks(method(50, 30, b"\x00\x01" + short("q") + b"\0")))[:4] == b"\x00\x32\x00\x1f"
    refused = await old.asks(method(50, 40, b"\x00\x01" + short("gone") + b"\0"))
    assert refused[:6] == b"\x00\x14\x00\x28" + REFUSED.to_bytes(2)
    assert b"configure access to queue 'gone'" in refused
    await old.close()


# ------------------------------------------------------------------ what changes while clients are connected


async def publish_on(client: AmqpClient, name: str, heard: list[str]) -> None:
    """Some hundred messages, and what becomes of the last of them, again and again."""
    while True:
        for _ in range(300):
            client.publish(b"m", name, exchange="own-x")
        heard.append(await refusal(client, publish("own-x", name)("")))


async def test_rules_that_change_under_load(house: AccessHouse, name: str) -> None:
    """A permission that is revoked, or granted, counts for a client that publishes all the time."""
    guest = await house.broker.connect(virtual_host=HERE)
    await guest.declare(name, arguments={"x-max-length": 10})
    await guest.call(1, c.Queue.Bind(queue=name, exchange="own-x", routing_key=name), c.Queue.BindOk)
    client, heard = await house.client("own"), list[str]()
    load = asyncio.ensure_future(publish_on(client, name, heard))
    await until(lambda: len(heard) > 3)
    for expressions, refused in (({"read": "x"}, True), (ROLES["own"], False), ({"write": "^x$"}, True)):
        await house.grants.put_permission(Permission(user="own", virtual_host=HERE, **expressions))
        await until(lambda refused=refused: bool(heard[-1]) is refused)
    load.cancel()
    await house.grants.put_permission(Permission(user="own", virtual_host=HERE, **ROLES["own"]))
    await client.close()


async def until(condition: Callable[[], bool]) -> None:
    """Bounded: ten seconds."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


async def test_topics(house: AccessHouse, name: str) -> None:
    """A topic permission is asked about each key, those of CC and BCC too; keys of bindings go by read."""
    client = await house.client("all")
    guest = await house.broker.connect(virtual_host=HERE)
    await guest.declare(name)
    topic = TopicPermission(user="all", virtual_host=HERE, exchange="amq.topic", write="^eu", read="^us")
    await house.grants.put_topic_permission(topic)
    tries = {
        "eu": publish("amq.topic", "eu.1"),
        "us": publish("amq.topic", "us.1"),
        "eu, CC eu": publish("amq.topic", "eu.1", headers={"CC": ["eu.2"]}),
        "eu, CC us": publish("amq.topic", "eu.1", headers={"CC": ["us.1"]}),
        "eu, BCC us": publish("amq.topic", "eu.1", headers={"BCC": ["us.1"]}),
        "other exchange": publish("x", "us.1"),
        "bind us": said(c.Queue.Bind(queue=name, exchange="amq.topic", routing_key="us.1")),
        "bind eu": said(c.Queue.Bind(queue=name, exchange="amq.topic", routing_key="eu.1")),
    }
    expected = ("us", "eu, CC us", "eu, BCC us", "bind eu")

    async def refused() -> tuple[str, ...]:
        return tuple([each for each, words in tries.items() if await refusal(client, words(""))])

    async with asyncio.timeout(5):
        while await refused() != expected:
            await asyncio.sleep(0.01)
    text = await refusal(client, publish("amq.topic", "us.1")(""))
    assert text == (
        "ACCESS_REFUSED - write access to topic 'us.1' in exchange 'amq.topic' in vhost 'access' refused for user 'all'"
    )
    await house.grants.clear_topic_permission("all", HERE, "amq.topic")
    async with asyncio.timeout(5):
        while await refused():
            await asyncio.sleep(0.01)


async def test_what_stood_before_is_published(house: AccessHouse, name: str) -> None:
    """Of many messages in one read those before the first that is refused are published, and none behind it."""
    guest = await house.broker.connect(virtual_host=HERE)
    await guest.declare(name)
    client = await house.client("publishes")
    for_queue = content(1, b"m", exchange="", routing_key=name)
    client.writer.write(for_queue * 3 + content(1, b"m", exchange="x", routing_key="k") + for_queue * 2)
    assert (await client.expect(c.Channel.Close, 1)).reply_code == REFUSED
    await guest.consume(name, no_ack=True)
    await guest.bodies(3)
    assert (await guest.declare(name, passive=True)).message_count == 0
    assert len(guest.messages()) == 3


async def test_rules_of_a_virtual_host(house: AccessHouse) -> None:
    """Come before permissions: what they deny is denied, what they say nothing of permissions decide."""
    client = await house.client("all")
    rules = 'CONFIG DEFAULTDEFER=TRUE\nACL DENY all PUBLISH EXCHANGE name="x" routing_key="secret.*"'
    await house.grants.put_acl(AclText(virtual_host=HERE, text=rules))
    async with asyncio.timeout(5):
        while not await refusal(client, publish("x", "secret.1")("")):
            await asyncio.sleep(0.01)
    for key, exchange in (("open", "x"), ("secret.1", "own-x")):
        assert not await refusal(client, publish(exchange, key)(""))
    await house.grants.remove_acl(HERE)
