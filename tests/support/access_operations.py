"""Every operation of AMQP 0-8, 0-9 and 0-9-1: what a client says, and which permissions that needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pamqp import commands as c

from services.gateway.protocols.amqp_0_9.version import Version
from services.gateway.protocols.amqp_0_9.versions import AMQP_0_9_1
from tests.support.access_house import ANYTHING, DLX, may
from tests.support.amqp_playbook import content, written
from tests.support.raw_amqp import method, short

DEFAULT = "amq.default"


class Operation(NamedTuple):
    """What a client says, as bytes, and what RabbitMQ's table asks of it; of each of `looks` any permission will do."""

    says: Callable[[str], bytes]
    needs: Mapping[str, list[str]] = {}
    looks: tuple[str, ...] = ()

    def may(self, role: str) -> bool:
        return may(role, self.needs) and all(
            may(role, {kind: [name] for kind in ANYTHING}, anything=True) for name in self.looks
        )


def publish(exchange: str, key: str, **properties: Any) -> Callable[[str], bytes]:
    return lambda _: content(1, b"m", exchange=exchange, routing_key=key, **properties)


def said(made: Any) -> Callable[[str], bytes]:
    return lambda _: written(1, made)


def raw(class_id: int, method_id: int, *arguments: bytes) -> Callable[[str], bytes]:
    return lambda _: method(class_id, method_id, *arguments)


def own(make: Callable[[str], Any]) -> Callable[[str], bytes]:
    """Of a name that no other role uses."""
    return lambda role: written(1, make(f"own-{role}"))


AE = {"alternate-exchange": "own-ae"}
OPERATIONS: Mapping[str, Operation] = {
    "exchange.declare": Operation(own(lambda name: c.Exchange.Declare(exchange=name)), {"configure": ["own"]}),
    "exchange.declare, alternate": Operation(
        own(lambda name: c.Exchange.Declare(exchange=f"{name}-ae", arguments=AE)),
        {"configure": ["own"], "read": ["own"], "write": ["own"]},
    ),
    "exchange.declare, other's": Operation(said(c.Exchange.Declare(exchange="x")), {"configure": ["x"]}),
    "exchange.declare, passive": Operation(said(c.Exchange.Declare(exchange="x", passive=True)), looks=("x",)),
    "exchange.bound": Operation(raw(40, 22, short("x"), short("k"), short("")), looks=("x",)),
    "exchange.bound, to a queue": Operation(raw(40, 22, short("x"), short(""), short("q")), looks=("x", "q")),
    "exchange.delete": Operation(said(c.Exchange.Delete(exchange="gone")), {"configure": ["gone"]}),
    "exchange.bind": Operation(
        said(c.Exchange.Bind(destination="own-x", source="x", routing_key="k")), {"write": ["own"], "read": ["x"]}
    ),
    "exchange.unbind": Operation(
        said(c.Exchange.Unbind(destination="own-x", source="x", routing_key="no")), {"write": ["own"], "read": ["x"]}
    ),
    "queue.declare": Operation(own(lambda name: c.Queue.Declare(queue=name)), {"configure": ["own"]}),
    "queue.declare, dead letters": Operation(
        own(lambda name: c.Queue.Declare(queue=f"{name}-dl", arguments=DLX)),
        {"configure": ["own"], "read": ["own"], "write": ["own"]},
    ),
    "queue.declare, dead letters, there": Operation(
        said(c.Queue.Declare(queue="own-there", arguments=DLX)),
        # RabbitMQ asks for the first alone: docs/differences.md.
        {"configure": ["own"], "read": ["own"], "write": ["own"]},
    ),
    "queue.declare, no name": Operation(said(c.Queue.Declare(exclusive=True)), {"configure": ["amq.gen-"]}),
    "queue.declare, passive": Operation(said(c.Queue.Declare(queue="q", passive=True)), looks=("q",)),
    "queue.bind": Operation(
        said(c.Queue.Bind(queue="q", exchange="own-x", routing_key="k")), {"write": ["q"], "read": ["own"]}
    ),
    "queue.unbind": Operation(
        said(c.Queue.Unbind(queue="q", exchange="own-x", routing_key="no")), {"write": ["q"], "read": ["own"]}
    ),
    "queue.purge": Operation(said(c.Queue.Purge(queue="q")), {"read": ["q"]}),
    "queue.delete": Operation(said(c.Queue.Delete(queue="gone")), {"configure": ["gone"]}),
    "basic.get": Operation(said(c.Basic.Get(queue="q", no_ack=True)), {"read": ["q"]}),
    "basic.consume": Operation(said(c.Basic.Consume(queue="q")), {"read": ["q"]}),
    "basic.consume, of nobody": Operation(said(c.Basic.Consume(queue="amq.rabbitmq.reply-to", no_ack=True))),
    "basic.consume, of the management node": Operation(
        raw(60, 20, b"\0\0", short("$management"), short(""), b"\x02\0\0\0\0")
    ),
    "basic.publish": Operation(publish("x", "k"), {"write": ["x"]}),
    "basic.publish, default": Operation(publish("", "q"), {"write": [DEFAULT]}),
    "basic.publish, to the management node": Operation(publish("", "$management"), {"write": [DEFAULT]}),
    "basic.publish, nowhere": Operation(publish("none", "k"), {"write": ["none"]}),
    "basic.publish, CC": Operation(publish("x", "k", headers={"CC": ["q"]}), {"write": ["x"]}),
    "basic.qos": Operation(said(c.Basic.Qos(prefetch_count=1))),
    "basic.recover-async": Operation(raw(60, 100, b"\x01")),
    "basic.cancel": Operation(said(c.Basic.Cancel("none"))),
    "basic.ack": Operation(said(c.Basic.Ack(7))),
    "basic.reject": Operation(said(c.Basic.Reject(7))),
    "basic.nack": Operation(said(c.Basic.Nack(7))),
    "channel.flow": Operation(said(c.Channel.Flow(active=True))),
    "channel.ping": Operation(raw(20, 60)),
    "confirm.select": Operation(said(c.Confirm.Select())),
    "tx.commit": Operation(said(c.Tx.Commit())),
    "tx.rollback": Operation(said(c.Tx.Rollback())),
    "tx.select": Operation(said(c.Tx.Select())),
    "access.request": Operation(raw(30, 10, short("/data"), b"\x1f")),
    "basic.recover": Operation(said(c.Basic.Recover(requeue=True))),
}
IN_OLDER: Mapping[str, Operation] = {"basic.recover": Operation(raw(60, 102, b"\x01"))}
"""What lies otherwise in 0-8 and 0-9, by its name in 0-9-1."""


def operations_of(version: Version) -> Mapping[str, Operation]:
    """Of the methods that it has."""
    names = {kind.name for kind in version.methods.values()}
    older = {} if version is AMQP_0_9_1 else IN_OLDER
    return {name: older.get(name, each) for name, each in OPERATIONS.items() if name.partition(",")[0] in names}
