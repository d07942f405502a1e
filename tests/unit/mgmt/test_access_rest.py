"""Every route of mgmt, asked for as every role."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from services.common.access.tags import KNOWN
from services.common.clients.mgmt import MgmtClient
from services.mgmt.rest.application import application
from services.mgmt.rest.basic import Doors
from services.mgmt.service import Service
from services.rpc import mgmt_pb2 as pb
from tests.support.rest import Get

OBSERVERS, ADMINISTRATORS = {"administrator", "monitoring"}, {"administrator"}

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
}
"""Which tags each takes. A new route has its line here, or is asked for by nobody who is tried."""


def test_every_route_is_tried() -> None:
    """There is no other than those that every role asks for below."""
    unasked: Any = None
    others = [unasked] * (len(inspect.signature(application).parameters) - 1)
    app = application(Doors(unasked, unasked), *others)
    described = {(method.upper(), path) for path, methods in app.openapi()["paths"].items() for method in methods}
    assert described == set(ROUTES)


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


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
async def test_every_route_as_every_role(route: tuple[str, str], get: Get, everybody: list[str]) -> None:
    """Nobody gets in who may not, and nobody is kept out who may; what it names may be missing or wrong then."""
    method, path = route
    concrete = re.sub(r"\{\w+\}", "nobody", path)
    for role in everybody:
        status, body, _ = await get(concrete, f"{role}:secret", method)
        assert (status == 403) is (role not in ROUTES[route]), (role, status, body)
        if status == 403:
            assert body["reason"].endswith(f"refused for user '{role}'")
    assert (await get(concrete, "none:wrong", method))[0] == 401


async def test_rules_over_http(get: Get, client: MgmtClient, mgmt: Service) -> None:
    """Rules that are loaded come before tags: one may let somebody observe, and keep an administrator out."""
    await client.put_user("anna", "secret")
    rules = "ACL DENY guest CONFIGURE BROKER\nACL ALLOW anna ACCESS MANAGEMENT\nACL ALLOW anna ACCESS_LOGS BROKER"
    await client.change_access(put_acl=pb.Acl(text=f"CONFIG DEFAULTDEFER=TRUE\n{rules}"))
    for _ in range(100):
        if (await get("/api/ports", "anna:secret"))[0] == 200:
            break
    assert (await get("/api/ports", "anna:secret"))[0] == 200
    assert (await get("/api/access", "anna:secret"))[0] == 403
    assert (await get("/api/access", "guest:guest"))[0] == 403
