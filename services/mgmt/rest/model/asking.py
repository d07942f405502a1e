"""Who asks for what of the tree: the questions of access, asked before anything is done."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import Request

from services.common.access.asked import Asked
from services.common.authentication.principal import Principal
from services.mgmt.access.guard import Guard
from services.mgmt.rest.model.paths import names_in
from services.mgmt.tree.tree import Tree


class Asking:
    """A user at the tree."""

    def __init__(self, tree: Tree, guard: Guard) -> None:
        self.tree = tree
        self._guard = guard

    async def check(self, request: Request, principal: Principal, questions: Iterable[Asked]) -> None:
        """Raises AccessRefused.

        Questions that depend on what there is are made when they are answered, behind the last wait: whoever goes on
        at once does it to what was asked about.
        """
        peer = request.client.host if request.client else ""
        user = await self._guard.user(principal, peer)
        self._guard.check(user, *questions)

    async def may(self, request: Request, principal: Principal, asked: Asked) -> bool:
        """Whether; nothing is put on record of it."""
        peer = request.client.host if request.client else ""
        return self._guard.may(await self._guard.user(principal, peer), asked)

    @staticmethod
    def names(request: Request) -> tuple[str, ...]:
        """Of the request's path, below its category."""
        return names_in(request.path_params.get("path", ""))
