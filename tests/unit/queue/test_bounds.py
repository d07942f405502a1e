"""What a queue process holds is bounded, and so is what it sends to the store."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.common.clients import store_journal
from services.common.streams import client_call
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House, RawLink


def full(link: RawLink) -> tuple[bool, list[int]] | None:
    """What a link was told last: whether everything is full, and which queues are."""
    told = [frame.blocked for frame in link.frames if frame.HasField("blocked")]
    return (told[-1].everywhere, list(told[-1].queue_ids)) if told else None


async def test_memory_bound(tmp_path: Path) -> None:
    """Above the limit publishers are told to wait, newcomers too; below 80 % they may go on."""
    house = House(tmp_path, queue_memory=1 << 20)
    await house.start()
    try:
        queue_id = await house.declare("q")
        link = await house.link()
        await link.publish(queue_id, [bytes(1 << 19)] * 3)
        await link.until(lambda: full(link) == (True, []))
        newcomer = await house.link(origin=1001)
        await newcomer.until(lambda: full(newcomer) == (True, []))
        await link.request(1, purge=pb.PurgeRequest(queue_id=queue_id))
        await link.until(lambda: full(link) == (False, []))
    finally:
        await house.stop()


async def test_only_what_is_full_is_told_to_be(tmp_path: Path) -> None:
    """A queue without consumers is full when memory is; others of the process are not, until they grow as well."""
    house = House(tmp_path, queue_memory=1 << 20)
    await house.start()
    try:
        stuck, other = await house.declare("stuck"), await house.declare("other")
        link = await house.link()
        await link.publish(other, [bytes(1 << 10)])
        await link.publish(stuck, [bytes(1 << 19)] * 2)
        await link.until(lambda: full(link) == (False, [stuck]))
        await link.publish(other, [bytes(3 << 16)])
        await link.until(lambda: full(link) in [(False, [stuck, other]), (False, [other, stuck])])
        await link.publish(other, [bytes(1 << 17)])
        await link.until(lambda: full(link) == (True, []))
        await link.request(1, purge=pb.PurgeRequest(queue_id=stuck))
        await link.until(lambda: full(link) == (False, []))
    finally:
        await house.stop()


async def test_an_open_transaction_takes_memory(house: House) -> None:
    """What a transaction brought counts until it is decided, and only once when it is committed."""
    queue_id = await house.declare("q")
    link, account = await house.link(), house.queues["queue-1"]._host.account
    for step in (pb.TransactionStep.ABORT, pb.TransactionStep.COMPLETE):
        await link.send(publishes=[link.batch(queue_id, [bytes(1 << 20)], transaction=5)])
        await link.until(lambda: account.used > 3 << 20)
        await link.send(transactions=[pb.TransactionStep(transaction=5)])
        await link.send(transactions=[pb.TransactionStep(transaction=5, step=step)])
        await link.until(lambda: account.used < 3 << 20)
    assert 1 << 20 < account.used < 2 << 20
    await link.request(1, purge=pb.PurgeRequest(queue_id=queue_id))
    assert account.used == 0


async def test_a_large_transaction_is_staged_in_parts(house: House) -> None:
    """A transaction of more than a frame is as many frames as it takes, and the store commits all of them or none."""
    queue_ids = [await house.declare(f"q{number}", durable=True) for number in range(3)]
    link = await house.link()
    store = house.queues["queue-1"]._store
    for number in (77, 78):
        for queue_id in queue_ids:
            await link.send(publishes=[link.batch(queue_id, [bytes(3 << 20)], transaction=number, persistent=True)])
        await link.send(transactions=[pb.TransactionStep(transaction=number)])
        await link.until(lambda number=number: any(p.transaction == number for f in link.frames for p in f.prepared))
    prepared = [p for f in link.frames for p in f.prepared]
    assert [p.parts for p in prepared] == [3, 3]
    assert (await store.commit_transaction(77, 3)).committed
    assert not (await store.commit_transaction(78, 2)).committed
    for number, step in ((77, pb.TransactionStep.COMPLETE), (78, pb.TransactionStep.ABORT)):
        await link.send(transactions=[pb.TransactionStep(transaction=number, step=step)])
    await house.queues.pop("queue-1").stop()
    await house.start_queue("queue-1")
    again = await house.link(origin=1001)
    assert [await again.ready(queue_id, queue_id) for queue_id in queue_ids] == [1, 1, 1]


async def test_what_is_aborted_leaves_the_store(house: House) -> None:
    """The parts of an aborted transaction are not kept for the hour that its outcome is."""
    queue_id = await house.declare("q", durable=True)
    link = await house.link()
    raw = link.batch(queue_id, [b"1"], transaction=77, persistent=True)
    await link.send(publishes=[raw], transactions=[pb.TransactionStep(transaction=77)])
    await link.until(lambda: any(f.prepared for f in link.frames))
    staged = house.store._engine.transactions._staged
    assert list(staged) == [77]
    await link.send(transactions=[pb.TransactionStep(transaction=77, step=pb.TransactionStep.ABORT)])
    await link.until(lambda: not staged)


async def test_a_journal_frame_that_is_not_taken(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A publisher, or a transaction, whose frame no channel carries is refused, and does not wait for ever."""
    limit = 8 << 10
    body = bytes(limit - 70)  # the link carries it, a journal frame of it is a little larger
    monkeypatch.setattr(store_journal, "MAX_FRAME", limit)
    monkeypatch.setattr(client_call, "LARGEST_MESSAGE", limit)
    queue_id = await house.declare("q", durable=True)
    await house.start_queue("queue-2")
    await house.queues.pop("queue-1").stop()
    link = await house.link("queue-2")
    await link.publish(queue_id, [body], persistent=True)
    assert link.refusals() == [(0, 1, pb.OTHER)]
    raw = link.batch(queue_id, [body], transaction=77, persistent=True)
    await link.send(publishes=[raw])
    await link.send(transactions=[pb.TransactionStep(transaction=77)])
    await link.until(lambda: any(f.prepared for f in link.frames))
    assert [p.reason for f in link.frames for p in f.prepared] == [pb.OTHER]
    await link.publish(queue_id, [b"small"], persistent=True)
    assert len(link.refusals()) == 1
