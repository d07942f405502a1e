"""Changes of the tree, from any caller: over REST, or by the management node of a virtual host.

A request is read once, so that what is checked is what is done; what is wrong with it is told only to users who may.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from services.common.access.action import Action
from services.common.errors import BrokerError, NotFound
from services.mgmt.access.operations import CONFIGURE
from services.mgmt.model.configured_object import ACTIVE, ConfiguredObject
from services.mgmt.model.faults import AlreadyExists, IllegalConfiguration, IllegalTransition
from services.mgmt.model.wanted import arguments_for, to_create, to_update
from services.mgmt.tree.caller import Caller
from services.mgmt.tree.carried_out import CARRIED_OUT
from services.mgmt.tree.house import KEPT_HERE, LONGEST_NAME, check_length
from services.mgmt.tree.tree import ANY, Tree

_STATE: Final = "desiredState"
_DELETED: Final = "DELETED"

Read = tuple[dict[str, Any], BrokerError | None]
"""What is wanted, and what is wrong with it."""


class Changes:
    """Of one category."""

    def __init__(self, tree: Tree, category: str) -> None:
        self._tree = tree
        self._category = category
        self._keeper = tree.categories[category]
        self._kind = self._keeper.kind

    # -------------------------------------------------------------- what is asked for

    def is_whole(self, path: Sequence[str]) -> bool:
        """Whether an object of it can be there."""
        return len(path) == len(self._tree.line(self._category)) and ANY not in path

    def found(self, path: Sequence[str]) -> ConfiguredObject | None:
        """What is there."""
        if not self.is_whole(path):
            return None
        try:
            return self._tree.one(self._category, path)
        except NotFound:
            return None

    def wanted(self, found: ConfiguredObject | None, path: Sequence[str], said: Mapping[str, Any]) -> Read:
        """Of an object to be, or one that is there."""
        if not self.is_whole(path):
            return {}, None
        try:
            wanted = to_update(found, said) if found else self._to_create(path, said)
            check_length(wanted)
        except BrokerError as error:
            return {}, error
        return wanted, None

    def _to_create(self, path: Sequence[str], said: Mapping[str, Any]) -> dict[str, Any]:
        if not path or not path[-1]:
            raise IllegalConfiguration(f"attribute 'name' of {self._kind.category}: it is mandatory")
        name, parent = path[-1], self._parent(path)
        if len(name) > LONGEST_NAME:
            raise IllegalConfiguration(f"attribute 'name' of {self._kind.category}: at most {LONGEST_NAME} characters")
        if said.get("name", name) != name:
            raise IllegalConfiguration(f"attribute 'name': the path says '{name}'")
        if self._keeper.children(parent).get(name):
            raise AlreadyExists(f"there is a {self._kind.category} '{name}' already")
        wanted = to_create(self._kind, {**said, "name": name}, parent)
        if (state := wanted.get(_STATE, ACTIVE)) != ACTIVE:
            raise IllegalTransition(f"{self._kind.category} '{name}': it is {ACTIVE} when it is made, and not {state}")
        return wanted

    def _parent(self, path: Sequence[str]) -> ConfiguredObject:
        """A virtual host comes with its node: there is none before."""
        if self._category == "virtualhost":
            if path[0] != path[1]:
                raise IllegalConfiguration("attribute 'name': a virtual host is called as its node is")
            node = self._tree.categories["virtualhostnode"].kind
            there = self._tree.categories["virtualhostnode"].children(self._tree.broker)
            return there.get(path[0]) or node(self._tree.broker, {"name": path[0]})
        line = self._tree.line(self._category)
        return self._tree.one(line[-2], path[:-1]) if len(line) > 1 else self._tree.broker

    async def may(self, caller: Caller, action: Action, path: Sequence[str], wanted: Mapping[str, Any]) -> None:
        """Raises AccessRefused. What no object can be at, administrators alone hear more of: NotFound."""
        whole = self.is_whole(path)
        await caller.check(self._keeper.needs(action, tuple(path), wanted) if whole else [CONFIGURE])
        if not whole:
            line = "/".join(self._tree.line(self._category))
            raise NotFound(f"{self._kind.category} is at {line}, or at the path of its parent")

    # -------------------------------------------------------------- what is done

    async def create(self, caller: Caller, path: Sequence[str], wanted: Mapping[str, Any]) -> ConfiguredObject:
        """For a user who may, of what was read."""
        await self._keeper.create(self._parent(path), path[-1], wanted)
        made = self._tree.one(self._category, path)
        kept = {key: wanted[key] for key in KEPT_HERE if key in wanted}
        await self._tree.house.keep(made, kept, caller.name, created=True)
        return self._tree.one(self._category, path)

    async def update(
        self, caller: Caller, found: ConfiguredObject, wanted: Mapping[str, Any]
    ) -> ConfiguredObject | None:
        """The same; None: it is deleted."""
        if action_of(found, wanted) is Action.DELETE:
            await self.delete(found)
            return None
        if state := wanted.get(_STATE):
            return await self._move(caller, found, state, alone=len(wanted) == 1)
        theirs = {key: value for key, value in wanted.items() if key not in KEPT_HERE}
        if theirs:
            await self._keeper.update(found, theirs)
        if wanted:
            kept = {key: value for key, value in wanted.items() if key in KEPT_HERE}
            await self._tree.house.keep(found, kept, caller.name)
        return self._tree.one(self._category, found.path)

    async def _move(self, caller: Caller, found: ConfiguredObject, state: str, *, alone: bool) -> ConfiguredObject:
        """It says at once whether it can, and then it is what it was, but for that."""
        if not alone:
            raise IllegalConfiguration(f"attribute '{_STATE}': it is changed by itself, and nothing else with it")
        await self._keeper.move(found, state, caller.name)
        return self._tree.one(self._category, found.path)

    async def delete(self, found: ConfiguredObject) -> None:
        """For a user who may."""
        await self._tree.delete(found)

    async def invoke(
        self, caller: Caller, path: Sequence[str], name: str, said: Mapping[str, Any], fault: Exception | None = None
    ) -> Any:  # noqa: ANN401 - each operation its own
        """An operation of an object, for a user who may; a `fault` of the request is raised to no other."""
        told, refusal = await self._arguments(caller, path, name, said)
        await caller.check(self._keeper.needs_to_invoke(name, tuple(path), told))
        for wrong in filter(None, (fault, refusal)):
            raise wrong
        found = self._tree.one(self._category, path)
        if carry_out := CARRIED_OUT.get(name):
            return await carry_out(self._tree, caller, found, told)
        return await self._keeper.invoke(found, name, told)

    async def _arguments(self, caller: Caller, path: Sequence[str], name: str, said: Mapping[str, Any]) -> Read:
        if first := self._keeper.needs_to_read(name, tuple(path)):
            await caller.check(first)
        try:
            told = arguments_for(self._tree.one(self._category, path), name, said)
            return dict(await self._keeper.read(name, tuple(path), told)), None
        except BrokerError as error:
            return {}, error


def action_of(found: ConfiguredObject | None, wanted: Mapping[str, Any]) -> Action:
    """What a change does."""
    if found is None:
        return Action.CREATE
    return Action.DELETE if wanted.get(_STATE) == _DELETED else Action.UPDATE
