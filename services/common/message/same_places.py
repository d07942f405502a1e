"""Properties of one length, joined: what stands at one place of each is a slice of all, so that no loop looks at it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class SamePlaces:
    """Of a column whose values are all as long as the first, which is not empty."""

    __slots__ = ("_first", "_text", "count", "joined", "length")

    def __init__(self, column: Sequence[bytes], joined: bytes) -> None:
        self._first = column[0]
        self._text: str | None = None
        self.count = len(column)
        self.length = len(self._first)
        self.joined = joined

    def alike(self, places: Iterable[int]) -> bool:
        """Whether all have the octets there that the first has."""
        joined, length, first, count = self.joined, self.length, self._first, self.count
        return all(joined[place::length].count(first[place]) == count for place in places)

    def octets(self, place: int) -> bytes:
        """What each has there."""
        return self.joined[place :: self.length]

    def texts(self, start: int, end: int) -> list[str] | None:
        """What each has between two places, which is the same for all; None where something is not ASCII."""
        if self._text is None:
            self._text = self.joined.decode("latin-1")
        text, width = self._text, end - start
        texts = [text[at : at + width] for at in range(start, len(text), self.length)]
        return texts if "".join(texts).isascii() else None


def same_places(column: Sequence[bytes], joined: bytes) -> SamePlaces | None:
    """Of values that are also given joined; None where lengths differ, or nothing is there."""
    length = len(column[0])
    if not length or len(joined) != length * len(column) or set(map(len, column)) != {length}:
        return None
    return SamePlaces(column, joined)
