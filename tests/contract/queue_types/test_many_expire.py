"""Many messages that expire at once: others have their turn meanwhile."""

from __future__ import annotations

from statistics import median
from time import thread_time

import pytest

from tests.support.queue_machine import Make

MANY = 30_000
AT_ONCE = 5000
FRACTION = 5  # it is a fifteenth and less


@pytest.mark.parametrize("behind", [False, True])
def test_in_slices(make: Make, behind: bool) -> None:
    """None takes long, whether they stand in front, or behind one that stays; after the last of them all are gone.

    Not longer than a fraction of what it took to publish all: of seconds a machine has few or many.
    """
    machine = make(dead_letter_exchange="dlx")
    if behind:
        machine.publish(1)
    slices, dropped, published = [], [], thread_time()
    machine.publish(MANY, ttl_ms=50)
    published = thread_time() - published
    while 0 < machine.queue.deadline() <= 50:
        began = thread_time()
        machine.queue.expire(50)
        machine.queue.dispatch(50)
        slices.append(thread_time() - began)
        dropped.append(len(machine.dead()))
    assert (sum(dropped), machine.queue.ready_count) == (MANY, int(behind))
    assert max(dropped) <= AT_ONCE
    assert median(slices) < published / FRACTION
