"""Broker-J's overflow policy NONE: a depth is said, and holds nobody up."""

from __future__ import annotations

from collections.abc import Sequence

from services.queue.machine.options import QueueOptions


class Unlimited:
    """See OverflowPolicy."""

    drops_head = False
    dead_letters_refused = False
    holds_back = False

    def admits(self, options: QueueOptions, count: int, size: int, sizes: Sequence[int]) -> int:  # noqa: ARG002
        """Everybody comes in."""
        return len(sizes)
