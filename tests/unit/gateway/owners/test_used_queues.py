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
    publisher: Any = SimpleNamespace(owners=lambda: iter([(0, next(epochs), link)]), unpark_soon=Mock())
    told = HoldingsReport(publisher, used)
    told.tell(())
    assert link.told.mock_calls == [call(0, 4, [1, 2])]
    used.forget(queues[2])
    told.tell(())
    assert link.told.mock_calls[1:] == [call(0, 5, [1])]


def test_what_waits_for_it_goes_on() -> None:
    """As often as an owner is told: a new one, one on a new stream, and one that did not know yet that it is one."""
    link, publisher = Mock(), Mock()
    owners = {0: (link, 4), 1: (Mock(), 4)}
    publisher.owners = lambda: ((partition, epoch, its) for partition, (its, epoch) in owners.items())
    publisher.owner_in = lambda partition: owners.get(partition, (None, 0))
    report = HoldingsReport(publisher, UsedQueues({}))
    assert not report.has(0)
    assert report.has(2)  # without an owner
    for nothing_more in (lambda: None, lambda: report.forget_link(link), lambda: report.forget(0)):
        nothing_more()
        assert not report.has(0)
        report.tell({1})
        assert report.has(0)
        assert not report.has(1)
    assert publisher.unpark_soon.call_count == 3
