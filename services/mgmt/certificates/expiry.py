"""Certificates that are soon over: among the notes of health, and in the log once a day until they are renewed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import structlog

from services.common.containment import contained
from services.mgmt.certificates import KEY_STORE, TRUST_STORE

if TYPE_CHECKING:
    from services.common.clients.store import StoreClient
    from services.common.config import Settings

log = structlog.get_logger()

_EVERY: Final = 3600.0  # seconds; the days that are left change once in so many hours
_DO: Final = (
    "put a new one there; gateways read files of the settings again by themselves, a store on record is reloaded"
)


class Expiry:
    """Of certificates of the settings, and of stores on record."""

    def __init__(self, settings: Settings, store: StoreClient) -> None:
        self._settings = settings
        self._store = store
        self._soon: tuple[str, ...] = ()

    def notes(self) -> dict[str, str]:
        """For health; empty where all of them last."""
        return {"certificates": "; ".join(self._soon)} if self._soon else {}

    async def follow(self) -> None:
        """Looks at once, and again every hour."""
        while True:
            try:
                await self.look()
            except Exception as fault:  # noqa: BLE001 - a file, or the store, may be there again the next time
                contained("looking how long certificates last", fault)
            await asyncio.sleep(_EVERY)

    async def look(self) -> None:
        """Logs what is new, which each is every day: there is one day less."""
        former, self._soon = self._soon, tuple(await self._found())
        for each in self._soon:
            if each not in former:
                log.warning("a certificate expires soon", which=each, do=_DO)

    async def _found(self) -> Iterable[str]:
        records = await self._store.list_records([KEY_STORE, TRUST_STORE])
        settings = self._settings
        if not (records or settings.tls_certificate or settings.tls_self_signed or settings.tls_client_authorities):
            return ()
        # What reads certificates takes memory, which a stack without any need not have.
        from services.mgmt.certificates.soon import soon_over  # noqa: PLC0415

        return await asyncio.to_thread(soon_over, settings, records)
