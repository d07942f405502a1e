"""What the judge says of transactions whose end no client knows."""

from __future__ import annotations

from tests.support.written_history import Written

WHOLE = "a transaction is whole"


def test_half(told: Written) -> None:
    """A commit without an answer may be either way, but all of it."""
    sent = [told.publish(name, "q", confirmed=False) for name in "ab"]
    told.commit(*sent, outcome="unknown")
    assert told.broken() == set()
    told.drain(sent[0], "q")
    assert told.broken() == {WHOLE}
    told.drain(sent[1], "q")
    assert told.broken() == set()


def test_half_of_the_settlements(told: Written) -> None:
    """Its acknowledgements count with its messages."""
    old = told.publish("old", "q")
    held = told.deliver(old, "q", "ack", known=False)
    new = told.publish("new", "q", confirmed=False)
    told.commit(new, outcome="unknown", settled=(held,))
    assert told.broken() == {WHOLE}
    told.drain(new, "q")
    assert told.broken() == set()
    told.drain(old, "q", redelivered=True)
    assert told.broken() == {WHOLE}


def test_neither_half_of_the_settlements(told: Written) -> None:
    """Where its messages are not there, what was acknowledged in it is there again."""
    old = told.publish("old", "q")
    held = told.deliver(old, "q", "ack", known=False)
    told.commit(told.publish("new", "q", confirmed=False), outcome="unknown", settled=(held,))
    told.drain(old, "q", redelivered=True)
    assert told.broken() == set()
