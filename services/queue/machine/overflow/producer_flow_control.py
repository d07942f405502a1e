"""Broker-J's overflow policy PRODUCER_FLOW_CONTROL: everybody comes in, and publishers wait while there is too much."""

from __future__ import annotations

from services.queue.machine.overflow.unlimited import Unlimited


class ProducerFlowControl(Unlimited):
    """See OverflowPolicy."""

    holds_back = True
