"""Calls to mgmt about what is in virtual hosts, typed: lists in pages, changes, messages by hand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

from services.common.audit.acting import fields
from services.common.clients.calls import Client, result, stream
from services.common.grpc_channel import connect
from services.rpc import objects_pb2 as pb
from services.rpc import objects_pb2_grpc

_DEADLINE = 45.0  # seconds: who owns a queue may be waited for
_LIST_DEADLINE = 3600.0  # somebody may read it page by page

Row = dict[str, Any]


class Page(NamedTuple):
    """Some rows of a list; `total` is how many all its pages have, or, without rows, how many there are by now."""

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
        """Raises SyntaxFault for a column that there is not, NotFound for a virtual host."""
        async for page in stream(self._stub.List(request, timeout=_LIST_DEADLINE)):
            yield _page(page)

    async def show(self, kind: pb.Kind.ValueType, virtual_host: str, name: str) -> Row:
        """Raises NotFound."""
        request = pb.ShowRequest(kind=kind, virtual_host=virtual_host, name=name)
        row: Row = json.loads((await result(self._stub.Show(request, timeout=_DEADLINE))).row)
        return row

    async def declare(self, kind: pb.Kind.ValueType, virtual_host: str, name: str, told: Mapping[str, Any]) -> bool:
        """Whether there was none. Raises PreconditionFailed where there is one that is not like that."""
        request = pb.DeclareRequest(kind=kind, virtual_host=virtual_host, name=name, told=_json(told))
        return (await result(self._stub.Declare(request, timeout=_DEADLINE, metadata=fields()))).created

    async def delete(self, request: pb.DeleteRequest) -> int:
        """How many messages went with it. Raises NotFound, and PreconditionFailed for one in use, or not empty."""
        return (await result(self._stub.Delete(request, timeout=_DEADLINE, metadata=fields()))).messages

    async def purge(self, virtual_host: str, name: str) -> int:
        """How many messages went. Raises NotFound."""
        request = pb.PurgeRequest(virtual_host=virtual_host, name=name)
        return (await result(self._stub.Purge(request, timeout=_DEADLINE, metadata=fields()))).messages

    async def bind(self, request: pb.BindRequest) -> str:
        """The key of the binding among those of the two. Raises NotFound where one of them is not there."""
        return (await result(self._stub.Bind(request, timeout=_DEADLINE, metadata=fields()))).properties_key

    async def unbind(self, request: pb.BindRequest) -> None:
        """Raises NotFound where there is none like that."""
        await result(self._stub.Unbind(request, timeout=_DEADLINE, metadata=fields()))

    async def close_connection(self, name: str, reason: str) -> None:
        """Its client is told why. Raises NotFound."""
        request = pb.CloseConnectionRequest(name=name, reason=reason)
        await result(self._stub.CloseConnection(request, timeout=_DEADLINE, metadata=fields()))

    async def publish(self, login: pb.Login, virtual_host: str, exchange: str, told: Mapping[str, Any]) -> bool:
        """Whether any queue has it. Raises what the gateway refuses it with."""
        request = pb.PublishRequest(login=login, virtual_host=virtual_host, exchange=exchange, told=_json(told))
        return (await result(self._stub.Publish(request, timeout=_DEADLINE, metadata=fields()))).routed

    async def get(self, login: pb.Login, virtual_host: str, queue: str, told: Mapping[str, Any]) -> AsyncIterator[Page]:
        """First pages without rows, while messages are got. Raises what the gateway refuses it with."""
        request = pb.GetRequest(login=login, virtual_host=virtual_host, queue=queue, told=_json(told))
        async for page in stream(self._stub.Get(request, timeout=_LIST_DEADLINE, metadata=fields())):
            yield _page(page)


def _page(page: pb.Page) -> Page:
    return Page([json.loads(row) for row in page.rows], page.total)


def _json(told: Mapping[str, Any]) -> bytes:
    return json.dumps(told, ensure_ascii=False).encode()
