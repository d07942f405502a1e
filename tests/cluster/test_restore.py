"""The store's disk is lost under a running stack, and comes back as it was in a backup.

HOPLINE_TEST_SECONDS says how much older the backup is than that (0).
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pika
import pytest

from tests.support.interop_pika import connected
from tests.support.stack import wait_until

if TYPE_CHECKING:
    from pika.adapters.blocking_connection import BlockingChannel

    from tests.support.stack import Stack

SECONDS = float(os.environ.get("HOPLINE_TEST_SECONDS", "0"))
PAUSE = 0.01 if SECONDS else 0.0  # between messages: all of them are looked at
BEFORE = 100
ACKNOWLEDGED = range(1, 11)


class Publisher(threading.Thread):
    """Publishes one message after the other to a queue; `confirmed` are those that it was told of."""

    def __init__(self, stack: Stack, queue: str) -> None:
        super().__init__()
        self._stack = stack
        self._queue = queue
        self._ended = threading.Event()
        self._new = threading.Condition()
        self.confirmed: list[bytes] = []
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            with connected(self._stack.address) as connection:
                channel = connection.channel()
                channel.confirm_delivery()
                while not self._ended.is_set():
                    body = b"load-%d" % len(self.confirmed)
                    publish(channel, self._queue, body)
                    with self._new:
                        self.confirmed.append(body)
                        self._new.notify()
                    self._ended.wait(PAUSE)
        except Exception as failure:  # noqa: BLE001 - the test asks what it was
            self.failure = failure

    def wait_for(self, more: int) -> None:
        """Returns when so many more are confirmed."""
        wanted = len(self.confirmed) + more
        with self._new:
            assert self._new.wait_for(lambda: len(self.confirmed) >= wanted, 60), self.failure

    def stop(self) -> None:
        self._ended.set()
        self.join()


def publish(channel: BlockingChannel, queue: str, body: bytes) -> None:
    """A persistent message; returns when it is confirmed, raises when it is not."""
    channel.basic_publish("", queue, body, pika.BasicProperties(delivery_mode=2), mandatory=True)


def drain(channel: BlockingChannel, queue: str) -> list[bytes]:
    """All that is in the queue."""
    bodies = []
    while (got := channel.basic_get(queue, auto_ack=True))[0]:
        bodies.append(got[2])
    return bodies


def hopline(stack: Stack, *arguments: str) -> str:
    command = [Path(sys.executable).with_name("hopline"), *arguments]
    environment = stack.command_environment()
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=150)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.timeout(180 + 3 * SECONDS)
def test_the_broker_lives_on(stack: Stack, name: str, tmp_path: Path) -> None:
    """Under load, with clients that stay: all from before the backup is there, once, and no client sees an error.

    What was confirmed later is gone, what was acknowledged later comes again, and `hopline health` and the log say so.
    """
    backup = tmp_path / "one.backup"
    load = Publisher(stack, name)
    with connected(stack.address) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare(name, durable=True)
        before = [b"before-%d" % number for number in range(BEFORE)]
        for body in before:
            publish(channel, name, body)
        held = channel.basic_get(name)
        load.start()
        load.wait_for(20)
        loaded = list(load.confirmed)
        said = hopline(stack, "store", "backup", str(backup))
        assert "generation 1" in said
        for number in ACKNOWLEDGED:
            method, _, body = channel.basic_get(name)
            assert body == before[number]
            channel.basic_ack(method.delivery_tag)
        connection.sleep(SECONDS)
        load.wait_for(20)
        publish(channel, name, b"late")
        lately = load.confirmed[-1]
        with stack.without("store"):
            hopline(stack, "store", "verify", str(backup))
            restored = hopline(stack, "store", "restore", str(backup), "--to", str(stack.data), "--replace")
        assert "messages confirmed in between are not here" in restored
        load.wait_for(20)
        load.stop()
        assert load.failure is None
        channel.basic_ack(held[0].delivery_tag)
        publish(channel, name, b"after")
        found = drain(channel, name)
    assert [body for body in found if body.startswith(b"before")] == before[1:]
    assert set(loaded) <= set(found)
    assert len(found) == len(set(found))
    assert not {b"late", lately} & set(found)
    assert set(load.confirmed[-20:]) | {b"after"} <= set(found)
    stack.wait_until_healthy()  # the router that wrote before has gone, and another one begins
    # mgmt hears it when it has found the store again.
    missing = "generation 2: messages confirmed in between are not here"
    wait_until(lambda: missing in hopline(stack, "health"), 30, "word of the backup")
    assert "messages acknowledged in between come again" in stack.log.read_text()
