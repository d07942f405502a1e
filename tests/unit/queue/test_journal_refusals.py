"""What the journal does not take: each queue has one refusal of a batch, however its messages alternate."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count

import pytest

from services.common.errors import PreconditionFailed
from services.common.message.columns import put
from services.common.partition import lease_name
from services.common.uid import UidSource
from services.queue.journal.content import Source
from services.queue.journal.ticket import Ticket, Unheard
from services.queue.journal.writer import JournalWriter
from services.queue.links.peer_terms import PeerTerms
from services.queue.links.publishing import arrivals
from services.queue.machine.columns import Columns
from services.queue.machine.context import QueueContext
from services.queue.machine.journal_draft import ContentDraft, PartitionDraft
from services.queue.machine.message import Interned, MemoryAccount
from services.queue.machine.options import read_options
from services.queue.partitions.partition import Partition
from services.rpc import queue_pb2 as pb
from services.rpc.store_pb2 import JournalAck, JournalFrame
from tests.support.messages import PROPERTIES, facts

COUNT = 20
EVEN, ODD = list(range(0, COUNT, 2)), list(range(1, COUNT, 2))


class Refuser:
    """A journal, and the answers to a batch; what it answers to the first frame is for a test to say."""

    broken = False

    def __init__(self) -> None:
        self.answer: asyncio.Future[JournalAck] = asyncio.get_running_loop().create_future()
        self.said: list[tuple[int, list[int], pb.Reason.ValueType]] = []
        self.finished: list[int] = []

    def append(self, _frame: JournalFrame) -> asyncio.Future[JournalAck]:
        return self.answer

    def done(self, sequence: int) -> None:
        self.finished.append(sequence)

    def refuse(self, _sequence: int, indexes: Sequence[int], queue_id: int, reason: pb.Reason.ValueType) -> None:
        self.said.append((queue_id, list(indexes), reason))


def alternating() -> ContentDraft:
    """Durable messages for queues 1 and 2 in turns, both of partition 0."""
    batch = pb.PublishBatch(sequence=1, uids=range(1, COUNT + 1), bodies=[b"x"] * COUNT, time_ms=1)
    for queue_id, indexes in ((1, EVEN), (2, ODD)):
        batch.queues.add(queue_id=queue_id, indexes=indexes)
    put(batch, [facts(persistent=True)] * COUNT, [PROPERTIES] * COUNT)
    source = Source(batch.SerializeToString(), batch, Columns(batch, list(batch.bodies), Interned()))
    content = ContentDraft(lambda: 1, source)
    for queue_id, arrival, _ in arrivals(source.columns, content):
        options = read_options(queue_id, "/", f"q{queue_id}", 0, {}, durable=True, auto_delete=False)
        arrival.enlist(options, 0, len(arrival), 0)
    return content


@pytest.mark.parametrize("reason", [pb.NOT_OWNER, pb.OTHER])
async def test_one_refusal_for_each_queue(reason: pb.Reason.ValueType) -> None:
    """Of runs of one message each, whether another process has their partition or the store cannot write them."""
    refuser = Refuser()
    writer = JournalWriter(refuser, UidSource(1), lambda _: None)
    partition = Partition(
        0, 1, QueueContext(MemoryAccount(), PartitionDraft(lambda: None, count(1).__next__), lambda: None)
    )
    ticket = Ticket(refuser, 1, set(), Unheard(), PeerTerms({}))
    writer.add(alternating(), {0: partition}, ticket)
    ticket.part_done()
    writer.flush()
    if reason == pb.NOT_OWNER:
        refuser.answer.set_result(JournalAck(fenced=[lease_name(0)]))
    else:
        refuser.answer.set_exception(PreconditionFailed("it makes no sense"))
    await asyncio.sleep(0)
    assert refuser.said == [(1, EVEN, reason), (2, ODD, reason)]
    assert refuser.finished == [1]
