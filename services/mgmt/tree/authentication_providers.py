"""AuthenticationProvider: of the settings, or on record (`../providers.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

from services.common.authentication.described import INTERNAL, Described
from services.mgmt.access.operations import CONFIGURE
from services.mgmt.model.authentication import AuthenticationProvider
from services.mgmt.model.configured_object import ACTIVE, QUIESCED, STOPPED, ConfiguredObject
from services.mgmt.model.faults import IllegalTransition
from services.mgmt.tree.category import Keeper, Own, readable
from services.mgmt.tree.house import House
from services.mgmt.tree.set_aside import SetAside, is_aside

_KIND = "authentication_provider"
_ALL_GO = "who came in by it is disconnected where it is not there"


class AuthenticationProviders(Keeper):
    """See services.mgmt.tree.category.Category."""

    kind = AuthenticationProvider
    sees = CONFIGURE
    depends = (_KIND,)
    changes = True

    def __init__(self, house: House) -> None:
        super().__init__(house)
        self._changing = asyncio.Lock()
        self._aside = SetAside(house, self.kind.category, _KIND)

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:  # noqa: ARG002 - the broker
        of_file = self.house.providers.of_file
        # Both at one moment: one that is stopped or started meanwhile would be in neither.
        on_record, aside = sorted(self.house.mirror.tables[_KIND].items()), list(self._aside.all())
        if INTERNAL not in of_file:
            yield {"name": INTERNAL, "type": INTERNAL, "ofSettings": True}, ""
        for name, each in sorted(of_file.items()):
            yield _described(name, each, of_settings=True), ""
        for name, kept in on_record:
            for each in readable(Described, [kept.value]):
                yield _described(name, each.masked(), of_settings=False), ""
        for name, (state, value) in aside:
            for each in readable(Described, [value]):
                told = _described(name, each.masked(), of_settings=False)
                yield {**told, "state": state, "desiredState": state}, ""

    async def create(self, parent: ConfiguredObject | None, name: str, wanted: Mapping[str, Any]) -> None:  # noqa: ARG002 - the broker
        await self.house.providers.put(name, Described(type=wanted["type"], options=wanted.get("options", {})))
        await self.house.seen(_KIND, name, there=True)

    async def update(self, found: ConfiguredObject, wanted: Mapping[str, Any]) -> None:
        self._aside.check_changes(found)
        if "options" in wanted:
            name, raw = found.actual["name"], self._raw(found)
            await self.house.providers.put(name, Described(type=found.actual["type"], options=wanted["options"]))
            await self.house.arrived(_KIND, lambda: self._raw(found) != raw or self._is_same(found, wanted))

    async def move(self, found: ConfiguredObject, state: str, who: str) -> None:
        """Nobody signs in by one that is STOPPED, and who came in by it is disconnected, as when it is deleted."""
        if state == QUIESCED:
            raise IllegalTransition(f"{found.category} '{found.actual['name']}' is {ACTIVE} or {STOPPED}: {_ALL_GO}")
        async with self._changing:
            now = self.as_now(found)
            if state == STOPPED and not is_aside(now):
                await self._stop(now, who)
            elif state == ACTIVE and is_aside(now):
                await self._start(now, who)

    async def _stop(self, found: ConfiguredObject, who: str) -> None:
        await self._aside.away(found, STOPPED, who)
        await self._remove(found.actual["name"])

    async def _start(self, found: ConfiguredObject, who: str) -> None:
        name = found.actual["name"]
        await self.house.providers.put_back(name, self._aside.value(found))
        await self.house.seen(_KIND, name, there=True)
        await self._aside.back(found, who)

    def _raw(self, found: ConfiguredObject) -> bytes:
        kept = self.house.mirror.tables[_KIND].get(found.actual["name"])
        return kept.raw if kept else b""

    @staticmethod
    def _is_same(found: ConfiguredObject, wanted: Mapping[str, Any]) -> bool:
        return bool(found.actual["options"] == wanted["options"])

    async def delete(self, found: ConfiguredObject) -> None:
        if is_aside(found):
            await self._aside.delete(found)
        else:
            await self._remove(found.actual["name"])

    async def _remove(self, name: str) -> None:
        await self.house.providers.remove(name)
        await self.house.seen(_KIND, name, there=False)


def _described(name: str, each: Described, *, of_settings: bool) -> dict[str, Any]:
    return {"name": name, "type": each.type, "options": dict(each.options), "ofSettings": of_settings}
