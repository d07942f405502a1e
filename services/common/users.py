"""User records: mgmt writes them as configuration records of kind `user`, gateways read them to authenticate."""

from __future__ import annotations

from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from pydantic import BaseModel, ConfigDict

RECORD_KIND = "user"

# RFC 9106 with OWASP's smallest memory: about 30 ms, and hundreds of logins at a time still fit in memory.
_HASHER = PasswordHasher(time_cost=3, memory_cost=19_456, parallelism=1)


class User(BaseModel):
    """One user; the record's key is the name, its value `to_json()`."""

    model_config = ConfigDict(frozen=True)

    name: str
    password_hash: str
    tags: tuple[str, ...] = ()
    loopback_only: bool = False

    def to_json(self) -> bytes:
        """The record's value."""
        return self.model_dump_json().encode()

    @classmethod
    def from_json(cls, value: bytes) -> User:
        """The user in a record's value; raises ValidationError when it is none."""
        return cls.model_validate_json(value)


def hash_password(password: str) -> str:
    """An argon2id hash with its salt and parameters. Takes tens of milliseconds: call it in a thread."""
    return _HASHER.hash(password)


def verify_password(user: User | None, password: str) -> bool:
    """Whether `password` is `user`'s; as slow for no user as for a wrong password. Call it in a thread."""
    known = user.password_hash if user else _hash_of_nobody()
    try:
        _HASHER.verify(known, password)
    except (VerificationError, InvalidHashError):
        return False
    return user is not None


@cache
def _hash_of_nobody() -> str:
    return _HASHER.hash("")
