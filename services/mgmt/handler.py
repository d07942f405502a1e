"""The gRPC face of mgmt: translates, delegates, and gives errors their status."""
# ruff: noqa: N802 - the contract names the methods

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import grpc.aio
from pydantic import ValidationError

from services.common.authentication.described import Described
from services.common.errors import SyntaxFault
from services.common.question import Sought
from services.common.scram import Keys
from services.mgmt.access import wire
from services.mgmt.access.calls import allowed
from services.mgmt.access.grants import Grants
from services.mgmt.access.guard import Guard
from services.mgmt.access.operations import RPCS
from services.mgmt.access.tested import Tester
from services.mgmt.leaving import delete_user
from services.mgmt.lookup.lookup import LookUp
from services.mgmt.providers import Providers
from services.mgmt.rabbitmq.definitions import Definitions
from services.mgmt.users import KEPT_USUALLY, Kept, Users
from services.rpc import mgmt_pb2, mgmt_pb2_grpc

if TYPE_CHECKING:
    from services.mgmt.node.node import Node

_Context = grpc.aio.ServicerContext[Any, Any]
_T = TypeVar("_T")


class Handler(mgmt_pb2_grpc.MgmtServicer):
    """hopline.mgmt.Mgmt."""

    def __init__(
        self,
        users: Users,
        providers: Providers,
        grants: Grants,
        tester: Tester,
        guard: Guard,
        look_up: LookUp,
        definitions: Definitions,
        node: Callable[[], Node],
    ) -> None:
        """`node` is made when something is asked of it."""
        self._users = users
        self._providers = providers
        self._grants = grants
        self._tester = tester
        self._guard = guard
        self._look_up = look_up
        self._definitions = definitions
        self._node = node

    async def PutUser(self, request: mgmt_pb2.PutUserRequest, context: _Context) -> mgmt_pb2.PutUserReply:
        async def put() -> None:
            kept, only = _kept(request), request.loopback_only
            await self._users.put(request.name, request.password, request.tags, loopback_only=only, kept=kept)

        await self._do("PutUser", request, put, context)
        return mgmt_pb2.PutUserReply()

    async def ChangeUser(self, request: mgmt_pb2.ChangeUserRequest, context: _Context) -> mgmt_pb2.ChangeUserReply:
        async def change() -> None:
            await self._users.change(
                request.name,
                password=request.password if request.HasField("password") else None,
                kept=_kept(request),
                tags=request.tags.tags if request.HasField("tags") else None,
                loopback_only=request.loopback_only if request.HasField("loopback_only") else None,
            )

        await self._do("ChangeUser", request, change, context)
        return mgmt_pb2.ChangeUserReply()

    async def DeleteUser(self, request: mgmt_pb2.DeleteUserRequest, context: _Context) -> mgmt_pb2.DeleteUserReply:
        await self._do("DeleteUser", request, lambda: delete_user(self._users, self._grants, request.name), context)
        return mgmt_pb2.DeleteUserReply()

    async def ListUsers(self, request: mgmt_pb2.ListUsersRequest, context: _Context) -> mgmt_pb2.ListUsersReply:
        users = await self._do("ListUsers", request, self._users.all, context)
        listed = (mgmt_pb2.User(name=user.name, tags=user.tags, loopback_only=user.loopback_only) for user in users)
        return mgmt_pb2.ListUsersReply(users=listed)

    async def SetTags(self, request: mgmt_pb2.SetTagsRequest, context: _Context) -> mgmt_pb2.SetTagsReply:
        await self._do("SetTags", request, lambda: self._users.set_tags(request.name, request.tags), context)
        return mgmt_pb2.SetTagsReply()

    async def AddKeys(self, request: mgmt_pb2.AddKeysRequest, context: _Context) -> mgmt_pb2.AddKeysReply:
        keys = {
            name: Keys(
                salt=each.salt, iterations=each.iterations, stored_key=each.stored_key, server_key=each.server_key
            )
            for name, each in request.keys.items()
        }

        async def add() -> None:
            await self._users.add_keys(request.name, request.password_hash, keys, request.renewed_hash)

        await self._do("AddKeys", request, add, context)
        return mgmt_pb2.AddKeysReply()

    async def ChangeAccess(self, request: mgmt_pb2.AccessChange, context: _Context) -> mgmt_pb2.ChangeAccessReply:
        await self._do("ChangeAccess", request, lambda: wire.change(self._grants, request), context)
        return mgmt_pb2.ChangeAccessReply()

    async def ListAccess(self, request: mgmt_pb2.ListAccessRequest, context: _Context) -> mgmt_pb2.Access:
        return await self._do("ListAccess", request, lambda: wire.told(self._grants), context)

    async def TestAccess(self, request: mgmt_pb2.TestAccessRequest, context: _Context) -> mgmt_pb2.TestAccessReply:
        result = await self._do("TestAccess", request, lambda: self._tester.test(wire.question(request)), context)
        return mgmt_pb2.TestAccessReply(**result.model_dump())

    async def PutProvider(self, request: mgmt_pb2.PutProviderRequest, context: _Context) -> mgmt_pb2.PutProviderReply:
        await self._do("PutProvider", request, lambda: self._put_provider(request), context)
        return mgmt_pb2.PutProviderReply()

    async def _put_provider(self, request: mgmt_pb2.PutProviderRequest) -> None:
        try:
            described = Described.from_json(request.described)
        except ValidationError as error:
            raise SyntaxFault("a provider has a type and options") from error
        await self._providers.put(request.name, described)

    async def RemoveProvider(
        self, request: mgmt_pb2.RemoveProviderRequest, context: _Context
    ) -> mgmt_pb2.RemoveProviderReply:
        await self._do("RemoveProvider", request, lambda: self._providers.remove(request.name), context)
        return mgmt_pb2.RemoveProviderReply()

    async def ListProviders(
        self, request: mgmt_pb2.ListProvidersRequest, context: _Context
    ) -> mgmt_pb2.ListProvidersReply:
        of_records = await self._do("ListProviders", request, self._providers.of_records, context)
        listed = [
            *(mgmt_pb2.Provider(name=name, described=each.to_json(), of_settings=True)
              for name, each in sorted(self._providers.of_file.items())),
            *(mgmt_pb2.Provider(name=name, described=each.masked().to_json())
              for name, each in sorted(of_records.items())),
        ]  # fmt: skip
        return mgmt_pb2.ListProvidersReply(providers=listed)

    async def Trace(self, request: mgmt_pb2.TraceRequest, context: _Context) -> mgmt_pb2.TraceReply:
        async def look_up() -> bytes:
            options = {"everything": request.everything, "payloads": request.payloads}
            return (await self._look_up.trace(request.id, request.journeys, **options)).model_dump_json().encode()

        return mgmt_pb2.TraceReply(trace=await self._do("Trace", request, look_up, context))

    async def Search(self, request: mgmt_pb2.SearchRequest, context: _Context) -> mgmt_pb2.TraceReply:
        async def look_up() -> bytes:
            sought = Sought(**{field.name: getattr(request, field.name) for field in fields(Sought)})
            return (await self._look_up.search(sought, request.journeys)).model_dump_json().encode()

        return mgmt_pb2.TraceReply(trace=await self._do("Search", request, look_up, context))

    async def Connections(self, request: mgmt_pb2.ConnectionsRequest, context: _Context) -> mgmt_pb2.ConnectionsReply:
        look_up = self._look_up.connections
        found = await self._do("Connections", request, lambda: look_up(request.virtual_host, request.who), context)
        return mgmt_pb2.ConnectionsReply(connections=found)

    async def ImportDefinitions(
        self, request: mgmt_pb2.ImportDefinitionsRequest, context: _Context
    ) -> AsyncIterator[mgmt_pb2.ImportDefinitionsReply]:
        told = self._definitions.take(request.definitions, _virtual_host(request))
        async with allowed(self._guard, RPCS["ImportDefinitions"], request, context), aclosing(told):
            async for progress, is_all in told:
                taken = progress.taken.model_dump_json().encode() if is_all else b""
                yield mgmt_pb2.ImportDefinitionsReply(taken=taken, done=progress.done, total=progress.total)

    async def ExportDefinitions(
        self, request: mgmt_pb2.ExportDefinitionsRequest, context: _Context
    ) -> mgmt_pb2.ExportDefinitionsReply:
        give = self._definitions.give
        told = await self._do("ExportDefinitions", request, lambda: give(_virtual_host(request)), context)
        return mgmt_pb2.ExportDefinitionsReply(definitions=told)

    async def Manage(self, request: mgmt_pb2.ManageRequest, context: _Context) -> mgmt_pb2.ManageReply:
        return await self._do("Manage", request, lambda: self._node().manage(request), context)

    async def _do(
        self,
        method: str,
        request: Any,  # noqa: ANN401 - each method's own
        work: Callable[[], Awaitable[_T]],
        context: _Context,
    ) -> _T:
        """The result of `work`."""
        async with allowed(self._guard, RPCS[method], request, context):
            return await work()


def _kept(request: mgmt_pb2.PutUserRequest | mgmt_pb2.ChangeUserRequest) -> Kept:
    return Kept(request.kind or KEPT_USUALLY.kind, request.hashed)


def _virtual_host(request: mgmt_pb2.ImportDefinitionsRequest | mgmt_pb2.ExportDefinitionsRequest) -> str | None:
    return request.virtual_host if request.HasField("virtual_host") else None
