"""Verifies what clients claim, by the provider of the port that they connect to; a gateway keeps its own copy of the
records, so that logins need no other service but those that a provider asks.

A deleted or changed user is disconnected as soon as the store has announced the change: usually at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import structlog

from services.common import users
from services.common.authentication.asking import SILENT
from services.common.authentication.claims import Claim, Credentials
from services.common.authentication.described import INTERNAL, read_file
from services.common.authentication.guard import Guard
from services.common.authentication.known_users import KnownUsers
from services.common.authentication.providers import Providers
from services.common.authentication.refusal import Refused, TooManyFailures, reason_of
from services.common.authentication.under_way import UnderWay
from services.common.authentication.visit import NO_VISIT, Visit
from services.common.containment import for_each
from services.common.errors import BrokerError, Unavailable
from services.common.few_lines import FewLines
from services.common.runtime import Tasks
from services.common.sealing import Sealing
from services.rpc import store_pb2

if TYPE_CHECKING:
    from collections.abc import Collection

    from services.common.audit.audit import Audit
    from services.common.audit.entry import Entry
    from services.common.authentication.principal import Principal
    from services.common.authentication.provider import Provider
    from services.common.config import Settings
    from services.common.scram import Keys
    from services.common.users import User

_DO = "set it again: hopline users add, or hopline providers add"
_NOT_JUDGED = "a client could not sign in: its authentication provider could not judge it"
_FIRST_WORD = 5.0  # seconds without a user until it is logged …
_AGAIN = 60.0  # … and logged again

log = structlog.get_logger()


class Older(Protocol):
    """Makes newer credentials for users that have older ones."""

    def said_password(self, user: User, password: str, has: Collection[str]) -> None:
        """A user on record has signed in with a password, and has SCRAM keys for the mechanisms in `has`."""


class Authenticator:
    """The providers of one process, and the records that they share."""

    def __init__(self, settings: Settings, older: Older | None = None, audit: Audit | None = None) -> None:
        """`older` makes keys for users without; None: no keys are made. Raises CannotStart as `read_file`."""
        self.settings = settings
        self._audit = audit
        self.sealing = Sealing.of(settings)
        self.known = KnownUsers()
        self._older = older
        self._providers = Providers(self, read_file(settings.authentication_providers_file))
        self._guard = Guard()
        self._under_way = UnderWay()
        self._few = FewLines(most=1)
        self._tasks = Tasks()
        self._some = asyncio.Event()  # some user is known
        self._said: list[tuple[str, str, bytes]] | None = None  # the records, when all of them were last read
        self.close_user: Callable[[str, str, str], None] = _nobody_is_connected
        """Ends the connections of a provider's user, with a reason; set by the owner of the connections."""
        self.close_provider: Callable[[str, str], None] = _nobody_is_connected
        """Ends the connections that signed in by a provider."""

    # -------------------------------------------------------------- records

    async def follow(self, records: AsyncIterator[store_pb2.Records]) -> None:
        """Applies a watch of the records of `known_users.KINDS`; ends with it."""
        snapshot = KnownUsers(self.known.secret)
        async for batch in records:
            if not batch.snapshot:
                self._change(batch.records)
                continue
            _apply(snapshot, batch.records)
            if batch.last:
                self._take(snapshot)
                snapshot = KnownUsers(self.known.secret)

    def read(self, records: Iterable[store_pb2.Record]) -> None:
        """Takes all records of `known_users.KINDS` in place of what was known; does nothing if they are unchanged."""
        records = list(records)
        said = [(record.kind, record.key, record.value) for record in records]
        if said == self._said:
            return
        known = KnownUsers(self.known.secret)
        _apply(known, records)
        self._take(known)
        self._said = said

    def _change(self, records: Sequence[store_pb2.Record]) -> None:
        named = {record.key for record in records if record.kind == users.RECORD_KIND}
        former = {name: user for name in named if (user := self.known.users.get(name))}
        self._said = None
        _apply(self.known, records)
        self._end_what_changed(former)

    def _take(self, known: KnownUsers) -> None:
        former, self.known, self._said = self.known, known, None
        self._end_what_changed(former.users)

    def _end_what_changed(self, former: Mapping[str, User]) -> None:
        """Ends connections of changed users, and of changed providers."""
        for name, user in sorted(former.items()):
            now = self.known.users.get(name)
            if now is None or now.standing != user.standing:
                self.end_user(INTERNAL, name, "is deleted" if now is None else "was changed")
        for name, provider in self._providers.take(self.known.providers).items():
            self._tasks.start(provider.close(), name=f"close provider {name}")
            self._end_provider(name, "was changed" if name in self.known.providers else "is removed")
        if self.known.users or self.known.providers:
            self._some.set()

    def end_user(self, provider: str, name: str, what: str) -> None:
        """A provider's user was deleted or changed: ends its connections and sign-ins."""
        self._under_way.end_user(provider, name)
        reason = f"user '{name}' {what}"
        for_each("ending a user's connections", (name,), lambda each: self.close_user(provider, each, reason))

    def forget(self, principal: Principal, what: str) -> None:
        """As `end_user`; remembered answers for the user are forgotten too."""
        self._providers.forget(principal.name, principal.provider)
        self.end_user(principal.provider, principal.name, what)

    def _end_provider(self, name: str, what: str) -> None:
        self._under_way.end_provider(name)
        reason = f"authentication provider '{name}' {what}"
        for_each("ending a provider's connections", (name,), lambda each: self.close_provider(each, reason))

    async def until_some_user(self) -> None:
        """Returns when a user could log in; logs what is missing until then."""
        patience = _FIRST_WORD
        while not self._some.is_set():
            try:
                async with asyncio.timeout(patience):
                    await self._some.wait()
            except TimeoutError:
                patience = _AGAIN
                log.warning(
                    "there is no user yet, so the gateway does not listen for clients",
                    do="see that mgmt runs and reaches the store: it adds the first user; or `hopline users add NAME`",
                )

    async def stop(self) -> None:
        """Closes all providers."""
        for closing in self._providers.closing():
            await closing
        await self._tasks.stop()

    # -------------------------------------------------------------- sign-in

    def provider(self, name: str) -> Provider:
        """Raises Unavailable when there is no such provider."""
        return self._providers.get(name)

    def troubles(self) -> dict[str, str]:
        """Problems of providers that an operator must solve, by provider."""
        return self._providers.troubles()

    def expect(self, name: str, peer: str) -> None:
        """As `Guard.expect`."""
        self._guard.expect(name, peer)

    def keys_of(self, provider: str, user: str, mechanism: str, peer: str) -> Keys:
        """As `sasl.Directory.keys_of`, for a client at `peer`."""
        self._guard.expect(user, peer)
        disguise = self.known.keys_of_nobody(user, mechanism)  # made for known users too: the time must not tell
        return self.provider(provider).keys_of(user, mechanism) or disguise

    async def sign_in(self, provider: str, claim: Claim, peer: str, visit: Visit = NO_VISIT) -> Principal:
        """The user; raises AccessRefused, and Unavailable, as `Guard.judge`. Either is on record."""
        try:
            principal = await self._judge(provider, claim, peer)
        except BrokerError as error:
            self.refused(provider, claim.user, visit, error)
            if isinstance(error, Unavailable):
                self._few.say(
                    log.warning, _NOT_JUDGED, apart_by=provider, provider=provider, reason=error.text, do=SILENT
                )
            raise
        self._tell(visit.signed_in(principal.name, principal.provider), seldom=visit.seldom)
        if self._older and isinstance(claim, Credentials) and principal.provider == INTERNAL:
            user = self.known.users.get(principal.name)
            if user:
                self._older.said_password(user, claim.password, self.known.mechanisms_of(user))
        return principal

    async def _judge(self, provider: str, claim: Claim, peer: str) -> Principal:
        with self._under_way.one() as ended:
            principal = await self._guard.judge(self.provider(provider), claim, peer)
            if ended.concerns(principal, provider):
                self._providers.forget(principal.name, principal.provider)
                raise Refused("the user, or its provider, was changed while it signed in")
        return principal

    def refused(self, provider: str, user: str, visit: Visit, error: BrokerError) -> None:
        """Puts a refused sign-in on record; `user` is the name that was claimed, if any."""
        unseen = isinstance(error, TooManyFailures)
        make = visit.refused_unseen if unseen else visit.refused
        self._tell(make(user, provider, reason_of(error)), seldom=unseen)

    def _tell(self, entry: Entry, *, seldom: bool) -> None:
        if self._audit and seldom:
            self._audit.count(entry)
        elif self._audit:
            self._audit.tell(entry)


def _apply(known: KnownUsers, records: Iterable[store_pb2.Record]) -> None:
    for_each("reading a record of users or providers", records, known.apply, do=_DO)


def _nobody_is_connected(*_: str) -> None:
    """The default: there is no listener yet."""
