"""Requests to the owner of a queue, made again when the owner changes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from services.common.errors import Unavailable
from services.common.topology.slots import SlotId
from services.rpc import queue_pb2 as pb

if TYPE_CHECKING:
    from services.gateway.owners.ownerless import OwnerlessQueues

PATIENCE = 30.0  # seconds that a request waits for a queue's next owner
AGAIN = 0.05

_NOT_NOW = frozenset({pb.NOT_OWNER, pb.UNAVAILABLE})


class Asking:
    """`ownerless` knows the owners, and which of them must first be told what clients hold."""

    def __init__(self, ownerless: OwnerlessQueues) -> None:
        self._ownerless = ownerless

    async def ask(self, queue_id: SlotId, *, to_hold: bool = False, **request: Any) -> pb.QueueReply:  # noqa: ANN401 - as QueueLink.request
        """The owner's answer; raises Unavailable when the queue has no owner for long.

        With `to_hold` the answer has a message that is held until it is settled. A message that a former owner has
        given is not taken: the next owner has it again, and may deliver it to another client.
        """
        loop = asyncio.get_running_loop()
        give_up = loop.time() + PATIENCE
        while (reply := await self._answer(queue_id, request, to_hold=to_hold)) is None:
            if loop.time() > give_up:
                raise Unavailable("the queue has no owner at the moment; try again")
            await asyncio.sleep(AGAIN)
        return reply

    async def _answer(self, queue_id: SlotId, request: dict[str, Any], *, to_hold: bool) -> pb.QueueReply | None:
        term = self._ownerless.term_of(queue_id)
        link = term.link if self._ownerless.knows(queue_id) else None
        if link is None:
            return None if self._ownerless.exists(queue_id) else pb.QueueReply(reason=pb.UNKNOWN_QUEUE)
        try:
            reply = await link.request(term=term.epoch, **request)
        except Unavailable:
            return None
        is_formers = to_hold and reply.HasField("message") and self._ownerless.term_of(queue_id) != term
        return None if is_formers or reply.reason in _NOT_NOW else reply
