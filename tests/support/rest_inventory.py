"""The objects of a broker to which any HTTP request is sent, restored before the next request.

Otherwise a request that deletes the only user, or loads rules that let no user in, is the last one that is answered.
"""

from __future__ import annotations

from collections.abc import Mapping

from services.common.clients.store import StoreClient
from services.common.clients.virtual_hosts import VirtualHostsClient
from services.mgmt.rabbitmq.forms import ExchangeForm, QueueForm
from services.rpc.store_pb2 import Record
from tests.support.threaded_broker import ThreadedBroker

_KINDS = (
    "access_begun", "acl", "authentication_provider", "capture_rule", "configured_object", "group", "permission",
    "port", "scram", "topic_permission", "user",
)  # fmt: skip
_PLACES = ("%2F", "%2F/%2F", "internal", "amqp", "acl", "%2F/%2F/q", "%2F/%2F/x", "internal/u", "internal/g", "*")
_OPERATIONS = (
    "q/clearQueue", "q/getStatistics", "q/getMessageInfo", "q/deleteMessages", "q/moveMessages", "x/bind", "x/unbind",
    "x/setContextVariable",
)  # fmt: skip
NAMES: Mapping[str, tuple[str, ...]] = {
    "hosts": ("/",),
    "names": ("q", "x", "u", "g", "amqp", "amq.topic", "amq.default"),
    "paths": (*_PLACES, *(f"%2F/%2F/{each}" for each in _OPERATIONS), "queue", "%2F/%2F/queue"),
}
"""Names of existing objects by kind; names in paths of the tree are encoded once."""
NAMED: Mapping[str, str] = {
    **dict.fromkeys(("path.vhost", "query.vhost"), "hosts"),
    **dict.fromkeys(("path.name", "path.user", "path.source", "path.destination", "query.exchange"), "names"),
    "path.path": "paths",
}
"""Which parameters of the document they are for."""


class Inventory:
    """The first user, another one, a group, a queue and an exchange."""

    def __init__(self, broker: ThreadedBroker) -> None:
        self._broker = broker
        self._objects, self._changes = broker.mgmt._broker.objects, broker.mgmt._broker.changes
        broker.call(self._begin())

    async def _begin(self) -> None:
        self._store = StoreClient(self._broker.house.address_of("store"))
        self._hosts = VirtualHostsClient(self._broker.house.address_of("router"))
        await self._broker.mgmt._house.users.put("u", "secret", ("management",), loopback_only=False)
        await self._objects.known()
        await self._declare()
        self._kept = await self._records()

    def restore(self) -> None:
        """All of it, and nothing else of users and what they may do."""
        self._broker.call(self._restore())

    def close(self) -> None:
        self._broker.call(self._store.close())
        self._broker.call(self._hosts.close())

    async def _restore(self) -> None:
        now = await self._records()
        puts = [Record(kind=kind, key=key, value=value) for (kind, key), value in self._kept.items() - now.items()]
        deletes = [Record(kind=kind, key=key) for kind, key in now.keys() - self._kept.keys()]
        if puts or deletes:
            await self._store.put_records(puts, deletes)
        await self._declare()

    async def _declare(self) -> None:
        await self._hosts.create("/")
        await self._changes.declare_queue("/", "q", QueueForm(durable=True))
        await self._changes.declare_exchange("/", "x", ExchangeForm(type="topic", durable=True))

    async def _records(self) -> dict[tuple[str, str], bytes]:
        return {(each.kind, each.key): each.value for each in await self._store.list_records(_KINDS)}
