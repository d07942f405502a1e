"""A secret in a request is in no answer, whatever is wrong with the request, and in no log."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from services.common import plugins
from services.common.authentication.described import secrets_of
from services.common.config import Settings
from services.mgmt.service import Service
from tests.support.rest import Get
from tests.support.secrecy import forms, in_files, in_text

MARKER = "tell-nobody-7f3a91"
SECRETS = {"marker": forms("guest", MARKER)}
GUEST = "guest:guest"
_SECURE = {
    ("user", "password"),
    *(("keystore", name) for name in ("storeUrl", "password", "privateKeyUrl")),
    *(("truststore", name) for name in ("storeUrl", "password")),
}
"""Attributes of the tree: each has its requests below."""
_OF_KINDS = {"ldap": ("bind_password",)}
"""Options of authentication providers, the same."""
_WRONG: tuple[Any, ...] = ([MARKER], {MARKER: MARKER}, {"a": [MARKER]})
_DIRECTORY = {"url": "ldaps://127.0.0.1:9", "search_base": "dc=x", "bind_dn": "cn=x"}

Asked = tuple[str, str, str | bytes, object]
"""Method, path, user, and what is sent."""


def _logins() -> Iterator[Asked]:
    encoded = base64.b64encode(f"guest:{MARKER}".encode())
    for path in ("/api/access", "/api/latest/user", "/api/users", "/metrics", "/service/metadata", "/api/none"):
        for user in (encoded, MARKER.encode(), encoded[:-3], f"{MARKER} {MARKER}".encode(), f"nobody:{MARKER}"):
            yield "GET", path, user, None


def _users() -> Iterator[Asked]:
    """Over each API: as they should be, and wrongly in each way."""
    kinds = ("rot13", *plugins.names("credential_kinds"))
    hashed = [{"password": MARKER, "hashed": True, "kind": kind} for kind in kinds]
    wrong = [{"password": each} for each in _WRONG]
    for body in (*hashed, *wrong, {"password": MARKER, MARKER[:4]: 1}, {"password": MARKER, "tags": {}}):
        yield "PUT", "/api/access/users/a", GUEST, body
        yield "PATCH", "/api/access/users/guest", GUEST, body
        of_tree = {("credentialKind" if name == "kind" else name): value for name, value in body.items()}
        yield "PUT", "/api/latest/user/internal/a", GUEST, of_tree
        yield "POST", "/api/latest/user/internal", GUEST, {"name": "a", **of_tree}
        yield "PUT", "/api/users/a", GUEST, {"tags": "", **body}
    for algorithm in ("rot13", "rabbit_password_hashing_sha256"):
        of_rabbitmq = {"password_hash": MARKER, "hashing_algorithm": algorithm, "tags": ""}
        yield "PUT", "/api/users/a", GUEST, of_rabbitmq
        yield "POST", "/api/definitions", GUEST, {"users": [{"name": "a", **of_rabbitmq}]}
    yield "GET", f"/api/latest/user?password={MARKER}", GUEST, None
    yield "PUT", "/api/latest/user/internal/made", GUEST, {"password": MARKER, "credentialKind": "recoverable"}


def _providers() -> Iterator[Asked]:
    for option in _OF_KINDS["ldap"]:
        good = {**_DIRECTORY, option: MARKER}
        wrong: tuple[Any, ...] = (
            {"type": "rot13", "options": good}, {"type": "file", "options": good}, {"type": "ldap", "options": MARKER},
            {"type": "ldap", "options": {option: MARKER}}, {"type": "ldap", "options": {**good, "url": 5}},
            *({"type": "ldap", "options": {**_DIRECTORY, option: each}} for each in _WRONG), {"options": good},
            {"type": "ldap", "options": good},
        )  # fmt: skip
        for body in wrong:
            yield "PUT", "/api/authentication-providers/a", GUEST, body
            yield "PUT", "/api/latest/authenticationprovider/a", GUEST, body


def _stores() -> Iterator[Asked]:
    """Of certificates: each attribute that is secret, where there is nothing, and as what is none."""
    for category, name in sorted(_SECURE - {("user", "password")}):
        types = ("FileKeyStore", "NonJavaKeyStore", "FileTrustStore", "rot13")
        for said in (f"/{MARKER}", f"data:,{MARKER}", MARKER, *_WRONG):
            for type_ in types:
                body = {"type": type_, "certificateUrl": "/nowhere", "storeUrl": "/nowhere", "password": "", name: said}
                yield "PUT", f"/api/latest/{category}/a", GUEST, body
        yield "GET", f"/api/latest/{category}?{name}={MARKER}", GUEST, None


def _no_json() -> Iterator[Asked]:
    secret = MARKER.encode()
    for path in (
        "/api/access/users/a",
        "/api/latest/user/internal/a",
        "/api/users/a",
        "/api/authentication-providers/a",
    ):
        for body in (b'{"password": "%b', b'{"password": "%b\\ud800"}', b'"%b"', b"%b", b'{"password": "%b" "%b"}'):
            yield "PUT", path, GUEST, body.replace(b"%b", secret)


@pytest.mark.parametrize("asked", [_logins, _users, _providers, _stores, _no_json])
async def test_requests(asked: Any, get: Get, settings: Settings, capfd: Any, caplog: Any) -> None:
    """Passwords and tokens of requests, right ones and wrong ones, are in no answer, log, file, nor in a list later."""
    told, statuses = "", set()
    for method, path, user, body in asked():
        status, answer, headers = await get(path, user, method, body)
        statuses.add(status // 100)
        told += f"{answer} {headers}"
    assert 4 in statuses
    assert 5 not in statuses
    for path in ("access/users", "users", "latest/user", "authentication-providers", "latest/authenticationprovider"):
        told += str((await get(f"/api/{path}"))[1])
    told += str((await get("/api/latest/querybroker/user?select=name,password"))[1])
    log = "".join(capfd.readouterr()) + caplog.text
    assert (in_text(SECRETS, told), in_text(SECRETS, log), in_files(SECRETS, settings.data)) == ([], [], set())


async def test_what_is_secret(mgmt: Service) -> None:
    """Each attribute and each option that is has its requests above."""
    tree = mgmt._tree
    secure = {(name, each.name) for name, its in tree.categories.items() for each in _secure(its.kind.attributes)}
    assert secure == _SECURE
    of_kinds = {kind: tuple(secrets_of(kind)) for kind in plugins.names("authentication_providers")}
    assert {kind: secrets for kind, secrets in of_kinds.items() if secrets} == _OF_KINDS


def _secure(attributes: Mapping[str, Any]) -> list[Any]:
    return [each for each in attributes.values() if each.secure]
