"""AMQP management at a whole broker: requests that clients publish to `$management`, and what they are answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from pamqp import commands

from services.common.clients.mgmt import MgmtClient
from services.common.message import amqp_map
from services.gateway.management.line import LARGEST
from services.mgmt.service import Service
from services.rpc import mgmt_pb2 as pb
from tests.support.amqp_client import AmqpClient, Message
from tests.support.amqp_playbook import content
from tests.support.broker_house import BrokerHouse
from tests.support.older_client import OlderClient
from tests.support.raw_amqp import method, short

SELF = {"identity": "self", "type": "org.amqp.management"}
QUEUE = {"type": "org.apache.qpid.Queue"}
RULES = {"type": "org.apache.qpid.VirtualHostAccessControlProvider"}
NODE = "$management"


class Managed(NamedTuple):
    """A broker whose management is there."""

    house: BrokerHouse
    client: MgmtClient

    async def user(self, name: str, tags: list[str], **permissions: str) -> None:
        """A user with these permissions in the virtual host `/`."""
        await self.client.put_user(name, "secret", tags)
        may = {"configure": "", "write": "", "read": "", **permissions}
        await self.client.change_access(put_permission=pb.Permission(user=name, **may))

    async def connect(self, user: str = "guest", password: str = "guest") -> Asking:
        return Asking(await self.house.connect(user=user, password=password))


class Asking:
    """A client of 0-9-1, and the replies that it got."""

    def __init__(self, client: AmqpClient) -> None:
        self.amqp = client
        self.got = 0

    async def listens(self, queue: str = "") -> str:
        """At a queue of its own; gives its name."""
        declared = await self.amqp.declare(queue, exclusive=True)
        await self.amqp.consume(declared.queue, "replies", no_ack=True)
        return str(declared.queue)

    def publish(self, operation: str, body: object = None, *, to: str, **headers: Any) -> None:
        """In JSON."""
        said = b"" if body is None else json.dumps(body).encode()
        its = {"content_type": "application/json", "reply_to": to, "headers": {"operation": operation, **headers}}
        self.amqp.publish(said, NODE, **its)

    async def reply(self) -> tuple[int, Any]:
        """The next: its status, and its body."""
        message = await self.next()
        return message.properties.headers["statusCode"], json.loads(message.body) if message.body else None

    async def next(self) -> Message:
        """As it came."""
        self.got += 1
        await self.amqp.bodies(self.got)
        return self.amqp.messages()[self.got - 1]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def managed(broker: BrokerHouse) -> AsyncIterator[Managed]:
    mgmt = Service(broker.settings.model_copy(update={"http_host": "127.0.0.1", "http_port": 0}))
    await mgmt.start()
    async with MgmtClient(broker.address_of("mgmt")) as client:
        managed = Managed(broker, client)
        await _reached(managed)
        yield managed
    await mgmt.stop()


async def _reached(managed: Managed) -> None:
    """By the gateway, which has tried in vain perhaps."""
    asking = await managed.connect()
    to = await asking.listens()
    for _ in range(100):
        asking.publish("GET-MGMT-NODES", to=to, **SELF)
        if (await asking.reply())[0] == 200:
            return
        await asyncio.sleep(0.02)


async def test_a_map(managed: Managed) -> None:
    """A request of Qpid's is answered with amqp/map, by the id of its message where it has no correlation id."""
    asking = await managed.connect()
    to = await asking.listens()
    body = amqp_map.dump({"attributeNames": ["name"]})
    headers = {**SELF, "operation": "QUERY", "entityType": "org.apache.qpid.FanoutExchange"}
    its = {"content_type": "amqp/map", "message_id": "m1", "reply_to": to, "headers": headers}
    asking.amqp.publish(body, NODE, **its)
    message = await asking.next()
    properties = message.properties
    assert (properties.content_type, properties.correlation_id) == ("amqp/map", "m1")
    assert properties.headers == {"statusCode": 200, "statusDescription": "OK"}
    told = amqp_map.load_map(message.body)  # other tests have exchanges too
    assert (told["attributeNames"], told["results"][0]) == (["name"], ["amq.fanout"])
    asking.amqp.publish(b"", NODE, reply_to=to, correlation_id="c", headers={**SELF, "operation": "GET-MGMT-NODES"})
    message = await asking.next()
    assert (message.properties.content_type, amqp_map.load_list(message.body)) == ("amqp/list", [])
    assert message.properties.correlation_id == "c"


async def test_in_order(managed: Managed, name: str) -> None:
    """What is asked together is done one after the other, and answered in that order, to a direct reply-to too."""
    asking = await managed.connect()
    await asking.amqp.consume("amq.rabbitmq.reply-to", "replies", no_ack=True)
    by = {**QUEUE, "index": "object-path", "key": name}
    for operation in ("READ", "CREATE", "READ", "DELETE", "READ"):
        body = {"name": name} if operation == "CREATE" else None
        asking.publish(operation, body, to="amq.rabbitmq.reply-to", **by)
    told = [await asking.reply() for _ in range(5)]
    assert [status for status, _ in told] == [404, 201, 200, 204, 404]
    assert told[1] == (201, told[2][1])


async def test_replies_of_the_node_itself(managed: Managed) -> None:
    """A consumer of it gets the replies to requests of its connection that name the consumer."""
    asking, other = await managed.connect(), await managed.connect()
    for each in (asking, other):
        each.amqp.writer.write(method(60, 20, b"\0\0", short(NODE), short("!response"), b"\x02\0\0\0\0"))
        assert (await each.amqp.expect(commands.Basic.ConsumeOk)).consumer_tag == "!response"
    for number in range(3):
        asking.publish("GET-TYPES", to="!response", n=number, **SELF)
    assert [(await asking.reply())[0] for _ in range(3)] == [200] * 3
    other.publish("GET-TYPES", to="!response", **SELF)
    assert (await other.reply())[0] == 200
    await asking.amqp.call(1, commands.Basic.Cancel("!response"), commands.Basic.CancelOk)
    asking.publish("GET-TYPES", to="!response", **SELF)
    to = await asking.listens()
    asking.publish("GET-MGMT-NODES", to=to, **SELF)
    assert await asking.reply() == (200, [])


@pytest.mark.parametrize("commits", [True, False])
async def test_in_a_transaction(managed: Managed, name: str, *, commits: bool) -> None:
    """A request counts when it is committed; the reply is no part of the next transaction."""
    asking = await managed.connect()
    to = await asking.listens()
    await asking.amqp.call(1, commands.Tx.Select(), commands.Tx.SelectOk)
    asking.publish("CREATE", {"name": name}, to=to, **QUEUE)
    if commits:
        await asking.amqp.call(1, commands.Tx.Commit(), commands.Tx.CommitOk)
        assert (await asking.reply())[0] == 201
    else:
        await asking.amqp.call(1, commands.Tx.Rollback(), commands.Tx.RollbackOk)
    asking.publish("READ", to=to, **QUEUE, index="object-path", key=name)
    await asking.amqp.call(1, commands.Tx.Commit(), commands.Tx.CommitOk)
    assert (await asking.reply())[0] == (200 if commits else 404)


async def test_confirms(managed: Managed) -> None:
    """A request is confirmed and not returned, among messages that are; replies take no confirm numbers."""
    asking = await managed.connect()
    to = await asking.listens()
    await asking.amqp.call(1, commands.Confirm.Select(), commands.Confirm.SelectOk)
    for _ in range(3):
        asking.amqp.writer.write(
            content(
                1, b"", routing_key=NODE, mandatory=True, reply_to=to, headers={**SELF, "operation": "GET-MGMT-NODES"}
            )
        )
        asking.amqp.writer.write(content(1, b"m", routing_key="nowhere", mandatory=True))
    await asking.amqp.confirmed(6)
    returned = [each.method.routing_key for each in asking.amqp.messages(commands.Basic.Return)]
    assert returned == ["nowhere"] * 3
    for _ in range(3):
        await asking.next()
    assert max(ack.delivery_tag for ack in asking.amqp.of(commands.Basic.Ack)) == 6


async def test_who_may(managed: Managed) -> None:
    """A user who may only send and receive gets 403; one who may not publish to the default exchange cannot ask."""
    await managed.user("messaging", [], configure=".*", write=".*", read=".*")
    asking = await managed.connect("messaging", "secret")
    to = await asking.listens()
    asking.publish("GET-TYPES", to=to, **SELF)
    message = await asking.next()
    assert message.properties.headers == {
        "statusCode": 403,
        "statusDescription": "access to management refused for user 'messaging'",
    }
    await managed.user("mute", ["administrator"], configure=".*", read=".*")
    asking = await managed.connect("mute", "secret")
    asking.publish("GET-TYPES", to="anywhere", **SELF)
    assert (await asking.amqp.expect(commands.Channel.Close)).reply_code == 403


async def test_where_replies_may_go(managed: Managed, name: str) -> None:
    """To an exchange with a key too, if the user may write there; else no reply comes, though the request is done."""
    guest = await managed.connect()
    await guest.amqp.declare(name)
    await guest.amqp.call(1, commands.Exchange.Declare(exchange=name), commands.Exchange.DeclareOk)
    await guest.amqp.call(1, commands.Queue.Bind(queue=name, exchange=name, routing_key="k"), commands.Queue.BindOk)
    await managed.user("narrow", ["administrator"], configure=".*", write=r"^(amq\.default|allowed)", read=".*")
    narrow = await managed.connect("narrow", "secret")
    to = await narrow.listens()
    narrow.publish("GET-MGMT-NODES", to=f"{name}/k", **SELF)
    narrow.publish("GET-MGMT-NODES", to="no such/exchange", **SELF)
    narrow.publish("GET-MGMT-NODES", to=NODE, **SELF)
    narrow.publish("GET-MGMT-NODES", to=to, **SELF)
    assert await narrow.reply() == (200, [])
    assert await guest.amqp.get(name) is None
    guest.publish("GET-MGMT-NODES", to=f"{name}/k", **SELF)
    await guest.amqp.consume(name, no_ack=True)
    assert await guest.reply() == (200, [])


async def test_replies_that_are_not_awaited(managed: Managed, name: str) -> None:
    """A request is carried out without a reply-to, and where its client has gone at once."""
    asking = await managed.connect()
    asking.publish("CREATE", {"name": name}, to="", **QUEUE)
    await asking.amqp.close()
    watching = await managed.connect()
    to = await watching.listens()
    for _ in range(100):
        watching.publish("READ", to=to, **QUEUE, index="object-path", key=name)
        if (await watching.reply())[0] == 200:
            return
    raise AssertionError("it was not carried out")


async def test_a_connection_whose_user_is_deleted(managed: Managed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes nothing more: of what an administrator asked for, that which mgmt has not begun is not done."""
    await managed.user("leaving", ["administrator"], configure=".*", write=".*", read=".*")
    asking, begun, may = await managed.connect("leaving", "secret"), asyncio.Event(), asyncio.Event()
    manage = MgmtClient.manage

    async def slow(client: MgmtClient, request: pb.ManageRequest) -> pb.ManageReply:
        begun.set()
        await may.wait()
        return await manage(client, request)

    monkeypatch.setattr(MgmtClient, "manage", slow)
    asking.publish("GET-TYPES", to="", **SELF)
    asking.publish("CREATE", {"name": "acl", "rules": "ACL ALLOW ALL ALL"}, to="", **RULES)
    await begun.wait()
    await managed.client.delete_user("leaving")
    await asking.amqp.expect(commands.Connection.Close)
    may.set()
    async with asyncio.timeout(5):
        while managed.house.gateways[0]._desk._lines:
            await asyncio.sleep(0.01)
    watching = await managed.connect()
    to = await watching.listens()
    watching.publish("READ", to=to, **RULES, index="object-path", key="acl")
    assert (await watching.reply())[0] == 404


async def test_what_cannot_be_read(managed: Managed) -> None:
    """Is answered: no JSON, no map, and more than a request should hold."""
    asking = await managed.connect()
    to = await asking.listens()
    for content_type, body in (("application/json", b"{"), ("amqp/map", b"\0"), ("text/plain", b"x" * LARGEST)):
        asking.amqp.publish(body, NODE, content_type=content_type, reply_to=to, headers={**SELF, "operation": "QUERY"})
    assert [(await asking.reply())[0] for _ in range(3)] == [400, 400, 413]


async def test_its_name_is_reserved(managed: Managed) -> None:
    """No queue has the name, by which it would get what others ask."""
    asking = await managed.connect()
    asking.amqp.writer.write(method(50, 10, b"\0\0", short(NODE), b"\0\0\0\0\0"))
    assert (await asking.amqp.expect(commands.Channel.Close)).reply_code == 403


@pytest.mark.parametrize("header", [b"AMQP\x01\x01\x08\x00", b"AMQP\x01\x01\x00\x09"])
async def test_older_versions(managed: Managed, header: bytes) -> None:
    """A client of AMQP 0-8 or 0-9 asks and is answered alike."""
    new = await managed.connect()
    to = await new.listens()
    async with OlderClient(managed.house.ports[0], header) as old:
        written = content(1, b"{}", routing_key=NODE, reply_to=to, headers={**SELF, "operation": "GET-MGMT-NODES"})
        frames_of_content = written[written.index(b"\xce") + 1 :]
        old.send(method(60, 40, b"\x00\x01\x00" + short(NODE) + b"\0") + frames_of_content)
        message = await new.next()
        assert message.properties.headers["statusCode"] == 200


async def test_management_is_away(broker: BrokerHouse) -> None:
    """The reply says so (503), and all else goes on."""
    asking = Asking(await broker.connect(gateway=1))
    to = await asking.listens()
    desk = broker.gateways[1]._desk
    former, desk._mgmt = desk._mgmt, MgmtClient("unix:/nowhere/at/all.sock")
    asking.publish("GET-TYPES", to=to, **SELF)
    asking.amqp.publish(b"another", to)
    async with asyncio.timeout(10):
        told = [await asking.next() for _ in range(2)]
    assert told[0].body == b"another"
    assert told[1].properties.headers["statusCode"] == 503
    assert "try again" in told[1].properties.headers["statusDescription"]
    await desk._mgmt.close()
    desk._mgmt = former
