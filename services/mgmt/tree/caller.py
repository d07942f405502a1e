"""The caller of a request to the tree, over HTTP or over AMQP: the user, and whether it may."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from services.common.access.asked import Asked
from services.common.authentication.principal import Principal
from services.mgmt.access.guard import Guard

if TYPE_CHECKING:
    from services.mgmt.by_hand.client import Login


class Caller:
    """A user who has signed in, from an address; `login` is with what, where that is known.

    `publishes`: whoever asks for it publishes messages for it.
    """

    def __init__(
        self, guard: Guard, who: Principal, peer: str, login: Login | None = None, *, publishes: bool = False
    ) -> None:
        self.name = who.name
        self.login = login
        self.publishes = publishes
        self._guard = guard
        self._who = who
        self._peer = peer

    async def check(self, questions: Iterable[Asked]) -> None:
        """Raises AccessRefused.

        Questions that depend on the state are made when they are answered, after the last wait: a caller that goes on
        at once does it to what was asked about.
        """
        user = await self._guard.user(self._who, self._peer)
        self._guard.check(user, *questions)

    async def groups(self) -> frozenset[str]:
        """That it is in, on record or by its provider."""
        return (await self._guard.user(self._who, self._peer)).groups

    async def may(self, asked: Asked) -> bool:
        """Whether; nothing is put on record of it."""
        return self._guard.may(await self._guard.user(self._who, self._peer), asked)
