"""What a partition knows of messages that their publisher may send again.

A publisher sends again, under the same uids, what it has had no answer for: when a stream breaks, when a partition has
another owner. Whoever owns the partition by then must take each message that was not taken, on each queue, and none
that was. It is known exactly, queue by queue and uid by uid, until the publisher has heard the answer; no order is
inferred, since what comes again is split by partition, and what was refused comes late.

In memory there is all that was taken and is not heard of. On disk a message is known by its entry; what may have left
its queue is written down beside the dequeue. What former owners took, and links that are gone, is kept until the
publisher has sent everything again, and has heard the answer to that.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from services.common.message.indexes import pick
from services.common.uid import origin_of
from services.rpc.store_pb2 import TakenColumns

Span = tuple[int, int, int]  # queue id, uid of the first message, how many that follow one another
Part = tuple[int, int]  # index of the first, and behind the last

_NEVER: Final = 1 << 63  # above all uids
_FLOOR_SECONDS: Final = 1.0  # a floor bounds what the next owner has to know; what is below it by then is no fault
# Publishers at most of which something is kept from before. Who lives has said something lately, and says soon what
# comes again: those are forgotten first that nothing was heard of for longest, however old they are themselves.
_FORMERS: Final = 64


class Taken:
    """Messages of one publisher, of which it has not heard that they were taken.

    `parts` are queue ids, and the indexes in `uids` of what each took.
    """

    __slots__ = ("_lowest", "batches", "origin", "parts", "uids")

    def __init__(self, origin: int, uids: Sequence[int]) -> None:
        self.origin = origin
        self.uids = uids
        self.parts: list[tuple[int, Sequence[int]]] = []
        self.batches: list[int] = []  # of the journal, where it has entries
        self._lowest = 0

    @property
    def lowest(self) -> int:
        """The lowest uid that was taken; 0 when none was."""
        return self._lowest if self.parts else 0

    def add(self, queue_id: int, indexes: Sequence[int]) -> bool:
        """A queue has what ascends from the first of these; whether that is lower than all before."""
        lowest = self.uids[indexes[0]]
        is_lower = not self.parts or lowest < self._lowest
        if is_lower:
            self._lowest = lowest
        self.parts.append((queue_id, indexes))
        return is_lower

    def spans(self) -> Iterator[Span]:
        """Which queue took what."""
        for queue_id, indexes in self.parts:
            yield from _spans_of(queue_id, pick(self.uids, indexes))


class Departure(NamedTuple):
    """To be written before entries go that it speaks of: what `origin` may send again."""

    origin: int
    upto: int
    columns: TakenColumns


class _Former:
    """What a publisher had from owners before this one, and on links before its present one."""

    def __init__(self, floor: int = _NEVER) -> None:
        self.floor = floor
        self.taken: dict[Taken, None] = {}
        self.spans: list[Span] = []


class Known:
    """Of one partition."""

    def __init__(self) -> None:
        self._taken: dict[int, dict[Taken, None]] = {}  # by origin, in the order of arrival
        self._former: dict[int, _Former] = {}  # by origin, in the order in which something was heard of them last
        self._batches: dict[int, list[tuple[Taken, Iterable[tuple[int, int, int, int]]]]] = {}  # of the journal
        self._index: dict[int, set[int]] | None = None  # queue → uids, while something comes again
        self._latest: dict[int, int] = {}  # origin → first uid of the batch that came last …
        self._mixed: set[int] = set()  # … and origins of which a lower one came behind a higher one
        self._written: dict[int, tuple[int, float]] = {}  # origin → floor, and when it was written (s)

    # -------------------------------------------------------------- taken, heard

    def add(self, taken: Taken) -> None:
        """What queues take of it from now on is known, until that was heard."""
        self._taken.setdefault(taken.origin, {})[taken] = None

    def took(self, taken: Taken, queue_id: int, indexes: Sequence[int]) -> None:
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

    def journalled(self, batch: int, taken: Taken, runs: Iterable[tuple[int, int, int, int]]) -> None:
        """An entry batch has some of it, in runs as an EntryDraft has them."""
        taken.batches.append(batch)
        self._batches[batch] = [(taken, runs)]

    def not_safe(self, taken: Taken) -> None:
        """It may not be where it was taken to: it is new when it comes again, and there twice at worst."""
        self._forget_batches((taken,))
        taken.parts.clear()
        self._index = None

    def heard(self, taken: Taken) -> None:
        """The publisher knows: it does not come again."""
        if self._forget(taken):
            self._forget_batches((taken,))
            self._forget_index(taken)

    def link_ended(self, taken: Taken) -> None:
        """The answer may not have been heard, and will not be: it may come again on another link."""
        if self._forget(taken):
            former = self._former.get(taken.origin) or _Former()
            former.taken[taken] = None
            self._keep(taken.origin, former)

    def nothing_comes(self) -> None:
        """For now: a link has ended, or has sent all of it again."""
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
        """A publisher has sent all of that again, and heard the answer."""
        if former := self._former.pop(origin, None):
            self._forget_batches(former.taken)
        self.nothing_comes()

    # -------------------------------------------------------------- what comes again

    def split(self, queue_id: int, uids: Sequence[int]) -> tuple[list[Part], list[Part]]:
        """Of what comes again for a queue: what it has not taken, and what it has."""
        known = self._indexed().get(queue_id, frozenset())
        if known.isdisjoint(uids) and len(set(uids)) == len(uids):
            return [(0, len(uids))], []
        new: list[Part] = []
        old: list[Part] = []
        # One may be there twice: refused to its publisher, who did not hear that all else of the batch was done.
        before: set[int] = set()
        for index, uid in enumerate(uids):
            parts = old if uid in known or uid in before else new
            before.add(uid)
            if parts and parts[-1][1] == index:
                parts[-1] = parts[-1][0], index + 1
            else:
                parts.append((index, index + 1))
        return new, old

    def _indexed(self) -> Mapping[int, AbstractSet[int]]:
        if self._index is None:
            self._index = {}
            for queue_id, first, count in self.spans():
                self._index.setdefault(queue_id, set()).update(range(first, first + count))
        return self._index

    def spans(self) -> Iterator[Span]:
        """All of it, some perhaps twice."""
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
        """Publishers that may send something again."""
        return list(dict.fromkeys([*self._taken, *self._former]))

    def floor(self, origin: int) -> int:
        """Of what was taken from a publisher, it has heard of everything below this uid."""
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
        """What was to be written was not."""
        self._written.clear()

    def departing(self, batch: int, *, again: bool = False) -> Iterator[Departure]:
        """Entries of a batch go: what has to be written of it, once, or `again` next time."""
        found = self._batches.get(batch) if again else self._batches.pop(batch, None)
        for taken, runs in found or ():
            yield _departure(taken.origin, spans(taken.uids, [(run[0], run[1], run[2]) for run in runs]))

    def handed_over(self) -> Iterator[Departure]:
        """All of it, for the next owner, in place of all that was written so far."""
        for origin in self.origins():
            if some := list(_merged(self._spans_of(origin))):
                yield _departure(origin, some)

    # -------------------------------------------------------------- from a former owner

    def recover_floor(self, origin: int, uid: int) -> None:
        """First of all, and those that are longest unchanged first: what is below `uid` was heard by its publisher."""
        self._keep(origin, _Former(uid))

    def recover_taken(self, origin: int, columns: TakenColumns) -> None:
        """What may have left its queue."""
        if former := self._former.get(origin):
            former.spans += zip(columns.queue_id, columns.first, columns.count, strict=True)

    def recover_batch(
        self, batch: int, runs: Iterable[tuple[int, int, int]], uids: Sequence[int], *, handed_over: bool
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
        self, by_origin: dict[int, Taken], queue_id: int, first: int, end: int, uids: Sequence[int]
    ) -> None:
        """Of one publisher, whose uids ascend."""
        start = bisect_left(uids, self._floor_of(uids[first]), first, end)
        if start < end:
            origin = origin_of(uids[first])
            _append(by_origin.setdefault(origin, Taken(origin, uids)), queue_id, range(start, end))

    def _recover_each(
        self, by_origin: dict[int, Taken], queue_id: int, indexes: Iterable[int], uids: Sequence[int]
    ) -> None:
        for index in indexes:
            uid = uids[index]
            if uid >= self._floor_of(uid):
                origin = origin_of(uid)
                _append(by_origin.setdefault(origin, Taken(origin, uids)), queue_id, range(index, index + 1))

    def _floor_of(self, uid: int) -> int:
        former = self._former.get(origin_of(uid))
        return former.floor if former else _NEVER


def spans(uids: Sequence[int], runs: Iterable[tuple[int, int, int]]) -> Iterator[Span]:
    """Runs of indexes (queue id, first, count) as ranges of uids."""
    for queue_id, first, count in runs:
        yield from _spans_of(queue_id, uids[first : first + count])


def _spans_of(queue_id: int, uids: Sequence[int]) -> Iterator[Span]:
    if uids[-1] - uids[0] == len(uids) - 1:  # they ascend
        yield queue_id, uids[0], len(uids)
    else:
        yield from _split(queue_id, uids)


def _split(queue_id: int, uids: Sequence[int]) -> Iterator[Span]:
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
    queue_id, first, count = ordered[0] if ordered else (0, 0, 0)
    for each, start, length in ordered[1:]:
        if each == queue_id and start <= first + count:
            count = max(count, start + length - first)
        else:
            yield queue_id, first, count
            queue_id, first, count = each, start, length
    if count:
        yield queue_id, first, count


def _append(taken: Taken, queue_id: int, indexes: range) -> None:
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
