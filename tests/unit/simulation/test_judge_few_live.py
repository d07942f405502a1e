"""What the judge says of queues of which few consumers are live."""

from __future__ import annotations

import pytest

from tests.simulation.choices import LIVE
from tests.support.written_history import Written

RULE = "single active is one"


@pytest.mark.parametrize(("faults", "live", "broken"), [(0, 2, {RULE}), (1, 2, {RULE}), (0, 3, set()), (1, 3, set())])
def test_so_many_and_no_more(faults: int, live: int, broken: set[str]) -> None:
    """The oldest, and once they were served none beside them until one of them ends, under whichever owner."""
    told = Written()
    told.change("queue", queue="few", durable=True, arguments={LIVE: live})
    consumers = [told.consumer("few", channel) for channel in (told.one, told.two, told.one)]
    for _ in range(faults):
        told.fault("move", "0")
    for name, consumer in zip("abc", consumers, strict=True):
        told.deliver(told.publish(name, "few"), "few", "ack", consumer=consumer)
    assert told.broken() == broken
    consumers[0].ending = told.history.deliveries[1].at + 1
    assert told.broken() == set()
