"""bcrypt, as `htpasswd -B` makes it."""

from __future__ import annotations

import bcrypt

from services.common.credentials import CredentialKind, Whose

_LONGEST = 72  # bytes that count


class BCrypt(CredentialKind):
    begins = ("$2b$", "$2y$", "$2a$")

    def make(self, password: str, whose: Whose) -> str:
        return bcrypt.hashpw(_counted(password), bcrypt.gensalt()).decode()

    def fits(self, kept: str, password: str, whose: Whose) -> bool:
        return bcrypt.checkpw(_counted(password), kept.encode())


def _counted(password: str) -> bytes:
    return password.encode(errors="surrogatepass")[:_LONGEST]


KIND = BCrypt()
