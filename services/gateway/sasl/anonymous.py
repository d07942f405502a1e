"""ANONYMOUS, RFC 4505: a client says who it is as far as it likes, and is the user that the operator has named."""

from __future__ import annotations

from services.common.authentication.claims import Anonymous as AnonymousClaim
from services.common.errors import SyntaxFault
from services.gateway.sasl import Mechanism

_LONGEST = 255  # characters


class Anonymous(Mechanism):
    def respond(self, response: bytes) -> AnonymousClaim:
        try:
            trace = response.decode()
        except ValueError as fault:
            raise SyntaxFault("ANONYMOUS: trace information is UTF-8") from fault
        if len(trace) > _LONGEST or not trace.isprintable():
            raise SyntaxFault(
                f"ANONYMOUS: trace information has {_LONGEST} characters at most, and each can be printed"
            )
        return AnonymousClaim(trace)
