"""Authentication providers on record: mgmt is the only writer, the store keeps them, gateways follow them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from services.common.authentication.described import (
    INTERNAL,
    RECORD_KIND,
    Described,
    options_of,
    read_file,
    secrets_of,
)
from services.common.clients.overtaken import decided_again
from services.common.clients.store import Read, StoreClient
from services.common.config import Settings
from services.common.errors import AccessRefused, NotFound, SyntaxFault
from services.common.sealing import Sealing
from services.rpc.store_pb2 import Record

_LONGEST_NAME = 255  # characters


class Providers:
    """Every call raises Unavailable when the store is away for too long."""

    def __init__(self, store: StoreClient, settings: Settings) -> None:
        """Raises CannotStart as `read_file`."""
        self._store = store
        self._sealing = Sealing.of(settings)
        self._of_file = read_file(settings.authentication_providers_file)
        self._changing = asyncio.Lock()

    async def put(self, name: str, described: Described) -> None:
        """Adds a provider, or replaces the one of that name. Raises SyntaxFault with what is wrong with it."""
        self._check_name(name)
        secrets_of(described.type)
        await self._put(name, described)

    @decided_again
    async def _put(self, name: str, described: Described) -> None:
        async with self._changing:
            read = await self._store.read_records(RECORD_KIND)
            former = _by_name(read).get(name)
            closed = Described(type=described.type, options=described.options).closed(name, self._sealing, former)
            options_of(closed.opened(name, self._sealing))
            record = Record(kind=RECORD_KIND, key=name, value=closed.to_json())
            await self._store.put_records([record], unchanged=read.unchanged)

    @decided_again
    async def put_back(self, name: str, value: Mapping[str, Any]) -> None:
        """A record as it was, its secrets sealed. Raises SyntaxFault where there is one by now, or it is none."""
        self._check_name(name)
        described = Described.model_validate(value)
        options_of(described.opened(name, self._sealing))
        async with self._changing:
            read = await self._store.read_records(RECORD_KIND)
            if name in _by_name(read):
                raise SyntaxFault(f"there is an authentication provider '{name}' already")
            record = Record(kind=RECORD_KIND, key=name, value=described.to_json())
            await self._store.put_records([record], unchanged=read.unchanged)

    @decided_again
    async def remove(self, name: str) -> None:
        """Raises NotFound where there is none on record; connections that it let in are closed."""
        self._check_name(name)
        async with self._changing:
            read = await self._store.read_records(RECORD_KIND)
            if name not in _by_name(read):
                raise NotFound(f"no authentication provider '{name}'")
            await self._store.put_records(deletes=[Record(kind=RECORD_KIND, key=name)], unchanged=read.unchanged)

    async def of_records(self) -> Mapping[str, Described]:
        """By name; what is secret is sealed."""
        return _by_name(await self._store.read_records(RECORD_KIND))

    @property
    def of_file(self) -> Mapping[str, Described]:
        """Those of the settings' file; what is secret is masked."""
        return {name: each.without(secrets_of(each.type)) for name, each in self._of_file.items()}

    def _check_name(self, name: str) -> None:
        if name == INTERNAL or name in self._of_file:
            raise AccessRefused(f"authentication provider '{name}' is of the settings, and changes with them only")
        if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable() or "/" in name or " " in name:
            raise SyntaxFault("a provider's name has printable characters, no blank and no /")


def _by_name(read: Read) -> Mapping[str, Described]:
    return {record.key: Described.from_json(record.value) for record in read.records}
