"""The gRPC face of what is in virtual hosts: as handler.py, for `hopline.objects`."""
# ruff: noqa: N802 - the contract names the methods

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, TypeVar

import grpc.aio

from services.common.audit.acting import acting
from services.mgmt.access.calls import allowed
from services.mgmt.access.guard import Guard
from services.mgmt.rabbitmq.forms import BindingForm
from services.mgmt.rabbitmq.kinds import declared
from services.mgmt.rabbitmq.lists import connection_of, pages, whole
from services.mgmt.rabbitmq.operations import OBJECTS, place_of
from services.mgmt.rabbitmq.plain import written
from services.mgmt.rabbitmq.reading import read
from services.mgmt.rabbitmq.sections import Broker
from services.rpc import objects_pb2 as pb
from services.rpc import objects_pb2_grpc

if TYPE_CHECKING:
    from services.mgmt.by_hand.client import Login

# ruff: noqa: PLC0415 - a client of gateways is imported by the first message by hand: it takes time and memory

_Context = grpc.aio.ServicerContext[Any, Any]
_T = TypeVar("_T")

_LARGEST: Final = 1 << 20
"""Bytes of a page of messages, or one message."""
_TOLD: Final = 100
"""So often it is told how many have been got."""


class ObjectsHandler(objects_pb2_grpc.ObjectsServicer):
    """hopline.objects.Objects."""

    def __init__(self, broker: Broker, guard: Guard) -> None:
        self._broker = broker
        self._guard = guard

    async def List(self, request: pb.ListRequest, context: _Context) -> AsyncIterator[pb.Page]:
        async with (
            allowed(self._guard, OBJECTS["List"], request, context),
            aclosing(pages(self._broker, request)) as found,
        ):
            async for page in found:
                yield page

    async def Show(self, request: pb.ShowRequest, context: _Context) -> pb.ShowReply:
        row = await self._do("Show", request, lambda: whole(self._broker, request), context)
        return pb.ShowReply(row=written(row))

    async def Declare(self, request: pb.DeclareRequest, context: _Context) -> pb.DeclareReply:
        async def declare() -> bool:
            await self._known(request.virtual_host)
            return await declared(request.kind).declare(self._broker, request)

        return pb.DeclareReply(created=await self._do("Declare", request, declare, context))

    async def Delete(self, request: pb.DeleteRequest, context: _Context) -> pb.DeleteReply:
        async def delete() -> int:
            await self._known(request.virtual_host)
            return await declared(request.kind).delete(self._broker, request)

        return pb.DeleteReply(messages=await self._do("Delete", request, delete, context))

    async def Purge(self, request: pb.PurgeRequest, context: _Context) -> pb.PurgeReply:
        async def purge() -> int:
            await self._known(request.virtual_host)
            queue = self._broker.objects.shared(request.virtual_host, request.name)
            return await self._broker.changes.purge_queue(queue)

        return pb.PurgeReply(messages=await self._do("Purge", request, purge, context))

    async def Bind(self, request: pb.BindRequest, context: _Context) -> pb.BindReply:
        async def bind() -> str:
            await self._known(request.virtual_host)
            told = read(BindingForm, request.told)
            return await self._broker.changes.bind(request.virtual_host, place_of(request), told)

        return pb.BindReply(properties_key=await self._do("Bind", request, bind, context))

    async def Unbind(self, request: pb.BindRequest, context: _Context) -> pb.UnbindReply:
        async def unbind() -> None:
            await self._known(request.virtual_host)
            told = read(BindingForm, request.told)
            await self._broker.changes.unbind_told(request.virtual_host, place_of(request), told)

        await self._do("Unbind", request, unbind, context)
        return pb.UnbindReply()

    async def CloseConnection(self, request: pb.CloseConnectionRequest, context: _Context) -> pb.CloseConnectionReply:
        async def close() -> None:
            await self._broker.objects.known()
            await connection_of(self._broker, request.name)
            await self._broker.house.gateways.close(request.name, request.reason)

        await self._do("CloseConnection", request, close, context)
        return pb.CloseConnectionReply()

    async def Publish(self, request: pb.PublishRequest, context: _Context) -> pb.PublishReply:
        from services.mgmt.rabbitmq.messages import PublishForm, publish

        async def send() -> bool:
            await self._known(request.virtual_host)
            told, where = read(PublishForm, request.told), (request.virtual_host, request.exchange)
            return await publish(self._broker.house.settings, _login(request), *where, told)

        return pb.PublishReply(routed=await self._do("Publish", request, send, context))

    async def Get(self, request: pb.GetRequest, context: _Context) -> AsyncIterator[pb.Page]:
        """First how many have been got, then the messages: while they are held, nothing is waited for."""
        from services.mgmt.rabbitmq.messages import GetForm, get

        async def left() -> bool:
            return context.cancelled()

        async with allowed(self._guard, OBJECTS["Get"], request, context):
            await self._known(request.virtual_host)
            self._broker.objects.queue(request.virtual_host, request.queue)
            form, where = read(GetForm, request.told), (request.virtual_host, request.queue)
            rows: list[bytes] = []
            its = get(self._broker.house.settings, _login(request), *where, form, left)
            async with aclosing(its) as found:
                async for row in found:
                    rows.append(row)
                    if not len(rows) % _TOLD:
                        yield pb.Page(total=len(rows))
            for page in _by_size(rows):
                yield page

    async def _known(self, virtual_host: str) -> None:
        await self._broker.objects.known()
        self._broker.objects.check_virtual_host(virtual_host)

    async def _do(
        self,
        method: str,
        request: Any,  # noqa: ANN401 - each method's own
        work: Callable[[], Awaitable[_T]],
        context: _Context,
    ) -> _T:
        """The result of `work`."""
        async with allowed(self._guard, OBJECTS[method], request, context):
            return await work()


def _login(request: pb.PublishRequest | pb.GetRequest) -> Login:
    from services.mgmt.by_hand.client import Login

    return Login(request.login.user, request.login.password, acting() or "a caller with the stack's secret")


def _by_size(rows: list[bytes]) -> list[pb.Page]:
    found = [pb.Page(total=len(rows))]
    size = 0
    for row in rows:
        if size > _LARGEST:
            found.append(pb.Page(total=len(rows)))
            size = 0
        found[-1].rows.append(row)
        size += len(row)
    return found
