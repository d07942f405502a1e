"""What is told of messages: each step once, to all that look on."""

from __future__ import annotations

from typing import Any, cast
from unittest.mock import Mock, call

from services.common.clients.partition_table import PartitionTable
from services.gateway.observe.observer import Followed, Observer

PLACE = Mock(consumer="tag")


def test_a_delivery_is_told_to_all() -> None:
    """To the ledger, to the capture, and to its span, which is open for a traced message."""
    observer, record, client = Observer({}, PartitionTable()), Mock(on=True), Mock()
    observer.capture = capture = Mock(on=True)
    observer._sending = sending = Mock(open={7: {}})
    columns: Any = ([Mock()], [b""], [b"body"])
    observer.sent(client, record, PLACE, 1, [7], columns, 3, settled=True)
    record.sent.assert_called_once_with(PLACE, [7])
    capture.sent.assert_called_once_with(client, PLACE, [7], columns)
    sending.written.assert_called_once_with(client, 1, [7], 3, tag="tag", settled=True)


def test_observers_that_are_off_are_not_called() -> None:
    """Without ledger, capture rules and traced messages a delivery is not observed."""
    observer, record = Observer({}, PartitionTable()), Mock(on=False)
    observer.capture = capture = Mock(on=False)
    observer._sending = sending = Mock(open={})
    observer.sent(Mock(), record, PLACE, 1, [7], cast("Any", ()), 3, settled=False)
    assert [record.mock_calls, capture.mock_calls, sending.mock_calls] == [[], [], []]


def test_what_no_queue_gets() -> None:
    """The ledger tells what was returned from what was dropped, the span has both."""
    recorded, traced = Mock(), Mock()
    Followed(recorded, traced).unroutable([1, 2, 4], [2])
    assert recorded.mock_calls == [call.returned([2]), call.unroutable([1, 4])]
    assert traced.mock_calls == [call.unroutable([1, 2, 4], [2])]


def test_confirms_but_for_what_was_refused() -> None:
    """What a queue refused is not on record as confirmed."""
    recorded = Mock()
    Followed(recorded).confirmed(range(4), {1})
    refused, confirmed = recorded.mock_calls
    assert refused == call.refused([1], "overflow")
    assert list(confirmed.args[0]) == [0, 2, 3]
