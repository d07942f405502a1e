"""A gateway that was asleep while bindings changed serves nothing from what it remembers."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.support.interop_pika import connect, connected
from tests.support.stack import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pika.adapters.blocking_connection import BlockingChannel

    from tests.support.interop_address import BrokerAddress
    from tests.support.stack import Stack

ROUNDS = 3


@pytest.fixture(scope="module")
def other_gateway(stack: Stack) -> Iterator[BrokerAddress]:
    """A second gateway of the same stack."""
    with stack.another_gateway() as address:
        yield address


@contextmanager
def asleep(pid: int) -> Iterator[None]:
    """The process does nothing meanwhile, and goes on at once afterwards."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def rebind(channel: BlockingChannel, exchange: str, old: str, new: str) -> None:
    """From now on messages go to the new queue."""
    channel.queue_bind(new, exchange, "key")
    channel.queue_unbind(old, exchange, "key")


def check(stack: Stack, other: BrokerAddress, name: str, meanwhile: Callable[[], None]) -> None:
    """Routes are learnt on the other gateway, which sleeps while they change; then it is published there at once."""
    queues = [f"{name}-0", f"{name}-1"]
    with connected(stack.address) as binding, connected(other) as sleeping:
        channel, publisher = binding.channel(), sleeping.channel()
        channel.exchange_declare(name, "direct")
        for queue in queues:
            channel.queue_declare(queue)
        channel.queue_bind(queues[0], name, "key")
        publisher.confirm_delivery()
        for number in range(ROUNDS):
            old, new = queues[number % 2], queues[1 - number % 2]
            publisher.basic_publish(name, "key", b"known", mandatory=True)
            with asleep(stack.gateway_pids[other]):
                meanwhile()
                rebind(channel, name, old, new)
            publisher.basic_publish(name, "key", b"new", mandatory=True)
            assert channel.queue_purge(old).method.message_count == 1
            assert channel.queue_purge(new).method.message_count == 1
        for queue in queues:
            channel.queue_delete(queue)
        channel.exchange_delete(name)


def test_a_gateway_that_slept_routes_as_was_bound_meanwhile(
    stack: Stack, other_gateway: BrokerAddress, name: str
) -> None:
    """Stopped, bindings changed elsewhere, resumed: its first publish follows the new bindings."""
    check(stack, other_gateway, name, lambda: None)


def test_what_a_sleeping_gateway_was_sent_is_routed_when_it_wakes(
    stack: Stack, other_gateway: BrokerAddress, name: str
) -> None:
    """What waits in its socket when it wakes is read before anything tells it that the world has changed."""
    with connected(stack.address) as binding:
        channel = binding.channel()
        channel.exchange_declare(name, "direct")
        for queue in ("a", "b"):
            channel.queue_declare(name + queue)
        channel.queue_bind(name + "a", name, "key")
        sleeping = connect(other_gateway)
        publisher = sleeping.channel()
        publisher.basic_publish(name, "key", b"known")
        wait_until(lambda: channel.queue_purge(name + "a").method.message_count, 10, "message on its known way")
        with asleep(stack.gateway_pids[other_gateway]):
            rebind(channel, name, name + "a", name + "b")
            publisher.basic_publish(name, "key", b"new")
        wait_until(lambda: channel.queue_purge(name + "b").method.message_count, 10, "message on its new way")
        assert channel.queue_purge(name + "a").method.message_count == 0
        sleeping.close()


def test_router_and_store_die_while_a_gateway_sleeps(stack: Stack, other_gateway: BrokerAddress, name: str) -> None:
    """The next router, of the next store, still waits for the gateway that it has never heard."""

    def die() -> None:
        pids = {service: stack.pid(service) for service in ("store", "router")}
        for pid in pids.values():
            os.kill(pid, signal.SIGKILL)
        for service, pid in pids.items():
            stack.wait_until_replaced(service, pid)

    # Durable, since the store's memory goes with the only router that could fill it again.
    queues = [f"{name}-0", f"{name}-1"]
    with connected(other_gateway) as sleeping:
        publisher = sleeping.channel()
        publisher.exchange_declare(name, "direct", durable=True)
        for queue in queues:
            publisher.queue_declare(queue, durable=True)
        publisher.queue_bind(queues[0], name, "key")
        publisher.confirm_delivery()
        publisher.basic_publish(name, "key", b"known", mandatory=True)
        with asleep(stack.gateway_pids[other_gateway]):
            die()
            with connected(stack.address) as binding:
                channel = binding.channel()
                rebind(channel, name, *queues)
        publisher.basic_publish(name, "key", b"new", mandatory=True)
        assert [publisher.queue_purge(queue).method.message_count for queue in queues] == [1, 1]
