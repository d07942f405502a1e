"""Which messages a partition has taken that their publisher (a gateway) may resend.

A publisher resends, under the same uids, what it has had no answer for: when a stream breaks, or when a partition has
another owner. The owner by then must take each message that was not taken, for each queue, and none that was. What was
taken is known exactly, queue by queue and uid by uid, until the publisher has heard the answer; no order is inferred,
since resent batches are split by partition, and refused messages come late.

In memory is all that was taken and whose answer is not heard of. On disk a message is known by its entry; if it may
have left its queue, its uid is written beside the dequeue. What former owners took, and what came on links that are
gone, is kept until the publisher has resent everything, and has heard the answer to that.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from services.common.message.indexes import pick
from services.common.topology.slots import SlotId, slots_in
from services.common.uid import origin_of
from services.rpc.store_pb2 import TakenColumns

Span = tuple[SlotId, int, int]  # queue id, uid of the first message, how many that follow one another
Part = tuple[int, int]  # index of the first, and behind the last

_NEVER: Final = 1 << 63  # above all uids
_FLOOR_SECONDS: Final = 1.0  # between writes of a floor, which bounds what the next owner reads; one that lags is safe
# The most publishers for which something is kept from before. A live publisher has sent something lately, and resends
# soon: the publisher that has been silent longest is forgotten first, however old it is itself.
_FORMERS: Final = 64


class Taken:
    """Messages of one publisher that were taken; it has not heard the answer yet.

    `parts` are queue ids, and the indexes in `uids` of the messages that each took.
    """

    __slots__ = ("_lowest", "batches", "origin", "parts", "uids")

    def __init__(self, origin: int, uids: Sequence[int]) -> None:
        self.origin = origin
        self.uids = uids
        self.parts: list[tuple[SlotId, Sequence[int]]] = []
        self.batches: list[int] = []  # of the journal, where it has entries
        self._lowest = 0

    @property
    def lowest(self) -> int:
        """The lowest uid that was taken; 0 when none was."""
        return self._lowest if self.parts else 0

    def add(self, queue_id: SlotId, indexes: Sequence[int]) -> bool:
        """A queue took the messages at these ascending indexes; whether the first is lower than all before."""
        lowest = self.uids[indexes[0]]
        is_lower = not self.parts or lowest < self._lowest
        if is_lower:
            self._lowest = lowest
        self.parts.append((queue_id, indexes))
        return is_lower

    def spans(self) -> Iterator[Span]:
        """The ranges of uids that each queue took."""
        for queue_id, indexes in self.parts:
            yield from _spans_of(queue_id, pick(self.uids, indexes))


class Departure(NamedTuple):
    """Uids of dequeued entries that `origin` may resend: written with the dequeue."""

    origin: int
    upto: int
    columns: TakenColumns


class _Former:
    """What former owners took from a publisher, and what came on links before its present one."""

    def __init__(self, floor: int = _NEVER) -> None:
        self.floor = floor
        self.taken: dict[Taken, None] = {}
        self.spans: list[Span] = []


class Known:
    """What one partition has taken that may be resent."""

    def __init__(self) -> None:
        self._taken: dict[int, dict[Taken, None]] = {}  # by origin, in the order of arrival
        self._former: dict[int, _Former] = {}  # by origin, the one that has been silent longest first
        self._batches: dict[int, list[tuple[Taken, Iterable[tuple[SlotId, int, int, int]]]]] = {}  # of the journal
        self._index: dict[SlotId, set[int]] | None = None  # queue → uids, while messages are resent
        self._latest: dict[int, int] = {}  # origin → highest first uid of a batch so far …
        self._mixed: set[int] = set()  # … and origins of which a batch with a lower one came later
        self._written: dict[int, tuple[int, float]] = {}  # origin → floor, and when it was written (s)

    # -------------------------------------------------------------- taken, heard

    def add(self, taken: Taken) -> None:
        """Keeps what queues take of it from now on, until its publisher has heard the answer."""
        self._taken.setdefault(taken.origin, {})[taken] = None

    def took(self, taken: Taken, queue_id: SlotId, indexes: Sequence[int]) -> None:
        """A queue has taken some of it."""
        if taken.add(queue_id, indexes):
            self._note_order(taken.origin, taken.lowest)
        if self._index is not None:
            self._index.setdefault(queue_id, set()).update(pick(taken.uids, indexes))

    def _note_order(self, origin: int, uid: int) -> None:
        if uid < self._latest.get(origin, 0):
            self._mixed.add(origin)
        else:
            self._latest[origin] = uid

    def journalled(self, batch: int, taken: Taken, runs: Iterable[tuple[SlotId, int, int, int]]) -> None:
        """An entry batch of the journal holds some of it, in runs as in an EntryDraft."""
        taken.batches.append(batch)
        self._batches[batch] = [(taken, runs)]

    def not_safe(self, taken: Taken) -> None:
        """The messages may be lost: they count as new if they are resent, and are there twice at worst."""
        self._forget_batches((taken,))
        taken.parts.clear()
        self._index = None

    def heard(self, taken: Taken) -> None:
        """The publisher has heard the answer: it does not resend these."""
        if self._forget(taken):
            self._forget_batches((taken,))
            self._forget_index(taken)

    def link_ended(self, taken: Taken) -> None:
        """The link is gone before the answer was heard: the batch may be resent on another link."""
        if self._forget(taken):
            former = self._former.get(taken.origin) or _Former()
            former.taken[taken] = None
            self._keep(taken.origin, former)

    def nothing_comes(self) -> None:
        """Nothing is being resent at present: a link has ended, or has resent everything."""
        self._index = None

    def _forget_index(self, taken: Taken) -> None:
        if self._index is not None:
            for queue_id, first, count in taken.spans():
                self._index[queue_id].difference_update(range(first, first + count))

    def _keep(self, origin: int, former: _Former) -> None:
        self._former.pop(origin, None)
        self._former[origin] = former
        if len(self._former) > _FORMERS:
            self.sent_again(next(iter(self._former)))

    def _forget(self, taken: Taken) -> bool:
        mine = self._taken.get(taken.origin, {})
        if taken not in mine:
            return False
        del mine[taken]
        if not mine:
            del self._taken[taken.origin]
            self._mixed.discard(taken.origin)
        return True

    def _forget_batches(self, some: Iterable[Taken]) -> None:
        for taken in some:
            for batch in taken.batches:
                self._batches.pop(batch, None)

    def sent_again(self, origin: int) -> None:
        """A publisher has resent everything from before, and heard the answer."""
        if former := self._former.pop(origin, None):
            self._forget_batches(former.taken)
        self.nothing_comes()

    # -------------------------------------------------------------- what is resent

    def split(self, queue_id: SlotId, uids: Sequence[int]) -> tuple[list[Part], list[Part]]:
        """Splits messages resent for a queue: those that it has not taken, and those that it has."""
        known = self._indexed().get(queue_id, frozenset())
        if known.isdisjoint(uids) and len(set(uids)) == len(uids):
            return [(0, len(uids))], []
        new: list[Part] = []
        old: list[Part] = []
        # One may be resent twice in a batch: it was refused, and the answer to the rest of its batch was lost.
        before: set[int] = set()
        for index, uid in enumerate(uids):
            parts = old if uid in known or uid in before else new
            before.add(uid)
            if parts and parts[-1][1] == index:
                parts[-1] = parts[-1][0], index + 1
            else:
                parts.append((index, index + 1))
        return new, old

    def _indexed(self) -> Mapping[SlotId, AbstractSet[int]]:
        if self._index is None:
            self._index = {}
            for queue_id, first, count in self.spans():
                self._index.setdefault(queue_id, set()).update(range(first, first + count))
        return self._index

    def spans(self) -> Iterator[Span]:
        """All ranges that may be resent, some perhaps twice."""
        for origin in self.origins():
            yield from self._spans_of(origin)

    def _spans_of(self, origin: int) -> Iterator[Span]:
        for taken in self._all_of(origin):
            yield from taken.spans()
        if former := self._former.get(origin):
            yield from former.spans

    def _all_of(self, origin: int) -> Iterator[Taken]:
        yield from self._taken.get(origin, ())
        if former := self._former.get(origin):
            yield from former.taken

    # -------------------------------------------------------------- what is written of it

    def origins(self) -> list[int]:
        """Publishers that may resend something."""
        return list(dict.fromkeys([*self._taken, *self._former]))

    def floor(self, origin: int) -> int:
        """The publisher has heard the answers to everything below this uid."""
        if origin in self._mixed or origin in self._former:
            former = self._former.get(origin)
            lowest = min((taken.lowest for taken in self._all_of(origin)), default=_NEVER - 1)
            return min(lowest, former.floor) if former else lowest
        return next((taken.lowest for taken in self._taken.get(origin, ())), _NEVER - 1)

    def floor_due(self, origin: int, now: float) -> int | None:
        """The floor when it has to be written: the first one, a lower one, or after some time (`now` in seconds)."""
        floor = self.floor(origin)
        written, at = self._written.get(origin, (_NEVER, 0.0))
        if written <= floor and now - at < _FLOOR_SECONDS:
            return None
        self._written.pop(origin, None)
        self._written[origin] = floor, now
        if len(self._written) > _FORMERS:
            del self._written[next(iter(self._written))]
        return floor

    def floors_lost(self) -> None:
        """Floors that were given out may not have been written."""
        self._written.clear()

    def departing(self, batch: int, *, again: bool = False) -> Iterator[Departure]:
        """What has to be written when entries of a batch are dequeued: once, or with `again` also the next time."""
        found = self._batches.get(batch) if again else self._batches.pop(batch, None)
        for taken, runs in found or ():
            yield _departure(taken.origin, spans(taken.uids, [(run[0], run[1], run[2]) for run in runs]))

    def handed_over(self) -> Iterator[Departure]:
        """All that the next owner has to know, in place of all that was written so far."""
        for origin in self.origins():
            if some := list(_merged(self._spans_of(origin))):
                yield _departure(origin, some)

    # -------------------------------------------------------------- from a former owner

    def recover_floor(self, origin: int, uid: int) -> None:
        """A floor from disk: `origin` has heard the answers below `uid`. Floors come first, longest unchanged first."""
        self._keep(origin, _Former(uid))

    def recover_taken(self, origin: int, columns: TakenColumns) -> None:
        """From disk: messages that may have left their queues."""
        if former := self._former.get(origin):
            former.spans += zip(slots_in(columns.queue_id), columns.first, columns.count, strict=True)

    def recover_batch(
        self, batch: int, runs: Iterable[tuple[SlotId, int, int]], uids: Sequence[int], *, handed_over: bool
    ) -> None:
        """An entry batch of the journal: runs of messages with `uids`, of several publishers if it was handed over."""
        by_origin: dict[int, Taken] = {}
        for queue_id, first, count in runs:
            if handed_over:
                self._recover_each(by_origin, queue_id, range(first, first + count), uids)
            else:
                self._recover_run(by_origin, queue_id, first, first + count, uids)
        for origin, taken in by_origin.items():
            taken.batches.append(batch)
            self._former[origin].taken[taken] = None
            its = [(queue_id, indexes[0], len(indexes), 0) for queue_id, indexes in taken.parts]
            self._batches.setdefault(batch, []).append((taken, its))

    def _recover_run(
        self, by_origin: dict[int, Taken], queue_id: SlotId, first: int, end: int, uids: Sequence[int]
    ) -> None:
        """Reads a run of one publisher, with ascending uids."""
        start = bisect_left(uids, self._floor_of(uids[first]), first, end)
        if start < end:
            origin = origin_of(uids[first])
            _append(by_origin.setdefault(origin, Taken(origin, uids)), queue_id, range(start, end))

    def _recover_each(
        self, by_origin: dict[int, Taken], queue_id: SlotId, indexes: Iterable[int], uids: Sequence[int]
    ) -> None:
        for index in indexes:
            uid = uids[index]
            if uid >= self._floor_of(uid):
                origin = origin_of(uid)
                _append(by_origin.setdefault(origin, Taken(origin, uids)), queue_id, range(index, index + 1))

    def _floor_of(self, uid: int) -> int:
        former = self._former.get(origin_of(uid))
        return former.floor if former else _NEVER


def spans(uids: Sequence[int], runs: Iterable[tuple[SlotId, int, int]]) -> Iterator[Span]:
    """Runs of indexes (queue id, first, count) as ranges of uids."""
    for queue_id, first, count in runs:
        yield from _spans_of(queue_id, uids[first : first + count])


def _spans_of(queue_id: SlotId, uids: Sequence[int]) -> Iterator[Span]:
    if uids[-1] - uids[0] == len(uids) - 1:  # they ascend
        yield queue_id, uids[0], len(uids)
    else:
        yield from _split(queue_id, uids)


def _split(queue_id: SlotId, uids: Sequence[int]) -> Iterator[Span]:
    first = uids[0]
    last = first - 1
    for uid in uids:
        if uid != last + 1:
            yield queue_id, first, last - first + 1
            first = uid
        last = uid
    yield queue_id, first, last - first + 1


def _merged(some: Iterable[Span]) -> Iterator[Span]:
    """Each message once."""
    ordered = sorted(some)
    queue_id, first, count = ordered[0] if ordered else (SlotId(0), 0, 0)
    for each, start, length in ordered[1:]:
        if each == queue_id and start <= first + count:
            count = max(count, start + length - first)
        else:
            yield queue_id, first, count
            queue_id, first, count = each, start, length
    if count:
        yield queue_id, first, count


def _append(taken: Taken, queue_id: SlotId, indexes: range) -> None:
    uids, (last, before) = taken.uids, taken.parts[-1] if taken.parts else (0, range(0))
    goes_on = last == queue_id and isinstance(before, range) and before.stop == indexes.start
    if goes_on and uids[indexes.start - 1] + 1 == uids[indexes.start]:
        taken.parts[-1] = queue_id, range(before[0], indexes.stop)
    else:
        taken.add(queue_id, indexes)


def _departure(origin: int, some: Iterable[Span]) -> Departure:
    queue_ids, firsts, counts = zip(*some, strict=True)
    upto = max(first + count - 1 for first, count in zip(firsts, counts, strict=True))
    return Departure(origin, upto, TakenColumns(queue_id=queue_ids, first=firsts, count=counts))
