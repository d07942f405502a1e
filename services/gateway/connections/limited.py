"""Limits on connections and channels of users and virtual hosts: counts those of this gateway and of the others.

The numbers of other gateways are a moment late, so a limit may be exceeded by what connects within it. With one gateway
it is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import structlog

from services.common.errors import NotAllowed
from services.common.few_lines import FewLines
from services.common.limits import CHANNELS, CONNECTIONS, USER, VIRTUAL_HOST, Limits, Subject

if TYPE_CHECKING:
    from services.gateway.connections.connection import Connection
    from services.gateway.connections.former import Former

log = structlog.get_logger()

_SECONDS: Final = 60.0  # for one line of the log
_DO: Final = "raise it, or see who connects: GET /api/user-limits, /api/vhost-limits, hopline connections"

Uses = Mapping[Subject, Mapping[str, int]]
"""By user and virtual host: how many connections and channels."""


class LimitedConnections:
    """The counts of one gateway; `elsewhere` are those of the others."""

    def __init__(self, limits: Limits, former: Former) -> None:
        self.limits = limits
        self._former = former
        self.elsewhere: Uses = {}
        self._of: dict[Subject, dict[Connection, None]] = {}
        self._subjects: dict[Connection, tuple[Subject, Subject]] = {}
        self._few = FewLines(1, _SECONDS)

    def enter(self, connection: Connection, virtual_host: str) -> None:
        """Admits a client to a virtual host; raises NotAllowed, in RabbitMQ's words, when a limit is reached."""
        user = connection.user
        subjects = Subject(USER, user), Subject(VIRTUAL_HOST, virtual_host)
        if self.limits.some:
            self._check(user, virtual_host, subjects)
        self._subjects[connection] = subjects
        for subject in subjects:
            self._of.setdefault(subject, {})[connection] = None

    def _check(self, user: str, virtual_host: str, subjects: tuple[Subject, Subject]) -> None:
        refused = (
            f"connection refused for user '{user}': user connection limit",
            f"access to vhost '{virtual_host}' refused for user '{user}': connection limit",
        )
        for subject, what in zip(subjects, refused, strict=True):
            limit = self._reached(subject, CONNECTIONS, len(self._of.get(subject, ())))
            if limit is not None:
                raise NotAllowed(f"{what} ({limit}) is reached")

    def leave(self, connection: Connection) -> None:
        """The connection is gone."""
        for subject in self._subjects.pop(connection, ()):
            its = self._of[subject]
            del its[connection]
            if not its:
                del self._of[subject]

    def begin_session(self, connection: Connection) -> None:
        """Admits one more session; raises NotAllowed when the user's limit of channels is reached."""
        if not self.limits.some:
            return
        subject, user = Subject(USER, connection.user), connection.user
        if self._limit(subject, CHANNELS) is None:
            return
        limit = self._reached(subject, CHANNELS, self._channels(subject))
        if limit is not None:
            which = f"number of channels opened for user '{user}'"
            raise NotAllowed(f"{which} has reached the maximum allowed user limit of ({limit})")

    def used(self) -> dict[Subject, dict[str, int]]:
        """The counts of this gateway, for users and virtual hosts with limits."""
        return {
            subject: {CONNECTIONS: len(its), CHANNELS: self._channels(subject)}
            for subject, its in self._of.items()
            if self.limits.limits_some(subject)
        }

    def _limit(self, subject: Subject, what: str) -> int | None:
        if subject.kind == VIRTUAL_HOST and self._former.has_limits(subject.name):
            return None
        return self.limits.of(subject, what)

    def _channels(self, subject: Subject) -> int:
        return sum(len(each.sessions) for each in self._of.get(subject, ()))

    def _reached(self, subject: Subject, what: str, here: int) -> int | None:
        """The limit, if it is reached; None: there may be one more."""
        limit = self._limit(subject, what)
        if limit is None or here + self.elsewhere.get(subject, {}).get(what, 0) < limit:
            return None
        kind, name = subject
        self._few.say(log.warning, "a limit is reached", apart_by=what, kind=kind, name=name, limit=limit, do=_DO)
        return limit
