"""The password itself, encrypted under the stack's key: for CRAM-MD5, where both sides have to know it."""

from __future__ import annotations

import hmac

from services.common.credentials import CredentialKind, Whose
from services.common.sealing import CannotOpen, Sealing


class Recoverable(CredentialKind):
    begins = ("sealed:",)
    lasting = True
    quick = True

    def make(self, password: str, whose: Whose) -> str:
        return self.begins[0] + _sealing(whose).seal(password, whose.place)

    def fits(self, kept: str, password: str, whose: Whose) -> bool:
        secret = self.secret_of(kept, whose).encode(errors="surrogatepass")
        return hmac.compare_digest(secret, password.encode(errors="surrogatepass"))

    def check(self, kept: str) -> None:
        raise CannotOpen("what is encrypted elsewhere cannot be read here: give the password")

    def secret_of(self, kept: str, whose: Whose) -> str:
        return _sealing(whose).open(kept.removeprefix(self.begins[0]), whose.place)


def _sealing(whose: Whose) -> Sealing:
    if whose.sealing is None:
        raise CannotOpen("there is no key to encrypt with")
    return whose.sealing


KIND = Recoverable()
