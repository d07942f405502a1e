"""Who asks over HTTP: basic authentication (RFC 7617) against the users on record."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable

from fastapi import HTTPException, Request
from fastapi.security import HTTPBasic, HTTPBasicCredentials
from fastapi.security.utils import get_authorization_scheme_param

from services.common.access.asked import Asked
from services.common.errors import AccessRefused
from services.common.login import Login
from services.common.users import User
from services.mgmt.access.guard import Guard
from services.mgmt.access.operations import ASK_MGMT
from services.mgmt.users import Users

_GONE = "gone"  # the address of a peer that reset its socket before it was accepted: none, least of all this machine's


class Doors:
    """Who may come in, for what."""

    def __init__(self, users: Users, guard: Guard) -> None:
        self.users = users
        self.guard = guard
        self.login = Login()

    def to(self, asked: Asked | Callable[[Request], Asked]) -> Basic:
        """A dependency of routes that do that, to what the request names."""
        return Basic(self, asked if callable(asked) else lambda _: asked)


class Basic(HTTPBasic):
    """A dependency of routes: the user who asks.

    Answers 401 where nobody known asks, 403 where it is somebody who may not.
    """

    def __init__(self, doors: Doors, asked: Callable[[Request], Asked]) -> None:
        super().__init__(scheme_name="user", realm="Hopline")
        self._users = doors.users
        self._guard = doors.guard
        self._login = doors.login
        self._asked = asked

    async def __call__(self, request: Request) -> User:  # type: ignore[override]  # the user, not what was typed
        given = self._read(request)
        peer = request.client.host if request.client else _GONE
        try:
            self._login.expect(given.username, peer)
            known = {user.name: user for user in await self._users.all()}
            user = await self._login.check(known, given.username, given.password, peer)
        except AccessRefused as error:
            raise HTTPException(401, error.text, self.make_authenticate_headers()) from None
        self._guard.check(await self._guard.user(user, peer), ASK_MGMT, self._asked(request))
        return user

    def _read(self, request: Request) -> HTTPBasicCredentials:
        # FastAPI's own reads ASCII only.
        scheme, encoded = get_authorization_scheme_param(request.headers.get("Authorization"))
        try:
            name, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            colon = ""
        if scheme.lower() != "basic" or not colon:
            raise HTTPException(401, "who asks? user name and password are wanted", self.make_authenticate_headers())
        return HTTPBasicCredentials(username=name, password=password)
