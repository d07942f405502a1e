"""What the judge says of publishers to queues that have too much; and for whom room is made."""

from __future__ import annotations

import pytest

from tests.simulation.choices import HELD_BACK, MOST
from tests.simulation.history import Sent
from tests.simulation.plan import Plan
from tests.simulation.room import rooms
from tests.support.written_history import Written

RULE = "who publishes to a full queue is held back"


@pytest.fixture
def full(told: Written) -> list[Sent]:
    """Two messages of client two in a queue that wants one, and one of client one, a second later."""
    told.change("queue", queue="f", durable=True, arguments={**HELD_BACK, MOST: 1})
    sent = [told.publish(name, "f", channel=told.two) for name in "ab"]
    told.time = 1.0
    return [*sent, told.publish("c", "f")]


def _drained(told: Written, sent: list[Sent]) -> Written:
    told.time = 9.0
    for each in sent:
        told.drain(each, "f")
    return told


def test_once(told: Written, full: list[Sent]) -> None:
    """One publish is taken of whoever does not know."""
    assert _drained(told, full).broken() == set()


@pytest.mark.parametrize("committed", [False, True])
def test_twice(told: Written, full: list[Sent], *, committed: bool) -> None:
    """The next one of that connection waits, in a transaction too."""
    told.time = 3.0
    full.append(told.publish("d", "f", confirmed=not committed))
    if committed:
        told.commit(full[-1])
    assert _drained(told, full).broken() == {RULE}


def test_room(told: Written, full: list[Sent]) -> None:
    """Where there was room meanwhile it need not wait."""
    told.time = 2.0
    for each in full[:2]:
        told.deliver(each, "f", "ack")
    told.time = 3.0
    full.append(told.publish("d", "f"))
    assert _drained(told, full[2:]).broken() == set()


def test_not_committed(told: Written) -> None:
    """What is of a transaction does not wait there before its commit."""
    told.change("queue", queue="f", durable=True, arguments={**HELD_BACK, MOST: 1})
    kept = [told.publish(name, "f", channel=told.two) for name in "ab"]
    told.time = 1.0
    sent = [told.publish("c", "f")]
    told.time = 3.0
    sent.append(told.publish("d", "f"))
    told.time = 8.0
    for each in kept:
        told.commit(each)
    assert _drained(told, [*kept, *sent]).broken() == set()


def test_others(told: Written, full: list[Sent]) -> None:
    """Others are told when they publish."""
    told.time = 3.0
    full.append(told.publish("d", "f", channel=told.channel("three", "gateway-1")))
    assert _drained(told, full).broken() == set()


def test_rooms() -> None:
    """Room is made in queues with that policy."""
    queues = {"a": {**HELD_BACK, MOST: 1}, "b": {"x-max-length": 1}, "c": {}}
    steps = [{"do": "queue", "queue": name, "arguments": said, "host": "/"} for name, said in queues.items()]
    assert rooms(Plan(1, topology=[*steps, {"do": "exchange", "exchange": "x", "host": "/"}])) == {"/": ["a"]}
