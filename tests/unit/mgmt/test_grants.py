"""Permissions, groups and rules on record, and which callers may ask for them."""

from __future__ import annotations

import inspect
from typing import Any
from unittest.mock import Mock

import pytest

from services.common.access import records
from services.common.access.asked import Principal
from services.common.access.records import VIRTUAL_HOST, AclText, Group, Permission, TopicPermission
from services.common.access.rules import Rules
from services.common.clients.access import Access
from services.common.clients.mgmt import MgmtClient
from services.common.clients.store import StoreClient
from services.common.config import Settings
from services.common.errors import AccessRefused, NotFound, SyntaxFault
from services.common.first_user import GUEST
from services.common.topology.records import VIRTUAL_HOST as OF_THE_ROUTER
from services.common.users import User
from services.mgmt.access.grants import Grants
from services.mgmt.access.guard import OPERATOR, Guard
from services.mgmt.access.operations import CHANGES, CONFIGURE, OBSERVE, RPCS
from services.mgmt.rabbitmq.operations import OBJECTS
from services.mgmt.service import Service
from services.rpc import mgmt_pb2 as pb
from services.rpc.mgmt_pb2_grpc import MgmtServicer
from services.rpc.objects_pb2_grpc import ObjectsServicer
from services.rpc.store_pb2 import Record
from tests.support.fake_store import FakeStore
from tests.support.rest import Get

ANNA = pb.Permission(user="anna", virtual_host="/", configure="^a", write="^a", read=".*")


@pytest.fixture(autouse=True)
def virtual_hosts(store: FakeStore) -> None:
    """Two of them."""
    for name in ("/", "work"):
        store.records[VIRTUAL_HOST, name] = Record(kind=VIRTUAL_HOST, key=name, value=b"{}")


def kept(store: FakeStore, kind: str) -> list[bytes]:
    return [record.value for (of_kind, _), record in store.records.items() if of_kind == kind]


def user(name: str) -> Record:
    return Record(kind="user", key=name, value=User(name=name, password_hash="").to_json())


# ------------------------------------------------------------------ how they begin


async def test_the_first_user_may_do_everything(client: MgmtClient, store: FakeStore) -> None:
    """A newcomer's first user has every permission everywhere; a second one none until told."""
    await client.put_user("anna", "secret")
    [everything] = map(Permission.from_json, kept(store, records.PERMISSION))
    assert everything == Permission(user=GUEST.name, configure=".*", write=".*", read=".*")
    assert kept(store, records.BEGUN)


async def test_users_from_before(settings: Settings, store: FakeStore) -> None:
    """Users from before there were permissions keep all rights, once; a later user, or a cleared one, does not."""
    for name in ("anna", "bob"):
        store.records["user", name] = user(name)
    first = Service(settings)
    await first.start()
    assert {Permission.from_json(each).user for each in kept(store, records.PERMISSION)} == {"anna", "bob"}
    async with MgmtClient(settings.address_of("mgmt")) as client:
        await client.change_access(clear_permission=pb.PermissionKey(user="bob"))
        await client.put_user("carl", "secret")
    await first.stop()
    second = Service(settings)
    await second.start()
    assert {Permission.from_json(each).user for each in kept(store, records.PERMISSION)} == {"anna"}
    await second.stop()


# ------------------------------------------------------------------ what is set


async def test_set_and_cleared(client: MgmtClient, store: FakeStore) -> None:
    """Each kind is put, replaced, listed and removed; what is not there cannot be removed."""
    topic = pb.TopicPermission(user="anna", virtual_host="/", exchange="t", write="^eu")
    await client.change_access(put_permission=pb.Permission(user="anna", virtual_host="/"))
    for put in (
        {"put_permission": ANNA},
        {"put_topic_permission": topic},
        {"put_group": pb.Group(name="clerks", members=["anna"])},
        {"put_acl": pb.Acl(virtual_host="/", text="ACL DENY anna ALL")},
        {"put_acl": pb.Acl(text="CONFIG DEFAULTDEFER=TRUE")},
        {"put_limits": pb.Limits(user="anna", values={"max-connections": 1})},
        {"put_limits": pb.Limits(user="anna", values={"max-channels": -1})},
        {"put_limits": pb.Limits(virtual_host="/", values={"max-queues": 5})},
    ):
        await client.change_access(**put)
    listed = await client.list_access()
    assert list(listed.permissions) == [ANNA, pb.Permission(user="guest", configure=".*", write=".*", read=".*")]
    assert list(listed.topic_permissions) == [topic]
    assert [(each.name, list(each.members)) for each in listed.groups] == [("clerks", ["anna"])]
    assert [each.HasField("virtual_host") for each in listed.acls] == [True, False]
    limits = {each.user or each.virtual_host: dict(each.values) for each in listed.limits}
    assert limits == {"anna": {"max-connections": 1, "max-channels": -1}, "/": {"max-queues": 5}}
    for cleared in (
        {"clear_permission": pb.PermissionKey(user="anna", virtual_host="/")},
        {"clear_topic_permission": pb.TopicPermissionKey(user="anna", virtual_host="/", exchange="t")},
        {"delete_group": pb.GroupKey(name="clerks")},
        {"remove_acl": pb.AclKey(virtual_host="/")},
        {"remove_acl": pb.AclKey()},
        {"clear_limit": pb.LimitKey(user="anna", limit="max-channels")},
        {"clear_limit": pb.LimitKey(user="anna")},
        {"clear_limit": pb.LimitKey(virtual_host="/")},
    ):
        await client.change_access(**cleared)
        with pytest.raises(NotFound):
            await client.change_access(**cleared)
    assert [each.user for each in (await client.list_access()).permissions] == ["guest"]


async def test_members(client: MgmtClient) -> None:
    """Join a group, which is made for the first, and leave it; a user who is not in it cannot leave it."""
    for user in ("anna", "bob", "anna"):
        await client.change_access(join_group=pb.Membership(group="clerks", user=user))
    await client.change_access(leave_group=pb.Membership(group="clerks", user="bob"))
    assert [list(each.members) for each in (await client.list_access()).groups] == [["anna"]]
    for group in ("clerks", "none"):
        with pytest.raises(NotFound, match=f"user 'bob' is in no group '{group}'"):
            await client.change_access(leave_group=pb.Membership(group=group, user="bob"))


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"put_permission": pb.Permission(user="anna", read="(")}, SyntaxFault, "no regular expression"),
        ({"put_permission": pb.Permission(user="anna", virtual_host="gone")}, NotFound, "vhost 'gone' not found"),
        ({"put_permission": pb.Permission()}, SyntaxFault, "user"),
        ({"put_acl": pb.Acl(text="\nACL ALLOW x")}, SyntaxFault, "line 2"),
        ({"put_acl": pb.Acl(text="")}, SyntaxFault, "by none everybody would be refused"),
        ({"put_acl": pb.Acl(text="# nobody yet\n\n")}, SyntaxFault, "by none everybody would be refused"),
        ({"put_topic_permission": pb.TopicPermission(user="a", virtual_host="gone")}, NotFound, "gone"),
        ({"join_group": pb.Membership(group="g" * 256, user="anna")}, SyntaxFault, "group"),
        ({"put_limits": pb.Limits(values={"max-queues": 1})}, SyntaxFault, "of a user or of a virtual host"),
        ({"put_limits": pb.Limits(user="anna", values={"max-queues": 1})}, SyntaxFault, "no limit 'max-queues'"),
        ({"put_limits": pb.Limits(user="anna", values={"max-channels": 1 << 40})}, SyntaxFault, "max-channels is"),
        ({"put_limits": pb.Limits(virtual_host="gone", values={"max-queues": 1})}, NotFound, "vhost 'gone'"),
        ({}, SyntaxFault, "names no change"),
    ],
)
async def test_what_cannot_be(client: MgmtClient, change: dict[str, Any], error: type[Exception], text: str) -> None:
    """Is refused to its caller, and not kept."""
    with pytest.raises(error, match=text):
        await client.change_access(**change)


async def test_a_user_takes_it_along(client: MgmtClient, store: FakeStore) -> None:
    """A new user with the name of a deleted one has no permissions."""
    await client.put_user("anna", "secret")
    await client.change_access(put_permission=ANNA)
    await client.change_access(put_group=pb.Group(name="clerks", members=["anna", "bob"]))
    await client.delete_user("anna")
    assert [Permission.from_json(each).user for each in kept(store, records.PERMISSION)] == ["guest"]
    assert [Group.from_json(each).members for each in kept(store, records.GROUP)] == [("bob",)]


async def test_a_virtual_host_takes_it_along(settings: Settings, store: FakeStore) -> None:
    """What was permitted in a virtual host that is gone is not permitted in the next one of that name."""
    connected = StoreClient(settings.address_of("store"))
    grants = Grants(connected)
    for host in ("work", "/", None):
        await grants.put_permission(Permission(user="anna", virtual_host=host))
    await grants.put_topic_permission(TopicPermission(user="anna", virtual_host="work", exchange="t"))
    await grants.put_acl(AclText(virtual_host="work", text="CONFIG DEFAULTDEFER=TRUE"))
    del store.records[VIRTUAL_HOST, "work"]
    watch = connected.watch_records([VIRTUAL_HOST])
    await anext(watch)
    await grants.forget_virtual_hosts()
    assert {Permission.from_json(each).virtual_host for each in kept(store, records.PERMISSION)} == {"/", None}
    assert not kept(store, records.TOPIC_PERMISSION)
    assert not kept(store, records.ACL)
    await connected.close()


def test_the_routers_records() -> None:
    """Virtual hosts are looked for where the router keeps them."""
    assert VIRTUAL_HOST == OF_THE_ROUTER


async def test_tags_alone(client: MgmtClient, store: FakeStore) -> None:
    """Change without the password, and for those who are users only."""
    await client.put_user("anna", "secret", ["monitoring"])
    before = User.from_json(store.records["user", "anna"].value)
    await client.set_tags("anna", ["administrator", "policymaker"])
    after = User.from_json(store.records["user", "anna"].value)
    assert after == before.model_copy(update={"tags": ("administrator", "policymaker")})
    with pytest.raises(NotFound):
        await client.set_tags("nobody", [])


# ------------------------------------------------------------------ which rule decides


async def test_which_rule_decides(client: MgmtClient) -> None:
    """A test says what decides, and what the user would be told."""
    await client.change_access(put_permission=ANNA)
    question = pb.TestAccessRequest(user="anna", action="publish", kind="exchange", name="b", virtual_host="/")
    reply = await client.test_access(question)
    assert (reply.allowed, reply.rule) == (
        False,
        "permission of user 'anna' in vhost '/': configure '^a' write '^a' read '.*'",
    )
    assert reply.refused == "write access to exchange 'b' in vhost '/' refused for user 'anna'"
    await client.change_access(put_acl=pb.Acl(text="ACL ALLOW anna PUBLISH EXCHANGE routing_key=eu.*"))
    question.properties["routing_key"] = "eu.new"
    reply = await client.test_access(question)
    assert (reply.allowed, reply.rule) == (True, "acl: ACL ALLOW anna PUBLISH EXCHANGE routing_key=eu.*")


async def test_groups_that_a_provider_says(client: MgmtClient) -> None:
    """A directory's users are not on record here: the caller names their groups and their tags."""
    await client.change_access(put_acl=pb.Acl(text="ACL ALLOW staff CONSUME QUEUE\nCONFIG DEFAULTDEFER=TRUE"))
    question = pb.TestAccessRequest(user="lena", action="consume", kind="queue", name="q", virtual_host="/")
    assert not (await client.test_access(question)).allowed
    question.groups.append("staff")
    reply = await client.test_access(question)
    assert (reply.allowed, reply.rule) == (True, "acl: ACL ALLOW staff CONSUME QUEUE")
    question = pb.TestAccessRequest(user="lena", action="access", kind="management", tags=["monitoring"])
    assert (await client.test_access(question)).allowed


@pytest.mark.parametrize(
    "wrong", [{"action": "fly"}, {"kind": "house"}, {"properties": {"size": "1"}}], ids=lambda wrong: next(iter(wrong))
)
async def test_questions_about_nothing(client: MgmtClient, wrong: dict[str, Any]) -> None:
    """Are refused with the list of valid ones."""
    with pytest.raises(SyntaxFault):
        await client.test_access(pb.TestAccessRequest(**{"user": "a", "action": "access", "kind": "vhost", **wrong}))


# ------------------------------------------------------------------ access


def test_every_rpc_says_what_it_does() -> None:
    """No method of mgmt, and no change of access, is without its action and object."""
    methods = {name for name, _ in inspect.getmembers(MgmtServicer, inspect.isfunction) if not name.startswith("_")}
    assert set(RPCS) == methods
    others = {name for name, _ in inspect.getmembers(ObjectsServicer, inspect.isfunction) if not name.startswith("_")}
    assert set(OBJECTS) == others
    assert set(CHANGES) == {field.name for field in pb.AccessChange.DESCRIPTOR.fields}


def test_the_guard() -> None:
    """The stack's operator may do everything; others what is permitted, and are told what was refused."""
    audit = Mock()
    guard = Guard(Access(["permissions"]), audit)
    guard.check(OPERATOR, CONFIGURE, OBSERVE)
    monitor = Principal("anna", tags=frozenset({"monitoring"}))
    guard.check(monitor, OBSERVE)
    with pytest.raises(AccessRefused, match=r"^configure access to broker refused for user 'anna'$"):
        guard.check(monitor, OBSERVE, CONFIGURE)
    [denied] = audit.count.call_args.args
    assert (denied.event, denied.user, denied.what) == ("denied", "anna", "BROKER")


def test_rules_of_the_records() -> None:
    """What mgmt writes is what is read."""
    rules = Rules()
    rules.apply(Record(kind=records.BEGUN, key=records.BEGUN_KEY, value=b"{}"))
    assert rules.begun


# ------------------------------------------------------------------ over HTTP


async def test_over_http(get: Get, client: MgmtClient) -> None:
    """The same is set, listed, tried and removed below /api/access."""
    terms = {"virtual_host": "/", "configure": "", "write": "^x$", "read": ""}
    status, made, _ = await get("/api/access/permissions/anna", "guest:guest", "PUT", terms)
    assert (status, made) == (200, {**terms, "user": "anna"})
    topic = {"virtual_host": "/", "exchange": "x", "write": "^eu", "read": ""}
    assert (await get("/api/access/topic-permissions/anna", "guest:guest", "PUT", topic))[0] == 200
    assert (await get("/api/access/groups/clerks", "guest:guest", "PUT", {"members": ["anna"]}))[0] == 200
    assert (await get("/api/access/acl", "guest:guest", "PUT", {"text": "CONFIG DEFAULTDEFER=TRUE"}))[0] == 204
    status, everything, _ = await get("/api/access")
    assert [len(each) for each in everything.values()] == [2, 1, 1, 1]
    asked = "/api/access/decision?user=anna&action=PUBLISH&kind=EXCHANGE&name=x&property=routing_key%3D"
    assert (await get(asked + "eu"))[1]["allowed"] is True
    status, decision, _ = await get(asked + "us")
    assert "write access to topic 'us' in exchange 'x'" in decision["refused"]
    for path in ("permissions/anna?vhost=/", "topic-permissions/anna?exchange=x", "groups/clerks", "acl"):
        assert (await get(f"/api/access/{path}", "guest:guest", "DELETE"))[0] == 204, path
        assert (await get(f"/api/access/{path}", "guest:guest", "DELETE"))[0] == 404, path


NOTHING = {"configure": "", "write": "", "read": ""}
EVERYTHING_OF_GUEST = {"user": "guest", "virtual_host": None, **dict.fromkeys(NOTHING, ".*")}


@pytest.mark.parametrize(
    ("kind", "missing"), [("permissions", ["configure", "read"]), ("topic-permissions", ["exchange", "read"])]
)
async def test_what_is_not_said(get: Get, kind: str, missing: list[str]) -> None:
    """Is not taken for nothing: 422 names each of them, and nothing is set."""
    status, answer, _ = await get(f"/api/access/{kind}/anna", "guest:guest", "PUT", {"write": "y"})
    assert status == 422
    assert sorted(answer["reason"].split("; ")) == [f"body.{each}: Field required" for each in missing]
    assert (await get("/api/access"))[1][kind.replace("-", "_")] in ([], [EVERYTHING_OF_GUEST])


async def test_names_with_a_slash(get: Get, client: MgmtClient) -> None:
    """Are users', groups' and permissions' too, over HTTP."""
    name, terms = "team%2Fanna", {**NOTHING, "virtual_host": "/"}
    assert (await get(f"/api/access/users/{name}", "guest:guest", "PUT", {"password": "x"}))[0] == 204
    assert "team/anna" in {each.name for each in await client.list_users()}
    assert (await get(f"/api/access/users/{name}", "guest:guest", "PATCH", {"tags": ["monitoring"]}))[0] == 204
    assert (await get("/api/ports", "team/anna:x"))[0] == 200
    status, made, _ = await get(f"/api/access/permissions/{name}", "guest:guest", "PUT", terms)
    assert (status, made["user"]) == (200, "team/anna")
    assert (await get(f"/api/access/permissions/{name}?vhost=/", "guest:guest", "DELETE"))[0] == 204
    topic = {"exchange": "x", "write": "", "read": ""}
    assert (await get(f"/api/access/topic-permissions/{name}", "guest:guest", "PUT", topic))[0] == 200
    assert (await get(f"/api/access/groups/{name}", "guest:guest", "PUT", {"members": ["team/anna"]}))[0] == 200
    for path in ("users", "groups"):
        assert (await get(f"/api/access/{path}/{name}", "guest:guest", "DELETE"))[0] == 204


@pytest.mark.parametrize(
    ("path", "method", "body", "fault"),
    [
        ("permissions/anna", "PUT", {**NOTHING, "read": "("}, "body.read: '(' is no regular expression"),
        ("permissions/anna", "PUT", {**NOTHING, "virtual_host": "gone"}, "vhost 'gone'"),
        ("acl", "PUT", {"text": "ACL"}, "line 1"),
        ("decision?user=a&action=FLY&kind=EXCHANGE", "GET", None, "FLY"),
        ("decision?user=a&action=PUBLISH&kind=EXCHANGE&property=x", "GET", None, "name=value"),
    ],
)
async def test_faults_over_http(get: Get, path: str, method: str, body: Any, fault: str) -> None:
    """Are answered with a reason."""
    status, answer, _ = await get(f"/api/access/{path}", "guest:guest", method, body)
    assert status in {400, 404}
    assert fault in answer["reason"]
