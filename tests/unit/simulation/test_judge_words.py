"""Broker-J's words for queues, periods of consumers, and dead letters that wait for a way."""

from __future__ import annotations

import pytest

from tests.simulation.choices import LATE, LEAST_TTL, MOST, MOST_ATTEMPTS, MOST_TTL, RING, STRATEGY
from tests.support.written_history import Written

LOST = "nothing promised is lost"


def declared(told: Written, **more: object) -> None:
    """The queue q, with arguments by their names."""
    told.change("queue", queue="q", durable=True, arguments=more)


@pytest.mark.parametrize(
    ("arguments", "lives"),
    [({}, 0.1), ({LEAST_TTL: 5000}, 5.0), ({LEAST_TTL: 5000, MOST_TTL: 2000}, 2.0), ({LEAST_TTL: 50}, 0.1)],
)
def test_the_least_time(told: Written, arguments: dict[str, object], lives: float) -> None:
    """A shorter one of a message is taken for it, and the queue's most counts before both."""
    declared(told, **arguments)
    told.publish("m", "q", ttl=100)
    told.time = lives - 0.01
    assert told.broken() == {LOST}
    told.time = lives
    assert told.broken() == set()


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [({"qpid.policy_type": "REJECT", MOST: 1}, 1), ({"x-max-length-bytes": 500, "x-overflow": "drop-head"}, 0)],
)
def test_limits(told: Written, arguments: dict[str, object], kept: int) -> None:
    """One that is not exceeded excuses nothing; of bytes it is not known whether it is."""
    declared(told, **arguments)
    told.publish("m", "q")
    assert told.broken() == ({LOST} if kept else set())
    told.publish("n", "q")
    assert told.broken() == set()


@pytest.mark.parametrize(("most", "broken"), [(1, set()), (2, {LOST})])
def test_a_ring_with_letters(told: Written, most: int, broken: set[str]) -> None:
    """What goes round is no dead letter; what was rejected is one, of a ring that was never full."""
    told.queue("dead")
    declared(told, **RING, **{"x-max-length": most, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    told.deliver(told.publish("m", "q"), "q", "reject")
    told.drain(told.publish("n", "q"), "q")
    assert told.broken() == broken


def test_attempts(told: Written) -> None:
    """So many deliveries, and then it may be gone."""
    declared(told, **{MOST_ATTEMPTS: 1})
    sent = told.publish("m", "q")
    assert told.broken() == {LOST}
    told.deliver(sent, "q", "requeue")
    assert told.broken() == set()


def test_what_waits_for_a_way(told: Written) -> None:
    """It is there when there is one, though there was none when its queue gave it up."""
    declared(told, **{"x-dead-letter-exchange": LATE, STRATEGY: "at-least-once", "x-overflow": "reject-publish"})
    sent = told.publish("m", "q")
    told.deliver(sent, "q", "reject")
    assert told.broken() == set()
    told.change("exchange", exchange=LATE, type="fanout")
    told.queue("late-1")
    told.change("bind", source=LATE, to="late-1", key="")
    assert told.broken() == {LOST}
    told.drain(sent, "late-1", deaths=(("q", "rejected", 1),))
    assert told.broken() == set()


@pytest.mark.parametrize(("came", "broken"), [(0.0, {"a period is kept"}), (9.0, set())])
def test_a_period(told: Written, came: float, broken: set[str]) -> None:
    """What came before it is not for the consumer."""
    declared(told)
    told.time = came
    sent = told.publish("m", "q")
    told.time = 10.0
    told.deliver(sent, "q", "ack", consumer=told.consumer("q", replay=5))
    assert told.broken() == broken
