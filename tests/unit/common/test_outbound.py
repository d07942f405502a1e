"""Runs on their way to one queue process."""

from __future__ import annotations

from services.common.clients.outbound import Attempt, Delivery, Run, refused_parts
from services.rpc import queue_pb2 as pb


def attempt(count: int) -> Attempt:
    run = Run("/", "", "k", (7,), "amqp-0-9", False, 0, None, False, [b""] * count, [b"b"] * count, count)
    return Attempt(run, (7,), range(count), run.properties, run.bodies, 0, 0, Delivery(None), count)


def test_a_refusal_concerns_several_runs() -> None:
    """Each hears of its own messages, counted from its own first."""
    attempts = [attempt(2), attempt(3), attempt(1), attempt(4)]
    for first, count, expected in (
        (0, 1, [(0, 0, 1)]),
        (1, 5, [(0, 1, 1), (1, 0, 3), (2, 0, 1)]),
        (3, 2, [(1, 1, 2)]),
        (6, 9, [(3, 0, 4)]),
    ):
        refusal = pb.Refusal(sequence=1, queue_id=7, reason=pb.OVERFLOW, first=first, count=count)
        found = list(refused_parts(attempts, refusal))
        assert [(attempts.index(each), part.first, part.count) for each, part in found] == expected
        assert all((part.queue_id, part.reason) == (7, pb.OVERFLOW) for _, part in found)
