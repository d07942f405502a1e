"""Signing in over HTTP: at each request, by what is on record at that moment."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from services.common.audit.acting import act_for
from services.common.authentication.authenticator import Authenticator
from services.common.authentication.claims import Claim
from services.common.authentication.known_users import KINDS
from services.common.authentication.principal import Principal
from services.common.authentication.visit import Visit
from services.common.clients.store import StoreClient
from services.common.errors import BrokerError, Unavailable
from services.rpc.store_pb2 import Record

_PATIENCE = 10.0  # seconds: longer than a store takes that begins anew


class SignIn:
    """At the provider that the settings name for HTTP."""

    def __init__(self, authenticator: Authenticator, store: StoreClient) -> None:
        self._authenticator = authenticator
        self._store = store
        self._read: Sequence[Record] = ()
        self._next: asyncio.Future[Sequence[Record]] | None = None
        self._one_at_a_time = asyncio.Lock()
        settings = authenticator.settings
        self._provider = settings.http_authentication_provider or settings.authentication_provider

    async def __call__(self, claim: Claim, peer: str, visit: Visit) -> Principal:
        """The user; raises AccessRefused, and Unavailable, as `Authenticator.sign_in`.

        What the request changes is done for that user.
        """
        try:
            self._authenticator.expect(claim.user, peer)  # before anything is asked for
        except BrokerError as error:
            self._authenticator.refused(self._provider, claim.user, visit, error)
            raise
        records = await self._records()
        if records != self._read:  # thousands of users take longer to read than most answers
            self._authenticator.read(records)
            self._read = records
        principal = await self._authenticator.sign_in(self._provider, claim, peer, visit)
        act_for(f"{principal.name} ({principal.provider}) from {peer}, over HTTP")
        return principal

    async def _records(self) -> Sequence[Record]:
        """Of this moment. A caller that comes while they are listed shares the next list: this may lack something."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._list())
        return await asyncio.shield(self._next)

    async def _list(self) -> Sequence[Record]:
        async with self._one_at_a_time:
            self._next = None
            try:
                async with asyncio.timeout(_PATIENCE):
                    return await self._store.list_records(KINDS)
            except (TimeoutError, Unavailable) as error:
                why = (
                    "the store does not answer, which knows the users: see that it runs, and is not held up by its disk"
                )
                raise Unavailable(why) from error
