"""Publishers that were told to wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from services.common.clients.partition_table import PartitionTable
from services.common.clients.pressure import Congestion, Held, Pressure
from services.common.clients.publisher import Publisher
from services.common.uid import UidSource
from services.rpc import queue_pb2 as pb


class Link:
    """As far as waiting goes."""

    up = True

    def __init__(self) -> None:
        self.outstanding = 0
        self.full: set[int] = set()
        self.looks = 0

    def is_full(self, queue_ids: Sequence[int]) -> bool:
        self.looks += 1
        return not self.full.isdisjoint(queue_ids)


def _waiting(
    add: Callable[[Pressure, object, Callable[[], None]], None], link: Any, state: Congestion, count: int = 3
) -> list[int]:
    """So many wait, each for the queue with its number; gives those that go on."""
    went: list[int] = []

    def wait(number: int) -> None:
        add(Pressure(state, link, (number,)), number, lambda: went.append(number))

    for number in range(count):
        wait(number)
    return went


def test_in_their_order() -> None:
    """The publisher that waited first goes on first, and once."""
    held, link = Held(), Link()
    went = _waiting(held.add, link, Congestion.FULL)
    for _ in range(2):
        held.let_go(link, Congestion.FULL)  # type: ignore[arg-type]
    assert went == [0, 1, 2]


def test_those_of_other_queues() -> None:
    """Whose queues are still full waits on."""
    held, link = Held(), Link()
    went = _waiting(held.add, link, Congestion.BLOCKED)
    held.let_go(link, Congestion.BLOCKED, lambda queue_ids: 1 in queue_ids)  # type: ignore[arg-type]
    assert went == [0, 2]
    held.let_go(link, Congestion.BLOCKED)  # type: ignore[arg-type]
    assert went == [0, 2, 1]


def test_another_queue_of_the_same_process() -> None:
    """Who waits for one, and has published to another one meanwhile, waits for both."""
    held, link, went = Held(), Link(), list[int]()
    for number in (1, 2):
        held.add(Pressure(Congestion.BLOCKED, cast("Any", link), (number,)), "who", lambda: went.append(1))
    for full in (1, 2):
        held.let_go(cast("Any", link), Congestion.BLOCKED, lambda queue_ids, full=full: full in queue_ids)
    assert went == []
    held.let_go(cast("Any", link), Congestion.BLOCKED, lambda queue_ids: 3 in queue_ids)
    assert went == [1]


def test_who_is_gone() -> None:
    """A publisher that does not wait any more is forgotten."""
    held, link = Held(), Link()
    went = _waiting(held.add, link, Congestion.FULL)
    held.forget(1)
    assert len(held) == 2
    held.let_go(link, Congestion.FULL)  # type: ignore[arg-type]
    assert went == [0, 2]
    assert not len(held)


def test_a_publisher_that_has_to_wait_again() -> None:
    """Going on may fill what there was room in: then it waits for the next time."""
    held = Held()
    times: list[int] = []

    def again() -> None:
        times.append(1)
        held.add(Pressure(Congestion.FULL, None), again, again)

    again()
    for _ in range(2):
        held.let_go(None, Congestion.FULL)
    assert len(times) == 3


async def test_what_a_frame_does_not_change() -> None:
    """Publishers that wait for room in queues are checked when full queues are reported, not at every frame."""
    publisher = Publisher("gateway-1", UidSource(1), PartitionTable(), lambda _: 0)
    link: Any = Link()
    link.full, link.outstanding = {0, 1, 2}, 100 << 20
    blocked = _waiting(publisher.when_relieved, link, Congestion.BLOCKED)
    full = _waiting(publisher.when_relieved, link, Congestion.FULL)
    publisher.received(link, pb.QueueFrame(), [])
    assert (link.looks, blocked, full) == (0, [], [])
    link.outstanding = 0
    publisher.received(link, pb.QueueFrame(), [])
    assert (link.looks, blocked, full) == (0, [], [0, 1, 2])
    link.full = {1}
    publisher.received(link, pb.QueueFrame(blocked=pb.Blocked(queue_ids=[1])), [])
    assert (link.looks, blocked) == (3, [0, 2])
