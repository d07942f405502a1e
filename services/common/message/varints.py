"""Numbers of facts as protobuf writes them, seven bits an octet, the lowest first: of many messages at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from services.common.message.facts import OCTETS_OF_NUMBER, TAGS, of_numbers, varint
from services.common.message.same_places import SamePlaces

_BITS: Final = 127
_LAST: Final = tuple(bytes((number,)) for number in range(128))
_MORE: Final = tuple(bytes((number | 128,)) for number in range(128))  # of an octet with another one behind it


def varints(columns: Sequence[Sequence[int | None]]) -> list[bytes]:
    """What stands of the facts that are numbers, of each message; a column for each of these facts."""
    parts = list[list[bytes]]()
    for tag, column in zip(TAGS, columns, strict=True):
        if (missing := column.count(None)) == len(column):
            continue
        if missing:
            return [bytes(of_numbers(each)) for each in zip(*columns, strict=True)]
        parts.append(_tagged(bytes((tag,)), column))  # type: ignore[arg-type]  # all are numbers
    return parts[0] if len(parts) == 1 else list(map(b"".join, zip(*parts, strict=True)))


def _tagged(tag: bytes, column: Sequence[int]) -> list[bytes]:
    if max(column) >= 1 << 28:
        return [tag + varint(number) for number in column]
    return [
        tag + _LAST[number]
        if number < 1 << 7
        else tag + _MORE[number & 127] + _LAST[number >> 7]
        if number < 1 << 14
        else tag + _MORE[number & 127] + _MORE[number >> 7 & 127] + _LAST[number >> 14]
        if number < 1 << 21
        else tag + _MORE[number & 127] + _MORE[number >> 7 & 127] + _MORE[number >> 14 & 127] + _LAST[number >> 21]
        for number in column
    ]


def numbers_at(together: SamePlaces, start: int, end: int) -> list[int] | None:
    """What stands between two places of each; None unless that is one number in each."""
    if end - start > OCTETS_OF_NUMBER:
        return None
    numbers = [0] * together.count
    for place in range(start, end):
        octets = together.octets(place)
        if (place == end - 1 and max(octets) > _BITS) or (place < end - 1 and min(octets) <= _BITS):
            return None
        shift = 7 * (place - start)
        numbers = [number | (octet & _BITS) << shift for number, octet in zip(numbers, octets, strict=True)]
    return numbers
