"""Operations that are carried out on the tree, and not by who has the thing: by their names."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import IllegalConfiguration, NotOffered
from services.mgmt.model.rendering import Options, attributes_told, plural
from services.mgmt.tree.caller import Caller
from services.mgmt.tree.category import RESET
from services.mgmt.tree.counters import as_kept
from services.mgmt.tree.house import Change, check_length
from services.mgmt.tree.publishing import publish
from services.mgmt.tree.tree import Tree

_WHO_CHANGED_IT: Final = ("lastUpdatedBy", "lastUpdatedTime")
_AT_ONCE: Final = 100
"""Objects of a configuration that are told in one turn of the loop."""

CarriedOut = Callable[[Tree, Caller, ConfiguredObject, Mapping[str, Any]], Awaitable[Any]]
"""By whom may, at an object, with arguments as they were read."""


async def _statistics(tree: Tree, _caller: Caller, found: ConfiguredObject, told: Mapping[str, Any]) -> dict[str, int]:
    wanted = told.get("statistics") or list(found.statistics)
    return {key: value for key, value in tree.measure(found).items() if key in wanted}


async def _reset(tree: Tree, caller: Caller, found: ConfiguredObject, _told: Mapping[str, Any]) -> None:
    """Notes how far counters are by now: they are taken off, and go on where they are. Nobody changes the object."""
    await tree.house.counters.now()
    reset = {RESET: as_kept(tree.of(found).counted(found))}

    def changed(kept: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**reset, **{name: kept.get(name) for name in _WHO_CHANGED_IT}}

    await _keep(tree, caller, found, changed)


async def _change_variable(tree: Tree, caller: Caller, found: ConfiguredObject, told: Mapping[str, Any]) -> str | None:
    """To a value, or to none; gives what it was."""
    if not tree.of(found).changes:
        raise NotOffered(f"no {found.category} is changed here")
    name, value, former = told["name"], told.get("value"), list[str | None]()

    def changed(kept: Mapping[str, Any]) -> Mapping[str, Any]:
        context = dict(kept.get("context", {}))
        former.append(context.pop(name, None))
        context |= {} if value is None else {name: value}
        check_length({"context": context})
        return {"context": context}

    await _keep(tree, caller, found, changed)
    return former[0]


async def _keep(tree: Tree, caller: Caller, found: ConfiguredObject, change: Change) -> None:
    await tree.of(found).tidy()
    await tree.house.change_kept(found, change, caller.name)


# ------------------------------------------------------------------ all of the configuration, and who asks


async def _extract(tree: Tree, _caller: Caller, found: ConfiguredObject, told: Mapping[str, Any]) -> dict[str, Any]:
    """What was set of an object and of all below it; what passes by itself is no configuration."""
    if told.get("includeSecureAttributes"):
        raise IllegalConfiguration("parameter 'includeSecureAttributes' of extractConfig: secrets are told to nobody")
    return await _Extracting(tree).of(found)


class _Extracting:
    """Others have their turn between so many objects."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._count = 0

    async def of(self, found: ConfiguredObject) -> dict[str, Any]:
        self._count += 1
        if self._count % _AT_ONCE == 0:
            await asyncio.sleep(0)
        own = dict(attributes_told(found, Options(actuals=True)))
        below = [
            (category, [each for each in its if each.value("durable")]) for category, its in self._tree.below(found)
        ]
        return own | {plural(category): [await self.of(each) for each in its] for category, its in below if its}


async def _user(_tree: Tree, caller: Caller, _found: ConfiguredObject, _told: Mapping[str, Any]) -> str:
    return caller.name


async def _groups(_tree: Tree, caller: Caller, _found: ConfiguredObject, _told: Mapping[str, Any]) -> list[str]:
    return sorted(await caller.groups())


async def _clear_rules(tree: Tree, _caller: Caller, found: ConfiguredObject, _told: Mapping[str, Any]) -> None:
    """Connection limits are there as long as they have rules."""
    await tree.delete(found)


async def _purge(tree: Tree, _caller: Caller, _found: ConfiguredObject, told: Mapping[str, Any]) -> None:
    await tree.preferences.purge(told["username"])


CARRIED_OUT: Final[Mapping[str, CarriedOut]] = {
    "getStatistics": _statistics,
    "resetStatistics": _reset,
    "setContextVariable": _change_variable,
    "removeContextVariable": _change_variable,
    "extractConfig": _extract,
    "getUser": _user,
    "getGroups": _groups,
    "purgeUser": _purge,
    "publishMessage": publish,
    "clearRules": _clear_rules,
}
"""By the operation."""
