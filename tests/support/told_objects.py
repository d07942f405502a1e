"""mgmt as commands hear it about virtual hosts: what they ask is kept, and answered from a table."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from typer.testing import CliRunner

from services.__main__ import app
from services.common import secret
from services.common.clients import objects
from services.common.clients.objects import ObjectsClient, Page, Row
from services.common.errors import BrokerError
from services.rpc import objects_pb2 as pb

QUEUE: Row = {
    "name": "orders",
    "vhost": "/",
    "durable": True,
    "auto_delete": False,
    "arguments": {"x-max-length": 5},
    "type": "classic",
    "node": "queue-1",
    "messages_ready": 12,
    "messages_unacknowledged": 3,
    "consumers": 1,
    "exclusive_consumer_tag": None,
}
EXCHANGE: Row = {
    "name": "",
    "vhost": "/",
    "type": "direct",
    "durable": True,
    "auto_delete": False,
    "internal": False,
    "arguments": {},
}
BINDING: Row = {
    "source": "",
    "vhost": "/",
    "destination": "orders",
    "destination_type": "queue",
    "routing_key": "eu.\x1b[31m",
    "arguments": {"x": "\x1b[2J\u202e"},
}
POLICY: Row = {
    "vhost": "/",
    "name": "short",
    "pattern": "^jobs",
    "apply-to": "queues",
    "definition": {"max-length": 5, "overflow": "drop-head"},
    "priority": 1,
}
CONSUMER: Row = {
    "queue": {"name": "orders", "vhost": "/"},
    "consumer_tag": "mine",
    "exclusive": False,
    "ack_required": True,
    "active": True,
    "arguments": {"x-priority": 7},
    "channel_details": {"connection_name": "3.2"},
}
CONNECTION: Row = {
    "name": "3.2",
    "user": "anna",
    "vhost": "/",
    "user_provided_name": "shop \x1b]0;owned\x07",
    "peer_host": "::1",
    "peer_port": 5000,
    "channels": 1,
    "node": "gateway-3",
}
CHANNEL: Row = {
    "number": 1,
    "consumer_count": 2,
    "messages_unacknowledged": 3,
    "prefetch_count": 4,
    "global_prefetch_count": 0,
    "confirm": True,
    "transactional": False,
}
MESSAGE: Row = {
    "payload_bytes": 7,
    "redelivered": False,
    "exchange": "",
    "routing_key": "orders",
    "message_count": 1,
    "properties": {"message_id": "m\x1b[31m"},
    "payload": "one\x1b[2J",
    "payload_encoding": "string",
}


class Told(ObjectsClient):
    """What commands ask, and are told: rows by kind, or the `error`."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.pages: dict[int, list[list[Row]]] = {
            pb.QUEUE: [[QUEUE]],
            pb.EXCHANGE: [[EXCHANGE]],
            pb.BINDING: [[BINDING]],
            pb.POLICY: [[POLICY]],
            pb.OPERATOR_POLICY: [[{**POLICY, "name": "most"}]],
            pb.CONSUMER: [[CONSUMER]],
            pb.CONNECTION: [[CONNECTION]],
        }
        self.messages: list[Page] = [Page([], 2), Page([MESSAGE], 2), Page([{**MESSAGE, "redelivered": True}], 2)]
        self.answer = True
        self.error: BrokerError | None = None

    def hear(self, *asked: Any) -> None:
        """Raises the error, where there is one."""
        self.asked.append(asked[0] if len(asked) == 1 else asked)
        if self.error:
            raise self.error

    async def close(self) -> None:
        pass

    async def list(self, request: pb.ListRequest) -> AsyncIterator[Page]:
        self.hear(request)
        pages = self.pages[request.kind]
        for page in pages:
            yield Page(page, sum(map(len, pages)))

    async def show(self, kind: pb.Kind.ValueType, virtual_host: str, name: str) -> Row:
        self.hear("show", kind, virtual_host, name)
        [[row]] = self.pages[kind]
        return {**row, **BELOW[kind]}

    async def declare(self, kind: pb.Kind.ValueType, virtual_host: str, name: str, told: Mapping[str, Any]) -> bool:
        self.hear(kind, virtual_host, name, told)
        return self.answer

    async def delete(self, request: pb.DeleteRequest) -> int:
        self.hear(request)
        return 5

    async def purge(self, virtual_host: str, name: str) -> int:
        self.hear("purge", virtual_host, name)
        return 7

    async def bind(self, request: pb.BindRequest) -> str:
        self.hear("bind", request)
        return "key"

    async def unbind(self, request: pb.BindRequest) -> None:
        self.hear("unbind", request)

    async def close_connection(self, name: str, reason: str) -> None:
        self.hear(name, reason)

    async def publish(self, login: pb.Login, virtual_host: str, exchange: str, told: Mapping[str, Any]) -> bool:
        self.hear(login, virtual_host, exchange, told)
        return self.answer

    async def get(self, login: pb.Login, virtual_host: str, queue: str, told: Mapping[str, Any]) -> AsyncIterator[Page]:
        self.hear(login, virtual_host, queue, told)
        for page in self.messages:
            yield page


BELOW: dict[int, Row] = {
    pb.QUEUE: {"consumer_details": [CONSUMER], "bindings": [BINDING]},
    pb.EXCHANGE: {"bindings": [BINDING]},
    pb.CONNECTION: {"channel_details": [CHANNEL]},
}


def hopline(*arguments: str, status: int = 0, stdin: str | bytes = "") -> str:
    """What a command says."""
    result = CliRunner().invoke(app.whole, arguments, input=stdin)
    secret.use("")
    assert result.exit_code == status, result.output
    return result.output


def told_by(monkeypatch: pytest.MonkeyPatch) -> Told:
    """From now on mgmt is this one."""
    told = Told()
    monkeypatch.setattr(objects, "ObjectsClient", lambda _address: told)
    return told
