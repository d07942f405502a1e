"""Links that have said more than is carried out yet: frames that wait behind others, and last words."""

from __future__ import annotations

from collections import Counter

from services.queue.machine.entry import Holder


class LateLinks:
    """Of a process."""

    def __init__(self) -> None:
        self._links: Counter[Holder] = Counter()

    def begin(self, link: Holder) -> None:
        """Something that it has said waits; `over` is called once for each."""
        self._links[link] += 1

    def over(self, link: Holder) -> None:
        """That is carried out, or will never be."""
        self._links[link] -= 1
        if not self._links[link]:
            del self._links[link]

    def has_one_of(self, origin: int) -> bool:
        """Whether a stream of this gateway, this one or a former one, is late."""
        return any(link.origin == origin for link in self._links)

    @property
    def has_left(self) -> bool:
        """Whether one of them is over, so that its peer says nothing again."""
        return any(link.broken for link in self._links)
