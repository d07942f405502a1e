"""EXTERNAL, RFC 4422, appendix A: a client is who its certificate says, which TLS has verified."""

from __future__ import annotations

from services.common.authentication.claims import Certified
from services.common.errors import SyntaxFault
from services.gateway.sasl import Mechanism


class External(Mechanism):
    certified = True

    def respond(self, response: bytes) -> Certified:
        try:
            identity = response.decode()
        except ValueError as fault:
            raise SyntaxFault("EXTERNAL: an authorisation identity is UTF-8") from fault
        certified = self.directory.certified
        if certified and identity not in ("", certified):
            raise SyntaxFault("EXTERNAL: acting for another user is not offered")
        return Certified(certified)
