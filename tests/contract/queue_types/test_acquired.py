"""A queue that limits attempts tells how often a message was somebody's, apart from those that were attempts."""

from __future__ import annotations

from functools import partial

import hypothesis.strategies as st
import pytest
from hypothesis import given

from services.common import plugins
from services.rpc import queue_pb2 as pb
from tests.contract.queue_types.conftest import NEEDS
from tests.support.queue_machine import Machine, Make


@pytest.fixture
def limited(make: Make) -> Make:
    return partial(make, delivery_limit=2)


def counts(machine: Machine) -> list[tuple[int, int]]:
    """Attempts, and times acquired, of what came."""
    found = [(run.attempts, run.acquired) for run in machine.link.deliveries.runs for _ in range(run.count)]
    machine.link.deliveries.reset()
    return found


def test_what_is_given_back_untried_makes_no_attempt(limited: Make) -> None:
    """It may come for ever, and is told to have been somebody's; what nobody was shown was nobody's."""
    machine = limited(dead_letter_exchange="dlx")
    machine.publish(1)
    machine.consumer()
    expected = [(0, 0)]
    for outcome in (pb.RETURN, pb.RESTORE, pb.RELEASE, pb.RETURN, pb.ABANDON):
        assert counts(machine) == expected[-1:]
        machine.queue.settle(outcome, [1], 0)
        attempts, acquired = expected[-1]
        expected.append((attempts + (outcome in (pb.RELEASE, pb.ABANDON)), acquired + (outcome != pb.RESTORE)))
    assert counts(machine) == [(2, 4)]
    assert machine.dead() == []
    machine.queue.settle(pb.RELEASE, [1], 0)
    assert machine.dead() == [(1, "delivery_limit")]


def test_a_get_is_told_too(limited: Make) -> None:
    """Of what a consumer had."""
    machine = limited()
    machine.publish(1)
    entry = machine.queue.get(machine.link, 0, settled=False)
    assert entry
    machine.queue.settle(pb.RETURN, [1], 0)
    assert machine.queue.features.acquired(entry) == 1


def test_others_tell_nothing(make: Make) -> None:
    """A queue without a limit keeps no such count; one that gets a limit by policy counts from then on."""
    machine = make()
    machine.publish(1)
    machine.consumer()
    machine.queue.settle(pb.RETURN, [1], 0)
    machine.queue.settle(pb.RELEASE, [1], 0)
    assert counts(machine) == [(0, 0), (0, 0), (1, 0)]
    machine.adopt({"delivery-limit": 5})
    machine.queue.settle(pb.RETURN, [1], 0)
    assert counts(machine) == [(1, 2)]


STEPS = st.lists(
    st.tuples(
        st.sampled_from([pb.ACCEPT, pb.RELEASE, pb.RETURN, pb.RESTORE, pb.ABANDON, pb.REJECT]), st.integers(0, 9)
    ),
    max_size=30,
)


@pytest.mark.parametrize("kind", plugins.names("queue_types"))
@given(steps=STEPS)
def test_beside_naive_counts(kind: str, steps: list[tuple[pb.Outcome.ValueType, int]]) -> None:
    """Whatever becomes of each of some messages; in the end nothing is kept of any."""
    machine = Machine(kind, delivery_limit=9, **NEEDS.get(kind, {}))
    machine.publish(3)
    machine.consumer()
    attempts, acquired = dict.fromkeys((1, 2, 3), 0), dict.fromkeys((1, 2, 3), 0)
    for outcome, number in steps:
        machine.link.deliveries.reset()
        if not (held := sorted(machine.queue.unsettled)):
            break
        uid = held[number % len(held)]
        machine.queue.settle(outcome, [uid], 0)
        attempts[uid] += outcome in (pb.RELEASE, pb.ABANDON)
        acquired[uid] += outcome in (pb.RELEASE, pb.ABANDON, pb.RETURN)
        told = counts(machine)
        if outcome not in (pb.ACCEPT, pb.REJECT) and attempts[uid] <= 9:
            assert told == [(attempts[uid], acquired[uid])]
    machine.queue.settle(pb.ACCEPT, list(machine.queue.unsettled), 0)
    assert list(machine.queue.features.unwritten()) == []
