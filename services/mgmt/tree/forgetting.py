"""What management keeps of objects that others deleted goes with them: the next of its name begins with nothing.

All management processes do that, each by what it is told: what is deleted twice is gone as it is deleted once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from services.common.clients.store import StoreClient
from services.common.containment import contained
from services.common.errors import BrokerError
from services.mgmt.tree.mirror import OVERLAY, Ended, Kept, Mirror, host_incarnation
from services.rpc.store_pb2 import Record


class Forgetting:
    """Of exchanges, queues and virtual hosts, which have other owners."""

    def __init__(self, mirror: Mirror, store: StoreClient) -> None:
        self._mirror = mirror
        self._store = store

    async def follow(self) -> None:
        """Until it is cancelled."""
        while True:
            ended = await self._mirror.ended.get()
            try:
                await self._forget(list(self._kept_of(ended)))
            except BrokerError as error:
                contained("forgetting what is kept of objects that are gone", error)

    def _kept_of(self, ended: Ended | None) -> Iterable[tuple[str, Kept]]:
        """With each key what it says now: what is kept of the next of its name comes behind it."""
        overlays = self._mirror.tables[OVERLAY]
        if ended is None or ended.kind == "virtual_host":
            return [(key, its) for key, its in overlays.items() if not _is_there(self._mirror, json.loads(key))]
        key = _KEYS[ended.kind](self._mirror, ended.value)
        return [(key, overlays[key])] if key in overlays else []

    async def _forget(self, gone: list[tuple[str, Kept]]) -> None:
        overlays = self._mirror.tables[OVERLAY]
        deletes = [Record(kind=OVERLAY, key=key) for key, its in gone if overlays.get(key) is its]
        if deletes:
            await self._store.put_records(deletes=deletes)


def _is_there(mirror: Mirror, key: list[str]) -> bool:
    category, *path, incarnation = key
    if len(path) < 2 or not _is_of_router(category):
        return True
    if path[1] not in mirror.tables["virtual_host"]:
        return False
    if category == "Queue":
        return bool(mirror.grouped("queue", "id").get(int(incarnation)))
    # Of exchanges nothing tells one from the next of its name in the same virtual host: that is taken for the same.
    return bool(incarnation == host_incarnation(mirror, path[1]))


def _is_of_router(category: str) -> bool:
    return category in {"VirtualHost", "Exchange", "Queue"}


def _exchange(mirror: Mirror, value: Mapping[str, Any]) -> str:
    return _key("Exchange", value, host_incarnation(mirror, value["virtual_host"]))


def _queue(_mirror: Mirror, value: Mapping[str, Any]) -> str:
    return _key("Queue", value, str(value["id"]))


def _key(category: str, value: Mapping[str, Any], incarnation: str) -> str:
    host = value["virtual_host"]
    return json.dumps([category, host, host, value["name"], incarnation], ensure_ascii=False)


_KEYS: Final = {"exchange": _exchange, "queue": _queue}
