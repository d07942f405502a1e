"""Messages on their way to one queue process."""

from __future__ import annotations

from services.common.clients.outbound import refused_parts
from services.rpc import queue_pb2 as pb
from tests.support.messages import attempt, messages


def test_a_refusal_concerns_several_attempts() -> None:
    """Each hears of its own messages, counted from its own first."""
    attempts = [attempt(messages([b"b"] * count, (7,))) for count in (2, 3, 1, 4)]
    numbers = {id(one): number for number, one in enumerate(attempts)}
    for first, count, expected in (
        (0, 1, [(0, 0, 1)]),
        (1, 5, [(0, 1, 1), (1, 0, 3), (2, 0, 1)]),
        (3, 2, [(1, 1, 2)]),
        (6, 9, [(3, 0, 4)]),
    ):
        refusal = pb.Refusal(sequence=1, queue_id=7, reason=pb.OVERFLOW, first=first, count=count)
        found = [(numbers[id(one)], list(indexes)) for one, indexes in refused_parts(attempts, refusal)]
        assert found == [(number, list(range(at, at + some))) for number, at, some in expected]
