"""argon2id (RFC 9106): how passwords are kept, unless another kind is asked for."""

from __future__ import annotations

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from services.common.credentials import CredentialKind, Whose

# RFC 9106 with OWASP's smallest memory: about 30 ms, and hundreds of logins at a time still fit in memory.
_HASHER = PasswordHasher(time_cost=3, memory_cost=19_456, parallelism=1)


class Argon2(CredentialKind):
    begins = ("$argon2",)
    lasting = True

    def make(self, password: str, whose: Whose) -> str:
        return _HASHER.hash(password)

    def fits(self, kept: str, password: str, whose: Whose) -> bool:
        try:
            return _HASHER.verify(kept, password)
        except VerificationError:
            return False
        except InvalidHashError as error:
            raise ValueError(str(error)) from None


KIND = Argon2()
