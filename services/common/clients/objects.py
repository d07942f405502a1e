"""Calls to mgmt about the objects of virtual hosts, typed: lists in pages, changes, publish and get by hand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

from services.common.audit.acting import fields
from services.common.clients.calls import Client, result, stream
from services.common.grpc_channel import connect
from services.rpc import objects_pb2 as pb
from services.rpc import objects_pb2_grpc

_DEADLINE = 45.0  # seconds: mgmt may wait for a queue's owner
_LIST_DEADLINE = 3600.0  # a person may read it page by page

Row = dict[str, Any]


class Page(NamedTuple):
    """Some rows of a list; `total` counts the rows of all pages, or, on a page without rows, those found so far."""

    rows: list[Row]
    total: int


class ObjectsClient(Client):
    """A connection to mgmt; every call raises the BrokerError that mgmt answered with, or Unavailable."""

    def __init__(self, address: str) -> None:
        self._channel = connect(address)
        self._stub: objects_pb2_grpc.ObjectsAsyncStub = objects_pb2_grpc.ObjectsStub(self._channel)

    async def close(self) -> None:
        """Ends the connection."""
        await self._channel.close()

    async def list(self, request: pb.ListRequest) -> AsyncIterator[Page]:
        """Raises SyntaxFault for an unknown column, NotFound for an unknown virtual host."""
        async for page in stream(self._stub.List(request, timeout=_LIST_DEADLINE)):
            yield _page(page)

    async def show(self, kind: pb.Kind.ValueType, virtual_host: str, name: str) -> Row:
        """Raises NotFound."""
        request = pb.ShowRequest(kind=kind, virtual_host=virtual_host, name=name)
        row: Row = json.loads((await result(self._stub.Show(request, timeout=_DEADLINE))).row)
        return row

    async def declare(self, kind: pb.Kind.ValueType, virtual_host: str, name: str, told: Mapping[str, Any]) -> bool:
        """Whether it was created. Raises PreconditionFailed when one exists that differs."""
        request = pb.DeclareRequest(kind=kind, virtual_host=virtual_host, name=name, told=_json(told))
        return (await result(self._stub.Declare(request, timeout=_DEADLINE, metadata=fields()))).created

    async def delete(self, request: pb.DeleteRequest) -> int:
        """How many messages were deleted with it. Raises NotFound; PreconditionFailed if in use, or not empty."""
        return (await result(self._stub.Delete(request, timeout=_DEADLINE, metadata=fields()))).messages

    async def purge(self, virtual_host: str, name: str) -> int:
        """How many messages were purged. Raises NotFound."""
        request = pb.PurgeRequest(virtual_host=virtual_host, name=name)
        return (await result(self._stub.Purge(request, timeout=_DEADLINE, metadata=fields()))).messages

    async def bind(self, request: pb.BindRequest) -> str:
        """The key of the binding among those of this source and destination. Raises NotFound if one is missing."""
        return (await result(self._stub.Bind(request, timeout=_DEADLINE, metadata=fields()))).properties_key

    async def unbind(self, request: pb.BindRequest) -> None:
        """Raises NotFound if there is no such binding."""
        await result(self._stub.Unbind(request, timeout=_DEADLINE, metadata=fields()))

    async def close_connection(self, name: str, reason: str) -> None:
        """Closes it; its client is told the reason. Raises NotFound."""
        request = pb.CloseConnectionRequest(name=name, reason=reason)
        await result(self._stub.CloseConnection(request, timeout=_DEADLINE, metadata=fields()))

    async def publish(self, login: pb.Login, virtual_host: str, exchange: str, told: Mapping[str, Any]) -> bool:
        """Whether any queue got the message. Raises the error with which the gateway refuses it."""
        request = pb.PublishRequest(login=login, virtual_host=virtual_host, exchange=exchange, told=_json(told))
        return (await result(self._stub.Publish(request, timeout=_DEADLINE, metadata=fields()))).routed

    async def get(self, login: pb.Login, virtual_host: str, queue: str, told: Mapping[str, Any]) -> AsyncIterator[Page]:
        """Pages without rows come first, while messages are got. Raises the error with which the gateway refuses it."""
        request = pb.GetRequest(login=login, virtual_host=virtual_host, queue=queue, told=_json(told))
        async for page in stream(self._stub.Get(request, timeout=_LIST_DEADLINE, metadata=fields())):
            yield _page(page)


def _page(page: pb.Page) -> Page:
    return Page([json.loads(row) for row in page.rows], page.total)


def _json(told: Mapping[str, Any]) -> bytes:
    return json.dumps(told, ensure_ascii=False).encode()
