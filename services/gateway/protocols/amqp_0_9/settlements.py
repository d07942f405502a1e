"""basic.ack, basic.reject and basic.nack. Those of ascending deliveries in a row become one request."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from services.common.errors import PreconditionFailed
from services.gateway.outcomes import ACCEPTED, FAILED, REJECTED, DeliveryOutcome
from services.gateway.protocols.amqp_0_9 import frames
from services.gateway.protocols.amqp_0_9.channel import Channel
from services.gateway.protocols.amqp_0_9.methods import basic
from services.gateway.protocols.amqp_0_9.peer import PORTION, Peer
from services.gateway.protocols.dealings import Received
from services.gateway.vocabulary import Settle

_FRAME = struct.Struct(">BHIIQH")  # head, class and method id, delivery tag, bits and end octet
_LAYOUT = struct.Struct(">11sQH")  # the same, its constant part unparsed
_PAYLOAD = 13

# (method, its bits) → (multiple, outcome): reject has only requeue, nack multiple and then requeue.
# What is requeued was an attempt, as with RabbitMQ.
_MEANINGS: Mapping[tuple[int, int], tuple[bool, DeliveryOutcome]] = {
    (basic.Ack.code, 0): (False, ACCEPTED),
    (basic.Ack.code, 1): (True, ACCEPTED),
    (basic.Reject.code, 0): (False, REJECTED),
    (basic.Reject.code, 1): (False, FAILED),
    (basic.Nack.code, 0): (False, REJECTED),
    (basic.Nack.code, 1): (True, REJECTED),
    (basic.Nack.code, 2): (False, FAILED),
    (basic.Nack.code, 3): (True, FAILED),
}
CODES = frozenset(code for code, _ in _MEANINGS)


class Settlements:
    """Turns settling methods into ranges."""

    __slots__ = ("_channels", "_peer")  # each connection has one, and most are idle

    def __init__(self, peer: Peer, channels: Mapping[int, Channel]) -> None:
        self._peer = peer
        self._channels = channels

    def add(self, session: int, method: basic.Ack | basic.Reject | basic.Nack) -> None:
        """Raises PreconditionFailed for tag 0 alone, which says nothing (0 with multiple means all)."""
        outcome: DeliveryOutcome
        match method:
            case basic.Ack(tag, multiple):
                outcome = ACCEPTED
            case basic.Nack(tag, multiple, requeue):
                outcome = FAILED if requeue else REJECTED
            case basic.Reject(tag, requeue):
                multiple, outcome = False, FAILED if requeue else REJECTED
        if not tag and not multiple:
            raise PreconditionFailed("unknown delivery tag 0")
        self._append(self._channels[session], 0 if multiple else tag, tag, outcome)

    def read(self, data: Received, position: int) -> int:
        """Takes settling frames from `position` on that are whole and plain; gives where it stopped."""
        end = len(data)
        while end - position >= _FRAME.size:
            kind, number, size, code, tag, bits_and_end = _FRAME.unpack_from(data, position)
            meaning = _MEANINGS.get((code, bits_and_end >> 8))
            channel = self._channels.get(number)
            if meaning is None or channel is None or not channel.takes_methods:
                break
            if (kind, size, bits_and_end & 0xFF) != (frames.METHOD, _PAYLOAD, frames.END) or not tag:
                break
            multiple, outcome = meaning
            if multiple:
                self._append(channel, 0, tag, outcome)
                position += _FRAME.size
            else:
                last, position = _ascend(data, position, end, tag)
                self._append(channel, tag, last, outcome)
            if len(self._peer.requests) >= PORTION:
                break
        return position

    def _append(self, channel: Channel, first: int, last: int, outcome: DeliveryOutcome) -> None:
        requests, session = self._peer.requests, channel.number
        self._peer.part(channel)
        before = requests[-1] if requests else None
        if (
            isinstance(before, Settle)
            and before.session == session
            and before.outcome is outcome
            and before.first
            and before.last + 1 == first
        ):
            before.last = last
        else:
            requests.append(Settle(session, first, last, outcome))


def _ascend(data: Received, position: int, end: int, tag: int) -> tuple[int, int]:
    """The last tag of the frames that are as the one at `position` with tags ascending by one, and what is behind."""
    unpack, size = _LAYOUT.unpack_from, _LAYOUT.size
    head, _, tail = unpack(data, position)
    position += size
    while end - position >= size and unpack(data, position) == (head, tag + 1, tail):
        tag += 1
        position += size
    return tag, position
