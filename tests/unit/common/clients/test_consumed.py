"""Which queues have consumers on a stream."""

from __future__ import annotations

import pytest

from services.common.clients.consumed import Consumed
from services.rpc import queue_pb2 as pb


def _consumed(*consumers: tuple[int, int]) -> Consumed:
    consumed = Consumed()
    for consumer, queue_id in consumers:
        consumed.attach(pb.AttachConsumer(consumer=consumer, queue_id=queue_id))
    return consumed


def test_until_the_last_has_gone() -> None:
    """A queue counts while it has one; who ends twice ends once."""
    consumed = _consumed((1, 7), (2, 7), (3, 8))
    assert consumed.has_one_of([6, 7])
    consumed.detach(1)
    consumed.detach(1)
    assert consumed.has_one_of([7])
    consumed.detach(2)
    assert not consumed.has_one_of([6, 7])
    assert consumed.has_one_of([8])


@pytest.mark.parametrize(
    "said",
    [
        pb.QueueFrame(cancelled=[pb.Cancelled(consumer=1)]),
        pb.QueueFrame(attached=[pb.Attached(consumer=1, reason=pb.EXCLUSIVE_USE)]),
    ],
    ids=["cancelled", "refused"],
)
def test_ended_by_the_queue_process(said: pb.QueueFrame) -> None:
    """Consumers that it refuses or cancels are none; of one that it has attached nothing changes."""
    consumed = _consumed((1, 7))
    consumed.hear(pb.QueueFrame(attached=[pb.Attached(consumer=1)]))
    assert consumed.has_one_of([7])
    consumed.hear(said)
    assert not consumed.has_one_of([7])


def test_what_is_held_without_a_consumer() -> None:
    """Attached to say what was delivered before: nothing comes to it."""
    consumed = Consumed()
    consumed.attach(pb.AttachConsumer(consumer=1, queue_id=7, stray=True))
    assert not consumed.has_one_of([7])
