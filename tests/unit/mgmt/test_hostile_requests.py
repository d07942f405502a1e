"""Hopline's own paths with hostile, or broken, requests."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from contextlib import closing, suppress
from http.client import HTTPConnection
from urllib.error import URLError
from urllib.parse import unquote

import pytest

from services.common.errors import SyntaxFault
from services.mgmt.node.exchanged import Reply
from services.mgmt.rest import failures
from services.mgmt.rest.bodies import MOST
from services.mgmt.rest.rabbitmq import answers as of_rabbitmq
from services.mgmt.service import Service
from tests.support.rest import Get

GUEST = "guest:guest"
USERS = "/api/access/users"
_NAMES = ["a%0A", "%0A", "a%0Ab", "a%2Fb", "%00", "..%2F..", "%252F", "%F0%9F%98%80"]


async def test_a_login_that_is_not_ascii(get: Get) -> None:
    """Is none, and no fault of the server's."""
    status, body, headers = await get("/api/access", "\N{LATIN SMALL LETTER E WITH ACUTE}".encode())
    assert (status, body["error"], "WWW-Authenticate" in headers) == (401, "HTTPError", True)


async def test_names(get: Get) -> None:
    """Are used whole, with any characters: a removal removes what was added, and nothing else."""
    groups = "/api/access/groups"
    assert (await get(f"{groups}/a", GUEST, "PUT", {"members": []}))[0] == 200
    for name in _NAMES:
        status, body, _ = await get(f"{groups}/{name}", GUEST, "PUT", {"members": []})
        assert (status, body["name"]) == (200, unquote(name))
        assert [(await get(f"{groups}/{name}", GUEST, "DELETE"))[0] for _ in range(2)] == [204, 404]
    assert [each["name"] for each in (await get("/api/access"))[1]["groups"]] == ["a"]
    status, body, _ = await get(f"{USERS}/guest%0A", GUEST, "DELETE")
    assert (status, body["reason"]) == (404, "no user 'guest\n'")


async def test_names_with_a_slash(get: Get) -> None:
    """Are names: the request is not redirected, but answered that there is none, or can be none."""
    for path in ("/api/capture/rules", "/api/authentication-providers", "/api/ports"):
        for name in ("a%2Fb", "%2F"):
            status, body, _ = await get(f"{path}/{name}", GUEST, "DELETE")
            assert (status, body["error"]) in {(404, "NotFound"), (400, "SyntaxFault")}


async def test_names_that_are_no_text(get: Get) -> None:
    """Are refused in the form of the API that the path belongs to, since two of them would be read as the same."""
    for path, field in (("access/users", "reason"), ("queues/%2F", "reason"), ("latest/user/internal", "errorMessage")):
        status, body, _ = await get(f"/api/{path}/%FF", GUEST, "DELETE")
        assert (status, body[field]) == (400, "names in paths are UTF-8")


async def test_what_is_very_long(get: Get) -> None:
    """Is not repeated whole in what is said of it, which says what is wrong all the same; over AMQP too."""
    name = "n" * 900_000
    status, body, _ = await get("/api/latest/user/internal/u", GUEST, "PUT", {name: 1})
    assert (status, len(body["errorMessage"]) < 2000) == (422, True)
    assert body["errorMessage"].startswith("attribute 'nnn")
    assert body["errorMessage"].endswith("there is none of that name")
    for answered in (of_rabbitmq.answer(400, "bad_request", name), failures.answer(400, "SyntaxFault", name)):
        assert len(answered.body) < 2000
    assert len(Reply.refusal(SyntaxFault(name)).description) < 2000


async def test_bodies_that_are_no_json(get: Get) -> None:
    """It is said what is wrong with them."""
    for body, reason in (
        (b'{"password": "\\ud800"}', "surrogates not allowed"),
        (b'{"password": "\xed\xa0\x80"}', "invalid continuation byte"),
        ('{"password": "\\ud800"}'.encode("utf-16"), "invalid start byte"),
        (b'{"password": NaN}', "NaN is no number"),
        (b'{"password": 1e999}', "1e999 is no number"),
        (b"[" * 100_000, "recursion"),
        (b'{"password": ', "Expecting value"),
        (b"[]", "no JSON object"),
    ):
        status, told, _ = await get(f"{USERS}/a", GUEST, "PUT", body)
        assert (status, reason in told["reason"]) == (400, True), told


async def test_bodies_that_are_too_long(get: Get) -> None:
    """Are not even read to their end, from any user."""
    for user, status in ((GUEST, 413), (None, 401)):
        with suppress(URLError, ConnectionError):  # a client that is still sending may not see the answer
            assert (await get(f"{USERS}/a", user, "PUT", b" " * (MOST + 1)))[0] == status
    assert (await get(f"{USERS}/a", GUEST, "DELETE"))[0] == 404


async def test_what_has_no_meaning(get: Get) -> None:
    """Is the caller's fault: a password that SCRAM does not allow, a virtual host without a name."""
    for method, path, body in (
        ("PUT", f"{USERS}/a", {"password": "a\0b", "kind": "scram-sha-256"}),
        ("PUT", "/api/access/acl?vhost=", {"text": "ACL ALLOW ALL ALL"}),
    ):
        status, told, _ = await get(path, GUEST, method, body)
        assert (status, told["error"]) == (400, "SyntaxFault")


@pytest.mark.parametrize("when", ["since=0001-01-01T00:00", "until=1969-12-31", "since=9999-12-31T23:59"])
async def test_times_of_which_nothing_is_on_record(get: Get, when: str) -> None:
    """Are times like others."""
    status, told, _ = await get(f"/api/trace?queue=q&{when}")
    assert (status, "nothing is on record" in told["reason"]) == (404, True)


@pytest.mark.parametrize("kind", [None, "application/x-www-form-urlencoded", "text/plain", "application/json"])
async def test_what_a_body_is_called(mgmt: Service, kind: str | None) -> None:
    """Is not asked: it is JSON on every path."""
    connection = HTTPConnection("127.0.0.1", mgmt.http_port, timeout=20)
    headers = {"Authorization": f"Basic {b64encode(GUEST.encode()).decode()}"} | (
        {"Content-Type": kind} if kind else {}
    )
    changes = (("access/users/b", {"password": "b" * 20}), ("access/groups/b", {"members": []}))
    with closing(connection):
        for path, body in changes:
            said = ("PUT", f"/api/{path}", json.dumps(body).encode(), headers)
            await asyncio.to_thread(connection.request, *said)
            answer = await asyncio.to_thread(connection.getresponse)
            answer.read()
            assert answer.status in {200, 204}
