"""Preferences as records: read from the mirror of the tree, changed one change after the other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable

from services.common.clients.overtaken import decided_again
from services.common.clock import epoch_ms
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.preferences.changing import Change, Changing
from services.mgmt.preferences.preference import RECORD_KIND, Preference, Said, Who, ordered
from services.mgmt.tree.category import readable
from services.mgmt.tree.house import House, key_of
from services.rpc.store_pb2 import Record, Unchanged

Which = Callable[[Preference], bool]
"""Selects some of a user's preferences at an object."""


class Preferences:
    """Of one tree, which is ready. Changes raise Unavailable where the store is away."""

    def __init__(self, house: House, line: Callable[[str], list[str]]) -> None:
        """`line` gives the categories from below the broker down to one."""
        self._house = house
        self._line = line
        self._changing = asyncio.Lock()
        self._read: tuple[tuple[int, ...], list[Preference]] | None = None

    def own(self, found: ConfiguredObject, who: Who) -> list[Preference]:
        """The preferences of `who` at an object."""
        return [each for each in self.visible(found, who) if each.owner == who.name]

    def visible(self, found: ConfiguredObject, who: Who) -> list[Preference]:
        """Those, and those that others there show to a group that `who` is in."""
        return ordered(each for each in self._all() if each.object == key_of(found) and each.is_seen_by(who))

    async def replace(self, found: ConfiguredObject, who: Who, said: Iterable[Said], which: Which) -> None:
        """In place of those own ones of which `which` says so. Raises IllegalConfiguration."""
        await self._change(found, who, lambda changing: changing.replaced(said, which))

    async def append(self, found: ConfiguredObject, who: Who, said: Iterable[Said]) -> None:
        """Beside the others; one whose id there is already is changed. Raises IllegalConfiguration."""
        await self._change(found, who, lambda changing: changing.appended(said))

    @decided_again
    async def forget(self, found: ConfiguredObject) -> None:
        """It is gone, with all below it."""
        gone = [each.id for each in self._all() if self._goes_with(each, found)]
        await self._put(Change((), gone))

    @decided_again
    async def purge(self, owner: str) -> None:
        """All that somebody has, at whatever object."""
        await self._put(Change((), [each.id for each in self._all() if each.owner == owner]))

    async def _change(self, found: ConfiguredObject, who: Who, decide: Callable[[Changing], Change]) -> None:
        if not found.value("durable"):
            raise IllegalConfiguration(f"a {found.category} that does not last keeps no preferences")
        async with self._changing:
            await self._decide(found, who, decide)

    @decided_again
    async def _decide(self, found: ConfiguredObject, who: Who, decide: Callable[[Changing], Change]) -> None:
        all_ = {each.id: each for each in self._all()}
        await self._put(decide(Changing(all_, who, key_of(found), epoch_ms())))

    async def _put(self, change: Change) -> None:
        if not change.puts and not change.deletes:
            return
        puts = [Record(kind=RECORD_KIND, key=each.id, value=each.to_json()) for each in change.puts]
        deletes = [Record(kind=RECORD_KIND, key=id_) for id_ in change.deletes]
        await self._house.mirror.put(self._house.store, puts, deletes, unchanged=[Unchanged(kind=RECORD_KIND)])
        await self._house.arrived(RECORD_KIND, lambda: self._has(puts, change.deletes))

    def _has(self, puts: Iterable[Record], deletes: Iterable[str]) -> bool:
        table = self._house.mirror.tables[RECORD_KIND]
        there = all(each.key in table and table[each.key].raw == each.value for each in puts)
        return there and not any(id_ in table for id_ in deletes)

    def _all(self) -> list[Preference]:
        """Read once after each change of any."""
        mirror = self._house.mirror
        stamp = mirror.stamp((RECORD_KIND,))
        if self._read is None or self._read[0] != stamp:
            self._read = stamp, readable(Preference, mirror.values(RECORD_KIND))
        return self._read[1]

    def _goes_with(self, preference: Preference, found: ConfiguredObject) -> bool:
        category, *names, _incarnation = json.loads(preference.object)
        is_below = found.category.lower() in self._line(category.lower())[:-1]
        return preference.object == key_of(found) or (is_below and tuple(names[: len(found.path)]) == found.path)
