"""Facts of many messages at once, to bytes and back: in most streams they differ in their routing keys alone.

So what stands around a key is written once and looked for, and only the keys between are made or read, all of one
length together; of expirations, the same. Protobuf itself, message by message, takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

from services.common.message.facts import (
    BEHIND,
    KEY,
    KEY_TAG,
    NUMBERS,
    Facts,
    around_key,
    from_bytes,
    of_numbers,
    to_bytes,
)
from services.common.message.facts_by_key import ByKey, are_one, by_key
from services.common.message.facts_forms import OCTETS, SHORT, Forms, form_of
from services.common.message.facts_known import KnownFacts
from services.common.message.facts_of_one_size import of_one_size
from services.common.message.varints import varints

_FEW: Final = 8
_KNOWN: Final = KnownFacts()


def written(table: Sequence[Facts]) -> Iterable[bytes]:
    """A serialised MessageFacts for each."""
    if len(table) < _FEW:
        return map(to_bytes, table)
    found = _KNOWN.raw(table)
    if all(found):
        return cast("list[bytes]", found)
    new = [facts for facts, raw in zip(table, found, strict=True) if not raw]
    made = _together(new) or _each(new)
    _KNOWN.add(made, new)
    if len(made) == len(table):
        return made
    rest = iter(made)
    return [raw or next(rest) for raw in found]


def new_by_key(table: Sequence[Facts]) -> ByKey | None:
    """Of transient messages that differ in their keys alone, none of which came before, as far as that is known."""
    if len(table) < _FEW or table[0].persistent or not _KNOWN.are_new(table):
        return None
    return by_key(table)


def note(table: Sequence[Facts]) -> None:
    """These came: if they come again they are written as bytes, of which a reader makes one object each time."""
    _KNOWN.note(table)


def forget() -> None:
    """All that came, and how it was written."""
    _KNOWN.forget()


def _together(table: Sequence[Facts]) -> list[bytes] | None:
    """Of facts that differ in keys and numbers alone; None of others."""
    if not table:
        return None
    columns = tuple(zip(*table, strict=True))
    if not are_one(columns[:KEY] + columns[KEY + 1 : NUMBERS] + columns[BEHIND:]):
        return None
    keys = list(map(str.encode, columns[KEY]))
    sizes = list(map(len, keys))
    if not 0 < min(sizes) <= max(sizes) < SHORT:
        return None
    before, middle, last, *_ = form_of(table[0])
    if are_one(columns[NUMBERS:BEHIND]):
        after = middle + of_numbers(table[0][NUMBERS:BEHIND]) + last
        return [before + OCTETS[size] + key + after for size, key in zip(sizes, keys, strict=True)]
    numbers = varints(columns[NUMBERS:BEHIND])
    return [
        before + OCTETS[size] + key + middle + its + last for size, key, its in zip(sizes, keys, numbers, strict=True)
    ]


def _each(table: Iterable[Facts]) -> list[bytes]:
    found, known = list[bytes](), dict[tuple[Any, ...], tuple[bytes, bytes]]()
    for facts in table:
        rest = facts[:KEY], facts[KEY + 1 :]
        before, after = known.get(rest) or known.setdefault(rest, around_key(*rest))
        key = facts.routing_key.encode()
        size = len(key)
        found.append(before + KEY_TAG + OCTETS[size] + key + after if 0 < size < SHORT else to_bytes(facts))
    return found


def read(table: Sequence[bytes]) -> list[Facts]:
    """Of each serialised MessageFacts; equal bytes mostly give the same object. Raises DecodeError."""
    if len(table) < _FEW:
        return list(map(from_bytes, table))
    found = _KNOWN.facts(table)
    if all(found):
        return cast("list[Facts]", found)
    new = [raw for raw, facts in zip(table, found, strict=True) if facts is None] if any(found) else table
    alone = list(dict.fromkeys(new))
    made = _made(alone)
    _KNOWN.add(alone, made)
    if len(made) == len(table):
        return made
    its = dict(zip(alone, made, strict=True))
    return [facts or its[raw] for raw, facts in zip(table, found, strict=True)]


def _made(table: list[bytes]) -> list[Facts]:
    """Of bytes that differ."""
    sizes = set(map(len, table))
    if len(sizes) == 1 and len(table) >= _FEW and (together := of_one_size(table)):
        return together
    forms = Forms()
    if len(sizes) * _FEW > len(table):
        return list(map(forms.read, table))
    by_size: dict[int, list[bytes]] = {size: [] for size in sizes}
    for raw in table:
        by_size[len(raw)].append(raw)
    made = dict[bytes, Facts]()
    for some in by_size.values():
        together = of_one_size(some) if len(some) >= _FEW and len(sizes) > 1 else None
        made.update(zip(some, together or map(forms.read, some), strict=True))
    return list(map(made.__getitem__, table))
