"""Checks credentials against the users on record; a gateway keeps its own copy, so logins need no other service."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import AsyncIterator
from ipaddress import ip_address

from services.common.errors import AccessRefused
from services.common.users import User, verify_password
from services.gateway.sasl import Credentials
from services.rpc import store_pb2

_REMEMBERED = 1000


class Authenticator:
    """Follows the user records; verification (argon2, slow on purpose) runs in threads, two at a time."""

    def __init__(self) -> None:
        self._users: dict[str, User] = {}
        self._verified: dict[tuple[str, str], bytes] = {}  # (user, hash) → digest of the password that fits it
        self._salt = secrets.token_bytes(16)
        self._slots = asyncio.Semaphore(2)

    async def follow(self, records: AsyncIterator[store_pb2.Records]) -> None:
        """Applies a watch of the records of kind "user"; ends with it."""
        snapshot: dict[str, User] = {}
        async for batch in records:
            users = snapshot if batch.snapshot else self._users
            for record in batch.records:
                if record.deleted:
                    users.pop(record.key, None)
                else:
                    users[record.key] = User.from_json(record.value)
            if batch.snapshot and batch.last:
                self._users, snapshot = snapshot, {}

    async def check(self, credentials: Credentials, peer: str) -> str:
        """The user's name; raises AccessRefused, with one text for every reason that the peer may not learn."""
        user = self._users.get(credentials.user)
        if not await self._fits(user, credentials.password) or user is None:
            raise AccessRefused("login was refused; check user name and password")
        if user.loopback_only and not _is_loopback(peer):
            raise AccessRefused(f"user '{user.name}' can only connect from this machine")
        return user.name

    async def _fits(self, user: User | None, password: str) -> bool:
        # A storm of reconnects with the right password pays for argon2 once; a name that does not exist always pays.
        key = (user.name, user.password_hash) if user else ("", "")
        digest = hashlib.blake2b(password.encode(), key=self._salt).digest()
        if secrets.compare_digest(self._verified.get(key, b""), digest):
            return True
        async with self._slots:
            fits = await asyncio.to_thread(verify_password, user, password)
        if fits:
            if len(self._verified) >= _REMEMBERED:
                self._verified.clear()
            self._verified[key] = digest
        return fits


def _is_loopback(peer: str) -> bool:
    try:
        return ip_address(peer).is_loopback
    except ValueError:
        return not peer  # a unix socket has no address
