"""Every operation of the management node, asked for as every role: with the answer that REST gives."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from pamqp import commands

from services.common.authentication.principal import Principal
from services.common.clients.mgmt import MgmtClient
from services.common.config import Settings
from services.mgmt.node import itself, objects
from services.mgmt.node.kinds import Type, types_of
from services.mgmt.service import Service
from services.mgmt.tree.tree import Tree
from services.rpc import mgmt_pb2 as pb
from tests.support.fake_store import FakeStore
from tests.support.managing import Asking
from tests.unit.mgmt.node.conftest import Managed
from tests.unit.mgmt.test_providers import audited

ITSELF = ("GET-TYPES", "GET-ATTRIBUTES", "GET-OPERATIONS", "GET-MGMT-NODES", "QUERY")
STANDARD = ("CREATE", "READ", "UPDATE", "DELETE")
NAMES = {
    "virtualhost": (),
    "consumer": ("q", "c|t"),
    "connection": ("4.1",),
    "session": ("4.1", "1"),
    "producer": ("4.1", "1", "x"),
    "virtualhostloginclusionrule": ("q", "q"),
}
READ_ONLY = {"consumer", "producer", "session"}
_NO_TREE: Any = None
TYPES = types_of(Tree(_NO_TREE))


class Said(NamedTuple):
    """The same over REST."""

    method: str
    path: str
    body: object = None


def _rest(type_: Type, operation: str) -> Said | None:
    """None: REST has no such route, and always answers 405."""
    names = ("/", "/", *NAMES.get(type_.category, ("q",)))
    path = f"/api/latest/{type_.category}/{'/'.join(quote(quote(each, safe=''), safe='') for each in names)}"
    if operation == "READ":
        return Said("GET", path)
    if operation in STANDARD:
        changes = type_.category not in READ_ONLY and (type_.category != "virtualhost" or operation == "UPDATE")
        says = {
            "CREATE": Said("POST", path.rpartition("/")[0], {"name": names[-1]}),
            "UPDATE": Said("PUT", path, {}),
            "DELETE": Said("DELETE", path),
        }
        return says[operation] if changes else None
    modifying = type_.kind.operations[operation].modifying
    if type_.category in READ_ONLY and modifying:
        return None
    return Said("POST" if modifying else "GET", f"{path}/{operation}", {} if modifying else None)


def _operations() -> Iterator[tuple[str, str]]:
    for name, each in TYPES.items():
        yield from product([name], [*STANDARD, *each.kind.operations])


def test_every_operation_is_tried() -> None:
    """There are no others than those that every role asks for below."""
    assert set(ITSELF) == set(itself._OPERATIONS)
    assert set(STANDARD) == set(objects._STANDARD)
    kinds = {each.kind for each in TYPES.values()}
    clients = {"Connection", "Session", "Producer", "Consumer"}
    others = {"VirtualHostAccessControlProvider", "VirtualHostConnectionLimitProvider"}
    others |= {"VirtualHostLogger", "VirtualHostLogInclusionRule"}
    assert {each.category for each in kinds} == {"VirtualHost", "Exchange", "Queue", *clients, *others}


ROLES = {
    "administrator": ({"administrator"}, False),
    "administrator-1": ({"administrator"}, True),
    "monitoring": ({"monitoring"}, False),
    "monitoring-1": ({"monitoring"}, True),
    "management-1": ({"management"}, True),
    "none": (set[str](), False),
    "messaging": (set[str](), True),
}
"""Tags, and whether they may do everything in the virtual host."""


@pytest.fixture
async def everybody(managed: Managed) -> list[Principal]:
    """A user for each role, and what is in the virtual host that they try things at."""
    for name, (tags, permitted) in ROLES.items():
        await managed.client.put_user(name, "secret", tags)
        if permitted:
            permission = pb.Permission(user=name, configure=".*", write=".*", read=".*")
            await managed.client.change_access(put_permission=permission)
    client = await managed.house.connect()
    await client.declare("q", durable=True)
    await client.call(1, commands.Exchange.Declare(exchange="q"), commands.Exchange.DeclareOk)
    return [Principal(name, "internal", tags=frozenset(tags)) for name, (tags, _) in ROLES.items()]


async def test_every_operation_as_every_role(managed: Managed, everybody: list[Principal]) -> None:
    """A role refused over REST is refused here, with the same words, and no other; missing objects aside."""
    refusals: dict[tuple[str, str, str], str | None] = {}
    for name, operation in sorted(_operations(), key=lambda each: each[1] == "DELETE"):
        category = TYPES[name].category
        rest, key = _rest(TYPES[name], operation), "/".join(NAMES.get(category, ("q",)))
        for who in everybody:
            addressed = {"name": key} if operation == "CREATE" else {"index": "object-path", "key": key}
            told = await managed.ask(operation, {}, who, type=name, **addressed)
            refusal = told.description if told.status == 403 else None
            about = category, operation, who.name
            if about not in refusals and rest:
                status, body, _ = await managed.rest(rest.path, f"{who.name}:secret", rest.method, rest.body)
                refusals[about] = (body.get("reason") or body["errorMessage"]) if status == 403 else None
            assert refusal == refusals.get(about, refusal), (name, about, told)
            assert rest or told.status in {403, 404, 501}, (name, about, told)
    for category, operation, _ in refusals:
        of_roles = [refusals[category, operation, role] for role in ROLES]
        assert of_roles[-1], (category, operation)
        assert None in of_roles, (category, operation)


@pytest.mark.parametrize("operation", ITSELF)
async def test_the_node_itself_as_every_role(operation: str, managed: Managed, everybody: list[Principal]) -> None:
    """Users who may read the metadata over REST may here, and each sees the objects that it may look at."""
    for who in everybody:
        status, _, _ = await managed.rest("/service/metadata", f"{who.name}:secret")
        told = await managed.ask.itself(operation, who=who)
        assert (told.status == 403) is (status == 403), (who, told)
        for name in TYPES if operation == "QUERY" else ():
            status, _, _ = await managed.rest(f"/api/latest/{TYPES[name].category}", f"{who.name}:secret")
            told = await managed.ask.itself("QUERY", who=who, entityType=name)
            assert (told.status == 403) is (status == 403), (name, who)


async def test_all_there_is_is_what_one_may_look_at(managed: Managed, everybody: list[Principal]) -> None:
    """Rules of the virtual host are for administrators, also in a QUERY for everything."""
    acl = pb.Acl(virtual_host="/", text="CONFIG DEFAULTDEFER=TRUE")
    await managed.client.change_access(put_acl=acl)
    seen: dict[str, bool] = {}
    for role in ("monitoring", "administrator"):
        who = next(each for each in everybody if each.name == role)
        for _ in range(100):
            told = await managed.ask.itself("QUERY", {"attributeNames": ["type"]}, who)
            seen[role] = any("AccessControl" in row[0] for row in told.body["results"])
            if seen[role]:
                break
    assert seen == {"monitoring": False, "administrator": True}


async def test_rules(client: MgmtClient) -> None:
    """A rule may let in a user without a tag, and keep out an administrator."""
    await client.put_user("anna", "secret")
    rules = "ACL ALLOW anna ACCESS MANAGEMENT\nACL ALLOW anna ACCESS_LOGS BROKER\nACL DENY guest ACCESS MANAGEMENT"
    await client.change_access(put_acl=pb.Acl(text=f"CONFIG DEFAULTDEFER=TRUE\n{rules}"))
    ask, anna = Asking(client), Principal("anna", "internal")
    for _ in range(100):
        if (await ask.itself("GET-TYPES", who=anna)).status == 200:
            break
    assert (await ask.itself("GET-TYPES", who=anna)).status == 200
    assert (await ask.itself("GET-TYPES")).status == 403


async def test_what_is_denied_is_on_record(settings: Settings, store: FakeStore) -> None:
    """In the audit log: the user, the object, and that the node was asked."""
    service = Service(settings)
    await service.start()
    async with MgmtClient(settings.address_of("mgmt")) as client:
        told = await Asking(client).itself("GET-TYPES", who=Principal("anna", "internal"))
    await service.stop()
    [denied] = [line for line in audited(settings.data) if line["event"] == "denied"]
    assert (denied["user"], denied["what"], denied["through"]) == ("anna", "MANAGEMENT", "$management")
    assert (denied["reason"], denied["peer"]) == (told.description, "127.0.0.1")
