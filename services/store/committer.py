"""Group commit: all work that waits when a commit starts is written as one, and answered when it is on disk.

One loop prepares and writes, so nothing that decides about writes (epochs, live counts, outcomes, versions) can change
between the decision and the disk. A group that cannot be written is tried again unchanged until it can: a provider that
is full or broken makes all writers wait, and loses nothing.

So that the provider does not get full, messages for which there is no room wait before they are part of a group, and so
does what their writer has sent after them: it may refer to them. Changes that free room go ahead, and leases, records
and other writers go on. Consumers may acknowledge for hours meanwhile: work that has gone ahead, and needs only its
turn, is kept with the work before it, and not looked at until that has its turn.

What has gathered while the provider was away is written in groups of a bounded size: a database takes no statement of
any size, and a group that it does not take would be tried for ever.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from operator import itemgetter
from typing import NamedTuple, Protocol

from services.common.clock import epoch_ns, monotonic
from services.store.commit_spans import CommitSpans
from services.store.commit_times import CommitTimes
from services.store.disk import Disk
from services.store.draft import Draft
from services.store.live import Live
from services.store.provider import Changes, Provider
from services.store.running import Time

RETRY_SECONDS = 0.25
GROUP_BYTES = 64 << 20
"""Of messages: with so many a group is full; its last frame may go beyond. PostgreSQL takes less than 1 GiB at once."""


class Work(Protocol):
    """A unit of work that writes, such as a frame, an acquisition of leases, a record."""

    def prepare(self, draft: Draft) -> None:
        """Decides, and adds what it writes to the group. Called once, in the order of submission; may not wait."""

    def written(self) -> None:
        """The group is durable. Called for all work of a group, in the same order."""


class _Submitted(NamedTuple):
    work: Work
    weight: int
    writer: int
    moot: Callable[[], bool]
    ahead: Callable[[set[int]], Work | None]
    turn: Callable[[], Work | None]
    number: int  # in the order of submission
    followers: list[tuple[int, Work]]  # work of the same writer directly behind it, with its numbers

    @property
    def all(self) -> list[tuple[int, Work]]:
        """The work and its followers, which have their turn together."""
        return [(self.number, self.work), *self.followers]


class _Line:
    """The waiting work of one writer, while a group is being made."""

    __slots__ = ("_last", "held")

    def __init__(self) -> None:
        self.held: set[int] = set()  # entry batches
        self._last: _Submitted | None = None

    def keeps(self, each: _Submitted, ahead: Work | None) -> bool:
        """False where the work need not be looked at before the work in front of it has its turn."""
        if self._last is None or not (ahead is each.work or self._follows(self._last, each)):
            self._last = each
            return True
        self._last.followers.extend(each.followers)
        return False

    def _follows(self, last: _Submitted, each: _Submitted) -> bool:
        turn = None if each.weight else each.turn()
        if turn is not None:
            last.followers.append((each.number, turn))
        return turn is not None


def _in_order(taken: list[tuple[int, Work]]) -> list[Work]:
    """The work in the order of submission: followers come in together with the work that they follow."""
    return [work for _, work in sorted(taken, key=itemgetter(0))]


def _never() -> bool:
    return False


def _nothing(_held: set[int] | None = None) -> None:
    return None


class Committer:
    """Takes work from everywhere in the store, gives it to the provider group by group."""

    def __init__(
        self,
        provider: Provider,
        disk: Disk,
        live: Live,
        running: Time,
        spans: CommitSpans | None = None,
        times: CommitTimes | None = None,
    ) -> None:
        self._provider = provider
        self._disk = disk
        self._live = live
        self._running = running
        self._spans = spans or CommitSpans()
        self._times = times or CommitTimes()
        self._waiting: list[_Submitted] = []
        self._count = 0  # of all that was submitted
        self._held = False  # whether work waits for room
        self._wake = asyncio.Event()

    def submit(
        self,
        work: Work,
        weight: int = 0,
        writer: int = 0,
        moot: Callable[[], bool] = _never,
        ahead: Callable[[set[int]], Work | None] = _nothing,
        turn: Callable[[], Work | None] = _nothing,
    ) -> None:
        """Queues `work` for the next group that has room for it.

        `weight`: bytes of messages in it; `moot` tells whether it would not write them any more, because of decisions
        meanwhile. Work of one `writer` keeps its order; work without a writer (0) does so as far as it has no weight.

        `ahead` gives the part that can be written while `work` waits, or `work` itself if that is all and has no
        weight. It is called again and again, with the entry batches that wait before it with the same writer, to which
        it adds its own. When nothing more can go ahead `turn` gives what takes the place of `work`, and `ahead` is not
        called any more.
        """
        self._count += 1
        self._waiting.append(_Submitted(work, weight, writer, moot, ahead, turn, self._count, []))
        self._wake.set()

    async def run(self) -> None:
        """Commits for ever."""
        while True:
            # This task comes a turn after what wakes it: all that arrived in the same turn joins the group.
            await self._woken()
            self._wake.clear()
            await self.commit_waiting()

    async def _woken(self) -> None:
        if not self._held:
            await self._wake.wait()
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(RETRY_SECONDS):
                await self._wake.wait()

    async def commit_waiting(self) -> None:
        """Commits the work that waits, as far as there is room for it, as one group; returns when it is durable."""
        group, left = self._take()
        if not group:
            return
        draft, start, began = Draft(self._live, self._running.look(), left), epoch_ns(), monotonic()
        for work in group:
            work.prepare(draft)
        if changes := draft.finish():
            changes.running = self._running.to_keep()
            # Counted now: the provider may change what it is given.
            messages = sum(row.total for row in changes.entries.values()) if draft.traced else 0
            writing = epoch_ns()
            await self._write(changes)
            self._times.committed(len(group), monotonic() - began)
            if draft.traced:
                self._spans.committed(draft.traced, messages, start, writing)
        try:
            for work in group:
                work.written()
        finally:
            if changes:  # those who wait run first: asking how much room there is takes its time
                asyncio.get_running_loop().call_soon(self._disk.wrote)

    def _take(self) -> tuple[list[Work], float]:
        """The work that fits, in the order of submission; of writers whose work does not fit, what can go ahead.

        And for how many bytes of messages there is room besides.
        """
        submitted, self._waiting = self._waiting, []
        room, size, later = self._room(submitted), 0, len(submitted)
        taken: list[tuple[int, Work]] = []
        lines: dict[int, _Line] = {}
        for index, each in enumerate(submitted):
            if size >= GROUP_BYTES:
                later = index
                break
            fits = size + each.weight <= room
            if each.writer not in lines and (fits or each.moot()):
                size += each.weight if fits else 0
                taken += each.all
                continue
            line = lines.setdefault(each.writer, _Line()) if each.writer else _Line()
            ahead = each.ahead(line.held)
            if ahead is not None:
                taken.append((each.number, ahead))
            if line.keeps(each, ahead):
                self._waiting.append(each)
        self._hold(min((each.weight for each in self._waiting if each.weight), default=0))
        self._leave(submitted[later:])
        return _in_order(taken), min(room, GROUP_BYTES) - size

    def _room(self, submitted: list[_Submitted]) -> float:
        """Not asked where nothing brings messages: configuration and leases have the reserve."""
        messages = any(each.weight or each.writer for each in submitted)
        room = self._disk.room_for_messages() if messages else None
        return math.inf if room is None else room

    def _leave(self, later: list[_Submitted]) -> None:
        """For the next group."""
        self._waiting += later
        if later:
            self._wake.set()

    def _hold(self, weight: int) -> None:
        if self._held or weight:
            self._held = bool(weight)
            self._disk.hold(weight)

    async def _write(self, changes: Changes) -> None:
        while True:
            try:
                await self._provider.commit(changes)
            except Exception as failure:  # noqa: BLE001 - whatever it is, it is not written and must not be answered
                self._disk.failed(failure)
                self._times.failures += 1
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return
