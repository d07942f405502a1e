"""Who is one of a crowd: of many that want the same, one of the address and user that has most makes room.

Who comes from where others come from as well, behind a proxy perhaps, is told from them by its user, as soon as it has
signed in; those that have not count as one. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

_K = TypeVar("_K")


class Whose(NamedTuple):
    """An address, or an IPv6 network; and the user that signed in last on the connection, "" before."""

    place: str
    user: str = ""


class Ranks(Generic[_K]):
    """Counts of many, of which the largest is known at once, however many there are."""

    def __init__(self) -> None:
        self._counts: dict[_K, int] = {}
        self._having: dict[int, dict[_K, None]] = {}  # who has so many, since longest first
        self._largest = 0

    def __getitem__(self, key: _K) -> int:
        return self._counts.get(key, 0)

    @property
    def most(self) -> _K | None:
        """Who has most; of several, who has it for longest."""
        return next(iter(self._having[self._largest])) if self._largest else None

    def add(self, key: _K) -> None:
        """One more."""
        before = self._counts.get(key, 0)
        self._move(key, before, before + 1)
        self._largest = max(self._largest, before + 1)

    def remove(self, key: _K) -> None:
        """One less."""
        before = self._counts[key]
        self._move(key, before, before - 1)
        if self._largest not in self._having:
            self._largest = before - 1

    def _move(self, key: _K, before: int, after: int) -> None:
        if before:
            del self._having[before][key]
            if not self._having[before]:
                del self._having[before]
        if after:
            self._counts[key] = after
            self._having.setdefault(after, {})[key] = None
        else:
            del self._counts[key]


class Waiting(Generic[_K]):
    """Peers whose turn it is: who takes longest is one of the user that has most, at the place that has most."""

    def __init__(self) -> None:
        self._peers: dict[Whose, dict[_K, None]] = {}  # who has taken longest first
        self._places: Ranks[str] = Ranks()
        self._users: dict[str, Ranks[Whose]] = {}  # by place

    def add(self, peer: _K, whose: Whose) -> None:
        """Without effect where it is there already."""
        peers = self._peers.setdefault(whose, {})
        if peer not in peers:
            peers[peer] = None
            self._places.add(whose.place)
            self._users.setdefault(whose.place, Ranks()).add(whose)

    def remove(self, peer: _K, whose: Whose) -> bool:
        """Whether it was there."""
        peers = self._peers.get(whose, {})
        if peer not in peers:
            return False
        del peers[peer]
        self._places.remove(whose.place)
        self._users[whose.place].remove(whose)
        if not peers:
            del self._peers[whose]
        if not self._places[whose.place]:
            del self._users[whose.place]
        return True

    def longest(self, place: str | None = None) -> _K | None:
        """Of one place, or of that which has most; None where nobody waits."""
        place = self._places.most if place is None else place
        whose = self._users[place].most if place in self._users else None
        return next(iter(self._peers[whose])) if whose else None


def of_the_most(among: Iterable[_K], sizes: Mapping[_K, int], whose: Callable[[_K], Whose]) -> _K:
    """The first whose place has most of all sizes, and whose user has most there."""
    places, users = Counter[str](), Counter[Whose]()
    for peer, size in sizes.items():
        its = whose(peer)
        places[its.place] += size
        users[its] += size

    def has(peer: _K) -> tuple[int, int]:
        its = whose(peer)
        return places[its.place], users[its]

    return max(among, key=has)
