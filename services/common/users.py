"""User records: mgmt writes them as configuration records of kind `user`, gateways read them to authenticate."""

from __future__ import annotations

import hashlib
from functools import cache

from pydantic import BaseModel, ConfigDict

from services.common import credentials
from services.common.credentials import Whose
from services.common.credentials.argon2 import KIND as ARGON2
from services.common.sealing import Sealing

RECORD_KIND = "user"


class User(BaseModel):
    """One user; the record's key is the name, its value `to_json()`."""

    model_config = ConfigDict(frozen=True)

    name: str
    password_hash: str
    """What is kept of the password, which may be something else than a hash: services/common/credentials."""
    tags: tuple[str, ...] = ()
    loopback_only: bool = False
    revision: str = ""
    """Another one with each change by an operator; the same where only the hash of the password is a newer one."""

    replaced: str = ""
    """Digest of the hash that was kept before a better one replaced it: definitions with that hash change nothing.

    The salt is not kept, so the digest is no easier to guess from than the present hash.
    """

    @property
    def standing(self) -> tuple[object, ...]:
        """What the user's connections rest on: they end when it changes."""
        return self.revision or self.password_hash, self.tags, self.loopback_only

    def to_json(self) -> bytes:
        """The record's value."""
        return self.model_dump_json().encode()

    @classmethod
    def from_json(cls, value: bytes) -> User:
        """The user in a record's value; raises ValidationError when it is none."""
        return cls.model_validate_json(value)


def digest_of(password_hash: str) -> str:
    """The digest for `User.replaced`."""
    return hashlib.sha256(password_hash.encode()).hexdigest()


def hash_password(password: str) -> str:
    """An argon2id hash with its salt and parameters. Takes tens of milliseconds: call it in a thread."""
    return ARGON2.make(password, Whose(""))


def verify_password(user: User | None, password: str, sealing: Sealing | None = None) -> bool:
    """Whether `password` is `user`'s; as slow for no user as for a wrong password. Call it in a thread.

    An empty password is never right, whatever is kept: RabbitMQ's definitions may have hashes of it, with which
    RabbitMQ lets no user in. Raises CannotOpen where the kept form is encrypted and cannot be opened.
    """
    if user is None or not password:
        return _waste(password)
    fits = credentials.fits(user.password_hash, password, Whose(user.name, sealing))
    kind = credentials.kind_of(user.password_hash)
    return fits or ((kind is None or kind.quick) and _waste(password))


def _waste(password: str) -> bool:
    """Takes as much time as a wrong password, and gives False."""
    credentials.fits(_hash_of_nobody(), password, Whose(""))
    return False


@cache
def _hash_of_nobody() -> str:
    return hash_password("")
