"""A limit that comes to a queue with messages that stand aside."""

from __future__ import annotations

from services.common.message.facts import Facts
from tests.support.messages import facts
from tests.support.queue_machine import Machine


def held(not_before: int) -> Facts:
    return facts("amq.direct", not_before=not_before)


def test_the_oldest_goes_though_it_stands_aside() -> None:
    """Those that were aside before the limit came have their places as well."""
    machine = Machine(table={"holdOnPublishEnabled": True}, dead_letter_exchange="dlx")
    machine.publish_mixed([held(100), held(0), held(200)])
    machine.adopt({"max-length": 1})
    machine.queue.expire(1)
    assert machine.dead() == [(1, "maxlen"), (2, "maxlen")]
    assert machine.queue.ready_count == 1
