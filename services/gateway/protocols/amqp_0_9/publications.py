"""basic.publish with its content, the hot way in.

A publisher sends the same method frame and often the same header frame thousands of times in a row, so bytes →
recognised value is one comparison: a `_Shape` is everything in front of a body, and while the stream goes on with the
same bytes nothing but bodies is cut out of it. Whatever does not look like [method][header][one body], whole and
in one piece, is left to the engine's general way.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from services.common.errors import BrokerError
from services.common.memo import Memo
from services.common.message import Attributes
from services.common.message.amqp_0_9 import FORMAT, NAME
from services.gateway.protocols.amqp_0_9 import frames
from services.gateway.protocols.amqp_0_9.channel import BASIC_WITHOUT_WEIGHT, Channel, Target
from services.gateway.protocols.amqp_0_9.method import decode
from services.gateway.protocols.amqp_0_9.methods import basic
from services.gateway.protocols.amqp_0_9.peer import Peer
from services.gateway.vocabulary import Publish

_METHOD_HEAD = struct.Struct(">BHII")  # frame head, class and method id
_HEADER_HEAD = struct.Struct(">BBHIIQ")  # end of the frame before, frame head, class and weight, body size
_BODY_HEAD = struct.Struct(">BBHI")  # end of the frame before, frame head
_TARGETS = 4096
_TARGET_BYTES = 256 << 10  # of all that are remembered; usual ones have 64 and less


# Publishes that are alike in everything but the bytes of their bodies: everything from the method frame to the head of
# the body frame, the body's size, channel, target, attributes, properties. A bare tuple: a varied stream makes many.
_Shape = tuple[bytes, int, Channel, Target, Attributes, bytes]


class Publications:
    """Turns publishes into runs."""

    def __init__(self, peer: Peer, channels: Mapping[int, Channel]) -> None:
        self._peer = peer
        self._channels = channels
        self._targets: Memo[bytes, Target] = Memo(_TARGETS, _TARGET_BYTES)
        self._shape: _Shape | None = None
        self._run: Publish | None = None
        self._run_target: Target | None = None

    def target_of(self, payload: bytes) -> Target:
        """Of the payload of a basic.publish; equal ones are the same object. Raises SyntaxFault."""
        target = self._targets.get(payload)
        if target is None:
            method = decode(basic.Publish, payload)
            target = (method.exchange, method.routing_key, method.mandatory, method.immediate)
            self._targets.put(payload, target, len(payload))
        return target

    def add(
        self, session: int, target: Target, attributes: Attributes, properties: list[bytes], bodies: list[bytes]
    ) -> None:
        """Appends to the last request when that is a run of the same kind, else begins one."""
        requests, run = self._peer.requests, self._run
        if (
            run is not None
            and self._run_target is target
            and run.attributes is attributes
            and run.session == session
            and requests
            and requests[-1] is run
        ):
            run.properties += properties
            run.bodies += bodies
            return
        exchange, routing_key, mandatory, immediate = target
        self._run_target = target
        self._run = Publish(session, exchange, routing_key, mandatory, immediate, NAME, attributes, properties, bodies)
        requests.append(self._run)

    def read(self, data: bytes, position: int) -> int:
        """Takes publishes from `position` on for as long as they are whole and plain; gives where it stopped."""
        end = len(data)
        shape = self._shape
        if shape is None or not self._still_fits(shape[2]) or not data.startswith(shape[0], position):
            shape = self._recognise(data, position, end)
        while shape is not None:
            self._shape = shape
            position = self._take(shape, data, position, end)
            shape = self._recognise(data, position, end)
        return position

    def _still_fits(self, channel: Channel) -> bool:
        return channel.takes_methods and self._channels.get(channel.number) is channel

    def _take(self, shape: _Shape, data: bytes, position: int, end: int) -> int:
        prefix, size, channel, target, attributes, properties = shape
        head = len(prefix)
        rest = size + 1
        bodies: list[bytes] = []
        while data.startswith(prefix, position):
            start = position + head
            after = start + rest
            if after > end or data[after - 1] != frames.END:
                break
            bodies.append(data[start : after - 1])
            position = after
        if bodies:
            self.add(channel.number, target, attributes, [properties] * len(bodies), bodies)
        return position

    def _recognise(self, data: bytes, position: int, end: int) -> _Shape | None:
        """The shape of the publish at `position`; None when there is none, or not a plain and whole one."""
        if end - position < _METHOD_HEAD.size:
            return None
        kind, number, size, code = _METHOD_HEAD.unpack_from(data, position)
        method_end = position + 7 + size
        channel = self._channels.get(number)
        if code != basic.Publish.code or kind != frames.METHOD or channel is None or not channel.takes_methods:
            return None
        if method_end + _HEADER_HEAD.size > end:
            return None
        end_octet, kind, its_number, header_size, ids, body_size = _HEADER_HEAD.unpack_from(data, method_end)
        body = method_end + 8 + header_size
        largest = self._peer.frame_max - frames.OVERHEAD
        if (
            end_octet != frames.END
            or kind != frames.HEADER
            or its_number != number
            or ids != BASIC_WITHOUT_WEIGHT
            or not 0 < body_size <= self._peer.limits.max_message_size
            or max(size, header_size, body_size) > largest
            or body + 9 + body_size > end
            or _BODY_HEAD.unpack_from(data, body) != (frames.END, frames.BODY, number, body_size)
            or data[body + 8 + body_size] != frames.END
        ):
            return None
        method, properties = data[position + 7 : method_end], data[method_end + _HEADER_HEAD.size : body]
        try:
            target, attributes = self.target_of(method), FORMAT.attributes(properties)
        except BrokerError:
            return None  # the general way finds the same, and answers
        return data[position : body + 8], body_size, channel, target, attributes, properties
