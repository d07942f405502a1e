"""A message's body: most are bytes; some lie in memory of their gateway until somebody wants them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, cast


class Body(Protocol):
    """`bytes` gives its octets, and copies none where it has them."""

    def __len__(self) -> int: ...

    def __bytes__(self) -> bytes: ...


class Bodies(Protocol):
    """A field of protobuf."""

    def extend(self, bodies: Iterable[bytes], /) -> object: ...

    def __delitem__(self, key: slice, /) -> None: ...


def put_bodies(field: Bodies, bodies: Sequence[Body]) -> None:
    """All of them into a field that is empty; nearly always they are bytes, and are not looked at."""
    try:
        field.extend(cast("Sequence[bytes]", bodies))
    except TypeError:
        del field[:]
        field.extend(map(bytes, bodies))


class Place:
    """Where a gateway has put bodies. `released` is called with its number once none of them is there any more."""

    __slots__ = ("__weakref__", "_bodies", "_number", "_released")

    def __init__(self, number: int, released: Callable[[int], None]) -> None:
        self._number, self._released = number, released
        self._bodies: list[weakref.ref[Lent]] = []

    def lend(self, octets: memoryview) -> Lent:
        """A body that is there."""
        lent = Lent(octets, self)
        self._bodies.append(weakref.ref(lent))
        return lent

    def clear(self) -> None:
        """Whatever is there yet is copied: the gateway wants the place."""
        for ref in self._bodies:
            if (lent := ref()) is not None:
                bytes(lent)

    def __del__(self) -> None:
        self._released(self._number)


class Lent:
    """A body in a gateway's memory; copied when it is wanted, or when the place has to be cleared."""

    __slots__ = ("__weakref__", "_octets", "_place")

    def __init__(self, octets: memoryview, place: Place) -> None:
        self._octets: bytes | memoryview = octets
        self._place: Place | None = place  # which is not released before

    def __len__(self) -> int:
        return len(self._octets)

    def __bytes__(self) -> bytes:
        if not isinstance(self._octets, bytes):
            self._octets, self._place = bytes(self._octets), None
        return self._octets
