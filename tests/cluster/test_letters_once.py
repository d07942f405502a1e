"""kill -9 of the processes that own the queues of dead letters while these flow: each comes, and comes once."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pika
import pytest

from services.common.partition import partition_of

if TYPE_CHECKING:
    from pika.adapters.blocking_connection import BlockingChannel

    from tests.support.stack import Stack

FLOW_SECONDS = 2.0
AT_ONCE = 50
TTL_MS = 300
PERSISTENT = pika.BasicProperties(delivery_mode=2)

pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
    pytest.mark.timeout(180),
]


def opened(stack: Stack) -> BlockingChannel:
    """A channel of a connection of its own."""
    return pika.BlockingConnection(pika.ConnectionParameters(stack.address.host, stack.address.port)).channel()


def named(stack: Stack, name: str, owner: str) -> str:
    """The name of a queue that this process will own."""
    command = [Path(sys.executable).with_name("hopline"), "partitions", "--json"]
    said = subprocess.run(command, env=stack.command_environment(), capture_output=True, text=True, check=True).stdout
    owners = {each["partition"]: each["owner"] for each in map(json.loads, said.splitlines())}
    names = (f"{name}-{number}" for number in range(1000))
    return next(each for each in names if owners[partition_of("/", each, len(owners))].startswith(f"{owner}-"))


class Flow(threading.Thread):
    """Commits messages for a queue for a while; `count` of them, with their numbers as bodies."""

    def __init__(self, stack: Stack, queue: str) -> None:
        super().__init__()
        self.count = 0
        self._stack = stack
        self._queue = queue

    def run(self) -> None:
        channel = opened(self._stack)
        channel.tx_select()
        until = time.monotonic() + FLOW_SECONDS
        while time.monotonic() < until:
            for number in range(self.count, self.count + AT_ONCE):
                channel.basic_publish("", self._queue, str(number).encode(), PERSISTENT)
            channel.tx_commit()
            self.count += AT_ONCE
        channel.connection.close()


def emptied(channel: BlockingChannel, queue: str, count: int) -> Counter[bytes]:
    """What comes from a queue until so many different messages have come, and no more come for a second."""
    found: Counter[bytes] = Counter()
    for method, _, body in channel.consume(queue, inactivity_timeout=1, auto_ack=True):
        if method is not None:
            found[body] += 1
        elif len(found) >= count:
            channel.cancel()
            return found
    raise AssertionError


@pytest.mark.parametrize("killed", [("queue-1",), ("queue-2",), ("queue-1", "queue-2")], ids=["old", "new", "both"])
def test_letters_come_once(stack: Stack, name: str, killed: tuple[str, ...]) -> None:
    """Whether the owner of their old queue is killed, that of the one where they go, or both."""
    channel = opened(stack)
    old, new = named(stack, f"{name}-old", "queue-1"), named(stack, f"{name}-new", "queue-2")
    channel.queue_declare(new, durable=True)
    letters = {"x-message-ttl": TTL_MS, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": new}
    channel.queue_declare(old, durable=True, arguments=letters)
    flow = Flow(stack, old)
    flow.start()
    time.sleep(FLOW_SECONDS / 2)
    for service, pid in {each: stack.kill(each) for each in killed}.items():
        stack.wait_until_replaced(service, pid)
    flow.join()
    found = emptied(channel, new, flow.count)
    channel.connection.close()
    assert flow.count > 0
    assert [body for body, times in found.items() if times > 1] == []
    assert len(found) == flow.count
