"""A tree of many queues, and what mgmt answers of it."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any, Final

from services.rpc.store_pb2 import Record
from tests.support.fake_store import FakeStore

_AUTHORIZED: Final = base64.b64encode(b"guest:guest").decode()


def queue(number: int) -> Record:
    """As the router keeps it: q0, q1, …, of "/"."""
    value: dict[str, Any] = {
        "id": number + 1, "virtual_host": "/", "name": f"q{number}", "partition": 0, "durable": True,
        "exclusive_to": "", "auto_delete": False, "arguments": "{}", "type": "classic",
    }  # fmt: skip
    return Record(kind="queue", key=json.dumps(["/", value["name"]]), value=json.dumps(value).encode())


def put_queues(store: FakeStore, count: int) -> None:
    """With their virtual host."""
    store.records["virtual_host", "/"] = Record(kind="virtual_host", key="/", value=b'{"name": "/"}')
    for record in map(queue, range(count)):
        store.records[record.kind, record.key] = record


async def asked(port: int, path: str) -> bytes:
    """The body of an answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    head = f"GET {path} HTTP/1.1\r\nHost: here\r\nAuthorization: Basic {_AUTHORIZED}\r\nConnection: close\r\n\r\n"
    writer.write(head.encode())
    said, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    assert said.startswith(b"HTTP/1.1 200"), said
    return body
