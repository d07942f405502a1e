"""Messages that may not be delivered yet: they stand aside until their time has come, and hold nobody up.

A queue that holds (Broker-J's `holdOnPublishEnabled`), or lets time pass before a retry, has this. They are its
messages like others: they count, expire, are purged, and are there for the next owner, who knows their times by their
facts, and those of retries by notes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from services.queue.machine import turn
from services.queue.machine.by_time import ByTime
from services.queue.machine.entry import ACQUIRED, ASIDE, BACK_ASIDE, GONE, STANDING_ASIDE, Entry
from services.queue.machine.features.keeper import Keeper
from services.queue.machine.features.let_go import LetGo
from services.queue.machine.features.retries import Retries
from services.queue.machine.message import Holding


class Aside(ByTime):
    """Those of one queue; `count`, and `size` of their bodies."""

    __slots__ = ("_by_rank", "_by_uid", "_holding", "_let_go", "_rank", "_retries", "_unranked", "count", "size")

    def __init__(
        self, holding: Holding, rank: Callable[[Entry], Any] | None, retries: Retries, let_go: LetGo | None
    ) -> None:
        """`holding`: what their queue keeps; `rank`: their places in its order, if `oldest` is to be asked.

        `retries` and `let_go` tell the next owner of them; nothing is let go where none waits from the beginning.
        """
        super().__init__(STANDING_ASIDE)
        self._holding = holding
        self._retries = retries
        self._let_go = let_go
        self._rank = rank
        self._by_rank = ByTime(STANDING_ASIDE)
        self._unranked: list[Entry] = []
        self._by_uid: dict[int, Entry] | None = None  # those that stood here when somebody asked, until the clock looks
        self.count = 0
        self.size = 0

    def __iter__(self) -> Iterator[Entry]:
        return (entry for entry in self._known if entry.state in STANDING_ASIDE)

    def known(self) -> dict[Entry, None]:
        """Those, as `__iter__` gives them, and perhaps some that have left."""
        return dict.fromkeys(self._known)

    def ranked(self, rank: Callable[[Entry], Any]) -> None:
        """From now on `oldest` is to be asked, by these places, once `rank_some` says so."""
        if self._rank is None:
            self._rank = rank
            self._unranked = list(self._known)

    def rank_some(self) -> bool:
        """Looks at more of those that stood here before that, as goes in one turn; whether `oldest` knows all."""
        if some := self._unranked[-turn.SCATTERED :]:
            del self._unranked[-len(some) :]
            waiting = (
                [(self._rank(entry), entry) for entry in some if entry.state in STANDING_ASIDE] if self._rank else []
            )
            self._by_rank.put(waiting, self.count, self._holding.size)
        return not self._unranked

    def keepers(self) -> Iterator[Keeper]:
        """Who tells the next owner."""
        yield self._retries
        if self._let_go is not None:
            yield self._let_go

    def keep(self, entries: Iterable[Entry], now: int) -> list[Entry]:
        """Takes those whose time has not come. Gives the others."""
        timed = [(entry.message.facts.not_before or 0, entry) for entry in entries]
        self.set([(time, entry) for time, entry in timed if time > now])
        if self.count and self._let_go is not None:
            some_due = any(0 < time <= now for time, _ in timed)
            self._let_go.until(now) if some_due else self._let_go.some_wait(now)
        return [entry for time, entry in timed if time <= now]

    def keep_back(self, entries: Iterable[Entry], now: int) -> list[Entry]:
        """Takes those that a former owner had wait for a retry until later. Gives the others."""
        timed = [(self._retries.until(entry), entry) for entry in entries]
        self.set([(time, entry) for time, entry in timed if time > now], BACK_ASIDE)
        ready = [entry for time, entry in timed if time <= now]
        self._retries.left(ready)
        return ready

    def set(self, early: list[tuple[int, Entry]], state: int = ASIDE) -> None:
        """Takes all of these, until their times; `state` is BACK_ASIDE of what came back."""
        for _, entry in early:
            entry.state = state
            self.count += 1
            self.size += len(entry.message.body)
        if state == BACK_ASIDE:
            self._retries.wait(early)
        self.put(early, self.count, self._holding.size)
        if rank := self._rank:
            self._by_rank.put([(rank(entry), entry) for _, entry in early], self.count, self._holding.size)
        self._by_uid = None

    def release(self, now: int) -> list[Entry]:
        """Those whose time has come, as many as go in one turn; they are to have their places in the list."""
        due = self.due(now)
        for entry in due:
            self._left(entry, ASIDE if entry.state == ASIDE else ACQUIRED)  # as the list tells what it has had
        if due and self.count and self._let_go is not None:
            self._let_go.until(now)
        self.gone(due)
        return due

    def gone(self, entries: Iterable[Entry]) -> None:
        """They do not stand here, or not any more, whether they did or not: nobody need be told when their time is."""
        self._retries.left(entries)
        if not self.count and self._let_go is not None:
            self._let_go.all()

    def is_due(self, now: int) -> bool:
        """Whether the time of some may have come."""
        return 0 < self.next <= now

    def look(self) -> int:
        """When there is something to do next, or 0."""
        self._by_uid = None
        unswept = [each.tidy(self.count, self._holding.size) for each in (self, self._by_rank)]
        return self.next if self.rank_some() and not any(unswept) else 1

    def withdraw(self, entry: Entry) -> Entry:
        """Takes out one of them."""
        self._left(entry, ACQUIRED)
        return entry

    def acquire(self, uids: Iterable[int]) -> list[Entry]:
        """Takes out those of these messages. Many may ask for some one after the other, when their owner is new."""
        if not self.count:
            return []
        if self._by_uid is None:
            self._by_uid = {entry.message.uid: entry for entry in self}
        get = self._by_uid.get
        found = [self.withdraw(each) for uid in uids if (each := get(uid)) is not None and each.state in STANDING_ASIDE]
        self.gone(found)
        return found

    def take_before(self, position: int, most: int) -> list[Entry]:
        """Takes out some of those that stand before a position, so many at most."""
        return [
            self.withdraw(entry) for entry in list(islice((each for each in self if each.position < position), most))
        ]

    def oldest(self) -> Entry | None:
        """The first of them in the order of their queue; stays where it is."""
        return self._by_rank.first()

    def clear(self) -> list[Entry]:
        """Takes out all of them, in the order in which they came."""
        entries = sorted(self, key=lambda entry: entry.position)
        for entry in entries:
            self._left(entry, GONE)
        self.forget()
        self._by_rank.forget()
        self._unranked = []
        self._by_uid = None
        return entries

    def _left(self, entry: Entry, state: int) -> None:
        entry.state = state
        self.count -= 1
        self.size -= len(entry.message.body)
