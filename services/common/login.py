"""Whether somebody is the user that they say they are, for every service that lets users in.

Wrong passwords cost a hash each, which is slow on purpose. Where too many of them come from, they are refused before
that, and addresses take turns: whoever tries passwords does not keep others out, not even the user whose they are.
Where many addresses do it, a slot and every other turn are for those from which nothing wrong came lately.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Coroutine, Mapping
from ipaddress import ip_address
from typing import Any

import structlog

from services.common.attempts import Attempts, place_of
from services.common.clock import Clock, monotonic
from services.common.errors import AccessRefused
from services.common.fair_slots import FairSlots
from services.common.users import User, verify_password

log = structlog.get_logger()

REFUSED = "login was refused; check user name and password"

_REMEMBERED = 1000
_PLACES = 10_000
_HASHES = 2  # at a time
_DOUBTFUL_HASHES = 1  # of these at most for addresses from which a login failed lately
_DO = "if it is not an attack, correct the password of a client there"


class TooManyFailures(AccessRefused):
    """Refused without a look at the password; the log has said so once, for all of them."""


class Login:
    """Verification (argon2, slow on purpose) runs in threads, two at a time, and once for each password that fits."""

    def __init__(self, clock: Clock = monotonic) -> None:
        self._clock = clock
        self._verified: dict[tuple[str, str], bytes] = {}  # (user, hash) → digest of the password that fits it
        self._places: OrderedDict[tuple[str, str], None] = OrderedDict()  # (user, place) that came in
        self._salt = secrets.token_bytes(16)
        self._slots = FairSlots(_HASHES, _DOUBTFUL_HASHES)
        self._attempts = Attempts()

    async def check(self, users: Mapping[str, User], name: str, password: str, peer: str) -> User:
        """The user of that name, from `peer` (an address, or "" for a unix socket).

        Raises AccessRefused, with one text for every reason that the peer may not learn, and TooManyFailures.
        """
        user = users.get(name)
        return self._let_in(user, name, peer, fits=await self._fits(user, name, password, peer))

    def check_proof(self, users: Mapping[str, User], name: str, peer: str, *, fits: bool) -> User:
        """As `check`, of who does not say the password: `fits` is whether it was proved, at next to no cost."""
        self.expect(name, peer)
        if not fits:
            self._failed(name, peer)
        return self._let_in(users.get(name), name, peer, fits=fits)

    def check_no_password(self, users: Mapping[str, User], name: str, peer: str) -> User:
        """As `check`, of who need not prove anything; it is not remembered to have come in."""
        user = users.get(name)
        if user is None:
            raise AccessRefused(REFUSED)
        return _where_it_may(user, peer)

    def _let_in(self, user: User | None, name: str, peer: str, *, fits: bool) -> User:
        if user is None or not fits:
            raise AccessRefused(REFUSED)
        self._came_in(name, peer)
        return _where_it_may(user, peer)

    def expect(self, name: str, peer: str) -> None:
        """Raises TooManyFailures where `check` would, whoever the users are: they need not be asked for."""
        now, came_before = self._clock(), (name, place_of(peer)) in self._places
        if self._attempts.user_is_out(name, peer, now):
            raise _too_many()
        # Who has come in from there before does so again; others there may be trying passwords of whomever.
        if self._attempts.address_is_out(peer, now) and not came_before:
            raise _too_many()

    async def _fits(self, user: User | None, name: str, password: str, peer: str) -> bool:
        # A storm of reconnects with the right password pays for argon2 once; a name that does not exist always pays.
        key = (user.name, user.password_hash) if user else ("", "")
        digest = hashlib.blake2b(password.encode(), key=self._salt).digest()
        if self._is_known(key, digest, name, peer):
            return True
        good = not self._attempts.has_failed_at(peer, self._clock())
        async with self._slots.slot(place_of(peer), good=good):
            if self._is_known(key, digest, name, peer):  # others with the same password were before
                return True
            fits = await _to_its_end(self._try(user, name, password, peer))
        if fits:
            if len(self._verified) >= _REMEMBERED:
                self._verified.clear()
            self._verified[key] = digest
        return fits

    async def _try(self, user: User | None, name: str, password: str, peer: str) -> bool:
        fits = await asyncio.to_thread(verify_password, user, password)
        if not fits:
            self._failed(name, peer)
        return fits

    def _is_known(self, key: tuple[str, str], digest: bytes, name: str, peer: str) -> bool:
        """Whether the password is known to fit; raises TooManyFailures where it is not to be tried."""
        self.expect(name, peer)
        fits = secrets.compare_digest(self._verified.get(key, b""), digest)
        if not fits and self._attempts.address_is_out(peer, self._clock()):
            self._failed(name, peer)
            raise _too_many()
        return fits

    def _came_in(self, name: str, peer: str) -> None:
        self._places[name, place_of(peer)] = None
        self._places.move_to_end((name, place_of(peer)))
        if len(self._places) > _PLACES:
            self._places.popitem(last=False)

    def _failed(self, name: str, peer: str) -> None:
        if self._attempts.failed(name, peer, self._clock()):
            log.warning("too many wrong passwords: more are refused for a time", address=peer, user=name[:64], do=_DO)


async def _to_its_end(work: Coroutine[Any, Any, bool]) -> bool:
    """A thread cannot be stopped: until it ends, who has left keeps the slot, and a wrong password counts."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


def _where_it_may(user: User, peer: str) -> User:
    if user.loopback_only and not _is_loopback(peer):
        raise AccessRefused(f"user '{user.name}' can only connect from this machine")
    return user


def _too_many() -> TooManyFailures:
    return TooManyFailures("too many logins from this address have failed; wait, and check user name and password")


def _is_loopback(peer: str) -> bool:
    try:
        return ip_address(peer).is_loopback
    except ValueError:
        return not peer  # a unix socket has no address
