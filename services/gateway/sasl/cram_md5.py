"""CRAM-MD5 (RFC 2195): the client shows that it knows a password, by a digest of it and of what the broker has asked.

The broker has to know the password too, so it is for users whose password is kept recoverably. CRAM-MD5-HEX, of Qpid's
clients, has the hexadecimal MD5 of the password in its place. Neither is offered unless the operator asks for it.
"""

from __future__ import annotations

import re
import secrets
from typing import ClassVar

from services.common.authentication.claims import Digest
from services.common.errors import SyntaxFault
from services.gateway.sasl import Challenge, Directory, Mechanism

_LONGEST = 512  # bytes of a response
_DIGEST = re.compile(r"[0-9a-fA-F]{32}")


class CramMd5(Mechanism):
    name: ClassVar[str] = "CRAM-MD5"

    def __init__(self, directory: Directory) -> None:
        super().__init__(directory)
        self._asked = b""

    def respond(self, response: bytes) -> Digest | Challenge:
        if self._asked:
            return self._digest(response)
        if response:
            raise SyntaxFault(f"{self.name}: the broker speaks first")
        self._asked = f"<{secrets.token_hex(16)}@hopline>".encode()
        return Challenge(self._asked)

    def _digest(self, response: bytes) -> Digest:
        try:
            user, blank, digest = response.decode().rpartition(" ")
        except ValueError as fault:
            raise SyntaxFault(f"{self.name}: a response is in UTF-8") from fault
        if len(response) > _LONGEST or not user or not blank or not _DIGEST.fullmatch(digest):
            raise SyntaxFault(f"{self.name}: a response is a name, a blank, and a digest of 32 hexadecimal digits")
        return Digest(user, self.name, self._asked, digest.lower())


class CramMd5Hex(CramMd5):
    name = "CRAM-MD5-HEX"
