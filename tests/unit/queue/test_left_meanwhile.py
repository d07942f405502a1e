"""What is on record of transactions that are committed when a queue of theirs has left the process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from services.rpc import ledger_pb2 as ledger
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House

COMPLETE, UIDS = pb.TransactionStep.COMPLETE, [1002 << 39 | 1, 1002 << 39 | 2]
Told = list[tuple[int, str, str]]


async def committed_late(house: House, outcome: pb.Outcome.ValueType, *, persistent: bool) -> None:
    """A transaction that settles two messages is decided when another process has the partition."""
    queue_id, link = await house.declare("q", durable=True), await house.link(origin=1002)
    await link.attach(queue_id)
    await link.publish(queue_id, [b"1", b"2"], uids=UIDS, persistent=persistent)
    await link.until(lambda: link.uids == UIDS)
    settle = pb.Settle(queue_id=queue_id, uids=UIDS, transaction=7, outcome=outcome)
    await link.send(settles=[settle], transactions=[pb.TransactionStep(transaction=7)])
    await link.until(lambda: any(frame.prepared for frame in link.frames))
    host = house.queues["queue-1"]._host
    if persistent and outcome != pb.RELEASE:
        assert (await host.store.commit_transaction(7, parts=1)).committed
    host.registry.drop(host.registry.partition_of(queue_id))  # type: ignore[arg-type]
    await link.send(transactions=[pb.TransactionStep(transaction=7, step=COMPLETE)])
    await link.until(lambda: [each for frame in link.frames for each in frame.unsettled] == [settle])


def told_of(batch: ledger.LedgerBatch) -> Told:
    """Stage, outcome and reason of all that was settled or dropped."""
    rows = zip(batch.stages, batch.outcome, batch.reason, strict=True)
    words = [(stage, batch.words[outcome], batch.words[reason]) for stage, outcome, reason in rows]
    return [row for row in words if row[0] in (ledger.SETTLED, ledger.DROPPED)]


@pytest.mark.parametrize(
    ("outcome", "persistent", "told"),
    [
        (pb.ACCEPT, True, [(ledger.SETTLED, "accepted", "")]),
        (pb.REJECT, True, [(ledger.SETTLED, "rejected", ""), (ledger.DROPPED, "", "rejected")]),
        (pb.RELEASE, True, []),  # the next owner finds them
        (pb.ACCEPT, False, [(ledger.DROPPED, "", "no_owner")]),
    ],
)
async def test_what_the_commit_took_from_disk(
    house: House,
    recorded: Callable[[], ledger.LedgerBatch],
    outcome: pb.Outcome.ValueType,
    persistent: bool,
    told: Told,
) -> None:
    """It is told as settled, though the queue has left: the next owner finds no message of which it could tell."""
    await committed_late(house, outcome, persistent=persistent)
    assert told_of(recorded()) == told
