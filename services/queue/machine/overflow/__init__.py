"""What happens to a queue that is full: plug-ins of group `overflow_policies`, chosen by x-overflow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from services.queue.machine.options import QueueOptions


class OverflowPolicy(Protocol):
    """Says what may come in, and whether a queue drops from its head what is too much afterwards.

    `holds_back`: publishers wait while there is too much.
    """

    drops_head: bool
    dead_letters_refused: bool
    holds_back: bool

    def admits(self, options: QueueOptions, count: int, size: int, sizes: Sequence[int]) -> int:
        """How many of the newcomers with body `sizes` come in, where `count` messages of `size` bytes wait."""
