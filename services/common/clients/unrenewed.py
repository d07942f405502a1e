"""A time in which renewals of leases are not answered, or late: said once when it begins, with a count when it is over.

Of many processes on a busy machine each would say it with every other renewal.
"""

from __future__ import annotations

from typing import Final

import structlog

from services.common.clock import Clock
from services.common.errors import BrokerError

_CALM: Final = 10.0  # seconds in which all are answered in time

log = structlog.get_logger()


class Unrenewed:
    """Of one process, a member of `role`. `clock` is monotonic."""

    def __init__(self, role: str, clock: Clock) -> None:
        self._role, self._clock = role, clock
        self._missed = 0  # renewals …
        self._since = self._last = 0.0  # … the first of them, and the last
        self._is_missed = False  # the one under way

    def missed(self, failure: BrokerError) -> None:
        """The renewal under way is not answered in time; this may be said of it again and again."""
        now = self._clock()
        if not self._missed:
            self._since = now
            log.warning(
                "leases are not renewed, what needs them waits once they have run out",
                role=self._role,
                reason=failure.text,
                do="see that the store runs, and is not held up by its disk or for want of processors",
            )
        self._missed += not self._is_missed
        self._is_missed, self._last = True, now

    def renewed(self) -> None:
        """A renewal was answered."""
        self._is_missed = False
        if self._missed and self._clock() - self._last >= _CALM:
            seconds = round(self._last - self._since, 1)
            log.info("leases are renewed in time again", role=self._role, late=self._missed, seconds=seconds)
            self._missed = 0
