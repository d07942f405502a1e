"""The bus of a whole stack."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pika
import pytest

from tests.support.stack import Stack, running_stack, wait_until

Event = dict[str, Any]


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    with running_stack(tmp_path / "data") as started:
        yield started


class Follower:
    """`hopline events --json`, with what it has written so far."""

    def __init__(self, stack: Stack, folder: Path, *arguments: str) -> None:
        self._file = folder / "events"
        with self._file.open("wb") as output:
            self.process = subprocess.Popen(
                [Path(sys.executable).with_name("hopline"), "events", "--json", *arguments],
                env={**os.environ, "HOPLINE_DATA": str(stack.data)},
                stdout=output,
            )

    def facts(self) -> list[Event]:
        return [json.loads(line)["facts"] for line in self._file.read_text().splitlines(keepends=True) if "\n" in line]

    def until(self, wanted: Callable[[Event], bool], what: str) -> Event:
        wait_until(lambda: any(map(wanted, self.facts())), 20, what)
        return next(filter(wanted, self.facts()))

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def follower(stack: Stack, tmp_path: Path) -> Iterator[Follower]:
    follower = Follower(stack, tmp_path)
    # It hears what happens from when it has subscribed, so something is made to happen until then.
    connected = False
    deadline = time.monotonic() + 20
    while not connected and time.monotonic() < deadline:
        _connect(stack).close()
        connected = bool(follower.facts())
    yield follower
    follower.stop()


def _connect(stack: Stack) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.ConnectionParameters(stack.address.host, stack.address.port))


def test_a_client_s_life(stack: Stack, follower: Follower) -> None:
    """A connection, its queue, binding and consumer are told when they come and when they go."""
    connection = _connect(stack)
    channel = connection.channel()
    channel.queue_declare("told", exclusive=True)
    channel.queue_bind("told", "amq.topic", "a.b")
    channel.basic_consume("told", lambda *_: None, consumer_tag="reader")
    opened = follower.until(lambda facts: facts.get("queue") == "told", "queue")["exclusive_to"]
    connection.close()
    for kind in ("queue.deleted", "binding.deleted", "consumer.attached", "consumer.detached", "queue.created"):
        follower.until(lambda facts, kind=kind: facts["kind"] == kind, kind)
    attached = follower.until(lambda facts: facts["kind"] == "consumer.attached", "consumer")
    assert (attached["queue"], attached["tag"], attached["connection"]) == ("told", "reader", opened)
    for kind in ("connection.opened", "connection.closed"):
        found = follower.until(
            lambda facts, kind=kind: (facts["kind"], facts.get("connection")) == (kind, opened), kind
        )
        assert (found["user"], found["virtual_host"]) == ("guest", "/")


def test_failover(stack: Stack, follower: Follower) -> None:
    """When a queue process dies, the store publishes which leases it lost and who took them, with epochs."""
    stack.wait_until_replaced("queue-1", stack.kill("queue-1"))
    lost = follower.until(lambda facts: facts["kind"] == "lease.lost", "lost lease")

    def is_next(facts: Event) -> bool:
        """The former owner may have acquired it since this one follows."""
        same = (facts["kind"], facts.get("lease")) == ("lease.acquired", lost["lease"])
        return same and facts["epoch"] > lost["epoch"]

    acquired = follower.until(is_next, "new owner")
    assert acquired["epoch"] == lost["epoch"] + 1
    assert acquired["member"] != lost["member"]


def test_bus_dies(stack: Stack, follower: Follower) -> None:
    """kill -9 of NATS: clients notice nothing, and events come again when it is back."""
    with _connect(stack) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("busy")
        nats = stack.kill("nats")
        for _ in range(100):
            channel.basic_publish("", "busy", b"message", mandatory=True)
        stack.wait_until_replaced("nats", nats)
    deadline, heard = time.monotonic() + 20, 0
    while not heard and time.monotonic() < deadline:
        name = f"after-{time.monotonic_ns()}"
        with _connect(stack) as connection:
            connection.channel().queue_declare(name, exclusive=True)
        time.sleep(0.2)
        heard = sum(facts.get("queue") == name for facts in follower.facts())
    assert heard
