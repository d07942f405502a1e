"""Guards the providers of every service that users sign in to: it limits how many wrong passwords are tried.

A wrong password costs a hash, or a question to another server. Where too many come from one address, its passwords are
refused unseen, and addresses take turns: a client that guesses passwords does not keep out others, not even the user
whose password it is. Against many such addresses, a slot and every other turn are kept for addresses without failures.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Coroutine
from functools import lru_cache
from ipaddress import ip_address
from typing import Any

import structlog

from services.common.authentication.answers import digest_of
from services.common.authentication.attempts import Attempts, place_of
from services.common.authentication.claims import Claim, Credentials, Digest, Proof, Token
from services.common.authentication.principal import Principal
from services.common.authentication.provider import Provider
from services.common.authentication.refusal import TooManyFailures
from services.common.clock import Clock, monotonic
from services.common.errors import AccessRefused

log = structlog.get_logger()

_PLACES = 10_000
_DO = "if it is not an attack, correct the password of a client there"


class Guard:
    """For one process: failures count together, at whichever provider they happen."""

    def __init__(self, clock: Clock = monotonic) -> None:
        self._clock = clock
        self._places: OrderedDict[tuple[str, str], None] = OrderedDict()  # (user, address) pairs that have signed in
        self._attempts = Attempts()

    async def judge(self, provider: Provider, claim: Claim, peer: str) -> Principal:
        """The user of a claim from `peer` (an address, or "" for a unix socket).

        Raises AccessRefused, with one text for every reason that the peer may not learn, TooManyFailures, and
        Unavailable where the provider cannot tell.
        """
        if isinstance(claim, Credentials | Token):
            principal = await self._said(provider, claim, peer)
        elif isinstance(claim, Proof | Digest):
            self.expect(claim.user, peer)
            principal = await self._try(provider, claim, peer)
        else:  # no secret that could be guessed, nor one that proves the client
            return _where_it_may(await provider.verify(claim), peer)
        if principal.expires is None or principal.name == claim.user:  # a token does not prove a name sent with it
            self._came_in(claim.user, peer)
        return _where_it_may(principal, peer)

    def expect(self, name: str, peer: str) -> None:
        """Raises TooManyFailures where `judge` would, without asking a provider."""
        now, came_before = self._clock(), (name, place_of(peer)) in self._places
        if self._attempts.user_is_out(name, peer, now):
            raise _too_many()
        # A user that has signed in from there may do so again: the guesses may be another client's at that address.
        if self._attempts.address_is_out(peer, now) and not came_before:
            raise _too_many()

    async def _said(self, provider: Provider, claim: Credentials | Token, peer: str) -> Principal:
        # A storm of reconnects with the right password is verified once; an unknown name always takes as long.
        digest = digest_of(claim.secret)
        if known := self._known(provider, claim, digest, peer):
            return known
        good = not self._attempts.has_failed_at(peer, self._clock())
        async with provider.slots.slot(place_of(peer), good=good):
            if known := self._known(provider, claim, digest, peer):  # another sign-in with the same password was first
                return known
            basis = provider.basis_of(claim)
            principal = await _to_its_end(self._try(provider, claim, peer))
        provider.answers.remember(basis, digest, principal)
        return principal

    async def _try(self, provider: Provider, claim: Claim, peer: str) -> Principal:
        try:
            return await provider.verify(claim)
        except AccessRefused:
            self._failed(claim.user, peer)
            raise

    def _known(self, provider: Provider, claim: Credentials | Token, digest: bytes, peer: str) -> Principal | None:
        """The user, if its password is remembered; raises TooManyFailures where it must not be tried."""
        self.expect(claim.user, peer)
        known = provider.answers.find(provider.basis_of(claim), digest)
        if known is None and self._attempts.address_is_out(peer, self._clock()):
            self._failed(claim.user, peer)
            raise _too_many()
        return known

    def _came_in(self, name: str, peer: str) -> None:
        self._places[name, place_of(peer)] = None
        self._places.move_to_end((name, place_of(peer)))
        if len(self._places) > _PLACES:
            self._places.popitem(last=False)

    def _failed(self, name: str, peer: str) -> None:
        if self._attempts.failed(name, peer, self._clock()):
            log.warning("too many wrong passwords: more are refused for a time", address=peer, user=name[:64], do=_DO)


async def _to_its_end(work: Coroutine[Any, Any, Principal]) -> Principal:
    """A thread cannot be stopped: until it ends, a client that left keeps its slot, and a wrong password counts."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # its caller is gone
        raise


def _where_it_may(principal: Principal, peer: str) -> Principal:
    if principal.loopback_only and not _is_loopback(peer):
        raise AccessRefused(f"user '{principal.name}' can only connect from this machine")
    return principal


def _too_many() -> TooManyFailures:
    return TooManyFailures("too many logins from this address have failed; wait, and check user name and password")


@lru_cache(1000)
def _is_loopback(peer: str) -> bool:
    try:
        return ip_address(peer).is_loopback
    except ValueError:
        return not peer  # a unix socket has no address
