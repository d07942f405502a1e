"""The one place in mgmt where access is checked: over HTTP of a user, over gRPC of the stack's operator."""

from __future__ import annotations

from dataclasses import replace

from services.common.access.asked import Asked, Principal
from services.common.access.words import refusal
from services.common.audit.audit import Audit
from services.common.audit.entry import DENIED, Entry
from services.common.authentication.principal import Principal as SignedIn
from services.common.clients.access import Access
from services.common.errors import AccessRefused

OPERATOR = Principal("operator", operator=True)
"""Of calls over gRPC, whose callers have the stack's secret: the command line, and other services."""


class Guard:
    """Decides by what is set now."""

    def __init__(self, access: Access, audit: Audit | None = None, through: str = "http") -> None:
        """What is denied goes to the `audit` log, with what it was asked `through`."""
        self._access = access
        self._through = through
        self._audit = audit

    async def user(self, user: SignedIn, host: str) -> Principal:
        """A user who has signed in, from that address, as rules see it; returns when the rules are known."""
        await self._access.known()
        principal = self._access.rules.principal(user.name, host)
        return replace(principal, tags=user.tags, groups=principal.groups | user.groups)

    def may(self, principal: Principal, asked: Asked) -> bool:
        """Whether; for what is left out of an answer, and not refused."""
        return self._access.decide(principal, asked).allowed

    def check(self, principal: Principal, *questions: Asked) -> None:
        """Raises AccessRefused that names what was refused first."""
        for asked in questions:
            verdict = self._access.decide(principal, asked)
            if not verdict.allowed:
                raise self._denied(principal, asked, refusal(principal, asked, verdict))

    def _denied(self, principal: Principal, asked: Asked, text: str) -> AccessRefused:
        if self._audit:
            user, kind, name = principal.name, asked.kind.value, asked.name
            self._audit.count(
                Entry(DENIED, user, peer=principal.host, through=self._through, what=kind, name=name, reason=text)
            )
        return AccessRefused(text)
