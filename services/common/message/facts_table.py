"""Facts of many messages at once, to bytes and back: in most streams they differ in their routing keys alone.

So what stands around a key is written once and looked for, and only the key between is made or read. Protobuf itself,
message by message, takes three times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from services.common.message.facts import KEY, KEY_TAG, Facts, around_key, from_bytes, to_bytes

_FEW: Final = 8
_SHORT: Final = 128  # octets of a key whose length takes one
_OCTETS: Final = tuple(bytes((number,)) for number in range(_SHORT))
_FORMS: Final = 16  # of facts beside their keys that are looked for; what alternates between more is read by itself

_REMEMBERED: Final = 8192
_known: Final[dict[bytes, Facts]] = {}


class _Form(NamedTuple):
    """Facts but for their key: `before` it, with its tag, and `after` it as bytes, and the `first` and the `rest`."""

    before: bytes
    after: bytes
    first: tuple[Any, ...]
    rest: tuple[Any, ...]


_NONE: Final = _Form(b"", b"", (), ())


def written(table: Sequence[Facts]) -> Iterable[bytes]:
    """A serialised MessageFacts for each."""
    if len(table) < _FEW:
        return map(to_bytes, table)
    return _written(table)


def _written(table: Sequence[Facts]) -> list[bytes]:
    found: list[bytes] = []
    before, after, first, rest = _form_of(table[0])
    for facts in table:
        if facts[:KEY] != first or facts[KEY + 1 :] != rest:
            before, after, first, rest = _form_of(facts)
        key = facts.routing_key.encode()
        size = len(key)
        found.append(before + _OCTETS[size] + key + after if 0 < size < _SHORT else to_bytes(facts))
    return found


def read(table: Sequence[bytes]) -> list[Facts]:
    """Of each serialised MessageFacts; equal bytes mostly give the same object. Raises DecodeError."""
    if len(table) < _FEW:
        return list(map(from_bytes, table))
    if len(_known) > _REMEMBERED:
        _known.clear()
    get, forms, found, make = _known.get, list[_Form](), list[Facts](), tuple.__new__
    before, after, first, rest = _NONE  # the form that was found last
    for raw in table:
        facts = get(raw)
        if facts is None:
            # What fits can be read in no other way: the length of the key says where it ends.
            at, end = len(before), len(raw) - len(after)
            fits = 0 < at < end and raw[at] == end - at - 1 < _SHORT and raw.startswith(before) and raw.endswith(after)
            if fits and (key := raw[at + 1 : end]).isascii():
                facts = make(Facts, (*first, key.decode(), *rest))
            else:
                facts, (before, after, first, rest) = _read_alone(forms, raw)
            _known[raw] = facts
        found.append(facts)
    return found


def _read_alone(forms: list[_Form], raw: bytes) -> tuple[Facts, _Form]:
    """By one of these forms, or by itself: then its own is added, if there is room and its key is short."""
    for form in forms:
        at, end = len(form.before), len(raw) - len(form.after)
        if at < end and raw[at] == end - at - 1 < _SHORT and raw.startswith(form.before) and raw.endswith(form.after):
            try:
                return tuple.__new__(Facts, (*form.first, raw[at + 1 : end].decode(), *form.rest)), form
            except UnicodeDecodeError:  # protobuf tells so in its own way
                break
    facts = from_bytes(raw)
    if len(forms) == _FORMS or len(facts.routing_key) >= _SHORT:
        return facts, _NONE
    forms.append(_form_of(facts))
    return facts, forms[-1]


def _form_of(facts: Facts) -> _Form:
    first, rest = facts[:KEY], facts[KEY + 1 :]
    before, after = around_key(first, rest)
    return _Form(before + KEY_TAG, after, first, rest)
