"""Records in one provider, and all else in another: configuration may be kept elsewhere than messages.

Leases stay with the messages: one authority decides who may write them, and epochs are there on disk. Each of the two
shuts out other processes by itself. No work of the store writes to both (a record change writes records alone, a frame,
a decision or an acquisition no record), so a crash between the two commits of a group leaves what two groups would have
left. What is moved into a store counts its pieces in a record, so the messages of a group are written first: a record
may never say that they are there when they are not. A group that is tried again goes on with the half that is missing.

Both count the starts of the store, and go on from the greater number: from it come versions of records, and of leases.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from services.common.disk import Room, reserve
from services.common.errors import InternalError, ResourceError
from services.store.moving.mark import Mark
from services.store.provider import (
    Changes,
    Elsewhere,
    LeaseRow,
    LiveRow,
    Occupied,
    OutcomeRow,
    Provider,
    RecordRow,
    RefusalRow,
    Sharing,
    StoredBatch,
    TakenRow,
)
from services.store.providers.apart_halves import Half, Join, by_themselves, in_half, own

_MOMENT_SECONDS = 3.0  # for which a backup may keep commits waiting


class _Part(NamedTuple):
    """What one half has to write of a group, with its mark in it, or without."""

    half: Half
    changes: Changes
    mark: Mark | None = None


class Apart:
    """Two providers as one, which is Parted. Where one of them is Elsewhere it is an `ApartElsewhere`."""

    def __init__(self, messages: Provider, configuration: Provider, join: Join, folder: Path) -> None:
        """`folder`: that of the configuration, inside that of the messages, if it keeps anything in one."""
        self.messages = Half(messages)
        self.configuration = Half(configuration)
        self._join = join
        self._folder = folder
        self._under_way: dict[bool, tuple[Changes, list[_Part]]] = {}  # by whether records are in it

    @property
    def for_one_process(self) -> bool:
        """Whether one of them is."""
        return not all(isinstance(half.provider, Elsewhere) for half in self._both)

    @property
    def _both(self) -> tuple[Half, Half]:
        return self.messages, self.configuration

    async def open(self, *, patient: bool = True) -> None:
        """As Provider says. Raises InternalError where the two do not belong together."""
        if self.configuration.provider.files():
            self._folder.mkdir(mode=0o700, exist_ok=True)
        async with AsyncExitStack() as opened:
            await self.messages.provider.open(patient=patient)
            opened.push_async_callback(self.messages.provider.close)
            await self._open_configuration(patient=patient)
            opened.push_async_callback(self.configuration.provider.close)
            await self._join.check(self.messages.provider, self.configuration.provider)
            opened.pop_all()

    async def _open_configuration(self, *, patient: bool) -> None:
        try:
            await self.configuration.provider.open(patient=patient)
        except Occupied as other:
            same = type(self.configuration.provider) is type(self.messages.provider)
            if same and f"process {os.getpid()} on {socket.gethostname()} " in other.text:
                raise InternalError(self._join.one_place) from other  # it would wait for itself
            raise

    async def close(self) -> None:
        async with AsyncExitStack() as closing:
            for half in self._both:
                closing.push_async_callback(half.provider.close)

    async def commit(self, changes: Changes) -> None:
        """As Provider says, but for a group of both kinds: where one half failed, the other may be written."""
        await self._join.made()
        for part in (parts := self._parts(changes)).copy():
            await self._write(part)
            parts.pop(0)
        self._forget(changes)

    async def _write(self, part: _Part) -> None:
        await part.half.commit(part.changes)
        if part.mark is not None:
            self._join.marked(part.mark)

    def _parts(self, changes: Changes) -> list[_Part]:
        """What is still to be written. The parts of a group stay the same objects: providers know theirs again."""
        kind = bool(changes.records or changes.incarnation)
        if kind not in self._under_way or self._under_way[kind][0] is not changes:
            self._under_way[kind] = changes, self._parted(changes) if kind else [self._of_messages(changes)]
        return self._under_way[kind][1]

    def _parted(self, changes: Changes) -> list[_Part]:
        messages = replace(changes, records={})
        parts = [self._of_messages(messages)] if messages else []
        mark = self._join.next_mark("configuration")
        records = {**in_half(changes.records), **own(mark)}
        here = Changes(at=changes.at, records=records, incarnation=changes.incarnation)
        return [*parts, _Part(self.configuration, here, mark)]

    def _of_messages(self, changes: Changes) -> _Part:
        """A group without records: it has the mark with it where that says something new."""
        if not (changes.origin or self._join.unheard):
            return _Part(self.messages, changes)
        mark = self._join.next_mark("messages")
        return _Part(self.messages, replace(changes, records=own(mark)), mark)

    def _forget(self, changes: Changes) -> None:
        for kind, (group, _) in list(self._under_way.items()):
            if group is changes:
                del self._under_way[kind]

    async def begin_incarnation(self) -> int:
        await self._join.made()
        counts = [await half.provider.begin_incarnation() for half in self._both]
        for half, holds in zip(self._both, ("messages", "configuration"), strict=True):
            mark = self._join.next_mark(holds)
            await self._write(_Part(half, Changes(incarnation=max(counts), records=own(mark)), mark))
        return max(counts)

    async def tidy(self, outcomes_before: int, marks_before: int) -> None:
        for half in self._both:
            await half.provider.tidy(outcomes_before, marks_before)
        # Nobody publishes to the configuration's disk, so the store does not look at it; but a log may fill it.
        room = self.configuration.provider.room()
        if room is not None and room.free < reserve(0, room.total):
            await self.configuration.provider.make_room()

    def room(self) -> Room | None:
        """Of the messages' disk: publishers write to no other."""
        return self.messages.provider.room()

    def trouble_with_records(self) -> str:
        """As Parted says."""
        configuration = self.configuration.provider
        return configuration.trouble() if isinstance(configuration, Elsewhere) else ""

    async def make_room(self) -> None:
        for half in self._both:
            await half.provider.make_room()

    async def live(self) -> list[LiveRow]:
        return await self.messages.provider.live()

    async def floors(self, partition: int) -> list[tuple[int, int]]:
        return await self.messages.provider.floors(partition)

    async def taken(self, partition: int) -> list[TakenRow]:
        return await self.messages.provider.taken(partition)

    async def numbers(self, partitions: Sequence[int]) -> dict[int, list[int]]:
        return await self.messages.provider.numbers(partitions)

    def batches(self, numbers: Sequence[int]) -> AsyncIterator[StoredBatch]:
        return self.messages.provider.batches(numbers)

    async def sharing(self, content: int) -> Sharing | None:
        return await self.messages.provider.sharing(content)

    async def outcomes(self) -> list[OutcomeRow]:
        return await self.messages.provider.outcomes()

    async def writers(self) -> dict[int, int]:
        return await self.messages.provider.writers()

    async def refusals(self) -> list[RefusalRow]:
        return await self.messages.provider.refusals()

    async def leases(self) -> list[LeaseRow]:
        return await self.messages.provider.leases()

    async def last_origin(self) -> int:
        return await self.messages.provider.last_origin()

    async def running(self) -> int:
        return await self.messages.provider.running()

    async def records(self) -> list[RecordRow]:
        return by_themselves(await self.configuration.provider.records())

    async def snapshot(self) -> AsyncGenerator[Changes, None]:
        """As Provider says: both are at one moment, for which commits wait, and not for what is read then.

        Raises ResourceError where one of them cannot be reached for that.
        """
        async with (
            aclosing(self.configuration.provider.snapshot()) as records,
            aclosing(self.messages.provider.snapshot()) as rest,
        ):
            await self._at_one_moment(records, rest)
            yield Changes()
            starts = 0
            async for each in records:
                starts = max(starts, each.incarnation)
                if piece := _records_of(each):
                    yield piece
            async for each in rest:
                if piece := _all_but_records(each, starts):
                    yield piece

    async def _at_one_moment(self, *snapshots: AsyncGenerator[Changes, None]) -> None:
        try:
            async with asyncio.timeout(_MOMENT_SECONDS), self.configuration.turn, self.messages.turn:
                for pieces in snapshots:
                    await anext(pieces)
        except TimeoutError as late:
            away = "configuration and messages could not be held at one moment: is one of their places away?"
            raise ResourceError(f"{away} Do it again when both are written to (`hopline health`)") from late

    async def given(self) -> Changes:
        records, rest = [await half.provider.given() for half in (self.configuration, self.messages)]
        found = {row: value for row, value in records.records.items() if value is not None}
        kept = {(row.kind, row.key): row for row in by_themselves(found.values())}
        return replace(rest, records=dict(kept), incarnation=max(rest.incarnation, records.incarnation))

    def files(self) -> tuple[str, ...]:
        inner = (f"{self._folder.name}/{name}" for name in self.configuration.provider.files())
        return *self.messages.provider.files(), *inner


class ApartElsewhere(Apart):
    """As Elsewhere says, of those of the two that are: what one of them says is said of both."""

    @property
    def _elsewhere(self) -> list[Elsewhere]:
        return [half.provider for half in self._both if isinstance(half.provider, Elsewhere)]

    async def occupied(self) -> str:
        """As Elsewhere says; by a process that writes to either."""
        for each in self._elsewhere:
            if writer := await each.occupied():
                return writer
        return ""

    async def sure(self) -> None:
        """As Elsewhere says, of both."""
        for each in self._elsewhere:
            await each.sure()

    def trouble(self) -> str:
        """As Elsewhere says, of the messages."""
        messages = self.messages.provider
        return messages.trouble() if isinstance(messages, Elsewhere) else ""

    def watch(self, ended: Callable[[BaseException], None]) -> None:
        """As Elsewhere says: neither goes on without the other."""
        for each in self._elsewhere:
            each.watch(ended)


def _records_of(changes: Changes) -> Changes:
    rows = [row for row in changes.records.values() if row is not None]
    return Changes(at=changes.at, records={(row.kind, row.key): row for row in by_themselves(rows)})


def _all_but_records(changes: Changes, starts: int) -> Changes:
    """The last piece counts the starts: one may have been counted by the configuration alone."""
    starts = max(starts, changes.incarnation) if changes.incarnation else 0
    return replace(changes, records={}, incarnation=starts)
