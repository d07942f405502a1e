"""What the judge says of messages that wait for their time."""

from __future__ import annotations

import pytest

from tests.simulation.history import Sent
from tests.support.written_history import Written

EARLY = "nothing is delivered before its time"
OVERDUE = "what is due is delivered"
EXPIRED = "what expires before its time is not delivered"
LOST = "nothing promised is lost"
HELD = {"holdOnPublishEnabled": True}


@pytest.fixture
def held(told: Written) -> Sent:
    """A message for a queue that holds, sent at 0 s, due at 5 s."""
    told.change("queue", queue="h", durable=True, arguments=HELD)
    return told.publish("m", "h", due=5.0)


@pytest.mark.parametrize(("time", "broken"), [(4.9, {EARLY}), (5.0, set())])
def test_early(told: Written, held: Sent, time: float, broken: set[str]) -> None:
    """What is not due is not delivered."""
    told.time = time
    told.drain(held, "h")
    assert told.broken() == broken


def test_other_queues(told: Written) -> None:
    """A queue that does not hold delivers at once."""
    told.drain(told.publish("m", "q", due=5.0), "q")
    assert told.broken() == set()


@pytest.mark.parametrize(("restarted", "broken"), [(False, {EARLY}), (True, set())])
def test_clocks(told: Written, held: Sent, *, restarted: bool, broken: set[str]) -> None:
    """A clock that is set is followed slowly, but by who begins anew: nothing is known of its time."""
    told.fault("jump_clock", "queue-1", seconds=3600)
    if restarted:
        told.fault("kill", "queue-2")
    told.time = 3.0
    told.drain(held, "h")
    assert told.broken() == broken


def test_slowly(told: Written, held: Sent) -> None:
    """What a clock is followed by is allowed for."""
    told.fault("jump_clock", "queue-1", seconds=3600)
    told.time = 4.5
    told.drain(held, "h")
    assert told.broken() == set()


def test_not_there_yet(told: Written, held: Sent) -> None:
    """By a clock that was set back what is delayed may still wait in the end; else it has to be there."""
    told.time = 20.0
    assert told.broken() == {LOST}
    told.fault("jump_clock", "queue-1", seconds=-3600)
    assert told.broken() == set()
    assert held.due == 5.0


def test_expired(told: Written) -> None:
    """What does not live until its time is gone before it."""
    told.change("queue", queue="h", durable=True, arguments=HELD)
    sent = told.publish("m", "h", due=5.0, ttl=1000)
    told.time = 6.0
    assert told.broken() == set()
    told.drain(sent, "h")
    assert told.broken() == {EXPIRED}


@pytest.mark.parametrize(
    ("limited", "at", "broken"), [(False, 9.0, {OVERDUE}), (False, 5.5, set()), (True, 9.0, set())]
)
def test_overdue(told: Written, held: Sent, *, limited: bool, at: float, broken: set[str]) -> None:
    """Who waits for all that there is gets what is due soon."""
    told.two.limited = limited
    told.consumer("h")
    told.time = at
    told.deliver(held, "h", "ack")
    told.time = 20.0
    told.two.connection.ending = told.history.tick()
    assert told.broken() == broken


def test_order(told: Written, held: Sent) -> None:
    """What waits for its time comes after others that were published after it."""
    told.time = 6.0
    consumer = told.consumer("h")
    for sent in (told.publish("n", "h"), held):
        told.deliver(sent, "h", "ack", consumer=consumer)
    assert told.broken() == set()
