"""Group commit: all work that waits when a commit starts is written as one, and answered when it is on disk.

One loop prepares and writes, so nothing that decides about writes (epochs, live counts, outcomes, versions) can change
between the decision and the disk. A group that cannot be written is tried again, the same, until it can: a provider
that is full or broken makes everybody wait, and loses nothing.

So that it does not get full, messages for which there is no room wait before they are part of a group, and with them
what their writer has sent after them: it may refer to them. What frees room goes ahead of it, and leases, records and
other writers go on. Consumers may acknowledge for hours meanwhile: work of which nothing is left but its turn is kept
with the one before it, and not looked at until that one has its own.
"""

from __future__ import annotations

import asyncio
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
from services.store.running import RunningTime

RETRY_SECONDS = 0.25


class Work(Protocol):
    """Something that writes."""

    def prepare(self, draft: Draft) -> None:
        """Decides and puts what it writes into the group. Called once, in the order of submission; may not wait."""

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
    followers: list[tuple[int, Work]]  # of its writer, directly behind it, with their numbers

    @property
    def all(self) -> list[tuple[int, Work]]:
        """What has its turn together."""
        return [(self.number, self.work), *self.followers]


class _Line:
    """What waits of one writer, while a group is put together."""

    __slots__ = ("_last", "held")

    def __init__(self) -> None:
        self.held: set[int] = set()  # entry batches
        self._last: _Submitted | None = None

    def keeps(self, each: _Submitted, ahead: Work | None) -> bool:
        """False where nothing of it has to be looked at before the one in front has its turn."""
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
    """As it was submitted: followers come together with what they were behind."""
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
        running: RunningTime,
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
        self._held = False  # what waits, for room
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

        `weight`: bytes of messages in it; `moot` tells whether it would write none of them any more, by what has been
        decided meanwhile. Work of one `writer` keeps its order, and of none (0) as far as it weighs nothing.

        `ahead` gives what can be written of it while it waits: `work` itself when that is all, and has no weight. It is
        asked again and again, and given the entry batches that wait before it with the same writer, to which it adds
        its own. It is not asked any more when `turn` gives what stands for `work` from then on: nothing else can go
        ahead.
        """
        self._count += 1
        self._waiting.append(_Submitted(work, weight, writer, moot, ahead, turn, self._count, []))
        self._wake.set()

    async def run(self) -> None:
        """Commits for ever."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(RETRY_SECONDS if self._held else None):
                    await self._wake.wait()
            self._wake.clear()
            # One turn of the loop: what arrived in the same turn joins the group.
            await asyncio.sleep(0)
            await self.commit_waiting()

    async def commit_waiting(self) -> None:
        """Commits what waits now, as far as there is room for it, as one group; returns when that is durable."""
        group = self._take()
        if not group:
            return
        draft, start, began = Draft(self._live, self._running.look()), epoch_ns(), monotonic()
        for work in group:
            work.prepare(draft)
        if changes := draft.finish():
            changes.running = self._running.to_keep()
            # Counted now: what is written is the provider's to change.
            messages = sum(row.total for row in changes.entries.values()) if draft.traced else 0
            writing = epoch_ns()
            await self._write(changes)
            self._times.committed(len(group), monotonic() - began)
            if draft.traced:
                self._spans.committed(draft.traced, messages, start, writing)
        for work in group:
            work.written()

    def _take(self) -> list[Work]:
        """What fits, in the order of submission; of a writer behind what does not, what can go ahead."""
        submitted, self._waiting = self._waiting, []
        room = self._disk.room_for_messages() if submitted else None
        if room is None:
            return _in_order([one for each in submitted for one in each.all])
        taken: list[tuple[int, Work]] = []
        lines: dict[int, _Line] = {}
        for each in submitted:
            fits = each.weight <= room
            if each.writer not in lines and (fits or each.moot()):
                room -= each.weight if fits else 0
                taken += each.all
                continue
            line = lines.setdefault(each.writer, _Line()) if each.writer else _Line()
            ahead = each.ahead(line.held)
            if ahead is not None:
                taken.append((each.number, ahead))
            if line.keeps(each, ahead):
                self._waiting.append(each)
        self._hold(min((each.weight for each in self._waiting if each.weight), default=0))
        return _in_order(taken)

    def _hold(self, weight: int) -> None:
        if self._held or weight:
            self._held = bool(weight)
            self._disk.hold(weight)

    async def _write(self, changes: Changes) -> None:
        while True:
            try:
                await self._provider.commit(changes)
            except Exception as failure:  # noqa: BLE001 - whatever it is, an answer now would be a lie
                self._disk.failed(failure)
                self._times.failures += 1
                await asyncio.sleep(RETRY_SECONDS)
            else:
                self._disk.wrote()
                return
