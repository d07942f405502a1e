"""One channel, and the content that is arriving on it (section 4.2.6)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

from services.common.errors import PreconditionFailed, SyntaxFault
from services.common.identity_enum import IdentityEnum
from services.common.message.amqp_0_9 import FORMAT
from services.common.message.facts import Attributes
from services.gateway.protocols.amqp_0_9.confirms import Confirms
from services.gateway.protocols.amqp_0_9.gathered import Gathered
from services.gateway.protocols.amqp_0_9.reply_codes import UnexpectedFrame
from services.gateway.protocols.dealings import Received


class Target(NamedTuple):
    """What a basic.publish says."""

    exchange: str
    routing_key: str
    mandatory: bool
    immediate: bool


_HEADER = struct.Struct(">IQ")
_PIECE = 64  # bytes of memory that some bytes take besides themselves: frames may be as small as their peer likes
BASIC_WITHOUT_WEIGHT = 60 << 16  # class id and weight, which must be zero


class ChannelState(IdentityEnum):
    """Of a channel number."""

    ABSENT = "absent"
    OPENING = "opening"  # for the client's methods the same as open: it need not wait for open-ok
    OPEN = "open"
    ENDING = "ending"  # the client closed it, and what it asked for before is still being done
    REFUSED = "refused"  # we close it when what was asked before is answered: something that was sent is at fault
    CROSSED = "crossed"  # as ending, and then we closed it too, because something of that failed
    CLOSING = "closing"  # we closed it: everything but close and close-ok is ignored


@dataclass(slots=True)
class Content:
    """A publish whose content is not complete yet."""

    target: Target
    attributes: Attributes | None = None  # None until the content header came
    properties: bytes = b""
    missing: int = 0
    body: Gathered | None = None
    weight: int = 0  # bytes of memory that what has come takes, about

    def add_header(self, payload: bytes, max_size: int) -> None:
        """Raises UnexpectedFrame, SyntaxFault, PreconditionFailed."""
        if self.attributes is not None:
            raise UnexpectedFrame("a second content header")
        if len(payload) < _HEADER.size:
            raise SyntaxFault("the content header ends early")
        class_and_weight, self.missing = _HEADER.unpack_from(payload)
        if class_and_weight != BASIC_WITHOUT_WEIGHT:
            raise UnexpectedFrame(f"expected a content header of class 60, got {class_and_weight:#010x}")
        if self.missing > max_size:
            raise PreconditionFailed(f"message size {self.missing} is larger than configured max size {max_size}")
        self.properties = payload[_HEADER.size :]
        self.attributes = FORMAT.attributes(self.properties)
        self.body = Gathered(self.missing)
        self.weight = len(payload) + _PIECE

    def add_body(self, payload: Received) -> None:
        """Raises UnexpectedFrame."""
        if self.body is None:
            raise UnexpectedFrame("a content body where its header is expected")
        if len(payload) > self.missing:
            raise UnexpectedFrame(f"{len(payload)} bytes of content body where {self.missing} are missing")
        self.missing -= len(payload)
        self.body.add(payload)
        self.weight += len(payload) + _PIECE


class Channel:
    """A channel from channel.open to its end; its number may be opened again, as another one."""

    __slots__ = ("cancelled", "confirms", "content", "number", "opened", "state")

    def __init__(self, number: int) -> None:
        self.number = number
        self.state = ChannelState.OPENING
        self.opened = False  # the broker has answered: what it says of the number is of this channel
        self.content: Content | None = None
        self.confirms: Confirms | None = None  # from confirm.select on
        self.cancelled: list[str] = []  # tags of consumers whose end the client hears after delete-ok

    def select_confirms(self) -> None:
        """Numbers publishes from now on; a second call changes nothing. Whether it may, the broker says in its turn."""
        self.confirms = self.confirms or Confirms()

    @property
    def takes_methods(self) -> bool:
        """Whether a method may come next that the broker will hear of."""
        return self.content is None and self.state in (ChannelState.OPENING, ChannelState.OPEN)
