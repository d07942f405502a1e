"""A stream to a queue process that is not there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from services.common.clients.partition_table import Owner
from services.common.errors import Unavailable
from services.mgmt.in_queues import stream as streams
from services.mgmt.in_queues.stream import OwnerStream
from services.rpc import queue_pb2 as pb


async def test_nothing_is_left_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks again and again meanwhile would keep a connection and a task for each time."""
    monkeypatch.setattr(streams, "_PATIENCE", 5.0)
    before = asyncio.all_tasks()
    with pytest.raises(Unavailable):
        async with OwnerStream(Owner("queue-1", f"unix:{tmp_path}/none.sock", 1), 1) as stream:
            await stream.ask(purge=pb.PurgeRequest(queue_id=1))
    assert not [each for each in asyncio.all_tasks() - before if each.get_name().startswith("stream to")]
