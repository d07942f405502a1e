"""`hopline partitions` on a whole stack."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest

from tests.support.stack import Stack, running_stack, wait_until


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    with running_stack(tmp_path / "data") as started:
        yield started


def _hopline(stack: Stack, *arguments: str) -> str:
    environment = {**os.environ, "HOPLINE_DATA": str(stack.data)}
    command = [Path(sys.executable).with_name("hopline"), "partitions", *arguments]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def _partitions(stack: Stack) -> list[dict[str, Any]]:
    return [json.loads(line) for line in _hopline(stack, "--json").splitlines()]


def test_move_under_traffic(stack: Stack) -> None:
    """A queue's partition moves to the process that is asked for; its messages come along, in order."""
    parameters = pika.ConnectionParameters(stack.address.host, stack.address.port)
    with pika.BlockingConnection(parameters) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("moving", durable=True)
        before = next(one for one in _partitions(stack) if one["queues"])
        target = "queue-2" if before["owner"].startswith("queue-1-") else "queue-1"
        for number in range(50):
            channel.basic_publish("", "moving", str(number).encode(), mandatory=True)
        said = _hopline(stack, "move", str(before["partition"]), target)
        for number in range(50, 100):
            channel.basic_publish("", "moving", str(number).encode(), mandatory=True)
        bodies = [channel.basic_get("moving", auto_ack=True)[2] for _ in range(100)]
    after = _partitions(stack)[before["partition"]]
    assert said == f"1 partition served by {after['owner']}\n"
    assert after["owner"] == after["pinned"]
    assert after["owner"].startswith(f"{target}-")
    assert after["epoch"] > before["epoch"]
    assert bodies == [str(number).encode() for number in range(100)]


def test_table(stack: Stack) -> None:
    """One line for each partition, under a heading; both processes have their half."""
    heading, *rows = _hopline(stack).splitlines()
    assert heading.split()[:3] == ["partition", "owner", "epoch"]
    assert [int(row.split()[0]) for row in rows] == list(range(64))

    def shared() -> bool:
        """The second may have begun when the first one served all."""
        owners = [one["owner"] for one in _partitions(stack)]
        return sorted(owners.count(owner) for owner in set(owners)) == [32, 32]

    wait_until(shared, 30, "half of the partitions each")
