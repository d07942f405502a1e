"""Finds out which process writes to the stream, by asking it: for processes that stand by.

NATS says at once when no process listens any more. A writer that has lost its connection has another in a moment, so
that counts when it goes on for a second, or when the writer has said that it ends. A writer that listens and does not
answer stands still, and is given longer.
"""

from __future__ import annotations

from services.common.clock import Clock, monotonic
from services.common.errors import InternalError
from services.store.provider import Unreachable
from services.store.providers import standstill
from services.store.providers.jetstream_link import JetStreamLink, Lost
from services.store.providers.jetstream_turns import Turns
from services.store.providers.jetstream_url import Url

_ABSENT_SECONDS = 1.0
_ANSWER_SECONDS = 1.0


class Absence:
    """How long a writer has not answered, and whether that is long enough to take it for dead. Pure."""

    def __init__(self, clock: Clock = monotonic) -> None:
        self._clock = clock
        self._known = ""
        self._since = 0.0
        self.said = False  # whether the writer has said that it ends

    def heard(self, who: str | None) -> str:
        """Takes the writer's answer; "": none in time; None: none listens. Gives the writer's name, "" for none."""
        now = self._clock()
        if who:
            self.said = self.said and who == self._known  # it answers until it has ended
            self._known, self._since = who, 0.0
            return who
        self._since = self._since or now
        patience = standstill.SILENT_SECONDS if who is not None else _ABSENT_SECONDS if self._known else 0.0
        if now - self._since >= patience or (self.said and who is None):
            return ""  # until `tried`: another place may have its writer for a moment more
        return self._known or "one that does not answer"

    def ends(self, who: str) -> None:
        """He says so. Of another than the one that writes, who was overtaken, that tells nothing."""
        self.said = self.said or who == self._known

    def tried(self) -> None:
        """Its place is taken. Who asks again has found another that was faster, which may have a moment's absence."""
        self.said, self._since = False, 0.0

    def unknown(self) -> None:
        """The writer could not be asked: this time does not count as absence."""
        self._since = 0.0


class Lookout:
    """Watches the stream at `url`; it has a connection of its own while it is used."""

    def __init__(self, url: Url) -> None:
        self._url = url
        self._turns = Turns(url)
        self._link: JetStreamLink | None = None
        self._absence = Absence()

    async def writer(self) -> str:
        """The name of the process that writes there, "" for none. Raises as Elsewhere.occupied."""
        try:
            link = await self._connected()
            return self._absence.heard(await link.writer(_ANSWER_SECONDS))
        except Lost as failure:
            self._absence.unknown()
            await self.close()
            kind = Unreachable if failure.gone else InternalError
            raise kind(f"cannot use {self._url}: {failure}") from failure

    async def tried(self) -> None:
        """Closes, since this process is about to become the writer."""
        self._absence.tried()
        await self.close()

    async def close(self) -> None:
        """Closes the connection, until it is used again."""
        link, self._link = self._link, None
        if link:
            await link.close()

    async def _connected(self) -> JetStreamLink:
        if self._link is None or not self._link.up:
            await self.close()
            self._link = await JetStreamLink.connect(self._turns.next())
            await self._link.when_writer_ends(self._absence.ends)
        return self._link
