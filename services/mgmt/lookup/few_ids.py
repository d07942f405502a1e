"""Which ids small files have, by their hashes. The hour that is not over is in hundreds of them; any may have an id.

To look into one takes a hundred times as long as to look for a hash in memory. What does not fit in there is looked
into: files of hours that are over have ten times the ids, and are few.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from services.mgmt.lookup.counted import Counted
from services.mgmt.lookup.versions import Version

FEW: Final = 16_384
"""Ids of a file, at most."""

_REMEMBERED = 2000  # files
_MOST = 3_000_000  # hashes, of 4 bytes
_MASK = (1 << 32) - 1

_Hashes = array  # sorted


class FewIds:
    """For several threads."""

    def __init__(self, most: int = _MOST) -> None:
        """`most` hashes are remembered."""
        self._known: Counted[_Hashes[int]] = Counted(most, _REMEMBERED)

    def lacks(self, path: str, version: Version | None, name: str) -> bool:
        """Whether it is known that the file has not the id."""
        hashes = self._known.of(path, version)
        if hashes is None:
            return False
        wanted = _hash(name)
        place = bisect_left(hashes, wanted)
        return place == len(hashes) or hashes[place] != wanted

    def knows(self, path: str, version: Version | None) -> bool:
        """Whether somebody has told what the file has."""
        return self._known.of(path, version) is not None

    def has_room(self, ids: int) -> bool:
        """For a file of so many. Nothing is forgotten for it: files that together are too many would push each other
        out for ever, and each takes milliseconds to learn.
        """
        return self._known.has_room(ids)

    def learn(self, path: str, version: Version | None, ids: Iterable[str]) -> None:
        """`ids` are all that the file has; nothing is learnt where there is no room."""
        hashes = array("I", sorted({_hash(each) for each in ids}))
        self._known.learn(path, version, hashes, len(hashes))


def _hash(name: str) -> int:
    """Of this process."""
    return hash(name) & _MASK
