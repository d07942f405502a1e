"""XOAUTH2: `user=NAME ^A auth=Bearer TOKEN ^A ^A` (^A is the byte 1), as Google describes and Broker-J offers it."""

from __future__ import annotations

from services.common.authentication.claims import Token
from services.common.errors import SyntaxFault
from services.gateway.sasl import Mechanism

_BEARER = "bearer "


class XOAuth2(Mechanism):
    discloses = True

    def respond(self, response: bytes) -> Token:
        try:
            *pairs, last, end = response.decode().split("\1")
            said = dict(pair.split("=", 1) for pair in pairs)
        except ValueError as fault:
            raise SyntaxFault("an XOAUTH2 response is user=NAME ^A auth=Bearer TOKEN ^A ^A in UTF-8") from fault
        scheme, token = said.get("auth", "")[: len(_BEARER)], said.get("auth", "")[len(_BEARER) :].strip()
        if last or end or scheme.lower() != _BEARER or not token:
            raise SyntaxFault("an XOAUTH2 response ends with auth=Bearer TOKEN ^A ^A")
        return Token(said.get("user", ""), token)
