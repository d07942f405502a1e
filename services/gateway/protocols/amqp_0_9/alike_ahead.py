"""How many publishes of one size lie together that have the same octets at the same places.

What stands at one place of each is a slice of what was read, so no loop looks at each of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

MANY: Final = 32
"""Fewer are looked at one by one in less time."""


def alike_ahead(data: bytes, position: int, size: int, most: int, pieces: Iterable[tuple[int, bytes]]) -> int:
    """Of `most` at the most, which `data` has room for; 0 for fewer than `MANY`.

    `pieces` are octets and the place of the first of them in each.
    """
    for at, piece in pieces:
        for index in range(len(piece)):
            if most < MANY:
                return 0
            octet = piece[index : index + 1]
            column = data[position + at + index : position + most * size : size]
            if column != octet * most:
                most -= len(column.lstrip(octet))
    return most if most >= MANY else 0
