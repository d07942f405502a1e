"""Ports over HTTP: made, listed and removed, and by which users."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.clients.mgmt import MgmtClient
from services.common.ports.port import Port
from services.common.ports.state import Account, Served
from services.rpc.store_pb2 import Record
from tests.support.fake_store import FakeStore
from tests.support.rest import Get

_PORTS = "/api/ports"


async def _names(get: Get) -> list[str]:
    return [each["port"]["name"] for each in (await get(_PORTS))[1]]


async def test_ports_are_made_and_removed(get: Get) -> None:
    """PUT makes a port or replaces it, GET lists them, DELETE removes one."""
    assert await _names(get) == []
    for most in (30, 60):
        status, body, _ = await get(f"{_PORTS}/inner", "guest:guest", "PUT", {"port": 5673, "most": most})
        assert (status, body["name"], body["most"]) == (200, "inner", most)
    [told] = (await get(_PORTS))[1]
    assert (told["port"]["most"], told["of_settings"], told["gateways"]) == (60, False, [])
    assert (await get(f"{_PORTS}/inner", "guest:guest", "DELETE"))[0] == 204
    assert (await get(f"{_PORTS}/inner", "guest:guest", "DELETE"))[0] == 404
    assert await _names(get) == []


@pytest.mark.parametrize(
    ("terms", "why"),
    [
        ({}, "body.port: Field required"),
        ({"port": 99999}, "body.port: "),
        ({"port": 1, "prot": 2}, "body.prot: "),
        ({"port": 1, "host": "a b"}, "body.host: 'a b' is neither an address nor a name"),
        ({"port": 1, "transports": ["pigeon"]}, "transports: there is no pigeon; there are plain, tls, websocket"),
        ({"port": 1, "mechanisms": ["BOGUS"]}, "mechanisms: there is no BOGUS; there are AMQPLAIN, "),
        ({"port": 1, "authentication_provider": "gone"}, "authentication_provider: there is no 'gone'"),
        ({"port": 1, "authentication_provider": "ldap"}, "authentication_provider: there is no 'ldap'"),
        ({"port": 1, "protocols": ["mqtt"]}, "protocols: there is no mqtt; there are amqp-0-9"),
    ],
)
async def test_bad_ports(get: Get, terms: Any, why: str) -> None:
    """What cannot be, or is not installed, is refused with a reason, and no port."""
    status, body, _ = await get(f"{_PORTS}/inner", "guest:guest", "PUT", terms)
    assert (status, body["error"]) == (400 if terms else 422, "SyntaxFault")
    assert why in body["reason"]
    assert await _names(get) == []


async def test_a_provider_that_is_there(get: Get) -> None:
    """May be named: one on record, or of a kind that needs no options."""
    told = {"type": "anonymous", "options": {}}
    assert (await get("/api/authentication-providers/mine", "guest:guest", "PUT", told))[0] == 204
    for number, provider in enumerate(("mine", "internal", "external"), 5673):
        terms = {"port": number, "authentication_provider": provider}
        assert (await get(f"{_PORTS}/{provider}", "guest:guest", "PUT", terms))[0] == 200


@pytest.mark.parametrize(("host", "free"), [("", False), ("127.0.0.1", False), ("127.0.0.2", True), ("::1", True)])
async def test_an_address_that_another_has(get: Get, host: str, free: bool) -> None:
    """Is refused, with whose it is."""
    await get(f"{_PORTS}/first", "guest:guest", "PUT", {"port": 5673, "host": "127.0.0.1"})
    status, body, _ = await get(f"{_PORTS}/second", "guest:guest", "PUT", {"port": 5673, "host": host})
    assert status == (200 if free else 409)
    assert free or body["reason"] == "port 'first' is at 127.0.0.1:5673 already"


@pytest.mark.parametrize(("ports", "refused"), [((5700, 5700), True), ((5700, 5701), False)])
async def test_an_address_of_the_settings(get: Get, store: FakeStore, ports: tuple[int, ...], refused: bool) -> None:
    """Of all gateways: it could be opened nowhere. Where only some have it, the others open it."""
    for number, port in enumerate(ports):
        name, served = f"gateway-{number}", Served(port=Port(name="amqp", host="", port=port))
        account = Account(instance=name, served=(served,)).model_dump_json().encode()
        store.put([Record(kind="port_state", key=name, value=account)])
        store.put([Record(kind="watcher", key=name, value=b'{"role": "gateway"}')])
    status, body, _ = await get(f"{_PORTS}/inner", "guest:guest", "PUT", {"port": 5700})
    assert status == (409 if refused else 200)
    assert not refused or body["reason"] == "port 'amqp' is at *:5700 already"


async def test_one_that_cannot_be_read(get: Get, store: FakeStore) -> None:
    """Hides none of the others, and can be removed."""
    store.records["port", "broken"] = Record(kind="port", key="broken", value=b"{")
    assert (await get(f"{_PORTS}/inner", "guest:guest", "PUT", {"port": 5673}))[0] == 200
    assert await _names(get) == ["inner"]
    assert (await get(f"{_PORTS}/broken", "guest:guest", "DELETE"))[0] == 204
    assert ("port", "broken") not in store.records


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@pytest.mark.parametrize("name", ["amqp", "amqps"])
async def test_those_of_the_settings(get: Get, method: str, name: str) -> None:
    """Cannot be made or removed, by any user."""
    status, body, _ = await get(f"{_PORTS}/{name}", "guest:guest", method, {"port": 5673} if method == "PUT" else None)
    assert (status, f"HOPLINE_{name.upper()}_PORT" in body["reason"]) == (403, True)


async def test_administrators_only(get: Get, client: MgmtClient) -> None:
    """Users who monitor see them, and change none; others do neither."""
    for name, tags, sees in (("mona", ["monitoring"], 200), ("dora", [], 403)):
        await client.put_user(name, "secret", tags)
        assert (await get(_PORTS, f"{name}:secret"))[0] == sees
        assert (await get(f"{_PORTS}/inner", f"{name}:secret", "PUT", {"port": 5673}))[0] == 403
        assert (await get(f"{_PORTS}/inner", f"{name}:secret", "DELETE"))[0] == 403
    assert (await get(_PORTS, None))[0] == 401
    assert await _names(get) == []
