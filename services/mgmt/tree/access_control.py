"""AccessControlProvider and VirtualHostAccessControlProvider: rules are on record (`../access/grants.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from services.common.access.acl.parse import parse
from services.common.access.records import AclText, acl_key
from services.mgmt.access.operations import CONFIGURE
from services.mgmt.model.access_control import (
    RULE_BASED,
    AccessControlProvider,
    VirtualHostAccessControlProvider,
)
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.tree.category import Keeper, Own
from services.mgmt.tree.house import House
from services.mgmt.tree.rule_files import rules_at

_KIND: Final = "acl"
_EXTRACT: Final = "extractRules"
NAME: Final = "acl"
"""What rules of a virtual host are called: there is one set of them."""


class AccessControlProviders(Keeper):
    """See services.mgmt.tree.category.Category."""

    kind = AccessControlProvider
    sees = CONFIGURE
    depends = (_KIND,)
    changes = True

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:  # noqa: ARG002 - the broker
        for number, name in enumerate(self.house.settings.access_control):
            rules = {"type": RULE_BASED, "rules": _text(self.house, None)} if name == NAME else {"type": name}
            yield {"name": name, "priority": number, **rules}, ""

    async def update(self, found: ConfiguredObject, wanted: Mapping[str, Any]) -> None:
        if "rules" in wanted and found.actual["type"] != RULE_BASED:
            raise IllegalConfiguration(f"attribute 'rules': '{found.actual['name']}' has none")
        if "rules" in wanted:
            await _put(self.house, None, wanted["rules"])

    async def invoke(self, found: ConfiguredObject, operation: str, arguments: Mapping[str, Any]) -> str | None:
        if operation == _EXTRACT:
            return str(found.actual.get("rules", ""))
        await self.update(found, {"rules": await rules_at(arguments["path"], parse)})
        return None


class VirtualHostAccessControlProviders(Keeper):
    """See services.mgmt.tree.category.Category."""

    kind = VirtualHostAccessControlProvider
    sees = CONFIGURE
    depends = ("virtual_host", _KIND)
    changes = True

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:
        if parent and (rules := _text(self.house, parent.actual["name"])):
            yield {"name": NAME, "rules": rules}, ""

    async def create(self, parent: ConfiguredObject | None, name: str, wanted: Mapping[str, Any]) -> None:
        if name != NAME:
            raise IllegalConfiguration(f"attribute 'name': rules of a virtual host are called '{NAME}'")
        await _put(self.house, parent.actual["name"] if parent else "", wanted["rules"])

    async def update(self, found: ConfiguredObject, wanted: Mapping[str, Any]) -> None:
        if "rules" in wanted:
            await _put(self.house, found.path[1], wanted["rules"])

    async def delete(self, found: ConfiguredObject) -> None:
        await _put(self.house, found.path[1], "")

    async def invoke(self, found: ConfiguredObject, operation: str, arguments: Mapping[str, Any]) -> str | None:
        if operation == _EXTRACT:
            return str(found.actual["rules"])
        await self.update(found, {"rules": await rules_at(arguments["path"], parse)})
        return None


def _text(house: House, virtual_host: str | None) -> str:
    kept = house.mirror.tables[_KIND].get(acl_key(virtual_host))
    return str(kept.value["text"]) if kept else ""


async def _put(house: House, virtual_host: str | None, text: str) -> None:
    """No rules at all are none on record."""
    if text:
        await house.grants.put_acl(AclText(virtual_host=virtual_host, text=text))
    elif _text(house, virtual_host):
        await house.grants.remove_acl(virtual_host)
    await house.arrived(_KIND, lambda: _text(house, virtual_host) == text)
