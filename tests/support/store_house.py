"""A store engine that tests drive, with a clock of their own, and frames for its journal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from services.common import plugins
from services.rpc.queue_pb2 import PublishBatch, PublishRun
from services.rpc.store_pb2 import (
    Content,
    Dequeue,
    EntryBatch,
    EntryColumns,
    Fence,
    Floor,
    JournalAck,
    JournalFrame,
    KeepAliveRequest,
    RecoveredBatch,
    RecoverRequest,
)
from services.store.engine import Engine
from services.store.provider import Changes, Provider
from services.store.recovery import recover

TTL_MS = 1000


class Ticking:
    """A clock that stands still until it is told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class House:
    """An engine over one of the providers; `restart` brings it back over what it left."""

    def __init__(
        self,
        provider: str,
        folder: Path,
        create: Callable[[Path], Provider] | None = None,
        *,
        lasting: bool = False,
    ) -> None:
        """`create` makes the provider, if that of the name alone does not; what it made stays in memory, if not
        `lasting`: then another one comes back over it.
        """
        self._name = provider
        self._folder = folder
        self._create = create
        self._lasting = lasting or not (create or provider == "memory")
        self.clock = Ticking()
        self.provider: Any = None
        self.engine: Engine = None  # type: ignore[assignment]
        self.commits: list[Changes] = []
        self.failures: list[BaseException] = []
        self.told: list[tuple[str, str, str, int]] = []
        self._sequence = 0

    async def start(self) -> None:
        if self.provider is None or self._lasting:
            self.provider = (self._create or plugins.load("store_providers", self._name))(self._folder)
            self._count_commits(self.provider)
        self.engine = Engine(self.provider, TTL_MS, self.clock, self.failures.append, self)
        await self.engine.start()

    def publish(self, facts: Any) -> None:
        self.told.append((facts.kind, facts.lease, facts.member, facts.epoch))

    async def stop(self) -> None:
        await self.engine.stop()

    def run(self, seconds: float) -> int:
        """The store runs for so long; gives its running time."""
        running, until = self.engine._running, self.clock.now + seconds
        while self.clock.now < until:
            self.clock.now += min(1.0, until - self.clock.now)
            running.look()
        return running.look()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    def _count_commits(self, provider: Provider) -> None:
        commit = provider.commit

        async def counted(changes: Changes) -> None:
            await commit(changes)
            self.commits.append(changes)

        provider.commit = counted  # type: ignore[method-assign]

    def append(self, frame: JournalFrame, writer: int = 1, sequence: int = 0) -> asyncio.Future[JournalAck]:
        self._sequence += 1
        frame.sequence = sequence or self._sequence
        done: asyncio.Future[JournalAck] = asyncio.get_running_loop().create_future()
        self.engine.journal.append(writer, frame, done.set_result)
        return done

    async def acquire(self, *names: str, member: str = "m1", role: str = "queue", **more: Any) -> dict[str, int]:
        """Lease name → epoch, of what `member` holds afterwards."""
        request = KeepAliveRequest(member=member, role=role, address=f"unix:{member}", acquire=names, **more)
        reply = await self.engine.leases.keep_alive(request)
        return {lease.name: lease.epoch for lease in reply.leases if lease.member == member}

    async def recovered(self, partition: int = 1, fence: Fence | None = None) -> list[RecoveredBatch]:
        """Of `partition`; the first says what may come again."""
        request = RecoverRequest(partition=partition, fence=fence)
        return [batch async for batch in recover(self.engine.provider, self.engine.epochs, request)]

    async def alive(self, partition: int = 1) -> dict[int, list[int]]:
        """Batch → living indexes."""
        return {
            batch.entries.id: sorted(set(range(batch.entries.count)) - set(batch.dequeued))
            for batch in (await self.recovered(partition))[1:]
        }


def content(number: int, count: int, size: int = 10) -> Content:
    """Columns of `count` messages whose bodies tell their position."""
    batch = PublishBatch(
        uids=range(number, number + count),
        bodies=[str(index).encode().ljust(size, b".") for index in range(count)],
        runs=[PublishRun(count=count, queue_ids=[1], persistent=True, shared_properties=b"")],
    )
    return Content(id=number, columns=batch.SerializeToString())


def entries(number: int, count: int, partition: int = 1, of: int = 0) -> EntryBatch:
    """All messages of content `of` (or of the same number) on one queue."""
    columns = EntryColumns(queue_id=[1], first=[0], count=[count])
    return EntryBatch(
        id=number, partition=partition, content=of or number, count=count, entries=columns.SerializeToString()
    )


def enqueue(number: int, count: int, partition: int = 1, fences: Iterable[Fence] = (), **more: Any) -> JournalFrame:
    """`count` messages with uids from `number`, none of which their publisher has heard of."""
    return JournalFrame(
        fences=fences,
        contents=[content(number, count)],
        entries=[entries(number, count, partition)],
        floors=[Floor(partition=partition, origin=7, uid=number)],
        **more,
    )


def dequeue(number: int, *indexes: int, **more: Any) -> JournalFrame:
    return JournalFrame(dequeues=[Dequeue(batch=number, indexes=indexes)], **more)
