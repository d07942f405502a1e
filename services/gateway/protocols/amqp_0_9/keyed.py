"""Publishes that differ from one another in their routing keys, and in the bytes of their bodies: looked through flat.

A device, an order has a key of its own, which may never come again. What stands around the key is the same bytes in all
of them, and is compared instead of read; a key that does come again is found by its bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, cast

from services.common.memo import Memo
from services.common.message.amqp_0_9 import NAME
from services.common.message.facts import KEY, Attributes, Facts, facts_of
from services.common.recent import Recent
from services.gateway.protocols.amqp_0_9 import frames
from services.gateway.protocols.amqp_0_9.channel import Channel, Target
from services.gateway.vocabulary import Kind

Columns = tuple[list[Kind], list[bytes], list[bytes]]
"""Of a request: kinds, properties, bodies."""

_SIZE: Final = struct.Struct(">I")
_SIZE_AT: Final = 3  # in a frame's head
_HEAD: Final = 7
_EXCHANGE_AT: Final = 6  # in a basic.publish: behind class and method id, and a reserved short
_REMEMBERED: Final = 8192
_BYTES: Final = 512 << 10  # of keys that are remembered
_SEEN: Final = Recent()  # keys of this process


class Form(NamedTuple):
    """What publishes have in common but for their keys: octets up to the key's length, and behind the key."""

    channel: Channel
    head: bytes  # up to the method frame's size
    size: int  # of the method frame without a key
    front: bytes  # from there on, up to the key's length
    behind: bytes  # up to the body
    body: int  # its size
    target: Target
    attributes: Attributes
    properties: bytes
    first: tuple[object, ...]  # facts before the key …
    rest: tuple[object, ...]  # … and behind it


def form_of(
    prefix: bytes, size: int, channel: Channel, target: Target, attributes: Attributes, properties: bytes, host: str
) -> Form:
    """Of a publish: `prefix` is what stands in front of its body, of `size` bytes."""
    key_at = _HEAD + _EXCHANGE_AT + 1 + prefix[_HEAD + _EXCHANGE_AT]
    length = prefix[key_at]
    (whole,) = _SIZE.unpack_from(prefix, _SIZE_AT)
    facts = facts_of(host, target.exchange, target.routing_key, NAME, attributes)
    return Form(
        channel,
        prefix[:_SIZE_AT],
        whole - length,
        prefix[_HEAD:key_at],
        prefix[key_at + 1 + length :],
        size,
        target,
        attributes,
        properties,
        facts[:KEY],
        facts[KEY + 1 :],
    )


def came(key: str) -> None:
    """A publish had this key that was not looked for here."""
    _SEEN.again((key.encode(),))


class Keyed:
    """Of one connection: the form that its publishes had last, and the keys that have come in it more than once."""

    def __init__(self, kind_of: Callable[[Target, Attributes], Kind]) -> None:
        """`kind_of` mostly gives one object for what is equal."""
        self._kind_of = kind_of
        self._form: Form | None = None
        self._fronts: dict[int, bytes] = {}  # of the form, by the length of a key: all in front of that
        self._known: Memo[bytes, Kind] = Memo(_REMEMBERED, _BYTES)

    def begin(self, form: Form) -> None:
        """Looks for publishes of this form from now on."""
        self._form, self._fronts = form, {}
        if self._known:
            self._known.clear()

    def take(self, channel: Channel, data: bytes, position: int, end: int, columns: Columns) -> int:
        """Adds all publishes that lie together and have the form; gives where it stopped."""
        form = self._form
        if form is None or form.channel is not channel:
            return position
        kinds, properties, bodies = columns
        behind, size, keys, fronts = form.behind, form.body, list[bytes](), self._fronts
        length_at, to_body, last = _HEAD + len(form.front), len(behind), frames.END
        while (at := position + length_at) < end:
            length = data[at]
            key_at = at + 1
            body_at = key_at + length + to_body
            after = body_at + size + 1
            if (
                after > end
                or data[after - 1] != last
                or not data.startswith(behind, key_at + length)
                or not data.startswith(fronts.get(length) or self._front(form, length), position)
            ):
                break
            key = data[key_at : key_at + length]
            if not key.isascii() and not _is_text(key):
                break  # the general way finds the same, and answers
            keys.append(key)
            bodies.append(data[body_at : after - 1])
            position = after
        kinds += self._kinds(form, keys)
        properties += [form.properties] * len(keys)
        return position

    def _front(self, form: Form, length: int) -> bytes:
        """All that stands in front of a key of this length."""
        whole = b"".join((form.head, _SIZE.pack(form.size + length), form.front, bytes((length,))))
        self._fronts[length] = whole
        return whole

    def _kinds(self, form: Form, keys: Sequence[bytes]) -> Sequence[Kind]:
        """One for each key."""
        found = list(map(self._known.get, keys))
        new = dict.fromkeys(key for key, kind in zip(keys, found, strict=True) if kind is None)
        if not new:
            return cast("Sequence[Kind]", found)
        made = self._made(form, new)
        return [kind or made[key] for key, kind in zip(keys, found, strict=True)]

    def _made(self, form: Form, keys: Mapping[bytes, None]) -> dict[bytes, Kind]:
        """Of keys that are not known. They are remembered once they have come again."""
        first, rest, attributes, (_, _, mandatory, immediate) = form.first, form.rest, form.attributes, form.target
        again = _SEEN.again(keys)
        made = {
            key: Kind(tuple.__new__(Facts, (*first, key.decode(), *rest)), attributes, mandatory, immediate)
            for key in (keys.keys() - again if again else keys)
        }
        for key in again:
            made[key] = self._known.recall(key) or self._remembered(form, key)
        return made

    def _remembered(self, form: Form, key: bytes) -> Kind:
        kind = self._kind_of(form.target._replace(routing_key=key.decode()), form.attributes)
        self._known.put(key, kind, len(key))
        return kind


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
