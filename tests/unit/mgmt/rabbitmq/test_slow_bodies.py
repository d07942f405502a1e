"""Who asks slowly: what counts is who that is when all of it has come."""

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
async def test_whose_user_is_deleted(asked: Asked, method: str, path: str, body: object) -> None:
    """Is nobody any more when the rest of the body comes, and changes nothing."""
    await asked("PUT", "users/leaving", USER)
    slow = Slow(asked.mgmt.http_port, method, path, body)
    await slow.begin()
    assert (await asked("DELETE", "users/leaving"))[0] == 204
    assert await slow.end() == 401
    assert [each["name"] for each in await asked.get("users")] == ["guest"]


async def test_a_user_made_meanwhile(asked: Asked) -> None:
    """Is not replaced by who may only make users: what is asked is whether they may change one."""
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


async def test_much_of_somebody_unknown(asked: Asked) -> None:
    """Is not kept: before a body is longer than usual, it is asked who sends it."""
    slow = Slow(asked.mgmt.http_port, "POST", "definitions", ["x" * 2 * bodies.MOST, 1], "nobody:x")
    slow._data = slow._data[: bodies.MOST + 100_000]  # the rest does not come
    await slow.begin()
    assert await slow.end() == 401
