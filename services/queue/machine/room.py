"""Whether a queue has room, with what transactions will bring, and what goes when there is too much in it."""

from __future__ import annotations

from collections.abc import Sequence

from services.queue.machine import turn
from services.queue.machine.context import MAXLEN
from services.queue.machine.entries import Entries
from services.queue.machine.entry import Entry, Undecided
from services.queue.machine.order.ready import is_over, too_much
from services.queue.machine.overflow import OverflowPolicy
from services.queue.machine.ring import Ring


class Room:
    """Of one queue; `count` messages and `size` bytes of bodies are reserved.

    `claiming`: some of what waits is a client's, and is not found yet: nothing goes for being too much.
    """

    __slots__ = ("_entries", "claiming", "count", "policy", "size")

    def __init__(self, entries: Entries, policy: OverflowPolicy) -> None:
        self._entries = entries
        self.policy = policy
        self.claiming = False
        self.count = 0
        self.size = 0

    @property
    def passes_on(self) -> bool:
        """Whether what does not come in is a dead letter."""
        return self.policy.dead_letters_refused and self._entries.options.dead_letter_exchange is not None

    def admits(self, sizes: Sequence[int], *, letters: bool = False) -> int:
        """How many of the newcomers with bodies of these sizes come in; whether they are dead `letters`."""
        its, count, size = self._entries, self.count, self.size
        # Its letters may stay for ever, and are in it as long. But they may want to come back to it, or letters of a
        # queue to which they want to: both would wait for the other.
        if its.options.keeps_unroutable and not letters:
            count, size = count + its.holding.letters, size + its.holding.letter_bytes
        return self.policy.admits(its.options, its.count + count, its.size + size, sizes)

    def reserve(self, count: int, size: int) -> bool:
        """As Queue.reserve says."""
        # Of equal sizes, which is all that a sum allows to say.
        if self._entries.options.limited and self.admits([-(-size // count)] * count) < count:
            return False
        self.count += count
        self.size += size
        return True

    def unreserve(self, count: int, size: int) -> None:
        """As Queue.unreserve says."""
        self.count -= count
        self.size -= size

    @property
    def is_over(self) -> bool:
        """Whether `trim` has something to do."""
        its = self._entries
        if self.claiming:
            return False
        if its.ring is not None:
            return its.ring.counting or (its.ring.is_over(its.options) and not its.ring.full)
        return its.options.limited and self.policy.drops_head and is_over(its, its.options)

    def trim(self, now: int) -> None:
        """Drops from the head what is too much, as much as goes in one turn: the clock goes on with it."""
        its = self._entries
        if self.claiming:
            return
        if its.ring is not None:
            its.ring.count()
            self._drop_round(its.ring)
        elif (
            its.options.limited and self.policy.drops_head and its.ranked() and (dropped := too_much(its, its.options))
        ):
            its.discard(dropped, MAXLEN, now)

    def _drop_round(self, ring: Ring) -> None:
        """What others hold goes as well, but not what a transaction has: that may be gone already."""
        its, gone = self._entries, list[Entry]()
        if not ring.is_over(its.options):
            return
        for entry in ring.first(its.position - 1, turn.AT_ONCE):
            held = its.unsettled.get(entry.message.uid)
            if held is not None and isinstance(held.holder, Undecided):
                continue
            ring.left([entry])
            gone.append(its.take_out(entry))
            if not ring.is_over(its.options):
                break
        its.drop(gone, MAXLEN)
        ring.full = not gone
