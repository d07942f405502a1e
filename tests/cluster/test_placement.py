"""HOPLINE_PLACEMENT=load on a whole stack."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from services.common.partition import partition_of
from services.common.topology.slots import SlotName
from tests.support.interop_pika import connected
from tests.support.stack import Stack, running_stack, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTITIONS = 8
BATCH = 200


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    environment = {"HOPLINE_PLACEMENT": "load", "HOPLINE_PARTITIONS": str(PARTITIONS)}
    with running_stack(tmp_path / "data", environment) as started:
        yield started


def _partitions(stack: Stack) -> list[dict[str, Any]]:
    environment = {**os.environ, "HOPLINE_DATA": str(stack.data), "HOPLINE_PARTITIONS": str(PARTITIONS)}
    command = [Path(sys.executable).with_name("hopline"), "partitions", "--json"]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60).stdout
    return [json.loads(line) for line in said.splitlines()]


def _owners(stack: Stack) -> list[str]:
    return [one["owner"] for one in _partitions(stack)]


def _is_shared(owners: list[str]) -> bool:
    return sorted(owners.count(owner) for owner in set(owners)) == [PARTITIONS // 2] * 2


def _queue_in(partition: int) -> str:
    """A name that the hash puts there."""
    return next(name for name in map(str, range(1000)) if partition_of(SlotName("/", name), PARTITIONS) == partition)


def test_the_busiest_come_apart(stack: Stack) -> None:
    """Two busy partitions of one process: one of them moves to the other process, and messages go on."""
    wait_until(lambda: _is_shared(_owners(stack)), 30, "as many partitions here as there")
    owners = _owners(stack)
    busy = [number for number, owner in enumerate(owners) if owner == owners[0]][:2]
    with connected(stack.address) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for number in busy:
            channel.queue_declare(_queue_in(number), arguments={"x-max-length": 100})

        def apart() -> bool:
            for _ in range(BATCH):
                for number in busy:
                    channel.basic_publish("", _queue_in(number), b"x", mandatory=True)
            now = _partitions(stack)
            return now[busy[0]]["owner"] != now[busy[1]]["owner"]

        wait_until(apart, 60, "busy partitions with an owner each")
        now = _partitions(stack)
    assert all(now[number]["per_second"] > 0 for number in busy)
    # The new owner is known before it has told what it has.
    wait_until(lambda: all(_partitions(stack)[number]["messages"] == 100 for number in busy), 30, "what came last")
