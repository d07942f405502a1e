"""What is on record of messages that were moved or copied."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from services.rpc import ledger_pb2 as ledger
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House
from tests.unit.queue.test_selecting import LOOK, TAKE, T, chosen, moved

Recorded = Callable[[], ledger.LedgerBatch]


def rows(told: ledger.LedgerBatch, stage: int) -> list[tuple[str, str, str]]:
    """Queue, target and reason of those of a stage."""
    each = zip(told.stages, told.place, told.reason, strict=True)
    places = ((told.places[place], told.words[reason]) for its, place, reason in each if its == stage)
    return [(place.queue, place.target, reason) for place, reason in places]


@pytest.mark.parametrize("durable", [True, False])
async def test_moved_messages_went_on(house: House, recorded: Recorded, durable: bool) -> None:
    """Nobody accepted them: they are told as moved, and where to."""
    source, target = await house.declare("a", durable=durable), await house.declare("b", durable=durable)
    link = await house.link()
    await link.publish(source, [b"0", b"1"], persistent=durable)
    [taken] = await chosen(link, 1, source, TAKE)
    await moved(link, taken, source, target, pb.TransactionStep.COMPLETE)
    told = recorded()
    assert rows(told, ledger.DEAD_LETTERED) == [("a", "b", "moved")]
    assert rows(told, ledger.ROUTED) == [("b", "", "")]
    assert [each.firsts for each in told.successions] == [[T + 1]]
    assert ledger.SETTLED not in told.stages


@pytest.mark.parametrize("step", [pb.TransactionStep.COMPLETE, pb.TransactionStep.ABORT])
async def test_copied_messages_stay(house: House, recorded: Recorded, step: pb.TransactionStep.Step.ValueType) -> None:
    """Where they are it is told what their copies are, and where, once these are there."""
    source, target = await house.declare("a"), await house.declare("b")
    link = await house.link()
    await link.publish(source, [b"0", b"1"])
    [found] = await chosen(link, 1, source, LOOK)
    copied = pb.Copied(queue_id=source, uids=found.message.uids, successors=T + 1, copied_to=target)
    await link.send(transactions=[pb.TransactionStep(transaction=T, step=pb.TransactionStep.PREPARE, copied=copied)])
    await link.until(lambda: any(frame.prepared for frame in link.frames))
    await link.send(transactions=[pb.TransactionStep(transaction=T, step=step)])
    await link.until(lambda: any(T in frame.completed for frame in link.frames))
    assert await link.ready(source, 2) == 2
    told, commits = recorded(), step == pb.TransactionStep.COMPLETE
    assert rows(told, ledger.COPIED) == [("a", "b", "copied")] * commits
    assert rows(told, ledger.ROUTED) == [("b", "", "")] * commits
    assert [each.firsts for each in told.successions] == [[T + 1]] * commits
