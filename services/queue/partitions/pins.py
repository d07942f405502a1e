"""Which partitions are pinned to which members, as the store's records say it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial

from services.common.containment import for_each
from services.common.placement import read_pin
from services.rpc.store_pb2 import Record, Records


class Pins:
    """`on_change` is told all pins, partition → member, whenever they change; a member may be dead."""

    def __init__(self, on_change: Callable[[Mapping[int, str]], None]) -> None:
        self._members: dict[int, str] = {}
        self._on_change = on_change

    async def follow(self, messages: AsyncIterator[Records]) -> None:
        """Applies a watch of the records of kind `placement`; ends with the watch."""
        snapshot: dict[int, str] | None = None
        async for message in messages:
            if message.snapshot:
                snapshot = snapshot or {}
                _apply(snapshot, message)
                if not message.last:
                    continue
                self._members, snapshot = snapshot, None
            else:
                _apply(self._members, message)
            self._on_change(self._members)


def _apply(members: dict[int, str], message: Records) -> None:
    for_each("reading a pin", message.records, partial(_put, members), do="pin the partition again: hopline partitions")


def _put(members: dict[int, str], record: Record) -> None:
    if record.deleted:
        members.pop(int(record.key), None)
    else:
        partition, member = read_pin(record)
        members[partition] = member
