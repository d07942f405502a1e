"""Whether those who are connected still may be, asked at the end of the time for which an answer counts: of providers
that do not tell by themselves, such as directories. Whose user is gone, or is in other groups, loses its connections.

One that does not answer keeps everybody connected: that it is away says nothing of anybody, and to end every connection
would make an outage of its own out of it. Who signs in meanwhile is refused.
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
    """Of one gateway; `connected` gives who has a connection."""

    def __init__(
        self, authenticator: Authenticator, connected: Callable[[], Iterable[Principal]], clock: Clock = monotonic
    ) -> None:
        self._authenticator = authenticator
        self._connected = connected
        self._clock = clock
        self._answered: dict[Principal, float] = {}

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(_LOOK)
            await self.look()

    async def look(self) -> None:
        """Asks for those whose time is over: one after the other, and of a provider that is away for no other."""
        now, away = self._clock(), set[str]()
        self._answered = {each: self._answered.get(each, now) for each in set(self._connected()) if each.again}
        for principal, answered in list(self._answered.items()):
            if principal.provider not in away and not await self._ask(principal, now - answered):
                away.add(principal.provider)

    async def _ask(self, principal: Principal, seconds: float) -> bool:
        """Whether its provider answers, where it is time."""
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
