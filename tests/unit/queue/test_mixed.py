"""Messages of one read, however mixed: what a queue does with each does not depend on its neighbours."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.common.message.facts import Facts
from services.rpc import queue_pb2 as pb
from tests.support.messages import facts
from tests.support.queue_machine import Machine

MIXED = st.lists(
    st.builds(
        facts,
        persistent=st.booleans(),
        priority=st.integers(0, 3),
        ttl_ms=st.sampled_from([None, None, 5, 50]),
    ),
    min_size=1,
    max_size=12,
)
BATCHES = st.lists(MIXED, min_size=1, max_size=4)


def journalled(machine: Machine) -> dict[tuple[int, int], int]:
    """The uids of what was entered for the journal, by batch and index there."""
    found, first = {}, 1
    for content in machine.contents:
        for draft in content.entries.values():
            indexes = [at for _, start, count, _ in draft.runs for at in range(start, start + count)]
            found.update({(draft.id, index): first + at for index, at in enumerate(indexes)})
        first += len(content.source)
    return found


def dequeued(machine: Machine) -> list[tuple[int, int]]:
    return [(batch, index) for batch, indexes in machine.draft.dequeues.items() for index in indexes]


def published(machine: Machine, batches: list[list[Facts]]) -> list[Facts]:
    for batch in batches:
        machine.publish_mixed(batch, now=100)
        machine.contents[-1].source = batch
    return [each for batch in batches for each in batch]


@given(BATCHES, st.booleans(), st.data())
def test_the_journal_has_what_is_persistent(batches: list[list[Facts]], at_once: bool, data: st.DataObject) -> None:
    """Just that is entered, and what is settled is dequeued at its own place: a wrong one would lose another."""
    machine = Machine(durable=True)
    consumer = machine.consumer() if at_once else None
    its = published(machine, batches)
    assert sorted(journalled(machine).values()) == [uid for uid, each in enumerate(its, 1) if each.persistent]
    if consumer is None:
        machine.consumer(now=100)
    delivered = machine.link.uids()
    assert delivered == list(range(1, len(its) + 1))
    settled = data.draw(st.sets(st.sampled_from(delivered)))
    machine.queue.settle(pb.ACCEPT, sorted(settled), 100)
    where = journalled(machine)
    assert sorted(where[place] for place in dequeued(machine)) == [
        uid for uid in sorted(settled) if its[uid - 1].persistent
    ]


@given(BATCHES)
def test_each_expires_by_itself(batches: list[list[Facts]]) -> None:
    """By its own time to live and its queue's, also behind one that stays: RabbitMQ's waits for that."""
    machine = Machine(message_ttl=20)
    its = published(machine, batches)
    due = [100 + min(20, 20 if each.ttl_ms is None else each.ttl_ms) for each in its]
    assert [entry.expires for entry in machine.queue.entries()] == due
    while 0 < machine.queue.deadline() <= 110:  # what is at the front goes in one turn, what stands behind in another
        machine.queue.expire(110)
    left = [uid for uid, time in enumerate(due, 1) if time > 110]
    assert [entry.message.uid for entry in machine.queue.entries()] == left


@given(BATCHES)
def test_by_priority(batches: list[list[Facts]]) -> None:
    """The highest first, and among equals the first."""
    machine = Machine("priority", max_priority=2)
    its = published(machine, batches)
    machine.consumer(now=100)
    ranks = {uid: min(each.priority, 2) for uid, each in enumerate(its, 1)}
    assert machine.link.uids() == sorted(ranks, key=lambda uid: (-ranks[uid], uid))
