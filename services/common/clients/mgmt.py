"""Calls to mgmt, typed: users, and where messages went."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from services.common.audit.acting import fields
from services.common.clients.calls import Client, result, stream
from services.common.grpc_channel import connect
from services.common.question import Sought
from services.common.trace import Trace
from services.rpc import mgmt_pb2, mgmt_pb2_grpc

if TYPE_CHECKING:
    from services.common.definitions import Taken
    from services.common.scram import Keys

_DEADLINE = 10.0  # seconds
_LOOK_UP_DEADLINE = 30.0
_IMPORT_DEADLINE = 600.0
_MANAGE_DEADLINE = 30.0


class MgmtClient(Client):
    """A connection to mgmt; every call raises the BrokerError that mgmt answered with, or Unavailable."""

    def __init__(self, address: str) -> None:
        self._channel = connect(address)
        self._stub: mgmt_pb2_grpc.MgmtAsyncStub = mgmt_pb2_grpc.MgmtStub(self._channel)

    async def close(self) -> None:
        """Ends the connection."""
        await self._channel.close()

    async def put_user(
        self,
        name: str,
        password: str,
        tags: Iterable[str] = (),
        *,
        loopback_only: bool = False,
        kind: str = "",
        hashed: bool = False,
    ) -> None:
        """Creates the user, or replaces all of it; `kind` and `hashed` as in services/mgmt/users.py."""
        request = mgmt_pb2.PutUserRequest(
            name=name, password=password, tags=tags, loopback_only=loopback_only, kind=kind, hashed=hashed
        )
        await result(self._stub.PutUser(request, timeout=_DEADLINE, metadata=fields()))

    async def change_user(
        self,
        name: str,
        *,
        password: str | None = None,
        kind: str = "",
        hashed: bool = False,
        tags: Iterable[str] | None = None,
        loopback_only: bool | None = None,
    ) -> None:
        """Changes what is not None. Raises NotFound when there is no such user."""
        request = mgmt_pb2.ChangeUserRequest(
            name=name,
            password=password,
            kind=kind,
            hashed=hashed,
            tags=None if tags is None else mgmt_pb2.Tags(tags=tags),
            loopback_only=loopback_only,
        )
        await result(self._stub.ChangeUser(request, timeout=_DEADLINE, metadata=fields()))

    async def delete_user(self, name: str) -> None:
        """Raises NotFound when there is no such user."""
        await result(self._stub.DeleteUser(mgmt_pb2.DeleteUserRequest(name=name), timeout=_DEADLINE, metadata=fields()))

    async def set_tags(self, name: str, tags: Iterable[str]) -> None:
        """Raises NotFound when there is no such user."""
        await result(
            self._stub.SetTags(mgmt_pb2.SetTagsRequest(name=name, tags=tags), timeout=_DEADLINE, metadata=fields())
        )

    async def change_access(self, **what: Any) -> None:  # noqa: ANN401 - one field of the oneof
        """Sets or removes one permission, group or set of rules. Raises NotFound, and SyntaxFault."""
        await result(self._stub.ChangeAccess(mgmt_pb2.AccessChange(**what), timeout=_DEADLINE, metadata=fields()))

    async def list_access(self) -> mgmt_pb2.Access:
        """Permissions, groups and rules."""
        return await result(self._stub.ListAccess(mgmt_pb2.ListAccessRequest(), timeout=_DEADLINE))

    async def test_access(self, question: mgmt_pb2.TestAccessRequest) -> mgmt_pb2.TestAccessReply:
        """Whether a user may, and which rule says so. Raises SyntaxFault for an action that does not exist."""
        return await result(self._stub.TestAccess(question, timeout=_DEADLINE))

    async def list_users(self) -> Sequence[mgmt_pb2.User]:
        """All users, by name."""
        reply = await result(self._stub.ListUsers(mgmt_pb2.ListUsersRequest(), timeout=_DEADLINE))
        return reply.users

    async def put_provider(self, name: str, described: bytes) -> None:
        """Adds an authentication provider, or replaces it: JSON, as services/common/authentication/described.py."""
        request = mgmt_pb2.PutProviderRequest(name=name, described=described)
        await result(self._stub.PutProvider(request, timeout=_DEADLINE, metadata=fields()))

    async def remove_provider(self, name: str) -> None:
        """Raises NotFound when there is no such provider."""
        await result(
            self._stub.RemoveProvider(mgmt_pb2.RemoveProviderRequest(name=name), timeout=_DEADLINE, metadata=fields())
        )

    async def list_providers(self) -> Sequence[mgmt_pb2.Provider]:
        """All of them: those of the settings' file, then those stored as records, each by name."""
        reply = await result(self._stub.ListProviders(mgmt_pb2.ListProvidersRequest(), timeout=_DEADLINE))
        return reply.providers

    async def add_keys(self, name: str, password_hash: str, keys: Mapping[str, Keys], renewed_hash: str = "") -> None:
        """Adds SCRAM keys to a user that has none, and a newer hash of its password, if any.

        Raises NotFound, and PreconditionFailed when the user has another password by now.
        """
        added = {mechanism: mgmt_pb2.ScramKeys(**each.model_dump()) for mechanism, each in keys.items()}
        request = mgmt_pb2.AddKeysRequest(name=name, password_hash=password_hash, keys=added, renewed_hash=renewed_hash)
        await result(self._stub.AddKeys(request, timeout=_DEADLINE, metadata=fields()))

    async def trace(self, asked: str, journeys: int, *, everything: bool = False, payloads: bool = False) -> Trace:
        """The ways of the newest messages that have the id; none where nothing is on record."""
        request = mgmt_pb2.TraceRequest(id=asked, journeys=journeys, everything=everything, payloads=payloads)
        reply = await result(self._stub.Trace(request, timeout=_LOOK_UP_DEADLINE))
        return Trace.model_validate_json(reply.trace)

    async def search(self, sought: Sought, journeys: int) -> Trace:
        """The ways of the newest messages that `sought` applies to; none where nothing is on record."""
        request = mgmt_pb2.SearchRequest(**asdict(sought), journeys=journeys)
        reply = await result(self._stub.Search(request, timeout=_LOOK_UP_DEADLINE))
        return Trace.model_validate_json(reply.trace)

    async def connections(self, virtual_host: str, who: str) -> Sequence[str]:
        """Those on record whose user or address fits the pattern, the newest first."""
        request = mgmt_pb2.ConnectionsRequest(virtual_host=virtual_host, who=who)
        reply = await result(self._stub.Connections(request, timeout=_LOOK_UP_DEADLINE))
        return reply.connections

    async def import_definitions(
        self,
        definitions: bytes,
        virtual_host: str | None = None,
        told: Callable[[int, int], object] = lambda _done, _total: None,
    ) -> Taken:
        """Imports what RabbitMQ exports; raises SyntaxFault for anything else, NotFound for an unknown virtual host.

        `told` is called with how many objects are done, and of how many.
        """
        from services.common.definitions import Taken  # noqa: PLC0415 - a look-up does without, and takes a moment

        request = mgmt_pb2.ImportDefinitionsRequest(definitions=definitions, virtual_host=virtual_host)
        reply = mgmt_pb2.ImportDefinitionsReply()
        call = self._stub.ImportDefinitions(request, timeout=_IMPORT_DEADLINE, metadata=fields())
        async for reply in stream(call):
            told(reply.done, reply.total)
        return Taken.model_validate_json(reply.taken)

    async def export_definitions(self, virtual_host: str | None = None) -> bytes:
        """JSON, with password hashes if no virtual host is given. Raises NotFound for an unknown virtual host."""
        request = mgmt_pb2.ExportDefinitionsRequest(virtual_host=virtual_host)
        return (await result(self._stub.ExportDefinitions(request, timeout=_LOOK_UP_DEADLINE))).definitions

    async def manage(self, request: mgmt_pb2.ManageRequest) -> mgmt_pb2.ManageReply:
        """What the management node of a virtual host answers to a client of a gateway."""
        return await result(self._stub.Manage(request, timeout=_MANAGE_DEADLINE, metadata=fields()))
