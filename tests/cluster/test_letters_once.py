"""kill -9 of the processes that own the queues of dead letters while these flow: each comes, and comes once."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pika
import pytest

from services.common.partition import partition_of
from services.common.topology.slots import SlotName
from tests.support.stack import wait_until

if TYPE_CHECKING:
    from pika.adapters.blocking_connection import BlockingChannel

    from tests.support.stack import Stack

COUNT = 4000
FILL_SECONDS = 3.0

pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
    pytest.mark.timeout(180),
]


def opened(stack: Stack) -> BlockingChannel:
    """A channel of a connection of its own."""
    return pika.BlockingConnection(pika.ConnectionParameters(stack.address.host, stack.address.port)).channel()


def owners(stack: Stack) -> dict[int, str]:
    """Which process owns each partition."""
    command = [Path(sys.executable).with_name("hopline"), "partitions", "--json"]
    said = subprocess.run(command, env=stack.command_environment(), capture_output=True, text=True, check=True).stdout
    return {each["partition"]: each["owner"].rpartition("-")[0] for each in map(json.loads, said.splitlines())}


def named(stack: Stack, name: str, owner: str) -> str:
    """The name of a queue that this process will own, once it owns any."""
    wait_until(lambda: owner in owners(stack).values(), 30, f"partition of {owner}")
    its = owners(stack)
    names = (f"{name}-{number}" for number in range(1000))
    return next(each for each in names if its[partition_of(SlotName("/", each), len(its))] == owner)


def fill(stack: Stack, queue: str) -> None:
    """Commits messages with their numbers as bodies; all of them expire at one moment, soon."""
    channel, at = opened(stack), time.monotonic() + FILL_SECONDS
    channel.tx_select()
    for number in range(COUNT):
        left = str(max(0, round(1000 * (at - time.monotonic()))))
        properties = pika.BasicProperties(delivery_mode=2, expiration=left)
        channel.basic_publish("", queue, str(number).encode(), properties)
    channel.tx_commit()
    channel.connection.close()


def emptied(channel: BlockingChannel, queue: str) -> Counter[bytes]:
    """What comes from a queue until all of them have come, and no more come for a second."""
    found: Counter[bytes] = Counter()
    for method, _, body in channel.consume(queue, inactivity_timeout=1, auto_ack=True):
        if method is not None:
            found[body] += 1
        elif len(found) >= COUNT:
            channel.cancel()
            return found
    raise AssertionError


@pytest.mark.parametrize("killed", [("queue-1",), ("queue-2",), ("queue-1", "queue-2")], ids=["old", "new", "both"])
def test_letters_come_once(stack: Stack, name: str, killed: tuple[str, ...]) -> None:
    """Whether the owner of their old queue is killed, that of the one where they go, or both."""
    channel = opened(stack)
    old, new = named(stack, f"{name}-old", "queue-1"), named(stack, f"{name}-new", "queue-2")
    channel.queue_declare(new, durable=True)
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": new}
    channel.queue_declare(old, durable=True, arguments=letters)
    fill(stack, old)
    while not channel.queue_declare(new, passive=True).method.message_count:
        pass  # the kill is to hit some that are under way
    for service, pid in {each: stack.kill(each) for each in killed}.items():
        stack.wait_until_replaced(service, pid)
    found = emptied(channel, new)
    channel.connection.close()
    assert [body for body, times in found.items() if times > 1] == []
    assert len(found) == COUNT
