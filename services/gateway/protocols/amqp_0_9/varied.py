"""Publishes that differ in key, properties and bodies, looked through flat: each may be new.

A device, an order has a key or an id of its own, which may never come again. What stands around these is the same in
many of them, and is looked up instead of read; then all keys are made out together, and all properties.

    front:    frame head, class, method, reserved, exchange, length of the key
    key
    between:  flags, frame end; frame head, class, weight, size of the body
    properties
    behind:   frame end; frame head
    body
    frame end
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import repeat
from typing import Any, Final, NamedTuple, cast

from services.common.memo import Memo
from services.common.message.alike import are_alike
from services.common.message.amqp_0_9 import FORMAT, NAME
from services.common.message.bounds import LITTLE
from services.common.message.facts import SAID, Attributes, Facts, facts_of
from services.common.message.facts_by_key import with_keys
from services.common.recent import Recent
from services.gateway.protocols.amqp_0_9 import frames
from services.gateway.protocols.amqp_0_9.alike_ahead import alike_ahead
from services.gateway.protocols.amqp_0_9.batches import Columns
from services.gateway.protocols.amqp_0_9.channel import BASIC_WITHOUT_WEIGHT, Channel, Target
from services.gateway.protocols.amqp_0_9.peer import Peer
from services.gateway.vocabulary import Kind

_EXCHANGE_AT: Final = 13  # in the front
_BETWEEN: Final = struct.Struct(">BBBHIIQ")
_BEHIND: Final = struct.Struct(">BBHI")
_ITS_HEAD: Final = struct.Struct(">BBBH")  # of what is between: up to the channel of the header's frame
_HEADER: Final = 12  # bytes of a content header in front of the properties
_LEAST: Final = _HEADER + 2  # with the flags of no property
_MEMOS: Final = 16  # of kinds, for so many forms and attributes: in each …
_KINDS: Final = 4096  # … so many …
_KIND_BYTES: Final = 128 << 10  # … and bytes of their keys
_MANY: Final = 8  # publishes of such in a read
_FRONTS: Final = 1024  # that are remembered
_FRONT_BYTES: Final = 64 << 10
_BETWEENS: Final = 8192  # likewise: bodies have many sizes
_BETWEEN_BYTES: Final = 256 << 10
_MOST_PROPERTIES: Final = 8 << 10  # bytes of those that are looked at together: each may have to be walked over
_FEW_PROPERTIES: Final = 64  # the same behind one that is refused: more may be, and what is cut behind it is cut again
_MOST_FLAGS: Final = 4  # of a front: mandatory and immediate
_FACTS: Final[Callable[[Iterable[Any]], Facts]] = partial(tuple.__new__, Facts)
_KIND: Final[Callable[[Iterable[Any]], Kind]] = partial(tuple.__new__, Kind)
SEEN: Final[Recent[bytes]] = Recent()
"""Keys of this process."""


class Form:
    """Publishes on a channel to an exchange, with keys of one length and the same flags."""

    __slots__ = ("between", "channel", "others", "target")

    def __init__(self, channel: Channel, target: Target, flags: int) -> None:
        """`target` without its key; `flags` as they are written."""
        self.channel = channel
        self.target = target
        self.between = _ITS_HEAD.pack(flags, frames.END, frames.HEADER, channel.number)
        """How what is between begins."""
        self.others: dict[bytes, Form] = {self.between: self}
        """Of all that have the same front, by how what is between begins: their flags differ."""


class _Header(NamedTuple):
    """What is between says so much of the rest."""

    properties: int  # their size
    behind: bytes
    body: int  # its size


class _Cut(NamedTuple):
    """Columns of what lies together."""

    forms: list[Form]
    keys: list[bytes]
    properties: list[bytes]
    bodies: list[bytes]
    ends: list[int]  # of each, where it ends


_GENERAL: Final = _Header(0, b"", 0)  # of a publish that is left to the general way


class Varied:
    """Of one connection: forms that came, and kinds of keys that have come more than once."""

    def __init__(
        self,
        peer: Peer,
        kind_of: Callable[[Target, Attributes], Kind],
        known_kind: Callable[[Target, Attributes], Kind | None],
    ) -> None:
        """`kind_of` mostly gives one object for what is equal, `known_kind` the same if there is one yet."""
        self._peer = peer
        self._kind_of = kind_of
        self._known_kind = known_kind
        self._forms: Memo[bytes, Form] = Memo(_FRONTS, _FRONT_BYTES)  # by the front
        self._headers: Memo[bytes, _Header] = Memo(_BETWEENS, _BETWEEN_BYTES)  # by what is between
        self._targets: Memo[Target, Target] = Memo(_FRONTS, _FRONT_BYTES)  # without keys
        self._known: dict[tuple[Target, Attributes], Memo[bytes, Kind]] = {}  # by the key
        self._room = self._left = _MOST_PROPERTIES

    def came(self, publish: bytes, channel: Channel, target: Target) -> None:
        """One was read in the general way, of which these are the first octets: more of its form may follow."""
        SEEN.again((target.routing_key.encode(),))
        front = _front(publish, 0)
        keyless = target._replace(routing_key="")
        form = Form(channel, self._shared(keyless), publish[len(front) + front[-1]])
        known = self._forms.get(front) or self._forms.recall(front)
        if known is None:
            self._forms.put(front, form, len(front))
        elif known.channel is not channel:
            self._forms[front] = form  # another one has its number now
        elif len(known.others) < _MOST_FLAGS:
            form.others = known.others
            known.others.setdefault(form.between, form)

    def _shared(self, target: Target) -> Target:
        """One object for all that are equal: of publishes on any channel, with keys of any length."""
        shared = self._targets.get(target) or self._targets.recall(target)
        if shared is None:
            self._targets.put(target, target, len(target.exchange))
        return shared or target

    def take(
        self, takes: Callable[[Channel], bool], data: bytes, position: int, end: int
    ) -> tuple[list[Channel], Columns, int]:
        """All that lie together and can be read so, on channels that `takes` allows; and where that stopped."""
        self._left = self._room
        forms, keys, properties, bodies, ends = self._cut(takes, data, position, end)
        attributes = FORMAT.attributes_of(properties) if properties else []
        # What is refused here the general way finds again, and answers.
        whole = min(len(attributes), _texts(keys))
        self._room = min(2 * self._room, _MOST_PROPERTIES) if whole == len(forms) else _FEW_PROPERTIES
        if not whole:
            return [], ([], [], []), position
        if are_alike(forms):
            targets, channels = [forms[0].target] * whole, [forms[0].channel] * whole
        else:
            targets, channels = [form.target for form in forms[:whole]], [form.channel for form in forms[:whole]]
        kinds = self._kinds(targets, keys[:whole], attributes[:whole])
        return channels, (kinds, properties[:whole], bodies[:whole]), ends[whole - 1]

    def _cut(self, takes: Callable[[Channel], bool], data: bytes, position: int, end: int) -> _Cut:
        cut = _Cut([], [], [], [], [])
        channel: Channel | None = None
        form_of, header_of, size = self._forms.get, self._headers.get, _BETWEEN.size
        while (exchange_at := position + _EXCHANGE_AT) < end:
            length_at = exchange_at + 1 + data[exchange_at]
            front = data[position : length_at + 1]
            form = form_of(front)
            if form is None:
                break
            if form.channel is not channel:
                if not takes(form.channel):
                    break
                channel = form.channel
            between_at = length_at + 1 + data[length_at]
            between = data[between_at : between_at + size]
            if not between.startswith(form.between):
                form = form.others.get(between[: _ITS_HEAD.size])
                if form is None:
                    break
            header = header_of(between) or self._header(between)
            before = position
            position = self._cut_alike(cut, form, (front, between, between_at - position, header), data, position, end)
            if position == before:
                break
        return cut

    def _cut_alike(
        self, cut: _Cut, form: Form, around: tuple[bytes, bytes, int, _Header], data: bytes, position: int, end: int
    ) -> int:
        """Those that lie together and differ only in keys, properties and bodies, which have the same sizes."""
        front, between, between_at, (properties_size, behind, body) = around
        forms, keys, properties, bodies, ends = cut
        key_at, properties_at = len(front), between_at + len(between)
        behind_at = properties_at + properties_size
        body_at = behind_at + len(behind)
        whole, last, room, first = body_at + body + 1, frames.END, self._left, position
        next_between = position + whole + between_at
        if data.startswith(front, position + whole) and data.startswith(between, next_between) and body:
            pieces = (whole - 1, frames.END_OCTET), (behind_at, behind), (between_at, between), (0, front)
            most = min((end - position) // whole, room // (properties_size or 1))
            position += whole * alike_ahead(data, position, whole, most, pieces)
        if position > first:
            starts = range(first, position, whole)
            keys += [data[at + key_at : at + between_at] for at in starts]
            properties += [data[at + properties_at : at + behind_at] for at in starts]
            bodies += [data[at + body_at : at + whole - 1] for at in starts]
            room -= properties_size * len(starts)
            end = position  # whatever lies behind them is looked at anew
        while (after := position + whole) <= end and body and data[after - 1] == last:
            if not data.startswith(behind, position + behind_at):
                break
            if (room := room - properties_size) < 0 and keys:
                break
            keys.append(data[position + key_at : position + between_at])
            properties.append(data[position + properties_at : position + behind_at])
            bodies.append(data[position + body_at : after - 1])
            position = after
            if not (data.startswith(front, position) and data.startswith(between, position + between_at)):
                break
        forms += [form] * ((position - first) // whole)
        ends += range(first + whole, position + 1, whole)
        self._left = room
        return position

    def _header(self, between: bytes) -> _Header:
        """One of the form's channel and flags; `_GENERAL` when it is not whole, or says what is not for here."""
        if known := self._headers.recall(between):
            return known
        if len(between) < _BETWEEN.size:
            return _GENERAL
        _, _, _, number, size, ids, body = _BETWEEN.unpack(between)
        peer = self._peer
        if (
            ids != BASIC_WITHOUT_WEIGHT
            or not _LEAST <= size <= LITTLE  # of larger ones the general way counts what it takes to look into them
            or not 0 < body <= peer.limits.max_message_size
            or max(size, body) > peer.frame_max - frames.OVERHEAD
        ):
            return _GENERAL
        header = _Header(size - _HEADER, _BEHIND.pack(frames.END, frames.BODY, number, body), body)
        self._headers.put(between, header, len(between))
        return header

    def _kinds(self, targets: Sequence[Target], keys: Sequence[bytes], attributes: Sequence[Attributes]) -> list[Kind]:
        """One for each."""
        if are_alike(targets) and are_alike(attributes):
            return self._kinds_of(targets[0], keys, attributes[0])
        alike: dict[tuple[int, int], list[int]] = {}
        for index, pair in enumerate(zip(map(id, targets), map(id, attributes), strict=True)):
            alike.setdefault(pair, []).append(index)
        if 2 * len(alike) > len(keys) >= _MANY:
            return self._made_each(targets, keys, attributes)
        kinds: list[Any] = [None] * len(keys)
        for indexes in alike.values():
            first, its_keys = indexes[0], [keys[index] for index in indexes]
            for index, kind in zip(indexes, self._kinds_of(targets[first], its_keys, attributes[first]), strict=True):
                kinds[index] = kind
        return kinds

    def _made_each(
        self, targets: Sequence[Target], keys: Sequence[bytes], attributes: Sequence[Attributes]
    ) -> list[Kind]:
        """Where hardly any two are alike, as of expirations that are always new: none is looked for or remembered."""
        host, texts = self._peer.virtual_host, {key: key.decode() for key in set(keys)}
        exchanges, _, mandatory, immediate = zip(*targets, strict=True)
        said = [its[:SAID] for its in attributes]
        addresses = zip(repeat(host), exchanges, map(texts.__getitem__, keys), repeat(NAME), strict=False)
        facts = [_FACTS((*address, *its, "")) for address, its in zip(addresses, said, strict=False)]
        return list(map(_KIND, zip(facts, attributes, mandatory, immediate, repeat(()), strict=False)))

    def _kinds_of(self, target: Target, keys: Sequence[bytes], attributes: Attributes) -> list[Kind]:
        """Of publishes with these attributes; `target` without the key."""
        known = self._known.get((target, attributes))
        if not known:
            new = dict.fromkeys(keys)
            again = SEEN.again(new)
            if not again and len(new) == len(keys):
                return self._made(target, keys, attributes)
            made = self._made_of(target, new, again, attributes, many=len(keys) >= _MANY)
            return list(map(made.__getitem__, keys))
        found = list(map(known.get, keys))
        new = dict.fromkeys(key for key, kind in zip(keys, found, strict=True) if kind is None)
        if not new:
            return cast("list[Kind]", found)
        made = self._made_of(target, new, SEEN.again(new), attributes, many=len(keys) >= _MANY)
        return [kind or made[key] for key, kind in zip(keys, found, strict=True)]

    def _made_of(
        self,
        target: Target,
        new: Mapping[bytes, None],
        again: AbstractSet[bytes],
        attributes: Attributes,
        *,
        many: bool,
    ) -> dict[bytes, Kind]:
        """Of keys that are not known, of which some come again: by key."""
        first = new.keys() - again
        made = dict(zip(first, self._made(target, first, attributes), strict=True))
        return made | self._made_again(target, again, attributes, many=many) if again else made

    def _made(self, target: Target, keys: Collection[bytes], attributes: Attributes) -> list[Kind]:
        """Of keys that may never come again."""
        base = facts_of(self._peer.virtual_host, target.exchange, "", NAME, attributes)
        facts = with_keys(base, map(bytes.decode, keys))
        said = repeat(attributes), repeat(target.mandatory), repeat(target.immediate), repeat(())
        return list(map(_KIND, zip(facts, *said, strict=False)))

    def _made_again(
        self, target: Target, keys: AbstractSet[bytes], attributes: Attributes, *, many: bool
    ) -> dict[bytes, Kind]:
        """Of keys that came before: they have one object from now on, which is found at once where `many` come."""
        if not many:
            return {key: self._kind_of(target._replace(routing_key=key.decode()), attributes) for key in keys}
        known, known_kind = self._memo(target, attributes), self._known_kind
        exchange, _, mandatory, immediate = target
        kinds = dict[bytes, Kind]()
        for key in keys:
            kind = known.recall(key) or known_kind(Target(exchange, key.decode(), mandatory, immediate), attributes)
            if kind:
                kinds[key] = kind
        others = keys - kinds.keys()
        kinds |= zip(others, self._made(target, others, attributes), strict=True)
        new = {key: kind for key, kind in kinds.items() if key not in known}
        known.put_all(new, sum(map(len, new)))
        return kinds

    def _memo(self, target: Target, attributes: Attributes) -> Memo[bytes, Kind]:
        known = self._known.get((target, attributes))
        if known is None:
            if len(self._known) >= _MEMOS:
                self._known.clear()
            known = self._known[target, attributes] = Memo(_KINDS, _KIND_BYTES)
        return known


def _front(data: bytes, position: int) -> bytes:
    """Of the publish at `position`, if there is one; else some octets or other, or none."""
    exchange_at = position + _EXCHANGE_AT
    return data[position : exchange_at + 2 + data[exchange_at]] if exchange_at < len(data) else b""


def _texts(keys: Sequence[bytes]) -> int:
    """How many of them, from the first on, are text (section 4.2.5.3)."""
    if b"".join(keys).isascii():
        return len(keys)
    return next((index for index, key in enumerate(keys) if not _is_text(key)), len(keys))


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
