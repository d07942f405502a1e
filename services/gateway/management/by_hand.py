"""A message that a client has management write: published as its own, by its permissions, and what becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final

from services.common.errors import BrokerError, PreconditionFailed, Unavailable
from services.common.message import format_named
from services.common.message.facts import facts_of
from services.gateway.operations.publish import publish
from services.gateway.sessions.session import Session
from services.gateway.vocabulary import Kind, Publish, Returned

if TYPE_CHECKING:
    from services.gateway.sessions.client import Client
    from services.rpc.mgmt_pb2 import ByHand

_PATIENCE: Final = 30.0  # seconds
_LINK: Final = 1  # each message has an outcome of its own: no fault ends the session


class _Told(Session):
    """Of one message: what others tell a client is told here."""

    def __init__(self, client: Client) -> None:
        super().__init__(0, client)
        self.start_confirms()
        self.routed = True
        self.error: BrokerError | None = None
        self.outcome: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def send_back(self, returned: Returned) -> None:
        """It reached no queue, or was refused."""
        self.error, self.routed = returned.error, False

    def confirm(self, first: int, indexes: Sequence[int], refused: AbstractSet[int] = frozenset()) -> bool:  # noqa: ARG002 - as Session's
        """It is safe, or a queue has refused it."""
        if not self.outcome.done():
            self.outcome.set_result(not refused)
        return True


async def publish_by_hand(client: Client, asked: ByHand) -> bool:
    """Whether any queue has it, safe as its durability asks. Raises BrokerError where it is refused."""
    attributes = format_named(asked.format).attributes(asked.properties)
    facts = facts_of(client.virtual_host, asked.exchange, asked.routing_key, asked.format, attributes)
    request = Publish(0, [Kind(facts, attributes, mandatory=True)], [asked.properties], [asked.body], link=_LINK)
    session = _Told(client)
    try:
        async with asyncio.timeout(_PATIENCE):
            if work := publish(session, request):
                await work
            accepted = await session.outcome
    except TimeoutError:
        raise Unavailable("it is not known whether the message was published: nobody confirms it") from None
    finally:
        session.close()
    if session.error:
        raise session.error
    if not accepted:
        raise PreconditionFailed("a queue refuses it: it is full, or gone")
    return session.routed
