"""The entries of a queue in their order, and views on them.

Consumers that may take any entry share the list's front: what is taken is unlinked at once, so no garbage is left
behind it. An entry that comes back has its old position and is kept, sorted, beside the chain: usually before it all.
It is sorted in when one is to leave: a great deal may come back one by one, and to find its place each time takes long.
A browser has a view of its own that remembers the position it has seen and follows the chain from there.
Behind the chain messages may wait in parcels, which are unpacked one at a time as somebody comes to look at them.
What is taken out of the middle leaves an empty place, which is closed some time soon: who links to it is not known.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Iterator
from operator import attrgetter

from services.queue.machine import turn
from services.queue.machine.entry import ACQUIRED, AVAILABLE, GONE, Entry
from services.queue.machine.order.chain_steps import ChainSteps
from services.queue.machine.order.parcel import Bundle, Parcel
from services.queue.machine.order.ready import Arriving
from services.queue.machine.order.sorted_front import SortedFront

_SEARCH = 16  # entries that are looked at, about, to find the place of one among many
_FEW = 64  # for each the list moves in memory: more take longer than to sort it
_STEPS = 8  # along the chain, for each that leaves an empty place: these are a seventh of those that wait, or less
_UNPACKED = 2  # messages, for each that leaves a parcel
_BUNDLE = 512  # entries: no more come to such a one
_ROW = 4096  # places that are looked at together, of those that came back …
_EMPTY = 512  # … when so many more are empty


def _descending(entry: Entry) -> int:
    return -entry.position


class EntryList(Arriving):
    """Available entries in order of position. `count` and `size` (bytes of bodies) are of those that are available."""

    __slots__ = (
        "_back", "_closing", "_empty", "_head", "_loose", "_parcels", "_returned", "_row", "_tail", "count", "size",
    )  # fmt: skip

    takes_parcels = True

    def __init__(self) -> None:
        self._head: Entry | None = None
        self._tail: Entry | None = None
        self._returned: list[Entry] = []  # lowest position last, where taking it is cheap
        self._parcels = deque[Parcel | Bundle]()  # behind the chain
        self._back: list[Entry] = []  # what has come back since; lowest position last, the others in any order
        self._closing: Entry | None = None  # in the chain; behind it empty places are looked for
        self._loose = 0  # messages of parcels that may be unpacked for what has left them
        self._empty = self._row = 0  # places that became empty among what came back, and where to look for them
        self.count = 0
        self.size = 0

    def extend(self, entries: Iterable[Entry], size: int) -> None:
        """Appends new entries, whose positions are higher than all before; `size` is that of their bodies."""
        if self._parcels:
            self.count += self._bundle(entries)
        else:
            self.count += self._append(entries)
        self.size += size

    def _bundle(self, entries: Iterable[Entry]) -> int:
        last = self._parcels[-1]
        if isinstance(last, Bundle) and len(last) < _BUNDLE:
            return last.add(entries)
        bundle = Bundle(entries)
        self._parcels.append(bundle)
        return len(bundle)

    def _append(self, entries: Iterable[Entry]) -> int:
        tail, count = self._tail, 0
        for entry in entries:
            if tail is None:
                self._head = entry
            else:
                tail.next = entry
            tail = entry
            count += 1
        self._tail = tail
        return count

    def wait(self, parcel: Parcel, size: int) -> None:
        """As Ready says."""
        self._parcels.append(parcel)
        self.count += len(parcel)
        self.size += size

    def parcel(self) -> Parcel | None:
        """As Ready says."""
        if not self._parcels or self._head or self._returned or self._back:
            return None
        first = self._parcels[0]
        return first if isinstance(first, Parcel) else None

    def taken_from(self, parcel: Parcel, end: int, size: int) -> None:
        """As Ready says."""
        self.count -= end - parcel.first
        self.size -= size
        parcel.taken(end, size)
        if not len(parcel):
            self._parcels.popleft()

    def take_parcels(self) -> list[Parcel]:
        """As Ready says."""
        parcels = [each for each in self._parcels if isinstance(each, Parcel)]
        self._parcels = deque(each for each in self._parcels if isinstance(each, Bundle))
        self.count -= sum(map(len, parcels))
        return parcels

    @property
    def packed(self) -> bool:
        """Whether something waits behind the chain."""
        return bool(self._parcels)

    def unpacked(self) -> Entry | None:
        """The first entry of the next parcel, whose messages are in the chain from now on; None where there is none."""
        while self._parcels:
            if entries := self._parcels.popleft().entries():
                self._append(entries)
                return entries[0]
        return None

    def put_back(self, entries: list[Entry]) -> None:
        """Makes acquired entries available again, at their places."""
        back = self._back
        for entry in entries:
            entry.state = AVAILABLE
            self.size += len(entry.message.body)
            if back and back[-1].position < entry.position:
                back.append(back[-1])
                back[-2] = entry
            else:
                back.append(entry)
        self.count += len(entries)

    def _sort_in(self) -> None:
        """What has come back to its place: few find it one by one, many are sorted with the others."""
        if not self._back:
            return
        back, self._back = self._back, []
        if len(back) < _FEW and _SEARCH * len(back) < len(self._returned):
            for entry in back:
                insort(self._returned, entry, key=_descending)
        else:
            self._returned.extend(back)
            self._returned.sort(key=attrgetter("position"), reverse=True)

    def peek(self) -> Entry | None:
        """The first available entry; stays where it is."""
        first = self._head or self.unpacked()
        while first is not None and first.state != AVAILABLE:
            first = self._unlink(first) or self.unpacked()
        while self._returned and self._returned[-1].state != AVAILABLE:
            self._returned.pop()
        for some in (self._returned, self._back):
            if some and (first is None or some[-1].position < first.position):
                first = some[-1]
        return first

    def pop(self) -> Entry | None:
        """Acquires the first available entry and takes it out."""
        self._sort_in()
        entry = self.peek()
        if entry is None:
            return None
        if entry is self._head:
            self._unlink(entry)
        else:
            self._returned.pop()
        self._acquired(entry)
        return entry

    def take(self, limit: int, size: int, now: int, expired: list[Entry]) -> list[Entry]:
        """Acquires entries until there are `limit` or they weigh `size`; `expired` gets those past their time.

        These come and go without end: when they are a turn's work, there is no more in this one.
        """
        taken: list[Entry] = []
        self._sort_in()
        while self._returned and len(taken) < limit and size > 0 and (entry := self.pop()) is not None:
            if entry.expires and entry.expires <= now:
                expired.append(entry)
                if len(expired) >= turn.AT_ONCE:
                    return taken
            else:
                taken.append(entry)
                size -= entry.message.weight
        if not self._returned:
            while (left := limit - len(taken)) > 0 and (self._head or self.unpacked()):
                had = len(taken)
                self._take_chain(left, size, now, taken, expired)
                size -= sum(entry.message.weight for entry in taken[had:]) if self._parcels else 0
                if not self._parcels or size <= 0 or len(expired) >= turn.AT_ONCE:
                    break
        return taken

    def _take_chain(self, limit: int, size: int, now: int, taken: list[Entry], expired: list[Entry]) -> None:
        """The hot loop of `take`, for when nothing has come back and the chain alone decides."""
        entry, left, bodies, count, end = self._head, size, 0, 0, len(taken) + limit
        while entry is not None and len(taken) < end and left > 0:
            following = entry.next
            # A browser that stood here finds its way by position; a link would keep what follows in memory.
            entry.next = None
            if entry.state == AVAILABLE:
                entry.state = ACQUIRED
                count += 1
                message = entry.message
                body = len(message.body)
                bodies += body
                if entry.expires and entry.expires <= now:
                    expired.append(entry)
                    if len(expired) >= turn.AT_ONCE:
                        end = 0
                else:
                    taken.append(entry)
                    left -= body + len(message.properties)
            entry = following
        self._head = entry
        if entry is None:
            self._tail = None
        self.count -= count
        self.size -= bodies

    def acquire(self, uids: set[int]) -> list[Entry]:
        """Acquires the available entries of these messages wherever they stand, and takes them out."""
        self._sort_in()
        found = [entry for entry in self._returned if entry.state == AVAILABLE and entry.message.uid in uids]
        for entry in found:
            self._acquired(entry)
        if found:
            self._returned = [entry for entry in self._returned if entry.state == AVAILABLE]
        found += self._take_out(uids, len(uids) - len(found))
        if self._parcels and len(found) < len(uids):
            found += self._take_packed(uids)
        found.sort(key=attrgetter("position"))
        return found

    def take_before(self, position: int, most: int) -> list[Entry]:
        """As Ready says."""
        taken: list[Entry] = []
        while len(taken) < most and (head := self.peek()) is not None and head.position < position:
            self.pop()
            taken.append(head)
        return taken

    def withdraw(self, entry: Entry) -> Entry:
        """As Ready says."""
        self._sort_in()
        self.count -= 1
        self.size -= len(entry.message.body)
        taken, in_chain = entry.taken_out(), entry.next is not None or entry is self._tail
        if in_chain:
            self._close_chain()
        else:
            self._close_returned()
            self._unpack_some()
        return taken

    def _unpack_some(self) -> None:
        """For each that may have left a parcel: what is in the chain leaves no empty places for long.

        What leaves a parcel is past its time, and nothing is packed any more where some messages have one.
        """
        self._loose = self._loose + _UNPACKED if self._parcels else 0
        while self._parcels and len(self._parcels[0]) <= self._loose:
            self._loose -= len(self._parcels[0])
            self.unpacked()

    def _close_chain(self) -> None:
        """Looks for empty places a few steps further."""
        # What has left the chain since links to nothing.
        before = self._closing if self._closing and self._closing.next else self._head
        for _ in range(_STEPS):
            if before is None or (entry := before.next) is None:
                break
            if entry.state == AVAILABLE:
                before = entry
            else:
                self._unlink_after(before, entry)
        self._closing = before

    def _close_returned(self) -> None:
        self._empty += 1
        if self._empty < _EMPTY:
            return
        self._empty = 0
        some = [entry for entry in self._returned[self._row : self._row + _ROW] if entry.state == AVAILABLE]
        self._returned[self._row : self._row + _ROW] = some
        self._row = self._row + len(some) if self._row + len(some) < len(self._returned) else 0

    def _take_out(self, uids: set[int], most: int) -> list[Entry]:
        """From the chain. What stayed in it would be there twice once it had come back."""
        taken: list[Entry] = []
        before, entry = None, self._head
        while entry is not None and len(taken) < most:
            following = entry.next
            if entry.state == AVAILABLE and entry.message.uid in uids:
                taken.append(entry)
                self._acquired(entry)
                self._unlink_after(before, entry)
            else:
                before = entry
            entry = following
        return taken

    def _take_packed(self, uids: set[int]) -> list[Entry]:
        """Out of parcels: the others wait as they came."""
        taken: list[Entry] = []
        for at, parcel in enumerate(list(self._parcels)):
            if not uids.isdisjoint(parcel.uids):
                bundle = self._parcels[at] = Bundle(parcel.entries())
                taken += bundle.take_out(uids)
        for entry in taken:
            self._acquired(entry)
        return taken

    def clear(self) -> list[Entry]:
        """Takes everything out, in order."""
        entries = list(self.view(-1))
        for entry in entries:
            entry.state = GONE
            entry.next = None
        self._head = self._tail = None
        self._returned = []
        self._closing = None
        self.count = self.size = 0
        return entries

    def view(self, seen: int) -> Iterator[Entry]:
        """Available entries with positions above `seen`, in order. Ends when the list is changed under it."""
        self._sort_in()
        returned = self._returned
        index = bisect_left(returned, -seen, key=_descending) - 1
        entry = self._head or self.unpacked()
        while entry is not None or index >= 0:
            if index >= 0 and (entry is None or returned[index].position < entry.position):
                candidate = returned[index]
                index -= 1
            else:
                assert entry is not None
                candidate, entry = entry, entry.next or self.unpacked()
            if candidate.state == AVAILABLE and candidate.position > seen:
                yield candidate

    def steps(self, seen: int | None, before: int) -> ChainSteps:
        """As Ready says."""
        return ChainSteps(self, self._sorted_back, seen, before)

    @property
    def head(self) -> Entry | None:
        """The first of the chain, whatever has become of it."""
        return self._head

    @property
    def tail(self) -> Entry | None:
        """The last of it."""
        return self._tail

    def has_in_chain(self, entry: Entry) -> bool:
        """Whether what follows it in the chain is found by it: what has left links to nothing."""
        return entry.next is not None or entry is self._tail

    def _sorted_back(self) -> list[Entry]:
        self._sort_in()
        return self._returned

    def rank(self, entry: Entry) -> int:
        """As Ready says."""
        return entry.position

    worth = rank

    def selectable(self) -> SortedFront:
        """As Ready says."""
        return SortedFront(self)

    def _acquired(self, entry: Entry) -> None:
        entry.state = ACQUIRED
        self.count -= 1
        self.size -= len(entry.message.body)

    def _unlink_after(self, before: Entry | None, entry: Entry) -> None:
        if before is None:
            self._unlink(entry)
            return
        before.next, entry.next = entry.next, None
        if before.next is None:
            self._tail = before

    def _unlink(self, head: Entry) -> Entry | None:
        self._head = head.next
        head.next = None
        if self._head is None:
            self._tail = None
        return self._head
