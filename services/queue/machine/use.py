"""Whether a queue is used, and goes when it is not any more: x-expires, and auto-delete."""

from __future__ import annotations

from services.queue.machine.consumers import Consumers
from services.queue.machine.options import QueueOptions

# For consumers that a former owner had: they come within seconds, and a queue too many for a while harms less than one
# that is deleted under consumers which were only slow.
_AWAITED_MS = 30_000


class Use:
    """Of one queue. Times are Unix ms."""

    def __init__(self, options: QueueOptions, consumers: Consumers, now: int) -> None:
        self.options = options
        self._consumers = consumers
        self._had_consumers = False
        self._last = now
        self._awaited_until = 0

    def adopt(self, options: QueueOptions, now: int) -> None:
        """Its policies say something else: another x-expires begins now."""
        if options.unused_ms != self.options.unused_ms:
            self.touch(now)
        self.options = options

    def touch(self, now: int) -> None:
        """It was declared again, or somebody took a message: x-expires starts anew."""
        self._last = now

    def attached(self, now: int) -> None:
        """A consumer came: from now on the queue goes with its last one, and with nothing else."""
        self._last, self._had_consumers, self._awaited_until = now, True, 0

    def detached(self, now: int) -> bool:
        """A consumer has gone; True when the queue goes with it."""
        self._last = now
        return self.options.auto_delete and self._had_consumers and not len(self._consumers)

    def before(self, now: int) -> None:
        """A former owner had consumers of it, who come again or have ended meanwhile."""
        if self.options.auto_delete:
            self._had_consumers = True
            self._awaited_until = 0 if len(self._consumers) else now + _AWAITED_MS

    def deadlines(self) -> list[int]:
        """When it is to go, unless somebody comes."""
        if len(self._consumers):
            return []
        unused_ms = self.options.unused_ms
        expires = [] if unused_ms is None else [self._last + unused_ms]
        return [*expires, self._awaited_until] if self._awaited_until else expires

    def expired(self, now: int) -> bool:
        """Whether x-expires says that it is to go."""
        unused_ms = self.options.unused_ms
        return unused_ms is not None and not len(self._consumers) and self._last + unused_ms <= now

    def is_over(self, now: int) -> bool:
        """Whether it is to go, for whichever of these reasons: nobody has come since one was found."""
        left = self.options.auto_delete and self._had_consumers and not len(self._consumers)
        return self.expired(now) or (left and self._awaited_until <= now)

    def deserted(self, now: int) -> bool:
        """Whether its last consumer ended while nobody owned it."""
        return 0 < self._awaited_until <= now and not len(self._consumers)
