"""Asks authentication providers again about connected users, when their last answer is older than its time to live.

Only providers that do not report changes by themselves, such as directories. A user that is gone, or is in other
groups, loses its connections. While a provider does not answer, all its users stay connected: its outage says nothing
of them, and to end every connection would be an outage of our own. Sign-ins meanwhile are refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from services.common.clock import Clock, monotonic
from services.common.errors import BrokerError

if TYPE_CHECKING:
    from services.common.authentication.authenticator import Authenticator
    from services.common.authentication.principal import Principal

_LOOK = 5.0  # seconds between looks, and between two questions about one user at least


class AskedAgain:
    """For one gateway; `connected` gives the principals that have a connection."""

    def __init__(
        self, authenticator: Authenticator, connected: Callable[[], Iterable[Principal]], clock: Clock = monotonic
    ) -> None:
        self._authenticator = authenticator
        self._connected = connected
        self._clock = clock
        self._answered: dict[Principal, float] = {}

    async def run(self) -> None:
        """Looks again and again, until it is cancelled."""
        while True:
            await asyncio.sleep(_LOOK)
            await self.look()

    async def look(self) -> None:
        """Asks about principals whose answer has expired, one by one; skips others of a provider that is away."""
        now, away = self._clock(), set[str]()
        self._answered = {each: self._answered.get(each, now) for each in set(self._connected()) if each.again}
        for principal, answered in list(self._answered.items()):
            if principal.provider not in away and not await self._ask(principal, now - answered):
                away.add(principal.provider)

    async def _ask(self, principal: Principal, seconds: float) -> bool:
        """Asks the principal's provider, if it is time; False when the provider does not answer."""
        try:
            provider = self._authenticator.provider(principal.provider)
            if seconds < max(provider.options.cache_seconds, _LOOK):
                return True
            groups = await provider.groups_now(principal)
        except BrokerError:
            return False  # the provider has said so in the log
        self._answered[principal] = self._clock()
        if groups != principal.groups:
            self._authenticator.forget(principal, "is deleted" if groups is None else "was changed")
        return True
