"""Auto-delete queues that have had a consumer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, call

from services.gateway.owners.holdings_report import HoldingsReport
from services.gateway.owners.used_queues import UsedQueues
from services.rpc.router_pb2 import QueueDefinition


def _queue(queue_id: int, *, auto_delete: bool = True) -> QueueDefinition:
    return QueueDefinition(id=queue_id, partition=0, auto_delete=auto_delete)


def test_each_new_owner_hears_of_them() -> None:
    """Until the queue is deleted, whether a consumer is there or not; of others there is nothing to hear."""
    queues = {1: _queue(1), 2: _queue(2), 3: _queue(3, auto_delete=False)}
    used, link, epochs = UsedQueues(queues), Mock(), iter((4, 5))
    for queue_id in (1, 2, 3, 9):
        used.add(queue_id)
    publisher: Any = SimpleNamespace(owners=lambda: iter([(0, next(epochs), link)]))
    told = HoldingsReport(publisher, used)
    told.tell(())
    assert link.told.mock_calls == [call(0, 4, [1, 2])]
    used.forget(queues[2])
    told.tell(())
    assert link.told.mock_calls[1:] == [call(0, 5, [1])]
