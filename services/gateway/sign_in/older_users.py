"""Keys for users whose password was set before there were any, and a hash of today for those who have an older kind:
made when they say the password, and kept by mgmt.

Logins wait for none of that. While mgmt is away no keys are made, and a later login tries again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable

import structlog

from services.common.audit.acting import act_for
from services.common.clients.mgmt import MgmtClient
from services.common.clock import monotonic
from services.common.credentials import kind_of
from services.common.errors import BrokerError, NotFound, PreconditionFailed
from services.common.runtime import Tasks
from services.common.scram import MECHANISMS, make_keys
from services.common.users import User, hash_password

log = structlog.get_logger()

_AGAIN = 60.0  # seconds after which a user is tried again, and mgmt after it has failed
_WAITING = 100  # users at most: the others will say their passwords again
_REMEMBERED = 1000


class OlderUsers:
    """Of one gateway."""

    def __init__(self, mechanisms: Iterable[str], connect: Callable[[], MgmtClient]) -> None:
        """For those of `mechanisms`, which are offered, that are SCRAM."""
        self._mechanisms = MECHANISMS.intersection(mechanisms)
        self._connect = connect
        self._tried: dict[tuple[str, str], float] = {}
        self._waiting = 0
        self._one = asyncio.Lock()  # hashes take a core
        self._not_before = 0.0
        self._tasks = Tasks()

    def said_password(self, user: User, password: str, has: Collection[str]) -> None:
        """A user has signed in so, and has keys for some mechanisms."""
        missing = self._mechanisms.difference(has)
        if (missing or _is_older(user)) and self._is_due(user):
            self._waiting += 1
            self._tasks.start(self._make(user, password, missing), name=f"make keys for {user.name}")

    async def stop(self) -> None:
        """Gives up what is under way."""
        await self._tasks.stop()

    def _is_due(self, user: User) -> bool:
        now, key = monotonic(), (user.name, user.password_hash)
        tried = self._tried.get(key)
        if self._waiting >= _WAITING or now < self._not_before or (tried is not None and now < tried + _AGAIN):
            return False
        if len(self._tried) >= _REMEMBERED:
            self._tried.clear()
        self._tried[key] = now
        return True

    async def _make(self, user: User, password: str, missing: Collection[str]) -> None:
        try:
            async with self._one:
                if monotonic() >= self._not_before:
                    await self._make_now(user, password, missing)
        finally:
            self._waiting -= 1

    async def _make_now(self, user: User, password: str, missing: Collection[str]) -> None:
        act_for("a gateway, with newer credentials of the same password")
        keys = await asyncio.to_thread(make_keys, password, missing) if missing else {}
        renewed = await asyncio.to_thread(hash_password, password) if _is_older(user) else ""
        if not keys and not renewed:
            return  # SCRAM cannot say this password
        try:
            async with self._connect() as mgmt:
                await mgmt.add_keys(user.name, user.password_hash, keys, renewed)
        except BrokerError as error:
            if not isinstance(error, NotFound | PreconditionFailed):  # which the user is to blame for, who changed
                self._not_before = monotonic() + _AGAIN
            log.info("a user has no keys for SCRAM yet", user=user.name, reason=error.text)
        else:
            log.info("a user has newer credentials now", user=user.name, mechanisms=sorted(keys), hash=bool(renewed))


def _is_older(user: User) -> bool:
    kind = kind_of(user.password_hash)
    return kind is not None and not kind.lasting
