"""Who asks over HTTP: basic authentication (RFC 7617) against the users on record."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

from fastapi import HTTPException, Request
from fastapi.security import HTTPBasic, HTTPBasicCredentials
from fastapi.security.utils import get_authorization_scheme_param

from services.common.errors import AccessRefused
from services.common.login import Login
from services.common.users import User
from services.mgmt.users import Users

_GONE = "gone"  # the address of a peer that reset its socket before it was accepted: none, least of all this machine's


class Basic(HTTPBasic):
    """A dependency of routes: the user who asks, who must have one of `tags`.

    Answers 401 where nobody known asks, 403 where it is somebody without the tag.
    """

    def __init__(self, users: Users, tags: Iterable[str]) -> None:
        super().__init__(scheme_name="user", realm="Hopline")
        self._users = users
        self._tags = frozenset(tags)
        self._login = Login()

    async def __call__(self, request: Request) -> User:  # type: ignore[override]  # the user, not what was typed
        given = self._read(request)
        peer = request.client.host if request.client else _GONE
        try:
            self._login.expect(given.username, peer)
            known = {user.name: user for user in await self._users.all()}
            user = await self._login.check(known, given.username, given.password, peer)
        except AccessRefused as error:
            raise HTTPException(401, error.text, self.make_authenticate_headers()) from None
        if self._tags.isdisjoint(user.tags):
            raise AccessRefused(f"user '{user.name}' has none of the tags {', '.join(sorted(self._tags))}")
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
