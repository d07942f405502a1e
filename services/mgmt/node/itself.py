"""What is asked of the node itself, as an object of type org.amqp.management: which types there are, and QUERY."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final, TypeVar

from services.common.clock import monotonic
from services.common.errors import SyntaxFault
from services.mgmt.access.operations import OBSERVE
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import NotOffered
from services.mgmt.model.values import of_kind
from services.mgmt.node.exchanged import Asked, Reply, check_length
from services.mgmt.node.kinds import MANAGEMENT, Type, above, name_of, types_of
from services.mgmt.node.telling import names_of, told
from services.mgmt.tree.caller import Caller
from services.mgmt.tree.tree import Tree

_AT_A_TIME: Final = 0.005  # seconds that others wait while objects are told
_MOST_NAMES: Final = 300  # of attributes: all that there are, and some that there are not

_T = TypeVar("_T")


class Itself:
    """For one who asks."""

    def __init__(self, tree: Tree, caller: Caller, asked: Asked) -> None:
        self._tree = tree
        self._caller = caller
        self._asked = asked
        self._types = types_of(tree, asked.virtual_host)

    async def carry_out(self, operation: str) -> Reply:
        """Raises BrokerError."""
        if known := _OPERATIONS.get(operation):
            return Reply.of(await known(self))
        raise NotOffered(f"Unknown operation {operation}")

    def _entity_type(self) -> Type | None:
        """That is asked about; None for all."""
        name = self._asked.text("entityType")
        if name and name not in self._types:
            raise SyntaxFault(f"Unknown entity type: '{name}'")
        return self._types[name] if name else None

    # -------------------------------------------------------------- what there can be

    async def _of_types(self, told: Callable[[Type], _T], its_own: _T) -> dict[str, _T]:
        """By name: of all, or of one and those that it stands for."""
        await self._caller.check([OBSERVE])
        if self._asked.text("entityType") == MANAGEMENT:
            return {MANAGEMENT: its_own}
        wanted = self._entity_type()
        found = {name: told(each) for name, each in self._types.items() if _is_of(each, wanted)}
        return found if wanted else {**found, MANAGEMENT: its_own}

    async def _types_told(self) -> dict[str, list[str]]:
        return await self._of_types(lambda each: [name_of(each.kind)] if each.qpid_type else [], [])

    async def _attributes_told(self) -> dict[str, list[str]]:
        def attributes(each: Type) -> list[str]:
            return [name for name, its in each.kind.attributes.items() if each.has(its)]

        return await self._of_types(attributes, [])

    async def _operations_told(self) -> dict[str, dict[str, list[str]]]:
        def operations(each: Type) -> dict[str, list[str]]:
            return {name: list(its.parameters) for name, its in each.kind.operations.items()}

        return await self._of_types(operations, {})

    async def _nodes_told(self) -> list[str]:
        """Others that this one knows of: none."""
        await self._caller.check([OBSERVE])
        return []

    # -------------------------------------------------------------- types and objects

    async def _query(self) -> dict[str, Any]:
        names, wanted = self._attribute_names(), self._entity_type()
        types = await self._visible(wanted)
        await self._tree.ready(source for each in types for source in self._tree.categories[each.category].fresh)
        found = sorted(self._objects(types, wanted), key=_order)
        found = _counted(_offset(found, self._number("offset")), self._number("count"))
        told_types = [each for each in self._types.values() if each.category in _categories(types)]
        names = names or names_of(told_types, self._asked)
        return {"attributeNames": names, "results": await self._rows(found, names)}

    async def _rows(self, found: list[ConfiguredObject], names: list[str]) -> list[list[Any]]:
        """Raises TooMuch where they are: before all of them are made in vain."""
        rows, length, began = [], 0, monotonic()
        for each in found:
            shown = told(each, self._asked, actuals=True)
            rows.append([shown.get(name) for name in names])
            check_length(length := length + len(json.dumps(rows[-1], ensure_ascii=False)))
            if monotonic() - began > _AT_A_TIME:
                await asyncio.sleep(0)
                began = monotonic()
        return rows

    def _attribute_names(self) -> list[str]:
        """Those that are asked for, once each; empty for all."""
        body = {} if self._asked.body is None else self._asked.body
        if not isinstance(body, dict):
            raise SyntaxFault("Body of a QUERY operation must be a map")
        names = of_kind(list, body.get("attributeNames") or [], "attributeNames")
        if not all(isinstance(name, str) for name in names):
            raise SyntaxFault("attributeNames: names are texts")
        if len(once := list(dict.fromkeys(names))) > _MOST_NAMES:
            raise SyntaxFault(f"attributeNames: no more than {_MOST_NAMES} of them")
        return once

    async def _visible(self, wanted: Type | None) -> list[Type]:
        """What is asked for by name has to be allowed; of all there is, what may be looked at is told."""
        if wanted:
            await self._caller.check([self._tree.categories[wanted.category].sees])
            return [wanted]
        await self._caller.check([OBSERVE])
        categories = [each for each in self._types.values() if not each.qpid_type]
        return [each for each in categories if await self._caller.may(self._tree.categories[each.category].sees)]

    def _objects(self, types: list[Type], wanted: Type | None) -> Iterator[ConfiguredObject]:
        for each in types:
            for found in self._tree.find(each.category, above(self._asked.virtual_host)):
                if wanted is None or wanted.fits(found):
                    yield found

    def _number(self, name: str) -> int | None:
        value = self._asked.properties.get(name)
        return None if value is None else int(of_kind(int, value, f"the property '{name}'"))


def _is_of(each: Type, wanted: Type | None) -> bool:
    if wanted is None:
        return True
    return each == wanted if wanted.qpid_type else each.category == wanted.category


def _categories(types: list[Type]) -> set[str]:
    return {each.category for each in types}


def _order(found: ConfiguredObject) -> tuple[str, str, str]:
    return found.category, found.actual["name"], found.value("id")


def _offset(found: list[ConfiguredObject], offset: int | None) -> list[ConfiguredObject]:
    """Below zero: so many from the end, as in Broker-J."""
    if offset is None:
        return found
    return found[offset:] if offset >= 0 or len(found) + offset > 0 else found


def _counted(found: list[ConfiguredObject], count: int | None) -> list[ConfiguredObject]:
    """Below zero: all but so many, as in Broker-J."""
    if count is None:
        return found
    return found[:count] if count >= 0 or len(found) + count > 0 else found


_OPERATIONS: Final[Mapping[str, Callable[[Itself], Awaitable[Any]]]] = {
    "GET-TYPES": Itself._types_told,  # noqa: SLF001 - the class's own table
    "GET-ATTRIBUTES": Itself._attributes_told,  # noqa: SLF001
    "GET-OPERATIONS": Itself._operations_told,  # noqa: SLF001
    "GET-MGMT-NODES": Itself._nodes_told,  # noqa: SLF001
    "QUERY": Itself._query,  # noqa: SLF001
}
