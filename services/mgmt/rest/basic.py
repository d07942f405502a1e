"""The user of an HTTP request: by basic authentication (RFC 7617) or bearer token (RFC 6750), judged by a provider."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from fastapi import HTTPException, Request
from fastapi.security import HTTPBasic
from fastapi.security.utils import get_authorization_scheme_param

from services.common.access.asked import Asked
from services.common.authentication.claims import Credentials, Token
from services.common.authentication.principal import Principal
from services.common.authentication.visit import Visit
from services.common.errors import AccessRefused
from services.common.ports.port import host_and_port
from services.mgmt.access.guard import Guard
from services.mgmt.access.operations import ASK_MGMT
from services.mgmt.http.doors import SIGNED_IN
from services.mgmt.rest.bodies import MOST, body
from services.mgmt.rest.sign_in import SignIn

Questions = Sequence[Asked]
Naming = Callable[[Request], Asked | Awaitable[Questions]]
"""What a request does to what; some say it in their bodies."""

Most = int | Callable[[], int]
"""Bytes of a body; where settings say it, when one comes."""

_WITH_BODIES = frozenset({"POST", "PUT", "PATCH"})
_GONE = "gone"  # the address of a peer that reset its socket before it was accepted: none, least of all this machine's


class Doors:
    """Lets users in by what a route does to what."""

    def __init__(self, sign_in: SignIn, guard: Guard, metrics_token: Path | None = None) -> None:
        """`metrics_token` is a file: see scraper.py."""
        self.sign_in = sign_in
        self.guard = guard
        self.metrics_token = metrics_token

    def to(self, asked: Asked | Naming, most: Most = MOST) -> Basic:
        """A dependency of routes that do that, to what the request names, in a body of so many bytes."""
        return Basic(self, asked, most)


class Basic(HTTPBasic):
    """A dependency of routes: the user of a request, when its body has been read.

    Answers 401 to a client that has not signed in, 403 to a user who may not.
    """

    def __init__(self, doors: Doors, asked: Asked | Naming, most: Most = MOST) -> None:
        super().__init__(scheme_name="user", realm="Hopline")
        self._sign_in = doors.sign_in
        self._guard = doors.guard
        self._asked = asked
        self._most = most

    async def __call__(self, request: Request) -> Principal:  # type: ignore[override]  # the user, not what was typed
        await self.take(request)
        principal = await self._who(request)
        asked = self._asked(request) if callable(self._asked) else self._asked
        await self._check(request, principal, *([asked] if isinstance(asked, Asked) else await asked))
        return principal

    async def take(self, request: Request) -> None:
        """Reads the body, of a client that has not signed in only a little: what needs no body is checked before."""
        self.read(request)

        async def known() -> None:
            asked = [] if callable(self._asked) else [self._asked]
            await self._check(request, await self._who(request), *asked)

        if request.method in _WITH_BODIES:
            await body(request, self._most() if callable(self._most) else self._most, known)

    async def _who(self, request: Request) -> Principal:
        claim, peer = self.read(request), _peer(request)
        try:
            principal = await self._sign_in(claim, peer, _visit(request, claim, peer))
        except AccessRefused as error:
            raise HTTPException(401, error.text, self.make_authenticate_headers()) from None
        if SIGNED_IN in request.scope:
            request.scope[SIGNED_IN](f"{principal.provider}\0{principal.name}")
        return principal

    async def _check(self, request: Request, principal: Principal, *asked: Asked) -> None:
        self._guard.check(await self._guard.user(principal, _peer(request)), ASK_MGMT, *asked)

    def read(self, request: Request) -> Credentials | Token:
        """What is claimed. Raises HTTPException where nothing is."""
        # FastAPI's own reads ASCII only.
        scheme, encoded = get_authorization_scheme_param(request.headers.get("Authorization"))
        if scheme.lower() == "bearer" and encoded:
            return Token("", encoded)
        try:
            name, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except ValueError:  # no base64, not even ASCII, or no text
            colon = ""
        if scheme.lower() != "basic" or not colon:
            raise HTTPException(401, "sign in: user name and password are needed", self.make_authenticate_headers())
        return Credentials(name, password)


def _peer(request: Request) -> str:
    return request.client.host if request.client else _GONE


def _visit(request: Request, claim: Credentials | Token, peer: str) -> Visit:
    port = request.client.port if request.client else 0
    mechanism = "Bearer" if isinstance(claim, Token) else "Basic"
    return Visit(host_and_port(peer, port), peer, "http", mechanism, seldom=True)
