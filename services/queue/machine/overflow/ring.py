"""Broker-J's overflow policy RING: everybody comes in, and what was there first goes, held or not (`../ring.py`)."""

from __future__ import annotations

from services.queue.machine.overflow.unlimited import Unlimited


class RingPolicy(Unlimited):
    """See OverflowPolicy."""
