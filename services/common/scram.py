"""Keys of SCRAM (RFC 5802): by them a server can verify that a client knows a password, and not find the password out.

They are records of their own beside the user's, written by mgmt together with it. A user from before SCRAM gets keys
later, when others may be changing it: so the record of keys names the password hash that it belongs to, and counts for
that hash only. Therefore keys can be written without knowing what the user's record says at that moment.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from services.common.users import User

RECORD_KIND = "scram"
DISGUISE_KIND = "scram_disguise"  # one record: random bytes, from which come the salts for unknown users

MECHANISMS = frozenset({"SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-512"})

# Clients hash as often, some of them in JavaScript: it takes 5 to 20 ms. RFC 7677 asks for 4096 at least.
ITERATIONS = 15_000
SALT_BYTES = 16


class Keys(BaseModel):
    """Of one user, for one mechanism."""

    model_config = ConfigDict(frozen=True, ser_json_bytes="base64", val_json_bytes="base64")

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes


class KeysOfUser(BaseModel):
    """A record: its key is the user's name, its value `to_json()`."""

    model_config = ConfigDict(frozen=True)

    password_hash: str
    keys: Mapping[str, Keys]  # by mechanism

    def to_json(self) -> bytes:
        """The record's value."""
        return self.model_dump_json().encode()

    @classmethod
    def from_json(cls, value: bytes) -> KeysOfUser:
        """The keys in a record's value; raises ValidationError when it is none."""
        return cls.model_validate_json(value)

    def of(self, user: User) -> Mapping[str, Keys]:
        """The keys that are valid for the user's present password."""
        return self.keys if self.password_hash == user.password_hash else {}


def make_keys(password: str, mechanisms: Iterable[str]) -> dict[str, Keys]:
    """Keys for each SCRAM mechanism in `mechanisms`; none for a password that SCRAM cannot use (RFC 5802, section 2.2).

    Takes tens of milliseconds: call it in a thread.
    """
    # Few processes ever make keys, and rarely soon after their start: the import takes 30 ms.
    from scramp import ScramException, ScramMechanism  # noqa: PLC0415
    from scramp.utils import saslprep  # noqa: PLC0415

    try:
        usable = bool(saslprep(password))  # of some passwords saslprep leaves nothing, which would prove nothing
    except ScramException:
        usable = False
    made = {}
    for name in MECHANISMS.intersection(mechanisms) if usable else ():
        salt = secrets.token_bytes(SALT_BYTES)
        _, stored_key, server_key, _ = ScramMechanism(name).make_auth_info(password, ITERATIONS, salt)
        made[name] = Keys(salt=salt, iterations=ITERATIONS, stored_key=stored_key, server_key=server_key)
    return made
