"""The one place in mgmt where it is asked whether somebody may: over HTTP a user, over gRPC whoever runs the stack."""

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
"""Who calls by gRPC knows the stack's secret: the command line, and other services."""


class Guard:
    """Decides by what is set now."""

    def __init__(self, access: Access, audit: Audit | None = None, through: str = "http") -> None:
        """What is denied goes to the `audit` log, with what it was asked `through`."""
        self._access = access
        self._through = through
        self._audit = audit

    async def user(self, user: SignedIn, host: str) -> Principal:
        """As rules see somebody who has signed in, and comes from that address; returns when there are rules."""
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
