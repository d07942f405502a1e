"""Checks credentials against the users on record; a gateway keeps its own copy, so logins need no other service.

Who is deleted is disconnected, as soon as the store has told: at once in general.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial

import structlog

from services.common.containment import for_each
from services.common.errors import AccessRefused
from services.common.login import REFUSED, Login
from services.common.users import User
from services.gateway.sasl import Credentials
from services.rpc import store_pb2

_DO = "set the user's password again: hopline users add"
_FIRST_WORD = 5.0  # seconds without a user, until that is said …
_AGAIN = 60.0  # … and said again

log = structlog.get_logger()


class Authenticator:
    """Follows the user records."""

    def __init__(self) -> None:
        self._users: dict[str, User] = {}
        self._login = Login()
        self._some = asyncio.Event()  # some user is known
        self.close_user: Callable[[str], None] = _nobody_is_connected
        """Ends the connections of a user that is no more; set by whoever knows them."""

    async def follow(self, records: AsyncIterator[store_pb2.Records]) -> None:
        """Applies a watch of the records of kind "user"; ends with it."""
        snapshot: dict[str, User] = {}
        async for batch in records:
            users = snapshot if batch.snapshot else self._users
            gone = {record.key for record in batch.records if record.deleted} & users.keys()
            for_each("reading a user's record", batch.records, partial(_apply, users), do=_DO)
            if batch.snapshot and batch.last:
                gone = self._users.keys() - snapshot.keys()
                self._users, snapshot = snapshot, {}
            for_each("ending a deleted user's connections", sorted(gone), self.close_user)
            if self._users:
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

    async def check(self, credentials: Credentials, peer: str) -> str:
        """The user's name; raises AccessRefused, as `Login.check`."""
        user = await self._login.check(self._users, credentials.user, credentials.password, peer)
        if user.name not in self._users:  # deleted meanwhile, before anybody knew of this connection
            raise AccessRefused(REFUSED)
        return user.name


def _nobody_is_connected(_user: str) -> None:
    """Before there is a listener."""


def _apply(users: dict[str, User], record: store_pb2.Record) -> None:
    if record.deleted:
        users.pop(record.key, None)
    else:
        users[record.key] = User.from_json(record.value)
