"""Last value queues (Broker-J, section 2: lvqKey)."""

from __future__ import annotations

import sys

import hypothesis.strategies as st
from hypothesis import given

from services.queue.machine.consumers import Consumer
from services.queue.machine.entry import Entry
from services.queue.machine.order.last_values import LastValues
from services.rpc import queue_pb2 as pb
from tests.support.queue_machine import Machine

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.sampled_from(["a", "b", None])),
        st.tuples(st.sampled_from(["get", "accept", "release", "wait", "take"]), st.none()),
    ),
    max_size=30,
)


def _make(**more: bool) -> Machine:
    return Machine("last-value", table={"qpid.last_value_queue_key": "symbol"}, **more)


def test_only_the_last_is_kept() -> None:
    """A newer message with the key takes the place of the older one at the end; without a key all stay."""
    machine = _make()
    machine.publish_with("symbol", "a", None, "b", "a", None, "b", "a")
    assert machine.queue.ready_count == 4
    machine.consumer()
    assert machine.link.uids() == [2, 5, 6, 7]


def test_what_is_replaced_leaves_nothing() -> None:
    """Its memory is given back, and it is dequeued in the journal where it is on disk."""
    machine = _make(durable=True)
    machine.publish_with("symbol", "a", persistent=True)
    used = machine.account.used
    machine.publish_with("symbol", "a", persistent=True)
    assert machine.account.used == used
    assert machine.queue.picking.purge() == 1
    assert machine.account.used == 0


def test_long_keys_are_not_kept() -> None:
    """Keys of a megabyte leave no megabytes behind when their messages are gone; equal ones are equal all the same."""
    machine = _make()
    keys = [f"{number:0100000}" for number in range(20)]
    machine.publish_with("symbol", *keys, "short", *keys)
    assert machine.queue.ready_count == 21
    machine.queue.picking.purge()
    order = machine.queue._entries.ready
    assert isinstance(order, LastValues)
    assert sum(map(sys.getsizeof, order._last)) < sys.getsizeof(keys[0])


def test_what_is_held_stays() -> None:
    """A newer one does not touch what a consumer has; it goes when it comes back, and is settled when it is settled."""
    machine = _make()
    machine.publish_with("symbol", "a", "b")
    machine.consumer(messages=2)
    machine.publish_with("symbol", "a")
    machine.queue.settle(pb.RELEASE, [1, 2], 0)
    machine.consumer()
    assert machine.link.uids() == [1, 2, 2, 3]


def test_what_comes_back_and_is_the_last() -> None:
    """It is there again."""
    machine = _make()
    machine.publish_with("symbol", "a")
    machine.consumer(messages=1)
    machine.queue.settle(pb.RELEASE, [1], 0)
    machine.consumer(messages=1)
    assert machine.link.uids() == [1, 1]


def test_older_ones_are_gone_for_good() -> None:
    """One that was held when a newer one came does not come back when that is done with."""
    machine = _make()
    machine.publish_with("symbol", "a")
    first = machine.queue.get(machine.link, 0, settled=False)
    machine.publish_with("symbol", "a")
    assert machine.queue.get(machine.link, 0, settled=True)
    machine.queue.settle(pb.RELEASE, [first.message.uid if first else 0], 0)
    assert machine.queue.ready_count == 0
    assert machine.account.used == 0


def test_read_back() -> None:
    """A restart finds the last of each key, and drops older ones whose dequeue was not on disk yet."""
    machine = _make(durable=True)
    machine.publish_with("symbol", "a", "b", None)
    entries = list(machine.queue.entries())
    older = machine.queue
    again = _make(durable=True)
    again.publish_with("symbol", "a", persistent=True)
    stale = [Entry(each.message, each.position) for each in entries]
    last = Entry(next(iter(again.queue.entries())).message, 10)
    again = _make(durable=True)
    again.account.hold([each.message for each in (*stale, last)], 0, again.queue.holding)
    again.queue.recover([*stale, last], 0)
    assert [entry.position for entry in again.queue.entries()] == [1, 2, 10]
    assert older.ready_count == 3


def test_keys_that_never_come_back() -> None:
    """Leave nothing behind: keys are remembered only while their messages are there."""
    machine = _make()
    for number in range(3000):
        machine.publish_with("symbol", f"k{number}")
        assert machine.queue.get(machine.link, 0, settled=True)
    assert machine.account.used == 0
    assert len(machine.queue._entries.ready._last) < 1500  # type: ignore[attr-defined]


@given(steps=STEPS)
def test_same_as_a_table(steps: list[tuple[str, str | None]]) -> None:
    """In any order of events, the ready messages are those of a table of last values."""
    machine = _make()
    ready: list[tuple[int, str | None]] = []
    held: dict[int, str | None] = {}
    newest: dict[str, int] = {}
    count = 0
    waiting: list[Consumer] = []
    for step, key in steps:
        if step == "publish":
            count += 1
            machine.publish_with("symbol", key)
            ready = [each for each in ready if key is None or each[1] != key] + [(count, key)]
            if key is not None:
                newest[key] = count
        elif step in {"wait", "take"} and not waiting:
            waiting.append(machine.consumer(messages=1, settled=step == "take"))
        elif step == "get":
            entry = machine.queue.get(machine.link, 0, settled=False)
            assert (entry.message.uid if entry else None) == (ready[0][0] if ready else None)
            held |= dict(ready[:1])
            ready = ready[1:]
        elif held and step in {"accept", "release"}:
            uid = min(held)
            its = held.pop(uid)
            machine.queue.settle(pb.ACCEPT if step == "accept" else pb.RELEASE, [uid], 0)
            if step == "release" and (its is None or newest[its] == uid):
                ready = sorted([*ready, (uid, its)])
        if waiting and ready:
            uid, its = ready.pop(0)
            consumer = waiting.pop()
            assert machine.link.uids() == [uid]
            machine.queue.detach(consumer, 0)
            if not consumer.settled:
                held[uid] = its
        assert machine.queue.ready_count == len(ready)
    machine.queue.settle(pb.ACCEPT, list(held), 0)
    machine.queue.picking.purge()
    assert machine.account.used == 0
