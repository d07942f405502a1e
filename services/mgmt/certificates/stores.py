"""Key stores, and trust stores, as records: read when they are made, changed or reloaded; what is secret is sealed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Self

from cryptography import x509
from pydantic import BaseModel, ConfigDict, ValidationError

from services.common import plugins
from services.common.clients.overtaken import decided_again
from services.common.clients.store import Read, StoreClient
from services.common.errors import NotFound
from services.common.sealing import Sealing
from services.mgmt.certificates.details import details, to_pem
from services.mgmt.certificates.kind import UNREADABLE, Kind, Named
from services.mgmt.certificates.urls import fetch, has_all_in_itself, path_in
from services.mgmt.model.faults import IllegalConfiguration
from services.rpc.store_pb2 import Record, Unchanged

_KEY: Final = b"PRIVATE KEY-----"
Change = Callable[[Mapping[str, str]], Mapping[str, str]]
"""What changes, by what there is."""


class Kept(BaseModel):
    """One store. The record's key is the name, its value `to_json()`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    type: str
    attributes: Mapping[str, str] = {}
    sealed: Mapping[str, str] = {}  # of the attributes, those that are secret
    file: str = ""  # that the certificates were read from
    certificates: tuple[tuple[str, str], ...] = ()
    """Alias and PEM of each, as they were read."""

    def to_json(self) -> bytes:
        """The record's value."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True).encode()

    @classmethod
    def from_json(cls, value: bytes) -> Self:
        """Raises ValidationError for what is none."""
        return cls.model_validate_json(value)

    def named(self) -> list[Named]:
        """Its certificates. Raises one of UNREADABLE."""
        return [Named(x509.load_pem_x509_certificate(pem.encode()), alias) for alias, pem in self.certificates]


class Stores:
    """Of one record kind, whose types are the plug-ins of `group`. Calls raise Unavailable where the store is away."""

    def __init__(self, kind: str, store: StoreClient, sealing: Sealing) -> None:
        self._kind = kind
        self._group = f"{kind}s"
        self._store = store
        self._sealing = sealing
        self._changing = asyncio.Lock()

    async def create(self, name: str, type_: str, said: Mapping[str, Any]) -> bytes:
        """Gives the record's value. Raises IllegalConfiguration where it cannot be read, or does not fit together."""
        async with self._changing:
            return await self._put(name, type_, said)

    @decided_again
    async def change(self, name: str, changes: Mapping[str, Any] | Change) -> bytes:
        """The same of one that is there; without changes it is read again. Raises NotFound."""
        async with self._changing:
            read = await self._store.read_records(self._kind)
            former = self._former(read, name)
            opened = self._opened(name, former)
            wanted = changes(opened) if callable(changes) else changes
            return await self._put(name, former.type, {**opened, **wanted}, read.unchanged)

    @decided_again
    async def remove(self, name: str) -> None:
        """Raises NotFound."""
        async with self._changing:
            read = await self._store.read_records(self._kind)
            self._former(read, name)
            await self._store.put_records(deletes=[Record(kind=self._kind, key=name)], unchanged=read.unchanged)

    def _former(self, read: Read, name: str) -> Kept:
        for record in read.records:
            if record.key == name:
                return _readable(record)
        raise NotFound(f"no {self._kind.replace('_', ' ')} '{name}' is on record")

    async def _put(self, name: str, type_: str, said: Mapping[str, Any], unchanged: Sequence[Unchanged] = ()) -> bytes:
        if type_ not in plugins.names(self._group):
            raise IllegalConfiguration(f"attribute 'type': {type_} is made of the settings alone; see docs/settings.md")
        kind: Kind = plugins.load(self._group, type_)()
        if others := said.keys() - set(kind.attributes):
            raise IllegalConfiguration(f"attribute '{min(others)}': a {type_} has none of that name")
        found = await asyncio.to_thread(_read, kind, said)
        value = self._closed(name, type_, kind, said, found).to_json()
        await self._store.put_records([Record(kind=self._kind, key=name, value=value)], unchanged=unchanged)
        return value

    def _closed(self, name: str, type_: str, kind: Kind, said: Mapping[str, str], found: Sequence[Named]) -> Kept:
        return Kept(
            type=type_,
            attributes={key: value for key, value in said.items() if key not in kind.secret},
            sealed={key: self._sealing.seal(said[key], self._place(name, key)) for key in said.keys() & kind.secret},
            file=path_in(said[kind.url]) if kind.url else "",
            certificates=tuple((each.alias, to_pem(each)) for each in found),
        )

    def _opened(self, name: str, kept: Kept) -> dict[str, str]:
        secret = {key: self._sealing.open(sealed, self._place(name, key)) for key, sealed in kept.sealed.items()}
        return {**kept.attributes, **secret}

    def _place(self, name: str, attribute: str) -> str:
        return f"{self._kind} {name!r}, {attribute}"


def _read(kind: Kind, said: Mapping[str, str]) -> Sequence[Named]:
    """Its certificates, all of which can be shown. Raises IllegalConfiguration; waits for a disk."""
    _check_clear(kind, said)
    found = kind.read(said)
    try:
        for each in found:
            details(each)
    except UNREADABLE as error:
        raise IllegalConfiguration(
            f"attribute '{kind.url or kind.attributes[0]}': a certificate in it cannot be read: {error}"
        ) from None
    return found


def _check_clear(kind: Kind, said: Mapping[str, str]) -> None:
    """Checks that no secret is in attributes that are shown in the clear. Raises IllegalConfiguration."""
    for name in set(kind.attributes) - kind.secret:
        url = said.get(name, "")
        if has_all_in_itself(url) and _KEY in fetch(url, name):
            raise IllegalConfiguration(f"attribute '{name}': there is a private key in it, which others would be told")


def _readable(record: Record) -> Kept:
    """The store of a record; one that cannot be read counts as empty, and can still be removed."""
    try:
        return Kept.from_json(record.value)
    except ValidationError:
        return Kept(type="")
