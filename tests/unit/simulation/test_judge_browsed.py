"""What the judge says of consumers that take nothing."""

from __future__ import annotations

import pytest

from tests.simulation.history import Consuming
from tests.support.written_history import Written

LOST = "nothing promised is lost"
ONCE = "a browser sees a message once"
SEES = "a browser sees what waits"


@pytest.fixture
def browser(told: Written) -> Consuming:
    return told.consumer("q", browses=True)


def test_nothing_is_taken(told: Written, browser: Consuming) -> None:
    """What a browser has seen, and acknowledged, is still there; else it is lost."""
    sent = told.publish("m", "q")
    told.deliver(sent, "q", "ack", consumer=browser)
    assert told.broken() == {LOST}
    told.drain(sent, "q")
    assert told.broken() == set()


def test_all_of_a_queue(told: Written) -> None:
    """A queue may have all its consumers browse."""
    told.change("queue", queue="n", durable=True, arguments={"ensureNondestructiveConsumers": True})
    told.deliver(told.publish("m", "n"), "n", "ack", consumer=told.consumer("n"))
    assert told.broken() == {LOST}


@pytest.mark.parametrize(("fault", "broken"), [(False, {ONCE}), (True, set())])
def test_once(told: Written, browser: Consuming, *, fault: bool, broken: set[str]) -> None:
    """It sees a message again from another owner only."""
    sent = told.publish("m", "q")
    for _ in range(2):
        told.deliver(sent, "q", consumer=browser)
    if fault:
        told.fault("move", "1", "queue-1")
    told.drain(sent, "q")
    assert told.broken() == broken


@pytest.mark.parametrize(
    ("waits", "limited", "broken"), [(5.0, False, {SEES}), (5.0, True, set()), (1.0, False, set())]
)
def test_all_that_waits(told: Written, browser: Consuming, *, waits: float, limited: bool, broken: set[str]) -> None:
    """It sees what waits while it is there, as far as it may."""
    told.two.limited = limited
    sent = told.publish("m", "q")
    told.time = waits
    told.drain(sent, "q")
    told.time = 9.0
    browser.ending = told.history.tick()
    assert told.broken() == broken


def test_selected(told: Written) -> None:
    """It sees what it selects."""
    browser = told.consumer("q", browses=True, selector="colour = 'red'")
    sent = told.publish("m", "q", headers={"colour": "green"})
    told.time = 5.0
    told.drain(sent, "q")
    told.time = 9.0
    browser.ending = told.history.tick()
    assert told.broken() == set()
