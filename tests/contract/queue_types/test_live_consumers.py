"""Queues of which a few consumers are live at a time (maximumLiveConsumers), under one owner and the next."""

from __future__ import annotations

from functools import partial

import hypothesis.strategies as st
import pytest
from hypothesis import given

from services.queue.counting import portions
from services.queue.machine.consumers import Consumer
from tests.support.queue_machine import FakeLink, Machine, Make


@pytest.fixture
def two(make: Make) -> Make:
    return partial(make, table={"maximumLiveConsumers": 2})


def got(machine: Machine) -> set[int]:
    """The consumers that were sent something since the last call."""
    return {handle for handle, _, _ in machine.link.taken()}


def test_in_the_order_in_which_they_came(two: Make) -> None:
    """The first two get everything; the next one when one of them is gone; their gateways are told which are."""
    machine = two()
    first, second, third, fourth = (machine.consumer() for _ in range(4))
    machine.publish(6)
    assert got(machine) == {first.handle, second.handle}
    machine.queue.detach(first, 0)
    machine.publish(6)
    assert got(machine) == {second.handle, third.handle}
    machine.queue.detach(third, 0)
    machine.publish(6)
    assert got(machine) == {second.handle, fourth.handle}
    assert [handle for handle, _ in machine.link.active] == [each.handle for each in (first, second, third, fourth)]


def test_with_credit_for_less_than_there_is(two: Make) -> None:
    """Who waits is given nothing, though those that are live can take no more."""
    machine = two()
    machine.consumer(messages=1)
    machine.consumer(messages=2)
    waiting = machine.consumer()
    machine.publish(5)
    assert machine.queue.ready_count == 2
    assert not machine.queue.consumers.is_live(waiting)


def test_under_the_next_owner(two: Make) -> None:
    """Those that were live are, whichever come again first; who is new waits behind all of them."""
    machine = two(epoch=2)
    new = machine.consumer(messages=0)
    for age, activated in ((1, 0), (2, 7), (3, 0), (4, 5)):
        machine.consumer(again=True, age=age, activated=activated)
    machine.publish(4)
    live = [each for each in machine.queue.consumers if machine.queue.consumers.is_live(each)]
    assert sorted(each.age for each in live) == [2, 4]
    assert new.age > 4


def test_a_gateway_is_away_for_a_moment(two: Make) -> None:
    """Its consumer's place is kept, and taken by the next one when it stays away."""
    machine, broken = two(), FakeLink()
    away, other, waiting = machine.consumer(link=broken), machine.consumer(), machine.consumer()
    machine.publish(2)
    machine.link.taken()
    broken.broken = True
    machine.queue.detach(away, 0)
    machine.publish(4)
    assert got(machine) == {other.handle}
    again = machine.consumer(again=True, age=away.age, activated=away.activated)
    machine.publish(4)
    assert got(machine) == {other.handle, again.handle}
    machine.queue.detach(again, 0)
    machine.publish(4)
    assert got(machine) == {other.handle, waiting.handle}


def test_with_selectors_and_browsers(two: Make) -> None:
    """A browser is none of them, and sees all."""
    machine = two()
    machine.consumer(browse=True)
    first, second, third = (machine.consumer() for _ in range(3))
    machine.publish(6)
    seen = [handle for handle, _, _ in machine.link.taken()]
    assert set(seen) == {1, first.handle, second.handle}
    assert third.handle not in seen
    assert seen.count(1) == 6


@given(st.integers(2, 4), st.lists(st.one_of(st.just("came"), st.integers(0, 9)), max_size=25))
def test_beside_a_naive_list(most: int, steps: list[str | int]) -> None:
    """Live are the first of those that were live, and then the first of all."""
    machine = Machine("classic", table={"maximumLiveConsumers": most})
    there: list[Consumer] = []
    live: list[Consumer] = []
    for step in steps:
        if step == "came":
            there.append(machine.consumer())
        elif there:
            gone = there.pop(int(step) % len(there))
            live = [each for each in live if each is not gone]
            machine.queue.detach(gone, 0)
        machine.publish(20)
        live += [each for each in there if each not in live][: most - len(live)]
        assert got(machine) == {each.handle for each in live}


def test_what_tools_are_told(make: Make) -> None:
    """Who would be given what came now is live, though nothing has come yet; the others are in reserve."""
    machine = make(table={"maximumLiveConsumers": 2})

    def live() -> list[str]:
        return [each.tag for told in portions({1: machine.queue}) for each in told.consumers if each.live]

    first = machine.consumer(tag="1")
    for tag in ("2", "3", "4"):
        machine.consumer(tag=tag, browse=tag == "2")
    assert live() == ["1", "2", "3"]
    machine.publish()
    assert live() == ["1", "2", "3"]
    machine.queue.detach(first, 0)
    assert live() == ["2", "3", "4"]
