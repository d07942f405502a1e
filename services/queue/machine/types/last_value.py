"""Broker-J's last value queue: of the messages with one key, only the last is kept."""

from __future__ import annotations

from services.queue.machine.options import QueueOptions
from services.queue.machine.order.header_key import by_header
from services.queue.machine.order.last_values import LastValues
from services.queue.machine.order.ready import IsHeld


def last_value(options: QueueOptions, is_held: IsHeld) -> LastValues:
    """See CreateReady."""
    return LastValues(by_header(options.last_value_key or ""), is_held)
