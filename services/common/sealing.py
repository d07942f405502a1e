"""Secrets at rest: encrypted (AES-256-GCM) under a key that is in a file of its own, apart from what it encrypts
(`secrets_key.py` says where).

A sealed secret is bound to its place: it cannot be opened as another place's. The file has one key a line, in base64:
the first seals, all of them open, so that a new key can be added as the first line.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from pathlib import Path

from services.common.config import Settings
from services.common.errors import InternalError
from services.common.secrets_key import SETTING, KeyPlace

_KEY_BYTES = 32
_NONCE_BYTES = 12
_VERSION = "1:"


class CannotOpen(InternalError):
    """A sealed secret cannot be opened here: the key is missing, or another one."""


class Sealing:
    """Seals and opens with the keys of one file, which is read at the first use."""

    def __init__(self, file: Path | KeyPlace) -> None:
        self._place = KeyPlace(file, file.parent) if isinstance(file, Path) else file
        self._keys: list[bytes] = []

    @classmethod
    def of(cls, settings: Settings) -> Sealing:
        """With the key file of the settings."""
        return cls(KeyPlace.of(settings))

    def seal(self, secret: str, place: str) -> str:
        """Encrypts for `open` with the same place. Makes a key if there is none; raises CannotOpen if it cannot."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - few processes seal

        if not self._keys:
            self._keys = self._read(make=True)
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = AESGCM(self._keys[0]).encrypt(nonce, secret.encode(), place.encode())
        return _VERSION + base64.b64encode(nonce + sealed).decode()

    def open(self, sealed: str, place: str) -> str:
        """The secret that was sealed. Raises CannotOpen."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - as above
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415

        data = _decoded(sealed)
        if not self._keys:
            self._keys = self._read(make=False)
        for key in self._keys:
            try:
                return AESGCM(key).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], place.encode()).decode()
            except InvalidTag:
                continue
        self._keys = []  # read the file again next time: it may have the right key by then
        raise CannotOpen(f"a secret of {place} was encrypted under another key than those in {self._place.find()}")

    def _read(self, *, make: bool) -> list[bytes]:
        file: Path | None = None
        try:
            file = self._place.make(_new_key()) if make else self._place.find()
            keys = [base64.b64decode(line, validate=True) for line in file.read_text().split()]
        except (OSError, UnicodeDecodeError, binascii.Error) as error:
            raise CannotOpen(f"{SETTING}={file or self._place.given or ''}: {error}") from error
        if not keys or any(len(key) != _KEY_BYTES for key in keys):
            raise CannotOpen(f"{SETTING}={file}: a key has {_KEY_BYTES} bytes, in base64")
        return keys


def _new_key() -> str:
    return base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()


def _decoded(sealed: str) -> bytes:
    try:
        data = base64.b64decode(sealed.removeprefix(_VERSION), validate=True)
    except binascii.Error:
        data = b""
    if not sealed.startswith(_VERSION) or len(data) <= _NONCE_BYTES:
        raise CannotOpen("what should be encrypted is not")
    return data
