"""Publish and get by hand, over RabbitMQ's API at a whole broker."""

from __future__ import annotations

import asyncio
import base64
import json
import struct
from typing import Any

import pytest

from services.common.errors import Unavailable
from services.mgmt.by_hand.client import Channel, Got
from services.mgmt.rabbitmq import messages
from services.mgmt.rabbitmq.messages import PropertiesForm, PublishForm
from tests.support.field_tables import sized
from tests.support.former_headers import any_headers_taken
from tests.support.raw_amqp import frame, method, short
from tests.unit.mgmt.rabbitmq.conftest import Asked

_GUEST = base64.b64encode(b"guest:guest").decode()


async def _get(asked: Asked, ackmode: str, count: int = 1, user: str = "guest:guest", **more: Any) -> Any:
    body = {"count": count, "ackmode": ackmode, "encoding": "auto", **more}
    return await asked("POST", "queues/%2F/q/get", body, user)


async def _publish(asked: Asked, payload: str, user: str = "guest:guest", **more: Any) -> Any:
    body = {"properties": {}, "routing_key": "q", "payload": payload, "payload_encoding": "string", **more}
    return await asked("POST", "exchanges/%2F/amq.default/publish", body, user)


async def test_a_message(asked: Asked) -> None:
    """Comes as it was sent, with its properties, with any content."""
    await asked("PUT", "queues/%2F/q", {})
    properties = {"content_type": "text/plain", "delivery_mode": 2, "timestamp": 1700000000, "headers": {"a": [1, "b"]}}
    assert await _publish(asked, "grüße", properties=properties) == (200, {"routed": True})
    data = base64.b64encode(b"\xff\x00").decode()
    assert await _publish(asked, data, payload_encoding="base64") == (200, {"routed": True})
    status, [text, binary] = await _get(asked, "ack_requeue_false", 5)
    assert (status, text) == (
        200,
        {
            "payload_bytes": 7,
            "redelivered": False,
            "exchange": "",
            "routing_key": "q",
            "message_count": 1,
            "properties": properties,
            "payload": "grüße",
            "payload_encoding": "string",
        },
    )
    assert (binary["payload"], binary["payload_encoding"], binary["properties"]) == (data, "base64", {})
    assert await _publish(asked, "m", routing_key="nowhere") == (200, {"routed": False})


async def test_headers_that_cannot_be_read(asked: Asked) -> None:
    """A message is told without them, with why: a former release took any octets for a table."""
    client = await asked.house.connect()
    await client.declare("q")
    headers = sized(b"", b"\x01\xff" + b"t\x01")
    properties = struct.pack(">HHQH", 60, 0, 1, 0x2080) + headers + short("m")
    with any_headers_taken():
        client.writer.write(
            method(60, 40, b"\0\0", short(""), short("q"), b"\0") + frame(2, 1, properties) + frame(3, 1, b"x")
        )
        [told] = (await _until_got(asked))[1]
    assert (told["payload"], told["properties"]) == (
        "x",
        {"message_id": "m", "unreadable_headers": "a field's name is not UTF-8"},
    )


def test_keys() -> None:
    """All of them are asked about, from where the user is: a gateway sees mgmt's address."""
    headers = {"CC": ["b", "c", 1], "BCC": ["d"], "cc": ["e"]}
    form = PublishForm(routing_key="a", payload="", properties=PropertiesForm(headers=headers))
    assert list(form.all_keys()) == ["a", "b", "c", "d"]
    assert list(PublishForm(routing_key="a", payload="", properties=PropertiesForm(headers={"CC": 1})).all_keys()) == [
        "a"
    ]
    assert list(PublishForm(routing_key="a", payload="").all_keys()) == ["a"]


@pytest.mark.parametrize(
    ("ackmode", "left", "dead"),
    [
        ("ack_requeue_true", ["a", "b"], []),
        ("reject_requeue_true", ["a", "b"], []),
        ("ack_requeue_false", [], []),
        ("reject_requeue_false", [], ["a", "b"]),
    ],
)
async def test_what_becomes_of_them(asked: Asked, ackmode: str, left: list[str], dead: list[str]) -> None:
    """They go back to their places, are gone, or are dead letters."""
    client = await asked.house.connect()
    await client.declare("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    await asked("PUT", "queues/%2F/q", {"arguments": arguments})
    for payload in "ab":
        await _publish(asked, payload)
    assert [each["payload"] for each in (await _get(asked, ackmode, 9))[1]] == ["a", "b"]
    again = (await _get(asked, "ack_requeue_false", 9))[1]
    assert [each["payload"] for each in again] == left
    assert all(each["redelivered"] for each in again)
    await client.consume("dead", no_ack=True)
    assert await client.bodies(len(dead)) == [each.encode() for each in dead]


async def test_truncated(asked: Asked) -> None:
    """No more of a body is told than is asked for, but how long it is."""
    await asked("PUT", "queues/%2F/q", {})
    await _publish(asked, "0123456789")
    [told] = (await _get(asked, "ack_requeue_true", truncate=4, encoding="base64"))[1]
    assert (base64.b64decode(told["payload"]), told["payload_bytes"]) == (b"0123", 10)


async def test_whose_permissions(asked: Asked) -> None:
    """The caller's; the message has the caller as its user, and may name no other."""
    await asked("PUT", "queues/%2F/q", {})
    await asked("PUT", "users/anna", {"password": "secret", "tags": "management"})
    await asked("PUT", "permissions/%2F/anna", {"configure": "", "write": "", "read": "^q$"})
    status, told = await _publish(asked, "m", "anna:secret")
    assert (status, told["error"]) == (401, "not_authorised")
    assert "write access to exchange 'amq.default'" in told["reason"]
    await _publish(asked, "m")
    assert (await _get(asked, "ack_requeue_true", user="anna:secret"))[0] == 200
    assert (await _publish(asked, "m", properties={"user_id": "guest"})) == (200, {"routed": True})
    status, told = await _publish(asked, "m", properties={"user_id": "anna"})
    assert (status, "user_id" in told["reason"]) == (400, True)


async def test_refused(asked: Asked) -> None:
    """A full queue, what is not there, what is no message, and one that is another connection's: each with why."""
    await asked("PUT", "queues/%2F/q", {"arguments": {"x-max-length": 1, "x-overflow": "reject-publish"}})
    await _publish(asked, "m")
    status, told = await _publish(asked, "m")
    assert (status, "refuses" in told["reason"]) == (400, True)
    body = {"routing_key": "q", "payload": "m"}
    wanted = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
    status, told = await asked("POST", "exchanges/%2F/none/publish", body)
    assert (status, "no exchange 'none'" in told["reason"]) == (400, True)
    assert (await asked("POST", "queues/%2F/none/get", wanted))[0] == 404
    assert (await _publish(asked, "%", payload_encoding="base64"))[0] == 400
    assert "no_such" in (await _publish(asked, "m", properties={"no_such": 1}))[1]["reason"]
    for long in ("1" * 256, 10**256):
        status, told = await _publish(asked, "m", properties={"expiration": long})
        assert (status, told["reason"]) == (400, "properties.expiration: at most 255 bytes")
    assert (await _get(asked, "forget"))[0] == 400
    client = await asked.house.connect()
    own = (await client.declare("", exclusive=True)).queue
    status, told = await asked("POST", f"queues/%2F/{own}/get", wanted)
    assert (status, "exclusive access" in told["reason"]) == (400, True)


async def test_headers(asked: Asked) -> None:
    """Of every kind that JSON has come as they were said; what no table can hold is told, and 400."""
    await asked("PUT", "queues/%2F/q", {})
    headers = {"f": 1.5, "n": None, "l": [1, "a", {"b": True}], "big": 2**40, "t": {"x": -1}}
    assert await _publish(asked, "m", properties={"headers": headers}) == (200, {"routed": True})
    assert (await _get(asked, "ack_requeue_false"))[1][0]["properties"] == {"headers": headers}
    for wrong in ({"big": 2**70}, {"l" * 300: 1}):
        status, told = await _publish(asked, "m", properties={"headers": wrong})
        assert (status, told["error"]) == (400, "bad_request")
    status, told = await asked("POST", f"exchanges/%2F/{'l' * 300}/publish", {"routing_key": "q", "payload": "m"})
    assert (status, told["reason"]) == (400, "a name has at most 255 bytes")


async def test_what_json_has_no_word_for(asked: Asked) -> None:
    """Is shown as text, and does not hide the message."""
    await asked("PUT", "queues/%2F/q", {})
    client = await asked.house.connect()
    client.publish(b"m", "q", headers={"nan": float("nan"), "infinite": [float("-inf")], "raw": bytearray(b"\xff")})
    status, [told] = await _get(asked, "ack_requeue_false")
    headers = {"nan": "nan", "infinite": ["-inf"], "raw": "/w=="}
    assert (status, told["properties"]["headers"]) == (200, headers)


async def test_none_is_lost(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it fails on the way, also of messages that were to be gone."""
    await asked("PUT", "queues/%2F/q", {})
    for _ in range(3):
        await _publish(asked, "m")
    get, times = Channel.get, iter(range(9))

    async def fails(self: Channel, queue: str) -> Got | None:
        if next(times) == 2:
            raise Unavailable("the gateway has gone")
        return await get(self, queue)

    with monkeypatch.context() as patched:
        patched.setattr(Channel, "get", fails)
        assert (await _get(asked, "ack_requeue_false", 3))[0] == 503
    assert len((await _get(asked, "ack_requeue_false", 3))[1]) == 3
    assert (await _get(asked, "ack_requeue_false", 0)) == (200, [])


async def test_who_has_left(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gets nothing, so nothing is gone."""
    await asked("PUT", "queues/%2F/q", {})
    await _publish(asked, "m")
    get, is_asked, may_go_on, has_got = Channel.get, asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow(self: Channel, queue: str) -> Got | None:
        is_asked.set()
        try:
            await may_go_on.wait()
            return await get(self, queue)
        finally:
            has_got.set()

    with monkeypatch.context() as patched:
        patched.setattr(Channel, "get", slow)
        body = json.dumps({"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"})
        _, writer = await asyncio.open_connection("127.0.0.1", asked.mgmt.http_port)
        head = f"POST /api/queues/%2F/q/get HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {_GUEST}\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        await is_asked.wait()
        writer.close()
        await writer.wait_closed()
        await asyncio.sleep(0.1)
        may_go_on.set()
        await has_got.wait()  # else the next one may be first
    [told] = (await _until_got(asked))[1]
    assert told["redelivered"]


async def _until_got(asked: Asked) -> Any:
    for _ in range(100):
        if (found := await _get(asked, "ack_requeue_true"))[1]:
            return found
        await asyncio.sleep(0.05)
    return found


async def test_time_is_up(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has been got until then is answered, and no more is."""
    await asked("PUT", "queues/%2F/q", {})
    for _ in range(3):
        await _publish(asked, "m")
    monkeypatch.setattr(messages, "_LONGEST", 0.0)
    assert (await _get(asked, "ack_requeue_false", 3))[1] == []
    monkeypatch.undo()
    monkeypatch.setattr(messages, "_MOST_BYTES", 2 * len('{"payload": "m"}'))  # one has more, with all that it says
    assert len((await _get(asked, "ack_requeue_false", 3))[1]) == 1
