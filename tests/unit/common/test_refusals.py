"""Of whose messages a queue process speaks that refuses some."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from services.common.clients.outbound import Attempt, Delivery
from services.common.clients.refusals import Refusals
from services.common.message.indexes import choice
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
        found = [(numbers[id(one)], list(indexes)) for one, indexes in Refusals(attempts).parts(refusal)]
        assert found == [(number, list(range(at, at + some))) for number, at, some in expected]


class Counted(list[int]):
    """Counts what is looked at of it."""

    looked_at = 0

    def __getitem__(self, at: object) -> object:  # type: ignore[override]
        found = super().__getitem__(at)  # type: ignore[index]
        Counted.looked_at += len(found) if isinstance(found, list) else 1
        return found

    def __iter__(self) -> Iterator[int]:
        for each in super().__iter__():
            Counted.looked_at += 1
            yield each


class Queues(dict[int, Counted]):
    """Counts how often anything is looked up in it."""

    def get(self, *which: object) -> Counted:  # type: ignore[override]
        Counted.looked_at += 1
        return super().get(*which)  # type: ignore[call-overload, no-any-return]


def _counted(indexes: range, queue_id: int, count: int = 1) -> Attempt:
    its = messages([b""] * count)
    return Attempt(its, Queues({queue_id: Counted(indexes)}), 0, Delivery(None, its.numbers), 0)  # type: ignore[arg-type]


def _many_queues(count: int) -> int:
    """Attempts for many queues in turn, each of which refuses all of its own."""
    queues = count // 20
    refusals = Refusals([_counted(range(1), number % queues) for number in range(count)])
    some = [pb.Refusal(queue_id=number, **choice(range(number, count, queues))) for number in range(queues)]
    return sum(1 for each in some for _ in refusals.parts(each))


def _piece_by_piece(count: int) -> int:
    """One attempt for two queues in turn, of which one refuses each of its messages by itself."""
    refusals = Refusals([_counted(range(0, count, 2), 1, count)])
    some = [pb.Refusal(queue_id=1, first=number, count=1) for number in range(0, count, 2)]
    return sum(1 for each in some for _ in refusals.parts(each))


@pytest.mark.parametrize(("refused", "parts"), [(_many_queues, 1000), (_piece_by_piece, 500)])
def test_refusals_cost_what_they_name(refused: Callable[[int], int], parts: int) -> None:
    """However many attempts there are beside, and however many messages each has: twice as many cost twice as much."""
    looked_at = []
    for count in (1000, 2000):
        Counted.looked_at = 0
        assert refused(count) == parts * count // 1000
        looked_at.append(Counted.looked_at)
    assert 0 < looked_at[1] <= 2.5 * looked_at[0]
