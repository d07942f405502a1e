"""Dead letters come once where what told so is kept: on disk, or by owners that live on."""

from __future__ import annotations

import pytest

from tests.simulation.history import Sent
from tests.support.written_history import Written

TWICE = "nothing is there twice"
AGAIN = "acknowledged is never seen again"
HELD = "what one holds is nobody else's"
ONCE = (("q", "rejected", 1),)


@pytest.fixture
def letter(told: Written) -> Sent:
    """Rejected in the queue q, whose dead letters go to the durable queue dead and the other one, while owners die."""
    told.queue("dead")
    told.queue("passing", durable=False)
    told.change("exchange", exchange="dlx", type="fanout")
    for name in ("dead", "passing"):
        told.change("bind", source="dlx", to=name)
    told.queue("q", dead_letter_exchange="dlx")
    sent = told.publish("m", "q")
    told.deliver(sent, "q", "reject")
    told.drain(sent, "passing", deaths=ONCE)
    told.fault("kill", "queue-1")
    return sent


def test_twice(told: Written, letter: Sent) -> None:
    """Two that are there in the end; it makes no difference if the next owner gave another reason."""
    told.drain(letter, "dead", deaths=ONCE)
    assert told.broken() == set()
    told.drain(letter, "dead", deaths=(("q", "delivery_limit", 1),))
    assert TWICE in told.broken()


def test_another_death(told: Written, letter: Sent) -> None:
    """One that came back and died again is another letter."""
    told.drain(letter, "dead", deaths=ONCE)
    told.drain(letter, "dead", deaths=(("q", "rejected", 2),))
    assert TWICE not in told.broken()


def test_again(told: Written, letter: Sent) -> None:
    """One that was acknowledged is not sent there again."""
    told.deliver(letter, "dead", "ack", deaths=ONCE)
    told.drain(letter, "dead", deaths=ONCE)
    assert told.broken() == {AGAIN}


def test_owners_die_at_once(told: Written, letter: Sent) -> None:
    """Unless its owner dies in the moment after it came, with the one that sent it: it was not on disk yet."""
    told.deliver(letter, "dead", "ack", deaths=ONCE)
    told.drain(letter, "dead", deaths=ONCE)
    told.fault("kill", "queue-2")
    assert told.broken() == set()
    told.history.faults[-1].time += 5.0
    assert told.broken() == {AGAIN}


def test_held(told: Written, letter: Sent) -> None:
    """Nor while a client holds it."""
    told.deliver(letter, "dead", deaths=ONCE)
    told.drain(letter, "dead", deaths=ONCE)
    assert HELD in told.broken()


def test_in_memory(told: Written, letter: Sent) -> None:
    """Of a queue that is not durable the next owner does not know what it has had."""
    told.deliver(letter, "passing", "ack", deaths=ONCE)
    told.drain(letter, "passing", deaths=ONCE)
    assert AGAIN not in told.broken()
    told.history.faults.clear()
    assert AGAIN in told.broken()
