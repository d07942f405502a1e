"""kill -9 of any process, or all, under load: nothing confirmed is lost, nothing committed comes again.

HOPLINE_TEST_KILLS says how many times in all (20), spread over the targets by their weight.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.cluster_load import Load

if TYPE_CHECKING:
    from tests.support.stack import Stack

KILLS = int(os.environ.get("HOPLINE_TEST_KILLS", "20"))
WEIGHTS = {"all": 4, "store": 4, "queue-1": 3, "queue-2": 3, "gateway": 3, "router": 2, "mgmt": 1}
UNDER_LOAD_SECONDS = 0.7

# pika leaves the sockets of connections that failed to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
    pytest.mark.timeout(60 + 15 * KILLS),
]


def kill_and_wait(stack: Stack, target: str) -> None:
    """Kills `target` and returns when the stack is healthy with its successor."""
    if target == "all":
        stack.kill_all()
        stack.start()
    else:
        stack.wait_until_replaced(target, stack.kill(target))


@pytest.mark.parametrize("target", WEIGHTS)
def test_confirmed_messages_survive(stack: Stack, name: str, target: str) -> None:
    """Every confirmed persistent message is delivered, and none again after its ack was committed."""
    load = Load(stack.address, name)
    load.start()
    load.wait_for_progress()
    for _ in range(max(1, round(KILLS * WEIGHTS[target] / sum(WEIGHTS.values())))):
        time.sleep(UNDER_LOAD_SECONDS)
        kill_and_wait(stack, target)
        load.wait_for_progress()
    load.finish()
    assert load.confirmed() > 0
    assert load.lost() == []
    assert load.broken_promises() == []


def test_waiting_messages_survive_a_kill_of_all(stack: Stack, name: str) -> None:
    """Confirmed persistent messages that were not consumed yet are there after every process was killed."""
    load = Load(stack.address, name)
    for producer in load.producers:
        producer.start()
    time.sleep(2)
    for producer in load.producers:
        producer.stop()
    kill_and_wait(stack, "all")
    for consumer in load.consumers:
        consumer.start()
    load.finish()
    assert load.confirmed() > 0
    assert load.lost() == []


def test_stop_is_clean(stack: Stack, name: str) -> None:
    """A stack that is asked to end ends with status 0, and starts again with every confirmed message."""
    load = Load(stack.address, name)
    load.start()
    load.wait_for_progress()
    stack.stop()
    stack.start()
    load.wait_for_progress()
    load.finish()
    assert load.lost() == []
    assert load.broken_promises() == []
