from __future__ import annotations

import pytest

from tests.support.written_history import Written

ORDER = "first deliveries are in order"


def test_order(told: Written) -> None:
    """One consumer gets what one channel published in the order of publishing."""
    sent = [told.publish(name, "q") for name in "ab"]
    consumer = told.consumer("q")
    for each in reversed(sent):
        told.deliver(each, "q", "ack", consumer=consumer)
    assert told.broken() == {ORDER}


@pytest.mark.parametrize(("fault", "broken"), [("kill", set()), ("tear", {ORDER})])
def test_order_of_what_died_with_its_owner(told: Written, fault: str, broken: set[str]) -> None:
    """A transient message comes again behind a persistent one that its owner has left on disk."""
    transient, persistent = told.publish("a", "q", persistent=False), told.publish("b", "q")
    told.fault(fault, "queue-1")
    consumer = told.consumer("q")
    told.deliver(persistent, "q", "ack", consumer=consumer)
    told.deliver(transient, "q", "ack", consumer=consumer)
    assert told.broken() == broken


@pytest.mark.parametrize(("confirmed", "broken"), [(False, set()), (True, {ORDER, "purged is never seen again"})])
def test_order_of_what_was_purged(told: Written, *, confirmed: bool, broken: set[str]) -> None:
    """What its publisher had not heard of when it was purged comes again if its owner dies, behind the rest."""
    first = told.publish("a", "q", confirmed=confirmed)
    told.change("purge", queue="q")
    second = told.publish("b", "q")
    told.fault("kill", "queue-1")
    consumer = told.consumer("q")
    told.deliver(second, "q", "ack", consumer=consumer)
    told.deliver(first, "q", "ack", consumer=consumer)
    assert told.broken() == broken


def test_order_of_two_publishers(told: Written) -> None:
    """What two channels publish has no order."""
    sent = [told.publish("a", "q"), told.publish("b", "q", channel=told.two)]
    consumer = told.consumer("q")
    for each in reversed(sent):
        told.deliver(each, "q", "ack", consumer=consumer)
    assert told.broken() == set()


def test_order_of_redeliveries(told: Written) -> None:
    """What comes again comes when it can."""
    sent = [told.publish(name, "q") for name in "ab"]
    consumer = told.consumer("q")
    told.deliver(sent[0], "q", "requeue", consumer=consumer)
    told.deliver(sent[1], "q", "ack", consumer=consumer)
    told.deliver(sent[0], "q", "ack", consumer=consumer, redelivered=True)
    assert told.broken() == set()
