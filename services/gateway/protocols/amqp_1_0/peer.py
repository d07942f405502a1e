"""What one connection's parts share: what was agreed with the peer, and what waits to go either way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from services.common.errors import BrokerError
from services.common.memo import Memo
from services.common.message.amqp_1_0.composite import Composite, write
from services.common.message.facts import Attributes
from services.gateway.protocols.amqp_1_0 import frames
from services.gateway.protocols.amqp_1_0.limits import Amqp10Limits
from services.gateway.protocols.dealings import Dealings
from services.gateway.vocabulary import Kind, Request

if TYPE_CHECKING:
    from services.gateway.protocols.amqp_1_0.link import Link

PORTION: Final = 50
"""Requests, after which others have their turn; transfers that lie together on a link are one."""

KindKey: TypeAlias = tuple[Attributes, str, str]  # what a message says, its exchange, its routing key
_KINDS: Final = 8192  # that a connection remembers of what it sends …
_KIND_BYTES: Final = 512 << 10  # … and of their names


class Asked(NamedTuple):
    """A request that waits for the broker, held so that its identity stays its own; what becomes of its answer, and for
    `whom`.
    """

    request: Request
    whom: object
    done: Callable[[Any], None]
    failed: Callable[[BrokerError], None]


@dataclass(slots=True)
class Peer(Dealings):
    """`limits` are ours; `max_frame_size` is the peer's, `channel_max` what was agreed."""

    limits: Amqp10Limits
    mechanisms: Sequence[str]
    max_frame_size: int = frames.MIN_MAX_FRAME_SIZE
    channel_max: int = 0
    virtual_host: str = ""  # that was asked for
    container: str = ""  # the peer's
    asked: dict[int, Asked] = field(default_factory=dict)
    blocked: bool = False  # no credit is given …
    since: int = 0  # … and so many bytes of messages came since
    links: dict[tuple[bool, str], Link] = field(default_factory=dict)  # of all sessions, by role and name
    behind: dict[Link, Link] = field(default_factory=dict)  # that begin when these have ended
    numbers: Iterator[int] = field(default_factory=lambda: count(1))  # of links: what one asked is never another's
    kinds: Memo[KindKey, Kind] = field(default_factory=lambda: Memo(_KINDS, _KIND_BYTES))

    def send(self, channel: int, performative: Composite) -> None:
        """Puts a frame behind what is to be written."""
        self.out.append(frames.frame(frames.AMQP, channel, write(performative)))

    def ask_for(
        self,
        request: Request,
        done: Callable[[Any], None],
        failed: Callable[[BrokerError], None],
        whom: object = None,
    ) -> None:
        """Asks, and goes on by one of the two when the broker has answered."""
        self.asked[id(request)] = Asked(request, whom, done, failed)
        self.ask(request)

    def forget(self, whom: object) -> None:
        """Goes on with nothing that was asked for this one; most of it is not answered any more."""
        self.asked = {identity: asked for identity, asked in self.asked.items() if asked.whom is not whom}

    def forget_link(self, link: Link) -> None:
        """Its name is no link's, unless it is another one's by now."""
        if self.links.get(link.identity) is link:
            del self.links[link.identity]

    def answered(self, request: Request) -> Asked | None:
        """What waits for the answer of a request, if anything."""
        return self.asked.pop(id(request), None)
