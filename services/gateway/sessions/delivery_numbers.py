"""The numbers of a session's deliveries: which link each went by, in whose map it is while it is unsettled.

Links hold what they have not settled; clients settle by numbers of the whole session (0-9-1: delivery tags of a
channel, section 1.8.3.13; 1.0: delivery-ids of a session, 2.6.12). Numbers that went by one link in a row are one run,
so that what there is to look for is a run, not a number.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from services.gateway.sessions.consumer import Consumer, GetHolder

    Holder: TypeAlias = Consumer | GetHolder

_LATE: Final = 1 << 16  # numbers that are remembered
_FEW: Final = 32  # runs that nothing is left of, which may lie about


class Taken(NamedTuple):
    """Deliveries of one link that are unsettled no more."""

    holder: Holder
    numbers: Sequence[int]
    uids: list[int]


@dataclass(slots=True)
class _Run:
    """Numbers `first` to `last`; `left`: how many of them are unsettled."""

    first: int
    last: int
    holder: Holder
    left: int


_FIRST = attrgetter("first")


class DeliveryNumbers:
    """Those of one session. `len`: how many deliveries are unsettled."""

    __slots__ = ("_dead", "_front", "_late", "_runs", "_unsettled", "next")

    def __init__(self) -> None:
        self.next = 1
        self._runs: list[_Run] | tuple[_Run, ...] = ()  # most sessions never have any
        self._front = 0  # those behind this index are ascending; before it nothing is unsettled
        self._dead = 0  # how many have nothing that is unsettled
        self._unsettled = 0
        self._late: AbstractSet[int] = frozenset()  # were kept for too long, and taken away

    def __len__(self) -> int:
        return self._unsettled

    # -------------------------------------------------------------- to the client

    def skip(self, count: int) -> int:
        """Deliveries that are settled when they are sent; gives the number of the first."""
        first, self.next = self.next, self.next + count
        return first

    def add(self, holder: Holder, uids: Sequence[int]) -> int:
        """Deliveries went by a link; gives the number of the first."""
        first = self.skip(count := len(uids))
        holder.unsettled.update(zip(range(first, first + count), uids, strict=True))
        self._unsettled += count
        run = self._runs[-1] if self._runs else None
        if run and run.holder is holder and run.last + 1 == first:
            self._dead -= not run.left
            run.last += count
            run.left += count
        else:
            if self._dead * 2 > len(self._runs) > _FEW:
                self._sweep()
            self._insert(len(self._runs), _Run(first, first + count - 1, holder, count))
        return first

    def _insert(self, at: int, run: _Run) -> None:
        if isinstance(self._runs, list):
            self._runs.insert(at, run)
        else:
            self._runs = [run]

    def _sweep(self) -> None:
        """Drops runs that nothing is left of. They are counted: with each new run, looking would take ever longer."""
        self._runs = [run for run in self._runs if run.left] if self._unsettled else ()
        self._front = self._dead = 0

    # -------------------------------------------------------------- from the client

    def each(self, first: int, last: int) -> tuple[list[Taken], int]:
        """Takes those from `first` to `last`, up to the first that is unknown, which it gives as well, or 0.

        Of those that were taken away meanwhile nothing more can be said.
        """
        found: list[Taken] = []
        number = first
        while number <= last:
            run = self._run_of(number)
            end = min(last, run.last) if run else number
            numbers = range(number, end + 1)
            known = [each for each in numbers if each in run.holder.unsettled] if run else []
            unknown = self._unknown(numbers, known)
            if run and known:
                found.append(self._take(run, [each for each in known if each < unknown] if unknown else known))
            if unknown:
                return found, unknown
            number = end + 1
        return found, 0

    def _unknown(self, numbers: range, known: list[int]) -> int:
        """The first of these that is neither unsettled nor was taken away, or 0."""
        if len(known) == len(numbers):
            return 0
        there = frozenset(known)
        return next((each for each in numbers if each not in there and each not in self._late), 0)

    def up_to(self, last: int) -> tuple[list[Taken], int]:
        """Takes all up to `last`, 0: all; where that is unknown, none, and gives it. Each number is looked at once."""
        if last and not self._is_known(last):
            return [], last
        last = last or self.next - 1
        runs, front = self._runs, self._front
        behind = bisect_right(runs, last, front, key=_FIRST)
        found = [self._take_up_to(run, last) for run in runs[front:behind] if run.left]
        self._front = behind - 1 if behind > front and runs[behind - 1].last > last else behind
        if not self._unsettled or self._dead * 2 > len(runs) > _FEW:
            self._sweep()
        return [each for each in found if each.uids], 0

    def _is_known(self, number: int) -> bool:
        run = self._run_of(number)
        return bool(run and number in run.holder.unsettled) or number in self._late

    def _take_up_to(self, run: _Run, last: int) -> Taken:
        unsettled, first = run.holder.unsettled, run.first
        run.first = last + 1
        if run.last <= last and run.left == run.last + 1 - first:  # all that there is of it: nothing is looked for
            return self._take(run, range(first, run.last + 1))
        return self._take(run, [each for each in range(first, min(last, run.last) + 1) if each in unsettled])

    def _take(self, run: _Run, numbers: Sequence[int]) -> Taken:
        run.left -= len(numbers)
        self._dead += not run.left
        self._unsettled -= len(numbers)
        return Taken(run.holder, numbers, list(map(run.holder.unsettled.pop, numbers)))

    def _run_of(self, number: int) -> _Run | None:
        at = bisect_right(self._runs, number, self._front, key=_FIRST) - 1
        run = self._runs[at] if at >= self._front else None
        return run if run and number <= run.last else None

    # -------------------------------------------------------------- of links

    @property
    def holders(self) -> list[Holder]:
        """Links that have unsettled deliveries, also those that have ended."""
        return list(dict.fromkeys(run.holder for run in self._runs if run.left))

    def take_all(self) -> list[Taken]:
        """Takes all."""
        taken = [Taken(each, [*each.unsettled], [*each.unsettled.values()]) for each in self.holders]
        for each in taken:
            each.holder.unsettled.clear()
        self._unsettled = 0
        self._sweep()
        return taken

    def take_late(self, numbers: Sequence[int]) -> list[int]:
        """Takes what a link has kept for too long; gives the uids. If it is settled later, that is no error."""
        uids = [uid for number in numbers for taken in self.each(number, number)[0] for uid in taken.uids]
        former = self._late if len(self._late) < _LATE else frozenset()
        self._late = former | set(numbers)
        return uids

    def put_back(self, holder: Holder, number: int, uid: int) -> None:
        """One that was taken is unsettled again."""
        holder.unsettled[number] = uid
        self._unsettled += 1
        at = bisect_right(self._runs, number, self._front, key=_FIRST)
        before = self._runs[at - 1] if at > self._front else None
        if before and before.holder is holder and number <= before.last + 1:
            self._dead -= not before.left
            before.last = max(before.last, number)
            before.left += 1
        else:
            self._insert(at, _Run(number, number, holder, 1))

    def __iter__(self) -> Iterator[tuple[Holder, int]]:
        """Each unsettled delivery: its link, its uid."""
        for holder in self.holders:
            for uid in holder.unsettled.values():
                yield holder, uid
