"""How somebody came who signs in, as the audit log tells it."""

from __future__ import annotations

from dataclasses import dataclass

from services.common.audit.entry import REFUSED, SIGNED_IN, Entry


@dataclass(frozen=True, slots=True)
class Visit:
    """Of one connection, or one request."""

    peer: str = ""  # address and port
    host: str = ""  # the address by itself
    through: str = ""  # the port by which it came, or "http"
    mechanism: str = ""
    connection: str = ""
    seldom: bool = False
    """Whether that it signed in is told once for many times: each request over HTTP is a sign-in."""

    def signed_in(self, user: str, provider: str) -> Entry:
        """A line of the audit log."""
        peer = self.host if self.seldom else self.peer
        return Entry(SIGNED_IN, user, provider, self.mechanism, peer, self.through, self.connection)

    def refused(self, user: str, provider: str, reason: str) -> Entry:
        """A line of the audit log."""
        return Entry(REFUSED, user, provider, self.mechanism, self.peer, self.through, self.connection, reason)

    def refused_unseen(self, user: str, provider: str, reason: str) -> Entry:
        """The same for all that are refused so: there may be many."""
        return Entry(REFUSED, user, provider, peer=self.host, through=self.through, reason=reason)


NO_VISIT = Visit()
