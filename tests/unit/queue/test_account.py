"""Memory that messages take is in the account as long as they are, their facts with them."""

from __future__ import annotations

import pytest

from services.common.message.facts import from_bytes, to_bytes
from services.rpc import queue_pb2 as pb
from tests.support.messages import facts
from tests.support.queue_machine import Machine


def test_facts_of_keys_that_never_come_back() -> None:
    """Messages with keys of their own have facts of their own: all else that these say is there once."""
    first, second = (from_bytes(to_bytes(facts("amq.topic", f"key-{number}"))) for number in (1, 2))
    assert first is not second
    assert first.virtual_host is second.virtual_host
    assert first.exchange is second.exchange
    assert first.format is second.format


@pytest.mark.parametrize("distinct", [True, False])
def test_routing_keys_count(distinct: bool) -> None:
    """A key of n bytes is n bytes of the account and of its queue's, until its message is gone."""
    short, long = Machine(), Machine()
    for machine, length in ((short, 10), (long, 210)):
        keys = [f"{number if distinct else 0:0{length}}" for number in range(5)]
        shared = facts("e", keys[0])
        machine.publish_mixed([facts("e", key) if distinct else shared for key in keys])
    assert long.account.used - short.account.used == 5 * 200
    assert long.queue.holding.size - short.queue.holding.size == 5 * 200
    long.consumer()
    long.queue.settle(pb.ACCEPT, [1, 2, 3], 0)
    assert 0 < long.account.used == long.queue.holding.size
    long.queue.settle(pb.ACCEPT, [4, 5], 0)
    assert long.account.used == long.queue.holding.size == 0


def test_credit_is_of_what_is_carried() -> None:
    """A routing key takes none of a consumer's credit in bytes, though it takes memory."""
    machine = Machine()
    consumer = machine.consumer(size=1000)
    machine.publish_mixed([facts("e", "k" * 200)], body=b"x" * 100)
    assert 1000 - consumer.size == 100 + 2
