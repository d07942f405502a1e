"""Records of the store as the tree is read from them: followed since the first request."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from typing import Any, Final, NamedTuple

from services.common.clients.store import StoreClient
from services.common.containment import for_each
from services.common.errors import BrokerError, Overtaken, Unavailable
from services.mgmt.tree.grouped import Grouped, change_all
from services.rpc.store_pb2 import Record, Records, Unchanged

OVERLAY: Final = "configured_object"
"""What only management has of an object: its description, its variables, its creator."""
KINDS: Final = (
    "virtual_host", "policy", "exchange", "queue", "binding", "user", "group", "acl", "authentication_provider", "port",
    "connection_limits", "port_state", "watcher", "key_store", "trust_store", "preference", "log_rule", "logger",
    "logger_rule", OVERLAY,
)  # fmt: skip
_NOT_SEEN: Final = "it is done, but not seen here yet: the store does not tell"
_PATIENCE: Final = 3.0  # seconds until what was written is read here
_SOON: Final = 0.5  # seconds until the store is asked


_OTHERS: Final = frozenset({"virtual_host", "exchange", "queue", "user", "group"})
"""Kinds of what is not deleted by way of the tree alone."""


class Ended(NamedTuple):
    """What was deleted, as its record was."""

    kind: str
    value: Any


class Kept(NamedTuple):
    """A record; the same object as long as it says the same."""

    value: Any
    raw: bytes
    transient: bool


Table = dict[str, Kept]


class Mirror:
    """`tables` by kind and key are to be read only."""

    def __init__(self) -> None:
        self.tables: dict[str, Table] = {kind: {} for kind in KINDS}
        self._versions: Counter[str] = Counter()
        self._grouped: defaultdict[str, dict[str, Grouped]] = defaultdict(dict)  # by kind, then by field
        self.ended: Callable[[Ended | None], object] = lambda _: None
        """Is told what is deleted when it is; None: something may have been, of which nothing was heard."""
        self.version = 0
        """Of all records: those of KINDS are here as they were then."""
        self._known = asyncio.Event()
        self._changed = asyncio.Event()

    async def follow(self, records: AsyncIterator[Records]) -> None:
        """Applies a watch of records of KINDS; ends with it."""
        fresh: dict[str, Table] = {kind: {} for kind in KINDS}
        async for batch in records:
            into = fresh if batch.snapshot else self.tables
            for_each("reading what the tree is made of", batch.records, partial(self._apply, into))
            if batch.snapshot and not batch.last:
                continue
            if batch.snapshot:
                self.tables, fresh = fresh, {kind: {} for kind in KINDS}
                self._grouped.clear()
                self._versions.update(KINDS)
                self.ended(None)
            self.version = batch.version if batch.last else self.version
            self._known.set()
            self._changed.set()
            self._changed = asyncio.Event()

    def _apply(self, into: dict[str, Table], record: Record) -> None:
        if record.kind not in into:
            return
        self._versions[record.kind] += 1
        former = self.tables[record.kind].get(record.key)
        kept = None if record.deleted else _kept(record, former)
        if kept is None:
            into[record.kind].pop(record.key, None)
        else:
            into[record.kind][record.key] = kept
        if into is self.tables and former and record.kind in _OTHERS and _is_over(former, kept):
            self.ended(Ended(record.kind, former.value))
        if into is self.tables and kept is not former:
            change_all(self._grouped[record.kind].values(), record.key, former, kept)

    async def known(self) -> None:
        """Returns when there is something to read. Raises Unavailable where the store tells nothing for seconds."""
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._known.wait()
        except TimeoutError:
            raise Unavailable("the store does not answer with its records; try again") from None

    async def put(
        self,
        store: StoreClient,
        puts: Iterable[Record] = (),
        deletes: Iterable[Record] = (),
        unchanged: Iterable[Unchanged] = (),
    ) -> None:
        """What rests on what is here: on that being `unchanged`, of any version.

        Raises Overtaken where it is not, once the newer is here.
        """
        version = self.version
        since = [_since(version, each) for each in unchanged]
        try:
            await store.put_records(puts, deletes, unchanged=since)
        except Overtaken:
            await self.until(lambda: self.version != version, "the store does not tell what has changed; try again")
            raise

    async def until(self, holds: Callable[[], bool], otherwise: str = _NOT_SEEN) -> None:
        """Returns when what was written elsewhere has arrived here. Raises Unavailable after some seconds."""
        try:
            async with asyncio.timeout(_PATIENCE):
                while not holds():
                    await self._changed.wait()
        except TimeoutError:
            raise Unavailable(otherwise) from None

    async def arrived(self, store: StoreClient, kind: str, holds: Callable[[], bool]) -> None:
        """The same of what the caller has written, to read it afterwards.

        Somebody else may have written over it, and the store tells of each record what it is last: so it has arrived
        as well when records of that kind are here as they are there.
        """
        try:
            async with asyncio.timeout(_SOON):
                await self.until(holds)
        except TimeoutError:
            if not await self._is_as(store, kind):
                await self.until(holds)

    async def _is_as(self, store: StoreClient, kind: str) -> bool:
        """Whether nothing of a kind is on its way; False where that is not known."""
        with contextlib.suppress(TimeoutError, BrokerError):
            async with asyncio.timeout(_PATIENCE):
                there = {each.key: each.value for each in await store.list_records([kind])}
                return there == {key: kept.raw for key, kept in self.tables[kind].items()}
        return False

    def stamp(self, kinds: tuple[str, ...]) -> tuple[int, ...]:
        """Another one after each change of a record of these kinds."""
        return tuple(self._versions[kind] for kind in kinds)

    def values(self, kind: str) -> list[Any]:
        """Of all records of a kind."""
        return [kept.value for kept in self.tables[kind].values()]

    def grouped(self, kind: str, field: str) -> Grouped:
        """All of a kind, by what one field says."""
        its = self._grouped[kind]
        if field not in its:
            its[field] = Grouped(field, self.tables[kind])
        return its[field]


def host_incarnation(mirror: Mirror, name: str) -> str:
    """Of a virtual host that is there; empty for one that was made before they had ids."""
    host = mirror.tables["virtual_host"].get(name)
    number = host.value.get("id", 0) if host else 0
    return str(number) if number else ""


def _since(version: int, told: Unchanged) -> Unchanged:
    since = Unchanged(version=version)
    since.MergeFrom(told)
    return since


def _is_over(former: Kept, kept: Kept | None) -> bool:
    """Also where the next of its name is there already."""
    return kept is None or former.value.get("id") != kept.value.get("id")


def _kept(record: Record, former: Kept | None) -> Kept:
    """The former one where it says the same."""
    if former is not None and former.raw == record.value and former.transient == record.transient:
        return former
    return Kept(json.loads(record.value), record.value, record.transient)
