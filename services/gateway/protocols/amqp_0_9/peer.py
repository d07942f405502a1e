"""What one connection's parts share: what was agreed with the peer, and what waits to go either way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from services.gateway.protocols.amqp_0_9 import frames
from services.gateway.protocols.amqp_0_9.compression import Recode
from services.gateway.protocols.amqp_0_9.limits import Amqp09Limits
from services.gateway.protocols.amqp_0_9.method import Method
from services.gateway.protocols.amqp_0_9.outgoing import content
from services.gateway.protocols.amqp_0_9.version import Version
from services.gateway.protocols.dealings import Dealings

# Section 4.2.3 promises 4096 until tuned; tokens in start-ok may be longer, and RabbitMQ reads 8192.
_FRAME_MAX_UNTIL_TUNED = 8192

PORTION: Final = 50
"""Requests, after which others have their turn; publishes that lie together on a channel are one."""


@dataclass(slots=True)
class Peer(Dealings):
    """`version` is that of the peer's header, the newest until that came; `limits` are what we proposed; `frame_max`
    and `channel_max` what was agreed.
    """

    version: Version
    limits: Amqp09Limits
    mechanisms: Sequence[str]
    frame_max: int = _FRAME_MAX_UNTIL_TUNED
    channel_max: int = 0
    virtual_host: str = ""  # that was asked for
    capabilities: frozenset[str] = frozenset()
    recode: Recode | None = None  # what is done with messages for the peer

    def send(self, channel: int, method: Method) -> None:
        """Puts a method frame behind what is to be written."""
        self.out.append(frames.frame(frames.METHOD, channel, self.version.encode(method)))

    def send_content(self, channel: int, method: Method, properties: bytes, body: bytes) -> None:
        """A method frame, and the content that belongs to it, as the peer can take it."""
        if self.recode:
            [properties], [body] = self.recode([properties], [body])
        self.out.append(content(channel, method, properties, body, self.frame_max))
