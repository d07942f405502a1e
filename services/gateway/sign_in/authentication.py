"""Judges what clients claim against the users on record; a gateway keeps its own copy, so logins need no other service.

Who is deleted is disconnected, as soon as the store has told: at once in general.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import structlog

from services.common.containment import for_each
from services.common.errors import AccessRefused
from services.common.few_lines import FewLines
from services.common.login import REFUSED, Login
from services.common.scram import Keys
from services.gateway.sasl import Anonymous, Certified, Claim, Proof
from services.gateway.sign_in.known_users import KnownUsers, is_deleted_user
from services.gateway.sign_in.older_users import OlderUsers
from services.rpc import store_pb2

_DO = "set the user's password again: hopline users add"
_FIRST_WORD = 5.0  # seconds without a user, until that is said …
_AGAIN = 60.0  # … and said again
_NO_SUCH_USER = "make it: hopline users add"
_NO_KEYS = "let it sign in with PLAIN once, or set its password again: hopline users add"

log = structlog.get_logger()


class Authenticator:
    """Follows the user records."""

    def __init__(self, older: OlderUsers | None = None, anonymous_user: str = "") -> None:
        """`older` makes keys for who has none yet; without, nobody does. `anonymous_user` is who says no name."""
        self._anonymous_user = anonymous_user
        self._older = older
        self._known = KnownUsers()
        self._login = Login()
        self._few = FewLines()
        self._some = asyncio.Event()  # some user is known
        self.close_user: Callable[[str], None] = _nobody_is_connected
        """Ends the connections of a user that is no more; set by whoever knows them."""

    async def follow(self, records: AsyncIterator[store_pb2.Records]) -> None:
        """Applies a watch of the records of kind "user"; ends with it."""
        snapshot = KnownUsers(self._known.secret)
        async for batch in records:
            known = snapshot if batch.snapshot else self._known
            gone = {record.key for record in batch.records if is_deleted_user(record)} & known.users.keys()
            for_each("reading a user's record", batch.records, known.apply, do=_DO)
            if batch.snapshot and batch.last:
                gone = self._known.users.keys() - known.users.keys()
                self._known, snapshot = known, KnownUsers(known.secret)
            for_each("ending a deleted user's connections", sorted(gone), self.close_user)
            if self._known.users:
                self._some.set()

    async def until_some_user(self) -> None:
        """Returns when somebody could log in; says what is missing while nobody can."""
        patience = _FIRST_WORD
        while not self._some.is_set():
            try:
                await asyncio.wait_for(self._some.wait(), patience)
            except TimeoutError:
                patience = _AGAIN
                log.warning(
                    "there is no user yet, so AMQP is not listened for",
                    do="see that mgmt runs and reaches the store: it makes the first user",
                )

    def keys_of(self, user: str, mechanism: str, peer: str) -> Keys:
        """As `Directory` says, to who is at `peer`."""
        self._login.expect(user, peer)
        disguise = self._known.keys_of_nobody(user, mechanism)  # made for everybody: it takes as long
        return self._known.keys_of(user, mechanism) or disguise

    async def check(self, claim: Claim, peer: str) -> str:
        """The user's name; raises AccessRefused, as `Login.check`."""
        if isinstance(claim, Proof):
            return self._check_proof(claim, peer)
        if isinstance(claim, Anonymous):
            return self._check_anonymous(claim, peer)
        if isinstance(claim, Certified):
            return self._login.check_no_password(self._known.users, claim.user, peer).name
        user = await self._login.check(self._known.users, claim.user, claim.password, peer)
        if user.name not in self._known.users:  # deleted meanwhile, before anybody knew of this connection
            raise AccessRefused(REFUSED)
        if self._older:
            self._older.said_password(user, claim.password, self._known.mechanisms_of(user))
        return user.name

    def _check_anonymous(self, claim: Anonymous, peer: str) -> str:
        if self._anonymous_user not in self._known.users:
            self._few.say(log.warning, "HOPLINE_ANONYMOUS_USER is no user", user=self._anonymous_user, do=_NO_SUCH_USER)
        user = self._login.check_no_password(self._known.users, self._anonymous_user, peer)
        log.debug("somebody signed in without a name", user=user.name, trace=claim.trace, address=peer)
        return user.name

    def _check_proof(self, proof: Proof, peer: str) -> str:
        keys = self._known.keys_of(proof.user, proof.mechanism)
        if keys is None and proof.user in self._known.users:
            about = {"user": proof.user, "mechanism": proof.mechanism}
            self._few.say(log.warning, "a user has no keys for this mechanism yet", **about, do=_NO_KEYS)
        # Whose password was changed meanwhile has others: the proof is of the former one.
        fits = proof.fits and keys == proof.keys
        return self._login.check_proof(self._known.users, proof.user, peer, fits=fits).name


def _nobody_is_connected(_user: str) -> None:
    """Before there is a listener."""
