"""A publish batch, decoded: it takes as much work as there are queues, and no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import pytest

from services.common.message.columns import put
from services.queue.links.publishing import arrivals
from services.queue.machine.arrival import Arrival
from services.queue.machine.columns import Columns
from services.queue.machine.journal_draft import ContentDraft
from services.queue.machine.message import Interned
from services.rpc import queue_pb2 as pb
from tests.support.messages import PROPERTIES, facts

QUEUES = 50

ForQueue: TypeAlias = tuple[int, Sequence[int]]


class Looked(list[ForQueue]):
    """Counts how often all of it is walked through."""

    times = 0

    def __iter__(self) -> Iterator[ForQueue]:
        self.times += 1
        return super().__iter__()


def of_columns(messages: int) -> pb.PublishBatch:
    """One message for each queue, or one for all of them."""
    batch = pb.PublishBatch(sequence=1, uids=range(1, messages + 1), bodies=[b"x"] * messages, time_ms=1)
    put(batch, [facts()] * messages, [PROPERTIES] * messages)
    for queue in range(QUEUES):
        batch.queues.add(queue_id=queue + 1, first=queue % messages, count=1)
    return batch


def of_runs(messages: int) -> pb.PublishBatch:
    """The same, as batches were before there were facts."""
    batch = pb.PublishBatch(sequence=1, uids=range(1, messages + 1), bodies=[b"x"] * messages, time_ms=1)
    for message in range(messages):
        queue_ids = [message + 1] if messages > 1 else range(1, QUEUES + 1)
        batch.runs.add(count=1, shared_properties=PROPERTIES, queue_ids=queue_ids)
    return batch


@pytest.mark.parametrize("messages", [1, QUEUES])
@pytest.mark.parametrize("batch_of", [of_columns, of_runs])
def test_queues_do_not_look_at_one_another(messages: int, batch_of: Callable[[int], pb.PublishBatch]) -> None:
    """However many queues a batch is for, each sees to its own messages: all of them are gone through once."""
    batch = batch_of(messages)
    columns = Columns(batch, list(batch.bodies), Interned())
    columns.queues = looked = Looked(columns.queues)
    found: list[Arrival] = [arrival for _, arrival, _ in arrivals(columns, ContentDraft(lambda: 1))]
    messages_of = [arrival.messages(0, 1)[0] for arrival in found]
    assert len(messages_of) == QUEUES
    assert len(set(messages_of)) == messages
    assert looked.times == 1
