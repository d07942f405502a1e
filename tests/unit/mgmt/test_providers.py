"""Authentication providers: on record, over gRPC and HTTP; what is secret is encrypted there, and masked here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from services.common.authentication.described import MASK, Described
from services.common.clients.mgmt import MgmtClient
from services.common.config import Settings
from services.common.errors import AccessRefused, NotFound, SyntaxFault
from services.common.sealing import Sealing
from services.common.secrets_key import KeyPlace
from tests.support.fake_store import FakeStore
from tests.support.rest import Get

_AT = "/api/authentication-providers"
LDAP = {"url": "ldaps://localhost", "search_base": "dc=x", "bind_dn": "cn=x", "bind_password": "hush"}


def described(type_: str, **options: Any) -> bytes:
    return Described(type=type_, options=options).to_json()


def kept(store: FakeStore, name: str) -> bytes:
    value: bytes = store.records["authentication_provider", name].value
    return value


def audited(folder: Path) -> list[dict[str, Any]]:
    files = sorted(folder.glob("audit/*/*.jsonl"))
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


async def test_a_secret_is_kept_encrypted(client: MgmtClient, store: FakeStore, settings: Settings) -> None:
    """Under a key that is not in the store; a list of providers shows a mask, which may be sent back."""
    await client.put_provider("staff", described("ldap", **LDAP))
    assert b"hush" not in kept(store, "staff")
    assert Described.from_json(kept(store, "staff")).opened("staff", Sealing.of(settings)).options == LDAP
    [listed] = await client.list_providers()
    told = Described.from_json(listed.described)
    assert (listed.name, told.options["bind_password"]) == ("staff", MASK)
    assert not KeyPlace.of(settings).find().is_relative_to(settings.data)
    await client.put_provider("staff", described("ldap", **{**told.options, "bind_dn": "cn=y"}))
    changed = Described.from_json(kept(store, "staff")).opened("staff", Sealing.of(settings))
    assert changed.options == {**LDAP, "bind_dn": "cn=y"}


async def test_over_http(get: Get) -> None:
    """Administrators add, list and remove them."""
    told = {"type": "ldap", "options": LDAP}
    assert (await get(f"{_AT}/staff", "guest:guest", "PUT", told))[0] == 204
    [listed] = (await get(_AT))[1]
    assert listed == {
        "name": "staff", "type": "ldap", "of_settings": False, "options": {**LDAP, "bind_password": MASK},
    }  # fmt: skip
    assert (await get(f"{_AT}/staff", "guest:guest", "DELETE"))[0] == 204
    assert (await get(f"{_AT}/staff", "guest:guest", "DELETE"))[0] == 404


@pytest.mark.parametrize(
    ("name", "told", "error"),
    [
        ("x", described("ldpa"), SyntaxFault),
        ("x", described("ldap"), SyntaxFault),
        ("x", described("file", path="x", colour="red"), SyntaxFault),
        ("x", b"{}", SyntaxFault),
        ("a/b", described("anonymous"), SyntaxFault),
        ("", described("anonymous"), SyntaxFault),
        ("internal", described("anonymous"), AccessRefused),
    ],
)
async def test_what_cannot_be(
    client: MgmtClient, store: FakeStore, name: str, told: bytes, error: type[Exception]
) -> None:
    """Is refused with a reason, and not on record."""
    with pytest.raises(error):
        await client.put_provider(name, told)
    assert not [key for key in store.records if key[0] == "authentication_provider"]
    with pytest.raises((NotFound, AccessRefused, SyntaxFault)):
        await client.remove_provider(name)


async def test_what_is_wrong_is_told_without_what_is_secret(client: MgmtClient) -> None:
    """The option's name, never what was said."""
    with pytest.raises(SyntaxFault) as refused:
        await client.put_provider("x", described("ldap", **{**LDAP, "bind_password": ["hush"]}))
    assert "hush" not in str(refused.value)


async def test_signing_in_over_http_by_a_provider(
    settings: Settings, store: FakeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings name the provider for HTTP; members of a group have its tags; one that is away is 503."""
    from services.mgmt.service import Service  # noqa: PLC0415 - as the fixture `mgmt`
    from tests.support.rest import asking  # noqa: PLC0415

    users, groups = tmp_path / "users", tmp_path / "groups"
    users.write_text("alice:secret\nbob:secret\n")
    groups.write_text("ops.users=alice\n")
    service = Service(settings.model_copy(update={"http_authentication_provider": "here"}))
    await service.start()
    get = asking(service.http_port)
    assert (await get("/api/ports", "alice:secret"))[0] == 503
    async with MgmtClient(settings.address_of("mgmt")) as client:
        options = {"path": str(users), "format": "plain", "groups_path": str(groups)}
        await client.put_provider("here", described("file", **options, tags={"administrator": ["ops"]}))
    answers = [
        (await get("/api/ports", who))[0] for who in ("alice:secret", "alice:wrong", "bob:secret", "guest:guest")
    ]
    assert answers == [200, 401, 403, 401]
    await service.stop()
    lines = [line for line in audited(tmp_path) if line["service"] == "mgmt"]
    told = [(line["event"], line["user"], line.get("mechanism", "")) for line in lines]
    assert told == [
        ("refused", "alice", "Basic"), ("signed in", "alice", "Basic"), ("refused", "alice", "Basic"),
        ("signed in", "bob", "Basic"), ("denied", "bob", ""), ("refused", "guest", "Basic"),
    ]  # fmt: skip
