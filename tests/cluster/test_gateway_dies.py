"""What one gateway's connections had goes with it, as every other gateway sees it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pika.exceptions
import pytest

from tests.support.interop_pika import connect, connected
from tests.support.stack import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

    from tests.support.stack import Stack

LOST_SECONDS = 60.0  # it takes three until a silent gateway has lost its place


@pytest.fixture
def told(stack: Stack, tmp_path: Path) -> Iterator[Path]:
    """Events of the stack, one JSON object on each line."""
    file = tmp_path / "events"
    with file.open("wb") as output:
        follower = subprocess.Popen(
            [Path(sys.executable).with_name("hopline"), "events", "--json"],
            env={**os.environ, "HOPLINE_DATA": str(stack.data)},
            stdout=output,
        )
    while not file.stat().st_size:  # it hears what happens from when it has subscribed
        connect(stack.address).close()
    yield file
    follower.kill()
    follower.wait()


def _code(connection: BlockingConnection, what: str, name: str) -> int:
    """The reply code with which a use of the queue is refused, 0 when it is not."""
    channel: BlockingChannel = connection.channel()
    try:
        if what == "declare":
            channel.queue_declare(name, passive=True)
        else:
            channel.basic_consume(name, lambda *_: None)
    except pika.exceptions.ChannelClosedByBroker as closed:
        return int(closed.reply_code)
    channel.close()
    return 0


def test_what_a_gateway_had_goes_with_it(stack: Stack, name: str, told: Path) -> None:
    """Exclusive and auto-delete queues of its connections are locked while it lives and gone when it is killed; an
    exclusive consumer leaves its queue to others; the bus tells whose connections are gone.
    """
    exclusive, consumed, temporary = f"{name}-exclusive", f"{name}-consumed", f"{name}-temporary"
    with stack.another_gateway() as other, connected(stack.address) as here:
        there = connect(other)
        channel = there.channel()
        channel.queue_declare(exclusive, exclusive=True)
        channel.queue_declare(consumed)
        channel.basic_consume(consumed, lambda *_: None, exclusive=True)
        channel.queue_declare(temporary, auto_delete=True)
        channel.basic_consume(temporary, lambda *_: None)
        assert _code(here, "declare", exclusive) == 405
        assert _code(here, "consume", exclusive) == 405
        assert _code(here, "consume", consumed) == 403
        os.kill(stack.gateway_pids[other], signal.SIGKILL)
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            there.process_data_events(LOST_SECONDS)
        wait_until(lambda: _code(here, "consume", consumed) == 0, LOST_SECONDS, "end of the exclusive consumer")
        wait_until(lambda: _code(here, "declare", temporary) == 404, LOST_SECONDS, "end of the auto-delete queue")
        wait_until(lambda: _code(here, "declare", exclusive) == 404, LOST_SECONDS, "end of the exclusive queue")
        here.channel().queue_declare(exclusive, exclusive=True)
        wait_until(lambda: _lost_gateways(told), LOST_SECONDS, "event of the gateway that is gone")


def _lost_gateways(told: Path) -> list[str]:
    lines = [line for line in told.read_text().splitlines(keepends=True) if line.endswith("\n")]
    facts = [json.loads(line)["facts"] for line in lines]
    return [each["gateway"] for each in facts if each["kind"] == "gateway.lost"]
