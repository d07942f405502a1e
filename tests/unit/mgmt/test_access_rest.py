"""Every route of mgmt, asked for as every role."""

from __future__ import annotations

import re
from typing import Any

import pytest

from services.common.access.tags import KNOWN
from services.common.clients.mgmt import MgmtClient
from services.mgmt.model.broker import Broker as Root
from services.mgmt.rabbitmq.sections import Broker
from services.mgmt.rest.application import application
from services.mgmt.rest.basic import Doors
from services.mgmt.rest.own_routes import Shown
from services.mgmt.service import Service
from services.mgmt.tree import topology
from services.mgmt.tree.tree import Tree
from services.rpc import mgmt_pb2 as pb
from tests.support.rest import Get

OBSERVERS, ADMINISTRATORS = {"administrator", "monitoring"}, {"administrator"}

SEEN_BY = {
    **dict.fromkeys(("broker", "connection", "consumer", "exchange", "plugin", "port", "queue", "session"), OBSERVERS),
    "producer": OBSERVERS,
    **dict.fromkeys(("brokerlogger", "brokerloginclusionrule", "virtualhost", "virtualhostnode"), OBSERVERS),
    **dict.fromkeys(("authenticationprovider", "user", "groupprovider", "group", "groupmember"), ADMINISTRATORS),
    **dict.fromkeys(("accesscontrolprovider", "virtualhostaccesscontrolprovider"), ADMINISTRATORS),
    **dict.fromkeys(("brokerconnectionlimitprovider", "virtualhostconnectionlimitprovider"), ADMINISTRATORS),
    **dict.fromkeys(("keystore", "truststore"), ADMINISTRATORS),
    **dict.fromkeys(("virtualhostlogger", "virtualhostloginclusionrule"), OBSERVERS),
}
READ_ONLY = {
    "consumer",
    "groupprovider",
    "plugin",
    "producer",
    "session",
    "virtualhostnode",
}


def _of_model(category: str) -> dict[tuple[str, str], set[str]]:
    """A path that names no single object is for administrators, with any permissions for objects."""
    paths = [f"/api/{{version}}/{category}{rest}" for rest in ("", "/{path}")]
    methods = [] if category in READ_ONLY else ["PUT", "POST"] if category == "broker" else ["PUT", "POST", "DELETE"]
    read = {("GET", path): SEEN_BY[category] for path in paths}
    return read | {(method, path): ADMINISTRATORS for method in methods for path in paths}


_MODEL = {route: tags for category in SEEN_BY for route, tags in _of_model(category).items()}
# Of a category that there is not.
for _path in ("querybroker", "queryvhost"):
    _MODEL |= {(_method, f"/api/{{version}}/{_path}/{{path}}"): ADMINISTRATORS for _method in ("GET", "POST")}
# Preferences, at what is of no category; at others they are for those who may look there.
for _part in ("", "/{type}", "/{type}/{name}"):
    _own = f"/api/{{version}}/{{path}}/userpreferences{_part}"
    _MODEL |= {(_method, _own): ADMINISTRATORS for _method in ("GET", "PUT", "POST", "DELETE")}
    _MODEL["GET", f"/api/{{version}}/{{path}}/visiblepreferences{_part}"] = ADMINISTRATORS

EVERYBODY = set(KNOWN)


def _of_rabbitmq() -> dict[tuple[str, str], set[str]]:
    """Lists are of what the user sees; what is in a virtual host that there is not, observers alone are told."""
    seen = ("vhosts", "exchanges", "queues", "bindings", "consumers")
    others = ("whoami", "overview", "cluster-name", "connections", "channels")
    found = {("GET", f"/api/{path}"): EVERYBODY for path in (*seen, *others)}
    for path in ("connections/{name}", "connections/{name}/channels", "channels/{name}"):
        found["GET", f"/api/{path}"] = EVERYBODY
    found["DELETE", "/api/connections/{name}"] = EVERYBODY
    for path in ("vhosts/{vhost}/connections", "vhosts/{vhost}/channels", "nodes", "nodes/{name}"):
        found["GET", f"/api/{path}"] = OBSERVERS
    for path in ("alarms", "local-alarms", "virtual-hosts", "port-listener/{port}"):
        found["GET", f"/api/health/checks/{path}"] = OBSERVERS
    found["GET", "/api/aliveness-test/{vhost}"] = OBSERVERS
    found |= {("GET", f"/api/{path}/{{vhost}}"): OBSERVERS for path in seen if path != "vhosts"}
    one = "/api/vhosts/{name}"
    found |= {("GET", one): OBSERVERS, ("PUT", one): ADMINISTRATORS, ("DELETE", one): ADMINISTRATORS}
    for kind, more in (("exchanges", ("/bindings/source", "/bindings/destination")), ("queues", ("/bindings",))):
        one = f"/api/{kind}/{{vhost}}/{{name}}"
        found |= {(method, one): OBSERVERS for method in ("GET", "PUT", "DELETE")}
        found |= {("GET", one + each): OBSERVERS for each in more}
    found[("DELETE", "/api/queues/{vhost}/{name}/contents")] = OBSERVERS
    found[("POST", "/api/queues/{vhost}/{name}/get")] = OBSERVERS
    found[("POST", "/api/exchanges/{vhost}/{name}/publish")] = OBSERVERS
    for char in "qe":
        path = f"/api/bindings/{{vhost}}/e/{{source}}/{char}/{{destination}}"
        found |= {(method, path): OBSERVERS for method in ("GET", "POST")}
        found |= {(method, path + "/{props}"): OBSERVERS for method in ("GET", "DELETE")}
    found |= {("GET", "/api/vhost-limits"): EVERYBODY, ("GET", "/api/vhost-limits/{name}"): OBSERVERS}
    return found | _of_policies() | _of_administrators() | _absent()


def _of_policies() -> dict[tuple[str, str], set[str]]:
    """A policymaker sets those of virtual hosts that it may open, of which there are none here."""
    found: dict[tuple[str, str], set[str]] = {}
    for kind in ("/api/policies", "/api/operator-policies"):
        one = f"{kind}/{{vhost}}/{{name}}"
        found |= {("GET", kind): EVERYBODY, ("GET", f"{kind}/{{vhost}}"): OBSERVERS, ("GET", one): OBSERVERS}
        found |= {("PUT", one): ADMINISTRATORS, ("DELETE", one): ADMINISTRATORS}
    return found


def _of_administrators() -> dict[tuple[str, str], set[str]]:
    found = [("GET", f"/api/vhosts/{{name}}/{each}") for each in ("permissions", "topic-permissions")]
    found += [(method, f"/api/definitions{rest}") for method in ("GET", "POST") for rest in ("", "/{vhost}")]
    for kind in ("permissions", "topic-permissions"):
        found += [("GET", f"/api/{kind}")]
        found += [(method, f"/api/{kind}/{{vhost}}/{{user}}") for method in ("GET", "PUT", "DELETE")]
    for kind in ("vhost-limits", "user-limits"):
        found += [(method, f"/api/{kind}/{{name}}/{{limit}}") for method in ("PUT", "DELETE")]
    found += [("GET", "/api/user-limits"), ("GET", "/api/user-limits/{name}")]
    found += [(method, "/api/users/{name}") for method in ("GET", "PUT", "DELETE")]
    found += [("GET", "/api/users/{name}/permissions"), ("GET", "/api/users/{name}/topic-permissions")]
    found += [("GET", "/api/users"), ("GET", "/api/users/without-permissions"), ("POST", "/api/users/bulk-delete")]
    return dict.fromkeys(found, ADMINISTRATORS)


def _absent() -> dict[tuple[str, str], set[str]]:
    places = {
        "parameters": ("/{component}", "/{vhost}", "/{name}"),
        "global-parameters": ("/{name}",),
    }
    paths = [f"/api/{kind}{''.join(parts[:n])}" for kind, parts in places.items() for n in range(len(parts) + 1)]
    whole = [f"/api/{kind}{''.join(parts)}" for kind, parts in places.items()]
    found = [("GET", path) for path in paths] + [(method, path) for path in whole for method in ("PUT", "DELETE")]
    return dict.fromkeys(found, EVERYBODY)


_RABBITMQ = _of_rabbitmq()

ROUTES: dict[tuple[str, str], set[str]] = {
    ("GET", "/api/trace/{id}"): OBSERVERS,
    ("GET", "/api/trace"): OBSERVERS,
    ("GET", "/api/route"): OBSERVERS,
    ("GET", "/api/ports"): OBSERVERS,
    ("PUT", "/api/ports/{name}"): ADMINISTRATORS,
    ("DELETE", "/api/ports/{name}"): ADMINISTRATORS,
    ("GET", "/api/capture/rules"): ADMINISTRATORS,
    ("PUT", "/api/capture/rules/{name}"): ADMINISTRATORS,
    ("DELETE", "/api/capture/rules/{name}"): ADMINISTRATORS,
    ("GET", "/api/capture/messages/{id}"): ADMINISTRATORS,
    ("GET", "/api/authentication-providers"): ADMINISTRATORS,
    ("PUT", "/api/authentication-providers/{name}"): ADMINISTRATORS,
    ("DELETE", "/api/authentication-providers/{name}"): ADMINISTRATORS,
    ("GET", "/api/access"): ADMINISTRATORS,
    ("GET", "/api/access/users"): ADMINISTRATORS,
    ("PUT", "/api/access/users/{name}"): ADMINISTRATORS,
    ("PATCH", "/api/access/users/{name}"): ADMINISTRATORS,
    ("DELETE", "/api/access/users/{name}"): ADMINISTRATORS,
    ("GET", "/api/access/decision"): ADMINISTRATORS,
    ("PUT", "/api/access/permissions/{user}"): ADMINISTRATORS,
    ("DELETE", "/api/access/permissions/{user}"): ADMINISTRATORS,
    ("PUT", "/api/access/topic-permissions/{user}"): ADMINISTRATORS,
    ("DELETE", "/api/access/topic-permissions/{user}"): ADMINISTRATORS,
    ("PUT", "/api/access/acl"): ADMINISTRATORS,
    ("DELETE", "/api/access/acl"): ADMINISTRATORS,
    ("PUT", "/api/access/groups/{name}"): ADMINISTRATORS,
    ("DELETE", "/api/access/groups/{name}"): ADMINISTRATORS,
    ("GET", "/service/metadata"): OBSERVERS,
    ("GET", "/service/structure"): OBSERVERS,
    ("GET", "/service/timezones"): OBSERVERS,
    ("GET", "/metrics"): OBSERVERS,
    ("GET", "/metrics/per-object"): OBSERVERS,
    **_MODEL,
    **_RABBITMQ,
}
"""Which tags each accepts. A new route needs its line here, or no role tries it."""


def test_every_route_is_tried() -> None:
    """There is no other than those that every role asks for below."""
    unasked: Any = None
    shown, broker = Shown(*[unasked] * len(Shown._fields)), Broker(unasked, unasked, unasked)
    app = application(Doors(unasked, unasked), shown, unasked, Tree(unasked), broker)
    described = {(method.upper(), path) for path, methods in app.openapi()["paths"].items() for method in methods}
    assert described == set(ROUTES)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no router here, and no request should wait for one."""
    monkeypatch.setattr(topology, "_DEADLINE", 0.2)


@pytest.fixture
async def everybody(client: MgmtClient) -> list[str]:
    """A user for each tag, one with none, and one who may publish everything and has no tag either."""
    for tag in KNOWN:
        await client.put_user(tag, "secret", [tag])
    await client.put_user("none", "secret")
    await client.put_user("messaging", "secret")
    permission = pb.Permission(user="messaging", configure=".*", write=".*", read=".*")
    await client.change_access(put_permission=permission)
    return [*KNOWN, "none", "messaging"]


def _about(route: tuple[str, str]) -> str:
    """Of another broker's API one test tries all routes: making a user takes longer than asking."""
    if route in _RABBITMQ:
        return "RabbitMQ's"
    return "Broker-J's" if route in _MODEL else " ".join(route)


@pytest.mark.parametrize("about", dict.fromkeys(map(_about, ROUTES)))
async def test_every_route_as_every_role(
    about: str, get: Get, everybody: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each role gets in exactly where it may; the named object may be missing or wrong then."""
    monkeypatch.setattr(topology, "_DEADLINE", 0.5)  # there is no router, for which it would be waited as long as here
    for method, path in (route for route in ROUTES if _about(route) == about):
        concrete = re.sub(r"\{\w+\}", "nobody", path.replace("{version}", "latest"))
        for role in everybody:
            status, body, _ = await get(concrete, f"{role}:secret", method)
            refused = 401 if (method, path) in _RABBITMQ else 403  # as RabbitMQ answers users without access
            assert (status == refused) is (role not in ROUTES[method, path]), (method, path, role, status, body)
            if status == refused:
                assert (body.get("reason") or body["errorMessage"]).endswith(f"refused for user '{role}'")
        assert (await get(concrete, None, method))[0] == 401
    assert (await get(concrete, "none:wrong", method))[0] == 401


OF_BROKER = {
    **dict.fromkeys((("GET", name) for name in ("getStatistics", "getUser", "getGroups")), OBSERVERS),
    ("GET", "extractConfig"): ADMINISTRATORS,
    **dict.fromkeys((("POST", name) for name in ("resetStatistics", "purgeUser")), ADMINISTRATORS),
    **dict.fromkeys((("POST", name) for name in ("setContextVariable", "removeContextVariable")), ADMINISTRATORS),
}
"""Its operations. Those of what is in a virtual host are tried at its management node, beside REST."""


async def test_every_operation_of_the_broker_as_every_role(get: Get, everybody: list[str]) -> None:
    """What tells of users and rules is for administrators, as what changes something is."""
    assert {operation for _, operation in OF_BROKER} == set(Root.operations)
    for (method, operation), tags in OF_BROKER.items():
        body = {} if method == "POST" else None
        for role in everybody:
            status, told, _ = await get(f"/api/latest/broker/{operation}", f"{role}:secret", method, body)
            assert (status == 403) is (role not in tags), (method, operation, role, status, told)


async def test_who_may_make_users_takes_nobodys_place(get: Get, client: MgmtClient) -> None:
    """To put a user that is there is to change it, over each API, which a rule about creating users does not allow.

    Nor does it allow to give one tags: else a user who may create users could make an administrator.
    """
    await client.put_user("anna", "secret")
    rules = "ACL ALLOW anna ACCESS MANAGEMENT\nACL ALLOW anna CREATE USER"
    await client.change_access(put_acl=pb.Acl(text=f"CONFIG DEFAULTDEFER=TRUE\n{rules}"))
    for number, path in enumerate(("/api/access/users/", "/api/latest/user/internal/", "/api/users/")):
        plain = {"password": "mine", "tags": "" if number == 2 else []}
        wanted = {**plain, "tags": "administrator" if number == 2 else ["administrator"]}
        for _ in range(100):
            if (made := await get(f"{path}new{number}", "anna:secret", "PUT", plain))[0] in {201, 204}:
                break
        assert made[0] in {201, 204}, made
        assert (await get(f"{path}guest", "anna:secret", "PUT", wanted))[0] in {401, 403}
        assert (await get(f"{path}boss{number}", "anna:secret", "PUT", wanted))[0] in {401, 403}
    assert not [each for each in (await get("/api/access/users"))[1] if each["name"].startswith("boss")]
    assert (await get("/api/access/users", "guest:guest"))[0] == 200


async def test_rules_over_http(get: Get, client: MgmtClient, mgmt: Service) -> None:
    """Rules that are loaded come before tags: one may let a user observe, and keep an administrator out."""
    await client.put_user("anna", "secret")
    rules = "ACL DENY guest CONFIGURE BROKER\nACL ALLOW anna ACCESS MANAGEMENT\nACL ALLOW anna ACCESS_LOGS BROKER"
    await client.change_access(put_acl=pb.Acl(text=f"CONFIG DEFAULTDEFER=TRUE\n{rules}"))
    for _ in range(100):
        if (await get("/api/ports", "anna:secret"))[0] == 200:
            break
    assert (await get("/api/ports", "anna:secret"))[0] == 200
    assert (await get("/api/access", "anna:secret"))[0] == 403
    assert (await get("/api/access", "guest:guest"))[0] == 403
