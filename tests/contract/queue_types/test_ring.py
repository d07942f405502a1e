"""Broker-J's overflow policy RING: what is held counts, and goes, and the newest never does."""

from __future__ import annotations

from functools import partial

import hypothesis.strategies as st
import pytest
from hypothesis import given

from services.queue.machine import turn
from services.queue.machine.entry import Undecided
from services.rpc import queue_pb2 as pb
from tests.support.queue_machine import Machine, Make


@pytest.fixture
def ring(make: Make) -> Make:
    return partial(make, overflow="ring")


def here(machine: Machine) -> list[int]:
    return sorted(entry.message.uid for entry in machine.queue.entries())


def test_what_consumers_hold_goes_first(ring: Make) -> None:
    """It is the oldest; that they settle it later is no error, and nothing of it is a dead letter."""
    machine = ring(max_length=3, dead_letter_exchange="dlx")
    consumer = machine.consumer(messages=2)
    machine.publish(3)
    assert machine.link.uids() == [1, 2]
    machine.publish(1)
    assert here(machine) == [2, 3, 4]
    machine.queue.settle(pb.ACCEPT, [1], 0)
    machine.queue.settle(pb.RELEASE, [2], 0)
    assert machine.dead() == []
    machine.queue.credit(consumer, 9, 0, 0)
    assert machine.link.taken() == [(1, 2, True), (1, 3, False), (1, 4, False)]
    assert here(machine) == [2, 3, 4]


@pytest.mark.parametrize("limit", [{"max_length": 0}, {"max_length_bytes": 0}])
def test_the_newest_stays(ring: Make, limit: dict[str, int]) -> None:
    """However little there may be."""
    machine = ring(**limit)
    for uid in range(1, 4):
        machine.publish(1)
        assert here(machine) == [uid]
    machine.consumer()
    assert machine.link.uids() == [3]


def test_bytes_count_properties(ring: Make) -> None:
    """And those of what is held."""
    machine = ring(max_length_bytes=40)
    machine.publish(1, body=b"x" * 10)
    [entry] = machine.queue.entries()
    weight = entry.message.weight
    assert weight > 10
    machine.consumer(messages=1)
    machine.publish(40 // weight, body=b"x" * 10)
    assert len(here(machine)) == 40 // weight


def test_what_a_transaction_has(ring: Make) -> None:
    """Stays, as it may be gone already; others go in its place."""
    machine = ring(max_length=2)
    machine.publish(2)
    machine.consumer(messages=2)
    machine.queue.transacted.hold([1], Undecided())
    machine.publish(1)
    assert here(machine) == [1, 3]


def test_the_lowest_priority_goes_first() -> None:
    """Of equal ones the oldest; nothing behind the newest in that order."""
    machine = Machine("priority", max_priority=9, overflow="ring", max_length=2)
    machine.publish(1, priority=5)
    machine.publish(1, priority=1)
    machine.publish(1, priority=5)
    assert here(machine) == [1, 3]
    machine.publish(1, priority=1)
    assert here(machine) == [1, 3, 4]
    machine.publish(1, priority=9)
    assert here(machine) == [3, 5]


def test_a_policy_makes_it_one(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there counts; more than goes in a turn is the clock's, which has nothing to do where nothing can go."""
    monkeypatch.setattr(turn, "AT_ONCE", 10)
    machine = make()
    machine.publish(25)
    machine.consumer(messages=5)
    machine.adopt({"overflow": "ring", "max-length": 2})
    while 0 < machine.queue.deadline() <= 1:
        machine.queue.expire(1)
    assert here(machine) == [24, 25]
    machine.adopt({"overflow": "ring", "max-length": 0})
    while 0 < machine.queue.deadline() <= 1:
        machine.queue.expire(1)
    assert here(machine) == [25]
    machine.adopt({})
    machine.publish(5)
    assert len(here(machine)) == 6


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.integers(1, 5)),
        st.tuples(st.just("credit"), st.integers(1, 4)),
        st.tuples(st.sampled_from([pb.ACCEPT, pb.RELEASE, pb.RESTORE, pb.REJECT]), st.integers(0, 20)),
        st.tuples(st.just("get"), st.just(0)),
        st.tuples(st.just("purge"), st.just(0)),
    ),
    max_size=40,
)


@given(STEPS, st.integers(0, 6))
def test_beside_a_naive_list(steps: list[tuple[str | int, int]], limit: int) -> None:
    """The queue has the newest of all that nobody is done with."""
    machine = Machine("classic", overflow="ring", max_length=limit)
    consumer = machine.consumer(messages=0)
    kept, last = list[int](), 0
    for step, number in steps:
        if step == "publish":
            kept += range(last + 1, last + number + 1)
            last += number
            machine.publish(number)
            kept = kept[-max(limit, 1) :]
        elif step == "credit":
            machine.queue.credit(consumer, number, 0, 0)
        elif step == "get":
            machine.queue.get(machine.link, 0, settled=False)
        elif step == "purge":
            held = set(machine.queue.unsettled)
            machine.queue.picking.purge()
            kept = [uid for uid in kept if uid in held]
        elif held := sorted(machine.queue.unsettled):
            uid = held[number % len(held)]
            machine.queue.settle(step, [uid], 0)  # type: ignore[arg-type]
            if step in (pb.ACCEPT, pb.REJECT):
                kept.remove(uid)
        assert here(machine) == kept


@pytest.mark.parametrize("claimed", [1, 2, 3])
def test_what_was_claimed_before_it_came_goes(ring: Make, claimed: int) -> None:
    """A client has it from the former owner, and its publisher sent it again: it goes like others of its age."""
    machine = ring(max_length=3)
    machine.consumer(held=[claimed], again=True, messages=0)
    machine.publish(3)
    machine.publish(2)
    assert here(machine) == [3, 4, 5]
    machine.queue.settle(pb.RELEASE, [claimed], 0)
    assert here(machine) == [3, 4, 5]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_what_is_being_moved_goes(ring: Make, place: int) -> None:
    """Management has it, and its queue gets more than it may have."""
    machine = ring(max_length=3)
    machine.publish(3)
    machine.queue.picking.take([list(machine.queue.entries())[place]], machine.link)
    machine.publish(2)
    assert here(machine) == [3, 4, 5]
