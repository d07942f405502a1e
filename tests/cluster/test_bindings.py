"""After bind-ok no publish misses the binding, on whichever gateway it arrives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pika.exceptions import UnroutableError

from tests.support.interop_pika import connected

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.interop_address import BrokerAddress
    from tests.support.stack import Stack

BINDINGS = 100


@pytest.fixture(scope="module")
def other_gateway(stack: Stack) -> Iterator[BrokerAddress]:
    """A second gateway of the same stack."""
    with stack.another_gateway() as address:
        yield address


def test_no_publish_after_bind_ok_misses(stack: Stack, other_gateway: BrokerAddress, name: str) -> None:
    """Bound on one gateway, at once published on both: routed every time, and after unbind-ok never."""
    with connected(stack.address) as binding, connected(stack.address) as same, connected(other_gateway) as other:
        binder = binding.channel()
        publishers = [same.channel(), other.channel()]
        for publisher in publishers:
            publisher.confirm_delivery()
        binder.exchange_declare(name, "topic")
        queue = binder.queue_declare("", exclusive=True).method.queue
        for number in range(BINDINGS):
            binder.queue_bind(queue, name, f"key.{number}")
            for publisher in publishers:
                publisher.basic_publish(name, f"key.{number}", b"x", mandatory=True)
            binder.queue_unbind(queue, name, f"key.{number}")
            for publisher in publishers:
                with pytest.raises(UnroutableError):
                    publisher.basic_publish(name, f"key.{number}", b"x", mandatory=True)
        assert binder.queue_purge(queue).method.message_count == BINDINGS * len(publishers)
        binder.exchange_delete(name)


def test_queue_declared_on_one_gateway_is_known_to_the_other(
    stack: Stack, other_gateway: BrokerAddress, name: str
) -> None:
    """After declare-ok the default exchange routes to the queue from every gateway."""
    with connected(stack.address) as declaring, connected(other_gateway) as other:
        channel, publisher = declaring.channel(), other.channel()
        publisher.confirm_delivery()
        for number in range(30):
            channel.queue_declare(f"{name}-{number}")
            publisher.basic_publish("", f"{name}-{number}", b"x", mandatory=True)
            assert channel.queue_delete(f"{name}-{number}").method.message_count == 1
