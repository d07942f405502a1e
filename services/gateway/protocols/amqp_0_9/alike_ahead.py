"""How many publishes of one size lie together that have the same octets at the same places.

What stands at one place of each is a slice of what was read, so no loop looks at each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

MANY: Final = 32
"""Fewer are looked at one by one in less time."""
_MORE: Final = 4  # times as many are looked at next: where few are alike, the rest of a read is not looked at for each

Pieces: TypeAlias = Sequence[tuple[int, bytes]]
"""Octets, and the place of the first of them in each publish."""


def alike_ahead(data: bytes, position: int, size: int, most: int, pieces: Pieces) -> int:
    """Of `most` at the most, which `data` has room for; 0 for fewer than `MANY`."""
    if most < MANY or not _has(data, position + (MANY - 1) * size, pieces):
        return 0
    found, some = 0, MANY
    while found < most:
        wanted = min(some, most - found)
        found += (alike := _alike(data, position + found * size, size, wanted, pieces))
        if alike < wanted:
            break
        some *= _MORE
    return found if found >= MANY else 0


def _has(data: bytes, position: int, pieces: Pieces) -> bool:
    return all(data.startswith(piece, position + at) for at, piece in pieces)


def _alike(data: bytes, position: int, size: int, most: int, pieces: Pieces) -> int:
    for at, piece in pieces:
        for index in range(len(piece)):
            octet = piece[index : index + 1]
            column = data[position + at + index : position + most * size : size]
            if column != octet * most:
                most -= len(column.lstrip(octet))
                if not most:
                    return 0
    return most
