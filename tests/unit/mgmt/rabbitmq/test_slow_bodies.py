"""Slow requests: the user counts as it is when the whole body has come."""

from __future__ import annotations

import asyncio
import base64
import json

import pytest

from services.mgmt.rest import bodies
from tests.unit.mgmt.rabbitmq.conftest import Asked

USER = {"password": "secret", "tags": "administrator"}
DEFINITIONS = {"users": [{"name": "new", "password_hash": "", "tags": ["administrator"]}]}


class Slow:
    """A request whose body comes in two parts."""

    def __init__(self, port: int, method: str, path: str, body: object, user: str = "leaving:secret") -> None:
        self._port, self._data = port, json.dumps(body).encode()
        said = base64.b64encode(user.encode()).decode()
        lines = f"{method} /api/{path} HTTP/1.1", "Host: x", f"Authorization: Basic {said}"
        self._head = "\r\n".join((*lines, f"Content-Length: {len(self._data)}", "", "")).encode()

    async def begin(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writer.write(self._head + self._data[:5])
        await asyncio.sleep(0.3)

    async def end(self) -> int:
        """The status."""
        self._writer.write(self._data[5:])
        return await self.status()

    async def status(self) -> int:
        line = await asyncio.wait_for(self._reader.readline(), 20)
        self._writer.close()
        return int(line.split()[1])


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "definitions", DEFINITIONS),
        ("PUT", "users/new", USER),
        ("PUT", "permissions/%2F/guest", {"configure": "", "write": "", "read": ""}),
        ("PUT", "latest/queue/%252F/%252F/new", {"durable": True}),
        ("PUT", "access/users/new", {"password": "secret"}),
    ],
)
async def test_a_connection_whose_user_is_deleted(asked: Asked, method: str, path: str, body: object) -> None:
    """Does not exist any more when the rest of the body comes, and changes nothing."""
    await asked("PUT", "users/leaving", USER)
    slow = Slow(asked.mgmt.http_port, method, path, body)
    await slow.begin()
    assert (await asked("DELETE", "users/leaving"))[0] == 204
    assert await slow.end() == 401
    assert [each["name"] for each in await asked.get("users")] == ["guest"]


async def test_a_user_made_meanwhile(asked: Asked) -> None:
    """Is not replaced by a caller who may only create users: to change one is checked as such."""
    await asked("PUT", "users/leaving", USER)
    rules = "ACL DENY leaving UPDATE USER\nACL ALLOW ALL ALL"
    assert (await asked("PUT", "access/acl", {"text": rules}))[0] in {200, 204}
    slow = Slow(asked.mgmt.http_port, "PUT", "users/new", USER)
    await slow.begin()
    assert (await asked("PUT", "users/new", USER))[0] == 201
    assert await slow.end() == 401


@pytest.mark.parametrize("path", ["users/new", "access/users/new", "latest/queue/%252F/%252F/new"])
async def test_a_body_without_end(asked: Asked, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """Is waited for only so long (408)."""
    monkeypatch.setattr(bodies, "_PATIENCE", -0.5)
    slow = Slow(asked.mgmt.http_port, "PUT", path, USER, "guest:guest")
    await slow.begin()
    assert await slow.status() == 408


@pytest.mark.parametrize(
    ("method", "path", "user", "status"),
    [
        ("POST", "definitions", "nobody:x", 401),
        ("POST", "definitions", "plain:secret", 401),
        ("PUT", "access/users/new", "nobody:x", 401),
        ("PUT", "access/users/new", "plain:secret", 403),
        ("PUT", "ports/new", "leaving:secret", 403),
        ("POST", "latest/querybroker/queue", "nobody:x", 401),
    ],
)
async def test_much_of_a_user_who_may_not(asked: Asked, method: str, path: str, user: str, status: int) -> None:
    """Is not kept: after a little of it the user is checked, and all that can be checked without a body."""
    for name, tags in (("plain", ""), ("leaving", "management")):
        assert (await asked("PUT", f"users/{name}", {"password": "secret", "tags": tags}))[0] == 201
    slow = Slow(asked.mgmt.http_port, method, path, ["x" * 200_000], user)
    slow._data = slow._data[:100_000]  # the rest does not come
    await slow.begin()
    assert await slow.end() == status


async def test_little_of_many_unknown(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is kept of as many as there is room for; when there is none, others are asked at once, and go on if they may."""
    monkeypatch.setattr(bodies, "_OF_ALL", 25)
    unknown = [Slow(asked.mgmt.http_port, "PUT", "access/users/new", USER, f"nobody{n}:x") for n in range(6)]
    for each in unknown:
        await each.begin()
    assert await unknown[-1].status() == 401
    slow = Slow(asked.mgmt.http_port, "PUT", "users/new", USER, "guest:guest")
    await slow.begin()
    assert await slow.end() == 201
    assert bodies._STRANGERS._all == 25
    assert [await each.end() for each in unknown[:-1]] == [401] * 5
    assert bodies._STRANGERS._all == 0
