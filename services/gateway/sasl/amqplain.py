"""AMQPLAIN: the body of a field table with LOGIN and PASSWORD (AMQP 0-8's own mechanism, which older clients use)."""

from __future__ import annotations

from services.common.authentication.claims import Credentials
from services.common.errors import SyntaxFault
from services.common.message import field_table
from services.gateway.sasl import Mechanism


class AmqPlain(Mechanism):
    discloses = True

    def respond(self, response: bytes) -> Credentials:
        table = field_table.decode(len(response).to_bytes(4, "big") + response)
        user, password = table.get("LOGIN"), table.get("PASSWORD")
        if not isinstance(user, str) or not isinstance(password, str):
            raise SyntaxFault("an AMQPLAIN response is a field table with LOGIN and PASSWORD")
        return Credentials(user, password)
