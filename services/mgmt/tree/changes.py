"""Changes of the tree, whoever asks for them: over REST, or of the management node of a virtual host.

What is wanted is read once, so that what access is asked for is what is done; what is wrong with it is told who may.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from services.common.access.action import Action
from services.common.errors import BrokerError, NotFound
from services.mgmt.access.operations import CONFIGURE
from services.mgmt.model.configured_object import ACTIVE, ConfiguredObject
from services.mgmt.model.faults import AlreadyExists, IllegalConfiguration, IllegalTransition, NotOffered
from services.mgmt.model.wanted import arguments_for, to_create, to_update
from services.mgmt.tree.caller import Caller
from services.mgmt.tree.category import RESET
from services.mgmt.tree.counters import as_kept
from services.mgmt.tree.house import KEPT_HERE, MOST, Change
from services.mgmt.tree.tree import ANY, Tree

_STATE: Final = "desiredState"
_DELETED: Final = "DELETED"
_LONGEST_NAME: Final = 255  # characters
_OF_ALL: Final = frozenset({"getStatistics", "setContextVariable", "removeContextVariable", "resetStatistics"})
_WHO_CHANGED_IT: Final = ("lastUpdatedBy", "lastUpdatedTime")

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
            _check_length(wanted)
        except BrokerError as error:
            return {}, error
        return wanted, None

    def _to_create(self, path: Sequence[str], said: Mapping[str, Any]) -> dict[str, Any]:
        if not path or not path[-1]:
            raise IllegalConfiguration(f"attribute 'name' of {self._kind.category}: it is mandatory")
        name, parent = path[-1], self._parent(path)
        if len(name) > _LONGEST_NAME:
            raise IllegalConfiguration(f"attribute 'name' of {self._kind.category}: at most {_LONGEST_NAME} characters")
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
        """By whom may, of what was read."""
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
        """With what is kept of it here."""
        await self._keeper.delete(found)
        await self._tree.house.forget(found)
        await self._tree.preferences.forget(found)

    async def invoke(
        self, caller: Caller, path: Sequence[str], name: str, said: Mapping[str, Any], fault: Exception | None = None
    ) -> Any:  # noqa: ANN401 - each operation its own
        """An operation of what is there, by whom may; a `fault` of what was said is raised to nobody else."""
        told, refusal = await self._arguments(caller, path, name, said)
        await caller.check(self._keeper.needs_to_invoke(name, tuple(path), told))
        for wrong in filter(None, (fault, refusal)):
            raise wrong
        found = self._tree.one(self._category, path)
        if name in _OF_ALL:
            return await self._of_all(caller, found, name, told)
        return await self._keeper.invoke(found, name, told)

    async def _arguments(self, caller: Caller, path: Sequence[str], name: str, said: Mapping[str, Any]) -> Read:
        if first := self._keeper.needs_to_read(name, tuple(path)):
            await caller.check(first)
        try:
            told = arguments_for(self._tree.one(self._category, path), name, said)
            return dict(await self._keeper.read(name, tuple(path), told)), None
        except BrokerError as error:
            return {}, error

    async def _of_all(self, caller: Caller, found: ConfiguredObject, name: str, told: Mapping[str, Any]) -> Any:  # noqa: ANN401 - each its own
        if name == "getStatistics":
            wanted = told.get("statistics") or list(found.statistics)
            return {key: value for key, value in self._keeper.measure(found).items() if key in wanted}
        if name == "resetStatistics":
            return await self._reset(caller, found)
        if not self._keeper.changes:
            raise NotOffered(f"no {found.category} is changed here")
        return await self._change_variable(caller, found, told["name"], told.get("value"))

    async def _reset(self, caller: Caller, found: ConfiguredObject) -> None:
        """Notes how far counters are by now: they are taken off, and go on where they are. Nobody changes it."""
        house = self._tree.house
        await house.counters.now()
        reset = {RESET: as_kept(self._keeper.counted(found))}

        def changed(kept: Mapping[str, Any]) -> Mapping[str, Any]:
            return {**reset, **{name: kept.get(name) for name in _WHO_CHANGED_IT}}

        await self._keep(caller, found, changed)

    async def _keep(self, caller: Caller, found: ConfiguredObject, change: Change) -> None:
        await self._keeper.tidy()
        await self._tree.house.change_kept(found, change, caller.name)

    async def _change_variable(
        self, caller: Caller, found: ConfiguredObject, name: str, value: str | None
    ) -> str | None:
        """To `value`, or to none; gives what it was."""
        former: list[str | None] = []

        def changed(kept: Mapping[str, Any]) -> Mapping[str, Any]:
            context = dict(kept.get("context", {}))
            former.append(context.pop(name, None))
            context |= {} if value is None else {name: value}
            _check_length({"context": context})
            return {"context": context}

        await self._keep(caller, found, changed)
        return former[0]


def action_of(found: ConfiguredObject | None, wanted: Mapping[str, Any]) -> Action:
    """What a change does."""
    if found is None:
        return Action.CREATE
    return Action.DELETE if wanted.get(_STATE) == _DELETED else Action.UPDATE


def _check_length(wanted: Mapping[str, Any]) -> None:
    """Of what is kept here, before anything is done. Raises IllegalConfiguration."""
    if any(len(name.encode()) > _LONGEST_NAME for name in wanted.get("context", ())):  # no map of AMQP has longer ones
        raise IllegalConfiguration(f"names in context have at most {_LONGEST_NAME} bytes")
    if len(json.dumps([wanted[key] for key in KEPT_HERE if key in wanted])) > MOST:
        raise IllegalConfiguration(f"description and context have more than {MOST} characters together")
