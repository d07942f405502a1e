"""x-overflow: drop-head, the default: newcomers come in, the oldest go."""

from __future__ import annotations

from collections.abc import Sequence

from services.queue.machine.options import QueueOptions


class DropHead:
    """See OverflowPolicy."""

    drops_head = True
    dead_letters_refused = False
    holds_back = False

    def admits(self, options: QueueOptions, count: int, size: int, sizes: Sequence[int]) -> int:  # noqa: ARG002
        """Everybody comes in."""
        return len(sizes)
