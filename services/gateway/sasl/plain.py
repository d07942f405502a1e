"""PLAIN, RFC 4616: `[authzid] NUL authcid NUL passwd`. An authorisation identity is accepted only as the same name.

Clients that sign in by a token in place of a password may leave the name out: the token says it.
"""

from __future__ import annotations

from services.common.authentication.claims import Credentials
from services.common.errors import SyntaxFault
from services.gateway.sasl import Mechanism


class Plain(Mechanism):
    discloses = True

    def respond(self, response: bytes) -> Credentials:
        try:
            identity, user, password = response.decode("utf-8").split("\0")
        except ValueError as fault:
            raise SyntaxFault("a PLAIN response is [authzid] NUL authcid NUL password in UTF-8") from fault
        if identity not in ("", user):
            raise SyntaxFault("PLAIN: acting for another user is not offered")
        return Credentials(user, password)
