"""Queues that were made for links that have ended (AMQP 1.0, section 2.6.6)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest

from services.common.errors import BrokerError, Unavailable
from services.common.runtime import Tasks
from services.common.topology.slots import SlotName
from services.gateway import vocabulary as v
from services.gateway.operations import carry_out_of_connection
from services.rpc import queue_pb2
from services.rpc.router_pb2 import QueueDefinition


@pytest.mark.parametrize("error", [None, Unavailable("away")])
async def test_its_owner_is_asked(error: BrokerError | None) -> None:
    """Whatever the connection's sessions do; where nobody answers, it goes with the connection, and the log says so."""
    queues = {"own": QueueDefinition(id=7, exclusive_to="1.1"), "other": QueueDefinition(id=8)}
    topology = SimpleNamespace(by_name={SlotName("/", name): queue for name, queue in queues.items()})
    asking = SimpleNamespace(ask=AsyncMock(side_effect=error))
    broker = SimpleNamespace(topology=topology, asking=asking)
    client = cast("Any", SimpleNamespace(name="1.1", virtual_host="/", broker=broker, tasks=Tasks(), tell=Mock()))
    for name in ("own", "other", "gone"):
        carry_out_of_connection(client, v.DropQueue(0, name))
    await client.tasks.finish(1)
    asking.ask.assert_awaited_once_with(7, delete=queue_pb2.DeleteRequest(queue_id=7))
    assert client.tell.called is (error is not None)
