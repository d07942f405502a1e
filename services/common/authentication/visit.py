"""Where a sign-in came from, for the audit log."""

from __future__ import annotations

from dataclasses import dataclass

from services.common.audit.entry import REFUSED, SIGNED_IN, Entry


@dataclass(frozen=True, slots=True)
class Visit:
    """The client of one connection, or of one request."""

    peer: str = ""  # address and port
    host: str = ""  # the address without port
    through: str = ""  # the name of the port that it connected to, or "http"
    mechanism: str = ""
    connection: str = ""
    seldom: bool = False
    """Whether its sign-ins are counted rather than logged singly: each request over HTTP is one."""

    def signed_in(self, user: str, provider: str) -> Entry:
        """A line of the audit log."""
        peer = self.host if self.seldom else self.peer
        return Entry(SIGNED_IN, user, provider, self.mechanism, peer, self.through, self.connection)

    def refused(self, user: str, provider: str, reason: str) -> Entry:
        """A line of the audit log."""
        return Entry(REFUSED, user, provider, self.mechanism, self.peer, self.through, self.connection, reason)

    def refused_unseen(self, user: str, provider: str, reason: str) -> Entry:
        """One line for many refusals of that kind."""
        return Entry(REFUSED, user, provider, peer=self.host, through=self.through, reason=reason)


NO_VISIT = Visit()
