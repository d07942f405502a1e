"""basic.publish with its content, the hot way in.

Publishers send the same method and header frames again and again, one after the other or in turns with others, on one
channel or on several: so bytes → recognised value is one look-up. A `_Shape` is everything in front of a body; while
the stream goes on with shapes that are known nothing but bodies is cut out of it. Whatever does not look like
[method][header][one body], whole and in one piece, is left to the engine's general way.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, TypeVar

from services.common.errors import BrokerError
from services.common.memo import Memo
from services.common.message.amqp_0_9 import FORMAT, NAME
from services.common.message.bounds import LITTLE
from services.common.message.facts import Attributes, facts_of
from services.gateway.protocols.amqp_0_9 import frames
from services.gateway.protocols.amqp_0_9.batches import MOST, Columns, apart, batch_of, takes, taking
from services.gateway.protocols.amqp_0_9.channel import BASIC_WITHOUT_WEIGHT, Channel, Target
from services.gateway.protocols.amqp_0_9.method import decode
from services.gateway.protocols.amqp_0_9.methods import basic
from services.gateway.protocols.amqp_0_9.peer import Peer
from services.gateway.protocols.amqp_0_9.varied import Varied
from services.gateway.protocols.dealings import LARGE, Received
from services.gateway.protocols.stream_engine import MOST_EFFORT
from services.gateway.vocabulary import Kind

_SIZE = struct.Struct(">I")
_SIZE_AT = 3  # in a frame's head
_METHOD_HEAD = struct.Struct(">BHII")  # frame head, class and method id
_HEADER_HEAD = struct.Struct(">BBHIIQ")  # end of the frame before, frame head, class and weight, body size
_BODY_HEAD = struct.Struct(">BBHI")  # end of the frame before, frame head
_REMEMBERED = 8192
_TARGET_BYTES = 512 << 10  # of all that are remembered; usual ones have 64 and less
_SHAPE_BYTES = 1 << 20  # likewise
_LONGEST = 512  # bytes of a shape that may come again
_EXCHANGE_AT = 6  # in a basic.publish: behind class and method id, and a reserved short
_KIND_BYTES = 512 << 10  # of names, likewise
_SEVERAL = 2  # publishes that had to be recognised: the next ones may have to be as well
_MOST_TO_LEARN = 512
_SEEN_BYTES = 128 << 10  # likewise
_MICROSECONDS = 2  # of a value of headers that was walked over

# Publishes that are alike in everything but the bytes of their bodies: what stands in front of a body, the body's size,
# channel, kind, properties. A bare tuple: a varied stream makes many.
_Shape = tuple[bytes, int, Channel, Kind, bytes]
_Octets = TypeVar("_Octets", bytes, memoryview)

_NOTHING: Final[Columns] = [], [], []  # before the first channel's


class Publications:
    """Turns publishes into requests; see `batches`."""

    def __init__(self, peer: Peer, channels: Mapping[int, Channel]) -> None:
        self._peer = peer
        self._channels = channels
        self._targets: Memo[bytes, Target] = Memo(_REMEMBERED, _TARGET_BYTES)
        self._shapes: Memo[bytes, _Shape] = Memo(_REMEMBERED, _SHAPE_BYTES)
        self._kinds: Memo[tuple[Target, Attributes], Kind] = Memo(_REMEMBERED, _KIND_BYTES)
        # Both from when they are of use: most connections are idle.
        self._varied: Varied | None = None
        self._seen: Memo[bytes, bool] | None = None  # what stood in front of bodies once
        self._recognised = 0  # publishes
        self._repetitive = False  # those that were read in columns last
        self._to_learn = _MOST_TO_LEARN  # shapes, before those that were learnt come again
        self._properties = b""  # that were read last

    def target_of(self, payload: bytes) -> Target:
        """Of the payload of a basic.publish; equal ones are mostly the same object. Raises SyntaxFault."""
        target = self._targets.get(payload) or self._targets.recall(payload)
        if target is None:
            target = _plain(payload) or _decoded(payload)
            self._targets.put(payload, target, len(payload))
        return target

    def kind_of(self, target: Target, attributes: Attributes) -> Kind:
        """What the broker hears of such a publish; equal ones are mostly the same object."""
        kind = self._known_kind(target, attributes)
        if kind is None:
            exchange, routing_key, mandatory, immediate = target
            facts = facts_of(self._peer.virtual_host, exchange, routing_key, NAME, attributes)
            kind = Kind(facts, attributes, mandatory, immediate)
            self._kinds.put(
                (target, attributes), kind, len(exchange) + len(routing_key) + len(attributes.user_id or "")
            )
        return kind

    def _known_kind(self, target: Target, attributes: Attributes) -> Kind | None:
        key = target, attributes
        return self._kinds.get(key) or self._kinds.recall(key)

    def add(self, channel: Channel, target: Target, attributes: Attributes, properties: bytes, body: bytes) -> None:
        """One message that came whole."""
        kinds, its_properties, bodies = batch_of(self._peer, channel)
        kinds.append(self.kind_of(target, attributes))
        its_properties.append(self._one(properties))
        bodies.append(body)

    def _one(self, properties: bytes) -> bytes:
        """Equal properties in a row as one object, so that their column is seen to be alike."""
        if properties == self._properties:
            return self._properties
        if len(properties) <= _LONGEST:
            self._properties = properties
        return properties

    def _as_one(self, properties: list[bytes]) -> list[bytes]:
        """As `_one`, of several messages."""
        first, count = properties[0], len(properties)
        return (
            [self._one(first)] * count if properties[-1] == first and properties.count(first) == count else properties
        )

    def read(self, data: Received, position: int) -> int:
        """Takes publishes from `position` on for as long as they are whole and plain; gives where it stopped."""
        walked = FORMAT.walked
        most = walked + MOST_EFFORT // _MICROSECONDS
        if isinstance(data, memoryview):
            position = self._read_lent(data, position, most)
        else:
            position = self._read(data, position, most)
        self._peer.effort += (FORMAT.walked - walked) * _MICROSECONDS
        return position

    def _read(self, data: bytes, position: int, most: int) -> int:
        """The same, until so much was walked over."""
        end = len(data)
        while len(self._peer.requests) < MOST and FORMAT.walked < most:
            prefix = _in_front(data, position)
            shape = self._shapes.get(prefix) or self._shapes.recall(prefix)
            if shape is None:
                varied = self._varied
                again = len(prefix) <= _LONGEST and self._comes_again(prefix)
                if varied and not again and (after := self._take_varied(varied, data, position, end)) > position:
                    position = after
                    continue
                shape = self._recognise(data, position, end, again=again)
            elif self._channels.get(shape[2].number) is not shape[2]:
                self._shapes.clear()  # of a channel that had the number before, and takes nothing more
                continue
            if shape is None:
                break
            taken = self._take(shape, data, position, end)
            if taken == position:
                break
            position = taken
        return position

    def _read_lent(self, data: memoryview, position: int, most: int) -> int:
        """The same of a read of large messages: each body is copied once, out of what was lent."""
        end, peer = len(data), self._peer
        while len(peer.requests) < MOST and FORMAT.walked < most:
            shape = self._shape_at(data, position, end)
            if shape is None or not (_is_whole(shape, data, position, end) and takes(peer, shape[2])):
                break
            prefix, size, channel, kind, properties = shape
            if size < LARGE:  # the rest is read in memory of its own, as others' is
                peer.effort = max(peer.effort, MOST_EFFORT)
                break
            self._to_learn = min(self._to_learn + 1, _MOST_TO_LEARN)
            body = position + len(prefix)
            position = body + size + 1
            kinds, its_properties, bodies = batch_of(peer, channel)
            kinds.append(kind)
            its_properties.append(properties)
            bodies.append(bytes(data[body : position - 1]))
        return position

    def _shape_at(self, data: memoryview, position: int, end: int) -> _Shape | None:
        """The shape of the publish at `position`, known or recognised."""
        prefix = bytes(_in_front(data, position))
        shape = self._shapes.get(prefix) or self._shapes.recall(prefix)
        if shape and self._channels.get(shape[2].number) is not shape[2]:
            self._shapes.clear()  # as above
            shape = None
        if shape is None:
            again = len(prefix) <= _LONGEST and self._comes_again(prefix)
            shape = self._recognise(data, position, end, again=again)
        return shape

    def _comes_again(self, prefix: bytes) -> bool:
        """Whether what stands in front of a body did before, or will in all likelihood."""
        if self._repetitive and self._to_learn > 0:
            return True
        seen = self._seen
        if seen is None:
            seen = self._seen = Memo(_REMEMBERED // 4, _SEEN_BYTES)
        if prefix in seen or seen.recall(prefix):
            return True
        seen.put(prefix, True, len(prefix))
        return False

    def _take(self, shape: _Shape, data: bytes, position: int, end: int) -> int:
        """All of known shapes that lie together, `shape` the first; no request begins without a message."""
        peer, last, turns = self._peer, frames.END, 0
        channel: Channel | None = None
        kinds, properties, bodies = _NOTHING
        found: _Shape | None = shape
        while found is not None:
            prefix, size, its_channel, kind, its_properties = found
            if its_channel is not channel:
                if not (_is_whole(found, data, position, end) and takes(peer, its_channel)):
                    break
                channel = its_channel
                kinds, properties, bodies = batch_of(peer, channel)
            head, before, turns = len(prefix), len(bodies), turns + 1
            whole, found = head + size + 1, None
            while (after := position + whole) <= end and data[after - 1] == last:
                bodies.append(data[position + head : after - 1])
                position = after
                if not data.startswith(prefix, position):
                    found = self._known(data, position, head)
                    break
            if (count := len(bodies) - before) == 1:
                kinds.append(kind)
                properties.append(its_properties)
            else:
                kinds += [kind] * count
                properties += [its_properties] * count
        self._to_learn = min(self._to_learn + turns, _MOST_TO_LEARN)
        return position

    def _known(self, data: bytes, position: int, size: int) -> _Shape | None:
        """The shape of the publish there; most have as many octets in front of their bodies as the one before."""
        found = self._shapes.get(data[position : position + size])
        if found is None:
            prefix = _in_front(data, position)
            found = self._shapes.get(prefix) or self._shapes.recall(prefix)
        return found

    def _take_varied(self, varied: Varied, data: bytes, position: int, end: int) -> int:
        """All that lie together and are of forms that came; gives where it stopped."""
        channels, columns, after = varied.take(taking(self._peer), data, position, end)
        if after > position:
            kinds, properties, _ = columns
            self._repetitive = _are_few(list(map(id, kinds))) and _are_few(properties)
            for channel, (its_kinds, its_properties, its_bodies) in apart(channels, columns):
                kinds, properties, bodies = batch_of(self._peer, channel)
                kinds += its_kinds
                properties += self._as_one(its_properties)
                bodies += its_bodies
        return after

    def _recognise(self, data: Received, position: int, end: int, *, again: bool) -> _Shape | None:
        """The shape of the publish at `position`; None when there is none, or not a plain and whole one.

        Remembered when it came `again`: most of what comes for the first time never comes again.
        """
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
            or header_size > LITTLE  # the general way counts what it takes to look into it
            or body + 9 + body_size > end
            or _BODY_HEAD.unpack_from(data, body) != (frames.END, frames.BODY, number, body_size)
            or data[body + 8 + body_size] != frames.END
        ):
            return None
        shape = self._shape(bytes(data[position : body + 8]), body_size, channel, method_end - position, header_size)
        if again and shape:
            self._shapes.put(shape[0], shape, len(shape[0]))
            self._to_learn -= 1
        return shape

    def _shape(self, prefix: bytes, size: int, channel: Channel, method_end: int, header_size: int) -> _Shape | None:
        payload = prefix[7:method_end]
        properties = self._one(prefix[method_end + _HEADER_HEAD.size : method_end + 8 + header_size])
        try:
            target, attributes = self.target_of(payload), FORMAT.attributes(properties)
        except BrokerError:
            return None  # the general way finds the same, and answers
        self._came(prefix, channel, target)
        return prefix, size, channel, self.kind_of(target, attributes), properties

    def _came(self, prefix: bytes, channel: Channel, target: Target) -> None:
        """A publish was recognised. Where there are several, more come that differ in what is in front of a body."""
        self._recognised += 1
        if self._recognised == _SEVERAL:
            self._varied = Varied(self._peer, self.kind_of, self._known_kind)
        if self._varied:
            self._varied.came(prefix, channel, target)


def _are_few(column: Sequence[Hashable]) -> bool:
    """Whether most values come more than once."""
    return 2 * len(set(column)) <= len(column)


def _is_whole(shape: _Shape, data: Received, position: int, end: int) -> bool:
    after = position + len(shape[0]) + shape[1]
    return after < end and data[after] == frames.END


def _plain(payload: bytes) -> Target | None:
    """The hot way to what `_decoded` gives; None for what is not as it should be."""
    try:
        key = _EXCHANGE_AT + 1 + payload[_EXCHANGE_AT]
        flags = key + 1 + payload[key]
        exchange, routing_key = payload[_EXCHANGE_AT + 1 : key].decode(), payload[key + 1 : flags].decode()
        bits = payload[flags]
    except (IndexError, UnicodeDecodeError):
        return None
    return Target(exchange, routing_key, bits & 1 > 0, bits & 2 > 0) if flags + 1 == len(payload) else None


def _decoded(payload: bytes) -> Target:
    method = decode(basic.Publish, payload)
    return Target(method.exchange, method.routing_key, method.mandatory, method.immediate)


def _in_front(data: _Octets, position: int) -> _Octets:
    """Everything up to the head of a body frame, if there is a publish at `position`; else some bytes or other."""
    try:
        header = position + 8 + _SIZE.unpack_from(data, position + _SIZE_AT)[0]
        body = header + 8 + _SIZE.unpack_from(data, header + _SIZE_AT)[0]
    except struct.error:
        return data[:0]
    return data[position : body + 7]
