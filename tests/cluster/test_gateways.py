"""Two gateways of one `hopline up`, which listen at the same port."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from base64 import b64encode
from pathlib import Path
from typing import TYPE_CHECKING

import pika.exceptions
import pytest

from tests.support.interop_pika import connect, connected, fetch
from tests.support.stack import Stack, running_stack, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

GATEWAYS = ("gateway", "gateway-process-2")
PUBLISHERS = 6
REFUSED_SECONDS = 60.0


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack with two gateways."""
    with running_stack(tmp_path_factory.mktemp("gateways") / "data", {"HOPLINE_GATEWAYS": "2"}) as started:
        yield started


def _gateways(stack: Stack) -> set[str]:
    """The gateways that have connections now."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{stack.http_port}/api/latest/connection",
        headers={"Authorization": f"Basic {b64encode(b'guest:guest').decode()}"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return {each["gateway"] for each in json.load(answer)}


def test_clients_are_spread(stack: Stack, name: str) -> None:
    """Clients of one port are served by both, and what one publishes at either comes to all."""
    many = [connect(stack.address) for _ in range(32)]
    try:
        wait_until(lambda: len(_gateways(stack)) == 2, 10, "two gateways with connections")
        many[0].channel().queue_declare(name)
        for number, connection in enumerate(many):
            connection.channel().basic_publish("", name, b"%d" % number)
        channel = many[-1].channel()
        assert {fetch(channel, name).body for _ in many} == {b"%d" % number for number, _ in enumerate(many)}
        channel.queue_delete(name)
    finally:
        for connection in many:
            connection.close()


class _Publisher:
    """Publishes numbers with confirms until it is told to stop, over another connection when one is gone."""

    def __init__(self, stack: Stack, queue: str, begin: int) -> None:
        self.confirmed = list[int]()
        self.lost = 0
        self._stack, self._queue, self._next = stack, queue, begin
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        """Returns when it has ended."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                with connected(self._stack.address) as connection:
                    self._publish(connection)
            except (pika.exceptions.AMQPError, OSError):
                self.lost += 1

    def _publish(self, connection: pika.BlockingConnection) -> None:
        channel = connection.channel()
        channel.confirm_delivery()
        persistent = pika.BasicProperties(delivery_mode=2)
        while not self._stopped.is_set():
            self._next += 1
            channel.basic_publish("", self._queue, b"%d" % self._next, persistent)
            self.confirmed.append(self._next)


def test_the_other_serves_while_one_is_killed(stack: Stack, name: str) -> None:
    """Each is killed in turn under load: half of the clients notice, and come back at once, since the port is never
    closed; the stack says meanwhile that it is well, and what was confirmed is there.
    """
    with connected(stack.address) as connection:
        connection.channel().queue_declare(name, durable=True)
    publishers = [_Publisher(stack, name, number * 1_000_000) for number in range(PUBLISHERS)]
    well = True
    for gateway in GATEWAYS:
        wait_until(lambda: not stack.health().get("away", True), 30, "two gateways")
        time.sleep(0.5)
        killed = stack.kill(gateway)
        well &= stack.is_healthy()
        stack.wait_until_replaced(gateway, killed)
    for publisher in publishers:
        publisher.stop()
    with connected(stack.address) as connection:
        channel = connection.channel()
        count = channel.queue_declare(name, passive=True).method.message_count
        there = {int(fetch(channel, name).body) for _ in range(count)}
        channel.queue_delete(name)
    assert well
    assert sum(publisher.lost for publisher in publishers) >= 1
    assert not {number for publisher in publishers for number in publisher.confirmed} - there


def test_a_port_that_another_has(stack: Stack, tmp_path: Path) -> None:
    """Another stack at the port is refused, whose gateways could listen there too, and would take clients of this."""
    environment = {**stack.command_environment(), "HOPLINE_DATA": str(tmp_path / "data"), "HOPLINE_HTTP_PORT": "0"}
    hopline = Path(sys.executable).with_name("hopline")
    done = subprocess.run(
        [hopline, "up"], env=environment, capture_output=True, text=True, timeout=REFUSED_SECONDS, check=False
    )
    assert done.returncode == 1
    assert f"no AMQP on 127.0.0.1 port {stack.address.port} (Address already in use)" in done.stderr
    assert "HOPLINE_AMQP_PORT" in done.stderr
    assert os.path.exists(f"/proc/{stack.pid('gateway')}")  # noqa: PTH110 - no file, but a process
