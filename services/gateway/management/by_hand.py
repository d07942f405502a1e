"""A message that a client has management write: published as its own, by its permissions, and what becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from services.common.errors import PreconditionFailed, Unavailable
from services.common.message import format_named
from services.common.message.facts import facts_of
from services.gateway.answers import Returned
from services.gateway.operations.publish import publish
from services.gateway.outcomes import Accepted, PublishOutcome
from services.gateway.sessions.publish_ticket import REFUSED
from services.gateway.sessions.session import Session
from services.gateway.vocabulary import Kind, Publish

if TYPE_CHECKING:
    from services.gateway.sessions.client import Client
    from services.rpc.mgmt_pb2 import ByHand

_PATIENCE: Final = 30.0  # seconds
_LINK: Final = 1  # each message has an outcome of its own: no fault ends the session
_FIRST: Final = 1  # its number


class _SessionOfOne(Session):
    """Publishes one message: what else its client would hear of it is kept here."""

    def __init__(self, client: Client) -> None:
        super().__init__(0, client)
        self.routed = True
        self.outcome: asyncio.Future[PublishOutcome] = asyncio.get_running_loop().create_future()

    def send_back(self, returned: Returned) -> None:  # noqa: ARG002 - as Session's
        """It reached no queue."""
        self.routed = False

    def confirm(self, link: int, first: int, indexes: Sequence[int], outcome: PublishOutcome) -> bool:  # noqa: ARG002 - as Session's
        """It is safe, or refused."""
        if not self.outcome.done():
            self.outcome.set_result(outcome)
        return True


async def publish_by_hand(client: Client, asked: ByHand) -> bool:
    """Whether any queue has it, safe as its durability asks. Raises BrokerError where it is refused."""
    attributes = format_named(asked.format).attributes(asked.properties)
    facts = facts_of(client.virtual_host, asked.exchange, asked.routing_key, asked.format, attributes)
    request = Publish(
        0, [Kind(facts, attributes, mandatory=True)], [asked.properties], [asked.body], _FIRST, link=_LINK
    )
    session = _SessionOfOne(client)
    try:
        async with asyncio.timeout(_PATIENCE):
            if work := publish(session, request):
                await work
            outcome = await session.outcome
    except TimeoutError:
        raise Unavailable("it is not known whether the message was published: no queue confirms it") from None
    finally:
        session.close()
    if outcome is REFUSED:
        raise PreconditionFailed("a queue refuses it: it is full, or gone")
    if not isinstance(outcome, Accepted) and outcome.error:
        raise outcome.error
    return session.routed
