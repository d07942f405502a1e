"""Which bodies are put into memory that the queue process reads."""

from __future__ import annotations

import asyncio
import os

import pytest

from services.common.budget import Budget
from services.common.clients import shared_bodies
from services.common.clients.outbound import Attempt, Delivery, Messages
from services.common.clients.places import CHUNK
from services.common.clients.shared_bodies import SharedBodies
from services.common.clients.shared_memory import HEAD, read
from services.common.errors import InternalError
from services.common.message.facts import Facts
from services.common.topology.slots import SlotId
from services.rpc import queue_pb2 as pb
from tests.support.programs import until

_READS = pb.QueueFrame(reads_memory=True)


def _attempt(*bodies: bytes, persistent: bool = False) -> Attempt:
    count, queue_id, facts = len(bodies), SlotId(1), Facts("/", "", "q", "amqp-0-9", persistent=persistent)
    messages = Messages(range(count), [facts] * count, [b""] * count, bodies, [(queue_id,)] * count, range(count))
    return Attempt(messages, {queue_id: range(count)}, 0, Delivery(None, range(count)), messages.size)


def _shared(room: int = 2 * CHUNK, *, locally: bool = True) -> SharedBodies:
    return SharedBodies(Budget(room), locally=locally)


def _begun() -> tuple[SharedBodies, memoryview]:
    shared = _shared()
    offer = shared.offer()
    assert offer
    shared.hear(_READS)
    return shared, read(offer)


async def test_they_are_there() -> None:
    """Where the batch says, in their order, of all attempts."""
    shared, memory = _begun()
    batches = [pb.PublishBatch(), pb.PublishBatch()]
    assert shared.put(batches[0], [_attempt(b"one", b""), _attempt(b"three")])
    assert shared.put(batches[1], [_attempt(b"four")])
    found = []
    for batch in batches:
        at = batch.shared_at
        for size in batch.shared_sizes:
            found.append(bytes(memory[at : at + size]))
            at += size
    assert found == [b"one", b"", b"three", b"four"]


async def test_nothing_before_it_is_read() -> None:
    """Its reader says so; the memory is offered once."""
    shared = _shared()
    assert shared.offer()
    assert not shared.offer()
    assert not shared.put(pb.PublishBatch(), [_attempt(b"1")])
    shared.hear(_READS)
    assert shared.put(pb.PublishBatch(), [_attempt(b"1")])
    shared.close()


@pytest.mark.parametrize(("room", "locally"), [(2 * CHUNK - 1, True), (2 * CHUNK, False)])
def test_nothing_is_offered(room: int, locally: bool) -> None:
    """To a queue process on another machine, nor without room."""
    assert not _shared(room, locally=locally).offer()


def test_room_that_another_stream_leaves() -> None:
    """The next one has it that sends something large, however long it has been there."""
    room = Budget(2 * CHUNK)
    first, second, third = (SharedBodies(room, locally=True) for _ in range(3))
    assert first.offer()
    assert second.offer()
    assert not third.offer()
    first.close()
    assert third.offer()
    second.close()
    third.close()
    assert not room.used


async def test_what_is_to_be_stored() -> None:
    """It is read at once, so it is not shared."""
    shared, _ = _begun()
    batch = pb.PublishBatch()
    assert not shared.put(batch, [_attempt(b"1"), _attempt(b"2", persistent=True)])
    assert batch == pb.PublishBatch()


async def test_while_there_is_room() -> None:
    """What is released makes some."""
    shared, _ = _begun()
    batches = [pb.PublishBatch() for _ in range(3)]
    half = bytes(CHUNK // 2)
    assert [shared.put(batch, [_attempt(half)]) for batch in batches] == [True, True, False]
    shared.hear(pb.QueueFrame(released=[batch.shared_at for batch in batches[:2]]))
    assert shared.put(batches[2], [_attempt(half, half)])


async def test_messages_without_bodies() -> None:
    """They may be large for their properties: each batch has a place of its own, which is released once."""
    shared, _ = _begun()
    batches = [pb.PublishBatch() for _ in range(2)]
    assert all(shared.put(batch, [_attempt(b"")]) for batch in batches)
    shared.hear(pb.QueueFrame(released=[batch.shared_at for batch in batches]))
    assert shared.put(pb.PublishBatch(), [_attempt(bytes(CHUNK))])


def test_what_was_not_shared_is_not_released() -> None:
    """Who says so is at fault."""
    shared, _ = _begun()
    with pytest.raises(InternalError):
        shared.hear(pb.QueueFrame(released=[9]))


async def test_a_system_without_memory_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bodies go through the socket, and the place is free."""
    shared, _ = _begun()

    def no_more(*_: int) -> None:
        raise OSError("no memory")

    with monkeypatch.context() as context:
        context.setattr(os, "posix_fallocate", no_more)
        assert not shared.put(batch := pb.PublishBatch(), [_attempt(b"1")])
    assert batch == pb.PublishBatch()
    assert shared.put(batch, [_attempt(bytes(CHUNK))])


async def test_another_stream_has_other_memory() -> None:
    """What was shared on one that has ended stays as it is for its reader; its room is free."""
    room = Budget(2 * CHUNK)
    shared = SharedBodies(room, locally=True)
    first = shared.offer()
    assert first
    shared.hear(_READS)
    batch = pb.PublishBatch()
    shared.put(batch, [_attempt(b"first")])
    memory = read(first)
    assert room.used == CHUNK
    shared.close()
    assert room.used == 0
    second = shared.offer()
    assert second
    assert second.token != first.token
    shared.hear(_READS)
    shared.put(pb.PublishBatch(), [_attempt(b"other")])
    assert bytes(memory[batch.shared_at :][:5]) == b"first"
    shared.close()


async def test_memory_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """When nothing was there for a while, and not before; more can be written then."""
    monkeypatch.setattr(shared_bodies, "_QUIET_SECONDS", 0.02)
    shared, memory = _begun()
    number = shared._memory.offer.number if shared._memory else 0
    batch = pb.PublishBatch()
    assert shared.put(batch, [_attempt(b"a body")])
    await asyncio.sleep(0.1)
    assert bytes(memory[batch.shared_at :][:6]) == b"a body"
    shared.hear(pb.QueueFrame(released=[batch.shared_at]))
    await until(lambda: _taken(number) <= HEAD)
    assert shared.put(more := pb.PublishBatch(), [_attempt(bytes(CHUNK - 7), b"another")])
    assert bytes(memory[more.shared_at :][CHUNK - 7 : CHUNK]) == b"another"
    assert _taken(number) >= CHUNK
    shared.close()


def _taken(number: int) -> int:
    """Bytes of memory that a file without a name takes."""
    return os.fstat(number).st_blocks * 512
