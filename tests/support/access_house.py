"""A broker with a user for each role, and a virtual host with what they try to do things to."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from pamqp import commands as c

from services.common.access.records import Permission
from services.common.clients.store import StoreClient
from services.common.clients.virtual_hosts import VirtualHostsClient
from services.gateway import vocabulary as v
from services.gateway.operations import OPERATIONS, Operation, needs
from services.mgmt.access.grants import Grants
from services.mgmt.users import Users
from tests.support.amqp_client import AmqpClient
from tests.support.broker_house import BrokerHouse

HERE = "access"  # virtual host
DLX = {"x-dead-letter-exchange": "own-dlx"}
ANYTHING = {"configure": ".*", "write": ".*", "read": ".*"}
ROLES: Mapping[str, Mapping[str, str]] = {
    "all": ANYTHING,
    "configures": {"configure": ".*"},
    "writes": {"write": ".*"},
    "reads": {"read": ".*"},
    "no-configure": {**ANYTHING, "configure": ""},
    "no-write": {**ANYTHING, "write": "^$"},
    "no-read": {**ANYTHING, "read": ""},
    "own": dict.fromkeys(ANYTHING, "^own"),
    "publishes": {"write": r"^amq\.default$"},
    "temporary": dict.fromkeys(ANYTHING, r"^amq\.gen"),
    "nothing": {},
}


def may(role: str, needs: Mapping[str, list[str]], *, anything: bool = False) -> bool:
    """By what RabbitMQ's table says that an operation needs, and the role: no line of the broker's is in it.

    `anything`: one of the permissions is enough.
    """
    expressions = ROLES[role]
    answers = [
        bool(expressions.get(kind)) and bool(re.search(expressions[kind], name))
        for kind, names in needs.items()
        for name in names
    ]
    return any(answers) if anything else all(answers)


OF_LINKS: set[type[v.Request]] = {v.FindNode, v.Produce, v.ReplaceQueue}
"""What AMQP 1.0 alone asks for."""


def wanted() -> Mapping[type[v.Request], Operation]:
    """Requests on sessions that need to be allowed: each has to be tried."""
    asks_nothing = {needs.nothing, needs.open_virtual_host}
    return {kind: each for kind, each in OPERATIONS.items() if each.needs not in asks_nothing}


def heard_of(monkeypatch: pytest.MonkeyPatch) -> set[type[v.Request]]:
    """The kinds of requests that were asked about since, in every gateway of this process."""
    heard: set[type[v.Request]] = set()

    def hear(asker: Any, request: v.Request) -> None:
        heard.add(type(request))
        former[type(request)].needs(asker, request)

    former = wanted()
    for kind, operation in former.items():
        monkeypatch.setitem(OPERATIONS, kind, replace(operation, needs=hear))
    return heard


class AccessHouse(NamedTuple):
    """What tests have in common."""

    broker: BrokerHouse
    grants: Grants

    async def client(self, user: str, **options: Any) -> AmqpClient:
        return await self.broker.connect(user=user, password="secret", virtual_host=HERE, **options)


@asynccontextmanager
async def access_house(broker: BrokerHouse) -> AsyncIterator[AccessHouse]:
    """A virtual host with what operations are about, and a user for each role."""
    store = StoreClient(broker.address_of("store"))
    users, grants = Users(store), Grants(store)
    async with VirtualHostsClient(broker.address_of("router")) as hosts:
        await hosts.create(HERE)
        for role in (*ROLES, "outside"):
            await users.put(role, "secret", (), loopback_only=False)
        for role, expressions in ROLES.items():
            await grants.put_permission(Permission(user=role, virtual_host=HERE, **expressions))
        guest = await broker.connect(virtual_host=HERE)
        for name in ("x", "own-x", "own-dlx", "own-ae"):
            await guest.call(1, c.Exchange.Declare(exchange=name), c.Exchange.DeclareOk)
        await guest.declare("q")
        await guest.declare("own-there", arguments=DLX)
        yield AccessHouse(broker, grants)
        await hosts.delete(HERE)
    for role in (*ROLES, "outside"):
        await users.delete(role)
        await grants.forget_user(role)
    await store.close()
