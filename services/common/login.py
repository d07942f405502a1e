"""Whether somebody is the user that they say they are, for every service that lets users in."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from ipaddress import ip_address

from services.common.errors import AccessRefused
from services.common.users import User, verify_password

_REMEMBERED = 1000


class Login:
    """Verification (argon2, slow on purpose) runs in threads, two at a time, and once for each password that fits."""

    def __init__(self) -> None:
        self._verified: dict[tuple[str, str], bytes] = {}  # (user, hash) → digest of the password that fits it
        self._salt = secrets.token_bytes(16)
        self._slots = asyncio.Semaphore(2)

    async def check(self, user: User | None, password: str, peer: str) -> User:
        """The user of a name, or None, from `peer` (an address, or "" for a unix socket).

        Raises AccessRefused, with one text for every reason that the peer may not learn.
        """
        if not await self._fits(user, password) or user is None:
            raise AccessRefused("login was refused; check user name and password")
        if user.loopback_only and not _is_loopback(peer):
            raise AccessRefused(f"user '{user.name}' can only connect from this machine")
        return user

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
