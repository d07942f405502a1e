"""Follows events: for bridges, mgmt, `hopline events`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import NamedTuple

from nats.aio.client import Client
from nats.errors import Error

from services.common.bus.address import token_for
from services.common.bus.event import Event
from services.common.bus.facts import Gap
from services.common.bus.nats_link import close
from services.common.bus.subject import ALL
from services.common.errors import Unavailable
from services.common.runtime import within

_CONNECT_SECONDS = 2.0
_AGAIN_SECONDS = 0.5


class BusMessage(NamedTuple):
    """One message of the bus."""

    subject: str
    payload: bytes


async def follow(address: str, subject: str = ALL) -> AsyncGenerator[BusMessage, None]:
    """Events from now on; reconnects for ever. Raises Unavailable when NATS cannot be reached at first."""
    client = Client()
    try:
        connecting = client.connect(
            address,
            name="follower",
            token=token_for(address),
            max_reconnect_attempts=-1,
            reconnect_time_wait=_AGAIN_SECONDS,  # type: ignore[arg-type]  # it is only slept
            error_cb=_ignore,
        )
        await within(_CONNECT_SECONDS, connecting)
        subscription = await client.subscribe(subject)
        async for message in subscription.messages:
            yield BusMessage(message.subject, message.data)
    except (Error, OSError, ValueError) as failure:
        raise Unavailable(f"{address}: {str(failure) or 'timeout'}") from failure
    finally:
        await close(client)


class Sequences:
    """Notices events that did not arrive, reported or not. Only of use to a follower of all subjects."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def missing_before(self, event: Event) -> int:
        """How many events of the same instance are missing between its last one and this."""
        if isinstance(event.facts, Gap):
            return 0
        expected = self._next.get(event.instance, event.sequence)
        self._next[event.instance] = event.sequence + 1
        return max(event.sequence - expected, 0)


async def _ignore(_failure: Exception) -> None:
    """Does nothing: the client reconnects by itself, and would log each attempt."""
