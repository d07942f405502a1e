"""Links that have said more than is carried out yet: frames that wait behind others, and last words."""

from __future__ import annotations

from services.queue.machine.entry import Holder


class LateLinks:
    """Of a process. What was said is numbered, so that nobody waits for what is said later."""

    def __init__(self) -> None:
        self._links: dict[int, Holder] = {}
        self.newest = 0

    def begin(self, link: Holder) -> int:
        """Something that it has said waits; gives the number for `over`, which is called once."""
        self.newest += 1
        self._links[self.newest] = link
        return self.newest

    def over(self, number: int) -> None:
        """That is carried out, or will never be."""
        del self._links[number]

    def has_one_of(self, origin: int, newest: int | None = None) -> bool:
        """Whether a stream of this gateway, this one or a former one, is late; with what was said until `newest`."""
        last = self.newest if newest is None else newest
        return any(number <= last and link.origin == origin for number, link in self._links.items())

    @property
    def has_left(self) -> bool:
        """Whether one of them is over, so that its peer says nothing again."""
        return any(link.broken for link in self._links.values())
