"""RabbitMQ's hashes: base64 of a salt of 4 bytes, and SHA-256, SHA-512 or MD5 of salt and password.

They cost nothing to guess at, so argon2 takes their place as soon as their user says the password. MD5 is what RabbitMQ
made before 3.6, and keeps for users that came from there.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets

from services.common.credentials import CredentialKind, Whose

_SALT = 4  # bytes


class RabbitMq(CredentialKind):
    """What they have in common."""

    quick = True

    def __init__(self, algorithm: str) -> None:
        self._algorithm = algorithm
        self.begins = (f"rabbitmq-{algorithm}:",)  # type: ignore[misc]  # of each its own

    def make(self, password: str, whose: Whose) -> str:
        salt = secrets.token_bytes(_SALT)
        return self.begins[0] + base64.b64encode(salt + self._digest(salt, password)).decode()

    def fits(self, kept: str, password: str, whose: Whose) -> bool:
        try:
            data = base64.b64decode(kept.removeprefix(self.begins[0]), validate=True)
        except binascii.Error as error:
            raise ValueError(str(error)) from None
        salt, digest = data[:_SALT], data[_SALT:]
        if len(digest) != hashlib.new(self._algorithm).digest_size:
            raise ValueError(f"a salt of {_SALT} bytes and a digest of {self._algorithm} are wanted")
        return hmac.compare_digest(digest, self._digest(salt, password))

    def _digest(self, salt: bytes, password: str) -> bytes:
        return hashlib.new(self._algorithm, salt + password.encode(errors="surrogatepass")).digest()


SHA256 = RabbitMq("sha256")
SHA512 = RabbitMq("sha512")
MD5 = RabbitMq("md5")
