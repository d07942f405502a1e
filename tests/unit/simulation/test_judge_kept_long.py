"""What the judge says of consumers that keep what they have, and of those that are cancelled."""

from __future__ import annotations

import pytest

from tests.simulation.history import Consuming, Delivered
from tests.support.written_history import Written

KEPT = "who keeps a delivery for too long is cancelled"
REASON = "consumers are cancelled for a reason"
HELD = "what one holds is nobody else's"
AGAIN = "acknowledged is never seen again"


@pytest.fixture
def consumer(told: Written) -> Consuming:
    """Of a queue `k`, with a second for each delivery."""
    told.queue("k", consumer_timeout=1000)
    return told.consumer("k")


def _kept(told: Written, consumer: Consuming) -> Delivered:
    """It has a message for nine seconds."""
    kept = told.deliver(told.publish("m", "k"), "k", consumer=consumer)
    told.time = 9.0
    return kept


@pytest.mark.parametrize(("after", "broken"), [(1.2, set()), (5.0, {KEPT})])
def test_kept(told: Written, consumer: Consuming, after: float, broken: set[str]) -> None:
    """It is cancelled when its time is over; the message is for others then."""
    kept = told.deliver(told.publish("m", "k"), "k", consumer=consumer)
    told.time = after
    consumer.ending, consumer.cancelled_by_broker = told.history.tick(), True
    told.drain(kept.id, "k", redelivered=True)
    told.time = 9.0
    kept.settled_as, kept.settled = "ack", told.history.tick()
    kept.known = told.history.tick()
    assert told.broken() == broken


def test_not_cancelled(told: Written, consumer: Consuming) -> None:
    """One that is not cancelled, and has its message for ever, is a fault; of a queue without that time it is none."""
    other = told.deliver(told.publish("n", "q"), "q", consumer=told.consumer("q"))
    kept = _kept(told, consumer)
    for each in (kept, other):
        each.settled_as, each.settled = "ack", told.history.tick()
    assert told.broken() == {KEPT}


def test_in_time(told: Written, consumer: Consuming) -> None:
    """What is acknowledged in time is never seen again, and what is held nobody else's."""
    held = told.deliver(told.publish("m", "k"), "k", consumer=consumer)
    told.deliver(held.id, "k", "ack", redelivered=True)
    told.drain(held.id, "k", redelivered=True)
    consumer.ending = told.history.tick()
    assert told.broken() == {HELD, AGAIN}


def test_no_reason(told: Written, consumer: Consuming) -> None:
    """Nobody is cancelled who keeps nothing."""
    for each in (consumer, told.consumer("q")):
        each.ending, each.cancelled_by_broker = told.history.tick(), True
    assert [violation.rule for violation in told.violations()] == [REASON, REASON]
