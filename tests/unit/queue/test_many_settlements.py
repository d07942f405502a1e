"""More is settled at once than goes in one turn of the event loop."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.topology.slots import SlotId
from services.queue.links import last_words, parts, portions
from services.queue.links import link as link_module
from services.queue.machine import turn
from services.queue.machine.queue import Queue
from services.queue.machine.settlement import EntrySettlement
from services.queue.partitions.partition import PartitionState
from services.rpc import queue_pb2 as pb
from tests.support.queue_house import House, RawLink

FEW, MANY = 10, 95


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many are settled at once, each time."""
    found, settle = list[int](), EntrySettlement.settle

    def settles(self: EntrySettlement, outcome: Any, uids: Any, now: int, *change: Any) -> str:
        found.append(len(uids))
        return settle(self, outcome, uids, now, *change)

    monkeypatch.setattr(turn, "AT_ONCE", FEW)
    monkeypatch.setattr(EntrySettlement, "settle", settles)
    return found


async def holding(house: House, *, durable: bool = False) -> tuple[RawLink, int]:
    """A link whose consumer holds many messages."""
    queue_id, link = await house.declare("q", durable=durable), await house.link()
    await link.attach(queue_id)
    await link.publish(queue_id, [b"%d" % number for number in range(MANY)], persistent=durable)
    await link.until(lambda: len(link.uids) == MANY)
    return link, queue_id


@pytest.mark.parametrize("outcome", [pb.ACCEPT, pb.REJECT])
async def test_done_with(house: House, turns: list[int], outcome: pb.Outcome.ValueType) -> None:
    """In parts, which count as the one frame that they were; what comes behind it is carried out after it."""
    link, queue_id = await holding(house, durable=True)
    host = house.queues["queue-1"]._host
    [its] = [each for each in host.links if each.name == "test"]
    held = host.registry.queues[queue_id].unsettled
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=outcome, uids=link.uids)])
    await link.publish(queue_id, [b"behind"])
    await link.until(lambda: len(link.bodies) == MANY + 1)
    assert (max(turns) <= FEW, sum(turns), list(held)) == (True, MANY, link.uids[MANY:])
    assert its._settling == 1


@pytest.mark.parametrize("outcome", [pb.RELEASE, pb.ABANDON, pb.RESTORE])
async def test_back(house: House, turns: list[int], outcome: pb.Outcome.ValueType) -> None:
    """Nothing is delivered before all of it is back in its place, nor what comes behind it in between."""
    link, queue_id = await holding(house)
    uids = [*link.uids[1::2], *link.uids[::2]]
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=outcome, uids=uids)])
    await link.send(publishes=[link.batch(queue_id, [b"behind"])])
    await link.until(lambda: len(link.bodies) == 2 * MANY + 1)
    assert max(turns) <= FEW
    assert link.bodies[MANY:] == [*(b"%d" % number for number in range(MANY)), b"behind"]


async def test_its_peer_leaves(house: House, turns: list[int]) -> None:
    """All that it had is others'."""
    link, queue_id = await holding(house)
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.RELEASE, uids=link.uids)])
    await link.close()
    other = await house.link(origin=1001)
    await other.attach(queue_id)
    await other.until(lambda: len(other.bodies) == MANY)
    assert sorted(other.bodies) == sorted(link.bodies[:MANY])
    assert max(turns) <= FEW


@pytest.mark.parametrize("outcome", [pb.ACCEPT, pb.REJECT])
async def test_its_peer_leaves_in_between(
    house: House, turns: list[int], monkeypatch: pytest.MonkeyPatch, outcome: pb.Outcome.ValueType
) -> None:
    """What it had said to be done with is: nobody gets it again. Nothing else of it is carried out."""
    monkeypatch.setattr(link_module, "_RETURN_SECONDS", 0)
    link, queue_id = await holding(house, durable=True)
    host = house.queues["queue-1"]._host
    [its] = [each for each in host.links if each.name == "test"]
    settle = Queue.settle

    def leaves(self: Queue, *said: Any) -> None:
        settle(self, *said)
        its.close()

    monkeypatch.setattr(Queue, "settle", leaves)
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=outcome, uids=link.uids)])
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.RELEASE, uids=link.uids)])
    other = await house.link(origin=1001)
    await other.until(lambda: its.over)
    await other.attach(queue_id)
    assert (sum(turns), max(turns)) == (MANY, FEW)
    assert await other.ready(queue_id, 1) == 0
    assert not host.registry.queues[queue_id].unsettled


async def test_it_left_while_leases_might_have_run_out(
    house: House, turns: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it had said by then counts, in parts: nothing of it comes again, and the rest goes to others."""
    monkeypatch.setattr(link_module, "_RETURN_SECONDS", 0)
    link, queue_id = await holding(house, durable=True)
    host = house.queues["queue-1"]._host
    [its] = [each for each in host.links if each.name == "test"]
    frame = pb.LinkFrame(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=link.uids[:-1])])
    its._suspended.append((frame, ()))
    its.close()
    other = await house.link(origin=1001)
    await other.attach(queue_id)
    await other.until(lambda: other.bodies)
    assert other.uids == link.uids[-1:]
    assert max(turns) <= FEW
    assert await other.ready(queue_id, 1) == 0


async def test_what_had_waited_for_its_partition(house: House, turns: list[int]) -> None:
    """Is carried out in parts once that is served."""
    link, queue_id = await holding(house, durable=True)
    host = house.queues["queue-1"]._host
    partition = host.registry.partition_of(SlotId(queue_id))
    assert partition
    queue = host.registry.queues.pop(SlotId(queue_id))
    partition.state = PartitionState.RECOVERING
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=link.uids)])
    await link.until(lambda: len(partition.waiting) == -(-MANY // FEW))
    partition.state, host.registry.queues[SlotId(queue_id)] = PartitionState.SERVING, queue
    before = len(turns)
    partition.replay()
    assert sum(turns[before:]) == FEW
    await link.until(lambda: not queue.unsettled)


async def test_cut_up_as_it_is_settled(house: House, turns: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all of a frame before the first part of it is carried out."""
    link, queue_id = await holding(house)
    before = list[int]()
    monkeypatch.setattr(portions, "cut", lambda spans: (before.append(sum(turns)), parts.cut(spans))[1])
    await link.send(settles=[pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=link.uids)])
    await link.until(lambda: sum(turns) == MANY)
    assert before == list(range(0, MANY, FEW))


async def test_last_words_are_cut_up_as_they_are_settled(
    house: House, turns: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor all that a stream had said when it ended."""
    link, queue_id = await holding(house)
    host, cuts, over = house.queues["queue-1"]._host, list[int](), list[int]()
    monkeypatch.setattr(last_words, "cut", lambda spans: (cuts.append(parts.work_of(spans)), parts.cut(spans))[1])
    [its] = [each for each in host.links if each.name == "test"]
    words = [pb.Settle(queue_id=queue_id, outcome=pb.ACCEPT, uids=link.uids[at : at + 30]) for at in range(0, MANY, 30)]
    last_words.LastWords(host, its, host.late.begin(its)).say(words, lambda: over.append(1))
    assert (cuts, over) == ([FEW], [])
    await link.until(lambda: over)
    assert (max(cuts), sum(cuts), sum(turns)) == (FEW, MANY, MANY)
    assert not host.registry.queues[SlotId(queue_id)].unsettled


def test_what_is_written_anew() -> None:
    """Messages that are given annotations take the time of many others, so that fewer of them go in one turn."""
    settles = [pb.Settle(outcome=pb.RELEASE, uids=range(90), annotations=b"some"), pb.Settle(uids=range(10))]
    spans = list(parts.spans_of(settles))
    sizes = [sum(span.end - span.first for span in some) for some in spans]
    assert (max(sizes), sum(sizes)) == (20, 100)
    work = list(map(parts.work_of, spans))
    assert (max(work), sum(work)) == (turn.AT_ONCE, parts.size_of(settles))
