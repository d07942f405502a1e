"""How many transfers a session may send either way (part 2, section 2.5.6)."""

from __future__ import annotations

from typing import Final

from services.gateway.protocols.amqp_1_0.conditions import WindowViolation
from services.gateway.protocols.amqp_1_0.performatives import Begin, Flow
from services.gateway.protocols.amqp_1_0.serial import after, distance

INCOMING: Final = 2048
"""Frames of transfers that a peer may send before it hears of us: it does when half of them have come."""
OUTGOING: Final = (1 << 31) - 1
HANDLE_MAX: Final = 1023
"""Of links that a session may have."""


class Windows:
    """Of one session. `room`: how many frames of transfers the peer takes now."""

    def __init__(self, its: Begin) -> None:
        self._next_incoming = its.next_outgoing_id
        self._incoming = INCOMING
        self._next_outgoing = 0
        self.room = its.incoming_window
        self.handles = range(min(HANDLE_MAX, its.handle_max) + 1)  # that we may use: the peer has its own limit

    def begin(self, channel: int) -> Begin:
        """The answer to the peer's."""
        return Begin(channel, self._next_outgoing, self._incoming, OUTGOING, HANDLE_MAX)

    def flow(self, **link: int | bool | None) -> Flow:
        """What the peer may send, and has been sent; `link` is what a link's flow says besides."""
        return Flow(self._next_incoming, self._incoming, self._next_outgoing, OUTGOING, **link)  # type: ignore[arg-type]

    def received(self) -> None:
        """A frame of a transfer. Raises WindowViolation for one that there was no room for."""
        if not self._incoming:
            raise WindowViolation(f"more than {INCOMING} transfers without a flow")
        self._next_incoming = after(self._next_incoming, 1)
        self._incoming -= 1

    def renew(self) -> bool:
        """Gives the whole window again, and whether it is time to say so."""
        if self._incoming > INCOMING // 2:
            return False
        self._incoming = INCOMING
        return True

    def sent(self, count: int) -> None:
        """So many frames of transfers."""
        self._next_outgoing = after(self._next_outgoing, count)
        self.room -= count

    def told(self, flow: Flow) -> None:
        """What the peer has room for, from the first that it has not seen. Before it has seen our begin, that is 0."""
        first = flow.next_incoming_id or 0
        self.room = max(flow.incoming_window - distance(first, self._next_outgoing), 0)
