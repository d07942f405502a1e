"""Asks the management node as a gateway does, for a user."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from services.common.authentication.principal import Principal
from services.common.clients.mgmt import MgmtClient
from services.rpc import mgmt_pb2 as pb

SELF = {"identity": "self", "type": "org.amqp.management"}
GUEST = Principal("guest", "internal", tags=frozenset({"administrator"}))


class Told(NamedTuple):
    """A reply."""

    status: int
    description: str
    body: Any


class Asking:
    """In one virtual host."""

    def __init__(self, client: MgmtClient, virtual_host: str = "/") -> None:
        self._client = client
        self._host = virtual_host

    async def __call__(self, operation: str, body: object = None, who: Principal = GUEST, **properties: Any) -> Told:
        """Properties with hyphens in their names come with underscores."""
        said = {"operation": operation, **{name.replace("_", "-"): value for name, value in properties.items()}}
        request = pb.ManageRequest(
            virtual_host=self._host,
            who=pb.SignedIn(name=who.name, provider=who.provider, tags=who.tags, groups=who.groups, host="127.0.0.1"),
            request=json.dumps({"properties": said, "body": body}).encode(),
        )
        reply = await self._client.manage(request)
        return Told(reply.status, reply.description, json.loads(reply.body) if reply.body else None)

    async def itself(self, operation: str, body: object = None, who: Principal = GUEST, **properties: Any) -> Told:
        """Of the node."""
        return await self(operation, body, who, **SELF, **properties)
