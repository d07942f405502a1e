"""AuthenticationProvider: of the settings, or on record (`../providers.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from services.common.authentication.described import INTERNAL, Described
from services.mgmt.access.operations import CONFIGURE
from services.mgmt.model.authentication import AuthenticationProvider
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.tree.category import Keeper, Own, readable

_KIND = "authentication_provider"


class AuthenticationProviders(Keeper):
    """See services.mgmt.tree.category.Category."""

    kind = AuthenticationProvider
    sees = CONFIGURE
    depends = (_KIND,)
    changes = True

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:  # noqa: ARG002 - the broker
        of_file = self.house.providers.of_file
        if INTERNAL not in of_file:
            yield {"name": INTERNAL, "type": INTERNAL, "ofSettings": True}, ""
        for name, each in sorted(of_file.items()):
            yield _described(name, each, of_settings=True), ""
        for name, kept in sorted(self.house.mirror.tables[_KIND].items()):
            for each in readable(Described, [kept.value]):
                yield _described(name, each.masked(), of_settings=False), ""

    async def create(self, parent: ConfiguredObject | None, name: str, wanted: Mapping[str, Any]) -> None:  # noqa: ARG002 - the broker
        await self.house.providers.put(name, Described(type=wanted["type"], options=wanted.get("options", {})))
        await self.house.seen(_KIND, name, there=True)

    async def update(self, found: ConfiguredObject, wanted: Mapping[str, Any]) -> None:
        if "options" in wanted:
            name, raw = found.actual["name"], self._raw(found)
            await self.house.providers.put(name, Described(type=found.actual["type"], options=wanted["options"]))
            await self.house.mirror.until(lambda: self._raw(found) != raw or self._is_same(found, wanted))

    def _raw(self, found: ConfiguredObject) -> bytes:
        kept = self.house.mirror.tables[_KIND].get(found.actual["name"])
        return kept.raw if kept else b""

    @staticmethod
    def _is_same(found: ConfiguredObject, wanted: Mapping[str, Any]) -> bool:
        return bool(found.actual["options"] == wanted["options"])

    async def delete(self, found: ConfiguredObject) -> None:
        await self.house.providers.remove(found.actual["name"])
        await self.house.seen(_KIND, found.actual["name"], there=False)


def _described(name: str, each: Described, *, of_settings: bool) -> dict[str, Any]:
    return {"name": name, "type": each.type, "options": dict(each.options), "ofSettings": of_settings}
