"""Transactions that settle what a client had from a former owner, and what its publisher sends again only later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import Mock

import pytest

from services.common.ledger.place import LedgerPlace
from services.common.message import format_named
from services.common.message.amqp_1_0 import added
from services.common.message.amqp_1_0.values import Symbol
from services.rpc import queue_pb2 as pb
from services.rpc.ledger_pb2 import DROPPED
from tests.support.queue_house import House

PREPARE, COMPLETE, ABORT = pb.TransactionStep.PREPARE, pb.TransactionStep.COMPLETE, pb.TransactionStep.ABORT
UID = 1002 << 39 | 1


@pytest.mark.parametrize("step", [COMPLETE, ABORT])
@pytest.mark.parametrize("comes", ["before", "after"])
async def test_the_message_comes(house: House, step: pb.TransactionStep.Step.ValueType, comes: str) -> None:
    """Before the decision or after it: what is committed is done with, else the client has the message as before."""
    queue_id = await house.declare("q", durable=True)
    link, publisher = await house.link(origin=1001), await house.link(origin=1002)
    queue = house.queues["queue-1"]._host.registry.queues[queue_id]
    await link.attach(queue_id, held=[UID], again=True)
    settle = pb.Settle(queue_id=queue_id, uids=[UID], transaction=7)
    await link.send(settles=[settle], transactions=[pb.TransactionStep(transaction=7, step=PREPARE)])
    await link.until(lambda: any(frame.prepared for frame in link.frames))
    if comes == "before":
        await publisher.publish(queue_id, [b"1"], uids=[UID], persistent=True, resent=True)
    await link.send(transactions=[pb.TransactionStep(transaction=7, step=step)])
    await link.until(lambda: any(frame.completed for frame in link.frames))
    if comes == "after":
        await publisher.publish(queue_id, [b"1"], uids=[UID], persistent=True, resent=True)
    assert [entry.message.uid for entry in queue.entries()] == ([] if step == COMPLETE else [UID])
    await link.close()
    await publisher.attach(queue_id)
    if step == ABORT:
        await publisher.until(lambda: publisher.uids == [UID])
    assert await publisher.ready(queue_id, 1) == 0


async def test_the_partition_leaves(house: House) -> None:
    """What is committed after that is told to the gateway, which tells the next owner: all that was said of it."""
    queue_id = await house.declare("q")
    link, host = await house.link(), house.queues["queue-1"]._host
    await link.attach(queue_id, held=[UID], again=True)
    settle = pb.Settle(queue_id=queue_id, uids=[UID], transaction=7, outcome=pb.RELEASE, annotations=b"\xc1\x01\x00")
    settle.consumer, settle.not_again = 1, True
    await link.send(settles=[settle], transactions=[pb.TransactionStep(transaction=7, step=PREPARE)])
    await link.until(lambda: any(frame.prepared for frame in link.frames))
    host.registry.drop(host.registry.partition_of(queue_id))  # type: ignore[arg-type]
    await link.send(transactions=[pb.TransactionStep(transaction=7, step=COMPLETE)])
    await link.until(lambda: [each for frame in link.frames for each in frame.unsettled] == [settle])


@pytest.mark.parametrize("deleted", [False, True])
async def test_what_is_published_when_the_partition_has_left(house: House, *, deleted: bool) -> None:
    """What is not on disk is lost with it, or goes with its queue, and the record says so: it was confirmed."""
    queue_id = await house.declare("q")
    link, host = await house.link(), house.queues["queue-1"]._host
    told, record = list[tuple[int, list[int], str]](), host.recorder.record

    def noted(stage: int, place: LedgerPlace, uids: Sequence[int], **more: Any) -> None:
        told.append((stage, list(uids), more.get("reason", "")))
        record(stage, place, uids, **more)

    queue = host.registry.queues[queue_id]
    queue.record._recorder = Mock(on=True, record=noted)
    step = pb.TransactionStep(transaction=7, step=PREPARE)
    await link.send(publishes=[link.batch(queue_id, [b"1"], uids=[UID], transaction=7)], transactions=[step])
    await link.until(lambda: any(frame.prepared for frame in link.frames))
    if deleted:
        host.registry.delete(host.registry.definitions[queue_id])
    else:
        host.registry.drop(host.registry.partition_of(queue_id))  # type: ignore[arg-type]
    await link.send(transactions=[pb.TransactionStep(transaction=7, step=COMPLETE)])
    await link.until(lambda: any(frame.completed for frame in link.frames))
    assert told == [(DROPPED, [UID], "queue_deleted" if deleted else "no_owner")]


async def test_what_has_come_is_modified(house: House) -> None:
    """As what was there when the transaction took it."""
    queue_id = await house.declare("q", durable=True)
    link, publisher = await house.link(origin=1001), await house.link(origin=1002)
    await link.attach(queue_id, held=[UID], again=True)
    said = added.written({Symbol("why"): "late"})
    settle = pb.Settle(queue_id=queue_id, uids=[UID], transaction=7, outcome=pb.RELEASE, annotations=said, consumer=1)
    await link.send(settles=[settle], transactions=[pb.TransactionStep(transaction=7, step=PREPARE)])
    await publisher.publish(queue_id, [b"1"], uids=[UID], persistent=True, resent=True)
    await link.send(transactions=[pb.TransactionStep(transaction=7, step=COMPLETE)])
    await link.until(lambda: link.uids == [UID])
    headers = format_named("amqp-0-9").headers(link.properties[0])
    assert added.apart(headers).annotations == {"why": "late"}


async def test_what_was_given_back_before_the_partition_left(house: House) -> None:
    """Its gateway is not told to settle it at the next owner: it is another's, or the same one's anew."""
    queue_id = await house.declare("q")
    link, host = await house.link(), house.queues["queue-1"]._host
    await link.publish(queue_id, [b"1", b"2"])
    await link.attach(queue_id, messages=3)
    await link.until(lambda: len(link.uids) == 2)
    first, second = link.uids
    settle = pb.Settle(queue_id=queue_id, uids=[first, second], transaction=7, outcome=pb.RELEASE)
    await link.send(settles=[settle], transactions=[pb.TransactionStep(transaction=7, step=PREPARE)])
    await link.until(lambda: any(frame.prepared for frame in link.frames))
    await link.send(settles=[pb.Settle(queue_id=queue_id, uids=[first], outcome=pb.RELEASE)])
    await link.until(lambda: len(link.uids) == 3)
    host.registry.drop(host.registry.partition_of(queue_id))  # type: ignore[arg-type]
    await link.send(transactions=[pb.TransactionStep(transaction=7, step=COMPLETE)])
    await link.until(lambda: any(frame.unsettled for frame in link.frames))
    assert [list(each.uids) for frame in link.frames for each in frame.unsettled] == [[second]]


@pytest.mark.parametrize("outcome", [pb.RELEASE, pb.ACCEPT])
async def test_what_is_to_come_was_given_back_before_the_partition_left(
    house: House, outcome: pb.Outcome.ValueType
) -> None:
    """The same of what is not there yet; unless it is done with, whoever has it."""
    queue_id = await house.declare("q")
    link, host = await house.link(), house.queues["queue-1"]._host
    await link.attach(queue_id, held=[UID, UID + 1], again=True)
    settle = pb.Settle(queue_id=queue_id, uids=[UID, UID + 1], transaction=7, outcome=outcome)
    await link.send(settles=[settle], transactions=[pb.TransactionStep(transaction=7, step=PREPARE)])
    await link.until(lambda: any(frame.prepared for frame in link.frames))
    await link.send(settles=[pb.Settle(queue_id=queue_id, uids=[UID], outcome=pb.RELEASE)])
    await link.ready(queue_id, 1)
    host.registry.drop(host.registry.partition_of(queue_id))  # type: ignore[arg-type]
    await link.send(transactions=[pb.TransactionStep(transaction=7, step=COMPLETE)])
    await link.until(lambda: any(frame.unsettled for frame in link.frames))
    expected = [UID + 1] if outcome == pb.RELEASE else [UID, UID + 1]
    assert [list(each.uids) for frame in link.frames for each in frame.unsettled] == [expected]


async def test_what_was_had_and_not_tried(house: House) -> None:
    """It is told so, as without a transaction: it was given to somebody, and that was no attempt."""
    queue_id = await house.declare("q", delivery_limit=9)
    link = await house.link()
    await link.publish(queue_id, [b"1"])
    await link.attach(queue_id, messages=2)
    await link.until(lambda: link.uids)
    settle = pb.Settle(queue_id=queue_id, uids=link.uids, transaction=7, outcome=pb.RESTORE, had=True)
    steps = [pb.TransactionStep(transaction=7, step=step) for step in (PREPARE, COMPLETE)]
    await link.send(settles=[settle], transactions=steps)
    await link.until(lambda: len(link.uids) == 2)
    assert [(run.attempts, run.acquired) for run in link.runs] == [(0, 0), (0, 1)]
