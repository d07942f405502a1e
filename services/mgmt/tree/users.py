"""User: on record (`../users.py`), below the provider `internal`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from services.common.access import questions
from services.common.access.action import Action, Kind
from services.common.access.asked import Asked
from services.common.authentication.described import INTERNAL
from services.mgmt.access.operations import CONFIGURE
from services.mgmt.leaving import delete_user
from services.mgmt.model.attribute import MASK
from services.mgmt.model.authentication import User
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import IllegalConfiguration, NotOffered
from services.mgmt.tree.category import Keeper, Own
from services.mgmt.users import Kept


class Users(Keeper):
    """See services.mgmt.tree.category.Category."""

    kind = User
    sees = CONFIGURE
    depends = ("user",)
    changes = True

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:
        if parent and parent.actual["name"] == INTERNAL:
            for name, kept in sorted(self.house.mirror.tables["user"].items()):
                yield _described(name, kept.value), ""

    def needs(self, action: Action, path: tuple[str, ...], wanted: Mapping[str, Any]) -> Iterable[Asked]:
        name = path[-1] if len(path) > 1 else ""
        if action is Action.UPDATE:
            return (questions.update(Kind.USER, "", name, wanted),)
        if action is Action.CREATE:
            return questions.create_user(name, wanted.get("tags", ()))
        return (Asked(action, Kind.USER, name),)

    async def create(self, parent: ConfiguredObject | None, name: str, wanted: Mapping[str, Any]) -> None:
        if parent is None or parent.actual["name"] != INTERNAL:
            raise NotOffered(f"users are made below the provider '{INTERNAL}'")
        tags, only = wanted.get("tags", []), wanted.get("loopbackOnly", False)
        users, kept = self.house.users, _kept(wanted)
        await users.put(name, wanted["password"], tags, loopback_only=only, kept=kept, there=False)
        await self.house.seen("user", name, there=True)

    async def update(self, found: ConfiguredObject, wanted: Mapping[str, Any]) -> None:
        name = found.actual["name"]
        former, password = self.house.mirror.tables["user"].get(name), wanted.get("password")
        if password in {None, MASK} and (said := wanted.keys() & {"credentialKind", "hashed"}):
            raise IllegalConfiguration(f"attribute '{min(said)}' says how a password is kept, and none is given")
        told = {
            "password": None if password == MASK else password,
            "tags": wanted.get("tags"),
            "loopback_only": wanted.get("loopbackOnly"),
        }
        if all(value is None for value in told.values()):
            return
        await self.house.users.change(name, kept=_kept(wanted), **told)
        same = told["password"] is None and {**found.actual, **wanted} == found.actual
        await self.house.arrived("user", lambda: same or self.house.mirror.tables["user"].get(name) is not former)

    async def delete(self, found: ConfiguredObject) -> None:
        await delete_user(self.house.users, self.house.grants, found.actual["name"])
        await self.house.seen("user", found.actual["name"], there=False)


def _kept(wanted: Mapping[str, Any]) -> Kept:
    return Kept(wanted.get("credentialKind", Kept().kind), wanted.get("hashed", False))


def _described(name: str, value: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "password": MASK, "tags": list(value.get("tags", ())), "loopbackOnly": value["loopback_only"]}
