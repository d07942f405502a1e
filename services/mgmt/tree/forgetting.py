"""What management keeps of objects that others deleted goes with them: the next of its name begins with nothing.

Which that is, is noted when the object goes: what is kept of the next of its name, which may be there before the store
has been told, is something else. All management processes do that, each by what it is told: what is deleted twice is
gone as it is deleted once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from services.common.authentication.described import INTERNAL
from services.common.clients.overtaken import decided_again
from services.common.clients.store import StoreClient
from services.common.containment import by_itself, contained
from services.mgmt.loggers.records import LOGGER_KIND, RULE_KIND
from services.mgmt.preferences.preference import RECORD_KIND as PREFERENCE
from services.mgmt.tree.mirror import OVERLAY, Ended, Kept, Mirror, host_incarnation
from services.rpc.store_pb2 import Record, Unchanged

_WHAT: Final = "forgetting what is kept of objects that are gone"


class _Gone(NamedTuple):
    """A record, and what it said when its object went."""

    kind: str
    key: str
    kept: Kept


class Forgetting:
    """Of what may be deleted otherwise than by way of the tree."""

    def __init__(self, mirror: Mirror, store: StoreClient) -> None:
        self._mirror = mirror
        self._store = store
        self._gone: asyncio.Queue[list[_Gone]] = asyncio.Queue()
        mirror.ended = self._note

    async def follow(self) -> None:
        """Until it is cancelled."""
        while True:
            gone = await self._gone.get()
            try:
                await self._forget(gone)
            except Exception as error:  # noqa: BLE001 - of these: others go yet
                contained(_WHAT, error)

    def _note(self, ended: Ended | None) -> None:
        by_itself(_WHAT, lambda: self._gone.put_nowait(list(self._kept_of(ended))))

    def _kept_of(self, ended: Ended | None) -> Iterator[_Gone]:
        """Of one object; of one that has others below it, of all that are not there."""
        if ended is None or ended.kind not in _KEYS:
            yield from (each for each, about in self._all() if not _is_there(self._mirror, json.loads(about)))
            return
        key = _KEYS[ended.kind](self._mirror, ended.value)
        if its := self._mirror.tables[OVERLAY].get(key):
            yield _Gone(OVERLAY, key, its)
        for kept in self._mirror.grouped(PREFERENCE, "object").get(key, ()):
            yield _Gone(PREFERENCE, kept.value["id"], kept)

    def _all(self) -> Iterator[tuple[_Gone, str]]:
        """With the key of the object that each is about."""
        for key, kept in self._mirror.tables[OVERLAY].items():
            yield _Gone(OVERLAY, key, kept), key
        for key, kept in self._mirror.tables[PREFERENCE].items():
            yield _Gone(PREFERENCE, key, kept), kept.value["object"]
        for kind, category in ((LOGGER_KIND, "VirtualHostLogger"), (RULE_KIND, "VirtualHostLogInclusionRule")):
            for key, kept in self._mirror.tables[kind].items():
                if host := json.loads(key)[0]:
                    yield _Gone(kind, key, kept), _key(category, host, kept.value.get("host", ""))

    @decided_again
    async def _forget(self, gone: list[_Gone]) -> None:
        tables = self._mirror.tables
        deletes = [Record(kind=kind, key=key) for kind, key, kept in gone if tables[kind].get(key) is kept]
        if deletes:
            unchanged = [Unchanged(kind=each.kind, key=each.key) for each in deletes]
            await self._mirror.put(self._store, deletes=deletes, unchanged=unchanged)


# ------------------------------------------------------------------ the present state


def _is_there(mirror: Mirror, key: list[str]) -> bool:
    category, *path, incarnation = key
    there = _THERE.get(category)
    return there is None or there(mirror, path, incarnation)


def _has_host(mirror: Mirror, path: list[str], _incarnation: str) -> bool:
    return path[0] in mirror.tables["virtual_host"]


def _has_same_host(mirror: Mirror, path: list[str], incarnation: str) -> bool:
    # Of exchanges nothing tells one from the next of its name in the same virtual host: that is taken for the same.
    return _has_host(mirror, path, "") and bool(incarnation == host_incarnation(mirror, path[0]))


def _has_queue(mirror: Mirror, _path: list[str], incarnation: str) -> bool:
    return bool(mirror.grouped("queue", "id").get(int(incarnation)))


def _has_user(mirror: Mirror, path: list[str], _incarnation: str) -> bool:
    return path[1] in mirror.tables["user"]


def _has_group(mirror: Mirror, path: list[str], _incarnation: str) -> bool:
    return path[1] in mirror.tables["group"]


_THERE: Final[Mapping[str, Callable[[Mirror, list[str], str], bool]]] = {
    "VirtualHostNode": _has_host,
    "VirtualHost": _has_same_host,
    "VirtualHostAccessControlProvider": _has_host,
    "VirtualHostConnectionLimitProvider": _has_host,
    "Exchange": _has_same_host,
    "Queue": _has_queue,
    "VirtualHostLogger": _has_same_host,
    "VirtualHostLogInclusionRule": _has_same_host,
    "User": _has_user,
    "Group": _has_group,
    "GroupMember": _has_group,
}
"""By category; what is of another one is deleted by way of the tree alone."""


# ------------------------------------------------------------------ keys of what ended, and has nothing below it


def _exchange(mirror: Mirror, value: Mapping[str, Any]) -> str:
    host = value["virtual_host"]
    return _key("Exchange", host, host, value["name"], host_incarnation(mirror, host))


def _queue(_mirror: Mirror, value: Mapping[str, Any]) -> str:
    return _key("Queue", value["virtual_host"], value["virtual_host"], value["name"], str(value["id"]))


def _user(_mirror: Mirror, value: Mapping[str, Any]) -> str:
    return _key("User", INTERNAL, value["name"], "")


def _key(*parts: str) -> str:
    return json.dumps(parts, ensure_ascii=False)


_KEYS: Final = {"exchange": _exchange, "queue": _queue, "user": _user}
