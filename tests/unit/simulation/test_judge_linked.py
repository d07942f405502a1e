"""What the judge says of drains, and of what was released."""

from __future__ import annotations

import pytest

from tests.simulation.history import Drained
from tests.support.written_history import Written

DRAIN = "a drain gives what there is"
RELEASED = "what is released is no attempt"


def _drained(told: Written, unused: int) -> Drained:
    """A drain, a second after all before it."""
    told.time += 1.0
    drained = Drained(told.consumer("q"), told.history.tick(), unused=unused)
    drained.answered = told.history.tick()
    told.history.drains.append(drained)
    return drained


@pytest.mark.parametrize(("unused", "broken"), [(0, set()), (1, {DRAIN})])
def test_left(told: Written, unused: int, broken: set[str]) -> None:
    """What waited before a drain, and after it, was not all that there was: unless credit was for no more."""
    sent = told.publish("m", "q")
    _drained(told, unused)
    told.time += 1.0
    told.drain(sent, "q")
    assert told.broken() == broken


def test_came_since(told: Written) -> None:
    """What has come since is not."""
    _drained(told, 1)
    sent = told.publish("m", "q")
    told.time += 1.0
    told.drain(sent, "q")
    assert told.broken() == set()


def test_where_something_dies(told: Written) -> None:
    """What died with an owner may have been on its way."""
    sent = told.publish("m", "q")
    _drained(told, 1)
    told.fault("kill", "queue-1")
    told.time += 1.0
    told.drain(sent, "q")
    assert told.broken() == set()


@pytest.mark.parametrize(("attempt", "broken"), [(False, {RELEASED}), (True, set())])
def test_released(told: Written, *, attempt: bool, broken: set[str]) -> None:
    """Who only releases a message does not use up its attempts."""
    told.queue("dead")
    told.change("exchange", exchange="dlx", type="fanout")
    told.change("bind", source="dlx", to="dead")
    told.queue("l", delivery_limit=0, dead_letter_exchange="dlx")
    sent = told.publish("m", "l")
    told.deliver(sent, "l", "requeue", attempt=attempt)
    told.drain(sent, "dead", deaths=(("l", "delivery_limit", 1),))
    assert told.broken() == broken


def test_released_as_if_never_delivered(told: Written) -> None:
    """What was released may come as new."""
    sent = told.publish("m", "q")
    told.deliver(sent, "q", "requeue", attempt=False)
    told.drain(sent, "q")
    assert told.broken() == set()


@pytest.mark.parametrize(("before", "broken"), [(1, set()), (2, {"attempts are counted"})])
def test_attempts(told: Written, before: int, broken: set[str]) -> None:
    """A delivery says how many attempts there were before it; what was released was none."""
    sent = told.publish("m", "q")
    told.deliver(sent, "q", "requeue", before=0)
    told.deliver(sent, "q", "requeue", redelivered=True, before=1, attempt=False)
    told.drain(sent, "q", redelivered=True, before=before)
    assert told.broken() == broken
