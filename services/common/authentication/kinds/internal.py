"""The users on record: they prove a password, or SCRAM keys of it; or a certificate names them; one may be anonymous.

Verification (argon2, slow on purpose) runs in threads, two at a time. Remembered answers rest on the user's record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Mapping
from typing import Any, ClassVar

import structlog

from services.common.authentication.answers import Answers
from services.common.authentication.claims import (
    CRAM,
    PASSWORDS,
    Anonymous,
    Certified,
    Claim,
    Credentials,
    Digest,
    Proof,
)
from services.common.authentication.fair_slots import FairSlots
from services.common.authentication.principal import Principal
from services.common.authentication.provider import House, Options, Provider
from services.common.authentication.refusal import Refused
from services.common.credentials import Whose, kind_of
from services.common.few_lines import FewLines
from services.common.scram import MECHANISMS, Keys
from services.common.users import User, verify_password

log = structlog.get_logger()

_REMEMBERED = 1000
_HASHES = 2  # at a time
_DOUBTFUL_HASHES = 1  # of these, for addresses from which a login failed lately
_NO_SUCH_USER = "make it: hopline users add"
_NO_KEYS = "let it sign in with PLAIN once, or set its password again: hopline users add"
_NOT_RECOVERABLE = "set its password again: hopline users change --kind recoverable"
_UNKNOWN = "no such user, or another password"


class Internal(Provider):
    mechanisms = PASSWORDS | MECHANISMS | CRAM | {"EXTERNAL", "ANONYMOUS"}

    def __init__(self, name: str, options: Options, house: House) -> None:
        super().__init__(name, options, house)
        self.slots = FairSlots(_HASHES, _DOUBTFUL_HASHES)
        self.answers = Answers(_REMEMBERED, None)
        self._hashing = asyncio.Semaphore(_HASHES)  # composites need it too: they have slots of their own
        self._few = FewLines()

    async def verify(self, claim: Claim) -> Principal:
        judge = self._JUDGES.get(type(claim))
        if judge is None:
            raise Refused("users on record cannot sign in this way")
        name = self.house.settings.anonymous_user if isinstance(claim, Anonymous) else claim.user
        user = self._users.get(name)
        if not await judge(self, claim, user) or user is None:
            raise Refused(_UNKNOWN)
        if self._users.get(user.name) != user:  # changed before this connection was known
            raise Refused("the user was changed, or deleted, while it signed in")
        return self._principal(user)

    def basis_of(self, claim: Claim) -> Hashable:
        return self._users.get(claim.user)  # answers are good while the record stays as it is

    def keys_of(self, user: str, mechanism: str) -> Keys | None:
        return self.house.known.keys_of(user, mechanism)

    @property
    def _users(self) -> Mapping[str, User]:
        return self.house.known.users

    def _principal(self, user: User) -> Principal:
        groups: frozenset[str] = frozenset()
        tags = frozenset(user.tags) | self.tags_of(groups)
        return Principal(user.name, self.name, groups, tags, loopback_only=user.loopback_only)

    async def _password(self, claim: Credentials, user: User | None) -> bool:
        async with self._hashing:
            return await asyncio.to_thread(verify_password, user, claim.password, self.house.sealing)

    async def _proof(self, proof: Proof, user: User | None) -> bool:
        keys = self.house.known.keys_of(proof.user, proof.mechanism)
        if keys is None and user is not None:
            about = {"user": proof.user, "mechanism": proof.mechanism}
            self._few.say(log.warning, "a user has no keys for this mechanism yet", **about, do=_NO_KEYS)
        # A user whose password was changed meanwhile has other keys: the proof is of the former password.
        return proof.fits and keys == proof.keys

    async def _digest(self, digest: Digest, user: User | None) -> bool:
        kind = kind_of(user.password_hash) if user else None
        secret = kind.secret_of(user.password_hash, Whose(user.name, self.house.sealing)) if kind and user else None
        if secret is None and user is not None:
            self._few.say(log.warning, "a user's password is not kept recoverably", user=user.name, do=_NOT_RECOVERABLE)
        return digest.fits(secret or "") and secret is not None

    async def _certified(self, _claim: Certified, user: User | None) -> bool:
        return user is not None

    async def _anonymous(self, claim: Anonymous, user: User | None) -> bool:
        name = self.house.settings.anonymous_user
        if user is None:
            self._few.say(
                log.warning, "HOPLINE_ANONYMOUS_USER names a user that does not exist", user=name, do=_NO_SUCH_USER
            )
        else:
            log.debug("a client signed in with ANONYMOUS", user=name, trace=claim.trace)
        return user is not None

    _JUDGES: ClassVar[Mapping[type, Callable[..., Any]]] = {
        Credentials: _password,
        Proof: _proof,
        Digest: _digest,
        Certified: _certified,
        Anonymous: _anonymous,
    }
