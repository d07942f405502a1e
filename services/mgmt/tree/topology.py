"""Changes of the topology, which are the router's to make."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from services.common.audit.audit import Audit
from services.common.clients.calls import result
from services.common.clients.routers import Routers
from services.common.clock import monotonic
from services.common.errors import Unavailable
from services.mgmt.tree.recorded import record_change
from services.rpc.router_pb2 import ChangeReply, ChangeRequest

_DEADLINE: Final = 10.0  # seconds
_AGAIN: Final = 0.1


class Topology:
    """Asks the router that writes; gives the next one the time to begin."""

    def __init__(self, routers: Routers, audit: Audit) -> None:
        self._routers = routers
        self._audit = audit

    async def change(self, virtual_host: str = "", **what: Any) -> ChangeReply:  # noqa: ANN401 - one field of the oneof
        """Returns when every gateway routes by it. Raises what the change raises, or Unavailable."""
        reply = await self._change(virtual_host, what)
        for field, change in what.items():
            record_change(self._audit, virtual_host, field, change, created=reply.created)
        return reply

    async def _change(self, virtual_host: str, what: Mapping[str, Any]) -> ChangeReply:
        request, until = ChangeRequest(virtual_host=virtual_host, **what), monotonic() + _DEADLINE
        while True:
            try:
                return await self._ask(request, until - monotonic())
            except Unavailable as failure:
                # One that has heard of it may have done it; all changes here may be made twice.
                if failure.answered or monotonic() + _AGAIN >= until:
                    raise
            await asyncio.sleep(_AGAIN)

    async def _ask(self, request: ChangeRequest, left: float) -> ChangeReply:
        try:
            async with asyncio.timeout(left):
                router = await self._routers.known()
        except TimeoutError:
            raise Unavailable("no router answers at the moment; try again") from None
        stub = self._routers.stub(router)
        try:
            return await result(stub.Change(request, timeout=max(left, _AGAIN), metadata=router.metadata))
        except Unavailable as failure:
            self._routers.judge(failure, router, stub)
            raise
