"""SCRAM (RFC 5802, 7677): client and broker each prove that they know the password, and neither says it.

Two messages of the client: its name, answered with the salt of its keys; the proof, answered with the broker's own.
Channel binding is not offered, so no name ends in -PLUS: a client may say that it could have (`y`), not ask for it.
"""

from __future__ import annotations

from typing import Any, ClassVar

from scramp import ScramException, ScramMechanism
from scramp.utils import ServerError

from services.common.authentication.claims import Proof
from services.common.errors import BrokerError, SyntaxFault
from services.gateway.sasl import Challenge, Directory, Mechanism

_LONGEST = 512  # bytes of a message: others wait while a longer name is prepared (RFC 4013)


class Scram(Mechanism):
    """What the variants have in common."""

    name: ClassVar[str]

    def __init__(self, directory: Directory) -> None:
        super().__init__(directory)
        self._look_up = _LookUp(directory, self.name)
        self._server: Any = None  # of the library, which has no types; from the first message on

    def respond(self, response: bytes) -> Proof | Challenge:
        if len(response) > _LONGEST:
            raise SyntaxFault(f"{self.name}: a message has {_LONGEST} bytes at most")
        try:
            message = response.decode()
            return self._final(message) if self._server else self._first(message)
        except (ScramException, ValueError) as fault:
            if isinstance(fault.__cause__, BrokerError):  # of the directory
                raise fault.__cause__ from None
            raise SyntaxFault(f"{self.name}: {fault}") from fault

    def _first(self, message: str) -> Challenge:
        if message.startswith("p"):
            raise SyntaxFault(f"{self.name}: channel binding is not offered")
        self._server = ScramMechanism(self.name).make_server(self._look_up)
        self._server.set_client_first(message)
        return Challenge(self._server.get_server_first().encode())

    def _final(self, message: str) -> Proof:
        try:
            self._server.set_client_final(message)
        except ScramException as fault:
            if fault.server_error is not ServerError.INVALID_PROOF:
                raise
            return self._look_up.proof(b"", fits=False)
        return self._look_up.proof(self._server.get_server_final().encode(), fits=True)


class ScramSha1(Scram):
    """Only for clients that know nothing better: it is not offered unless the operator asks for it."""

    name = "SCRAM-SHA-1"


class ScramSha256(Scram):
    name = "SCRAM-SHA-256"


class ScramSha512(Scram):
    name = "SCRAM-SHA-512"


class _LookUp:
    """Whom the client's first message names, for the library. It does not know who made it, which would be a circle."""

    def __init__(self, directory: Directory, mechanism: str) -> None:
        self._directory = directory
        self._mechanism = mechanism

    def __call__(self, user: str) -> tuple[bytes, bytes, bytes, int]:
        keys = self._directory.keys_of(user, self._mechanism)
        self._user, self._keys = user, keys
        return keys.salt, keys.stored_key, keys.server_key, keys.iterations

    def proof(self, final: bytes, *, fits: bool) -> Proof:
        return Proof(self._user, self._mechanism, self._keys, fits, final)
