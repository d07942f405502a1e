"""SCRAM's keys in place of a hash: `scram-sha-256:ITERATIONS:SALT:STORED KEY:SERVER KEY`, in base64.

For users of other brokers, of whom there is nothing else. They cost little to guess at, so argon2, and keys beside it,
take their place as soon as their user says the password.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

from services.common.credentials import CredentialKind, Whose
from services.common.scram import Keys, make_keys

_MOST_ITERATIONS = 1_000_000


class ScramKeys(CredentialKind):
    """Of one mechanism."""

    quick = True

    def __init__(self, algorithm: str, mechanism: str) -> None:
        self._algorithm = algorithm  # as hashlib names it
        self._mechanism = mechanism
        self.begins = (f"{mechanism.lower()}:",)  # type: ignore[misc]  # of each its own

    def make(self, password: str, whose: Whose) -> str:
        keys = make_keys(password, [self._mechanism]).get(self._mechanism)
        if keys is None:
            raise ValueError("SCRAM cannot say this password")
        parts = (keys.salt, keys.stored_key, keys.server_key)
        return f"{self.begins[0]}{keys.iterations}:{':'.join(base64.b64encode(part).decode() for part in parts)}"

    def fits(self, kept: str, password: str, whose: Whose) -> bool:
        keys = self._read(kept)
        salted = hashlib.pbkdf2_hmac(self._algorithm, _prepared(password), keys.salt, keys.iterations)
        client = hmac.digest(salted, b"Client Key", self._algorithm)
        return hmac.compare_digest(hashlib.new(self._algorithm, client).digest(), keys.stored_key)

    def keys_of(self, kept: str, mechanism: str) -> Keys | None:
        try:
            return self._read(kept) if mechanism == self._mechanism else None
        except ValueError:
            return None

    def _read(self, kept: str) -> Keys:
        try:
            iterations, *parts = kept.removeprefix(self.begins[0]).split(":")
            salt, stored, server = (base64.b64decode(part, validate=True) for part in parts)
        except binascii.Error as error:
            raise ValueError(str(error)) from None
        size = hashlib.new(self._algorithm).digest_size
        if not 0 < int(iterations) <= _MOST_ITERATIONS or {len(stored), len(server)} != {size}:
            raise ValueError("ITERATIONS:SALT:STORED KEY:SERVER KEY is wanted")
        return Keys(salt=salt, iterations=int(iterations), stored_key=stored, server_key=server)


def _prepared(password: str) -> bytes:
    from scramp import ScramException  # noqa: PLC0415 - few need it, and it takes 30 ms to import
    from scramp.utils import saslprep  # noqa: PLC0415

    try:
        return bytes(saslprep(password).encode())
    except ScramException:
        return b""


SHA1 = ScramKeys("sha1", "SCRAM-SHA-1")
SHA256 = ScramKeys("sha256", "SCRAM-SHA-256")
SHA512 = ScramKeys("sha512", "SCRAM-SHA-512")
