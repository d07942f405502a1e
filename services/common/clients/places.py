"""Places in a memory, for things that are given back in about the order in which they were taken. Pure."""

from __future__ import annotations

from typing import Final

from services.common.errors import InternalError

CHUNK: Final = 4 << 20
"""Octets that are taken and given back as one: places lie in it one behind the other, and none is used again alone."""


class Places:
    """Of a memory of so many chunks. What was used last is used again first: it may be in the processor's cache yet."""

    def __init__(self, chunks: int) -> None:
        self._free = list(range(chunks - 1, -1, -1))
        self._taken: set[int] = set()
        self._used = [0] * chunks  # places of each chunk
        self._chunk = self._free.pop()  # where the next place is …
        self._at = 0  # … and from which octet of it on

    def take(self, size: int) -> int | None:
        """The first octet of a place of that size; None where there is no room.

        No two places begin at one octet: what is empty has one too.
        """
        size = max(size, 1)
        if self._at + size > CHUNK and not self._turn_over(size):
            return None
        place = self._chunk * CHUNK + self._at
        self._at += size
        self._used[self._chunk] += 1
        self._taken.add(place)
        return place

    def give_back(self, place: int) -> None:
        """Nothing is there any more. Raises InternalError for what is no place."""
        if place not in self._taken:
            raise InternalError(f"there is no place at {place}")
        self._taken.discard(place)
        chunk = place // CHUNK
        self._used[chunk] -= 1
        if self._used[chunk]:
            return
        if chunk == self._chunk:
            self._at = 0
        else:
            self._free.append(chunk)

    @property
    def are_free(self) -> bool:
        """Whether nothing is anywhere."""
        return not self._taken

    def _turn_over(self, size: int) -> bool:
        """Goes on in a chunk that is free."""
        if size > CHUNK or not self._free:
            return False
        self._chunk, self._at = self._free.pop(), 0
        return True
