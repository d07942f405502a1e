"""The users, SCRAM keys and providers on record, as far as a process has read them."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import partial

from services.common import credentials, scram, users
from services.common.authentication import described
from services.common.authentication.described import Described
from services.common.authentication.disguise import keys_of_nobody
from services.common.scram import Keys, KeysOfUser
from services.common.users import User
from services.rpc.store_pb2 import Record

KINDS = (users.RECORD_KIND, scram.RECORD_KIND, scram.DISGUISE_KIND, described.RECORD_KIND)


@dataclass(slots=True)
class KnownUsers:
    """The records of one snapshot, with later changes applied."""

    secret: bytes = field(default_factory=partial(secrets.token_bytes, 32))  # of the disguise, until its record is read
    users: dict[str, User] = field(default_factory=dict)
    providers: dict[str, Described] = field(default_factory=dict)
    _keys: dict[str, KeysOfUser] = field(default_factory=dict)

    def apply(self, record: Record) -> None:
        """Raises ValidationError for a record that cannot be read."""
        if record.kind == scram.DISGUISE_KIND:
            self.secret = record.value or self.secret
        elif record.kind == scram.RECORD_KIND:
            self._keys.pop(record.key, None)
            if not record.deleted:
                self._keys[record.key] = KeysOfUser.from_json(record.value)
        elif record.kind == described.RECORD_KIND:
            self.providers.pop(record.key, None)
            if not record.deleted:
                self.providers[record.key] = Described.from_json(record.value)
        elif record.deleted:
            self.users.pop(record.key, None)
        else:
            self.users[record.key] = User.from_json(record.value)

    def keys_of(self, user: str, mechanism: str) -> Keys | None:
        """None for an unknown user, or one without keys for its present password."""
        known, keys = self.users.get(user), self._keys.get(user)
        if known is None:
            return None
        beside = keys.of(known).get(mechanism) if keys else None
        kind = None if beside else credentials.kind_of(known.password_hash)
        return kind.keys_of(known.password_hash, mechanism) if kind else beside

    def mechanisms_of(self, user: User) -> Collection[str]:
        """The mechanisms for which the user has keys of its present password."""
        keys = self._keys.get(user.name)
        return keys.of(user).keys() if keys else ()

    def keys_of_nobody(self, user: str, mechanism: str) -> Keys:
        """The keys to show in place of an unknown user's."""
        return keys_of_nobody(self.secret, user, mechanism)
