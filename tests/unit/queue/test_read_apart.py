"""What cannot be read back, or is lost meanwhile, of one partition, where several are read together."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from services.common.clients.store import StoreClient
from services.common.errors import Fenced, Unavailable
from services.queue.partitions.partition import Partition, PartitionState
from services.queue.partitions.recovering import read_back
from services.queue.partitions.recovery import Recovery
from services.rpc.queue_pb2 import PublishBatch, PublishRun
from services.rpc.store_pb2 import EntryBatch, EntryColumns, Fence, RecoveredBatch, Taken
from services.store.provider import StoredBatch
from services.store.providers.memory import MemoryProvider
from tests.support.queue_house import House

_QUEUES = [f"q{number}" for number in range(12)]  # in most of the partitions


@pytest.fixture(autouse=True)
def told() -> Iterator[list[Any]]:
    """What the log says."""
    with capture_logs() as logged:
        yield logged


def _failed(told: list[Any]) -> set[str]:
    return {each["what"] for each in told if each["event"] == "failed, and the rest goes on"}


async def _published(house: House, *, together: bool) -> dict[int, int]:
    """Queues that have a message each, the same if `together`, and the partition of each; nobody has them now."""
    queue_ids = [await house.declare(name, durable=True) for name in _QUEUES]
    link = await house.link()
    for some in [queue_ids] if together else [[each] for each in queue_ids]:
        await link.publish(some, [b"odd" if some == queue_ids[:1] else b"m"], persistent=True)
    former = house.queues.pop("queue-1")
    registry = former._partitions._host.registry
    found = {queue_id: registry.partition_of(queue_id).number for queue_id in queue_ids}
    await former.stop()
    return found


async def _have(house: House, queue_ids: Sequence[int]) -> list[int]:
    """Those of the queues that have their message."""
    link, having = await house.link("queue-2", origin=1001), list[int]()
    for number, queue_id in enumerate(queue_ids, start=1):
        having += [queue_id] * (await link.ready(queue_id, number))
    return having


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.01)


async def _all_but(house: House, number: int, mend: Callable[[], None]) -> None:
    """Returns when all partitions are served: `number` only when all others are, and it was mended."""
    starting = asyncio.create_task(house.start_queue("queue-2"))

    def others() -> bool:
        found = getattr(house.queues.get("queue-2"), "_partitions", None)
        held = list(found._host.registry.partitions.values()) if found else []
        return [each.number for each in held if each.state is not PartitionState.SERVING] == [number] and len(held) == 8

    await _until(others)
    mend()
    await starting


async def test_a_content_that_cannot_be_read(house: House, monkeypatch: pytest.MonkeyPatch, told: list[Any]) -> None:
    """It keeps no partition waiting but the one that has it, which is read as soon as that can be."""
    partitions, bad = await _published(house, together=False), True
    whole = MemoryProvider.batches

    async def batches(self: MemoryProvider, numbers: Sequence[int]) -> AsyncIterator[StoredBatch]:
        async for batch in whole(self, numbers):
            if bad and b"odd" in batch.columns:
                raise sqlite3.DatabaseError("database disk image is malformed")
            yield batch

    def mend() -> None:
        nonlocal bad
        bad = False

    monkeypatch.setattr(MemoryProvider, "batches", batches)
    await _all_but(house, next(iter(partitions.values())), mend)
    assert await _have(house, list(partitions)) == list(partitions)
    assert _failed(told) == {"a gRPC call", "taking partitions over"}  # the first is the store's


async def test_one_that_cannot_be_put_in_order(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are served, also those that end behind it; nothing of the attempts stays in the account."""
    partitions, bad = await _published(house, together=False), True
    number, whole = next(iter(partitions.values())), Recovery.in_order
    its = {queue_id for queue_id, of in partitions.items() if of == number}

    def in_order(self: Recovery) -> Any:
        if bad and its & self.entries.keys():
            raise ZeroDivisionError
        return whole(self)

    def mend() -> None:
        nonlocal bad
        bad = False

    monkeypatch.setattr(Recovery, "in_order", in_order)
    await _all_but(house, number, mend)
    assert await _have(house, list(partitions)) == list(partitions)
    queues = house.queues["queue-2"]
    link = house.links[-1]
    for consumer, queue_id in enumerate(partitions, start=1):
        await link.attach(queue_id, consumer, settled=True)
    await _until(lambda: not queues._partitions._host.account.used)


Change = Callable[[RecoveredBatch, Sequence[Fence]], None]


def _changed(monkeypatch: pytest.MonkeyPatch, change: Change) -> None:
    """From now on what is read back is changed."""
    whole = StoreClient.recover

    async def recover(self: StoreClient, fences: Sequence[Fence]) -> AsyncIterator[RecoveredBatch]:
        async for message in whole(self, fences):
            change(message, fences)
            yield message

    monkeypatch.setattr(StoreClient, "recover", recover)


async def test_what_may_be_sent_again(house: House, monkeypatch: pytest.MonkeyPatch, told: list[Any]) -> None:
    """A row that cannot be read is left out, and told; all are served."""
    partitions = await _published(house, together=True)

    def add(message: RecoveredBatch, _: Sequence[Fence]) -> None:
        for number in message.partitions:
            message.taken.add().CopyFrom(Taken(id=1, partition=number, origin=1000, messages=b"\xff"))

    _changed(monkeypatch, add)
    await house.start_queue("queue-2")
    assert await _have(house, list(partitions)) == list(partitions)
    assert _failed(told) == {"reading what may be sent again"}


async def test_a_batch_before_others(house: House, monkeypatch: pytest.MonkeyPatch, told: list[Any]) -> None:
    """One that cannot be read brings what the others are on: of them nothing is left out."""
    partitions, spoilt = await _published(house, together=True), list[int]()

    def spoil(message: RecoveredBatch, _: Sequence[Fence]) -> None:
        for batch in message.batches:
            if batch.columns:
                batch.entries.entries = b"\xff"
                spoilt.append(batch.entries.partition)

    _changed(monkeypatch, spoil)
    await house.start_queue("queue-2")
    [number] = spoilt
    assert await _have(house, list(partitions)) == [each for each, of in partitions.items() if of != number]
    assert _failed(told) == {"reading a batch of the journal"}


@pytest.mark.parametrize("always", [False, True])
async def test_a_content_that_does_not_come(
    house: House, monkeypatch: pytest.MonkeyPatch, told: list[Any], always: bool
) -> None:
    """No message is taken for lost by it: partitions are read by themselves; if it is not on disk, it is left out."""
    partitions = await _published(house, together=False)
    odd = next(iter(partitions))

    def leave_out(message: RecoveredBatch, fences: Sequence[Fence]) -> None:
        for batch in message.batches:
            if b"odd" in batch.columns and (always or len(fences) > 1):
                batch.ClearField("columns")

    _changed(monkeypatch, leave_out)
    await house.start_queue("queue-2")
    assert await _have(house, list(partitions)) == [each for each in partitions if each != odd or not always]
    assert _failed(told) == {"taking partitions over"} | ({"reading a batch of the journal"} if always else set())


async def test_one_that_another_process_has(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the store says of the first it does not say of the others: they are asked for again at once."""
    partitions, asked = await _published(house, together=True), list[list[str]]()
    whole = StoreClient.recover

    async def recover(self: StoreClient, fences: Sequence[Fence]) -> AsyncIterator[RecoveredBatch]:
        asked.append([fence.lease for fence in fences])
        if len(asked) == 1:
            raise Fenced("another has it")
        async for message in whole(self, fences):
            yield message

    monkeypatch.setattr(StoreClient, "recover", recover)
    registry = (await house.start_queue("queue-2"))._partitions._host.registry
    assert len(asked[0]) == 8
    assert asked[1] == asked[0][1:]
    await _until(lambda: asked[2:] == [asked[0][:1]])  # its lease holds after all
    await _until(lambda: len(registry.partitions) == 8)
    assert await _have(house, list(partitions)) == list(partitions)


# ------------------------------------------------------------------ by hand


class _Store:
    """Says what it is given; before each message it does what it has to."""

    def __init__(self, *steps: RecoveredBatch | Callable[[], None]) -> None:
        self.steps = list(steps)

    async def recover(self, _: Sequence[Fence]) -> AsyncIterator[RecoveredBatch]:
        while self.steps:
            step = self.steps.pop(0)
            if isinstance(step, RecoveredBatch):
                yield step
            else:
                step()


def _batch(number: int, partition: Partition) -> RecoveredBatch:
    columns = PublishBatch(uids=[number], bodies=[b"m"], properties=[b""], runs=[PublishRun(count=1)])
    entries = EntryColumns(queue_id=[1], first=[0], count=[1], position=[0]).SerializeToString()
    row = EntryBatch(id=number, partition=partition.number, content=number, count=1, entries=entries)
    return RecoveredBatch(batches=[RecoveredBatch(entries=row, columns=columns.SerializeToString())])


def _recovering(house: House) -> list[Partition]:
    """Two that the process has just got, as far as it knows."""
    held = house.queues["queue-1"]._partitions
    found = [held._new(each.number, each.epoch) for each in list(held._host.registry.partitions.values())[:2]]
    held._host.registry.partitions.update({each.number: each for each in found})
    return found


async def test_those_that_are_lost_meanwhile(house: House) -> None:
    """Nothing more of them is taken, what was is let go at once, and nothing is read when no other is wanted."""
    held = house.queues["queue-1"]._partitions
    one, other = partitions = _recovering(house)
    account, used = held._host.account, list[int]()
    store = _Store(
        RecoveredBatch(partitions=[each.number for each in partitions]),
        _batch(1, one),
        _batch(2, other),
        lambda: used.append(account.used),
        lambda: held._lose(one),
        _batch(3, one),
        lambda: used.append(account.used),
        lambda: held._lose(other),
        _batch(4, one),
        _batch(5, other),
    )
    assert [each async for each in read_back(held._host, store, partitions)] == []
    assert used[0] == 2 * used[1] > 0
    assert account.used == 0
    assert len(store.steps) == 1


async def test_a_stream_that_ends_early(house: House) -> None:
    """Without an error, before a partition has: it is not taken for whole."""
    held = house.queues["queue-1"]._partitions
    partitions = _recovering(house)
    first, (one, other) = RecoveredBatch(partitions=[each.number for each in partitions]), partitions
    last = _batch(2, one)
    last.ended.append(one.number)
    reading = read_back(held._host, _Store(first, _batch(1, other), last), partitions)
    assert (await anext(reading))[0] is one
    with pytest.raises(Unavailable):
        await anext(reading)
    with pytest.raises(Unavailable):
        assert [each async for each in read_back(held._host, _Store(), [other])] == []
    assert set(other.orphans) == set()
