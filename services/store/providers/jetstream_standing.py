"""Whether the store can write to JetStream, as it is said to people: since when not, and why."""

from __future__ import annotations

import structlog

from services.common.clock import epoch_ms
from services.common.errors import InternalError
from services.common.restored import utc
from services.store.providers.jetstream_link import Lost

_MEND = "start NATS, or mend the way to it; the store goes on by itself"

log = structlog.get_logger()


class Away(InternalError):
    """The servers do not do what they were asked to now; it is tried again."""

    def __init__(self, text: str, do: str = "") -> None:
        """`do`: what mends it."""
        super().__init__(text)
        self.do = do or _MEND


class Standing:
    """Of the way to the servers that are `shown` so."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._since = 0  # ms, or 0
        self.trouble = ""

    def lost(self, failure: Lost) -> Away:
        """It has failed; gives what to raise."""
        first, self._since = not self._since, self._since or epoch_ms()
        what = "is away" if failure.gone else "refuses"
        self.trouble = f"{self._shown} {what} since {utc(self._since)}: {failure}"
        away = Away(self.trouble, failure.do)
        if first:
            log.error("NATS is away, commits wait", stream=self._shown, reason=str(failure), do=away.do)
        return away

    def back(self) -> None:
        """It works."""
        if self._since:
            log.info("NATS is back", stream=self._shown, seconds=(epoch_ms() - self._since) / 1000)
            self._since, self.trouble = 0, ""

    def ended(self, why: str) -> None:
        """It never will again."""
        self._since, self.trouble = self._since or epoch_ms(), why
        log.critical("this process writes no more", reason=why)
