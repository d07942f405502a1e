"""The caller and the path of a request for the tree over HTTP."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import Request

from services.common.access.asked import Asked
from services.common.authentication.principal import Principal
from services.mgmt.access.operations import ASK_MGMT
from services.mgmt.by_hand.client import Login
from services.mgmt.rest.basic import Doors
from services.mgmt.rest.model.paths import names_in
from services.mgmt.tree.caller import Caller
from services.mgmt.tree.tree import Tree


class Asking:
    """Users at the tree."""

    def __init__(self, tree: Tree, doors: Doors) -> None:
        self.tree = tree
        self._guard = doors.guard
        self._door = doors.to(ASK_MGMT)

    def caller(self, request: Request, principal: Principal) -> Caller:
        """The caller of a request."""
        peer = request.client.host if request.client else ""
        login = Login.of(self._door.read(request), principal.name, peer)
        return Caller(self._guard, principal, peer, login)

    async def check(self, request: Request, principal: Principal, questions: Iterable[Asked]) -> None:
        """As Caller says."""
        await self.caller(request, principal).check(questions)

    async def may(self, request: Request, principal: Principal, asked: Asked) -> bool:
        """As Caller says."""
        return await self.caller(request, principal).may(asked)

    @staticmethod
    def names(request: Request) -> tuple[str, ...]:
        """Of the request's path, below its category."""
        return names_in(request.path_params.get("path", ""))
