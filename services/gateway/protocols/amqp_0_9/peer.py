"""What one connection's parts share: what was agreed with the peer, and what waits to go either way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from services.gateway.protocols.amqp_0_9 import frames
from services.gateway.protocols.amqp_0_9.channel import Channel
from services.gateway.protocols.amqp_0_9.compression import Recode
from services.gateway.protocols.amqp_0_9.limits import Amqp09Limits
from services.gateway.protocols.amqp_0_9.method import Method
from services.gateway.protocols.amqp_0_9.outgoing import content
from services.gateway.protocols.amqp_0_9.version import Version
from services.gateway.protocols.dealings import Dealings
from services.gateway.vocabulary import Publish, Request

# Section 4.2.3 promises 4096 until tuned; tokens in start-ok may be longer, and RabbitMQ reads 8192.
_FRAME_MAX_UNTIL_TUNED = 8192

PORTION: Final = 50
"""Requests, after which others have their turn; what a channel publishes is one."""


_NONE: Final[dict[Channel, Publish]] = {}  # while nothing is published: most connections are idle


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
    publishes: dict[Channel, Publish] = field(
        default_factory=lambda: _NONE
    )  # requests to which more may be added, by channel

    def ask(self, request: Request) -> None:
        """As Dealings says; what is published from now on comes behind it."""
        if self.publishes is not _NONE:
            self._part_all()
        self.requests.append(request)

    def publish(self, channel: Channel, request: Publish) -> None:
        """Puts a request behind the others, to which more may be added."""
        self.publishes = self.publishes or {}
        self.publishes[channel] = request
        self.requests.append(request)

    def part(self, channel: Channel) -> None:
        """What the channel publishes from now on has another request."""
        if request := self.publishes.pop(channel, None):
            _count(channel, request)

    def _part_all(self) -> None:
        for channel, request in self.publishes.items():
            _count(channel, request)
        self.publishes = _NONE

    def take_requests(self) -> list[Request]:
        """As Dealings says; they stay as they are."""
        if self.publishes is not _NONE:
            self._part_all()
        taken, self.requests = self.requests, []
        return taken

    def send(self, channel: int, method: Method) -> None:
        """Puts a method frame behind what is to be written."""
        self.out.append(frames.frame(frames.METHOD, channel, self.version.encode(method)))

    def send_content(self, channel: int, method: Method, properties: bytes, body: bytes) -> None:
        """A method frame, and the content that belongs to it, as the peer can take it."""
        if self.recode:
            [properties], [body] = self.recode([properties], [body])
        self.out.append(content(channel, method, properties, body, self.frame_max))


def _count(channel: Channel, request: Publish) -> None:
    """Its publishes have their numbers, if there were any to give when the first came."""
    if channel.confirms and request.first:
        channel.confirms.next = request.first + len(request.bodies)
