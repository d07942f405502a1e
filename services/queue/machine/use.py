"""Whether a queue is used, and goes when it is not any more: x-expires, auto-delete, and what AMQP 1.0's links make."""

from __future__ import annotations

from functools import partial

from services.queue.machine.consumers import Consumers
from services.queue.machine.entries import Entries
from services.queue.machine.options import QueueOptions

# For consumers that a former owner had, unless it is known that none comes: they come within seconds, and a queue too
# many for a while harms less than one that is deleted under consumers which were only slow.
_AWAITED_MS = 30_000


class Use:
    """Of one queue. Times are Unix ms."""

    def __init__(self, options: QueueOptions, consumers: Consumers, entries: Entries, now: int) -> None:
        self.options = options
        self._consumers = consumers
        self._entries = entries
        self._had_consumers = False
        self._last = now
        self._awaited_until = 0
        if self.needs_empty:
            entries.on_gone = partial(entries.context.expect, options.queue_id)

    @property
    def needs_empty(self) -> bool:
        """Whether messages keep it: nothing may come in while it is deleted."""
        return self.options.unused.by_messages

    def adopt(self, options: QueueOptions, now: int) -> None:
        """Its policies say something else, and another x-expires begins now; or the link is gone that has made it."""
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
        return self._is_left() and self._awaited_until <= now

    def before(self, now: int) -> None:
        """A former owner had consumers of it, who come again or have ended meanwhile."""
        if self.options.auto_delete:
            self._had_consumers = True
            self._await(now)

    def out_of_sight(self, now: int) -> None:
        """Of one that a link has made: consumers may come again, those of a former owner or of a stream that broke."""
        if self.options.unused.is_made:
            self._await(now)

    def awaits(self, now: int) -> bool:
        """Whether consumers may come again, for all that is known."""
        return self._awaited_until > now

    def all_have_come(self, now: int) -> None:
        """Who had consumers of it has said which there are: if there are none, it is to go."""
        self._awaited_until = min(self._awaited_until, now)

    def _await(self, now: int) -> None:
        self._awaited_until = 0 if len(self._consumers) else now + _AWAITED_MS

    def deadlines(self) -> list[int]:
        """When it is to go, unless somebody comes."""
        unused_ms = self.options.unused_ms
        expires = [] if unused_ms is None or len(self._consumers) else [self._last + unused_ms]
        if self.options.unused.is_made:
            return [*expires, max(self._awaited_until, 1)] if self._is_left() else expires
        return [*expires, self._awaited_until] if self._awaited_until and not len(self._consumers) else expires

    def expired(self, now: int) -> bool:
        """Whether x-expires says that it is to go."""
        unused_ms = self.options.unused_ms
        return unused_ms is not None and not len(self._consumers) and self._last + unused_ms <= now

    def is_over(self, now: int) -> bool:
        """Whether it is to go, for whichever of these reasons: nobody has come since one was found."""
        return self.expired(now) or (self._is_left() and self._awaited_until <= now)

    def deserted(self, now: int) -> bool:
        """Whether nobody uses it, and none tells of it: its last consumer ended while nobody owned it, or a link, or
        its last message has gone.
        """
        is_told = not self._awaited_until and not self.options.unused.is_made
        return not is_told and self._is_left() and self._awaited_until <= now

    def _is_left(self) -> bool:
        options, consumers = self.options, len(self._consumers)
        if not options.unused.is_made:
            return options.auto_delete and self._had_consumers and not consumers
        if options.kept or (consumers and options.unused.by_links):
            return False
        return not self.needs_empty or not (self._entries.count or self._entries.unsettled)
