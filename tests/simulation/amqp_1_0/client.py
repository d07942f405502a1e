"""A client of AMQP 1.0: what `channel` names in its steps are sessions."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from tests.simulation.amqp_1_0.session import Session
from tests.simulation.amqp_1_0.wire import Wire
from tests.simulation.client import Client
from tests.simulation.history import Connected
from tests.simulation.line import GoneError
from tests.simulation.plan import Step


class LinkClient(Client):
    """`frame` is how long a frame may be that it is sent."""

    def __init__(self, *args: Any, frame: int = 1 << 16) -> None:
        super().__init__(*args)
        self.given_back: set[tuple[str, str, int]] = set()
        """What it has given back once, by consumer, message and deaths: the next time it takes it."""
        self._frame = frame

    async def session(self, step: Step) -> Session:
        """As Client.channel."""
        session: Session = await self.channel(step)  # type: ignore[assignment]
        return session

    def _wire(self, connected: Connected) -> Any:
        return Wire(self.history, connected, self._frame)

    async def _open(self, wire: Any, step: Step) -> Any:
        return await wire.session(second=step.get("second", False), window=step.get("window", 1000))

    async def finish(self, drain: Callable[[Any, str], Awaitable[None]]) -> None:
        """Ends its links, which waits for what they have sent, before it says goodbye."""
        for session in self.channels.values():
            for link in list(session.links.values()):
                self.doing = f"ending its link {link.name}"
                with contextlib.suppress(GoneError):
                    await link.part()
        await super().finish(drain)
