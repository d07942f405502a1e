"""GroupProvider, Group, GroupMember: on record (`../access/grants.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from services.common.access.action import Action
from services.common.access.asked import Asked
from services.mgmt.access.operations import CONFIGURE, group
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.groups import Group, GroupMember, GroupProvider
from services.mgmt.tree.category import Keeper, Own
from services.mgmt.tree.house import House

PROVIDER: Final = "internal"


class GroupProviders(Keeper):
    """See services.mgmt.tree.category.Category."""

    kind = GroupProvider
    sees = CONFIGURE

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:  # noqa: ARG002 - the broker
        yield {"name": PROVIDER}, ""


class Groups(Keeper):
    """See services.mgmt.tree.category.Category."""

    kind = Group
    sees = CONFIGURE
    depends = ("group",)
    changes = True

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:  # noqa: ARG002 - there is one
        for name in sorted(self.house.mirror.tables["group"]):
            yield {"name": name}, ""

    def measure(self, found: ConfiguredObject) -> Mapping[str, int]:
        return {"memberCount": len(_members(self.house, found.actual["name"]))}

    def needs(self, action: Action, path: tuple[str, ...], wanted: Mapping[str, Any]) -> Iterable[Asked]:  # noqa: ARG002 - as said
        # As below /api/access/groups: to make a group is to change it.
        return (group(action if action is Action.DELETE else Action.UPDATE, path[1] if len(path) > 1 else ""),)

    async def create(self, parent: ConfiguredObject | None, name: str, wanted: Mapping[str, Any]) -> None:  # noqa: ARG002 - as said
        await self.house.grants.add_group(name)
        await self.house.seen("group", name, there=True)

    async def update(self, found: ConfiguredObject, wanted: Mapping[str, Any]) -> None:
        """What can be changed of it is kept by management; members are objects of their own."""

    async def delete(self, found: ConfiguredObject) -> None:
        await self.house.grants.delete_group(found.actual["name"])
        await self.house.seen("group", found.actual["name"], there=False)


class GroupMembers(Keeper):
    """See services.mgmt.tree.category.Category."""

    kind = GroupMember
    sees = CONFIGURE
    depends = ("group",)
    changes = True

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:
        for name in _members(self.house, parent.actual["name"] if parent else ""):
            yield {"name": name}, ""

    def needs(self, action: Action, path: tuple[str, ...], wanted: Mapping[str, Any]) -> Iterable[Asked]:  # noqa: ARG002 - as said
        return (group(Action.UPDATE, path[1] if len(path) > 1 else ""),)

    async def create(self, parent: ConfiguredObject | None, name: str, wanted: Mapping[str, Any]) -> None:  # noqa: ARG002 - as said
        group_name = parent.actual["name"] if parent else ""
        await self.house.grants.add_member(group_name, name)
        await self.house.arrived("group", lambda: name in _members(self.house, group_name))

    async def update(self, found: ConfiguredObject, wanted: Mapping[str, Any]) -> None:
        """It is a name, and no more."""

    async def delete(self, found: ConfiguredObject) -> None:
        group_name, name = found.path[1], found.actual["name"]
        await self.house.grants.remove_member(group_name, name)
        await self.house.arrived("group", lambda: name not in _members(self.house, group_name))


def _members(house: House, name: str) -> list[str]:
    kept = house.mirror.tables["group"].get(name)
    return list(kept.value["members"]) if kept else []
