"""The gRPC face of mgmt: translates, delegates, and gives errors their status."""
# ruff: noqa: ARG002, N802 - the contract names the methods and what they are given

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import fields
from typing import Any, TypeVar

import grpc.aio

from services.common.errors import BrokerError
from services.common.grpc_errors import abort
from services.common.question import Sought
from services.common.scram import Keys
from services.mgmt.lookup.lookup import LookUp
from services.mgmt.users import Users
from services.rpc import mgmt_pb2, mgmt_pb2_grpc

_Context = grpc.aio.ServicerContext[Any, Any]
_T = TypeVar("_T")


class Handler(mgmt_pb2_grpc.MgmtServicer):
    """hopline.mgmt.Mgmt."""

    def __init__(self, users: Users, look_up: LookUp) -> None:
        self._users = users
        self._look_up = look_up

    async def PutUser(self, request: mgmt_pb2.PutUserRequest, context: _Context) -> mgmt_pb2.PutUserReply:
        put = self._users.put(request.name, request.password, request.tags, loopback_only=request.loopback_only)
        await _told(put, context)
        return mgmt_pb2.PutUserReply()

    async def DeleteUser(self, request: mgmt_pb2.DeleteUserRequest, context: _Context) -> mgmt_pb2.DeleteUserReply:
        await _told(self._users.delete(request.name), context)
        return mgmt_pb2.DeleteUserReply()

    async def ListUsers(self, request: mgmt_pb2.ListUsersRequest, context: _Context) -> mgmt_pb2.ListUsersReply:
        users = await _told(self._users.all(), context)
        listed = (mgmt_pb2.User(name=user.name, tags=user.tags, loopback_only=user.loopback_only) for user in users)
        return mgmt_pb2.ListUsersReply(users=listed)

    async def AddKeys(self, request: mgmt_pb2.AddKeysRequest, context: _Context) -> mgmt_pb2.AddKeysReply:
        keys = {
            name: Keys(
                salt=each.salt, iterations=each.iterations, stored_key=each.stored_key, server_key=each.server_key
            )
            for name, each in request.keys.items()
        }
        await _told(self._users.add_keys(request.name, request.password_hash, keys), context)
        return mgmt_pb2.AddKeysReply()

    async def Trace(self, request: mgmt_pb2.TraceRequest, context: _Context) -> mgmt_pb2.TraceReply:
        wanted = self._look_up.trace(
            request.id, request.journeys, everything=request.everything, payloads=request.payloads
        )
        trace = await _told(wanted, context)
        return mgmt_pb2.TraceReply(trace=trace.model_dump_json().encode())

    async def Search(self, request: mgmt_pb2.SearchRequest, context: _Context) -> mgmt_pb2.TraceReply:
        sought = Sought(**{field.name: getattr(request, field.name) for field in fields(Sought)})
        trace = await _told(self._look_up.search(sought, request.journeys), context)
        return mgmt_pb2.TraceReply(trace=trace.model_dump_json().encode())

    async def Connections(self, request: mgmt_pb2.ConnectionsRequest, context: _Context) -> mgmt_pb2.ConnectionsReply:
        found = await _told(self._look_up.connections(request.virtual_host, request.who), context)
        return mgmt_pb2.ConnectionsReply(connections=found)


async def _told(work: Awaitable[_T], context: _Context) -> _T:
    """The result of `work`; what goes wrong is told to the caller as a typed error."""
    try:
        return await work
    except BrokerError as error:
        await abort(context, error)
