"""Whether a queue has room, with what transactions will bring."""

from __future__ import annotations

from collections.abc import Sequence

from services.queue.machine.options import QueueOptions
from services.queue.machine.order.ready import Ready
from services.queue.machine.overflow import OverflowPolicy


class Room:
    """Of one queue; `count` messages and `size` bytes of bodies are reserved."""

    __slots__ = ("_options", "_policy", "_ready", "count", "size")

    def __init__(self, options: QueueOptions, policy: OverflowPolicy, ready: Ready) -> None:
        self._options = options
        self._policy = policy
        self._ready = ready
        self.count = 0
        self.size = 0

    def admits(self, sizes: Sequence[int]) -> int:
        """How many of the newcomers with bodies of these sizes come in."""
        ready = self._ready
        return self._policy.admits(self._options, ready.count + self.count, ready.size + self.size, sizes)

    def reserve(self, count: int, size: int) -> bool:
        """As Queue.reserve says."""
        # Of equal sizes, which is all that a sum allows to say.
        if self._options.limited and self.admits([-(-size // count)] * count) < count:
            return False
        self.count += count
        self.size += size
        return True

    def unreserve(self, count: int, size: int) -> None:
        """As Queue.unreserve says."""
        self.count -= count
        self.size -= size
