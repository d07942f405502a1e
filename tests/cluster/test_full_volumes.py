"""A whole stack under load whose folders lie on disks of their own, each filled to the last byte and emptied again.

The store's own disk is in test_full_disk.py. These are the disks of what no message waits for.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pika
import pytest

from tests.support.cluster_load import Load
from tests.support.hopline_command import HoplineCommand
from tests.support.interop_pika import connected
from tests.support.small_disk import fill, small_disk
from tests.support.stack import HOST, Stack, wait_until

_SECONDS = 90
_MEBIBYTES = 48


class Volume:
    """A folder of the data."""

    folder = ""

    def is_told(self, stack: Stack) -> bool:
        """Whether an operator is told that it is full."""
        raise NotImplementedError

    def goes_on(self, stack: Stack) -> bool:
        """Whether something that happens now is on its disk."""
        raise NotImplementedError


class Ledger(Volume):
    folder = "ledger"

    def is_told(self, stack: Stack) -> bool:
        return "ledger" in _notes(stack)

    def goes_on(self, stack: Stack) -> bool:
        return not self.is_told(stack) and _is_on_record(stack)


class Bus(Ledger):
    """The ledger is on its way there."""

    folder = "nats"


class Spans(Volume):
    folder = "spans"

    def is_told(self, stack: Stack) -> bool:
        return "spans" in _notes(stack)

    def goes_on(self, stack: Stack) -> bool:
        return not self.is_told(stack) and _grows(stack.data / self.folder)


class AuditLog(Volume):
    folder = "audit"

    def is_told(self, stack: Stack) -> bool:
        with connected(stack.address):
            return "the audit log cannot be written" in stack.log.read_text(errors="replace")

    def goes_on(self, stack: Stack) -> bool:
        with connected(stack.address):
            return '"missed"' in _written(stack.data / self.folder)


VOLUMES = [Ledger(), Bus(), Spans(), AuditLog()]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Each of its volumes is a small disk."""
    data = tmp_path_factory.mktemp("volumes") / "data"
    data.mkdir(mode=0o700)
    with ExitStack() as disks:
        for volume in VOLUMES:
            disks.enter_context(small_disk(data / volume.folder, _MEBIBYTES))
        stack = Stack(data, {"HOPLINE_TRACE_RATIO": "0.01"})
        disks.callback(stack.kill_all)
        stack.start()
        yield stack


@pytest.mark.timeout(4 * _SECONDS)
@pytest.mark.parametrize("volume", VOLUMES, ids=lambda volume: volume.folder)
def test_a_full_volume(stack: Stack, name: str, volume: Volume) -> None:
    """Messages go on, the operator is told, nothing confirmed is lost, and what was given up goes on by itself."""
    load = Load(stack.address, name)
    load.start()
    try:
        load.wait_for_progress()
        filled = fill(stack.data / volume.folder)
        wait_until(lambda: volume.is_told(stack), _SECONDS, f"word of a full disk of {volume.folder}")
        load.wait_for_progress()
        filled.unlink()
        wait_until(lambda: volume.goes_on(stack), _SECONDS, f"room again for {volume.folder}")
        load.wait_for_progress()
    finally:
        load.finish()
    assert load.confirmed()
    assert load.lost() == []
    assert load.broken_promises() == []
    assert load.reconnects() == 0


def _notes(stack: Stack) -> dict[str, Any]:
    """The notes of health, apart from what it reports of a busy machine."""
    try:
        with urllib.request.urlopen(f"http://{HOST}:{stack.http_port}/healthz", timeout=30) as answer:
            told = answer.read()
    except urllib.error.HTTPError as answer:
        told = answer.read()
    return dict(json.loads(told)["notes"])


def _is_on_record(stack: Stack) -> bool:
    """Publishes a message, and asks for it."""
    message = uuid.uuid4().hex
    with connected(stack.address) as connection:
        channel = connection.channel()
        channel.queue_declare("recorded", durable=True)
        properties = pika.BasicProperties(message_id=message)
        channel.basic_publish("", "recorded", b"", properties)
        channel.queue_purge("recorded")
    time.sleep(2)
    return "enqueued" in HoplineCommand(stack).run("trace", message).stdout


def _grows(folder: Path) -> bool:
    before = len(_written(folder))
    time.sleep(2)
    return len(_written(folder)) > before


def _written(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.glob("date=*/*.jsonl"))
